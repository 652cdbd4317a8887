"""Fine-tuned rows of a comparison: an encoder and a head where the task has such a network, as published."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from polyseme.studies.compare import Study
from polyseme.studies.finetuning import LINEAR_TASKS, default_options
from polyseme.studies.sets import SETS, labelled_set
from polyseme.tasks.registry import configure_task, task_name

TUNED = {"mode": "finetune"}


@pytest.mark.parametrize("name", SETS)
def test_an_encoder_and_a_head_where_the_task_has_that(name: str) -> None:
    labelled = labelled_set(name)
    kind = task_name(labelled.task)
    assert default_options(labelled, {}, "en") == labelled.options
    tuned = {**default_options(labelled, TUNED, "en"), **TUNED}
    config, fitting = configure_task(kind, tuned)
    frozen = configure_task(kind, labelled.options)[0]
    for field in ("column", "classes", "phrases", "label", "longest"):  # what the data is
        assert getattr(config, field, None) == getattr(frozen, field, None)
    if labelled.task in LINEAR_TASKS:
        assert config.is_linear and fitting.epochs == 4 and "learning_rate" not in tuned
    else:
        assert tuned == {**labelled.options, **TUNED}


def test_several_encoders_and_other_networks_keep_the_sets_own() -> None:
    nli = labelled_set("nli")
    cases: list[tuple[dict[str, Any], str]] = [(TUNED, "a+b"), (TUNED, "none"), ({**TUNED, "network": "esim"}, "en")]
    for given, encoders in cases:
        assert default_options(nli, given, encoders) == nli.options
    assert default_options(nli, {**TUNED, "network": "linear"}, "en")["network"] == "linear"
    resume = dataclasses.replace(labelled_set("resume"), options={"word_features": True})  # which frozen encoders alone have
    assert default_options(resume, {**TUNED, "network_layers": 2}, "zh")["word_features"] is False


def test_a_comparison_with_fine_tuned_rows_of_every_set_can_be() -> None:
    vectors = {"en": "v.txt", "zh": "v.txt"}
    rows = ("none", "word2vec", "word2vec+elmo", "elmo:finetune", "word2vec+elmo:finetune")
    Study(Path("out"), tuple(SETS), rows, vectors=vectors).check()
    Study(
        Path("out"), tuple(SETS), rows, vectors=vectors, options={"finetune:epochs": 2, "finetune:encoder_lr_multiplier": 1.0}
    ).check()
