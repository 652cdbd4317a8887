"""The oracle against the published golden files, and the writers against the oracle."""

import io
import json
import tarfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from tests.golden_path import golden

from .elmo import OracleElmo, layer_norm_mix, pad_batch
from .make import ARCHIVE_PREFIX, EMBEDDER_KEY, VOCABULARY, write_allennlp_archive, write_bilm, write_manylangs
from .make import write_token_embeddings as write_cached

SENTENCES = [
    ["the", "bank", "of", "the", "river", "."],
    ["Winfrey", "naïve", "今天", "x" * 70, "", "a", "\ud800b"],
    ["."],
]


def read_lines(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")


def load(folder: Path, **settings: object) -> OracleElmo:
    """The oracle of a folder written by `write_bilm`."""
    vocabulary = read_lines(folder / "vocab.txt") if (folder / "vocab.txt").exists() else None
    options = json.loads((folder / "options.json").read_text(encoding="utf-8"))
    return OracleElmo.from_bilm(options, folder / "weights.hdf5", vocabulary, **settings)  # type: ignore[arg-type]


def report(record_property, got: list[np.ndarray], expected: list[np.ndarray]) -> None:
    """The largest absolute difference, kept with the test's result."""
    worst = max(float(np.abs(a - b).max()) for a, b in zip(got, expected, strict=True))
    print(f"max abs error {worst:.2e}")
    record_property("max_abs_error", worst)


@pytest.mark.parametrize(("name", "sentences"), [("bilm-tf", "lm_embeddings_sentences.json"), ("allennlp", "sentences.json")])
def test_golden_top_layer_with_carried_state(name, sentences, record_property):
    folder = golden(name)
    options = json.loads((folder / "options.json").read_text())
    oracle = OracleElmo.from_bilm(options, folder / "lm_weights.hdf5")
    lists = json.loads((folder / sentences).read_text(encoding="utf-8"))
    batches = [[line.split() for line in batch] for batch in zip(*lists, strict=True)]
    assert [len(batches), len(batches[0])] == [10, 3]
    results = oracle.embed_carry(batches)
    got, expected = [], []
    for row in range(3):
        with h5py.File(folder / f"lm_embeddings_{row}.hdf5", "r") as file:
            for i in range(10):
                expected.append(file[str(i)][...])  # (2 directions, n, 16)
                got.append(np.stack(np.split(results[i][row][-1], 2, axis=1)))
    report(record_property, got, expected)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6, rtol=1e-5)
    alone, _ = oracle.embed(batches[1][0])
    assert np.abs(alone - results[1][0]).max() > 0.01  # the carried state matters


def test_golden_token_embeddings(record_property):
    folder = golden("allennlp")
    options = json.loads((folder / "options.json").read_text())
    oracle = OracleElmo.from_bilm(options, folder / "lm_weights.hdf5")
    vocabulary = read_lines(folder / "vocab_test.txt")
    with h5py.File(folder / "elmo_token_embeddings.hdf5", "r") as file:
        expected = file["embedding"][...]
    got = oracle.token_vectors(vocabulary)
    report(record_property, [got], [expected])
    np.testing.assert_allclose(got, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", ["en-char", "zh-word", "zh-word-char"])
def test_golden_manylangs(name, record_property):
    folder = golden("manylangs") / name
    oracle = OracleElmo.from_manylangs(folder)
    sentences = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    with np.load(folder / "expected.npz") as file:
        expected = [file[str(i)] for i in range(len(sentences))]
    got = [oracle.embed(sentence)[0] for sentence in sentences]
    report(record_property, got, expected)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def read_archive(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {m.name: archive.extractfile(m).read() for m in archive if m.isfile()}  # type: ignore[union-attr]


def read_state(content: bytes) -> dict[str, torch.Tensor]:
    return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)


def test_golden_archive_has_the_layout_that_we_write(tmp_path):
    """The published tagger: same names and shapes as a written archive of its sizes; its ELMo is the golden one."""
    published = read_archive(golden("allennlp-tagger") / "model.tar.gz")
    filters = ((1, 4), (2, 8), (3, 16), (4, 32), (5, 64))
    sizes = {"dim": 64, "projection": 16, "filters": filters, "embedding": 4}
    written = read_archive(write_allennlp_archive(tmp_path / "model.tar.gz", options_inside=False, **sizes))
    assert set(written) == set(published)
    states = [read_state(files["weights.th"]) for files in (published, written)]
    shapes = [{k: tuple(v.shape) for k, v in state.items() if k.startswith(ARCHIVE_PREFIX)} for state in states]
    assert shapes[0] == shapes[1]
    folder = golden("allennlp")
    options = json.loads((folder / "options.json").read_text())
    direct = OracleElmo.from_bilm(options, folder / "lm_weights.hdf5")
    packed = OracleElmo.from_allennlp(options, states[0], ARCHIVE_PREFIX)
    for sentence in SENTENCES:
        np.testing.assert_allclose(packed.embed(sentence)[0], direct.embed(sentence)[0], atol=1e-6)


VARIANTS = {
    "default": {},
    "plain": {"residual": False, "cell_clip": None, "projection_clip": 0, "characters": 261},
    "small-clips": {"cell_clip": 0.5, "projection_clip": 0.4},
    "tanh-no-highway": {"activation": "tanh", "highways": None},
    "zero-highway": {"highways": 0},
    "no-projection-of-characters": {"projection": 18},
    "no-projection-of-cells": {"dim": 8, "projection": 8},
    "wide-words": {"dim": 6, "projection": 8},
    "one-layer": {"layers": 1},
    "flat-layer": {"layers": 1, "flat_single_layer": True},
    "three-layers": {"layers": 3},
    "short-words": {"max_characters": 12},
    "long-words": {"max_characters": 60},
    "words": {"words_only": True, "vocabulary": VOCABULARY},
    "softmax": {"softmax": True},
    "words-softmax": {"softmax": True, "words_only": True},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_loads_with_the_right_shapes(name, tmp_path):
    settings = VARIANTS[name]
    oracle = load(write_bilm(tmp_path, **settings))
    width = settings.get("projection", 8)
    for sentence in [*SENTENCES, []]:
        layers, _ = oracle.embed(sentence)
        assert layers.shape == (settings.get("layers", 2) + 1, len(sentence), 2 * width)
        tokens = oracle.token_vectors(sentence)
        np.testing.assert_array_equal(layers[0], np.hstack([tokens, tokens]))
    if name == "wide-words":
        for half in np.split(oracle.embed(SENTENCES[0])[0], 2, axis=2):
            assert (half[1:, :, 6:] == 0).all()
            assert (half[1:, :, :6] != 0).all()


@pytest.mark.parametrize("name", ["default", "small-clips", "three-layers"])
def test_clips_fire(name, tmp_path):
    oracle = load(write_bilm(tmp_path, **VARIANTS[name]))
    for sentence in SENTENCES:
        oracle.embed(sentence)
    assert oracle.clipped["cell"] > 10
    assert oracle.clipped["projection"] > 10


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("name", ["default", "plain", "tanh-no-highway", "one-layer", "flat-layer", "three-layers"])
def test_archive_and_bilm_agree(name, inside, tmp_path):
    settings = {**VARIANTS[name], "seed": 3}
    direct = load(write_bilm(tmp_path / "bilm", **settings))
    files = read_archive(write_allennlp_archive(tmp_path / "model.tar.gz", options_inside=inside, **settings))
    options = json.loads((tmp_path / "bilm" / "options.json").read_text())
    assert (f"fta/{EMBEDDER_KEY}options_file" in files) == inside
    if inside:
        assert json.loads(files[f"fta/{EMBEDDER_KEY}options_file"]) == options
    packed = OracleElmo.from_allennlp(options, read_state(files["weights.th"]), ARCHIVE_PREFIX)
    for sentence in SENTENCES:  # not to the last digit: float32 rounds the forget bias + 1
        np.testing.assert_allclose(packed.embed(sentence)[0], direct.embed(sentence)[0], atol=1e-5)


def test_writers_are_deterministic(tmp_path):
    arrays = []
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        with h5py.File(write_bilm(tmp_path / folder, seed=seed) / "weights.hdf5", "r") as file:
            arrays.append(file["char_embed"][...])
    np.testing.assert_array_equal(arrays[0], arrays[1])
    assert (arrays[0] != arrays[2]).all()


def test_cached_word_vectors_give_the_same_layers(tmp_path):
    oracle = load(write_bilm(tmp_path, vocabulary=VOCABULARY))
    cached = load(tmp_path, embedding_path=write_cached(tmp_path, oracle, VOCABULARY))
    sentence = ["the", "<S>", "bank", "今天", "<UNK>"]
    np.testing.assert_allclose(cached.embed(sentence)[0], oracle.embed(sentence)[0], atol=1e-5)


def test_state_is_carried_row_by_row(tmp_path):
    oracle = load(write_bilm(tmp_path))
    first, second, third = SENTENCES
    results = oracle.embed_carry([[first, second], [third], [second, first]])
    _, state = oracle.embed(first)
    _, state = oracle.embed(third, state)
    np.testing.assert_array_equal(results[2][0], oracle.embed(second, state)[0])
    _, state = oracle.embed(second)  # row 1 was not in the second batch
    np.testing.assert_array_equal(results[2][1], oracle.embed(first, state)[0])


@pytest.mark.parametrize("settings", [{}, {"words_only": True}, {"dim": 8, "projection": 8}, {"layers": 1}])
def test_log_probs_are_normalised_and_look_only_one_way(settings, tmp_path):
    oracle = load(write_bilm(tmp_path, softmax=True, **settings))
    prefix, suffix = ["the", "bank"], ["river", "."]
    forward_sum = backward_sum = 0.0
    for word in VOCABULARY:
        forward, backward = oracle.log_probs([*prefix, word, *suffix])
        forward_sum += np.exp(forward[2])  # of the word, from what is before it
        backward_sum += np.exp(backward[3])  # of the word, from what is after it
        base_forward, base_backward = oracle.log_probs([*prefix, "a", *suffix])
        np.testing.assert_allclose(forward[:2], base_forward[:2])
        np.testing.assert_allclose(backward[4:], base_backward[4:])
    assert forward_sum == pytest.approx(1.0)
    assert backward_sum == pytest.approx(1.0)
    forward, backward = oracle.log_probs([])
    assert forward.shape == backward.shape == (1,)
    unknown = oracle.log_probs(["of", "zzz"])[0][1]
    assert unknown == pytest.approx(oracle.log_probs(["of", "<UNK>"])[0][1])


@pytest.mark.parametrize(("word_dim", "char_dim"), [(6, 5), (0, 5), (6, 0)])
def test_manylangs_models_load(word_dim, char_dim, tmp_path):
    author = "/home/author/configs/cnn_small.json"
    write_manylangs(tmp_path, word_dim=word_dim, char_dim=char_dim, config_path=author, legacy=True)
    oracle = OracleElmo.from_manylangs(tmp_path)
    for sentence in SENTENCES:
        assert oracle.embed(sentence)[0].shape == (3, len(sentence), 16)
    assert oracle.clipped["cell"] > 10
    assert oracle.clipped["projection"] > 10
    seen = oracle.token_vectors(["x" * 48, "x" * 60, "Bank", "bank"])
    np.testing.assert_array_equal(seen[0], seen[1])
    assert (seen[2] != seen[3]).all()


def test_mix_norms_differ_in_the_ends_they_count(tmp_path):
    oracle = load(write_bilm(tmp_path))
    layers, mask = pad_batch([oracle.embed_with_ends(sentence)[0] for sentence in SENTENCES], fill=7.0)
    weights = np.array([0.1, 0.3, 0.5])
    share = np.exp(weights) / np.exp(weights).sum()
    plain = layer_norm_mix(layers, weights, 1.1, mask=mask)
    expected = 1.1 * np.tensordot(share, oracle.embed(SENTENCES[0])[0], axes=1)
    np.testing.assert_allclose(plain[0], expected)
    one = np.array([0.0, 50.0, 0.0])
    inside = np.concatenate(layer_norm_mix(layers, one, 1.0, "bilm", mask=mask))
    assert inside.mean() == pytest.approx(0.0, abs=1e-9)
    assert inside.std() == pytest.approx(1.0)
    counted = np.concatenate(layer_norm_mix(layers, one, 1.0, "allennlp", mask=mask))
    assert np.abs(inside - counted).max() > 1e-3
    top = layer_norm_mix(layers, weights, 0.88, "bilm", mask=mask, top_only=True)
    np.testing.assert_allclose(top[2], 0.88 * oracle.embed(SENTENCES[2])[0][-1])
