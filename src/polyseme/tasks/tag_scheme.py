"""Tags of spans in the ways that people write them, and the one way that networks learn.

    plain   a tag is a class of its own (NOUN, VERB)
    BIO     a span begins with B and goes on with I
    IOB1    it goes on with I, and begins with B only behind another span of its type
    BIOES   a last word is E, a single one S; BMES writes I as M, BILOU writes E and S as L and U

Networks learn BIOES, in which the fewest moves from tag to tag are possible; answers go back into the file's own way.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from polyseme.base.errors import FormatError
from polyseme.metrics.spans import Span, are_span_tags, spans
from polyseme.text.conll import Tagged

Scheme = Literal["plain", "BIO", "IOB1", "BIOES", "BMES", "BILOU"]
_LETTERS: dict[Scheme, str] = {"BIO": "BI", "IOB1": "BI", "BIOES": "BIES", "BMES": "BMES", "BILOU": "BILU"}
_FROM_BIOES: dict[Scheme, dict[str, str]] = {
    "BIO": {"E": "I", "S": "B"},
    "BMES": {"I": "M"},
    "BILOU": {"E": "L", "S": "U"},
}


def scheme_of(sentences: Sequence[Tagged], path: str | Path) -> Scheme:
    """The way in which a file writes its tags; a `FormatError` names the line where a second way begins."""
    if not are_span_tags(tag for sentence in sentences for tag in sentence.tags):
        return "plain"
    letters = {tag[0] for sentence in sentences for tag in sentence.tags} - {"O"}
    scheme: Scheme = "BMES" if "M" in letters else "BILOU" if letters & set("LU") else "BIOES" if letters & set("ES") else "BIO"
    for sentence in sentences:
        for place, tag in enumerate(sentence.tags):
            if tag != "O" and tag[0] not in _LETTERS[scheme]:
                raise FormatError(
                    _where(path, sentence, place), f"has the tag {tag!r}, but the file's other tags are {scheme}; use one way"
                )
    return _begins(sentences, path) if scheme == "BIO" else scheme


def _begins(sentences: Sequence[Tagged], path: str | Path) -> Scheme:
    """Whether spans begin with B (BIO) or with I (IOB1): both in one file cannot be told apart."""
    first: dict[str, str] = {}
    for sentence in sentences:
        before = "O"
        for place, tag in enumerate(sentence.tags):
            alone = tag != "O" and before[2:] != tag[2:]  # a span begins here, whatever its letter
            if alone and tag[0] not in first:
                first[tag[0]] = _where(path, sentence, place)
            before = tag
    if len(first) == 2:
        raise FormatError(
            max(first.values(), key=lambda where: int(where.rsplit(":", 1)[1])),
            f"begins a span with another letter than {min(first.values(), key=lambda where: int(where.rsplit(':', 1)[1]))}: "
            "one is B (BIO), the other I (IOB1); use one way",
        )
    return "IOB1" if "I" in first else "BIO"


def _where(path: str | Path, sentence: Tagged, place: int) -> str:
    return f"{path}:{sentence.lines[place] if sentence.lines else 0}"


def to_bioes(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """Tags as a network learns them.

    >>> to_bioes(["I-PER", "I-PER", "O", "I-LOC"], "IOB1")
    ['B-PER', 'E-PER', 'O', 'S-LOC']
    """
    return list(tags) if scheme == "plain" else _bioes(len(tags), spans(tags))


def _bioes(length: int, found: Sequence[Span]) -> list[str]:
    tags = ["O"] * length
    for begin, end, kind in found:
        tags[begin:end] = [f"I-{kind}"] * (end - begin)
        tags[begin], tags[end - 1] = f"B-{kind}", f"E-{kind}"
        if end - begin == 1:
            tags[begin] = f"S-{kind}"
    return tags


def from_bioes(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """A network's tags as the file writes them.

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
        written[begin:end] = [f"I-{kind}"] * (end - begin)
        if before == (begin, kind):  # the span before ends here and has the type
            written[begin] = f"B-{kind}"
        before = (end, kind)
    return written


def labels_of(tags: Sequence[Sequence[str]], scheme: Scheme) -> list[str]:
    """All tags that a network can give: those of the data, and with spans every letter of every type."""
    distinct = {tag for sentence in tags for tag in sentence}
    if scheme == "plain":
        return sorted(distinct)
    types = sorted({tag[2:] for tag in distinct if tag != "O"})
    return ["O", *(f"{letter}-{kind}" for kind in types for letter in "BIES")]


def allowed_moves(labels: Sequence[str]) -> dict[str, Tensor]:
    """Which label may follow which, begin and end a sentence, for BIOES labels; as the CRF takes it."""
    opens = torch.tensor([label == "O" or label[0] in "BS" for label in labels])
    closes = torch.tensor([label == "O" or label[0] in "ES" for label in labels])
    inside = [[a[0] in "BI" and b[0] in "IE" and a[1:] == b[1:] for b in labels] for a in labels]
    return {
        "allowed": (closes[:, None] & opens[None, :]) | torch.tensor(inside),
        "allowed_start": opens,
        "allowed_end": closes,
    }
