"""A sentence that was read once answers as the questions do that read it anew; probabilities by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.encoders.small import elmo

TEXT = ["the", "bank", "zzz", "the", "river"]


def test_a_sentence_is_read_once() -> None:
    model = elmo(output=True)
    read = model.read_sentence(" ".join(TEXT))
    assert read.words == TEXT and read.nbytes >= read.vectors.nbytes
    np.testing.assert_array_equal(read.vectors, model.embed([TEXT])[0])
    for position in (0, 4):
        assert read.substitutes(position, 3) == model.substitutes(TEXT, position, count=3)
    (scores,) = model.log_probs([TEXT])
    sides = read.log_probs()
    assert scores.backward is not None and sides.known.tolist() == scores.known.tolist()
    np.testing.assert_allclose(sides.left, scores.forward[:-1], atol=1e-5)
    np.testing.assert_allclose(sides.right, scores.backward[:-1], atol=1e-5)


def test_kept_scores_answer_the_same() -> None:
    model = elmo(output=True)
    read = model.read_sentence(" ".join(TEXT))
    assert model.output is not None
    plain = [read.substitutes(position, 4) for position in range(5)]
    kept = read.log_probs(keep=True)
    np.testing.assert_array_equal(kept.both, model.read_sentence(" ".join(TEXT)).log_probs().both)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model.output, "forward", lambda states: pytest.fail("computed again"))
        again = [read.substitutes(position, 4) for position in range(5)]
        read.forget_scores()
        with pytest.raises(BaseException, match="computed again"):
            read.substitutes(0, 4)
    for one, other in zip(plain, again, strict=True):
        assert [each.word for each in one] == [each.word for each in other]
        np.testing.assert_allclose([each.log_prob for each in one], [each.log_prob for each in other], atol=1e-5)


def test_given_all_other_words() -> None:
    model = elmo(output=True)
    assert model.vocabulary is not None
    words = [word for word in ("the", "bank", "river") if word in model.vocabulary] * 30  # more than one block
    both = model.read_sentence(words).log_probs().both
    for position in (0, 64, len(words) - 1):
        fits = {each.word: each.log_prob for each in model.substitutes(words, position, count=len(model.vocabulary))}
        assert both[position] == pytest.approx(fits[words[position]], abs=1e-4)
    unknown = model.read_sentence(["the", "zzz", model.config.begin]).log_probs().both
    assert np.isnan(unknown).tolist() == [False, True, True]
