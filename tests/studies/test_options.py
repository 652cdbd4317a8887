"""Options of a comparison: for all experiments or some; mistakes are reported before training."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from polyseme.base.errors import UsageError
from polyseme.studies.compare import Study
from polyseme.studies.config import parse_option
from polyseme.studies.options import options_for
from polyseme.tasks.registry import configure_task, task_name
from tests.studies.calling import polyseme_call


def options_of(study: Study) -> dict[tuple[str, str], dict[str, Any]]:
    return {(experiment.set, experiment.row): {**experiment.options} for experiment in study.experiments()}


def test_lists_are_taken_with_commas_or_as_one_value() -> None:
    kind = task_name("pairs")
    for given, meant in [("input", ("input",)), ("input,output", ("input", "output")), ("input, output", ("input", "output")),
                         (["output"], ("output",)), (("input",), ("input",))]:  # fmt: skip
        assert configure_task(kind, {"positions": given})[0].features.positions == meant
    with pytest.raises(UsageError, match="allowed: input, between, output"):
        configure_task(kind, {"positions": "inputt"})
    study = Study(Path("out"), ("ner",), ("none",), (1,), options=dict([parse_option("positions=input,output")]))
    assert study.experiments()[0].options["positions"] == ["input", "output"]


def test_options_for_one_set_one_row_and_fine_tuned_rows() -> None:
    given = dict(
        map(parse_option, ["epochs=5", "ner:epochs=15", "finetune:batch_size=8", "ner:finetune:epochs=3", "en:hidden_size=7"])
    )
    study = Study(Path("out"), ("ner", "coref"), ("none", "en", "en:finetune"), (1,), options=given)
    found = options_of(study)
    assert found["ner", "none"] == {"epochs": 15, "train_fraction": 1.0}
    assert found["ner", "en"] == {"epochs": 15, "hidden_size": 7, "train_fraction": 1.0}
    assert found["ner", "en:finetune"] == {
        "mode": "finetune",
        "epochs": 3,
        "batch_size": 8,
        "hidden_size": 7,
        "train_fraction": 1.0,
    }
    assert found["litbank", "none"]["epochs"] == 5 and found["ontogum", "en:finetune"]["batch_size"] == 8
    whole = Study(Path("out"), ("ner", "coref"), ("none",), (1,), options={"coref:epochs": 2, "litbank:hidden_size": 3})
    assert [experiment.options.get("epochs") for experiment in whole.experiments()] == [None, 2, 2]
    assert [experiment.options.get("hidden_size") for experiment in whole.experiments()] == [None, None, 3]
    apart = Study(Path("out"), ("ner",), ("en", "en:finetune"), (1,), options={"frozen:hidden_size": 3})
    assert [experiment.options.get("hidden_size") for experiment in apart.experiments()] == [3, None]
    assert options_for({"a:b:x": 1, "a:x": 2, "x": 3}, {"a", "b"}) == {"x": 1}


def test_fine_tuned_rows_have_folders_of_their_own() -> None:
    experiments = Study(Path("out"), ("ner",), ("en", "en:finetune"), (1,)).experiments()
    assert len({experiment.out for experiment in experiments}) == 2 and [experiment.encoders for experiment in experiments] == [
        "en",
        "en",
    ]
    assert not any(":" in experiment.out for experiment in experiments)


@pytest.mark.parametrize(("options", "told"), [
    (["hiden=3"], r"no option 'hiden' for ner, nli \(did you mean 'hidden_size'\?\)"),
    (["hidden_size=many"], "^polyseme: ner, nli: --hidden-size is 'many'; expected a whole number$"),
    (["positions=inputt"], "'inputt'; allowed: input, between, output$"),
    (["column=3"], "no option 'column' for nli; for a data set that has it: ner:column=VALUE"),
    (["encoder_lr_multiplier=0.5"], r"frozen.*fine-tuned rows only: finetune:encoder_lr_multiplier=VALUE"),
    (["word_dim=5"], r"nli: .*omit --word-dim.*for frozen rows only: frozen:NAME=VALUE"),
    (["nerr:epochs=3"], r"no 'nerr' in this comparison \(did you mean 'ner'\?\)"),
    (["ner:hiden=3"], "no option 'hiden' for ner "),
    (["hiden=3", "epochs=x"], "'hiden' for ner, nli.*; ner, nli: --epochs is 'x'; expected a whole number or none$"),
    ([":epochs=3"], "such as epochs=5 or ner:epochs=5"),
])  # fmt: skip
def test_wrong_options_are_told_before_anything_is_trained(tmp_path: Path, options: list[str], told: str) -> None:
    call = ["compare", "--tasks", "ner,nli", "--encoders", "none,en:finetune", "--out", str(tmp_path / "study")]
    for option in options:
        call += ["--option", option]
    found = polyseme_call(*call)
    assert found.exit_code == 2 and re.search(told, found.output)
    assert not (tmp_path / "study").exists()


def test_an_option_of_one_set_alone_is_right_there(tmp_path: Path) -> None:
    Study(tmp_path, ("ner", "nli"), ("none",), options={"ner:column": 3, "nli:goal": "classes"}).check()
