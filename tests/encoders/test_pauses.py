"""Pauses of encoders in long texts: there are some, other texts may be computed in them, and the vectors stay the same."""

from __future__ import annotations

import numpy as np
import pytest

from polyseme.encoders import subword_model
from polyseme.encoders.base import Encoder
from polyseme.nn.output import full
from polyseme.nn.pauses import PIECE, pausing
from tests.encoders.small import elmo, sentences
from tests.encoders.small_subwords import bert

LONG = [word for sentence in sentences(200, longest=20) for word in sentence][: 3 * PIECE]
SHORT = ["a", "cat", "sat"]


def check(model: Encoder, pauses: int) -> None:
    expected = model.embed([LONG, SHORT])
    between: list[np.ndarray] = []
    with pausing(lambda: between.append(model.embed([SHORT])[0])):
        found = model.embed([LONG])[0]
    np.testing.assert_allclose(found, expected[0], atol=1e-5)
    assert len(between) == pauses
    for each in between:
        np.testing.assert_allclose(each, expected[1], atol=1e-5)


def test_elmo() -> None:
    check(elmo(), pauses=3)  # with begin and end tokens there are four pieces


def test_subwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subword_model, "_WITH_PAUSES", 1)
    model = bert()
    windows = len(model.prepare([LONG]).inputs.ids)
    assert windows > 2
    check(model, pauses=windows - 1)


def test_scores() -> None:
    model, pauses = elmo(output=True), list[bool]()
    expected = model.log_probs([LONG])[0]
    with pausing(lambda: pauses.append(True)), pytest.MonkeyPatch.context() as patch:
        patch.setattr(full.FullSoftmax.log_probs, "__kwdefaults__", {"numbers": 1})
        found = model.log_probs([LONG])[0]
    np.testing.assert_allclose(found.forward, expected.forward, atol=1e-5)
    assert len(pauses) == 3 + 2 * len(LONG)  # a word at a time, in both directions


def test_there_are_none_otherwise() -> None:
    calls: list[bool] = []
    with pausing(lambda: calls.append(True)), pausing(None):
        elmo().embed([LONG])
    assert not calls
