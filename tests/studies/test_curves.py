"""Less labelled data: shares and seeds of one set take their layers from one cache."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

import polyseme
from polyseme.encoders.layer_cache import cache_size
from polyseme.tasks import run_summary
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
    assert not list(Path("alone").glob("run/layers-*")), "layers that no other run shares are removed at the end"
    assert not list(Path("run-1").glob("run/layers-*"))


def test_a_run_says_how_much_room_its_layers_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    write_all(tmp_path)
    write_bilm(tmp_path / "elmo")
    monkeypatch.setattr(run_summary, "_LARGE", 1)
    with caplog.at_level(logging.INFO):
        polyseme.train("ner", "train.conll", out="run", dev="dev.conll", encoder="elmo", **TINY)
    assert "\ndisk      about 0.0 GB for frozen layers while it trains\n" in caplog.text
    assert cache_size(1000, polyseme.load("elmo")) == 1000 * 3 * polyseme.load("elmo").dim * 2
