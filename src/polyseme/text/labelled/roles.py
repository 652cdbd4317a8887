"""Semantic roles: sentences whose predicates have arguments (PropBank). Four formats, recognised by content.

    JSON lines    {"words": [...], "predicates": [{"index": 3, "tags": ["B-ARG0", ..., "B-V", "O"]}]}, one sentence per line
    lines         `3 From the AP comes ||| B-ARG2 I-ARG2 I-ARG2 B-V`: one predicate per line, its number from 0 (deep_srl)
    CoNLL-2005    columns: the word, others, a column that names predicates and has `-` elsewhere, then for each predicate a
                  column of brackets: `(A0*`, `*`, `*)`
    CoNLL-2012    columns: document, part, number, word, seven more, brackets for each predicate, coreference

All become BIO tags, one list per predicate, with the predicate itself as `V`. Continued arguments (`C-A1`) and references
(`R-A0`) keep their names. Nested arguments of one predicate are an error, because tags cannot express them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from polyseme.base.display import count
from polyseme.base.errors import FormatError
from polyseme.text.labelled.bad_rows import BadRows
from polyseme.text.labelled.numbered_lines import Line, are_strings, cells, json_object, numbered_lines

RoleFormat = Literal["jsonl", "lines", "conll2005", "conll2012"]
VERB = "V"
"""The role of the predicate itself."""
DIVIDER = "|||"
_BRACKETS = re.compile(r"(?:\(([^()*]+))?\*(?:([^()*]*)\))?")
_WORD, _FRAMES, _ARGUMENTS = 3, 7, 11  # columns of CoNLL-2012: the word, the predicate's sense, the first arguments
_EXPECTED = (
    "expected JSON lines with words and predicates, lines such as `1 Ann left ||| B-A0 B-V`, or columns of CoNLL-2005 or "
    "CoNLL-2012"
)

ConllLine = tuple[int, list[str]]


@dataclass(frozen=True, slots=True)
class Predicate:
    """A word with arguments, and the roles of all words for it."""

    position: int
    """The number of the word in its sentence, from 0."""
    tags: list[str]
    """BIO tags, one per word."""


@dataclass(frozen=True, slots=True)
class RoleSentence:
    """A sentence and its predicates, if any."""

    words: list[str]
    predicates: list[Predicate]
    lines: list[int] = field(default_factory=list, repr=False, compare=False)
    """The line of each word in its file, for messages."""


def read_roles(path: str | Path, *, strict: bool = True) -> list[RoleSentence]:
    """Read all sentences of a file (plain or compressed); with one predicate per line, each line is a sentence.

    `strict=False`: sentences that cannot be read are skipped and counted, and roles may begin with I.

    >>> import tempfile; file = Path(tempfile.mkdtemp(), "a.txt"); _ = file.write_text("Ann - (A0*)\\nleft leave (V*)\\n")
    >>> read_roles(file)
    [RoleSentence(words=['Ann', 'left'], predicates=[Predicate(position=1, tags=['B-A0', 'B-V'])])]
    """
    lines = list(numbered_lines(path))
    format = _format(next((line for _, line in lines if line.strip()), ""))
    bad = BadRows(path, strict=strict, unit="sentence")
    if format in ("jsonl", "lines"):
        read = _from_json if format == "jsonl" else _from_line
        full = [(number, line) for number, line in lines if line.strip()]
        sentences = list(bad.read_each(full, lambda number, line: read(f"{path}:{number}", number, line, bad)))
    else:
        columns = _from_2012 if format == "conll2012" else _from_2005
        groups = [(rows[0][0], rows) for rows in _sentences(lines, comments=format == "conll2012")]
        sentences = list(bad.read_each(groups, lambda _, rows: columns(path, _even(path, rows), bad)))
    bad.finish(len(sentences))
    if not sentences:
        raise FormatError(path, f"has no sentences; {_EXPECTED}")
    return sentences


def _format(line: str) -> RoleFormat:
    """Return the format of a file by its first line."""
    row = cells(line)
    if line.lstrip().startswith("{"):
        return "jsonl"
    if DIVIDER in row:
        return "lines"
    numbered = len(row) > _ARGUMENTS and row[1].isdecimal() and row[2].isdecimal()
    return "conll2012" if numbered or line.startswith("#begin document") else "conll2005"


# ---- one line per sentence or predicate


def _from_json(where: str, number: int, line: str, bad: BadRows) -> RoleSentence:
    values = json_object(where, line, "one sentence {...} per line")
    words = values.get("words")
    if not are_strings(words):
        raise FormatError(where, 'has no list of strings "words"')
    found = values.get("predicates")
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise FormatError(where, 'has no list of objects "predicates"; use [] for a sentence without predicates')
    return RoleSentence(words, [_predicate(where, words, each, bad) for each in found], [number] * len(words))


def _predicate(where: str, words: list[str], values: dict[str, Any], bad: BadRows) -> Predicate:
    position, tags = values.get("index"), values.get("tags")
    if type(position) is not int or not are_strings(tags):
        raise FormatError(where, 'has a predicate without a number "index" or a list of strings "tags"')
    return _checked(where, words, position, tags, bad)


def _from_line(where: str, number: int, line: str, bad: BadRows) -> RoleSentence:
    row = cells(line)
    position, *words = row[: row.index(DIVIDER)] if DIVIDER in row else ("",)
    if not position.isdecimal():
        what = f"begins with {line[:20]!r}; expected a number, words, {DIVIDER} and tags: 1 Ann left ||| B-A0 B-V"
        raise FormatError(where, what)
    tags = row[len(words) + 2 :]
    return RoleSentence(words, [_checked(where, words, int(position), tags, bad)], [number] * len(words))


def _checked(where: str, words: Sequence[str], position: int, tags: list[str], bad: BadRows) -> Predicate:
    """Return a predicate after checking its number and tags."""
    if not 0 <= position < len(words):
        raise FormatError(where, f"has a predicate at word {position}; the sentence has {len(words)} words, counted from 0")
    if len(tags) != len(words):
        raise FormatError(where, f"has {len(words)} words and {len(tags)} tags for the predicate {words[position]!r}")
    before = "O"
    for tag in tags:
        if tag != "O" and (tag[:2] not in ("B-", "I-") or len(tag) < 3):
            raise FormatError(where, f"has the tag {tag!r}; expected O, B-ROLE or I-ROLE")
        if tag[0] == "I" and before[2:] != tag[2:]:
            if bad.strict:
                raise FormatError(where, f"has the tag {tag!r} after {before!r}; a role begins with B-")
            bad.repaired += 1
        before = tag
    tags = [f"B{tag[1:]}" if tag[0] == "I" and old[2:] != tag[2:] else tag for old, tag in pairwise(["O", *tags])]
    if f"B-{VERB}" in tags and tags[position][2:] not in (VERB, f"C-{VERB}"):
        verb = tags.index(f"B-{VERB}")
        raise FormatError(where, f"has a predicate at word {position}, but its {VERB} at word {verb}; words are counted from 0")
    return Predicate(position, tags)


# ---- columns


def _sentences(lines: Sequence[Line], *, comments: bool) -> Iterator[list[ConllLine]]:
    """Yield the columns of each sentence."""
    rows: list[ConllLine] = []
    for number, line in [*lines, (0, "")]:
        row = cells(line)
        if not row or (comments and line.startswith("#")):
            if rows:
                yield rows
            rows = []
            continue
        rows.append((number, row))


def _even(path: str | Path, rows: list[ConllLine]) -> list[ConllLine]:
    """Return the rows of a sentence; all must have the same number of columns."""
    first, columns = rows[0][0], len(rows[0][1])
    for number, row in rows:
        if len(row) != columns:
            what = f"has {count(len(row), 'column')}; expected {columns} as in line {first} of the same sentence"
            raise FormatError(f"{path}:{number}", what)
    return rows


def _from_2005(path: str | Path, rows: list[ConllLine], bad: BadRows) -> RoleSentence:
    """The last column without brackets names the predicates; the columns after it belong to them, in order."""
    width = len(rows[0][1])
    names = next((column for column in range(width - 1, 0, -1) if any(not set(row[column]) & set("(*)") for _, row in rows)), 0)
    if not names:
        what = "has no column that names predicates (- on other words) between the words and the brackets"
        raise FormatError(f"{path}:{rows[0][0]}", f"{what}; {_EXPECTED}")
    positions = [position for position, (_, row) in enumerate(rows) if row[names] != "-"]
    if len(positions) != width - names - 1:
        what = f"{len(positions)} predicates in column {names} (from 0), but {width - names - 1} columns of brackets after it"
        raise FormatError(f"{path}:{rows[0][0]}", f"begins a sentence with {what}; each predicate needs one")
    words = [row[0] for _, row in rows]
    return _with_columns(path, rows, words, dict(zip(range(names + 1, width), positions, strict=True)), bad)


def _from_2012(path: str | Path, rows: list[ConllLine], bad: BadRows) -> RoleSentence:
    """After eleven columns each but the last belongs to a predicate, found by its V, else by its sense."""
    width = len(rows[0][1])
    if width <= _ARGUMENTS:
        raise FormatError(f"{path}:{rows[0][0]}", f"has {width} columns; CoNLL-2012 has at least {_ARGUMENTS + 1}")
    named = [position for position, (_, row) in enumerate(rows) if row[_FRAMES] != "-"]
    positions = {}
    for order, column in enumerate(range(_ARGUMENTS, width - 1)):
        verb = next((position for position, (_, row) in enumerate(rows) if row[column].startswith(f"({VERB}*")), None)
        if verb is None and len(named) != width - 1 - _ARGUMENTS:
            what = f"begins a sentence whose column {column} (from 0) has no predicate: no ({VERB}*)"
            raise FormatError(f"{path}:{rows[0][0]}", f"{what}, and {len(named)} senses for {width - 1 - _ARGUMENTS} columns")
        positions[column] = named[order] if verb is None else verb
    return _with_columns(path, rows, [row[_WORD] for _, row in rows], positions, bad)


def _with_columns(
    path: str | Path, rows: list[ConllLine], words: list[str], positions: dict[int, int], bad: BadRows
) -> RoleSentence:
    """Return a sentence; `positions` gives the predicate of each column of brackets."""
    found = []
    for column, position in positions.items():
        tags = _tags(path, [(number, row[column]) for number, row in rows])
        found.append(_checked(f"{path}:{rows[position][0]}", words, position, tags, bad))
    return RoleSentence(words, found, [number for number, _ in rows])


def _tags(path: str | Path, column: Sequence[Line]) -> list[str]:
    """Return brackets as BIO tags.

    >>> _tags("a", [(1, "(A0*"), (2, "*)"), (3, "(V*)"), (4, "*")])
    ['B-A0', 'I-A0', 'B-V', 'O']
    """
    tags, role = [], None  # the open role
    for number, cell in column:
        match = _BRACKETS.fullmatch(cell)
        if match is None:
            what = f"has {cell[:20]!r} in a column of arguments; expected (ROLE*, *, *) or (ROLE*)"
            raise FormatError(f"{path}:{number}", what)
        begun, ended = match.groups()
        if begun and role:
            raise FormatError(f"{path}:{number}", f"begins {begun} inside {role}; arguments of one predicate must not overlap")
        new = role or begun
        if ended is not None and (new is None or ended not in ("", new)):
            raise FormatError(f"{path}:{number}", f"closes a bracket with {cell[:20]!r}, but {new or 'none'} is open")
        tags.append(f"{'B' if begun else 'I'}-{new}" if new else "O")
        role = None if ended is not None else new
    if role:
        raise FormatError(f"{path}:{column[-1][0]}", f"ends a sentence with an open bracket of {role}; close it with *)")
    return tags
