"""The figures of the Chinese results pages show the numbers of the pages' tables."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from scripts import draw_results

AGAIN = "run `python -m scripts.draw_results`"


@pytest.mark.parametrize("name", draw_results.LAYERS)
def test_the_layers_have_the_numbers_of_the_table(name: str) -> None:
    position, row, title = draw_results.LAYERS[name]
    table = draw_results.tables("models.md")[position]
    drawn = (draw_results.PAGES / name).read_text(encoding="utf-8")
    assert title in drawn
    for header, cell in zip(table[0][1:], table[row + 1][1:], strict=True):
        assert f"{draw_results.number(cell):.1f}" in drawn and header in drawn, AGAIN


def test_numbers_of_cells() -> None:
    assert [draw_results.number(cell) for cell in ("**96.42** ± 0.13", "1,460", "5%")] == [96.42, 1460.0, 5.0]
