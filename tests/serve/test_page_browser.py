"""The explorer in a real browser: every view from a link, text as text, no address but loopback, no axe violation.

Needs Playwright and a Chromium of the system (Debian: `apt-get install chromium`); skipped without them.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from polyseme.serve.app import create_app
from polyseme.serve.config import ServeConfig
from polyseme.serve.server import listen
from tests.serve.small_service import searchable, tiny_models

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
AXE = Path(__file__).parent / "axe" / "axe.min.js"
RUNS = Path(__file__).parents[1] / "old_folders" / "runs"
TEXT = "They sat on the bank of the river ."
EVIL = "<img src=x onerror=alert(1)> <script>alert(2)</script> bank"
PHONE = {"viewport": {"width": 390, "height": 800}, "locale": "zh-CN", "color_scheme": "dark"}
VIEWS = {
    "sentence": (f"text={TEXT}&word=4", ".details .panel"),
    "map": ("word=bank", ".map-place canvas"),
    "edit": (f"text={TEXT}&word=4&to=mat", ".matrix"),
    "pair": (f"one={TEXT}&two=Money in the bank&layer=1", ".matrix"),
    "line": ("question=next&text=They sat", ".line-columns .found"),
    "mix": (f"text={TEXT}&word=4&weights=0,0.5,1", ".panel .found"),
    "tasks": ("", ".notice"),
    "training": ("", ".chart"),
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    import uvicorn

    models, listener = searchable(tiny_models()), listen("127.0.0.1", 0)
    app = create_app(ServeConfig(runs=str(RUNS)), lambda: models)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started or not app.state.service.ready:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    with sync_api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=[*quiet, "--no-first-run"])
        yield made
        made.close()


@pytest.fixture
def open_page(browser: Any, address: str) -> Iterator[Any]:
    contexts, problems = [], list[str]()

    def route(each: Any) -> None:
        ours = each.request.url.startswith((address, "data:", "blob:"))
        if not ours:
            problems.append(each.request.url)
        each.continue_() if ours else each.abort()

    def opened(link: str, **settings: Any) -> Any:
        # axe is put into the page by the test, past the policy; the policy itself is tested by test_page_files.py
        context = browser.new_context(**{"locale": "en-GB", "viewport": {"width": 1280, "height": 800}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.route("**/*", route)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
        page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
        page.goto(address + link)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not problems


def violations(page: Any) -> list[str]:
    page.evaluate(AXE.read_text(encoding="utf-8") + "; undefined")
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


def check(page: Any, view: str) -> None:
    page.wait_for_selector(f".view.{view} {VIEWS[view][1]}", timeout=20_000)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "something is clipped"
    assert violations(page) == []


@pytest.mark.parametrize("view", ["sentence", "map"])
def test_views_open_from_a_link(open_page: Any, view: str) -> None:
    check(open_page(f"#/{view}?{VIEWS[view][0]}"), view)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, PHONE])
@pytest.mark.parametrize("view", VIEWS)
def test_all_views_wide_and_narrow(open_page: Any, view: str, settings: dict[str, Any]) -> None:
    page = open_page(f"#/{view}?{VIEWS[view][0]}", **settings)
    check(page, view)
    assert page.evaluate("document.documentElement.lang") == ("zh-Hans" if settings else "en")


def test_markup_is_shown_as_text_and_the_link_follows(open_page: Any) -> None:
    page = open_page("#/sentence")
    page.fill("#text", EVIL)
    page.wait_for_selector(".word .said >> text=script")
    assert page.locator("main img").count() == page.locator("main script").count() == 0
    page.locator(".word").last.click()
    page.wait_for_function("location.hash.includes('word=')")
    assert "onerror" in page.evaluate("decodeURIComponent(location.hash)")
