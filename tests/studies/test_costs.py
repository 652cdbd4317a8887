"""What encoders cost beside what they buy: short names of models, costs in the tables, and the picture of both."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from polyseme.pretraining.cost import Cost, write_cost
from polyseme.studies.compare import Study
from polyseme.studies.experiment import Experiment
from polyseme.studies.report import ComparisonResult
from polyseme.studies.table import FREE, cost_of
from tests.studies.calling import polyseme_call
from tests.studies.test_compare import TRAIN


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Data, three folders of models, of which two tell their cost, and experiments that are done at once."""
    folder = tmp_path / "data" / "tasks" / "ner_conll2003_en"
    folder.mkdir(parents=True)
    for name in ("eng.train", "eng.testa", "eng.testb"):
        (folder / name).write_text(TRAIN)
    monkeypatch.setenv("POLYSEME_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    for name, seconds in (("my-bert", 120.0), ("my-elmo", 60.0), ("published", None)):
        Path(name).mkdir()
        if seconds is not None:
            write_cost(Path(name), Cost(method=name, seconds=seconds, words=6000, text_words=3000, parameters=1000))
    monkeypatch.setattr("polyseme.studies.compare._start", lambda experiment, device, jobs: Done(experiment))
    return tmp_path


class Done:
    """A process that is done at once, and has written what an experiment writes."""

    def __init__(self, experiment: Experiment) -> None:
        out = Path(experiment.out)
        out.mkdir(parents=True)
        (out / "cell.json").write_text(json.dumps({"encoders": experiment.encoders, "options": experiment.options}))
        score = 0.5 + 0.01 * len(experiment.row)
        (out / "result.json").write_text(json.dumps({"main": "f1", "scores": {"test": {"f1": score}}, "seconds": 1.0}))
        np.save(out / "test-tallies.npy", np.array([[1, 2, 2], [0, 1, 1]]))

    def poll(self) -> int:
        return 0


@pytest.mark.slow
def test_rows_by_short_names_with_what_they_cost(desk: Path) -> None:
    pytest.importorskip("matplotlib")
    call = "compare --tasks ner --model bert=my-bert --model elmo=my-elmo --model other=published --seeds 1 --plot --out study"
    found = polyseme_call(*call.split(), "--encoders", "none,elmo,bert+elmo,bert:finetune,other")
    assert found.exit_code == 0, found.output
    told = Path("study/table.md").read_text()
    assert "| elmo | 60 s | 6,000 | 100 | 1,000 | cpu |" in told and "| bert+elmo | 3 min | 12,000 | 67 | 2,000 |" in told
    assert "| bert:finetune | 2 min |" in told and "| other | unknown |" in told and "| none | unknown" not in told
    rows = {row["encoders"]: row for row in csv.DictReader(Path("study/table.csv").read_text().splitlines())}
    assert float(rows["bert+elmo"]["pretraining_seconds"]) == 180 and rows["other"]["pretraining_seconds"] == ""
    assert (rows["none"]["pretraining_seconds"], rows["none"]["parameters"]) == ("0.0", "0")
    assert Path("study/cost.png").read_bytes().startswith(b"\x89PNG") and Path("study/table.png").exists()
    experiment = json.loads(Path("study/cells/ner/bert-finetune/1/cell.json").read_text())
    assert experiment["encoders"] == str(desk / "my-bert") and experiment["options"]["mode"] == "finetune"


def test_a_short_name_goes_before_a_known_one(desk: Path) -> None:
    experiments = Study(desk, ("ner",), ("elmo", "en"), (1,), models={"elmo": "my-elmo"}).experiments()
    assert [experiment.encoders for experiment in experiments] == [str(desk / "my-elmo"), "en"]


@pytest.mark.parametrize(("model", "told"), [
    ("bert", "such as bert=my-bert"), ("a+b=my-bert", "has the name 'a+b'"), ("a:b=my-bert", "has the name 'a:b'"),
    ("bert=nowhere", "nowhere does not exist"), ("none=my-bert", "has the name 'none'"),
])  # fmt: skip
def test_names_that_cannot_be(desk: Path, model: str, told: str) -> None:
    found = polyseme_call("compare", "--tasks", "ner", "--out", "study", "--model", model)
    assert found.exit_code == 2 and told in found.output and not Path("study").exists()


def test_costs_of_no_encoder_and_of_one_that_does_not_tell(desk: Path) -> None:
    assert cost_of("none") is FREE and cost_of("published+my-elmo") is None
    together = cost_of("my-elmo+my-bert")
    assert together is not None and (together.seconds, together.method) == (180.0, "my-elmo+my-bert")


def test_a_perplexity_by_words_of_a_model_of_pieces_is_shown() -> None:
    cost = Cost(method="gpt", seconds=1.0, words=10, text_words=5, parameters=3, scores={"word_perplexity": 123.456})
    assert "| 123.46 |" in ComparisonResult(Path(), [], [("gpt", cost)]).as_markdown()
