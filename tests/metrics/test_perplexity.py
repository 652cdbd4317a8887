"""Perplexity by hand."""

from __future__ import annotations

import numpy as np
import pytest

from polyseme.metrics.perplexity import Perplexity, PerplexityMeter, perplexity


def test_both_directions() -> None:
    meter = PerplexityMeter()
    assert meter.result() is None
    forward, backward = np.log([[0.5, 0.25, 0.1], [0.2, 0.9, 0.3]]), np.log([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    for one, other in zip(forward, backward, strict=True):
        meter.add(one, other)
    result = meter.result()
    assert result is not None and (meter.sentences, result.predictions) == (2, 6)
    assert result.forward == pytest.approx(np.prod(np.exp(forward)) ** (-1 / 6))
    assert result.backward == pytest.approx(np.prod(np.exp(backward)) ** (-1 / 6))
    assert result.mean == pytest.approx((result.forward * result.backward) ** 0.5)


def test_left_to_right_only() -> None:
    meter = PerplexityMeter()
    meter.add([-1.0, -3.0])
    result = meter.result()
    assert result is not None and result.backward is None and result.forward == result.mean == pytest.approx(np.exp(2))


def test_impossible_words_stay_finite() -> None:
    assert perplexity(-1e9, 3) == pytest.approx(np.exp(700))
    meter = PerplexityMeter()
    meter.add([-np.inf])
    result = meter.result()
    assert result is not None and np.isfinite(result.mean)


def test_many_unknown_words_are_a_warning() -> None:
    texts = [str(Perplexity(84.2, None, 84.2, 110, 10, unknown)) for unknown in (0.03, 0.15)]
    assert ["compare it only where about as many words are outside" in text for text in texts] == [False, True]
