"""The sentences that come with the package, and how they are read."""

from __future__ import annotations

import collections

import pytest

from polyseme.analysis.samples import Sample, language_of, parse_samples, position_of, samples
from polyseme.base.errors import FormatError, UsageError
from tests.analysis.known import Known

HEAD = "word\tsense\tsentence\n"


@pytest.mark.parametrize(("language", "split"), [("en", "english"), ("zh", "characters")])
def test_shipped_samples(language, split):
    found = samples(language)
    senses = collections.defaultdict(set)
    for sample in found:
        marked = sample.sentence[sample.begin : sample.begin + len(sample.word)]
        assert marked.casefold() == sample.word.casefold()
        assert not set("[]\t") & set(sample.sentence)
        senses[sample.word].add(sample.sense)
    assert len(senses) >= 10 and all(len(each) >= 2 for each in senses.values())
    assert len({sample.sentence for sample in found}) == len(found)
    encoder = Known(split=split)
    for sample in found:
        position = position_of(sample, encoder)
        if language == "en" or len(sample.word) == 1:
            assert position is not None and encoder.words(sample.sentence)[position].casefold() == sample.word.casefold()
        else:
            assert position is None  # single characters


def test_reading():
    text = f"\ufeff{HEAD}bank\triver\t[Bank] of sand.\n\nbank\tmoney\tThe [bank], a bank.\n"
    assert parse_samples(text, "x") == [
        Sample("bank", "river", "Bank of sand.", 0),
        Sample("bank", "money", "The bank, a bank.", 4),
    ]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "x.tsv: begins with ''"),
        ("word\tsentence\n", "expected the columns word, sense, sentence"),
        (f"{HEAD}bank\tThe [bank].\n", "x.tsv:2: has 2 columns"),
        (f"{HEAD}bank\t\tThe [bank].\n", "x.tsv:2: has 3 columns, or empty ones"),
        (f"{HEAD}\nbank\triver\tThe bank.\n", "x.tsv:3: needs one word marked"),
        (f"{HEAD}bank\triver\tThe [bank.\n", "needs one word marked"),
        (f"{HEAD}bank\triver\tThe [bank] or [bank].\n", "needs one word marked"),
        (f"{HEAD}bank\triver\tThe [tank].\n", "marks 'tank'; expected 'bank'"),
    ],
)
def test_tables_that_are_none(text, what):
    with pytest.raises(FormatError) as error:
        parse_samples(text, "x.tsv")
    assert what in str(error.value)


@pytest.mark.parametrize(
    ("sentence", "begin", "word", "split", "position"),
    [
        ("A bank, no bank.", 11, "bank", "english", 4),
        ("A bank, no bank.", 2, "bank", "english", 1),
        ("A bank, no bank.", 2, "bank", "whitespace", None),
        ("A snowbank.", 6, "bank", "english", None),
        ("他打开灯", 1, "打", "characters", 1),
        ("他打开灯", 1, "打", "chinese", None),
        ("他打开灯", 1, "打开", "chinese", 1),
        ("他打开灯", 1, "打开", "characters", None),
        ("isn't it", 6, "it", "english", 2),
    ],
)
def test_places(sentence, begin, word, split, position):
    assert sentence[begin:].startswith(word)
    assert position_of(Sample(word, "any", sentence, begin), Known(split=split)) == position


def test_languages():
    assert [language_of(Known(split=split)) for split in ("english", "chinese", "characters")] == ["en", "zh", "zh"]
    with pytest.raises(UsageError, match="choose splitter='english' or splitter='chinese'"):
        language_of(Known(split="whitespace"))
    with pytest.raises(UsageError, match="allowed: en, zh"):
        samples("fr")  # type: ignore[arg-type]
