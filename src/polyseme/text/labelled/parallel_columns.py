"""Which columns of a table hold a source and its target, and whether its first row names them.

Told here and not as for tables with labels: any word may be a text to translate, so that only two names that belong together
make a header.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from polyseme.base.errors import FormatError, UsageError
from polyseme.text.labelled.tables import TableHead

Column = str | int
NAMES = (
    *(("source", "target"), ("src", "tgt"), ("input", "output")),
    *(("document", "summary"), ("article", "summary"), ("text", "summary")),
)
"""Well-known names of the two columns, in small letters."""
_CODES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo es "
    "et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki "
    "kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no "
    "nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te "
    "tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
LANGUAGES = frozenset(_CODES.split())
"""The codes of ISO 639-1."""
SAY_WHICH = "say which with --source and --target"


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns are read."""

    source: int
    target: int
    header: bool
    """Whether the first row names them, and is no pair."""


def column_of(name: str) -> Column:
    """A column as options name it: by number where it is one."""
    return int(name) if name.removeprefix("-").isdecimal() else name


def columns_of(path: str | Path, begin: TableHead, asked: tuple[Column, Column] | None, header: bool | None) -> Columns:
    """Those that are asked for, or have well-known names, or are the first two; `read_parallel` has the rules."""
    named = begin.kind == "jsonl" or (_is_header(path, begin, asked) if header is None else header)
    if asked is None:
        source, target = _named_columns(path, begin) if named else _first_columns(path, begin)
    else:
        source, target = (
            _place(path, begin, role, column, named) for role, column in zip(("source", "target"), asked, strict=True)
        )
    if source == target:
        raise UsageError(f"{path}: source and target are both column {begin.cells[source]!r}; give two (--source, --target)")
    return Columns(source, target, named)


def _is_header(path: str | Path, begin: TableHead, asked: tuple[Column, Column] | None) -> bool:
    """Whether the first row names columns, as `read_parallel` says; an error where it may."""
    if asked is not None and any(isinstance(column, str) for column in asked):
        return True
    if _known_places(begin.cells):
        return True
    codes = _language_places(begin.cells)
    if asked is not None or codes is None:
        return False
    if not _longer(begin.others, codes):
        given = " and ".join(repr(begin.cells[place].strip()) for place in codes)
        found = f"may be a header or a pair: {given} are codes of languages, and most rows behind it are no longer than a word"
        raise FormatError(f"{path}:{begin.where}", f"{found}; say which it is: --header or --no-header (header=True or False)")
    return True


def _known_places(cells: Sequence[str]) -> list[tuple[int, int]]:
    """Where two well-known names stand that belong together."""
    names = [cell.strip().lower() for cell in cells]
    places = itertools.permutations(range(len(names)), 2)
    return [(one, other) for one, other in places if (names[one], names[other]) in NAMES]


def _language_places(cells: Sequence[str]) -> tuple[int, int] | None:
    """Where two codes of languages stand, if exactly two do."""
    names = [cell.strip() for cell in cells]
    known = LANGUAGES if len(names) == 2 else LANGUAGES - {"id"}
    places = [place for place, name in enumerate(names) if name in known]
    return (places[0], places[1]) if len({names[place] for place in places}) == len(places) == 2 else None


def _longer(rows: Sequence[Sequence[str]], places: tuple[int, int]) -> bool:
    """Whether most rows have a text of several words in one of two columns."""
    return 2 * sum(any(len(row[place].split()) > 1 for place in places if place < len(row)) for row in rows) > len(rows)


def _named_columns(path: str | Path, begin: TableHead) -> tuple[int, int]:
    """The columns whose names are known; codes of languages have an order in a row alone."""
    found = _known_places(begin.cells)
    codes = None if found or begin.kind == "jsonl" else _language_places(begin.cells)
    if codes is not None:
        return codes
    if len(found) != 1:
        several = "several pairs of" if found else "no two"
        known = ", ".join("/".join(pair) for pair in NAMES)
        names = f"well-known names of source and target ({known}) among its {_names_of(begin)}"
        raise UsageError(f"{path}:{begin.where}: has {several} {names}; {SAY_WHICH}")
    return found[0]


def _first_columns(path: str | Path, begin: TableHead) -> tuple[int, int]:
    if len(begin.cells) < 2:
        signs = "divided by tabs, or in a file named .csv by commas or semicolons"
        found = f"has one column, {begin.cells[0][:20]!r}; expected a source and a target"
        raise FormatError(f"{path}:{begin.where}", f"{found}, {signs}")
    return 0, 1


def _place(path: str | Path, begin: TableHead, role: str, column: Column, named: bool) -> int:
    """The number of a column that was asked for."""
    width = len(begin.cells)
    if isinstance(column, int):
        if not -width <= column < width:
            raise UsageError(
                f"{path} has {width} columns, and {role} is {column}; give a number from 0 to {width - 1} (--{role})"
            )
        return column % width
    if not named:
        way = "give a number from 0, or leave out --no-header (header=False)"
        raise UsageError(f"{path}: {role} is {column!r}, but without a header no column has a name; {way}")
    cells = [cell.strip() for cell in begin.cells]
    for names, name in ((cells, column), ([cell.lower() for cell in cells], column.lower())):
        if names.count(name) == 1:
            return names.index(name)
    how_many = "several columns" if column in cells else "no column"
    way = "" if begin.kind == "jsonl" else " or, if this row is no header, by number: --source 0 --target 1"
    found = f"has {how_many} {column!r} for the {role} among its {_names_of(begin)}"
    raise UsageError(f"{path}:{begin.where}: {found}; {SAY_WHICH}, by name{way}")


def _names_of(begin: TableHead) -> str:
    """What stands where names are looked for: a row of TSV may be none of names."""
    return f"{'keys' if begin.kind == 'jsonl' else 'cells'} {', '.join(repr(cell[:20]) for cell in begin.cells)}"
