"""Tags from layers: layer 0 knows the word alone, layer 1 the word before it."""

import pytest

from polyseme.analysis.config import ProbeConfig
from polyseme.analysis.tags import most_frequent_tags, probe_tags
from polyseme.base.errors import PolysemeError
from polyseme.text.labelled.conll import TaggedSentence
from tests.analysis.fake import Fake

QUICK = ProbeConfig(epochs=10, min_steps=80, batch_size=64, learning_rate=2e-2, mix_learning_rate=5e-2)
NOUN, VERB = TaggedSentence(["the", "run"], ["D", "N"]), TaggedSentence(["to", "run"], ["P", "V"])
WORDS = {"the": [1.0, 0, 0], "to": [0, 1.0, 0], "run": [0, 0, 1.0]}


def vectors(words, position):
    own = WORDS.get(words[position], [0.0, 0, 0])
    before = WORDS.get(words[position - 1], [0.0, 0, 0]) if position else [0.0, 0, 0]
    return [[*own, 0, 0, 0], [*own, *before]]


def test_the_layer_that_sees_the_context():
    table = probe_tags(Fake(vectors), [NOUN, VERB, NOUN] * 20, [NOUN, VERB] * 5, config=QUICK)
    assert table.measures == ("accuracy",)
    scores = {name: row["accuracy"] for name, row in table.rows.items()}
    assert scores == {"layer 0": 0.75, "layer 1": 1.0, "mix": 1.0}
    assert table.baselines["most frequent tag"]["accuracy"] == 0.75
    assert table.best == "layer 1" and table.facts["tags"] == 4
    assert sum(table.facts["mix_weights"]) == pytest.approx(1, abs=1e-3)


def test_spans():
    train = [TaggedSentence(["the", "run", "to"], ["B-X", "I-X", "O"])] * 20
    test = [TaggedSentence(["the", "run", "to"], ["B-X", "I-X", "O"]), TaggedSentence(["run", "to"], ["B-X", "O"])]
    table = probe_tags(Fake(vectors), train, test, config=QUICK)
    assert table.measures == ("F1", "precision", "recall", "accuracy")
    # layer 0 says I-X for every `run`; alone it still is a span of its own, as the CoNLL scorer counts
    assert table.rows["layer 0"] == {"F1": 1.0, "precision": 1.0, "recall": 1.0, "accuracy": pytest.approx(0.8)}


def test_one_layer_has_no_mix():
    table = probe_tags(Fake(lambda words, position: vectors(words, position)[1:]), [NOUN, VERB] * 9, [NOUN], config=QUICK)
    assert list(table.rows) == ["layer 0"] and "mix_weights" not in table.facts


def test_tags_cut_otherwise():
    """The model knows `is` and `n't`, and not `isn't`, which looks like `so` to it unless it may split again."""
    encoder = Fake(lambda words, position: [[float(words[position] == "is"), float(words[position] == "n't")]], words="english")
    data = [TaggedSentence(["isn't", "is", "so"], ["X", "V", "R"])] * 20
    split, whole = (probe_tags(encoder, data, data[:1], resplit=resplit, config=QUICK) for resplit in (True, False))
    assert ["is", "n't", "is", "so"] in encoder.read and split.facts["test_words"] == 3
    assert split.rows["layer 0"]["accuracy"] == 1.0 and whole.rows["layer 0"]["accuracy"] == pytest.approx(2 / 3)


def test_most_frequent_tags():
    train = [TaggedSentence(["a", "a", "a", "b", "c", "d"], ["X", "Y", "Y", "X", "X", "Z"])]
    assert most_frequent_tags(train, [TaggedSentence(["a", "b", "new"], ["X"] * 3), TaggedSentence(["d"], ["X"])]) == [
        ["Y", "X", "X"],
        ["Z"],
    ]


def test_a_tag_that_training_never_had_is_wrong():
    table = probe_tags(Fake(vectors), [NOUN, VERB] * 9, [NOUN, TaggedSentence(["to"], ["new"])], config=QUICK)
    assert table.rows["layer 1"]["accuracy"] == pytest.approx(2 / 3)


def test_data_that_does_not_fit():
    with pytest.raises(PolysemeError, match=r"no tag in common: D, N .* choose another column"):
        probe_tags(Fake(vectors), [NOUN], [TaggedSentence(["a"], ["X"])])
    with pytest.raises(PolysemeError, match=r"all 4 words have the tag 'O'; a probe needs two or more: choose another column"):
        probe_tags(Fake(vectors), [TaggedSentence(["the", "run"], ["O", "O"])] * 2, [NOUN])
    with pytest.raises(PolysemeError, match="the test data has no words"):
        probe_tags(Fake(vectors), [NOUN], [])
