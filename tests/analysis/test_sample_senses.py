"""Senses of the sample words, on vectors that are known."""

from __future__ import annotations

import numpy as np
import pytest

from polyseme.analysis.sample_senses import CENTROID, SHARE, probe_samples
from polyseme.analysis.samples import Sample
from polyseme.base.errors import PolysemeError
from tests.analysis.known import Known

SENTENCES = [("river", "a bank"), ("river", "one bank"), ("money", "my bank"), ("money", "our bank")]
SAMPLES = [Sample("bank", sense, text, text.index("bank")) for sense, text in SENTENCES]


class BySentence(Known):
    """Layer 0 knows the word alone; the top knows the sense, but for one sentence."""

    def embed(self, sentences, **options):
        top = {"a": [1.0, 0.1], "one": [1.0, 0.0], "my": [0.0, 1.0], "our": [0.8, 0.3]}
        arrays = []
        for words in sentences:
            own = np.ones((len(words), 2), dtype=np.float32)
            above = np.tile(np.array(top[words[0]], dtype=np.float32), (len(words), 1))
            arrays.append(np.stack([own, above]))
        return arrays

    @property
    def layers(self):
        return 2

    @property
    def dim(self):
        return 2


def test_nearest_places_are_counted():
    found = probe_samples(BySentence(split="whitespace"), SAMPLES)
    # a and one find each other, my is nearest to our, and our to a
    assert found.rows["layer 1"][SHARE] == pytest.approx(3 / 4)
    # the others of each sense together: our is nearer to the river, all others are right
    assert found.rows["layer 1"][CENTROID] == pytest.approx(3 / 4)
    assert found.rows["layer 0"][CENTROID] == pytest.approx(1 / 2)
    assert found.facts["bank"] == pytest.approx(0.75)
    # all spans are equally near without context: one of three others has the sense
    assert found.rows["layer 0"][SHARE] == pytest.approx(1 / 3)
    assert found.baselines["a guess"][SHARE] == pytest.approx(1 / 3)


def test_words_cut_otherwise_are_left_out_and_counted():
    joined = Sample("bank", "river", "abank", 1)
    assert probe_samples(BySentence(split="whitespace"), [*SAMPLES, joined]).facts["split_differently"] == 1
    with pytest.raises(PolysemeError, match="no vector"):
        probe_samples(BySentence(split="whitespace"), [joined])
