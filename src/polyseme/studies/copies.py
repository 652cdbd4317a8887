"""Equal copies of frozen encoders in the cells of a study: one place on the disk.

A cell is a trained task, which can be carried away as it is, and so each one holds its encoders: with word vectors of 200 MB, a
study of forty cells would hold 8 GB. Where the disk has hard links, equal files of cells become one file with several names.
Model files are replaced as a whole and never written into, so no cell can change another's.
"""

from __future__ import annotations

import contextlib
import filecmp
import os
from pathlib import Path

from polyseme.tasks.folder import NOTED


def share_copies(cell: Path, cells: Path) -> None:
    """Let the encoders of a cell be those that other cells below `cells` have already; what cannot be linked stays a copy."""
    for noted in sorted(cell.glob(f"*/{NOTED}")):
        with contextlib.suppress(OSError):  # no links on this disk, or the other one was just taken away
            if (other := _equal(noted, cells)) is not None:
                for path in noted.parent.iterdir():
                    _share(path, other / path.name)


def _equal(noted: Path, cells: Path) -> Path | None:
    """The folder of another cell that holds the same encoder."""
    content = noted.read_bytes()
    others = (path for path in sorted(cells.rglob(NOTED)) if noted.parents[1] not in path.parents)
    return next((path.parent for path in others if path.read_bytes() == content), None)


def _share(path: Path, other: Path) -> None:
    if path.samefile(other) or not filecmp.cmp(path, other, shallow=False):
        return
    linked = path.with_name(f".{path.name}.link")
    linked.unlink(missing_ok=True)  # of a cell that was killed here
    os.link(other, linked)
    linked.replace(path)
