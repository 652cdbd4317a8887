"""Documents whose mentions of one thing lie in clusters (coreference). Two kinds of files, told apart by content.

    JSON lines    {"doc_key": ..., "sentences": [[...], ...], "speakers": [[...], ...], "clusters": [[[3, 4], [9, 9]], ...]},
                  one document a line; a mention is its first and last word, from 0 through the document (e2e-coref)
    CoNLL-2012    columns: document, part, number, word, five more, speaker, what else there is, and last the brackets of
                  clusters: `(0`, `0)`, `(1)|(0`, `-`; each part is a document of its own

A mention that two clusters hold is a slip of its data (OntoGUM has a few): it stays in the first, and the log tells. A speaker
that is not given, or "-", is not known.
"""

from __future__ import annotations

import bisect
import itertools
import json
import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from polyseme.base.errors import FormatError
from polyseme.text.labelled.numbered_lines import numbered_lines

_log = logging.getLogger(__name__)
Mention = tuple[int, int]
"""The first and the last word, counted from 0 through the document."""
_BLANKS = re.compile(r"[ \t]+")  # a blank that does not break belongs to its word
_BRACKET = re.compile(r"(\()?([^()|\s]+)(\))?")
_WORD, _SPEAKER, _FEWEST = 3, 9, 12  # columns of CoNLL-2012: the word, its speaker; how many there are at least
_NOBODY = ("", "-")
_EXPECTED = 'expected JSON lines with "sentences" and "clusters", or columns of CoNLL-2012'

Line = tuple[int, str]
Row = tuple[int, list[str]]


@dataclass(frozen=True, slots=True)
class CoreferenceDocument:
    """A text in sentences, and what in it means the same."""

    sentences: list[list[str]]
    clusters: list[list[Mention]]
    """For each thing its mentions, in the order of the text; of a new text none are known."""
    speakers: list[str] = field(default_factory=list)
    """Of each word of the document; "": not known. Empty: of no word."""
    key: str = ""
    """Its name."""
    where: int | None = field(default=None, repr=False, compare=False)
    """The line of its file where it begins, for messages."""

    @property
    def words(self) -> list[str]:
        """The words of all sentences."""
        return [word for sentence in self.sentences for word in sentence]

    def part(self, begin: int, count: int) -> CoreferenceDocument:
        """Some sentences, with the mentions that stand in them.

        >>> CoreferenceDocument([["Ann", "ran"], ["She", "fell"]], [[(0, 0), (2, 2)]]).part(1, 1)
        CoreferenceDocument(sentences=[['She', 'fell']], clusters=[[(0, 0)]], speakers=[], key='')
        """
        chosen = self.sentences[begin : begin + count]
        start = sum(map(len, self.sentences[:begin]))
        end = start + sum(map(len, chosen))
        inside = [[(a - start, b - start) for a, b in cluster if start <= a and b < end] for cluster in self.clusters]
        return CoreferenceDocument(
            chosen, [cluster for cluster in inside if cluster], self.speakers[start:end], self.key, self.where
        )


def read_coreference(path: str | Path) -> list[CoreferenceDocument]:
    """All documents of a file (plain, gzip or xz).

    >>> import tempfile; file = Path(tempfile.mkdtemp(), "a.jsonl")
    >>> _ = file.write_text('{"sentences": [["Ann", "hurt", "herself"]], "clusters": [[[0, 0], [2, 2]]]}')
    >>> read_coreference(file)
    [CoreferenceDocument(sentences=[['Ann', 'hurt', 'herself']], clusters=[[(0, 0), (2, 2)]], speakers=[], key='')]
    """
    lines = [(number, line) for number, line in numbered_lines(path)]
    if next((line for _, line in lines if line.strip()), "").lstrip().startswith("{"):
        found = [_from_json(f"{path}:{number}", number, line) for number, line in lines if line.strip()]
    else:
        found = [_from_columns(path, rows) for rows in _documents(path, lines)]
    if not found:
        raise FormatError(path, f"holds no documents; {_EXPECTED}")
    documents = [_once(document) for document in found]
    if repeated := [each for document in found for each in _repeated(document)]:
        told = "%s: %d of %d mentions are named twice in their cluster, the first at %s; once counts"
        _log.warning(told, path, len(repeated), sum(map(_count, found)), repeated[0])
    twice = sum(_count(before) - _count(after) for before, after in zip(found, documents, strict=True)) - len(repeated)
    if twice:
        _log.warning("%s: %d of %d mentions are in two clusters; each stays in the first", path, twice, sum(map(_count, found)))
    if torn := [each for document in documents for each in _torn(document)]:
        told = "%s: %d of %d mentions go beyond their sentence, the first at %s; none of these will be found"
        _log.warning(told, path, len(torn), sum(map(_count, documents)), torn[0])
    return documents


def _count(document: CoreferenceDocument) -> int:
    return sum(map(len, document.clusters))


def _repeated(document: CoreferenceDocument) -> Iterator[str]:
    """The mentions that their own cluster has already, each by its place."""
    for cluster in document.clusters:
        for (first, last), count in Counter(cluster).items():
            yield from [f"line {document.where}, words {first} to {last}"] * (count - 1)


def _torn(document: CoreferenceDocument) -> Iterator[str]:
    """The mentions that no sentence holds whole, each by its place."""
    ends = list(itertools.accumulate(map(len, document.sentences)))
    for first, last in (mention for cluster in document.clusters for mention in cluster):
        if bisect.bisect_right(ends, first) != bisect.bisect_right(ends, last):
            yield f"line {document.where}, words {first} to {last}"


def _once(document: CoreferenceDocument) -> CoreferenceDocument:
    """Every mention in one cluster, each cluster in the order of the text, clusters by their first mention."""
    seen: set[Mention] = set()
    clusters = []
    for cluster in document.clusters:
        new = sorted(set(cluster) - seen)
        seen.update(new)
        if new:
            clusters.append(new)
    return CoreferenceDocument(document.sentences, sorted(clusters), document.speakers, document.key, document.where)


# ---- one line a document


def _from_json(where: str, number: int, line: str) -> CoreferenceDocument:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FormatError(where, f"is not JSON ({error}); expected one document a line") from None
    if not isinstance(values, dict) or not _are_texts(values.get("sentences")):
        raise FormatError(where, 'has no "sentences", a list of lists of strings: [["Ann", "ran"], ["She", "fell"]]')
    sentences: list[list[str]] = values["sentences"]
    words = sum(map(len, sentences))
    if not words:
        raise FormatError(where, 'has no words in its "sentences"')
    key = values.get("doc_key", "")
    if not isinstance(key, str):
        raise FormatError(where, f'has {_shown(key)} for "doc_key"; expected a string')
    return CoreferenceDocument(sentences, _clusters(where, values, words), _speakers(where, values, sentences), key, number)


def _are_texts(values: Any) -> TypeGuard[list[list[str]]]:
    return isinstance(values, list) and all(
        isinstance(each, list) and all(isinstance(word, str) for word in each) for each in values
    )


def _clusters(where: str, values: dict[str, Any], words: int) -> list[list[Mention]]:
    given = values.get("clusters")
    if not isinstance(given, list) or not all(isinstance(cluster, list) for cluster in given):
        raise FormatError(where, 'has no "clusters", a list of lists of mentions; of a document without any it is []')
    return [[_mention(where, each, words) for each in cluster] for cluster in given]


def _mention(where: str, given: Any, words: int) -> Mention:
    if not isinstance(given, list) or len(given) < 2 or any(type(each) is not int for each in given[:2]):
        raise FormatError(where, f"has the mention {_shown(given)}; expected its first and last word, such as [3, 4]")
    first, last = given[:2]
    if not 0 <= first <= last < words:
        raise FormatError(where, f"has the mention {_shown(given)} among {words} words, which are counted from 0")
    return first, last


def _speakers(where: str, values: dict[str, Any], sentences: Sequence[Sequence[str]]) -> list[str]:
    given = values.get("speakers")
    if given is None:
        return []
    if not _are_texts(given) or [len(each) for each in given] != [len(each) for each in sentences]:
        raise FormatError(where, 'has "speakers" that do not fit its "sentences"; expected one a word, in the same lists')
    return _known(name for sentence in given for name in sentence)


def _known(names: Iterator[str]) -> list[str]:
    found = ["" if name in _NOBODY else name for name in names]
    return found if any(found) else []


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:40]}..."


# ---- columns


def _documents(path: str | Path, lines: Sequence[Line]) -> Iterator[list[list[Row]]]:
    """The sentences of each document, as columns: it ends where a # line stands, and where another document or part comes."""
    sentences: list[list[Row]] = [[]]
    for number, line in [*lines, (0, "#")]:
        row = [cell for cell in _BLANKS.split(line) if cell]
        mark = line.startswith("#")
        before = next((rows[-1][1] for rows in reversed(sentences) if rows), None)
        if before is not None and (mark or (row and row[:2] != before[:2])):
            yield [rows for rows in sentences if rows]
            sentences = [[]]
        if mark:
            continue
        if not row:
            sentences.append([])
            continue
        if len(row) < _FEWEST or not row[1].isdecimal():
            raise FormatError(f"{path}:{number}", f"has {len(row)} columns, {_shown(line)}; CoNLL-2012 has {_FEWEST} at least")
        sentences[-1].append((number, row))


def _from_columns(path: str | Path, sentences: list[list[Row]]) -> CoreferenceDocument:
    rows = [row for sentence in sentences for row in sentence]
    number, first = rows[0]
    return CoreferenceDocument(
        [[row[_WORD] for _, row in sentence] for sentence in sentences],
        _bracketed(path, [(line, row[-1]) for line, row in rows]),
        _known(row[_SPEAKER] for _, row in rows),
        f"{first[0]}_{int(first[1])}",
        number,
    )


def _bracketed(path: str | Path, cells: Sequence[Line]) -> list[list[Mention]]:
    """Clusters from the brackets of a document's words.

    >>> _bracketed("a", [(1, "(7|(0)"), (2, "-"), (3, "7)|(0"), (4, "0)")])
    [[(0, 0), (2, 3)], [(0, 2)]]
    """
    clusters: dict[str, list[Mention]] = {}
    open_at: dict[str, list[tuple[int, int]]] = {}  # of each cluster, place and line of the brackets that are open
    for place, (number, cell) in enumerate(cells):
        for piece in [] if cell in ("-", "_", "*") else cell.split("|"):
            match = _BRACKET.fullmatch(piece)
            if match is None or not (match[1] or match[3]):
                what = f"has {_shown(cell)} in its last column; expected brackets of clusters, such as (0), (0|(1), 0) or -"
                raise FormatError(f"{path}:{number}", what)
            begins = open_at.setdefault(match[2], [])
            if match[1]:
                begins.append((place, number))
            if match[3] and not begins:
                raise FormatError(f"{path}:{number}", f"ends a mention of cluster {match[2]}, of which none is open")
            if match[3]:
                clusters.setdefault(match[2], []).append((begins.pop()[0], place))
    for name, begins in open_at.items():
        if begins:
            raise FormatError(f"{path}:{begins[0][1]}", f"begins a mention of cluster {name} that its document does not end")
    return [sorted(cluster) for cluster in clusters.values()]
