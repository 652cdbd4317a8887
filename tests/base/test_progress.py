"""Reports about the course of a work: for those who log them, and in notebooks."""

import sys
from types import SimpleNamespace

from polyseme.base.progress import report


class ZMQInteractiveShell:
    """As the shell of a notebook is called."""


def test_reports_are_logged_and_shown_in_a_notebook(monkeypatch, caplog, capsys):
    caplog.set_level("INFO", logger="polyseme.progress")
    report("epoch 1")
    assert caplog.messages == ["epoch 1"] and capsys.readouterr().out == ""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=ZMQInteractiveShell))
    report("epoch 2")
    assert capsys.readouterr().out == "epoch 2\n"
