"""Where text lies: a file, a folder, a glob, several of these, or standard input.

A folder is walked in sorted order, so that the same files give the same corpus on every machine; hidden files and
folders (`.git`, `.DS_Store`) are no text and are passed over. A file that is named twice counts once. Standard input and other
pipes are copied to a temporary file first, because a corpus is read more than once.
"""

from __future__ import annotations

import copy
import glob
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO, Literal

from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.base.files import is_pipe, wrap_os_errors
from polyseme.text.files.reader import Chunk, TextFile, read_chunks

Place = str | os.PathLike[str]
TextPaths = Place | Sequence[Place]
OnBadLine = Literal["strict", "skip"]


class Source:
    """The files of a corpus, in order; `chunks()` reads them from the first line on, as often as it is called.

    >>> folder = Path(tempfile.mkdtemp()); _ = (folder / "a.txt").write_text("one\\ntwo\\n")
    >>> [chunk.text for chunk in Source(folder).chunks()]
    ['one\\ntwo\\n']
    """

    def __init__(self, places: TextPaths, *, field: str | None = None, errors: OnBadLine = "strict") -> None:
        if errors not in ("strict", "skip"):
            raise UsageError(f"{arg('errors', errors)} is unknown; allowed: 'strict' (raise an error) and 'skip'")
        self.field = "text" if field is None else field
        """Where the text stands in a JSON line or a Parquet row."""
        self._json = (".json",) if field is not None else ()  # who names a field has JSON lines in such files, and in pipes
        self.errors: OnBadLine = errors
        """What to do at a line that cannot be read."""
        self._spool: tempfile.TemporaryDirectory[str] | None = None
        self._copies: dict[str, TextFile] = {}
        self.files = tuple(_once(self._find(places)))
        """All files, in the order in which they are read."""
        self.names = tuple(dict.fromkeys(map(_name, _several(places))))
        """What was given, without the folders around it: names that can be published."""

    def chunks(self) -> Iterator[Chunk]:
        """Some lines at a time, of one file after another."""
        for place, file in enumerate(self.files):
            yield from read_chunks(file, place, field=self.field, skip_bad=self.errors == "skip")

    def tolerant(self) -> Source:
        """The same files, of which bad lines are skipped and counted."""
        other = copy.copy(self)
        other.errors = "skip"
        return other

    def size(self) -> int:
        """Bytes on disk, packed as they are."""
        total = 0
        for file in self.files:
            with wrap_os_errors(file.name, "read"):
                total += file.path.stat().st_size
        return total

    def _find(self, places: TextPaths) -> Iterator[TextFile]:
        several = _several(places)
        if not several:
            raise UsageError("no text given: name a file, a folder, a glob, or - for standard input")
        for place in several:
            path = Path(place).expanduser()
            if str(place) == "-":
                yield self._copied("standard input", None)
            elif is_pipe(path):
                yield self._copied(str(place), path)
            else:
                yield from (TextFile(file, json=file.suffix.lower() in self._json) for file in _files_of(os.fspath(place)))

    def _copied(self, name: str, pipe: Path | None) -> TextFile:
        """A copy of what can be read once only: a pipe, or standard input."""
        if self._spool is None:
            self._spool = tempfile.TemporaryDirectory(prefix="polyseme-")  # goes when the source goes
        if name not in self._copies:
            endings = "" if pipe is None else "".join(pipe.suffixes)  # which tell JSON lines
            path = Path(self._spool.name, f"{len(self._copies)}{endings}")
            with wrap_os_errors(name, "copy"), path.open("wb") as file, _opened(pipe) as given:
                shutil.copyfileobj(given, file, 1 << 20)
            self._copies[name] = TextFile(path, name, json=bool(self._json))
        return self._copies[name]


def _opened(pipe: Path | None) -> AbstractContextManager[BinaryIO]:
    return nullcontext(sys.stdin.buffer) if pipe is None else pipe.open("rb")


def _several(places: TextPaths) -> list[Place]:
    return [places] if isinstance(places, str | os.PathLike) else list(places)


def _name(place: Place) -> str:
    """The last part of a path; that of `.` and `..` is the folder's real name."""
    path = Path(place).expanduser()
    name = path.name if path.name not in ("", "..") else path.resolve().name
    return "standard input" if str(place) == "-" else name


def _once(files: Iterable[TextFile]) -> Iterator[TextFile]:
    seen: set[str] = set()
    for file in files:
        real = os.path.realpath(file.path)
        if real not in seen:
            seen.add(real)
            yield file


def _files_of(place: str) -> list[Path]:
    """The files of one place; that there is none is an error, because a misspelt name must not train on nothing."""
    path = Path(place).expanduser()
    if path.is_dir():
        found = _walk(path)
        if not found:
            raise PolysemeError(f"{place}: the folder holds no files")
        return found
    if path.exists():
        return [path]
    if not glob.has_magic(place):
        raise PolysemeError(f"{place}: no such file or folder")
    matches = map(Path, sorted(glob.glob(str(path), recursive=True)))  # noqa: PTH207 (takes absolute patterns too)
    found = [file for match in matches for file in (_walk(match) if match.is_dir() else [match])]
    if not found:
        raise PolysemeError(f"{place}: no file matches")
    return found


def _walk(folder: Path) -> list[Path]:
    found: list[Path] = []

    def refuse(error: OSError) -> None:
        raise error

    with wrap_os_errors(folder, "read"):
        for parent, folders, names in os.walk(folder, onerror=refuse):
            folders[:] = [name for name in folders if not name.startswith(".")]
            found += [Path(parent, name) for name in names if not name.startswith(".")]
    return sorted((path for path in found if path.is_file()), key=lambda path: path.parts)
