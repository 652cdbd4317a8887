"""Documents with coreference clusters. Two formats, recognised by content.

    JSON lines    {"doc_key": ..., "sentences": [[...], ...], "speakers": [[...], ...], "clusters": [[[3, 4], [9, 9]], ...]},
                  one document per line; a mention is its first and last word, counted through the document (e2e-coref)
    CoNLL-2012    columns: document, part, number, word, five more, speaker, others, and last the brackets of clusters:
                  `(0`, `0)`, `(1)|(0`, `-`; each part is a document of its own

A mention in two clusters is an error of the data (OntoGUM has a few): it stays in the first, with a warning. A speaker that is
missing or "-" is unknown.
"""

from __future__ import annotations

import bisect
import itertools
import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from polyseme.base.errors import FormatError
from polyseme.text.labelled.bad_rows import BadRows
from polyseme.text.labelled.numbered_lines import Line, are_strings, cells, json_object, numbered_lines, shown

_log = logging.getLogger(__name__)
Mention = tuple[int, int]
"""The first and the last word, counted from 0 through the document."""
_BRACKET = re.compile(r"(\()?([^()|\s]+)(\))?")
_WORD, _SPEAKER, _MIN_COLUMNS = 3, 9, 12  # columns of CoNLL-2012
_UNKNOWN = ("", "-")
_EXPECTED = 'expected JSON lines with "sentences" and "clusters", or columns of CoNLL-2012'

ConllLine = tuple[int, list[str]]


@dataclass(frozen=True, slots=True)
class CoreferenceDocument:
    """A document in sentences, and its coreference clusters."""

    sentences: list[list[str]]
    clusters: list[list[Mention]]
    """The mentions of each entity, in the order of the text; none for a new text."""
    speakers: list[str] = field(default_factory=list)
    """The speaker of each word; "": unknown. Empty: all unknown."""
    key: str = ""
    """Its name."""
    where: int | None = field(default=None, repr=False, compare=False)
    """The first line in its file, for messages."""

    @property
    def words(self) -> list[str]:
        """The words of all sentences."""
        return [word for sentence in self.sentences for word in sentence]

    def sentence_slice(self, begin: int, count: int) -> CoreferenceDocument:
        """Return some of the sentences, with the mentions in them.

        >>> CoreferenceDocument([["Ann", "ran"], ["She", "fell"]], [[(0, 0), (2, 2)]]).sentence_slice(1, 1)
        CoreferenceDocument(sentences=[['She', 'fell']], clusters=[[(0, 0)]], speakers=[], key='')
        """
        chosen = self.sentences[begin : begin + count]
        start = sum(map(len, self.sentences[:begin]))
        end = start + sum(map(len, chosen))
        inside = [[(a - start, b - start) for a, b in cluster if start <= a and b < end] for cluster in self.clusters]
        kept = [cluster for cluster in inside if cluster]
        return replace(self, sentences=chosen, clusters=kept, speakers=self.speakers[start:end])


def read_coreference(path: str | Path, *, strict: bool = True) -> list[CoreferenceDocument]:
    """Read all documents of a file (plain or compressed); with `strict=False`, those that cannot be read are skipped.

    >>> import tempfile; file = Path(tempfile.mkdtemp(), "a.jsonl")
    >>> _ = file.write_text('{"sentences": [["Ann", "hurt", "herself"]], "clusters": [[[0, 0], [2, 2]]]}')
    >>> read_coreference(file)
    [CoreferenceDocument(sentences=[['Ann', 'hurt', 'herself']], clusters=[[(0, 0), (2, 2)]], speakers=[], key='')]
    """
    lines, bad = list(numbered_lines(path)), BadRows(path, strict=strict, unit="document")
    if next((line for _, line in lines if line.strip()), "").lstrip().startswith("{"):
        full = [(number, line) for number, line in lines if line.strip()]
        read = list(bad.read_each(full, lambda number, line: _from_json(f"{path}:{number}", number, line)))
    else:
        parts = [(sentences[0][0][0], sentences) for sentences in _documents(lines)]
        read = list(bad.read_each(parts, lambda _, sentences: _from_columns(path, sentences)))
    bad.finish(len(read))
    if not read:
        raise FormatError(path, f"has no documents; {_EXPECTED}")
    documents = [_once(document) for document in read]
    before, after = (sum(len(cluster) for each in some for cluster in each.clusters) for some in (read, documents))
    if repeated := [each for document in read for each in _repeated(document)]:
        message = "%s: %d of %d mentions occur twice in their cluster and count once; the first: %s"
        _log.warning(message, path, len(repeated), before, repeated[0])
    if twice := before - after - len(repeated):
        _log.warning("%s: %d of %d mentions are in two clusters; each stays in the first", path, twice, before)
    if torn := [each for document in documents for each in _torn(document)]:
        message = "%s: %d of %d mentions cross the end of a sentence and cannot be predicted; the first: %s"
        _log.warning(message, path, len(torn), after, torn[0])
    return documents


def _repeated(document: CoreferenceDocument) -> Iterator[str]:
    """Yield where mentions repeat one of their own cluster."""
    for cluster in document.clusters:
        for (first, last), count in Counter(cluster).items():
            yield from [f"line {document.where}, words {first} to {last}"] * (count - 1)


def _torn(document: CoreferenceDocument) -> Iterator[str]:
    """Yield where mentions cross the end of a sentence."""
    ends = list(itertools.accumulate(map(len, document.sentences)))
    for first, last in (mention for cluster in document.clusters for mention in cluster):
        if bisect.bisect_right(ends, first) != bisect.bisect_right(ends, last):
            yield f"line {document.where}, words {first} to {last}"


def _once(document: CoreferenceDocument) -> CoreferenceDocument:
    """Put every mention into one cluster, clusters and mentions in the order of the text."""
    seen: set[Mention] = set()
    clusters = []
    for cluster in document.clusters:
        new = sorted(set(cluster) - seen)
        seen.update(new)
        if new:
            clusters.append(new)
    return replace(document, clusters=sorted(clusters))


# ---- JSON lines


def _from_json(where: str, number: int, line: str) -> CoreferenceDocument:
    values = json_object(where, line, "one document {...} per line")
    if not _are_texts(values.get("sentences")):
        raise FormatError(where, 'has no "sentences", a list of lists of strings: [["Ann", "ran"], ["She", "fell"]]')
    sentences: list[list[str]] = values["sentences"]
    words = sum(map(len, sentences))
    if not words:
        raise FormatError(where, 'has no words in its "sentences"')
    key = values.get("doc_key", "")
    if not isinstance(key, str):
        raise FormatError(where, f'has {shown(key)} for "doc_key"; expected a string')
    return CoreferenceDocument(sentences, _clusters(where, values, words), _speakers(where, values, sentences), key, number)


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(map(are_strings, values))


def _clusters(where: str, values: dict[str, Any], words: int) -> list[list[Mention]]:
    given = values.get("clusters")
    if not isinstance(given, list) or not all(isinstance(cluster, list) for cluster in given):
        raise FormatError(where, 'has no "clusters", a list of lists of mentions; use [] for a document without clusters')
    return [[_mention(where, each, words) for each in cluster] for cluster in given]


def _mention(where: str, given: Any, words: int) -> Mention:
    if not isinstance(given, list) or len(given) < 2 or any(type(each) is not int for each in given[:2]):
        raise FormatError(where, f"has the mention {shown(given)}; expected its first and last word, such as [3, 4]")
    first, last = given[:2]
    if not 0 <= first <= last < words:
        raise FormatError(where, f"has the mention {shown(given)}; the document has {words} words, counted from 0")
    return first, last


def _speakers(where: str, values: dict[str, Any], sentences: Sequence[Sequence[str]]) -> list[str]:
    given = values.get("speakers")
    if given is None:
        return []
    if not _are_texts(given) or [len(each) for each in given] != [len(each) for each in sentences]:
        raise FormatError(where, 'has "speakers" that do not fit its "sentences"; expected one per word, in the same lists')
    return _known(name for sentence in given for name in sentence)


def _known(names: Iterator[str]) -> list[str]:
    found = ["" if name in _UNKNOWN else name for name in names]
    return found if any(found) else []


# ---- columns


def _documents(lines: Sequence[Line]) -> Iterator[list[list[ConllLine]]]:
    """Yield the sentences of each document as columns; a # line, another document or another part ends it."""
    sentences: list[list[ConllLine]] = [[]]
    for number, line in [*lines, (0, "#")]:
        row = cells(line)
        comment = line.startswith("#")
        before = next((rows[-1][1] for rows in reversed(sentences) if rows), None)
        if before is not None and (comment or (row and row[:2] != before[:2])):
            yield [rows for rows in sentences if rows]
            sentences = [[]]
        if comment:
            continue
        if not row:
            sentences.append([])
            continue
        sentences[-1].append((number, row))


def _from_columns(path: str | Path, sentences: list[list[ConllLine]]) -> CoreferenceDocument:
    rows = [row for sentence in sentences for row in sentence]
    for number, row in rows:
        if len(row) < _MIN_COLUMNS or not row[1].isdecimal():
            what = f"has {len(row)} columns, {shown(' '.join(row))}; CoNLL-2012 has at least {_MIN_COLUMNS}"
            raise FormatError(f"{path}:{number}", what)
    number, first = rows[0]
    return CoreferenceDocument(
        [[row[_WORD] for _, row in sentence] for sentence in sentences],
        _bracketed(path, [(line, row[-1]) for line, row in rows]),
        _known(row[_SPEAKER] for _, row in rows),
        f"{first[0]}_{int(first[1])}",
        number,
    )


def _bracketed(path: str | Path, column: Sequence[Line]) -> list[list[Mention]]:
    """Return the clusters that brackets in the last column give.

    >>> _bracketed("a", [(1, "(7|(0)"), (2, "-"), (3, "7)|(0"), (4, "0)")])
    [[(0, 0), (2, 3)], [(0, 2)]]
    """
    clusters: dict[str, list[Mention]] = {}
    open_at: dict[str, list[tuple[int, int]]] = {}  # position and line of the open brackets of each cluster
    for position, (number, cell) in enumerate(column):
        for bracket in [] if cell in ("-", "_", "*") else cell.split("|"):
            match = _BRACKET.fullmatch(bracket)
            if match is None or not (match[1] or match[3]):
                what = f"has {shown(cell)} in its last column; expected brackets of clusters, such as (0), (0|(1), 0) or -"
                raise FormatError(f"{path}:{number}", what)
            begins = open_at.setdefault(match[2], [])
            if match[1]:
                begins.append((position, number))
            if match[3] and not begins:
                raise FormatError(f"{path}:{number}", f"ends a mention of cluster {match[2]}, but none is open")
            if match[3]:
                clusters.setdefault(match[2], []).append((begins.pop()[0], position))
    for name, begins in open_at.items():
        if begins:
            raise FormatError(f"{path}:{begins[0][1]}", f"begins a mention of cluster {name} that does not end in its document")
    return [sorted(cluster) for cluster in clusters.values()]
