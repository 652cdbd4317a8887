"""Texts on the command line, and the files whose names they may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyseme.text.files.lines import lines_of


def test_a_text_that_is_the_name_of_a_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "t.txt"
    path.write_text("one\ntwo\n")
    assert list(lines_of([str(path)], None)) == [str(path)]
    assert "is read as a text; to read the file of this name, give input=" in caplog.text
    caplog.clear()
    assert list(lines_of(None, path)) == ["one", "two"]
    assert len(list(lines_of(["a text", "x" * 5000, "\0"], None))) == 3 and list(lines_of(["y" * 5000], None))
    assert not caplog.records
