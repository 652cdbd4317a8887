"""Tagged sentences: CoNLL columns, character files such as BMES, and CoNLL-U.

In a CoNLL file a line is a word and its tags, separated by spaces or tabs, and a blank line ends a sentence; a line whose first
column is `-DOCSTART-` begins a document. CoNLL-U (Universal Dependencies) is recognised by content: ten columns separated by
tabs, the first a number. There columns have names, and every line that begins with `#` is a comment (`# newdoc` begins a
document); multiword tokens (`1-2`) and empty nodes (`1.1`) are skipped. Other files may number their words too: if the first of
three columns or more counts from 0 or 1 in each sentence, the second has the words. Their first line may name the columns, one
of them `word`, `token` or `form`. They may have comments before a sentence, lines that begin with `#` and are no words
(GermEval, MultiCoNER); there, too, `# newdoc` begins a document.

JSON lines are read as `tagged_shapes` says.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from polyseme.base.display import count, short
from polyseme.base.errors import FormatError, PolysemeError, UsageError, arg, nearest
from polyseme.text.labelled.bad_rows import BadRows
from polyseme.text.labelled.character_positions import without_positions
from polyseme.text.labelled.numbered_lines import Line, cells, numbered_lines
from polyseme.text.labelled.tagged_shapes import (
    EXPECTED,
    JSON_EXPECTED,
    WORD_COLUMNS,
    json_objects,
    json_sentences,
    refuse_other_shapes,
    refuse_prose,
)

_log = logging.getLogger(__name__)
NAMES = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
"""The columns of CoNLL-U."""
_NUMBER = re.compile(r"\d+(?:[-.]\d+)?")
_SPAN_TAG = re.compile(r"O|[A-Z]-\S+")
_DOCUMENT = re.compile(r"#\s*newdoc\b")
_DOCSTART = "-DOCSTART-"
_SAMPLE = 10_000  # lines by which other columns of tags are recognised
_MOST = 0.9  # of the sentences number their words, where the first column does

Column = int | str | None
ConllLine = tuple[int, list[str] | None]
"""The number of a line and its columns; [] where a sentence ends, None where a document begins, `BAD` if it cannot be read."""
BAD = ["?"]


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """A sentence: words and a tag for each."""

    words: list[str]
    tags: list[str]
    lines: list[int] = field(default_factory=list, repr=False, compare=False)
    """The line of each word in its file, for messages."""
    document: int = field(default=0, repr=False, compare=False)
    """The number of its document in the file."""


def read_conll(
    path: str | Path, *, column: Column = None, word_column: Column = None, strict: bool = True
) -> list[TaggedSentence]:
    """Read all sentences of a file (plain or compressed), with the tags of one column.

    `column`: a number from 0, or from -1 backwards; in CoNLL-U (upos, xpos, feats, deprel ...) and in files whose first line
    names the columns also a name, in JSON lines the field of the tags. Default: upos in CoNLL-U, else the last column.
    `word_column`: that of the words; default: the first, or the second beside numbers of the words. `strict=False`: sentences
    with bad lines are skipped and counted, instead of being an error.

    >>> import tempfile; file = Path(tempfile.mkdtemp(), "a.bmes"); _ = file.write_text("吴 B-NAME\\n重 E-NAME\\n\\n， O\\n")
    >>> read_conll(file)[0]
    TaggedSentence(words=['吴', '重'], tags=['B-NAME', 'E-NAME'])
    """
    lines, bad = list(numbered_lines(path)), BadRows(path, strict=strict, unit="sentence")
    if (objects := json_objects(path, lines, word_column)) is not None:
        return _from_json(path, objects, column, word_column, bad)
    conllu = _is_conllu(line for _, line in lines)
    named = {name.lower() for name in (column, word_column) if isinstance(name, str)}
    names = list(NAMES) if conllu else _header(lines, WORD_COLUMNS | named, comments=not strict)
    tag = _number(path, "column", names.index("upos") if conllu and column is None else -1 if column is None else column, names)
    if not conllu:
        refuse_other_shapes(path, lines)
        rows_and_header = lines if strict else _without_comments(path, lines, tag)
        lines = _without_header(path, rows_and_header, tag, names) if named or not strict else rows_and_header
        names = names if len(lines) < len(rows_and_header) else []
    word = _word_column(path, lines, word_column, tag, names)
    rows = _conllu_rows(lines, bad) if conllu else _plain_rows(lines, bad, tag, word)
    if column is None and not conllu:
        _report_other_tags(path, lines, word)
    sentences: list[TaggedSentence] = []
    fresh, spoiled, document, skipped = True, False, 0, 0
    for number, row in [*rows, (0, [])]:
        if not row:
            if spoiled:
                sentences.pop()
                skipped += 1
            fresh, document = fresh or row is not None, document + (row is None)
            fresh, spoiled = fresh or spoiled, False
            continue
        if fresh:
            sentences.append(TaggedSentence([], [], document=document))
            fresh = False
        if row is BAD:
            spoiled = True
            continue
        for name, each in (("column", tag), ("word_column", word)):
            if not -len(row) <= each < len(row):
                raise FormatError(f"{path}:{number}", f"has {count(len(row), 'column')}; {arg(name, each)} does not exist")
        if tag % len(row) == word % len(row):
            what = f"{path}: column {word % len(row)} is read as the words and as their tags"
            raise UsageError(f"{what}: {arg('column')} names that of the tags, {arg('word_column')} that of the words")
        sentences[-1].words.append(row[word])
        sentences[-1].tags.append(row[tag])
        sentences[-1].lines.append(number)
    if not sentences and not conllu:
        refuse_prose(path, lines)
    bad.finish(len(sentences), skipped)
    if not sentences:
        raise FormatError(path, f"has no sentences; {EXPECTED}")
    return _with_characters_alone(path, sentences)


def _with_characters_alone(path: str | Path, sentences: list[TaggedSentence]) -> list[TaggedSentence]:
    words = without_positions([sentence.words for sentence in sentences])
    if words is None:
        return sentences
    example = " ".join(sentences[0].words[:3])
    _log.warning("%s: each character is followed by its position in its word (%s); the positions are left out", path, example)
    return [replace(sentence, words=own) for sentence, own in zip(sentences, words, strict=True)]


def _from_json(
    path: str | Path, objects: list[Line], column: Column, word_column: Column, bad: BadRows
) -> list[TaggedSentence]:
    fields: dict[str, str | None] = {}
    for name, each in (("column", column), ("word_column", word_column)):
        if isinstance(each, int):
            _log.warning("%s: JSON has fields with names and no numbers, so %s is not used", path, arg(name, each))
        fields[name] = each if isinstance(each, str) else None
    found = json_sentences(path, objects, bad, **fields)
    sentences = [TaggedSentence(words, tags, [number] * len(words)) for number, words, tags in found]
    bad.finish(len(sentences))
    if not sentences:
        raise FormatError(path, f"has no sentences; {JSON_EXPECTED}")
    return sentences


def _without_comments(path: str | Path, lines: list[Line], tag: int) -> list[Line]:
    """Leave out lines before a sentence that begin with `#` and are no words: they have other columns, or no known tag.

    `# newdoc` begins a document, as in CoNLL-U.
    """
    if not any(line.startswith("#") for _, line in lines):
        return lines
    others = [row for _, line in lines if not line.startswith("#") and (row := cells(line)) and row[0] != _DOCSTART]
    if not others:
        return lines
    width = Counter(map(len, others)).most_common(1)[0][0]
    tags = {row[tag] for row in others if len(row) == width and -width <= tag < width}
    kept, documents, begins = list[Line](), 0, True
    for number, line in lines:
        row = cells(line)
        if begins and line.startswith("#") and (len(row) != width or (row[0] == "#" and row[tag] not in tags)):
            if _DOCUMENT.match(line):
                kept.append((number, _DOCSTART))
                documents += 1
            continue
        begins = not row or row[0] == _DOCSTART
        kept.append((number, line))
    if comments := len(lines) - len(kept) + documents:
        what = "line that begins with # is a comment" if comments == 1 else "lines that begin with # are comments"
        newdoc = f", {documents:,} of them the beginning of a document" if documents else ""
        _log.warning("%s: %s %s%s", path, f"{comments:,}", what, newdoc)
    return kept


def _without_header(path: str | Path, lines: list[Line], tag: int, header: list[str]) -> list[Line]:
    """Leave out a first line that may name the columns (`_header`), if the name of the tags is no tag.

    Joined files repeat it, where another sentence begins.
    """
    first = next((at for at, (_, line) in enumerate(lines) if line.strip()), None)
    names = [] if first is None else cells(lines[first][1])
    if first is None or not header or not -len(names) <= tag < len(names):
        return lines
    if any("=" in name or _SPAN_TAG.fullmatch(name) for name in names):  # tags, though perhaps no other word has them
        return lines
    rows = [(number, line, cells(line)) for number, line in lines[first + 1 :]]
    if any(len(row) == len(names) and row[tag] == names[tag] and row != names for _, _, row in rows):
        return lines
    _log.warning("%s: the first line names the columns (%s)", path, ", ".join(names))
    return [(number, "" if row == names else line) for number, line, row in rows]


def _header(lines: Iterable[Line], known: Collection[str], *, comments: bool) -> list[str]:
    """The cells of the first line, in lower case, if one is a known name; else none. `comments`: leave them out."""
    first = next((line for _, line in lines if line.strip() and not (comments and line.startswith("#"))), "")
    names = list(map(str.lower, cells(first)))
    return names if any(name in known for name in names) else []


def _word_column(path: str | Path, lines: list[Line], given: Column, tag: int, names: list[str]) -> int:
    """The column of the words; `names`: those of a header or of CoNLL-U."""
    if given is not None:
        return _number(path, "word_column", given, names)
    known = next((number for number, name in enumerate(names) if name in WORD_COLUMNS), None)
    return int(_has_index(path, lines, tag)) if known is None else known


def _has_index(path: str | Path, lines: list[Line], tag: int) -> bool:
    """Whether the first of three columns or more numbers the words of each sentence, so that the second has the words."""
    rows = (cells(line) for _, line in lines)
    groups = groupby((row for row in rows if row[:1] != [_DOCSTART]), key=bool)
    sentences = [list(group) for full, group in groups if full]
    if max(map(len, sentences), default=0) < 2 or any(tag in (1, 1 - len(row)) or len(row) < 3 for row in sentences[0]):
        return False
    first = [[row[0] for row in rows] for rows in sentences]
    counted = max(sum(each == [str(start + word) for word in range(len(each))] for each in first) for start in (0, 1))
    if counted < _MOST * len(sentences):
        return False
    _log.warning("%s: the first column numbers the words of each sentence; the second is read as the words", path)
    return True


def _report_other_tags(path: str | Path, lines: list[Line], word: int) -> None:
    """Say that another column than the last has tags of spans too."""
    rows = [row for _, line in lines[:_SAMPLE] if (row := cells(line)) and row[0] != _DOCSTART]
    width = min(map(len, rows), default=0)
    begin = word + 1 if word >= 0 else width + word + 1
    columns = {number: {row[number] for row in rows} for number in range(max(begin, 0), width)}
    tagged = [number for number, tags in columns.items() if len(tags) > 1 and all(map(_SPAN_TAG.fullmatch, tags))]
    if len(tagged) > 1 and tagged[-1] == width - 1:
        names = f"{', '.join(map(str, tagged[:-1]))} and {tagged[-1]}"
        _log.warning(
            "%s: columns %s have tags of spans; the last is read, %s reads another", path, names, arg("column", tagged[0])
        )


def _is_conllu(lines: Iterable[str]) -> bool:
    """Whether the first line that is neither blank nor a comment looks like CoNLL-U."""
    for line in lines:
        row = line.split("\t")
        if len(row) == len(NAMES) and _NUMBER.fullmatch(row[0]):
            return True
        if line.strip() and not line.startswith("#"):
            return False
    return False


def _number(path: str | Path, option: str, column: int | str, names: Sequence[str]) -> int:
    """The number of a column that may be given by name."""
    if isinstance(column, int):
        return column
    if not names:
        what = f"{path} is not CoNLL-U and its first line names no column of words, so its columns have no names"
        raise UsageError(f"{what}: {arg(option, column)} must be a number (from 0, or -1)")
    if column.lower() not in names:
        raise UsageError(f"{path} has no column {column!r}{nearest(column.lower(), names)}")
    return names.index(column.lower())


def _conllu_rows(lines: list[Line], bad: BadRows) -> Iterator[ConllLine]:
    for number, line in lines:
        if not line.strip():
            yield number, []
            continue
        if line.startswith("#"):
            if _DOCUMENT.match(line):
                yield number, None
            continue
        row = line.split("\t")
        if len(row) != len(NAMES) or not _NUMBER.fullmatch(row[0]):
            given = f"{count(len(row), 'column')}, the first {row[0][:20]!r}"
            what = f"has {given}; expected {len(NAMES)} separated by tabs, the first a number"
            bad.add(number, f"with other than {len(NAMES)} columns", what)
            yield number, BAD
        elif row[0].isdecimal():
            yield number, row


def _plain_rows(lines: list[Line], bad: BadRows, tag: int, word: int) -> Iterator[ConllLine]:
    """Yield words with tags; a row with other columns than most is read if it has a word, and its tag is one of theirs.

    Such rows are reported: perhaps a word has a space in it, or two lines were joined.
    """
    others = list[Line]()
    split = [(number, line, cells(line)) for number, line in lines]
    widths = [(number, len(row)) for number, _, row in split if row and row[0] != _DOCSTART]
    first, width = widths[0] if widths else (0, 0)
    if not bad.strict and widths:
        width = Counter(width for _, width in widths).most_common(1)[0][0]
        first = next(number for number, each in widths if each == width)
    tags = {row[tag] for _, _, row in split if len(row) == width and -width <= tag < width} if width > 1 else set()
    for number, line, row in split:
        if not row or row[0] == _DOCSTART:
            yield number, []
            if row:
                yield number, None
        elif len(row) == width and width > 1:
            yield number, row
        elif not bad.strict and len(row) == 1 and line[0] in " \t" and row[0] in tags:
            continue  # the tag of a blank, which is no word
        elif not bad.strict and len(row) > 1 and _has_both(row, tag, word) and row[tag] in tags:
            others.append((number, line))
            yield number, row
        elif len(row) < 2:
            what = f"has one column, {row[0][:20]!r}; expected a word and at least one tag"
            bad.add(number, "with a word that has no tag", what)
            yield number, BAD
        else:
            bad.add(number, f"with other than {width} columns", f"has {len(row)} columns; expected {width} as in line {first}")
            yield number, BAD
    if others:
        number, line = others[0]
        row = cells(line)
        what = f"{count(len(others), 'line')} with other than {width} columns; the first is line {number}, {short(line)!r}"
        read = f"read as the word {row[word]!r} with the tag {row[tag]!r}"
        _log.warning("%s: %s, and is %s: correct it if that is wrong", bad.path, what, read)


def _has_both(row: list[str], tag: int, word: int) -> bool:
    """Whether a row has a word and a tag, in different columns."""
    width = len(row)
    return all(-width <= each < width for each in (tag, word)) and tag % width != word % width


def refuse_one_tag(sentences: Sequence[TaggedSentence], who: str) -> None:
    """Raise an error if all words have the same tag: there is nothing to learn."""
    tags = [tag for sentence in sentences for tag in sentence.tags]
    if len(set(tags)) == 1:
        empty = " (_ is an empty column)" if tags[0] == "_" else ""
        given = f"all {len(tags):,} words have the tag {tags[0]!r}{empty}"
        raise PolysemeError(f"{given}; {who} needs two or more: choose another {arg('column')}, or other data")
