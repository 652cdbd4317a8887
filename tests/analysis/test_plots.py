"""Pictures of tables."""

import math
import sys

import pytest

from polyseme.analysis.plots import axis, check_plot, plot
from polyseme.analysis.probe_result import ProbeResult
from polyseme.base.errors import MissingExtraError, UsageError

SCORES = {"layer 0": {"accuracy": 0.91}, "layer 1": {"accuracy": 0.953}, "mix": {"accuracy": math.nan}}
TABLE = ProbeResult("tags of 7 words", ("accuracy",), SCORES, {"most frequent": {"accuracy": 0.86}})


def test_what_a_picture_says(tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none"}):
        drawn = plot(TABLE, tmp_path / "new" / "a.svg").read_text()
    for text in (
        "layer 0",
        "0.910",
        "0.953",
        "none",
        "most frequent: 0.860",
        "accuracy (axis starts at 0.75)",
        "tags of 7 words",
    ):
        assert f">{text}<" in drawn, text
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.svg"]


def test_png(tmp_path):
    pytest.importorskip("matplotlib")
    assert plot(TABLE, tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("values", [[0.2, 0.7], [0.91, 0.95], [0.97, 0.97], [0.6, 0.62], [0.0], [-0.4, 0.3], [-0.5], [1.0], []])
def test_the_axis_holds_all_values(values):
    low, high = axis(values)
    assert low < high and all(low <= value < high for value in values)
    assert low <= 0 <= high or 0.5 < low <= min(values) - 0.01


def test_the_axis_is_cut_only_where_all_values_are_high():
    assert axis([0.2, 0.7])[0] == 0 and axis([0.55, 0.9])[0] == 0
    assert 0.75 < axis([0.91, 0.95])[0] < 0.91 and axis([-0.1, 0.3])[0] < -0.1


def test_a_picture_that_cannot_be_drawn(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match=r"allowed: \.png, \.svg, \.pdf"):
        check_plot("a.txt")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'polyseme\[plots\]'"):
        check_plot("a.png")
