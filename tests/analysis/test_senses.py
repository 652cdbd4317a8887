"""Senses by the nearest centroid: layer 1 tells two senses of `bank` apart, layer 0 does not."""

import json

import pytest

from polyseme.analysis.sense_data import Instance, part_of_speech, read_senses
from polyseme.analysis.senses import ALL, SEEN, count_senses, most_frequent, probe_senses
from polyseme.base.errors import FormatError, PolysemeError
from tests.analysis.fake import Fake
from tests.analysis.real import real

MONEY, RIVER = "08420278-n", "09213565-n"


def line(words, *instances):
    fields = ("i", "lemma", "pos", "synsets")
    return json.dumps({"words": words, "instances": [{**dict(zip(fields, each, strict=True)), "n": 1} for each in instances]})


def bank(before, *synsets, pos="NN"):
    return line([before, "bank"], (1, "bank", pos, synsets))


@pytest.fixture
def read(tmp_path):
    def call(*lines):
        path = tmp_path / "senses.jsonl"
        path.write_text("\n".join(lines))
        return read_senses(path)

    return call


def vectors(words, position):
    """Layer 0 is the same everywhere; layer 1 looks at the first word, of any size."""
    return [[1.0, 0.0], {"money": [3.0, 0.1], "river": [0.1, 9.0], "cash": [2.0, 0.5]}.get(words[0], [1.0, 1.0])]


def test_the_layer_that_knows(read):
    train = read(bank("money", MONEY), bank("money", MONEY), bank("river", RIVER))
    test = read(bank("cash", MONEY), bank("river", RIVER), bank("river", RIVER, "1-n"), bank("x", RIVER, pos="VB"))
    table = probe_senses(Fake(vectors), train, test)
    assert table.rows["layer 0"] == {SEEN: pytest.approx(1 / 3), ALL: 0.25}  # a tie: the more frequent sense
    assert table.rows["layer 1"] == {SEEN: 1.0, ALL: 0.75}
    assert table.rows["mean"][SEEN] == table.rows["concatenation"][SEEN] == 1.0
    assert table.baselines == {"most frequent sense": {SEEN: pytest.approx(1 / 3), ALL: 0.25}}
    assert table.facts == {"test_words": 4, "seen_words": 3, "training_words": 3}


def test_each_occurrence_counts_alike(read):
    """A long vector must not pull its sense's centroid: of (100, 0) and two of (0, 1) the mean direction is near (0, 1)."""
    spans = {"a": [100.0, 0.0], "b": [0.0, 1.0], "d": [1.0, 0.8]}
    train = read(bank("a", MONEY), bank("b", MONEY), bank("b", MONEY), bank("d", RIVER))
    table = probe_senses(Fake(lambda words, position: [spans.get(words[0], [0.0, 1.0])]), train, read(bank("zero", MONEY)))
    # cosines with (0, 1): MONEY 0.894 by normalised vectors (0.02 by raw ones), RIVER 0.625
    assert table.rows["layer 0"][SEEN] == 1.0


def test_only_what_is_needed_is_embedded(read):
    encoder = Fake(vectors)
    sure = line(["the", "river"], (1, "river", "NN", ["1-n"]))
    other = line(["a", "run"], (1, "run", "NN", ["2-n"]))
    train = read(bank("money", MONEY), bank("river", RIVER), sure, other)
    table = probe_senses(encoder, train, read(bank("cash", MONEY), sure))
    assert ["a", "run"] not in encoder.read and encoder.read.count(["the", "river"]) == 1
    assert table.rows["layer 1"][SEEN] == 1.0


def test_terms_of_several_words(read):
    sentence = read(
        line(["The", "primary_election", "_to", "_", "went"], (1, "primary_election", "NN", ["1-n"]), (4, "GO", "VBD", ["2-v"]))
    )
    assert sentence[0].words == ["The", "primary", "election", "to", "_", "went"]
    assert sentence[0].instances == [
        Instance(range(1, 3), ("primary_election", "n"), ("1-n",)),
        Instance(range(5, 6), ("go", "v"), ("2-v",)),
    ]


def test_words_without_synset_are_left_out_and_satellites_are_adjectives(read):
    found = read(line(["a", "b"], (0, "a", "JJ", []), (1, "b", "JJR", ["3-s", "4-a"])))
    assert found[0].instances == [Instance(range(1, 2), ("b", "a"), ("3-a", "4-a"))]


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("NN NNP NNS NP NE N n NOUN PROPN", "n"),
        ("VB VBD MD VV v VERB AUX", "v"),
        ("JJ JJS a s ADJ", "a"),
        ("RB RBR WRB r ADV", "r"),
    ],
)
def test_parts_of_speech(tags, expected):
    assert {part_of_speech(tag) for tag in tags.split()} == {expected}


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ("{", "is not valid JSON"),
        ('{"words": ["a"]}', "lacks the field 'instances'"),
        ('{"words": "a", "instances": []}', "words is not a list of strings"),
        (line(["a"], (1, "a", "NN", ["1-n"])), "words 1 to 1 of 1"),
        ("[]", "is not a sentence with senses"),
        ('{"words": ["a"], "instances": [{"i": "x", "n": 1}]}', "is not a sentence with senses"),
    ],
)
def test_bad_lines(read, bad, what):
    with pytest.raises(FormatError, match=rf"senses\.jsonl:2: .*{what}"):
        read(bank("money", MONEY), bad)


def test_nothing_to_learn_or_to_ask(read):
    with pytest.raises(FormatError, match="has no word with a synset"):
        read(line(["a"]))
    with pytest.raises(PolysemeError, match="none of the 1 words"):
        probe_senses(Fake(vectors), read(bank("money", MONEY)), read(bank("money", MONEY, pos="VB")))


@pytest.mark.slow
def test_most_frequent_sense_of_real_data():
    """Counted over the same files by another program: 1,202 of 1,952 seen words are right, of 2,225 with a synset."""
    folder = real("wsd_allwords_en")
    train = [
        sentence for name in ("brown1", "brown2", "brownv") for sentence in read_senses(folder / f"semcor3.0_{name}.jsonl.gz")
    ]
    senses = count_senses(train)
    asked = [instance for sentence in read_senses(folder / "senseval2.jsonl.gz") for instance in sentence.instances]
    answers = [most_frequent(senses, instance) for instance in asked]
    right = sum(answer in each.synsets for each, answer in zip(asked, answers, strict=True))
    assert (len(asked), len(asked) - answers.count(None), right) == (2225, 1952, 1202)
