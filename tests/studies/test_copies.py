"""Equal encoders of cells lie on the disk once, and every cell still has its own files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import polyseme
from polyseme.studies.copies import share_copies
from polyseme.tasks import folder
from polyseme.tasks.features import FeaturesConfig
from polyseme.tasks.tagging import Tagging, TaggingConfig
from polyseme.tasks.words import WordsConfig
from polyseme.text.labelled.conll import TaggedSentence

EXAMPLES = [TaggedSentence(["Anna", "saw", "Rome"], ["B-PER", "O", "B-LOC"])]


@pytest.fixture
def cells(tmp_path: Path) -> list[Path]:
    """Three saved tasks, two of them with the same word vectors."""
    found = []
    for number, value in enumerate((1, 1, 2), start=1):
        vectors = tmp_path / f"{number}.txt"
        vectors.write_text(f"2 3\nAnna {value} 0 0.5\nRome 0 1 0.5\n")
        config = TaggingConfig(features=FeaturesConfig(words=WordsConfig(characters=None)), hidden=4)
        task = Tagging.build(config, EXAMPLES, [polyseme.load(vectors)])
        cell = tmp_path / "cells" / "ner" / "word2vec" / str(number)
        folder.save(task, cell)
        found.append(cell)
    return found


def _weights(cell: Path) -> Path:
    return cell / "vectors" / "model.safetensors"


def test_equal_ones_are_one_file(cells: list[Path]) -> None:
    before = [_weights(cell).read_bytes() for cell in cells]
    for cell in cells:
        share_copies(cell, cells[0].parents[2])
    assert _weights(cells[0]).samefile(_weights(cells[1])) and not _weights(cells[0]).samefile(_weights(cells[2]))
    assert [_weights(cell).read_bytes() for cell in cells] == before
    for cell in cells:
        folder.load(cell)  # which compares hashes
    assert not [path for cell in cells for path in cell.rglob(".*")]


def test_what_is_written_anew_leaves_the_others(cells: list[Path]) -> None:
    share_copies(cells[1], cells[0].parents[2])
    polyseme.load(cells[2] / "vectors").save_pretrained(cells[1] / "vectors")
    assert _weights(cells[0]).read_bytes() != _weights(cells[1]).read_bytes()
    folder.load(cells[0])


def test_a_disk_without_links_keeps_copies(cells: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    share_copies(cells[1], cells[0].parents[2])
    assert not _weights(cells[0]).samefile(_weights(cells[1]))
    folder.load(cells[1])
