"""Store equal copies of frozen encoders in the experiments of a study once.

An experiment's folder is a complete trained task, so it holds a copy of its encoders: with word vectors of 200 MB, a study
of forty experiments would take 8 GB. Where the file system has hard links, equal files become one file with several names.
Model files are always replaced and never modified, so no experiment can change another's.
"""

from __future__ import annotations

import contextlib
import filecmp
import os
from pathlib import Path

from polyseme.tasks.folder_writer import COPIED


def link_duplicates(experiment: Path, experiments: Path) -> None:
    """Hard-link an experiment's encoders to equal ones below `experiments`; what cannot be linked stays a copy."""
    for hash_file in sorted(experiment.glob(f"*/{COPIED}")):
        with contextlib.suppress(OSError):  # no links on this disk, or the other copy was just removed
            if (other := _equal_folder(hash_file, experiments)) is not None:
                for path in hash_file.parent.iterdir():
                    _link(path, other / path.name)


def _equal_folder(hash_file: Path, experiments: Path) -> Path | None:
    """The folder of another experiment with the same encoder."""
    content = hash_file.read_bytes()
    others = (path for path in sorted(experiments.rglob(COPIED)) if hash_file.parents[1] not in path.parents)
    return next((path.parent for path in others if path.read_bytes() == content), None)


def _link(path: Path, other: Path) -> None:
    if path.samefile(other) or not filecmp.cmp(path, other, shallow=False):
        return
    link = path.with_name(f".{path.name}.link")
    link.unlink(missing_ok=True)  # left by a killed experiment
    os.link(other, link)
    link.replace(path)
