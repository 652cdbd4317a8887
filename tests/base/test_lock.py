"""Locks: the second process is refused or waits, a killed one holds nothing."""

from __future__ import annotations

import errno
import subprocess
import sys
import time
from pathlib import Path

import filelock
import pytest

from polyseme.base.errors import PolysemeError
from polyseme.base.lock import lock_file

HOLD = "import sys, pathlib\nfrom polyseme.base.lock import lock_file\n"
HOLD += "with lock_file(pathlib.Path(sys.argv[1])):\n    print('held', flush=True)\n    sys.stdin.read()\n"


def test_the_second_process_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "run" / ".lock"
    first = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    assert first.stdout is not None and first.stdout.readline() == b"held\n"
    try:
        with pytest.raises(PolysemeError, match=r"^busy$"), lock_file(path, busy="busy"):
            pass
    finally:
        first.kill()
        first.wait()
    assert path.exists()  # left by the kill, and nobody holds it
    with lock_file(path, busy="busy") as held:
        assert held
    assert not path.exists()


def test_waits_for_the_holder(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    first = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    assert first.stdout is not None and first.stdout.readline() == b"held\n"
    second = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    first.communicate()  # ends its input, and so the first process
    said, _ = second.communicate()
    assert said == b"held\n" and (first.returncode, second.returncode) == (0, 0) and not path.exists()


def test_waits_for_a_holder_that_removes_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "run" / ".lock"
    call = [sys.executable, "-c", f"import logging\nlogging.basicConfig(level='INFO')\n{HOLD}", str(path)]
    with lock_file(path):
        second = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE)
        assert second.stderr is not None and b"waiting for another process" in second.stderr.readline()
        time.sleep(0.5)  # until it looks again and again
        path.parent.rename(tmp_path / "removed")
    said, _ = second.communicate()
    assert said == b"held\n" and second.returncode == 0


def test_released_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="inside"), lock_file(tmp_path / ".lock"):
        raise RuntimeError("inside")
    with lock_file(tmp_path / ".lock", busy="busy"):
        pass


def test_file_systems_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(filelock.BaseFileLock, "acquire", refuse)
    with lock_file(tmp_path / ".lock") as one, lock_file(tmp_path / ".lock", busy="busy") as two:
        assert (one, two) == (False, False)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PolysemeError, match=r"cannot write .*file/run/.lock: "), lock_file(tmp_path / "file" / "run" / ".lock"):
        pass
