"""Pictures of a comparison: nothing is left out, covered, or drawn like another."""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from polyseme.pretraining.cost import Cost
from polyseme.studies import plots
from polyseme.studies.plots import COLOURS, plot_costs, plot_learning_curve, plot_scores
from polyseme.studies.table import ComparisonRow

SETS = {"ner": 0.6, "sst5": 0.3, "nli": 0.5, "pos": 0.82}
METHODS = ["none", "ngram", "nnlm", "word2vec", "fasttext", "glove", "taglm", "elmo", "ulmfit", "gpt", "bert"]
MANY = [*METHODS, "ulmfit:finetune", "gpt:finetune", "bert:finetune"]
SECONDS = {"none": 0.0, "ngram": 0.018, "word2vec": 3.0, "fasttext": 4.5, "glove": 3.0}  # the others 90


def rows(encoders: list[str], sets: list[str]) -> list[ComparisonRow]:
    """Made-up scores of two seeds."""
    found = []
    for name in sets:
        for number, row in enumerate(encoders):
            cost = Cost(method=row, seconds=SECONDS.get(row, 90.0), words=1, text_words=1, parameters=1)
            first = SETS[name] + 0.01 * number
            found.append(ComparisonRow(name, 1.0, row, "f1", (first, first + 0.01), None, cost))
    return found


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Those that are drawn."""
    drawn: list[Any] = []

    def make(**options: Any) -> Any:
        drawn.append(Figure(**options))
        return drawn[-1]

    monkeypatch.setattr(plots, "figure_type", lambda: make)
    return drawn


def points(panel: Any) -> dict[str, tuple[float, Any]]:
    """Where each point of a panel is across, and its marker."""
    return {each.get_label(): (float(each.lines[0].get_xdata()[0]), each.lines[0]) for each in panel.containers}


def names_below(figure: Any) -> list[str]:
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


# ---- bars


def test_few_bars_are_in_one_panel(figures: list[Any], tmp_path: Path) -> None:
    plot_scores(rows(["none", "word2vec", "word2vec+elmo"], ["ner", "nli"]), tmp_path / "table.png")
    (figure,) = figures
    assert figure.get_size_inches().tolist() == pytest.approx([5.3, 4.2]) and len(figure.axes) == 1
    assert [to_hex(each[0].get_facecolor()) for each in figure.axes[0].containers[1::2]] == list(COLOURS[:3])
    assert not any(bar.get_hatch() for bar in figure.axes[0].patches)


@pytest.mark.slow
def test_many_bars_are_in_panels_below_each_other(figures: list[Any], tmp_path: Path) -> None:
    plot_scores(rows(MANY, list(SETS)), tmp_path / "table.png")
    (figure,) = figures
    assert figure.get_size_inches()[0] < 12 and [len(panel.patches) for panel in figure.axes] == [14] * 4
    assert [panel.get_xticklabels()[0].get_text() for panel in figure.axes] == [f"{name}\nf1" for name in SETS]
    assert names_below(figure) == MANY  # each once
    figure.draw_without_rendering()
    for panel in figure.axes:  # what is said of an axis fits beside it, and the numbers above bars do not touch
        side = panel.yaxis.label.get_window_extent()
        assert figure.bbox.y0 <= side.y0 and side.y1 <= figure.bbox.y1 and side.height <= panel.bbox.height * 1.1
        said = [text.get_window_extent() for text in panel.texts]
        assert all(one.x1 <= two.x0 for one, two in itertools.pairwise(said))


@pytest.mark.slow
def test_panels_have_about_as_many_sets_and_bars_of_one_width(figures: list[Any], tmp_path: Path) -> None:
    plot_scores(rows(MANY[:7], [*SETS][:3]), tmp_path / "table.png")  # of which all fit
    plot_scores(rows(MANY[:10], [*SETS][:3]), tmp_path / "table.png")  # two fit
    assert [len(figure.axes) for figure in figures] == [1, 2]
    assert [len(panel.patches) for panel in figures[1].axes] == [20, 10]
    figures[1].draw_without_rendering()
    wide = {round(panel.patches[0].get_window_extent().width, 3) for panel in figures[1].axes}
    assert len(wide) == 1


@pytest.mark.slow
def test_a_fine_tuned_row_has_the_colour_of_its_method(figures: list[Any], tmp_path: Path) -> None:
    given = rows(MANY, ["ner"])
    plot_scores(given, tmp_path / "table.png")
    plot_costs(given, tmp_path / "cost.png")
    plot_learning_curve([row for row in given if row.encoders.startswith("bert")], tmp_path / "curve.png")
    drawn = {each.get_label(): each[0] for each in figures[0].axes[0].containers if hasattr(each, "patches")}
    colours = {name: to_hex(bar.get_facecolor()) for name, bar in drawn.items()}
    assert len(set(colours.values())) == 11 and colours["bert:finetune"] == colours["bert"] == COLOURS[10]
    assert [name for name, bar in drawn.items() if bar.get_hatch()] == MANY[11:]
    marks = {name: mark for name, (_, mark) in points(figures[1].axes[0]).items()}
    assert all(to_hex(mark.get_color()) == colours[name] for name, mark in marks.items())
    assert [name for name, mark in marks.items() if mark.get_markerfacecolor() == "white"] == MANY[11:]
    one, two = (each.lines[0] for each in figures[2].axes[0].containers)
    assert (one.get_color(), one.get_linestyle()) == (two.get_color(), "-") and two.get_linestyle() == "--"


def test_a_single_seed_has_no_error_bar(figures: list[Any], tmp_path: Path) -> None:
    one = [dataclasses.replace(row, scores=row.scores[:1]) for row in rows(["none", "word2vec"], ["ner"])]
    plot_scores(one, tmp_path / "table.png")
    plot_learning_curve(one, tmp_path / "curve.png")
    plot_costs(one, tmp_path / "cost.png")
    (panel,) = figures[0].axes
    assert [text.get_text() for text in panel.texts] == ["60.0", "61.0"] and panel.get_ylim()[1] > 61
    assert [text.xy[1] for text in panel.texts] == pytest.approx([60, 61])  # at the top of its bar


# ---- costs


@pytest.mark.slow
def test_every_row_is_inside_the_panel(figures: list[Any], tmp_path: Path) -> None:
    plot_costs(rows(MANY, list(SETS)), tmp_path / "cost.png")
    for panel in figures[0].axes:
        low, high = panel.get_xlim()
        places = points(panel)
        assert len(places) == 13 and all(low < place < high for place, _ in places.values())
        assert places["ngram"][0] == pytest.approx(0.018) and panel.get_xticklabels()[0].get_text() == "0.01 s"


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [60.0, 600.0])
def test_points_at_the_edge_are_inside_too(figures: list[Any], tmp_path: Path, seconds: float) -> None:
    cost = Cost(method="x", seconds=seconds, words=1, text_words=1, parameters=1)
    plot_costs([ComparisonRow("ner", 1.0, f"m{n}", "f1", (0.5,), None, cost) for n in range(40)], tmp_path / "cost.png")
    (panel,) = figures[0].axes
    low, high = panel.get_xlim()
    assert all(low < place < high for place, _ in points(panel).values())


def test_equal_times_are_side_by_side_in_the_order_of_rows(figures: list[Any], tmp_path: Path) -> None:
    plot_costs(rows(MANY, ["ner"]), tmp_path / "cost.png")
    (panel,) = figures[0].axes
    places = {name: place for name, (place, _) in points(panel).items()}
    equal = [places[name] for name in MANY if SECONDS.get(name, 90.0) == 90.0]
    steps = np.diff(np.log(equal)) / np.diff(np.log(panel.get_xlim()))
    assert len(equal) == 9 and steps == pytest.approx(0.012, rel=1e-6)  # of the axis
    assert np.exp(np.log(equal).mean()) == pytest.approx(90.0)
    assert places["word2vec"] < 3.0 < places["glove"] < places["fasttext"] == pytest.approx(4.5)
    assert panel.get_xlabel() == "pre-training (about equal times side by side)"


def test_times_apart_stay_where_they_are(figures: list[Any], tmp_path: Path) -> None:
    plot_costs(rows(["none", "ngram", "word2vec", "bert"], ["ner"]), tmp_path / "cost.png")
    (panel,) = figures[0].axes
    assert [place for place, _ in points(panel).values()] == pytest.approx([0.018, 3.0, 90.0])
    assert panel.get_xlabel() == "pre-training"


def test_what_a_group_reaches_joins_it_in_the_order_of_times() -> None:
    gap = math.log(1.1)
    found = plots._dodge([110.0, 100.0, 100.5, 100.0, 99.5, 1000.0], gap)
    assert found[5] == pytest.approx(1000.0) and [found.index(place) for place in sorted(found)] == [0, 1, 2, 3, 4, 5]
    apart = plots._dodge([120.0, 100.0, 100.0, 100.0, 100.0], gap)  # too late to be about equal
    assert [apart.index(place) for place in sorted(apart)] == [1, 2, 3, 4, 0]
    assert min(np.diff(np.log(sorted(apart)))) == pytest.approx(gap)


def test_a_set_whose_rows_took_no_time(figures: list[Any], tmp_path: Path) -> None:
    given = rows(["none", "bert"], ["ner", "nli"])
    plot_costs(given[:-1], tmp_path / "cost.png")  # of which a set has no point yet
    assert [len(panel.containers) for panel in figures[0].axes] == [1, 0]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        ([0.018, 3.0], ["0.01 s", "0.1 s", "1.0 s", "10 s"]),
        ([0.5], ["0.1 s", "1.0 s"]),
        ([12.0, 90.0], ["10 s", "60 s", "10 min"]),
        ([2.0, 80000.0], ["1.0 s", "10 s", "60 s", "10 min", "60 min", "24 h"]),  # 10 h would lie on the last
    ],
)
def test_marks_of_an_axis(seconds: list[float], said: list[str]) -> None:
    found = plots._ticks(seconds)
    assert list(found.values()) == said and min(found) <= min(seconds) and max(found) >= max(seconds)
