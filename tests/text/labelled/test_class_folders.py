"""Folders of classes: what is one, and what a classifier reads from it."""

from pathlib import Path

import pytest

from polyseme.base.errors import FormatError
from polyseme.tasks.classification import Classification
from polyseme.tasks.classification_config import ClassificationConfig
from polyseme.text.labelled.class_folders import class_folders
from polyseme.text.labelled.tables import read_usable_rows


def classes(folder: Path) -> Path:
    for name, texts in {"neg": ["bad\nvery bad", ""], "pos": ["sehr schön", "so good"]}.items():
        (folder / name).mkdir(parents=True)
        for number, text in enumerate(texts):
            (folder / name / f"{number}.txt").write_bytes(text.encode("cp1252"))
    (folder / "README").write_text("two classes")
    (folder / "pos" / ".DS_Store").write_bytes(b"\0\1")
    (folder / ".git").mkdir()
    return folder


def test_they_are_read_as_a_table(tmp_path: Path) -> None:
    rows = read_usable_rows(classes(tmp_path / "reviews"), strict=False)
    assert [(row.first, row.label) for row in rows] == [("bad\nvery bad", "neg"), ("sehr schön", "pos"), ("so good", "pos")]
    assert [row.where for row in rows] == [1, 3, 4]


@pytest.mark.parametrize("name", ["pos", "none", "README"])
def test_other_folders(tmp_path: Path, name: str) -> None:
    assert class_folders(classes(tmp_path / "reviews") / name) == []


@pytest.mark.parametrize("names", [("train/a.txt", "test/b.txt"), ("a/1.conll", "b/1.conll"), ("pos/a.txt",)])
def test_folders_that_are_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (tmp_path / "data" / name).parent.mkdir(parents=True)
        (tmp_path / "data" / name).write_text("good")
    message = "is a folder; expected one file .* for classification also a folder with a folder of text files"
    with pytest.raises(FormatError, match=message):
        read_usable_rows(tmp_path / "data")


def test_folders_in_classes(tmp_path: Path) -> None:
    (classes(tmp_path / "reviews") / "pos" / "more").mkdir()
    assert class_folders(tmp_path / "reviews") == []


def test_what_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = classes(tmp_path / "reviews")
    (folder / "unsup").mkdir()
    (folder / "unsup" / "1.txt").write_text("so so")
    (folder / "pos" / "3.png").write_bytes(b"\x89PNG")
    (folder / "pos" / "4.txt").write_bytes(b"a text of many words with a zero byte \0 in it")
    assert len(read_usable_rows(folder, strict=False)) == 3
    assert "the texts in unsup have no label and are left out" in caplog.text
    assert f"left out 2 files that are not plain text, such as {Path('pos', '3.png')}" in caplog.text


def test_a_classifier_reads_them(tmp_path: Path) -> None:
    examples = Classification.read(classes(tmp_path / "reviews"), ClassificationConfig())
    assert [example.label for example in examples] == ["neg", "pos", "pos"]
