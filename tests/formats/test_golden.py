"""Numbers that the original programs gave: bilm-tf and AllenNLP with carried state, ELMoForManyLangs from zeros."""

import contextlib
import json

import h5py
import numpy as np
import pytest

from polyseme.formats.load import load
from polyseme.nn.lstm.layers import plain_only
from tests.formats.compare import lines
from tests.golden_path import golden


@pytest.fixture(params=["plain", "automatic"])
def path(request):
    """Through the plain LSTM, and through the one that is chosen for this machine."""
    with plain_only() if request.param == "plain" else contextlib.nullcontext():
        yield


def worst(record_property, got, expected) -> None:
    """Keep the largest absolute difference with the test's result."""
    error = max(float(np.abs(a - b).max()) for a, b in zip(got, expected, strict=True))
    print(f"max abs error {error:.2e}")
    record_property("max_abs_error", error)


def interleaved(folder, name: str) -> list[list[str]]:
    """Three lists of ten sentences -> ten batches of three, one after another."""
    lists = json.loads((folder / name).read_text(encoding="utf-8"))
    return [line.split() for batch in zip(*lists, strict=True) for line in batch]


def top_layers(folder) -> list[np.ndarray]:
    """What was published, in the order of `interleaved`: (words, 32)."""
    rows = []
    for row in range(3):
        with h5py.File(folder / f"lm_embeddings_{row}.hdf5", "r") as file:
            rows.append([np.hstack(list(file[str(i)][...])) for i in range(10)])
    return [array for batch in zip(*rows, strict=True) for array in batch]


@pytest.mark.parametrize(("name", "sentences"), [("bilm-tf", "lm_embeddings_sentences.json"), ("allennlp", "sentences.json")])
def test_top_layer_with_carried_state(name, sentences, path, record_property):
    folder = golden(name)
    model = load(folder)
    words = interleaved(folder, sentences)
    got = model.embed(words, start="carry", batch_size=3, layers="top")
    expected = top_layers(folder)
    worst(record_property, got, expected)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6, rtol=1e-5)


def test_token_embeddings(record_property):
    folder = golden("allennlp")
    vocabulary = lines(folder / "vocab_test.txt")
    with h5py.File(folder / "elmo_token_embeddings.hdf5", "r") as file:
        expected = file["embedding"][...]  # (458, 16)
    got = load(folder).embed([vocabulary], layers=0)[0]
    worst(record_property, [got[:, :16]], [expected])
    np.testing.assert_allclose(got, np.hstack([expected, expected]), atol=1e-6, rtol=1e-5)


def test_a_model_by_word_ids_gives_the_same_vectors(path, record_property):
    folder = golden("allennlp")
    model = load(folder, token_embeddings=folder / "elmo_token_embeddings.hdf5")
    assert model.config.characters is None
    assert model.config.words is not None
    assert model.config.words.size == 458
    sentences = interleaved(folder, "sentences.json")
    assert all(word in model.vocabulary for sentence in sentences for word in sentence)
    got = model.embed(sentences, start="carry", batch_size=3, layers="top")
    expected = top_layers(folder)
    worst(record_property, got, expected)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", ["en-char", "zh-word", "zh-word-char"])
def test_manylangs(name, path, record_property):
    folder = golden("manylangs") / name
    sentences = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    with np.load(folder / "expected.npz") as file:
        expected = [file[str(i)] for i in range(len(sentences))]
    got = load(folder).embed(sentences, start="zero")
    worst(record_property, got, expected)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_the_tagger_holds_the_golden_elmo(caplog):
    archive = golden("allennlp-tagger") / "model.tar.gz"
    direct = load(golden("allennlp"))
    packed = load(archive)
    assert "assumed clips of 3" in caplog.text
    assert packed.source == str(archive)
    assert "clips of 3" in packed.assumed
    assert packed.config == direct.config
    sentences = interleaved(golden("allennlp"), "sentences.json")
    for a, b in zip(packed.embed(sentences), direct.embed(sentences), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
