"""Which columns of a table hold the source and the target, and whether its first row names them.

The rules differ from those for labelled tables: any word may be a text to translate, so only two names that belong together
make a header.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from polyseme.base.errors import FormatError, UsageError, arg
from polyseme.text.labelled.column_names import Column, column_number, column_of
from polyseme.text.labelled.tables import TableHead

NAMES = (
    *(("source", "target"), ("src", "tgt"), ("input", "output")),
    *(("document", "summary"), ("article", "summary"), ("text", "summary")),
)
"""Well-known names of the two columns, in lower case."""
_CODES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo es "
    "et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki "
    "kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no "
    "nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te "
    "tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
LANGUAGES = frozenset(_CODES.split())
"""The language codes of ISO 639-1."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns are read."""

    source: int
    target: int
    header: bool
    """Whether the first row names them."""


def columns_of(path: str | Path, head: TableHead, asked: tuple[str, str] | None, header: bool | None) -> Columns:
    """Return the requested columns, those with well-known names, or the first two; see `read_parallel`."""
    requested = tuple(map(column_of, asked or ()))
    named = head.format == "jsonl" or (_is_header(path, head, requested) if header is None else header)
    if not requested:
        source, target = _named_columns(path, head) if named else _first_columns(path, head)
    else:
        names, where = head.cells if named else None, f"{path}:{head.where}"
        source, target = (
            column_number(where, role, column, names, len(head.cells))
            for role, column in zip(("source", "target"), requested, strict=True)
            if column is not None
        )
    if source == target:
        raise UsageError(f"{path}: {arg('source')} and {arg('target')} are the same column, {head.cells[source]!r}; give two")
    return Columns(source, target, named)


def _is_header(path: str | Path, head: TableHead, requested: Sequence[Column]) -> bool:
    """Whether the first row names columns (see `read_parallel`); an error if it is not clear."""
    if any(isinstance(column, str) for column in requested) or _known_pairs(head.cells):
        return True
    codes = _language_columns(head.cells)
    if requested or codes is None:
        return False
    if not _longer(head.others, codes):
        given = " and ".join(repr(head.cells[column].strip()) for column in codes)
        doubt = f"may be a header or a pair: {given} are language codes, and most other rows are single words"
        raise FormatError(f"{path}:{head.where}", f"{doubt}; give {arg('header', True)} or {arg('header', False)}")
    return True


def _known_pairs(cells: Sequence[str]) -> list[tuple[int, int]]:
    """Return the columns of two well-known names that belong together."""
    names = [cell.strip().lower() for cell in cells]
    columns = itertools.permutations(range(len(names)), 2)
    return [(one, other) for one, other in columns if (names[one], names[other]) in NAMES]


def _language_columns(cells: Sequence[str]) -> tuple[int, int] | None:
    """Return the columns of two language codes, if there are exactly two."""
    names = [cell.strip() for cell in cells]
    known = LANGUAGES if len(names) == 2 else LANGUAGES - {"id"}
    columns = [column for column, name in enumerate(names) if name in known]
    return (columns[0], columns[1]) if len({names[column] for column in columns}) == len(columns) == 2 else None


def _longer(rows: Sequence[Sequence[str]], columns: tuple[int, int]) -> bool:
    """Whether most rows have a text of several words in one of two columns."""
    return 2 * sum(any(len(row[column].split()) > 1 for column in columns if column < len(row)) for row in rows) > len(rows)


def _named_columns(path: str | Path, head: TableHead) -> tuple[int, int]:
    """Return the columns with known names; language codes have an order only in a row."""
    found = _known_pairs(head.cells)
    codes = None if found or head.format == "jsonl" else _language_columns(head.cells)
    if codes is not None:
        return codes
    if len(found) != 1:
        several = "several pairs of" if found else "no two"
        known = ", ".join("/".join(pair) for pair in NAMES)
        given = f"{'keys' if head.format == 'jsonl' else 'cells'} {', '.join(repr(cell[:20]) for cell in head.cells)}"
        names = f"well-known names of source and target ({known}) among its {given}"
        raise UsageError(f"{path}:{head.where}: has {several} {names}; give {arg('source')} and {arg('target')}")
    return found[0]


def _first_columns(path: str | Path, head: TableHead) -> tuple[int, int]:
    if len(head.cells) < 2:
        given = f"has one column, {head.cells[0][:20]!r}; expected a source and a target"
        raise FormatError(
            f"{path}:{head.where}", f"{given}, separated by tabs, or in a .csv file by commas, semicolons or bars"
        )
    return 0, 1
