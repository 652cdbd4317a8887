"""Reports about the course of a work: for those who log them, and in notebooks."""

import sys
import time
from types import SimpleNamespace

from polyseme.base import progress as module
from polyseme.base.progress import progress, report


class ZMQInteractiveShell:
    """As the shell of a notebook is called."""


def test_reports_are_logged_and_shown_in_a_notebook(monkeypatch, caplog, capsys):
    caplog.set_level("INFO", logger="polyseme.progress")
    report("epoch 1")
    assert caplog.messages == ["epoch 1"] and capsys.readouterr().out == ""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=ZMQInteractiveShell))
    report("epoch 2")
    assert capsys.readouterr().out == "epoch 2\n"


def test_a_work_that_is_not_counted_shows_its_time(monkeypatch, capsys):
    monkeypatch.setattr(module, "visible", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, for rich
    with progress("writing", unit=None):
        pass
    shown = capsys.readouterr().err
    assert "writing" in shown and "0:00:00" in shown and "None" not in shown and "lines" not in shown
    with progress("embedding") as advance:
        advance(3)
    assert "3 lines" in capsys.readouterr().err


def test_a_slow_block_says_what_it_does_on_a_terminal_alone(monkeypatch, capsys):
    with module.note_if_slow("loading en ...", after=0.0):
        time.sleep(0.05)
    monkeypatch.setattr(module, "visible", lambda: True)
    with module.note_if_slow("fast"):
        pass
    assert capsys.readouterr().err == ""
    with module.note_if_slow("loading en ...", after=0.0):
        time.sleep(0.2)
    assert capsys.readouterr().err == "loading en ...\n"
