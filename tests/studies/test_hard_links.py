"""Equal encoders of experiments lie on the disk once, and every experiment still has its own files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import polyseme
from polyseme.studies.hard_links import link_duplicates
from polyseme.tasks import folder
from polyseme.tasks.config import FeaturesConfig, TaskWordConfig
from polyseme.tasks.tagging import Tagging
from polyseme.tasks.tagging_config import TaggingConfig
from polyseme.text.labelled.conll import TaggedSentence

EXAMPLES = [TaggedSentence(["Anna", "saw", "Rome"], ["B-PER", "O", "B-LOC"])]


@pytest.fixture
def experiments(tmp_path: Path) -> list[Path]:
    """Three saved tasks, two of them with the same word vectors."""
    found = []
    for number, value in enumerate((1, 1, 2), start=1):
        vectors = tmp_path / f"{number}.txt"
        vectors.write_text(f"2 3\nAnna {value} 0 0.5\nRome 0 1 0.5\n")
        config = TaggingConfig(features=FeaturesConfig(words=TaskWordConfig(characters=None)), hidden_size=4)
        task = Tagging.build(config, EXAMPLES, [polyseme.load(vectors)])
        experiment = tmp_path / "cells" / "ner" / "word2vec" / str(number)
        task.save(experiment)
        found.append(experiment)
    return found


def _weights(experiment: Path) -> Path:
    return experiment / "vectors" / "model.safetensors"


def test_equal_ones_are_one_file(experiments: list[Path]) -> None:
    before = [_weights(experiment).read_bytes() for experiment in experiments]
    for experiment in experiments:
        link_duplicates(experiment, experiments[0].parents[2])
    assert _weights(experiments[0]).samefile(_weights(experiments[1])) and not _weights(experiments[0]).samefile(
        _weights(experiments[2])
    )
    assert [_weights(experiment).read_bytes() for experiment in experiments] == before
    for experiment in experiments:
        folder.load(experiment)  # which compares hashes
    assert not [path for experiment in experiments for path in experiment.rglob(".*")]


def test_what_is_written_anew_leaves_the_others(experiments: list[Path]) -> None:
    link_duplicates(experiments[1], experiments[0].parents[2])
    polyseme.load(experiments[2] / "vectors").save_pretrained(experiments[1] / "vectors")
    assert _weights(experiments[0]).read_bytes() != _weights(experiments[1]).read_bytes()
    folder.load(experiments[0])


def test_a_disk_without_links_keeps_copies(experiments: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    link_duplicates(experiments[1], experiments[0].parents[2])
    assert not _weights(experiments[0]).samefile(_weights(experiments[1]))
    folder.load(experiments[1])
