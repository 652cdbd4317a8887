"""Tag schemes of spans, and the one that networks learn.

    plain   a tag is a class of its own (NOUN, VERB)
    BIO     a span begins with B and continues with I
    IOB1    it continues with I, and begins with B only after another span of its type
    BIOES   a last word is E, a single one S; BMES writes I as M, BMEWO also S as W, BILOU writes E and S as L and U

Networks learn BIOES, which allows the fewest transitions; predictions are written in the file's own scheme.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from polyseme.base.errors import FormatError
from polyseme.metrics.spans import TypedSpan, are_span_tags, spans
from polyseme.tasks.tagging_config import Scheme
from polyseme.text.labelled.conll import TaggedSentence

_log = logging.getLogger(__name__)
_OTHER_SPELLING = re.compile(r"[BIMESWLU][-_].+", re.IGNORECASE)
MAX_SLIPS = 0.01  # of the spans may begin with the other letter
LETTERS: dict[Scheme, str] = {
    "BIO": "BI",
    "IOB1": "BI",
    "BIOES": "BIES",
    "BMES": "BMES",
    "BMEWO": "BMEW",
    "BILOU": "BILU",
}
_FROM_BIOES: dict[Scheme, dict[str, str]] = {
    "BIO": {"E": "I", "S": "B"},
    "BMES": {"I": "M"},
    "BMEWO": {"I": "M", "S": "W"},
    "BILOU": {"E": "L", "S": "U"},
}


def scheme_of(sentences: Sequence[TaggedSentence], path: str | Path, *, warn: bool = False) -> Scheme:
    """Return the tag scheme of a file; a `FormatError` names the line where a second scheme begins.

    `warn`: of a few slips, which are no second scheme.
    """
    if not are_span_tags(tag for sentence in sentences for tag in sentence.tags):
        _refuse_odd_ones(sentences, path)
        _refuse_other_spellings(sentences, path)
        return "plain"
    scheme = scheme_of_letters({tag[0] for sentence in sentences for tag in sentence.tags})
    for sentence in sentences:
        for position, tag in enumerate(sentence.tags):
            if tag != "O" and tag[0] not in LETTERS[scheme]:
                raise FormatError(
                    _where(path, sentence, position),
                    f"has the tag {tag!r}, but its other tags are {scheme}: use one scheme",
                )
    return _begins(sentences, path, warn) if scheme == "BIO" else scheme


def scheme_of_letters(letters: set[str]) -> Scheme:
    """Return the scheme with such letters."""
    if "W" in letters:
        return "BMEWO"
    if "M" in letters:
        return "BMES"
    return "BILOU" if letters & set("LU") else "BIOES" if letters & set("ES") else "BIO"


def _refuse_other_spellings(sentences: Sequence[TaggedSentence], path: str | Path) -> None:
    """Refuse span tags with another separator or case: as classes they would be learned badly."""
    counts = Counter(tag for sentence in sentences for tag in sentence.tags)
    marked = [tag for tag in counts if _OTHER_SPELLING.fullmatch(tag)]
    outside = {"O", "o"} & counts.keys()
    begins = any(tag[0] in "Bb" for tag in marked)
    if not outside or not begins or len(marked) + len(outside) < len(counts):
        return
    for sentence in sentences:
        for position, tag in enumerate(sentence.tags):
            if tag in marked:
                what = f"has the tag {tag!r}; write span tags as {tag[0].upper()}-{tag[2:]}, with O between, in the whole file"
                raise FormatError(_where(path, sentence, position), what)


def _refuse_odd_ones(sentences: Sequence[TaggedSentence], path: str | Path) -> None:
    """Refuse files in which most tags mark typed spans and a few tags do not."""
    counts = Counter(tag for sentence in sentences for tag in sentence.tags)
    marked = sum(count for tag, count in counts.items() if "-" in tag and are_span_tags([tag]))
    if "O" not in counts or 2 * marked <= counts.total() - counts["O"]:
        return
    for sentence in sentences:
        for position, tag in enumerate(sentence.tags):
            if tag != "O" and not are_span_tags([tag]):
                what = f"has the tag {tag!r}, but most of the file's tags are O or mark spans (B-TYPE, I-TYPE ...)"
                raise FormatError(_where(path, sentence, position), f"{what}: correct it")


def _begins(sentences: Sequence[TaggedSentence], path: str | Path, warn: bool) -> Scheme:
    """Return whether spans begin with B (BIO) or with I (IOB1); a file with many of both is refused.

    A few are slips, which real data has (MSRA, whose sentences were split within names: 6 of 71,333). They count as spans, as
    in the CoNLL scorer.
    """
    first: dict[str, str] = {}
    counts = Counter[str]()
    for sentence in sentences:
        before = "O"
        for position, tag in enumerate(sentence.tags):
            if tag != "O" and (before == "O" or before[2:] != tag[2:]):  # a span begins here, whatever its letter
                first.setdefault(tag[0], _where(path, sentence, position))
                counts[tag[0]] += 1
            before = tag
    if len(counts) < 2:
        return "IOB1" if "I" in counts else "BIO"
    (common, many), (rare, few) = counts.most_common()
    if few > MAX_SLIPS * many:
        early, late = sorted(first.values(), key=lambda where: int(where.rsplit(":", 1)[1]))
        what = f"begins a span with another letter than {early}: one is B (BIO), the other I (IOB1): use one scheme"
        raise FormatError(late, what)
    if warn:
        _log.warning("%s: begins a span with %s, as %d of %d spans do: read as a slip", first[rare], rare, few, few + many)
    return "IOB1" if common == "I" else "BIO"


def _where(path: str | Path, sentence: TaggedSentence, position: int) -> str:
    return f"{path}:{sentence.lines[position] if sentence.lines else 0}"


def to_bioes(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """Return tags as a network learns them.

    >>> to_bioes(["I-PER", "I-PER", "O", "I-LOC"], "IOB1")
    ['B-PER', 'E-PER', 'O', 'S-LOC']
    """
    return list(tags) if scheme == "plain" else bioes_of_spans(len(tags), spans(tags))


def bioes_of_spans(length: int, found: Sequence[TypedSpan]) -> list[str]:
    """Return the BIOES tags of some spans."""
    tags = ["O"] * length
    for begin, end, kind in found:
        tags[begin:end] = [_tag("I", kind)] * (end - begin)
        tags[begin], tags[end - 1] = _tag("B", kind), _tag("E", kind)
        if end - begin == 1:
            tags[begin] = _tag("S", kind)
    return tags


def _tag(letter: str, kind: str) -> str:
    """Return a tag; spans without types, such as Chinese words, have the letter alone."""
    return f"{letter}-{kind}" if kind else letter


def from_bioes(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """Return a network's tags in the file's scheme.

    >>> from_bioes(["B-PER", "E-PER", "O", "S-LOC"], "IOB1"), from_bioes(["B-PER", "E-PER"], "BIO")
    (['I-PER', 'I-PER', 'O', 'I-LOC'], ['B-PER', 'I-PER'])
    """
    if scheme in ("plain", "BIOES"):
        return list(tags)
    if scheme != "IOB1":
        letters = _FROM_BIOES[scheme]
        return [tag if tag == "O" else letters.get(tag[0], tag[0]) + tag[1:] for tag in tags]
    written, before = ["O"] * len(tags), (-1, "")
    for begin, end, kind in spans(tags):
        written[begin:end] = [_tag("I", kind)] * (end - begin)
        if before == (begin, kind):  # the previous span ends here and has the same type
            written[begin] = _tag("B", kind)
        before = (end, kind)
    return written


def scheme_labels(tags: Sequence[Sequence[str]], scheme: Scheme) -> list[str]:
    """Return all tags that a network can predict: those of the data, or every letter of every type of spans."""
    distinct = {tag for sentence in tags for tag in sentence}
    if scheme == "plain":
        return sorted(distinct)
    types = sorted({tag[2:] for tag in distinct if tag != "O"})
    return ["O", *(_tag(letter, kind) for kind in types for letter in "BIES")]


def predicted_labels(labels: Sequence[str], scheme: Scheme) -> list[str]:
    """Return the labels of a network as it writes them, in the file's scheme.

    >>> predicted_labels(["O", "B-PER", "I-PER", "E-PER", "S-PER"], "BIO")
    ['O', 'B-PER', 'I-PER']
    """
    if scheme == "plain":
        return list(labels)
    kinds = dict.fromkeys(label[2:] for label in labels if label != "O")
    examples = (bioes_of_spans(6, [(0, 1, kind), (1, 4, kind), (4, 6, kind)]) for kind in kinds)  # all letters of each kind
    return list(dict.fromkeys(["O", *(tag for tags in examples for tag in from_bioes(tags, scheme))]))


def allowed_transitions(labels: Sequence[str]) -> dict[str, Tensor]:
    """Return which BIOES label may follow which, and begin and end a sentence, as arguments of `Crf`."""
    opens = torch.tensor([label == "O" or label[0] in "BS" for label in labels])
    closes = torch.tensor([label == "O" or label[0] in "ES" for label in labels])
    inside = [[a[0] in "BI" and b[0] in "IE" and a[1:] == b[1:] for b in labels] for a in labels]
    return {
        "allowed": (closes[:, None] & opens[None, :]) | torch.tensor(inside),
        "allowed_start": opens,
        "allowed_end": closes,
    }
