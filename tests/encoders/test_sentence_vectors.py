"""One vector per text: against plain NumPy, for any batch, and from folder to folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polyseme.base.errors import FormatError, UsageError
from polyseme.encoders.base import Encoder
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.sentence_vectors import FILE, SAMPLE_WORDS, SentenceStatistics
from polyseme.text.word_vectors import WordVectors
from tests.encoders.small import elmo, sentences

TEXTS = [["the", "cat", "sat"], [], ["unheard"], ["漢字", "the", "河", "."], *sentences(30, seed=3)]


@pytest.fixture(scope="module")
def model() -> Elmo:
    return elmo(output=True).fit_pooling(sentences(60, seed=5))


def reference(model: Encoder, texts: list[list[str]], pooling: str) -> np.ndarray:
    """The same vectors in float64, one number of one text at a time where that is clearer."""
    statistics = model.sentence_statistics
    words = [word for word in model.vocabulary or statistics.words if word not in ("<S>", "</S>", "<UNK>")]
    total = sum(1 / (rank + 2.7) for rank in range(1, len(words) + 2))
    result = []
    for text, layers in zip(texts, model.embed(texts), strict=True):
        layers, vector = layers.astype(np.float64), np.zeros(statistics.whitening.shape[1])
        for word, each in zip(text, layers[0], strict=True):
            rank = words.index(word) + 1 if word in words else len(words) + 1
            weight = 0.001 / (0.001 + 1 / ((rank + 2.7) * total))
            white = (each - statistics.word_mean) @ statistics.whitening
            vector += weight * white / np.linalg.norm(white)
        parts = [vector / (np.linalg.norm(vector) or 1)]
        if pooling == "sif+mean" and not text:
            parts.append(np.zeros(statistics.text_mean.size))
        elif pooling == "sif+mean":
            upper = (layers[1:].mean(1) - statistics.text_mean) / statistics.text_std
            parts.append(0.5 * np.concatenate(upper) / np.linalg.norm(upper))
        result.append(np.concatenate(parts))
    return np.stack(result)


@pytest.mark.parametrize("pooling", ["sif", "sif+mean"])
def test_as_in_plain_numpy(model: Elmo, pooling: str) -> None:
    found = model.encode(TEXTS, pooling=pooling)
    assert found.dtype == np.float32 and not found[1].any()
    np.testing.assert_allclose(found, reference(model, TEXTS, pooling), atol=1e-5)


def test_the_distinct_words_become_uncorrelated() -> None:
    model = elmo(output=True)
    texts = sentences(60, seed=5)
    statistics = model.fit_pooling(texts).sentence_statistics
    words = sorted({word for text in texts for word in text})
    vectors = np.stack([array[0] for array in model.embed([[word] for word in words], layers=0)])
    white = (vectors - statistics.word_mean) @ statistics.whitening
    assert white.shape[1] <= 8, "layer 0 of an ELMo has every number twice"
    covariance = np.cov(white.T, bias=True)
    np.testing.assert_allclose(covariance - np.diag(np.diag(covariance)), 0, atol=1e-4)
    np.testing.assert_allclose(white.mean(0), 0, atol=1e-4)
    means = np.stack([array[1:].mean(1) for array in model.embed([text for text in texts if text])])
    np.testing.assert_allclose(statistics.text_mean, means.mean(0), atol=1e-6)


def test_a_vector_depends_on_its_own_text_alone(model: Elmo) -> None:
    together = model.encode(TEXTS)
    np.testing.assert_allclose(together, np.stack([model.encode([text])[0] for text in TEXTS]), atol=1e-5)
    np.testing.assert_allclose(together, model.encode(TEXTS, batch_size=3), atol=1e-5)
    np.testing.assert_allclose(together[::-1], model.encode(TEXTS[::-1]), atol=1e-5)
    assert model.encode([]).shape == (0, together.shape[1])
    assert model.encode("the cat").shape == together.shape[1:]


def test_frequent_words_weigh_less(model: Elmo) -> None:
    of = {word: model.encode([[word]], pooling="sif")[0] for word in ("the", "bank", "unheard")}
    mixed = model.encode([["the", "bank", "unheard"]], pooling="sif")[0]
    assert mixed @ of["the"] < mixed @ of["bank"] < mixed @ of["unheard"] + 0.5
    assert model.encode([["the", "the"]], pooling="sif")[0] @ of["the"] == pytest.approx(1, abs=1e-5)


def test_saved_and_loaded(model: Elmo, tmp_path: Path) -> None:
    for precision, tolerance in (("fp32", 1e-6), ("fp16", 0.02)):
        again = Elmo.from_pretrained(model.save_pretrained(tmp_path / precision, precision=precision))
        np.testing.assert_allclose(again.encode(TEXTS), model.encode(TEXTS), atol=tolerance)
    again.sentence_statistics = None
    again.save_pretrained(tmp_path / "fp16")
    assert not (tmp_path / "fp16" / FILE).exists(), "statistics of other weights are removed"
    assert Elmo.from_pretrained(tmp_path / "fp16").encode(["a cat"]).shape == (1, model.dim)
    wrong = elmo(output=True)
    wrong.save_pretrained(tmp_path / "wrong")
    statistics = model.sentence_statistics
    SentenceStatistics(**{**vars(statistics), "text_mean": statistics.text_mean[:1]}).save(tmp_path / "wrong")
    with pytest.raises(FormatError, match="does not fit the model"):
        Elmo.from_pretrained(tmp_path / "wrong")


def test_without_a_vocabulary_the_words_of_the_sample_are_ranked(tmp_path: Path) -> None:
    model = elmo().fit_pooling([*sentences(60, seed=5), ["\ud800", "new\nline"]])
    assert model.vocabulary is None
    np.testing.assert_allclose(model.encode(TEXTS), reference(model, TEXTS, "sif+mean"), atol=1e-5)
    again = Elmo.from_pretrained(model.save_pretrained(tmp_path / "model"))
    assert list(again.sentence_statistics.words) == list(model.sentence_statistics.words)
    np.testing.assert_allclose(again.encode(TEXTS), model.encode(TEXTS), atol=1e-6)


def test_one_layer_has_no_context() -> None:
    from polyseme.encoders.word2vec import WordVectorTable

    vectors = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    model = WordVectorTable.from_vectors(WordVectors(["the", "cat", "sat", "mat"], vectors, 4))
    model.fit_pooling([["the", "cat", "sat"], ["mat", "the"]])
    np.testing.assert_array_equal(model.encode(["the cat", "dog"]), model.encode(["the cat", "dog"], pooling="sif"))


def test_the_default_and_the_old_pooling(model: Elmo) -> None:
    plain = elmo(output=True)
    np.testing.assert_allclose(plain.encode(TEXTS), model.encode(TEXTS, pooling="mean"), atol=1e-6)
    np.testing.assert_allclose(plain.encode(TEXTS, layers=1), model.encode(TEXTS, layers=1), atol=1e-6)
    np.testing.assert_array_equal(model.encode(TEXTS), model.encode(TEXTS, pooling="sif+mean"))
    with pytest.raises(UsageError, match=r"needs statistics .* model.fit_pooling"):
        plain.encode(TEXTS, pooling="sif")
    with pytest.raises(UsageError, match="layers does not apply to the pooling sif"):
        model.encode(TEXTS, pooling="sif", layers=1)
    with pytest.raises(UsageError, match="at least one text with a word"):
        plain.fit_pooling(["", []])


def test_one_word_and_endless_text_are_samples_too(model: Elmo) -> None:
    for sample in ([["cat"]], [["cat"] * (SAMPLE_WORDS // 1000), ["dog"]]):
        assert np.isfinite(elmo().fit_pooling(sample).encode(TEXTS)).all()
