"""Folders of classes: what is one, and what a classifier reads from it."""

from pathlib import Path

import pytest

from polyseme.base.errors import FormatError
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


def test_a_folder_of_one_class_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data" / "pos").mkdir(parents=True)
    (tmp_path / "data" / "pos" / "a.txt").write_text("good")
    with pytest.raises(FormatError, match=r"is a folder; expected one file .*, a folder of texts for each class in it, or"):
        read_usable_rows(tmp_path / "data")
