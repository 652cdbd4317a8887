"""The example for browsers gives the vectors of the model, in a real browser (Playwright with a Chromium of the system)."""

from __future__ import annotations

import functools
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import polyseme
from polyseme.encoders.elmo import Elmo

pytest.importorskip("onnx", reason="needs the extra onnx")
pytest.importorskip("onnxruntime", reason="needs the extra onnx")
playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium"),
    pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm"),
]
EXAMPLE = Path(__file__).parents[2] / "examples" / "onnx_web"


class Quiet(SimpleHTTPRequestHandler):
    extensions_map: ClassVar[dict[str, str]] = {  # type: ignore[misc]
        **SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address(model: Elmo, tmp_path: Path) -> Iterator[str]:
    """The example with a tiny model, served as its README says."""
    for name in ("index.html", "page.js", "elmo.js", "package.json"):
        shutil.copy(EXAMPLE / name, tmp_path)
    done = subprocess.run(["npm", "install", "--no-audit", "--no-fund"], cwd=tmp_path, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"npm cannot install onnxruntime-web: {done.stderr.strip()[-200:]}")
    polyseme.convert(model, tmp_path / "model", to="onnx")
    server = ThreadingHTTPServer(("localhost", 0), functools.partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()


def test_the_same_vectors_in_a_browser(model: Elmo, address: str) -> None:
    words = ["The", "bank", "of", "the", "naïve", "河岸", "."]
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(address)
        page.wait_for_selector("#compare:enabled")
        page.wait_for_selector("#cosines td")
        code = """async (words) => {
            const { embed, load } = await import("./elmo.js");
            const model = await load("model");
            return [await embed(model, words), await embed(model, words, 0), await embed(model, [])]
                .map((vectors) => vectors.map((vector) => [...vector]));
        }"""
        top, first, none = page.evaluate(code, words)
        page.fill("#first", "<b>bold</b>")
        page.click("#compare")
        page.wait_for_function("document.querySelector('#cosines').rows.length == 9")
        assert page.query_selector("#cosines b") is None and not problems
        browser.close()
    expected = model.embed([words])[0]
    np.testing.assert_allclose(top, expected[-1], atol=1e-4)
    np.testing.assert_allclose(first, expected[0], atol=1e-4)
    assert none == []
