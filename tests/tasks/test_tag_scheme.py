"""Ways to write tags of spans: told apart, turned into BIOES and back, and mixtures told by their line."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from polyseme.base.errors import FormatError
from polyseme.metrics.spans import spans
from polyseme.tasks.tag_scheme import allowed_moves, from_bioes, labels_of, scheme_of, to_bioes
from polyseme.text.conll import Tagged

WRITTEN = {
    "BIO": ["B-A", "I-A", "O", "B-B", "B-B"],
    "IOB1": ["I-A", "I-A", "O", "I-B", "B-B"],
    "BIOES": ["B-A", "E-A", "O", "S-B", "S-B"],
    "BMES": ["B-A", "E-A", "O", "S-B", "S-B"],
    "BILOU": ["B-A", "L-A", "O", "U-B", "U-B"],
}


def sentence(tags: list[str], line: int = 1) -> Tagged:
    return Tagged([f"w{i}" for i in range(len(tags))], tags, list(range(line, line + len(tags))))


@pytest.mark.parametrize("scheme", WRITTEN)
def test_to_bioes_and_back(scheme: str) -> None:
    assert to_bioes(WRITTEN[scheme], scheme) == WRITTEN["BIOES"]
    assert from_bioes(WRITTEN["BIOES"], scheme) == WRITTEN[scheme]


@pytest.mark.parametrize(("tags", "scheme"), [
    (["NOUN", "O"], "plain"),
    (["B-A", "I-A", "B-A"], "BIO"),
    (["I-A", "I-A", "B-A", "O"], "IOB1"),
    (["B-A", "M-A", "E-A"], "BMES"),
    (["S-A", "O"], "BIOES"),
    (["U-A", "O"], "BILOU"),
    (["O", "O"], "plain"),
])  # fmt: skip
def test_schemes_are_told_apart(tags: list[str], scheme: str) -> None:
    assert scheme_of([sentence(tags)], "a.txt") == scheme


@pytest.mark.parametrize(("sentences", "where"), [
    ([["B-A", "I-A"], ["B-A", "M-A", "E-A"]], "a.txt:2"),
    ([["B-A", "L-A"], ["S-A"]], "a.txt:11"),
    ([["B-A", "I-A"], ["O", "I-A"]], "a.txt:12"),
    ([["I-A", "I-A"], ["O", "B-B"]], "a.txt:12"),
])  # fmt: skip
def test_two_ways_in_one_file_are_told_by_their_line(sentences: list[list[str]], where: str) -> None:
    with pytest.raises(FormatError, match=where):
        scheme_of([sentence(tags, 10 * number + 1) for number, tags in enumerate(sentences)], "a.txt")


@given(some.lists(some.sampled_from(["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in "AB")]), max_size=8))
def test_allowed_paths_are_exactly_the_legal_ones(tags: list[str]) -> None:
    labels = labels_of([["S-A", "S-B"]], "BIOES")
    moves = allowed_moves(labels)
    ids = [labels.index(tag) for tag in tags]
    legal = to_bioes(tags, "BIOES") == tags  # what spans give back is legal, and all that is legal comes back
    allowed = all(bool(moves["allowed"][a, b]) for a, b in itertools.pairwise(ids))
    if ids:
        allowed &= bool(moves["allowed_start"][ids[0]]) and bool(moves["allowed_end"][ids[-1]])
    assert allowed == legal


@given(some.lists(some.sampled_from(["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in "AB")]), max_size=8))
def test_every_way_of_writing_keeps_the_spans(tags: list[str]) -> None:
    legal = to_bioes(tags, "BIOES")
    for scheme in WRITTEN:
        assert spans(from_bioes(legal, scheme)) == spans(legal)
        assert to_bioes(from_bioes(legal, scheme), scheme) == legal


def test_labels() -> None:
    assert labels_of([["S-B", "O"], ["B-A", "E-A"]], "BIOES") == ["O", *(f"{x}-{t}" for t in "AB" for x in "BIES")]
    assert labels_of([["VERB", "NOUN"]], "plain") == ["NOUN", "VERB"]
    assert isinstance(allowed_moves(["O"])["allowed"], torch.Tensor)
