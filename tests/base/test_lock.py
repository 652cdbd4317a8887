"""Two runs in one folder: the second is told, and a killed one holds nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from polyseme.base import lock
from polyseme.base.errors import PolysemeError
from polyseme.base.lock import LOCK, lock_run_folder
from polyseme.training.trainer import Trainer
from tests.training import toy

HOLD = "import sys, pathlib, time\nfrom polyseme.base.lock import lock_run_folder\n"
HOLD += "with lock_run_folder(pathlib.Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)\n"


def fit(out: Path) -> None:
    Trainer(toy.config(), toy.RUN).fit(toy.learner(), toy.ToyBatches(), toy.dev(), out)


def test_the_second_of_two_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    first = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path / "run")], stdout=subprocess.PIPE)
    assert first.stdout is not None and first.stdout.readline() == b"held\n"
    try:
        with pytest.raises(PolysemeError, match=r"another process trains in .*: wait until it is done"):
            fit(tmp_path)
        assert not (tmp_path / "model.safetensors").exists()
    finally:
        first.kill()
        first.wait()
    assert (tmp_path / "run" / LOCK).exists()  # what a kill leaves, and nobody holds
    fit(tmp_path)
    assert (tmp_path / "model.safetensors").exists() and not (tmp_path / "run" / LOCK).exists()


def test_it_is_let_go_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="inside"), lock_run_folder(tmp_path):
        raise RuntimeError("inside")
    with lock_run_folder(tmp_path):
        pass


def test_where_there_are_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "fcntl", None)
    with lock_run_folder(tmp_path), lock_run_folder(tmp_path):
        assert not (tmp_path / LOCK).exists()
