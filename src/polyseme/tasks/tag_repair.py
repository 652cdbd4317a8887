"""Slips in span tags, repaired as the CoNLL scorer reads them.

Published data has them: spans that begin with I (Weibo, MSRA), an E without a B, a tag in lower case, a zero for an O. What
`polyseme.metrics.spans` reads is what counts in scores anyway; here it is written back in the file's own scheme, so that
networks learn from legal tags. A file is taken to have span tags under the same conditions under which `tag_scheme` refuses
odd ones.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from polyseme.metrics.spans import are_span_tags, spans
from polyseme.tasks.tag_scheme import LETTERS, MAX_SLIPS, bioes_of_spans, from_bioes, scheme_of_letters
from polyseme.tasks.tagging_config import Scheme
from polyseme.text.labelled.conll import TaggedSentence

_log = logging.getLogger(__name__)
_OTHER_SPELLING = re.compile(r"([bimeswlu])[-_](.+)", re.IGNORECASE)
_KINDS_SHOWN = 5  # kinds of repairs
_OUTSIDE = frozenset({"O", "o", "0", "_", "-"})


def repair_tags(sentences: Sequence[TaggedSentence], path: str | Path) -> list[TaggedSentence]:
    """Return sentences with legal tags; those of a file whose tags mark no spans stay as they are."""
    counts = Counter(tag for sentence in sentences for tag in sentence.tags)
    names = _names(counts)
    if names is None:
        return list(sentences)
    scheme = _scheme(sentences, names)
    legal: dict[tuple[str, str], bool] = {}
    found, repaired = [], Counter[tuple[str, str]]()
    first: dict[tuple[str, str], str] = {}
    for sentence in sentences:
        new = sentence.tags
        if not _is_legal(sentence.tags, scheme, names, legal):
            new = from_bioes(bioes_of_spans(len(new), spans([names[tag] for tag in new])), scheme)
            for position, pair in enumerate(zip(sentence.tags, new, strict=True)):
                if pair[0] != pair[1]:
                    repaired[pair] += 1
                    first.setdefault(pair, f"line {sentence.lines[position]}: " if sentence.lines else "")
        found.append(replace(sentence, tags=new) if new != sentence.tags else sentence)
    if repaired:
        each = [f"{first[pair]}{pair[0]} is read as {pair[1]}{_times(repaired[pair])}" for pair in first]
        shown = "; ".join(
            [*each[:_KINDS_SHOWN], *([f"{len(each) - _KINDS_SHOWN} more kinds"] if len(each) > _KINDS_SHOWN else [])]
        )
        what = "%s: repaired %d of %d tags as the CoNLL scorer reads them (%s)"
        _log.warning(what, path, repaired.total(), counts.total(), shown)
    return found


def _times(number: int) -> str:
    return f" ({number:,} times)" if number > 1 else ""


def _names(counts: Counter[str]) -> dict[str, str] | None:
    """Return each tag as it should be written, O for tags that mark no span; None: the tags are classes, and mark no spans."""
    if are_span_tags(counts):
        return {tag: tag for tag in counts}
    names = {tag: _written(tag) for tag in counts}
    marked = sum(count for tag, count in counts.items() if len(names[tag] or "") > 1)
    outside = sum(counts[tag] for tag in ("O", "o"))
    begins = any((name or "")[:2] == "B-" for name in names.values())
    if not outside or not begins or 2 * marked <= counts.total() - outside:
        return None
    return {tag: name or "O" for tag, name in names.items()}


def _written(tag: str) -> str | None:
    """Return a tag as it should be written; None: it is no span tag.

    >>> _written("b_PER"), _written("0"), _written("NOUN")
    ('B-PER', 'O', None)
    """
    if tag in _OUTSIDE:
        return "O"
    match = _OTHER_SPELLING.fullmatch(tag)
    return f"{match[1].upper()}-{match[2]}" if match else tag if are_span_tags([tag]) else None


def _scheme(sentences: Sequence[TaggedSentence], names: dict[str, str]) -> Scheme:
    """Return the scheme of most tags; of BIO and IOB1, that of most spans."""
    letters = Counter(names[tag][0] for sentence in sentences for tag in sentence.tags if names[tag] != "O")
    common = {letter for letter, count in letters.items() if count > MAX_SLIPS * letters.total()}
    scheme = scheme_of_letters(common)
    if scheme != "BIO":
        return scheme
    begins = Counter[str]()
    for sentence in sentences:
        before = "O"
        for tag in sentence.tags:
            name = names[tag]
            if name != "O" and (before == "O" or before[2:] != name[2:]):
                begins[name[0]] += 1
            before = name
    return "IOB1" if begins["I"] > begins["B"] else "BIO"


def _is_legal(tags: Sequence[str], scheme: Scheme, names: dict[str, str], known: dict[tuple[str, str], bool]) -> bool:
    """Whether all tags may follow each other; pairs of tags are judged once."""
    for pair in zip(("O", *tags), (*tags, "O"), strict=True):
        if pair not in known:
            known[pair] = all(names.get(tag, tag) == tag for tag in pair) and _may_follow(*pair, scheme)
        if not known[pair]:
            return False
    return True


def _may_follow(before: str, tag: str, scheme: Scheme) -> bool:
    """Whether a tag may follow another."""
    inside = scheme not in ("BIO", "IOB1")
    closed = before == "O" or (before[0] in "ESLUW" if inside else True)
    if tag == "O":
        return closed
    if tag[0] not in LETTERS[scheme]:
        return False
    same = before != "O" and before[1:] == tag[1:]
    if scheme == "BIO":
        return tag[0] == "B" or (tag[0] == "I" and same)
    if scheme == "IOB1":
        return tag[0] == "I" or (tag[0] == "B" and same)
    if tag[0] in "BSUW":
        return closed
    return not closed and same
