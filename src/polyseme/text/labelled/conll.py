"""Sentences whose words carry tags: CoNLL columns, character files such as BMES, and CoNLL-U.

In a CoNLL file a line is a word and its tags, divided by blanks or tabs, and a blank line ends a sentence; a line whose first
column is `-DOCSTART-` begins a document and is no word. CoNLL-U (Universal Dependencies) is told by its content: ten columns
divided by tabs, of which the first is a number. Only there do columns have names, lines that begin with `#` are comments (and
begin a document with `# newdoc`), and ranges of words that are written as one (`1-2`) and words that are not written (`1.1`)
are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from polyseme.base.errors import FormatError, PolysemeError, UsageError, nearest
from polyseme.text.labelled.numbered_lines import numbered_lines

NAMES = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
"""The columns of CoNLL-U."""
_NUMBER = re.compile(r"\d+(?:[-.]\d+)?")
_DOCUMENT = re.compile(r"#\s*newdoc\b")
_BLANKS = re.compile(r"[ \t]+")

Column = int | str | None
Line = tuple[int, str]
Row = tuple[int, list[str] | None]
"""The number of a line and its columns; none where a sentence ends, None where a document begins."""


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """A sentence: words, and a tag for each."""

    words: list[str]
    tags: list[str]
    lines: list[int] = field(default_factory=list, repr=False, compare=False)
    """Where each word stands in its file, for messages."""
    document: int = field(default=0, repr=False, compare=False)
    """The number of its document in the file."""


def read_conll(path: str | Path, *, column: Column = None) -> list[TaggedSentence]:
    """All sentences of a file (plain, gzip or xz), with the tags of one column.

    `column`: a number from 0, or from -1 backwards; in CoNLL-U also a name (upos, xpos, feats, deprel ...). Not given:
    upos in CoNLL-U, else the last column.

    >>> import tempfile; file = Path(tempfile.mkdtemp(), "a.bmes"); _ = file.write_text("吴 B-NAME\\n重 E-NAME\\n\\n， O\\n")
    >>> read_conll(file)[0]
    TaggedSentence(words=['吴', '重'], tags=['B-NAME', 'E-NAME'])
    """
    lines = list(numbered_lines(path))
    if _is_conllu(line for _, line in lines):
        rows, place, word = _conllu_rows(path, lines), _conllu_place(path, column), 1
    else:
        rows, place, word = _plain_rows(path, lines), _plain_place(path, column), 0
    sentences: list[TaggedSentence] = []
    fresh, document = True, 0
    for number, row in rows:
        if row is None:
            document += 1
            continue
        if not row:
            fresh = True
            continue
        if not -len(row) <= place < len(row):
            raise FormatError(f"{path}:{number}", f"has {len(row)} columns; column {place} was asked for")
        if fresh:
            sentences.append(TaggedSentence([], [], document=document))
            fresh = False
        sentences[-1].words.append(row[word])
        sentences[-1].tags.append(row[place])
        sentences[-1].lines.append(number)
    if not sentences:
        raise FormatError(path, "holds no sentences; expected a word and its tags on each line")
    return sentences


def _is_conllu(lines: Iterable[str]) -> bool:
    """Whether the first line that is neither blank nor a comment looks like CoNLL-U."""
    for line in lines:
        row = line.split("\t")
        if len(row) == len(NAMES) and _NUMBER.fullmatch(row[0]):
            return True
        if line.strip(" \t") and not line.startswith("#"):
            return False
    return False


def _conllu_place(path: str | Path, column: Column) -> int:
    if column is None:
        return NAMES.index("upos")
    if isinstance(column, int):
        return column
    if column.lower() not in NAMES:
        raise UsageError(f"{path}: CoNLL-U has no column {column!r}{nearest(column.lower(), NAMES)}")
    return NAMES.index(column.lower())


def _plain_place(path: str | Path, column: Column) -> int:
    if isinstance(column, str):
        raise UsageError(
            f"{path} is no CoNLL-U, so its columns have no names: give column {column!r} as a number from 0, or -1"
        )
    return -1 if column is None else column


def _conllu_rows(path: str | Path, lines: list[Line]) -> Iterator[Row]:
    for number, line in lines:
        if not line.strip(" \t"):
            yield number, []
            continue
        if line.startswith("#"):
            if _DOCUMENT.match(line):
                yield number, None
            continue
        row = line.split("\t")
        if len(row) != len(NAMES) or not _NUMBER.fullmatch(row[0]):
            found = f"{len(row)} columns, the first {row[0][:20]!r}"
            raise FormatError(f"{path}:{number}", f"has {found}; expected {len(NAMES)} divided by tabs, the first a number")
        if row[0].isdecimal():
            yield number, row


def _plain_rows(path: str | Path, lines: list[Line]) -> Iterator[Row]:
    first: tuple[int, int] | None = None
    for number, line in lines:
        row = _BLANKS.split(line.strip(" \t"))
        if row == [""] or row[0] == "-DOCSTART-":
            yield number, []
            if row[0]:
                yield number, None
            continue
        if len(row) < 2:
            raise FormatError(f"{path}:{number}", f"has one column, {row[0][:20]!r}; expected a word and at least one tag")
        first = first or (number, len(row))
        if len(row) != first[1]:
            raise FormatError(f"{path}:{number}", f"has {len(row)} columns; expected {first[1]} as in line {first[0]}")
        yield number, row


def refuse_one_tag(sentences: Sequence[TaggedSentence], who: str) -> None:
    """An error where all words have the same tag: whoever learns it is always right, and has learned nothing."""
    tags = [tag for sentence in sentences for tag in sentence.tags]
    if len(set(tags)) == 1:
        empty = "; _ stands for an empty column" if tags[0] == "_" else ""
        found = f"all {len(tags):,} words have the tag {tags[0]!r}{empty}"
        raise PolysemeError(f"{found}; {who} needs two tags or more: name another column (--column), or give other data")
