"""Processes side by side, and why one of them failed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from polyseme.base.signals import GracefulStop
from polyseme.studies import processes
from polyseme.studies.processes import failure_reason, last_line, run_parallel, start_process

SAY = "import sys; print('a reason'); sys.exit(3)"
DIE = "import os; os.kill(os.getpid(), 9)"


def test_why_is_of_the_last_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_POLL_SECONDS", 0.01)
    log = tmp_path / "log"

    def ended(program: str) -> int:
        with GracefulStop() as stop:
            [(piece, code)] = run_parallel([program], lambda each: start_process([sys.executable, "-c", each], log), stop)
        assert piece == program
        return code

    assert (code := ended(SAY)) == 3 and failure_reason(log, code) == last_line(log) == "a reason"
    assert (code := ended(DIE)) == -9
    assert failure_reason(log, code) == "killed by SIGKILL, perhaps because memory ran out; last line: no output"
    assert log.read_text().count("# begun ") == 2 and "a reason" in log.read_text()


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    assert failure_reason(tmp_path / "log", 1) == "no output"
