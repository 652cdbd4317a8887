"""Equal copies of frozen encoders in the experiments of a study: one place on the disk.

An experiment's folder is a complete trained task, so it holds a copy of its encoders: with word vectors of 200 MB, a study
of forty experiments would take 8 GB. Where the file system has hard links, equal files become one file with several names.
Model files are replaced as a whole and never written into, so no experiment can change another's.
"""

from __future__ import annotations

import contextlib
import filecmp
import os
from pathlib import Path

from polyseme.tasks.folder import NOTED


def link_duplicates(experiment: Path, experiments: Path) -> None:
    """Hard-link an experiment's encoders to equal ones below `experiments`; what cannot be linked stays a copy."""
    for noted in sorted(experiment.glob(f"*/{NOTED}")):
        with contextlib.suppress(OSError):  # no links on this disk, or the other one was just taken away
            if (other := _equal(noted, experiments)) is not None:
                for path in noted.parent.iterdir():
                    _share(path, other / path.name)


def _equal(noted: Path, experiments: Path) -> Path | None:
    """The folder of another experiment that holds the same encoder."""
    content = noted.read_bytes()
    others = (path for path in sorted(experiments.rglob(NOTED)) if noted.parents[1] not in path.parents)
    return next((path.parent for path in others if path.read_bytes() == content), None)


def _share(path: Path, other: Path) -> None:
    if path.samefile(other) or not filecmp.cmp(path, other, shallow=False):
        return
    linked = path.with_name(f".{path.name}.link")
    linked.unlink(missing_ok=True)  # of an experiment that was killed here
    os.link(other, linked)
    linked.replace(path)
