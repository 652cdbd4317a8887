"""Held-out sentences that are in the training text too."""

import numpy as np
import pytest

from polyseme.base.errors import flags_in_messages
from polyseme.pretraining import repeats
from polyseme.pretraining.job import split
from polyseme.pretraining.repeats import repeated_sentences, repeats_message
from polyseme.text.shards.shards import Shards


def shards(sentences: list[list[int]]) -> Shards:
    offsets = np.cumsum([0, *map(len, sentences)])
    words = np.array([word for sentence in sentences for word in sentence], np.uint32)
    return Shards(words, offsets, np.ones(100, np.int64), fingerprint="", types=[])


@pytest.mark.parametrize("block", [1, 2, 1_000_000])
def test_equal_sentences_are_found(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "_BLOCK", block)
    long, other, short = [3, 4, 5, 6, 7, 8], [9, 8, 7, 6, 5], [3, 4]
    text = shards([long, short, other[::-1], [], long[:5], long, short, [*long, 9], other, long[:5]])
    assert repeated_sentences(text, range(5), range(5, 10)) == 2  # long and its first five words; short ones do not count
    assert repeated_sentences(text, range(1, 4), range(5, 10)) == 0


def test_no_sentence_is_taken_for_another() -> None:
    random = np.random.default_rng(0)
    sentences = [random.integers(0, 3, size=random.integers(0, 9)).tolist() for _ in range(600)]
    known = {tuple(each) for each in sentences[:500] if len(each) >= repeats.SHORT}
    expected = sum(tuple(each) in known for each in sentences[500:])
    assert 0 < expected < 100 and repeated_sentences(shards(sentences), range(500), range(500, 600)) == expected


def test_few_are_not_reported() -> None:
    assert repeats_message(4, 10) is None and repeats_message(0, 0) is None and repeats_message(19, 1000) is None
    assert "5 of the 100 held-out sentences are in the training text too" in str(repeats_message(5, 100))


def test_the_message_says_what_helps() -> None:
    """Lines are not said to repeat: a sentence may repeat inside lines that differ. What is last in the text is held out."""
    with flags_in_messages():
        message = str(repeats_message(5, 100))
    assert "remove repeated sentences (write one per line" in message and "corpus dedupe --threshold 1" in message
    assert message.endswith(
        "or give another text as the last --corpus, and --dev-size, the number of its sentences, to hold it out"
    )
    assert split(100, 7, at_most=1000) == (range(93), range(93, 100))
