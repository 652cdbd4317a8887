"""The curve of a run as a picture."""

import json
import re

import pytest

from polyseme.analysis.training_curve import plot_run

LINES = [
    {"step": 5, "kind": "train", "loss": 1.5},
    {"step": 5, "kind": "dev", "error": 0.5, "macro_f1": 0.5, "best": True},
    {"step": 10, "kind": "train", "loss": 0.5},
    {"step": 10, "kind": "dev", "error": 0.25, "macro_f1": 0.75, "best": True},
]


@pytest.fixture
def folder(tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return tmp_path


def test_loss_and_score_with_a_baseline(folder):
    path = plot_run(folder, folder / "curve.svg", score="macro_f1", baselines={"n-grams": 0.6})
    drawn = path.read_text()
    assert all(f"<!-- {text} -->" in drawn for text in ("training loss", "dev macro f1", "best: 0.7500", "n-grams: 0.6000"))


def test_each_baseline_has_dashes_of_its_own(folder):
    path = plot_run(folder, folder / "curve.svg", score="macro_f1", baselines={"n-grams": 0.6, "one answer for all": 0.3})
    dashes = re.findall(r"stroke-dasharray: ([\d., ]+)", path.read_text())
    assert len(set(dashes)) == 2 and all(dashes.count(each) == 2 for each in dashes)  # the line, and its place in the legend


def test_a_run_without_a_log(folder):
    (folder / "run" / "log.jsonl").unlink()
    assert plot_run(folder, folder / "curve.png") is None and not (folder / "curve.png").exists()
