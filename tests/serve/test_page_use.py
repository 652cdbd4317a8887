"""The explorer as people use it: lasso, dropped files, export, keyboard, touch, links, what is empty and what fails."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.slow
TEXT = "They sat on the bank of the river ."
OWN = "The bank of the river. Money in the bank. A bank account."
BOARD = f"#/map?word=bank&text={OWN}"
DROP = """(text) => {
  const data = new DataTransfer();
  data.items.add(new File([text], "mine.txt", {type: "text/plain"}));
  return data;
}"""
PICTURES = {
    "sentence": (f"text={TEXT}&word=4", ".view:has(.details .found) .reading", 9),
    "map": (f"word=bank&text={OWN}", ".map-place", 4),
    "edit": (f"text={TEXT}&word=4&to=mat", ".view", 10),
    "pair": (f"one={TEXT}&two=Money in the bank", ".view", 109),
    "line": ("question=next&text=They sat", ".view:has(.found)", 11),
    "mix": (f"text={TEXT}&word=4&weights=0,0.5,1", ".view:has(canvas):has(.found)", 9),
    "tasks": ("task=tagging-mix&text=Ann lives in Paris .", ".view", 2),
    "training": ("", ".view", 2),
}


def corners(page: Any) -> tuple[float, float, float, float]:
    box = page.locator("canvas.cloud").bounding_box()
    return box["x"] + 4, box["y"] + 60, box["x"] + box["width"] - 4, box["y"] + box["height"] - 4


def circle(page: Any) -> None:
    """Draw a lasso around all points."""
    left, top, right, bottom = corners(page)
    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom), (left, top)):
        page.mouse.move(x, y, steps=4)
    page.mouse.up()


def test_lasso_and_groups_list_sentences(open_page: Any) -> None:
    page = open_page(BOARD)
    page.get_by_role("button", name="Lasso").click()
    circle(page)
    page.locator(".uses h2", has_text="3").wait_for()
    assert "account" in page.locator(".uses").inner_text() and page.locator(".uses li").count() == 3
    page.locator("canvas.cloud").focus()
    page.keyboard.press("Escape")
    page.locator(".uses .help").wait_for()
    page.locator(".group").first.click()
    assert page.locator(".uses li").count() == 3
    page.locator("#layer").fill("0")
    assert "layer=0" in page.url and "Layer 0" in page.locator(".slider output").inner_text()


def test_a_dropped_file_is_mapped(open_page: Any) -> None:
    page = open_page("#/map")
    page.locator(".map-place .notice", has_text="Type a word").wait_for()  # no word of this small text has several uses
    others = " ".join(f"A boat came on day {number}." for number in range(12))
    given = f"The old seal sat. A seal on the letter. The seal swam. He broke the seal. {others}"
    data = page.evaluate_handle(DROP, given)
    page.dispatch_event(".map-place", "drop", {"dataTransfer": data})
    page.locator(".chips .help", has_text="Your own text: 16 sentences").wait_for()
    page.locator(".chip", has_text="seal").click()
    page.locator("aside h2", has_text="seal").wait_for()
    assert page.locator("#own").input_value() == given and "swam" in page.url
    page.get_by_role("button", name="Back to the service").click()
    page.locator(".chips .help", has_text="The searched text").wait_for()


@pytest.mark.parametrize("view", PICTURES)
def test_export(open_page: Any, view: str, tmp_path: Path) -> None:
    query, place, rows = PICTURES[view]
    page = open_page(f"#/{view}?{query}", accept_downloads=True)
    bar = page.locator(f"{place} .export").first
    bar.wait_for()
    page.wait_for_timeout(400)
    found = {}
    for kind in ("SVG", "PNG", "CSV"):
        with page.expect_download() as download:
            bar.get_by_role("button", name=kind).click()
        found[kind] = Path(download.value.path()).read_bytes()
        assert download.value.suggested_filename.endswith(kind.lower())
    picture = ElementTree.fromstring(found["SVG"])
    assert picture.tag == "{http://www.w3.org/2000/svg}svg" and len(list(picture.iter())) >= 4
    assert found["PNG"].startswith(b"\x89PNG") and len(found["PNG"]) > 1000
    table = list(csv.reader(io.StringIO(found["CSV"].decode("utf-8-sig"))))
    assert len(table) >= rows and len({len(row) for row in table}) == 1
    assert bar.get_by_role("button", name="Copy link").is_visible()


def test_keyboard(open_page: Any) -> None:
    page = open_page(f"#/sentence?text={TEXT}")
    page.locator(".word").first.wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    page.locator("button.word").first.focus()
    for key in ("ArrowRight", "ArrowRight", "End", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    page.locator(".details .panel").first.wait_for()
    assert "word=7" in page.url
    page.goto(page.url.split("#")[0] + BOARD)
    page.locator("canvas.cloud").focus()
    page.keyboard.press("ArrowRight")
    assert "river" in page.locator(".said-sentence").inner_text()
    before = page.locator("canvas.cloud").screenshot()
    page.keyboard.press("+")
    page.wait_for_timeout(100)
    assert page.locator("canvas.cloud").screenshot() != before
    page.keyboard.press("0")
    page.wait_for_timeout(100)
    assert page.locator("canvas.cloud").screenshot() == before


def test_the_keyboard_goes_on_where_it_was(open_page: Any) -> None:
    page = open_page(f"#/sentence?text={TEXT}&lang=zh")
    page.locator(".view.sentence .word").first.wait_for()
    page.locator("nav a").nth(3).focus()
    page.keyboard.press("Enter")
    page.locator(".view.pair .matrix").wait_for()
    assert page.evaluate("document.activeElement === document.querySelector('nav a[aria-current]')")
    assert page.evaluate("document.documentElement.lang") == "zh-Hans"  # the language of the link
    for button in (".language", ".theme"):
        page.locator(button).focus()
        page.keyboard.press("Enter")
        assert page.evaluate(f"document.activeElement.matches('{button}')")
    assert page.evaluate("document.documentElement.lang") == "en"
    page.goto(page.url.split("#")[0] + "#/training")
    page.locator(".runs input").nth(1).focus()
    page.keyboard.press("Space")
    page.locator(".runs input:not(:checked)").wait_for()
    assert page.evaluate("document.activeElement === document.querySelectorAll('.runs input')[1]")


def test_touch_and_narrow(open_page: Any) -> None:
    page = open_page(f"#/sentence?text={TEXT}", viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    page.locator("button.word").nth(4).tap()
    page.locator(".details .panel").first.wait_for()
    page.locator("select.menu").select_option("map")
    page.fill("#word", "bank")
    page.get_by_role("button", name="Show").tap()
    page.locator("canvas.cloud").wait_for()
    page.locator("canvas.cloud").scroll_into_view_if_needed()
    page.get_by_role("button", name="All", exact=True).tap()
    page.get_by_role("button", name="Walk the layers").tap()
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    small = "[...document.querySelectorAll('button, select')].filter((each) => each.getBoundingClientRect().height < 32).length"
    assert page.evaluate(small) == 0


@pytest.mark.parametrize("view", ["sentence", "map", "edit", "pair", "mix", "line"])
def test_a_link_restores_what_was_seen(open_page: Any, view: str) -> None:
    query, place, _ = PICTURES[view]
    page = open_page(f"#/{view}?{query}")
    page.locator(f"{place} .export").first.wait_for()
    page.wait_for_timeout(400)
    again = open_page(page.url[page.url.index("#") :])
    again.locator(f"{place} .export").first.wait_for()
    again.wait_for_timeout(400)
    assert again.locator("main").inner_text() == page.locator("main").inner_text() and again.url == page.url


@pytest.mark.parametrize("view", ["sentence", "edit", "mix"])
def test_the_first_example_has_its_word_chosen(open_page: Any, view: str) -> None:
    open_page(f"#/{view}").locator(".word[aria-pressed=true]", has_text="bank").wait_for()


def test_the_first_map_is_of_a_word_whose_senses_are_clear(open_page: Any) -> None:
    asked = "import('/page/examples.js').then(({mappedWord}) => mappedWord({language: %s}, [{word: 'a'}, {word: 'bank'}]))"
    page = open_page("#/sentence")
    assert page.evaluate(asked % "'en'") == "bank" and page.evaluate(asked % "'zh'") == page.evaluate(asked % "null") == "a"


def test_every_scheme_of_tags_is_drawn_as_spans(open_page: Any) -> None:
    page = open_page("#/sentence")
    spans = "(tags) => import('/page/views/predictions.js').then((module) => module.spans(tags))"
    whole = [{"begin": 1, "end": 4, "label": "PER"}, {"begin": 4, "end": 5, "label": "LOC"}]
    for scheme in ("BIIB", "BIES", "BMES", "BMEW", "BILU"):
        tags = [f"{sign}-{'LOC' if at == 3 else 'PER'}" for at, sign in enumerate(scheme)]
        assert page.evaluate(spans, ["O", *tags, "O"]) == whole, scheme
    assert [each["label"] for each in page.evaluate(spans, ["NOUN", "VERB"])] == ["NOUN", "VERB"]


def test_an_unknown_view_can_be_left_by_the_menu(open_page: Any) -> None:
    page = open_page("#/nothing", viewport={"width": 390, "height": 800})
    page.locator("select.menu").select_option("sentence")
    page.locator(".view.sentence .word").first.wait_for()


def test_tasks_have_fields_of_their_own(open_page: Any) -> None:
    page = open_page("#/tasks?task=pairs-esim")
    page.fill("#first", "a good\nday")
    page.fill("#second", "a bad day")
    page.locator(".drawn", has_text="a good day / a bad day").wait_for()
    page.select_option("#task", "roles")
    page.locator(".notice", has_text="Type a text").wait_for()
    page.locator(".chip", has_text="boat").click()  # the example
    page.locator("button.word", has_text="boat").click()
    page.locator(".drawn h3", has_text="boat").wait_for()
    page.select_option("#task", "coreference")
    page.fill("#text", "")
    page.locator(".notice", has_text="Type a text").wait_for()


def test_a_tagger_has_an_example_that_it_finds_something_in(open_page: Any) -> None:
    page = open_page("#/tasks?task=tagging-mix")
    page.locator(".chip", has_text="Ann Miller").wait_for()
    task = "{kind: 'tagging', language: 'en', labels}"
    shown = f"(labels) => import('/page/views/taskinput.js').then((module) => module.example({task}))"
    fits = ("O B-PERSON I-PERSON", "O I-LOC", "O S-org", "O B-PER.NAM", "ADJ NOUN", "NN VBD", "n v", "O B-NP I-NP", "B M E S")
    for labels in (*fits, "O B-PRODUCT I-PRODUCT B-PART", "O PERIOD COMMA", "O B I", "O B-LOCK"):
        assert bool(page.evaluate(shown, labels.split())) == (labels in fits), labels
    own = {"object": "list", "data": [{"id": "tiny", "kind": "elmo", "endpoints": [], "layers": 1, "language": "en"}]}
    page.route(
        "**/v1/models",
        lambda route: route.fulfill(
            json={
                **own,
                "tasks": [
                    {
                        "id": "parts",
                        "kind": "tagging",
                        "language": "en",
                        "labels": ["O", "B-PART", "I-PART"],
                        "layer_weights": {},
                    }
                ],
            }
        ),
    )
    page.goto(page.url.split("#")[0] + "#/tasks")
    page.reload()
    page.locator(".notice", has_text="Type a text").wait_for()
    assert page.locator("#text").input_value() == "" and page.locator(".view .chip").count() == 0


@pytest.mark.parametrize(
    ("link", "says"),
    [
        ("#/sentence?text=%20", "Type a sentence"),
        ("#/sentence?text=a cat&word=99", "Choose a word"),
        ("#/sentence?model=none", "No model called “none”"),
        ("#/map?word=zebra", "has no use of “zebra”"),
        ("#/edit?text=a cat&word=1", "Type another word"),
        ("#/pair?one=%20", "Write two sentences"),
        ("#/line?question=gap&text=no gap", "in [brackets]"),
        ("#/mix?weights=0,0,0", "All weights are 0"),
        ("#/nothing", "There is no view of this name"),
    ],
)
def test_what_is_empty_or_wrong_says_what_to_do(open_page: Any, link: str, says: str) -> None:
    open_page(link).locator("main", has_text=says).wait_for()


@pytest.mark.parametrize(
    ("link", "place"),
    [
        ("map?word=bank&layer=abc&groups=99&text=" + OWN, "aside h2"),
        ("pair?layer=abc", ".matrix"),
        ("mix?weights=NaN,1,2&scale=abc&word=1e9", ".panel .found"),
        ("sentence?word=1e9&lang=constructor", ".words"),
        ("line?question=__proto__", ".line-columns .found"),
    ],
)
def test_a_link_with_nonsense_opens_the_view(open_page: Any, link: str, place: str) -> None:
    page = open_page(f"#/{link}")
    page.locator(place).first.wait_for()
    assert page.locator(".notice.wrong").count() == 0


def test_a_service_that_goes_away_can_be_asked_again(open_page: Any) -> None:
    page = open_page(f"#/pair?one={TEXT}&two=A cat")
    page.locator(".matrix").wait_for()
    page.route("**/v1/words", lambda route: route.abort())
    page.fill("#two", "A mat")
    page.locator(".notice.wrong", has_text="does not answer").wait_for()
    page.unroute("**/v1/words")
    page.get_by_role("button", name="Try again").click()
    page.locator(".matrix", has_text="mat").wait_for()


def test_a_key_is_asked_for_and_empty_views_say_how_to_fill_them(open_page: Any) -> None:
    page = open_page("#/tasks", at="bare_address")
    page.fill("#key", "wrong")
    page.keyboard.press("Enter")
    page.fill("#key", "secret")
    page.keyboard.press("Enter")
    page.locator(".notice", has_text="--task FOLDER").wait_for()
    empty = {"training": "--runs FOLDER", "mix": "--corpus", "map": "--corpus", "line": "gives no probabilities"}
    for view, says in empty.items():
        page.goto(page.url.split("#")[0] + f"#/{view}?question=score")
        page.locator("main", has_text=says).wait_for()
    page.goto(page.url.split("#")[0] + "#/sentence?text=a cat&word=0")
    page.locator(".details", has_text="--corpus").wait_for()
    assert "cannot say what is surprising" in page.locator(".reading").inner_text()
