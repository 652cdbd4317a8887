"""The explorer in a real browser: a service with tiny models and tasks, Chromium, and pages that may ask this service only.

Needs Playwright and a Chromium of the system (Debian: `apt-get install chromium`); tests are skipped without them.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import polyseme
from polyseme.serve.config import ServeConfig
from polyseme.serve.models import ServedModels
from polyseme.serve.server import listen
from tests.serve.small_service import searchable, tiny_models

CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
OLD = Path(__file__).parents[1] / "old_folders"
TASKS = ("tagging-mix", "classification-mean", "pairs-esim", "reading-no-answer", "roles", "coreference")


@contextmanager
def served(models: ServedModels, **settings: Any) -> Iterator[str]:
    """The address of a service that is ready."""
    import uvicorn

    from polyseme.serve.app import create_app

    listener = listen("127.0.0.1", 0)
    app = create_app(ServeConfig(**settings), lambda: models)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started or not app.state.service.ready:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """A service with a text to search, tasks and runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(OLD)  # where the folders of tasks look for their encoders
        tasks = {name: polyseme.load_task(OLD / "tasks" / name) for name in TASKS}
    with served(ServedModels(searchable(tiny_models()).models, tasks), runs=str(OLD / "runs")) as found:
        yield found


@pytest.fixture(scope="session")
def bare_address() -> Iterator[str]:
    """A service that wants a key, and has one model and nothing else."""
    with served(ServedModels({"other": tiny_models().model("other")}), api_key="secret") as found:
        yield found


@pytest.fixture(scope="module")  # while Playwright runs, other files cannot start an event loop
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=[*QUIET, "--no-first-run"])
        yield made
        made.close()


@pytest.fixture
def open_page(browser: Any, request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Open a link of the page; at the end nothing may have asked another address, failed or opened a dialog."""
    contexts, problems = [], list[str]()

    def opened(link: str, *, at: str = "address", **settings: Any) -> Any:
        address = request.getfixturevalue(at)

        def route(each: Any) -> None:
            ours = each.request.url.startswith((address, "data:", "blob:"))
            if not ours:
                problems.append(each.request.url)
            each.continue_() if ours else each.abort()

        def told(line: Any) -> None:
            if line.type == "error" and "Failed to load resource" not in line.text:  # an answer that the page shows
                problems.append(line.text)

        # axe is put into the page by the test, past the policy; the policy itself is tested by test_page_files.py
        context = browser.new_context(**{"locale": "en-GB", "viewport": {"width": 1280, "height": 800}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.route("**/*", route)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
        page.on("console", told)
        page.goto(address + link)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not problems
