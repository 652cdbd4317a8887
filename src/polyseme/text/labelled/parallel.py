"""Parallel text: a source and its target, line by line, in two files or in two columns of one.

Two files are given by the name that they share, as in every translation task: `train` with the suffixes `en` and `de` is
`train.en` and `train.de`, plain or compressed (`train.en.gz`). A single file is a table (`tables`): TSV, JSON lines, or CSV if
it is named .csv, because a comma alone makes no columns of a plain text. Two files of different length are an error.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from polyseme.base.errors import FormatError, UsageError, arg
from polyseme.text.labelled.numbered_lines import first_line, numbered_lines
from polyseme.text.labelled.parallel_columns import columns_of
from polyseme.text.labelled.tables import read_table, read_table_head

COMPRESSED = ("", ".gz", ".xz", ".zst")
"""What may follow the suffix of a file."""
TABLE_SUFFIXES = tuple(f".{name}{end}" for name in ("csv", "json", "jsonl", "ndjson") for end in COMPRESSED)
"""Suffixes of files that are tables whatever their first line."""


@dataclass(frozen=True, slots=True)
class TextPair:
    """A source and its target, each as a string to be split or as words."""

    source: str | list[str]
    target: str | list[str] | None = None
    where: int | None = field(default=None, repr=False, compare=False)
    """The line of its files, for messages."""


@dataclass(frozen=True, slots=True)
class Parallel:
    """The content of parallel files."""

    pairs: list[TextPair]
    skipped: list[TextPair]
    """Pairs with a blank text, if these are allowed."""


def read_parallel(
    path: str | Path,
    *,
    source: str | None = None,
    target: str | None = None,
    header: bool | None = None,
    strict: bool = True,
) -> Parallel:
    """Read all pairs of a table, or of two files that begin with `path`.

    `source`, `target`: the suffixes of two files, or the columns of a table, by name or by number from 0. By default the two
    columns with well-known names (`NAMES`), in any order; else columns 0 and 1 of a table without a header. In JSON lines,
    whose keys have no order, unknown names are an error.

    `header`: whether the first row of TSV or CSV names the columns. By default it does if a column is given by name, or if two
    well-known names are there. It also does if no column is given and exactly two of its cells are lower-case language codes
    (`en`, `de`; source first; in a table of three columns or more `id` is a number): most other rows must then have a text of
    several words. Otherwise it may be a row of a word list (it, es), which is an error that asks for `header`.

    `strict=False`: pairs with a blank text are skipped instead of being an error.

    >>> import tempfile; name = Path(tempfile.mkdtemp(), "train")
    >>> _ = Path(f"{name}.en").write_text("a dog\\n"), Path(f"{name}.de").write_text("ein Hund\\n")
    >>> read_parallel(name, source="en", target="de").pairs
    [TextPair(source='a dog', target='ein Hund')]
    """
    if (source is None) != (target is None):
        given, missing = ("source", "target") if target is None else ("target", "source")
        raise UsageError(f"{arg(given, source or target)} needs {arg(missing)}; give both or neither")
    if Path(path).is_file():
        return _table(path, None if source is None or target is None else (source, target), header, strict)
    if source is None or target is None:
        raise UsageError(f"there is no file {path}; {_two_files()}")
    parallel = Parallel([], [])
    for pair in _pairs(side(path, source), side(path, target), strict):
        (parallel.skipped if _blank(pair) else parallel.pairs).append(pair)
    if not parallel.pairs:
        raise FormatError(side(path, source), "has only blank lines; expected a text on each line")
    return parallel


def _two_files() -> str:
    given = f"{arg('source', 'en')} and {arg('target', 'de')}"
    return f"for two files give the name that they share and their suffixes: train with {given} reads train.en and train.de"


def side(path: str | Path, suffix: str) -> Path:
    """Return the file of one side, plain or compressed."""
    candidates = [Path(f"{path}.{suffix}{end}") for end in COMPRESSED]
    existing = next((each for each in candidates if each.is_file()), None)
    if existing is not None:
        return existing
    path = Path(path)
    beside = sorted(each.name for each in path.parent.glob("*") if each.name.startswith(f"{path.name}."))
    others = f"there are {', '.join(beside[:8])}" if beside else f"no file there begins with {path.name}."
    raise FormatError(candidates[0], f"no such file, plain or compressed ({', '.join(COMPRESSED[1:])}); {others}")


def _pairs(source: Path, target: Path, strict: bool) -> Iterator[TextPair]:
    """Yield the lines of two files, which must have the same number."""
    for one, other in itertools.zip_longest(numbered_lines(source), numbered_lines(target)):
        if one is None or other is None:
            longer, shorter, number = (target, source, other[0]) if one is None else (source, target, one[0])
            what = f"has no counterpart: {shorter} ends with line {number - 1}"
            raise FormatError(f"{longer}:{number}", f"{what}; parallel files have the same number of lines")
        pair = TextPair(one[1].strip(), other[1].strip(), one[0])
        if strict and _blank(pair):
            where = target if pair.source else source
            raise FormatError(f"{where}:{pair.where}", "is blank; add a text, or remove the line from both files")
        yield pair


def _blank(pair: TextPair) -> bool:
    return not pair.source or not pair.target


def _table(path: str | Path, asked: tuple[str, str] | None, header: bool | None, strict: bool) -> Parallel:
    if not _may_be_table(path):
        what = "is not a table: its first line has no tab; give tab-separated columns, JSON lines, or CSV in a file named .csv"
        raise FormatError(path, f"{what}; {_two_files()}")
    head = read_table_head(path)
    columns = columns_of(path, head, asked, header)
    options = {"labelled": False, "header": columns.header, "format": head.format, "strict": strict}
    table = read_table(path, text=columns.source, second=columns.target, **options)  # type: ignore[arg-type]
    pairs, skipped = (
        [TextPair(row.first.strip(), (row.second or "").strip(), row.where) for row in rows]
        for rows in (table.rows, table.skipped)
    )
    if table.bad is not None and len(table.bad) > len(skipped):  # rows with too few or too many columns
        table.bad.finish(len(pairs))
    if not pairs:
        raise FormatError(path, f"has no usable row: all {len(skipped)} have a blank text")
    return Parallel(pairs, skipped)


def _may_be_table(path: str | Path) -> bool:
    """Whether it is named as a table, or its first line has columns; an unreadable file is left to the reader."""
    if Path(path).name.lower().endswith(TABLE_SUFFIXES):
        return True
    try:
        first = first_line(path)
    except FormatError:
        return True
    return first is None or "\t" in first or first.startswith("{")
