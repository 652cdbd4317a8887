"""A full disk: the limit on the size of a file stands for it, which the system reports in the same way."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from polyseme.base.errors import PolysemeError
from polyseme.training.trainer import Trainer
from tests.training import toy
from tests.training.compare import assert_same_run


@contextlib.contextmanager
def room_for(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def fit(out: Path) -> None:
    Trainer(toy.config(), toy.RUN).fit(toy.learner(dim=48), toy.ToyBatches(), toy.dev(), out)


def files(out: Path) -> list[str]:
    return sorted(path.name for path in (out / "run").iterdir() if path.is_file())


def test_full_from_the_start(tmp_path: Path) -> None:
    with room_for(5_000), pytest.raises(PolysemeError) as told:
        fit(tmp_path)
    path = tmp_path / "run" / "checkpoint-00000000.safetensors"
    assert str(told.value).startswith(f"cannot write {path}: File too large")
    assert str(told.value).endswith("free some space, then the same command resumes the run")
    assert files(tmp_path) == ["log.jsonl"]


def test_full_on_the_way(tmp_path: Path) -> None:
    """The weights come to 80 kB; the optimizer's memory, which begins with step 1, to twice as much again."""
    fit(tmp_path / "whole")
    with room_for(120_000), pytest.raises(PolysemeError, match="the checkpoint of step 0 is kept: free some space"):
        fit(tmp_path / "cut")
    assert files(tmp_path / "cut") == ["checkpoint-00000000.json", "checkpoint-00000000.safetensors", "log.jsonl"]
    fit(tmp_path / "cut")
    assert_same_run(tmp_path / "whole", tmp_path / "cut")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # TensorBoard's own thread
def test_no_room_for_the_log(tmp_path: Path) -> None:
    config = toy.config(checkpoint_every=None, log_every=1, steps=1000, eval_every=1000)
    with room_for(50_000), pytest.raises(PolysemeError, match=r"cannot write .*log\.jsonl: File too large"):
        Trainer(config, toy.RUN).fit(toy.learner(), toy.ToyBatches(), toy.dev(), tmp_path)
    assert files(tmp_path) == ["checkpoint-00000000.json", "checkpoint-00000000.safetensors", "log.jsonl"]
