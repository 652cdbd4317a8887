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


@pytest.mark.parametrize("name", ["nofile.txt", "data/No.CSV", "a.jsonl.gz", "文本.parquet"])
def test_a_text_that_is_the_name_of_no_file(name: str, caplog: pytest.LogCaptureFixture) -> None:
    assert list(lines_of([name], None)) == [name]
    assert f"{name} is read as a text, and there is no file of this name; to read a file, give input" in caplog.text


def test_other_texts_are_no_names_of_files(caplog: pytest.LogCaptureFixture) -> None:
    for texts in (["Paris."], ["We read a.txt"], ["a.txt", "b.txt"], ["e.g."], [".txt"], ["3.5"]):
        assert list(lines_of(texts, None)) == texts
    assert not caplog.records


@pytest.mark.parametrize(("name", "warned"), [("a.csv", True), ("a.JSONL.gz", True), ("a.tsv", False), ("a.txt", False)])
def test_a_table_is_read_as_plain_text_with_a_note(
    name: str, warned: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / name).write_text("text,label\ngood,pos\n")
    assert list(lines_of(None, tmp_path / name)) == ["text,label", "good,pos"]
    assert (f"{name} is read as plain text, one text per line, with its header and all its columns" in caplog.text) == warned
    assert (f"{name} --field COLUMN --pooling mean --out FOLDER` reads a column" in caplog.text) == warned
