"""The explorer in a real browser: every view from a link, text as text, no address but loopback, no axe violation.

Needs Playwright and a Chromium of the system (Debian: `apt-get install chromium`); skipped without them.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

AXE = Path(__file__).parent / "axe" / "axe.min.js"
TEXT = "They sat on the bank of the river ."
EVIL = "<img src=x onerror=alert(1)> <script>alert(2)</script> bank"
LINK = EVIL.replace("=", "%3D")
EVIL_VIEWS = {
    "sentence": (f"text={LINK}&word=1", ".details .panel"),
    "map": (f"word=bank&text={LINK}", ".map-place canvas"),
    "edit": (f"text={LINK}&word=1&to={LINK}", ".matrix"),
    "pair": (f"one={LINK}&two={LINK}", ".matrix"),
    "line": (f"question=score&text={LINK}", ".line-columns .big"),
    "mix": (f"text={LINK}&word=1&weights=0,0.5,1", ".panel .found"),
    "training": (f"hide={LINK}", ".chart"),
    "tasks tagging-mix": (f"task=tagging-mix&text={LINK}", ".drawn .panel"),
    "tasks classification-mean": (f"task=classification-mean&text={LINK}", ".drawn .panel"),
    "tasks pairs-esim": (f"task=pairs-esim&text={LINK}%09{LINK}", ".drawn .panel"),
    "tasks reading-no-answer": (f"task=reading-no-answer&text={LINK}%09{LINK}", ".drawn .panel"),
    "tasks roles": (f"task=roles&text=1 {LINK}", ".drawn .panel"),
    "tasks coreference": (f"task=coreference&text=Ann said she left. {LINK}", ".drawn .panel"),
}
VIEWS = {
    "sentence": (f"text={TEXT}&word=4", ".details .panel"),
    "map": ("word=bank", ".map-place canvas"),
    "edit": (f"text={TEXT}&word=4&to=mat", ".matrix"),
    "pair": (f"one={TEXT}&two=Money in the bank&layer=1", ".matrix"),
    "line": ("question=next&text=They sat", ".line-columns .found"),
    "mix": (f"text={TEXT}&word=4&weights=0,0.5,1", ".panel .found"),
    "tasks": (f"task=tagging-mix&text={TEXT}", ".drawn .panel"),
    "training": ("", ".chart"),
}


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


@pytest.mark.parametrize(
    ("link", "place"),
    [
        ("sentence?text=", ".reading"),
        ("edit?text=", ".view"),
        ("pair?two=a bank&one=", ".view"),
        ("line?question=score&text=", ".line-columns .panel"),
        ("mix?text=", ".view"),
        ("tasks?task=classification-mean&text=", ".view"),
    ],
)
def test_warnings_of_the_service_are_shown(open_page: Any, link: str, place: str) -> None:
    page = open_page(f"#/{link}這家酒店房間很乾淨，服務也很好")
    if link.startswith("line"):
        page.get_by_role("button", name="Ask it anyway").first.click()
    page.locator(f"{place} .notice", has_text="Note: the text").first.wait_for()
    assert violations(page) == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("view", VIEWS)
def test_all_views_in_both_languages_and_themes(open_page: Any, view: str, width: int) -> None:
    for language, theme in product(("en", "zh"), ("light", "dark")):
        settings = {"viewport": {"width": width, "height": 800}, "color_scheme": theme}
        page = open_page(f"#/{view}?{VIEWS[view][0]}&lang={language}", **settings)
        check(page, view)
        assert page.evaluate("document.documentElement.lang") == ("zh-Hans" if language == "zh" else "en")


def test_a_phone_shows_the_changed_word_and_whole_fields(open_page: Any) -> None:
    phone = {"viewport": {"width": 390, "height": 800}}
    page = open_page(f"#/edit?text={TEXT}&word=8&to=mat", **phone)
    page.wait_for_selector(".matrix .changed")
    page.wait_for_function("document.querySelector('.matrix .changed').getBoundingClientRect().right <= innerWidth")
    page = open_page(f"#/tasks?task=classification-mean&text={TEXT}", **phone)
    page.wait_for_selector(".drawn .panel")
    ends = "['#task', 'main textarea'].map((each) => document.querySelector(each).getBoundingClientRect().right)"
    task, text = page.evaluate(ends)
    assert task <= text


def test_markup_is_shown_as_text_and_the_link_follows(open_page: Any) -> None:
    page = open_page("#/sentence")
    page.fill("#text", EVIL)
    page.wait_for_selector(".word .said >> text=script")
    assert page.locator("main img").count() == page.locator("main script").count() == 0
    page.locator(".word").last.click()
    page.wait_for_function("location.hash.includes('word=')")
    assert "onerror" in page.evaluate("decodeURIComponent(location.hash)")


@pytest.mark.slow
@pytest.mark.parametrize("view", EVIL_VIEWS)
def test_no_view_runs_or_parses_what_it_is_given(open_page: Any, view: str) -> None:
    query, selector = EVIL_VIEWS[view]
    page = open_page(f"#/{view.split()[0]}?{query}&model={LINK}")
    page.locator(selector).first.wait_for()
    assert page.locator("main img, main script").count() == 0
    if view != "training":
        fields = page.locator("main textarea, main input[type=text]").evaluate_all("all => all.map((each) => each.value)")
        assert "onerror" in " ".join([*fields, page.locator("main").inner_text()])
