"""Ways to write tags of spans: told apart, turned into BIOES and back, and mixtures told by their line."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from polyseme.base.errors import FormatError
from polyseme.metrics.spans import spans
from polyseme.tasks.tag_scheme import allowed_transitions, from_bioes, scheme_labels, scheme_of, to_bioes
from polyseme.text.labelled.conll import TaggedSentence

WRITTEN = {
    "BIO": ["B-A", "I-A", "O", "B-B", "B-B"],
    "IOB1": ["I-A", "I-A", "O", "I-B", "B-B"],
    "BIOES": ["B-A", "E-A", "O", "S-B", "S-B"],
    "BMES": ["B-A", "E-A", "O", "S-B", "S-B"],
    "BMEWO": ["B-A", "E-A", "O", "W-B", "W-B"],
    "BILOU": ["B-A", "L-A", "O", "U-B", "U-B"],
}


def sentence(tags: list[str], line: int = 1) -> TaggedSentence:
    return TaggedSentence([f"w{i}" for i in range(len(tags))], tags, list(range(line, line + len(tags))))


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
    (["B-A", "M-A", "E-A", "W-A"], "BMEWO"),
    (["b_a", "NOUN", "O"], "plain"),
    (["O", "O"], "plain"),
    (["B", "I", "B", "O"], "BIO"),
    (["I", "I", "B", "O", "I"], "IOB1"),
    (["NOUN", "B-A", "NOUN", "O"], "plain"),
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


@pytest.mark.parametrize(("tags", "written"), [(["O", "B_PER", "I_PER"], "B-PER"), (["o", "b-per", "i-per"], "B-per")])
def test_spans_in_another_spelling_are_told(tags: list[str], written: str) -> None:
    with pytest.raises(FormatError, match=rf"a.txt:2: has the tag '{tags[1]}'; write span tags as {written}, with O between"):
        scheme_of([sentence(tags)], "a.txt")


@pytest.mark.parametrize("odd", ["o", "B_A", "_"])
def test_an_odd_tag_among_spans_is_told_by_its_line(odd: str) -> None:
    with pytest.raises(FormatError, match=rf"a.txt:4: has the tag '{odd}', but most of the file's tags are O or mark spans"):
        scheme_of([sentence(["B-A", "I-A", "O", odd])], "a.txt")


@pytest.mark.parametrize(("usual", "scheme"), [("B", "BIO"), ("I", "IOB1")])
def test_a_few_slips_are_told_and_read_all_the_same(usual: str, scheme: str, caplog: pytest.LogCaptureFixture) -> None:
    """Real data has them: MSRA's sentences were cut within names."""
    slip = sentence(["O", f"{'BI'.replace(usual, '')}-A"], 10_001)
    sentences = [sentence([f"{usual}-A", "I-A", "O"], 10 * number + 1) for number in range(100)]
    assert scheme_of([*sentences, slip], "a.txt", warn=True) == scheme
    assert "a.txt:10002: begins a span with" in caplog.text and "1 of 101" in caplog.text
    assert spans(slip.tags) == [(1, 2, "A")]
    with pytest.raises(FormatError, match=r"a\.txt:10002"):
        scheme_of([*sentences[1:], slip], "a.txt")


@given(some.lists(some.sampled_from(["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in "AB")]), max_size=8))
def test_allowed_paths_are_exactly_the_legal_ones(tags: list[str]) -> None:
    labels = scheme_labels([["S-A", "S-B"]], "BIOES")
    moves = allowed_transitions(labels)
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


@pytest.mark.parametrize("scheme", WRITTEN)
def test_spans_without_types_are_letters(scheme: str) -> None:
    """The words of a Chinese text: B, M, E and S, and nothing behind them."""
    letters = [tag[0] for tag in ["B-A", "I-A", "E-A", "S-A", "O", "B-A", "E-A"]]
    written = from_bioes(letters, scheme)
    assert to_bioes(written, scheme) == letters and all(len(tag) == 1 for tag in written)
    assert spans(written) == [(0, 3, ""), (3, 4, ""), (5, 7, "")]
    labels = scheme_labels([written], scheme)
    assert labels == ["O", "B", "I", "E", "S"]
    assert allowed_transitions(labels)["allowed"].int().tolist() == [
        [1, 1, 0, 0, 1], [0, 0, 1, 1, 0], [0, 0, 1, 1, 0], [1, 1, 0, 0, 1], [1, 1, 0, 0, 1]
    ]  # fmt: skip


def test_labels() -> None:
    assert scheme_labels([["S-B", "O"], ["B-A", "E-A"]], "BIOES") == ["O", *(f"{x}-{t}" for t in "AB" for x in "BIES")]
    assert scheme_labels([["VERB", "NOUN"]], "plain") == ["NOUN", "VERB"]
    assert isinstance(allowed_transitions(["O"])["allowed"], torch.Tensor)
