"""Tagged sentences: CoNLL columns, character files such as BMES, and CoNLL-U.

In a CoNLL file a line is a word and its tags, separated by spaces or tabs, and a blank line ends a sentence; a line whose
first column is `-DOCSTART-` begins a document. CoNLL-U (Universal Dependencies) is recognised by content: ten columns
separated by tabs, the first a number. Only there do columns have names and lines that begin with `#` are comments (`# newdoc`
begins a document); multiword tokens (`1-2`) and empty nodes (`1.1`) are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from polyseme.base.errors import FormatError, PolysemeError, UsageError, arg, nearest
from polyseme.text.labelled.numbered_lines import Line, cells, numbered_lines

NAMES = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
"""The columns of CoNLL-U."""
_NUMBER = re.compile(r"\d+(?:[-.]\d+)?")
_DOCUMENT = re.compile(r"#\s*newdoc\b")

Column = int | str | None
ConllLine = tuple[int, list[str] | None]
"""The number of a line and its columns; [] where a sentence ends, None where a document begins."""


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """A sentence: words and a tag for each."""

    words: list[str]
    tags: list[str]
    lines: list[int] = field(default_factory=list, repr=False, compare=False)
    """The line of each word in its file, for messages."""
    document: int = field(default=0, repr=False, compare=False)
    """The number of its document in the file."""


def read_conll(path: str | Path, *, column: Column = None) -> list[TaggedSentence]:
    """Read all sentences of a file (plain or compressed), with the tags of one column.

    `column`: a number from 0, or from -1 backwards; in CoNLL-U also a name (upos, xpos, feats, deprel ...). Default: upos in
    CoNLL-U, else the last column.

    >>> import tempfile; file = Path(tempfile.mkdtemp(), "a.bmes"); _ = file.write_text("吴 B-NAME\\n重 E-NAME\\n\\n， O\\n")
    >>> read_conll(file)[0]
    TaggedSentence(words=['吴', '重'], tags=['B-NAME', 'E-NAME'])
    """
    lines = list(numbered_lines(path))
    conllu = _is_conllu(line for _, line in lines)
    rows = _conllu_rows(path, lines) if conllu else _plain_rows(path, lines)
    word, tag = int(conllu), _tag_column(path, column, conllu)
    sentences: list[TaggedSentence] = []
    fresh, document = True, 0
    for number, row in rows:
        if not row:
            fresh, document = fresh or row is not None, document + (row is None)
            continue
        if not -len(row) <= tag < len(row):
            raise FormatError(f"{path}:{number}", f"has {len(row)} columns; {arg('column', tag)} does not exist")
        if fresh:
            sentences.append(TaggedSentence([], [], document=document))
            fresh = False
        sentences[-1].words.append(row[word])
        sentences[-1].tags.append(row[tag])
        sentences[-1].lines.append(number)
    if not sentences:
        raise FormatError(path, "has no sentences; expected a word and its tags on each line")
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


def _tag_column(path: str | Path, column: Column, conllu: bool) -> int:
    if isinstance(column, int):
        return column
    if column is None:
        return NAMES.index("upos") if conllu else -1
    if not conllu:
        what = f"{path} is not CoNLL-U, so its columns have no names"
        raise UsageError(f"{what}: {arg('column', column)} must be a number (from 0, or -1)")
    if column.lower() not in NAMES:
        raise UsageError(f"{path}: CoNLL-U has no column {column!r}{nearest(column.lower(), NAMES)}")
    return NAMES.index(column.lower())


def _conllu_rows(path: str | Path, lines: list[Line]) -> Iterator[ConllLine]:
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
            given = f"{len(row)} columns, the first {row[0][:20]!r}"
            raise FormatError(f"{path}:{number}", f"has {given}; expected {len(NAMES)} separated by tabs, the first a number")
        if row[0].isdecimal():
            yield number, row


def _plain_rows(path: str | Path, lines: list[Line]) -> Iterator[ConllLine]:
    first: tuple[int, int] | None = None
    for number, line in lines:
        row = cells(line)
        if not row or row[0] == "-DOCSTART-":
            yield number, []
            if row:
                yield number, None
            continue
        if len(row) < 2:
            raise FormatError(f"{path}:{number}", f"has one column, {row[0][:20]!r}; expected a word and at least one tag")
        first = first or (number, len(row))
        if len(row) != first[1]:
            raise FormatError(f"{path}:{number}", f"has {len(row)} columns; expected {first[1]} as in line {first[0]}")
        yield number, row


def refuse_one_tag(sentences: Sequence[TaggedSentence], who: str) -> None:
    """Raise an error if all words have the same tag: there is nothing to learn."""
    tags = [tag for sentence in sentences for tag in sentence.tags]
    if len(set(tags)) == 1:
        empty = " (_ is an empty column)" if tags[0] == "_" else ""
        given = f"all {len(tags):,} words have the tag {tags[0]!r}{empty}"
        raise PolysemeError(f"{given}; {who} needs two or more: choose another {arg('column')}, or other data")
