"""Sentences are read once while they fit, by models of any kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import polyseme
from polyseme.serve.models import ServedModel
from polyseme.serve.read_sentences import ReadSentences
from tests.serve.small_service import tiny_models


def test_a_sentence_is_read_once_while_it_fits() -> None:
    model, words = tiny_models().model("tiny"), ["the", "bank"]
    sentences = ReadSentences()
    read = sentences.read(model, words)
    assert read is not None and sentences.read(model, words) is read
    np.testing.assert_array_equal(sentences.vectors(model, words), model.encoder.embed([words])[0])
    small = ReadSentences(max_bytes=read.nbytes)
    first = small.read(model, words)
    assert small.read(model, ["the", "river"]) is not None and small.read(model, words) is not first
    bert = ServedModel("bert", polyseme.load(Path(__file__).parents[1] / "old_folders" / "encoders" / "bert"))
    assert sentences.read(bert, words) is None
    np.testing.assert_array_equal(sentences.vectors(bert, words), bert.encoder.embed([words])[0])


def test_the_scores_of_the_last_sentence_are_kept() -> None:
    model, sentences = tiny_models().model("tiny"), ReadSentences()
    one, two = (sentences.read(model, ["the", word]) for word in ("bank", "river"))
    assert one is not None and two is not None
    for scored, other in ((one, two), (two, one)):
        assert sentences.log_probs(model, scored.words) is not None
        assert scored._both is not None and other._both is None
    bert = ServedModel("bert", polyseme.load(Path(__file__).parents[1] / "old_folders" / "encoders" / "bert"))
    assert sentences.log_probs(bert, ["the"]) is None
