"""Less labelled data: shares and seeds of one set take their layers from one cache."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import polyseme
from tests.cli.labelled import TINY, names, write_all
from tests.oracle.make import write_bilm


def test_shares_and_seeds_take_rows_of_one_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_all(tmp_path)
    Path("train.conll").write_text(names(6) + "Zoe B-PER\nleft O\n\n" + "She O\nleft O\n\n")  # distinct sentences
    write_bilm(tmp_path / "elmo")
    options = {"dev": "dev.conll", "encoder": "elmo", **TINY}
    for number, (share, seed) in enumerate([(0.5, 1), (0.5, 2), (1.0, 1)]):
        polyseme.train("ner", "train.conll", out=f"run-{number}", train_fraction=share, seed=seed, cache="layers", **options)
        found = sorted(Path("layers").glob("layers-*"))
        assert len(found) == 2 and all((place / "states.npy").is_file() for place in found)  # of training, of dev data
    polyseme.train(
        "ner", "train.conll", out="alone", train_fraction=0.5, seed=2, **options
    )  # which computes its own share alone
    results = [json.loads(Path(run, "result.json").read_text())["scores"] for run in ("run-1", "alone")]
    assert results[0] == results[1]
    words = {place: sum(1 for _ in place.glob("run/layers-*/states.npy")) for place in (Path("alone"), Path("run-1"))}
    assert words[Path("alone")] == 2 and words[Path("run-1")] == 0
