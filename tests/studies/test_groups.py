"""Sets that are told together: `coref` is OntoGUM and LitBank, each trained by itself, and the mean of both."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from polyseme.base.errors import UsageError
from polyseme.studies.compare import Study
from polyseme.studies.experiment import Experiment
from polyseme.studies.report import ComparisonResult
from polyseme.studies.table import ComparisonRow, as_csv, table


def markdown(rows: list[ComparisonRow]) -> str:
    return ComparisonResult(Path(), rows).as_markdown()


def score_counts(right: float, documents: int) -> list[list[float]]:
    """Documents whose four measures all have that share as precision and as recall."""
    return [[right * 10, 10.0, right * 10, 10.0] * 4] * documents


def done(experiment: Experiment, score: float, documents: int) -> None:
    Path(experiment.out).mkdir(parents=True)
    result = {"main": "f1", "scores": {"test": {"f1": score}}}
    Path(experiment.out, "result.json").write_text(json.dumps(result))
    np.save(Path(experiment.out, "test-tallies.npy"), np.array(score_counts(score, documents)))


SCORES = {"ontogum": {"none": (0.5, 0.6), "en": (0.7, 0.8)}, "litbank": {"none": (0.7, 0.8), "en": (0.7, 0.7)}}


@pytest.fixture
def study(tmp_path: Path) -> Study:
    made = Study(tmp_path, ("coref",), ("none", "en"), (1, 2))
    for experiment in made.experiments():
        done(experiment, SCORES[experiment.set][experiment.row][experiment.seed - 1], 3 if experiment.set == "ontogum" else 5)
    return made


def test_a_group_trains_both_sets_and_has_a_row_for_their_mean(study: Study) -> None:
    assert study.sets == ("ontogum", "litbank") and {experiment.set for experiment in study.experiments()} == {
        "ontogum",
        "litbank",
    }
    rows = table(study.experiments(), "none", study.groups)
    assert [row.set for row in rows] == ["ontogum"] * 2 + ["litbank"] * 2 + ["coref"] * 2
    base, new = rows[4:]
    assert base.scores == pytest.approx((0.6, 0.7)) and new.scores == pytest.approx((0.7, 0.75))  # seed by seed
    assert base.gain is None and new.gain is not None
    assert new.gain.difference.value == pytest.approx(0.075) and new.gain.reduction.value == pytest.approx(0.075 / 0.35)
    # documents of a set are alike here, so only runs vary: of old 0.6 or 0.7 twice, of new 0.7 or 0.75
    assert (new.gain.difference.low, new.gain.difference.high) == pytest.approx((0.0, 0.15))
    assert "coreference, mean of both sets | en | f1 | 72.50" in markdown(rows)
    assert [line["set"] for line in csv.DictReader(io.StringIO(as_csv(rows)))][-1] == "coref"


def test_the_mean_is_of_seeds_that_are_done_in_both_sets(study: Study) -> None:
    experiments = study.experiments()
    late = next(
        experiment for experiment in experiments if (experiment.set, experiment.row, experiment.seed) == ("litbank", "en", 2)
    )
    Path(late.out, "result.json").unlink()
    rows = {(row.set, row.encoders): row for row in table(experiments, "none", study.groups)}
    assert rows["coref", "en"].scores == pytest.approx((0.7,)) and len(rows["coref", "none"].scores) == 2
    assert not [row for row in table(experiments, "none") if row.set == "coref"]  # nobody asked for the mean


def test_a_group_beside_one_of_its_sets_trains_each_once() -> None:
    study = Study(Path("out"), ("litbank", "coref"), ("none",), (1,))
    assert study.sets == ("litbank", "ontogum") and len(study.experiments()) == 2
    with pytest.raises(UsageError, match=r"'coreff'.*coref"):
        Study(Path("out"), ("coreff",), ("none",)).experiments()


def test_pictures_have_the_mean(study: Study) -> None:
    pytest.importorskip("matplotlib")
    study.report("none", plot=True)
    assert (study.out / "table.png").read_bytes().startswith(b"\x89PNG")
    assert (study.out / "table.md").read_text().count("mean of both sets") == 2


@pytest.mark.slow
def test_curves_have_the_mean(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    study = Study(tmp_path, ("coref",), ("none",), (1,), train_fractions=(0.5, 1.0))
    for experiment in study.experiments():
        done(experiment, 0.3 + 0.2 * experiment.train_fraction + (0.1 if experiment.set == "litbank" else 0.0), 2)
    told = study.report(plot=True).as_markdown()
    assert "| coreference, mean of both sets | 50% | none | f1 | 45.00 |" in told and "| 100% | none | f1 | 55.00 |" in told
    assert {path.name for path in tmp_path.glob("*.png")} == {"curve-coref.png", "curve-litbank.png", "curve-ontogum.png"}


def test_a_result_prints_as_a_table(study: Study) -> None:
    result = study.report("none")
    assert result and "| coreference, mean of both sets |" in result.as_markdown()
    header, first, *_ = str(result).splitlines()
    assert header.split()[:2] == ["data", "set"] and first.startswith("OntoGUM coreference")
    assert result._repr_html_().startswith("<table>") and "<td>none</td>" in result._repr_html_()
