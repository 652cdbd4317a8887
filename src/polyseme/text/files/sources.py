"""Sources of text: a file, a folder, a glob, several of these, or standard input.

A table in memory (a dataset, a data frame) and the folder of a saved dataset are sources too: their column of text is read.
A folder is walked in sorted order, so that the same files give the same corpus on every machine; hidden files and folders
(`.git`, `.DS_Store`) are skipped, and files whose names begin with `_`, as in Spark: they are about the text (`_SUCCESS`, or
`_manifest.json` of `polyseme corpus dedupe`). A file that is named twice counts once. Standard input and other pipes are first
copied to a temporary file, because a corpus is read more than once.
"""

from __future__ import annotations

import copy
import glob
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO, Literal

from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.base.files import is_pipe, wrap_os_errors
from polyseme.text.files.data_tables import data_files, is_dataset_folder, is_table, table_rows, to_json_line
from polyseme.text.files.lines import TABLE_NAMES, read_as_text
from polyseme.text.files.reader import Chunk, TextFile, read_chunks

_log = logging.getLogger(__name__)
AnyPath = str | os.PathLike[str]
TextPaths = AnyPath | Sequence[AnyPath]
OnBadLine = Literal["strict", "skip"]
NO_TEXT = (".", "_")
"""How names of files in a folder begin that are not read as text."""


class Source:
    """The files of a corpus, in order; each call of `chunks()` reads them from the beginning.

    >>> folder = Path(tempfile.mkdtemp()); _ = (folder / "a.txt").write_text("one\\ntwo\\n")
    >>> [chunk.text for chunk in Source(folder).chunks()]
    ['one\\ntwo\\n']
    """

    def __init__(self, paths: TextPaths, *, field: str | None = None, errors: OnBadLine = "strict") -> None:
        if errors not in ("strict", "skip"):
            raise UsageError(f"{arg('errors', errors)} is unknown; allowed: 'strict' (raise an error) and 'skip'")
        self.field = "text" if field is None else field
        """The field of JSON lines, or column of Parquet, that holds the text."""
        self._json = (".json",) if field is not None else ()  # a given field means JSON lines in .json files and pipes
        self.errors: OnBadLine = errors
        """What to do with lines that cannot be read."""
        self._spool: tempfile.TemporaryDirectory[str] | None = None
        self._copies: dict[str, TextFile] = {}
        self.files = tuple(_once(self._find(paths)))
        """All files, in the order in which they are read."""
        self.names = tuple(dict.fromkeys(map(_name, _several(paths))))
        """What was given, without parent folders: names for a model card."""

    def chunks(self, files: Sequence[TextFile] | None = None) -> Iterator[Chunk]:
        """Yield chunks of lines, file by file; `files`: only of these."""
        for number, file in enumerate(self.files if files is None else files):
            yield from read_chunks(file, number, field=self.field, skip_bad=self.errors == "skip")

    def tolerant(self) -> Source:
        """Return the same files with errors="skip"."""
        other = copy.copy(self)
        other.errors = "skip"
        return other

    def warn_of_tables(self, notify: Callable[[str], None] = _log.warning) -> None:
        """Warn of files that are tables by their names: their lines are read as texts."""
        for file in self.files:
            if TABLE_NAMES.search(file.name) and not file.holds_json:
                advice = f"give a file of the texts alone, or JSON lines or Parquet ({arg('field')} names their column)"
                notify(f"{read_as_text(file.name)}; {advice}")

    def size(self) -> int:
        """Return the bytes on disk."""
        total = 0
        for file in self.files:
            with wrap_os_errors(file.name, "read"):
                total += file.path.stat().st_size
        return total

    def _find(self, paths: TextPaths) -> Iterator[TextFile]:
        several = _several(paths)
        if not several:
            raise UsageError("no text given: give a file, a folder, a glob, or - for standard input")
        for given in several:
            if is_table(given):
                yield self._written(given)
                continue
            path = Path(given).expanduser()
            if str(given) == "-":
                yield self._copied("standard input", None)
            elif is_pipe(path):
                yield self._copied(str(given), path)
            else:
                yield from (TextFile(file, json=file.suffix.lower() in self._json) for file in _files_of(os.fspath(given)))

    def _written(self, table: object) -> TextFile:
        """Write a table in memory as JSON lines."""
        if self._spool is None:
            self._spool = tempfile.TemporaryDirectory(prefix="polyseme-")
        path = Path(self._spool.name, f"{type(table).__name__}-{len(list(Path(self._spool.name).iterdir()))}.jsonl")
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{to_json_line(row)}\n" for row in table_rows(table))
        return TextFile(path, type(table).__name__)

    def _copied(self, name: str, pipe: Path | None) -> TextFile:
        """Copy what can be read only once: a pipe, or standard input."""
        if self._spool is None:
            self._spool = tempfile.TemporaryDirectory(prefix="polyseme-")  # removed with the source
        if name not in self._copies:
            endings = "" if pipe is None else "".join(pipe.suffixes)  # which may say JSON lines
            path = Path(self._spool.name, f"{len(self._copies)}{endings}")
            with wrap_os_errors(name, "copy"), path.open("wb") as file, _opened(pipe) as stream:
                shutil.copyfileobj(stream, file, 1 << 20)
            self._copies[name] = TextFile(path, name, json=bool(self._json))
        return self._copies[name]


def _opened(pipe: Path | None) -> AbstractContextManager[BinaryIO]:
    return nullcontext(sys.stdin.buffer) if pipe is None else pipe.open("rb")


def _several(paths: TextPaths) -> list[AnyPath]:
    return [paths] if isinstance(paths, str | os.PathLike) or is_table(paths) else list(paths)  # type: ignore[list-item]


def _name(path: AnyPath) -> str:
    """Return the last part of a path; for `.` and `..` the folder's real name; for a table its kind."""
    if is_table(path):
        return type(path).__name__
    full = Path(path).expanduser()
    name = full.name if full.name not in ("", "..") else full.resolve().name
    return "standard input" if str(path) == "-" else name


def _once(files: Iterable[TextFile]) -> Iterator[TextFile]:
    seen: set[str] = set()
    for file in files:
        real = os.path.realpath(file.path)
        if real not in seen:
            seen.add(real)
            yield file


def _files_of(given: str) -> list[Path]:
    """Return the files of a path or glob; it is an error if there are none, so that a typo does not train on nothing."""
    path = Path(given).expanduser()
    if path.is_dir():
        found = data_files(path) if is_dataset_folder(path) else _walk(path)
        if not found:
            raise PolysemeError(f"{given}: the folder holds no files; those whose names begin with _ or . are not read")
        return found
    if path.exists():
        return [path]
    if not glob.has_magic(given):
        raise PolysemeError(f"{given}: no such file or folder")
    matches = map(Path, sorted(glob.glob(str(path), recursive=True)))  # noqa: PTH207 (takes absolute patterns too)
    asked = path.name.startswith("_")
    files = (match for match in matches if match.is_dir() or asked or not match.name.startswith("_"))
    found = [file for match in files for file in (_walk(match) if match.is_dir() else [match])]
    if not found:
        raise PolysemeError(f"{given}: no file matches")
    return found


def _walk(folder: Path) -> list[Path]:
    found: list[Path] = []

    def refuse(error: OSError) -> None:
        raise error

    with wrap_os_errors(folder, "read"):
        for parent, folders, names in os.walk(folder, onerror=refuse):
            folders[:] = [name for name in folders if not name.startswith(".")]
            found += [Path(parent, name) for name in names if not name.startswith(NO_TEXT)]
    return sorted((path for path in found if path.is_file()), key=lambda path: path.parts)
