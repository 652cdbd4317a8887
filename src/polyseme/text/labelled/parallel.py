"""Parallel text: a source and what is to be made of it, line by line, in two files or in two columns of one.

Two files go by the name that they share, as in every translation task: `train` with the endings `en` and `de` is `train.en` and
`train.de`, each plain or packed (`train.en.gz`). A single file is a table (`tables`, beside this): TSV, JSON lines, or CSV
that is named so, because a comma alone makes no columns of a plain text. Lines must match: a pair of files of different lengths
is an error and not a corpus whose end is missing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from polyseme.base.errors import FormatError, UsageError
from polyseme.text.labelled.numbered_lines import numbered_lines
from polyseme.text.labelled.parallel_columns import Column, column_of, columns_of
from polyseme.text.labelled.tables import read_table, read_table_head

PACKED = ("", ".gz", ".xz", ".zst")
"""What may stand behind the ending of a file."""
NAMED = tuple(f".{kind}{packed}" for kind in ("csv", "json", "jsonl", "ndjson") for packed in PACKED)
"""Endings of tables whose first line need not tell that they are one."""
TWO_FILES = (
    "of two files give the name that they share, and their endings: train with --source en --target de reads train.en and "
    "train.de, plain or packed"
)


@dataclass(frozen=True, slots=True)
class TextPair:
    """A text and what is to be made of it, each as a string to be split or as words."""

    source: str | list[str]
    target: str | list[str] | None = None
    where: int | None = field(default=None, repr=False, compare=False)
    """The line of its files, for messages."""


@dataclass(frozen=True, slots=True)
class Parallel:
    """What a pair of files holds."""

    pairs: list[TextPair]
    skipped: list[TextPair]
    """Pairs of which one text or both are blank, where that is allowed."""


def read_parallel(
    path: str | Path,
    *,
    source: str | None = None,
    target: str | None = None,
    header: bool | None = None,
    strict: bool = True,
) -> Parallel:
    """All pairs of a table, or of two files that begin with `path`.

    `source`, `target`: of two files their endings; of a table the columns, by name or by number from 0. Not given, they are
    the two that have well-known names (`NAMES`), in any order and beside others; else columns 0 and 1 without a header, and
    of JSON lines, whose keys have no order, an error. `header`, of TSV and CSV: whether the first row names the columns. Not
    given, it does where a column is asked for by name or two well-known names stand there; and where nothing is asked for and
    exactly two of its cells are codes of languages in small letters (`en`, `de`; source first; an `id` beside two others is a
    number): most rows behind it then need a text of several words, or else it may be a row of a word list (it, es), and an
    error asks. `strict=False`: pairs of which a text is blank are set aside instead of being an error.

    >>> import tempfile; name = Path(tempfile.mkdtemp(), "train")
    >>> _ = Path(f"{name}.en").write_text("a dog\\n"), Path(f"{name}.de").write_text("ein Hund\\n")
    >>> read_parallel(name, source="en", target="de").pairs
    [TextPair(source='a dog', target='ein Hund')]
    """
    if (source is None) != (target is None):
        given, lacks = ("source", "target") if target is None else ("target", "source")
        raise UsageError(f"{given} is {source or target!r}, but there is no {lacks}; give both, or none for two columns")
    if Path(path).is_file():
        asked = None if source is None or target is None else (column_of(source), column_of(target))
        return _table(path, asked, header, strict)
    if source is None or target is None:
        raise UsageError(f"there is no file {path}; {TWO_FILES}")
    found = Parallel([], [])
    for pair in _pairs(side(path, source), side(path, target), strict):
        (found.skipped if _blank(pair) else found.pairs).append(pair)
    if not found.pairs:
        raise FormatError(side(path, source), "has no line with a text; expected a text on each line")
    return found


def side(path: str | Path, ending: str) -> Path:
    """The file of one side; it may be packed."""
    found = [Path(f"{path}.{ending}{packed}") for packed in PACKED]
    there = next((each for each in found if each.is_file()), None)
    if there is not None:
        return there
    path = Path(path)
    beside = sorted(each.name for each in path.parent.glob("*") if each.name.startswith(f"{path.name}."))
    lies = f"there are {', '.join(beside[:8])}" if beside else f"nothing there begins with {path.name}."
    raise FormatError(found[0], f"no such file, plain or packed ({', '.join(PACKED[1:])}); {lies}")


def _pairs(source: Path, target: Path, strict: bool) -> Iterator[TextPair]:
    """The lines of two files, which must be as many."""
    for one, other in itertools.zip_longest(numbered_lines(source), numbered_lines(target)):
        if one is None or other is None:
            longer, shorter, number = (target, source, other[0]) if one is None else (source, target, one[0])
            what = f"has no line to go with it: {shorter} ends with line {number - 1}"
            raise FormatError(f"{longer}:{number}", f"{what}; two files of parallel text have as many lines")
        pair = TextPair(one[1].strip(), other[1].strip(), one[0])
        if strict and _blank(pair):
            where = target if pair.source else source
            raise FormatError(f"{where}:{pair.where}", "is blank; put a text there, or take the line out of both files")
        yield pair


def _blank(pair: TextPair) -> bool:
    return not pair.source or not pair.target


def _table(path: str | Path, asked: tuple[Column, Column] | None, header: bool | None, strict: bool) -> Parallel:
    if not _may_be_table(path):
        what = "is no table: its first line has no tab; give columns divided by tabs, JSON lines, or CSV in a file named .csv"
        raise FormatError(path, f"{what}; {TWO_FILES}")
    begin = read_table_head(path)
    columns = columns_of(path, begin, asked, header)
    found = read_table(
        path,
        text=columns.source,
        second=columns.target,
        labelled=False,
        header=columns.header,
        kind=begin.kind,
        strict=strict,
    )
    pairs, skipped = (
        [TextPair(row.first.strip(), (row.second or "").strip(), row.where) for row in rows]
        for rows in (found.rows, found.skipped)
    )
    if not pairs:
        raise FormatError(path, f"has no row that can be used: of all {len(skipped)} a text is blank")
    return Parallel(pairs, skipped)


def _may_be_table(path: str | Path) -> bool:
    """Whether it is named as a table, or its first line has columns; what cannot be read is for the reader to tell."""
    if Path(path).name.lower().endswith(NAMED):
        return True
    try:
        first = next((line for _, line in numbered_lines(path) if line.strip()), None)
    except FormatError:
        return True
    return first is None or "\t" in first or first.startswith("{")
