"""The notebooks of the course: both languages have the same code, and what is stored is what the sources say and print."""

from __future__ import annotations

import math
import re

import nbformat
import pytest
from nbformat import NotebookNode

from scripts.course import LANGUAGES, Chapter, chapters, code_cells, printed, read_source, run

MAX_BYTES = 300_000
NUMBER = re.compile(r"(?<![\w.])[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
TOLERANCE = 0.05
PRIVATE = re.compile(r"/(work|tmp|home|root|mnt)/|127\.0\.0\.1")
VARIES = "varies"
"""Tag of a cell whose output differs between machines by more than the tolerance: it must run, and is not compared."""

every_chapter = pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.name)


def stored(chapter: Chapter, language: str) -> NotebookNode:
    return nbformat.read(chapter.notebook(language), as_version=4)


def tags(cell: NotebookNode) -> list[str]:
    """The tags of a cell; its other metadata is text of its language, such as a description of a figure."""
    return list(cell.metadata.get("tags", []))


def alike(one: str, other: str) -> bool:
    """Whether two printed texts are the same but for spaces and small differences of numbers."""
    texts = [NUMBER.sub("#", text).split() for text in (one, other)]
    numbers = [[float(each.replace(",", "").replace("−", "-")) for each in NUMBER.findall(text)] for text in (one, other)]
    close = [math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE) for a, b in zip(*numbers, strict=False)]
    return texts[0] == texts[1] and len(numbers[0]) == len(numbers[1]) and all(close)


@every_chapter
def test_languages_share_their_code(chapter: Chapter) -> None:
    english, *others = [code_cells(read_source(chapter.source(language))) for language in LANGUAGES]
    for other in others:
        assert [(cell.source, tags(cell)) for cell in other] == [(cell.source, tags(cell)) for cell in english]


@every_chapter
@pytest.mark.parametrize("language", LANGUAGES)
def test_notebook_is_that_of_its_source(chapter: Chapter, language: str) -> None:
    """`python -m scripts.course` makes them the same again, with `--text` if only text changed."""
    source, notebook = read_source(chapter.source(language)), stored(chapter, language)
    assert [(cell.cell_type, cell.source) for cell in notebook.cells] == [
        (cell.cell_type, cell.source) for cell in source.cells
    ]
    english = [cell.outputs for cell in code_cells(stored(chapter, "en"))]
    assert [cell.outputs for cell in code_cells(notebook)] == english


@every_chapter
@pytest.mark.parametrize("language", LANGUAGES)
def test_notebook_is_small_and_whole(chapter: Chapter, language: str) -> None:
    path = chapter.notebook(language)
    text = path.read_text(encoding="utf-8")
    assert path.stat().st_size < MAX_BYTES and not PRIVATE.search(text)
    outputs = [output for cell in code_cells(stored(chapter, language)) for output in cell.outputs]
    assert all(output.output_type in ("stream", "display_data", "execute_result") for output in outputs)
    assert any({"image/png", "image/svg+xml"} & set(output.get("data", {})) for output in outputs), "no figure"


@every_chapter
@pytest.mark.parametrize("language", LANGUAGES)
def test_figures_are_described(chapter: Chapter, language: str) -> None:
    drawn = [
        cell
        for cell in code_cells(stored(chapter, language))
        if any("image/png" in each.get("data", {}) for each in cell.outputs)
    ]
    for cell in drawn:
        described = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        assert len(described) > 20, cell.source
        assert any("\u4e00" <= letter <= "\u9fff" for letter in described) == (language == "zh")


@every_chapter
@pytest.mark.slow
def test_chapter_prints_what_is_stored(chapter: Chapter) -> None:
    book = read_source(chapter.source("en"))
    run(book)
    for now, before in zip(code_cells(book), code_cells(stored(chapter, "en")), strict=True):
        assert [output.output_type for output in now.outputs] == [output.output_type for output in before.outputs], now.source
        if VARIES not in tags(now):
            assert alike(printed(now), printed(before)), f"{now.source}\n\nnow:\n{printed(now)}\n\nstored:\n{printed(before)}"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("loss  1.00\n", "loss 1.03", True),
        ("loss 1.00", "loss 1.20", False),
        ("1,000 words", "1,010 words", True),
        ("bank 0.5", "boat 0.5", False),
        ("bank", "bank 1", False),
        ("-3.0", "3.0", False),
    ],
)
def test_comparison_of_printed_text(one: str, other: str, same: bool) -> None:
    assert alike(one, other) is same
