"""A folder with one folder for each class and one file for each text, as film reviews (aclImdb) and 20 newsgroups come.

It is read as JSON lines, so that it is checked and repaired like other tables. Folders that only look like it are not read:
those named after splits, with folders in them, or without a file of text.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

from polyseme.base.files import wrap_os_errors
from polyseme.text.files.lines import FileLines

_log = logging.getLogger(__name__)
_SPLITS = frozenset(("train", "training", "dev", "valid", "validation", "val", "test", "testing"))
_UNLABELLED = frozenset(("unsup", "unlabeled", "unlabelled"))
_SUFFIXES = frozenset(("", ".txt", ".text"))


def class_folders(path: Path) -> list[Path]:
    """Return the folders of the classes, two or more; an empty list: the folder is something else."""
    with wrap_os_errors(path, "read"):
        found = [each for each in _visible(path) if each.is_dir()] if path.is_dir() else []
        found = [each for each in found if each.name.lower() not in _UNLABELLED]
        named = len(found) > 1 and not all(each.name.lower() in _SPLITS for each in found)
        return found if named and all(_has_texts(each) for each in found) else []


def class_lines(path: Path) -> Iterator[str]:
    """Yield each text with its label, the name of its folder, as a JSON object; say what is left out."""
    left_out = [each.name for each in _visible(path) if each.is_dir() and each.name.lower() in _UNLABELLED]
    if left_out:
        _log.warning("%s: the texts in %s have no label and are left out", path, ", ".join(left_out))
    others = list[Path]()
    for folder in class_folders(path):
        for file in _visible(folder):
            text = "\n".join(FileLines(file)) if _is_text(file) else "\0"
            if "\0" in text:
                others.append(file)
            else:
                yield json.dumps({"text": text, "label": folder.name}, ensure_ascii=False)
    if others:
        _log.warning(
            "%s: left out %d files that are not plain text, such as %s", path, len(others), others[0].relative_to(path)
        )


def _has_texts(folder: Path) -> bool:
    inside = _visible(folder)
    return not any(map(Path.is_dir, inside)) and any(map(_is_text, inside))


def _is_text(file: Path) -> bool:
    return file.suffix.lower() in _SUFFIXES or file.suffix[1:].isdecimal()


def _visible(folder: Path) -> list[Path]:
    return sorted((each for each in folder.iterdir() if not each.name.startswith(".")), key=lambda each: each.name)
