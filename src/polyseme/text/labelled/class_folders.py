"""A folder with one folder for each class and one file for each text, as film reviews (aclImdb) and 20 newsgroups come.

It is read as JSON lines, so that all that reads labelled texts can read it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from polyseme.text.files.lines import FileLines


def class_folders(path: Path) -> list[Path]:
    """Return the folders of the classes, two or more that have files; an empty list: the folder is something else."""
    found = [each for each in _visible(path) if each.is_dir()] if path.is_dir() else []
    return found if len(found) > 1 and all(any(map(Path.is_file, _visible(each))) for each in found) else []


def class_lines(path: Path) -> Iterator[str]:
    """Yield each text with its label, the name of its folder, as a JSON object."""
    for folder in class_folders(path):
        for file in filter(Path.is_file, _visible(folder)):
            yield json.dumps({"text": "\n".join(FileLines(file)), "label": folder.name}, ensure_ascii=False)


def _visible(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if not each.name.startswith("."))
