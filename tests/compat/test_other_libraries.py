"""The calls of the other old libraries against the oracle: shapes, dtypes, states, padding, and old bugs by name."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.compat.bilm import (
    Batcher,
    BidirectionalLanguageModel,
    TokenBatcher,
    dump_bilm_embeddings,
    dump_token_embeddings,
    weight_layers,
)
from polyseme.compat.bio_embeddings import SeqVecEmbedder
from polyseme.compat.elmoformanylangs import Embedder
from polyseme.compat.flair import ELMoEmbeddings
from polyseme.compat.simple_elmo import ElmoModel
from tests.compat.small_models import MORE, SENTENCES, SmallModel, bilm_model, close, padded
from tests.golden_path import golden
from tests.oracle.make import VOCABULARY, write_bilm
from tests.oracle.mix import layer_norm_mix, pad_batch


def empty_word(small: SmallModel) -> np.ndarray:
    """The vector of a padded word in bilm-tf: characters that are all zeros, through filters, highways and projection."""
    words: Any = small.oracle.words
    encoder = words.encoder
    x = np.concatenate([encoder._squash(bias) for bias in encoder.biases])
    for highway in encoder.highways:
        x = highway(x)
    weight, bias = words.projection
    return np.tile(x @ weight + bias, 2)


# ---- ELMoForManyLangs


def test_manylangs_layers(many: SmallModel) -> None:
    embedder = Embedder(str(many.folder), batch_size=2)
    sentences = [["今天", "是", "周日"], [], ["Bank", "of", "the", "river", "."]]
    alone = [many.oracle.embed(words)[0] for words in sentences]
    for layer, reduce in {-1: lambda x: x.mean(0), -2: lambda x: x, 0: lambda x: x[0], 2: lambda x: x[2]}.items():
        found = embedder.sents2elmo(sentences, output_layer=layer)
        assert isinstance(found, list)
        for got, layers in zip(found, alone, strict=True):
            assert got.dtype == np.float32
            close(got, reduce(layers), atol=1e-5)
    close(embedder.sents2elmo(["今天"])[0], many.oracle.embed(["今", "天"])[0].mean(0), atol=1e-5)  # characters
    with pytest.raises(UsageError, match="output_layer is 3; allowed"):
        embedder.sents2elmo(sentences, 3)


def test_manylangs_with_its_shuffled_states(many: SmallModel) -> None:
    sentences = [["a"], ["今天", "是", "周日"], ["b", "c"], ["the"] * 5, ["of", "the"]]
    order = [3, 1, 2, 4, 0]  # by length
    batches = [order[:2], order[2:4], order[4:]]
    random.seed(5)
    random.shuffle(batches)
    carried = many.oracle.embed_carry([[sentences[row] for row in rows] for rows in batches])
    random.seed(5)
    found = Embedder(many.folder, 2, stateful=True).sents2elmo(sentences, -2)
    for rows, layers in zip(batches, carried, strict=True):
        for row, each in zip(rows, layers, strict=True):
            close(found[row], each)


@pytest.mark.parametrize("name", ["en-char", "zh-word", "zh-word-char"])
def test_published_vectors_of_manylangs(name: str) -> None:
    folder = golden("manylangs") / name
    sentences = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    with np.load(folder / "expected.npz") as file:
        expected = [file[str(number)] for number in range(len(sentences))]
    for got, layers in zip(Embedder(folder).sents2elmo(sentences, -2), expected, strict=True):
        np.testing.assert_allclose(got, layers, atol=1e-5)


# ---- bilm-tf


@pytest.fixture
def vocabulary(tmp_path: Path) -> Path:
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    return path


def test_bilm_ids(vocabulary: Path, tmp_path: Path) -> None:
    ids = Batcher(vocabulary, 8).batch_sentences([["</S>", "river"], []])
    assert ids.dtype == np.int64
    assert ids.tolist() == [
        [
            [259, 257, 260, 261, 261, 261, 261, 261],
            [259, 258, 260, 261, 261, 261, 261, 261],
            [259, 115, 106, 119, 102, 115, 260, 261],
            [259, 258, 260, 261, 261, 261, 261, 261],
        ],
        [[259, 257, 260, *[261] * 5], [259, 258, 260, *[261] * 5], [0] * 8, [0] * 8],
    ]
    (tmp_path / "short.txt").write_text("the\n", encoding="utf-8")  # without the ends: they are words, which are spelled
    spelled = Batcher(tmp_path / "short.txt", 8).batch_sentences([["</S>"]])[0, 1]
    assert spelled.tolist() == [259, *(byte + 1 for byte in b"</S>"), 260, 261, 261]
    tokens = TokenBatcher(vocabulary).batch_sentences([["bank", "nowhere"], ["."]])
    assert tokens.tolist() == [[1, 8, 3, 2], [1, 5, 2, 0]]
    (tmp_path / "short.txt").write_text("<S>\n</S>\nthe\n", encoding="utf-8")
    with pytest.raises(PolysemeError, match="'nowhere' is not in the vocabulary, which lacks the unknown word"):
        TokenBatcher(tmp_path / "short.txt").batch_sentences([["nowhere"]])


@pytest.mark.parametrize("tensors", [False, True])
def test_bilm_carries_its_state(small: SmallModel, vocabulary: Path, tensors: bool) -> None:
    bilm, batcher = BidirectionalLanguageModel(small.options, small.weights), Batcher(vocabulary, 50)
    batches = [SENTENCES, MORE[:2]]
    for batch, layers in zip(batches, small.oracle.embed_carry(batches), strict=True):
        ids = batcher.batch_sentences(batch)
        ops = bilm(torch.from_numpy(ids) if tensors else ids)
        assert isinstance(ops["lm_embeddings"], torch.Tensor if tensors else np.ndarray)
        close(ops["lm_embeddings"], padded(layers))
        assert ops["lengths"].tolist() == [len(words) for words in batch]
        assert ops["mask"].sum(1).tolist() == [len(words) for words in batch]
        assert ops["token_embeddings"].shape == (len(batch), ids.shape[1], 8)
    bilm.reset_state()
    close(bilm(ids)["lm_embeddings"], padded(small.oracle.embed_carry(batches[1:])[0]))


def test_bilm_padding_by_name(small: SmallModel, vocabulary: Path) -> None:
    bilm = BidirectionalLanguageModel(small.options, small.weights, padding_vectors=True)
    ops = bilm(Batcher(vocabulary, 50).batch_sentences(SENTENCES))
    assert np.abs(empty_word(small)).max() > 0.1
    close(ops["lm_embeddings"][1, 0, 2:], np.tile(empty_word(small), (3, 1)), atol=1e-5)
    assert not ops["lm_embeddings"][1, 1:, 2:].any()


@pytest.mark.parametrize("norm", [False, True])
def test_bilm_weights_are_shared_by_name_and_learn(small: SmallModel, vocabulary: Path, norm: bool) -> None:
    bilm = BidirectionalLanguageModel(small.options, small.weights)
    ids = Batcher(vocabulary, 50).batch_sentences(SENTENCES)
    weights, gamma = [0.1, 0.3, 0.5], 1.1
    layers, mask = pad_batch([small.oracle.embed_with_ends(words)[0] for words in SENTENCES])
    arrays = bilm(ids)
    first = weight_layers("input", arrays, l2_coef=0.5, do_layer_norm=norm)
    plain = layer_norm_mix(layers, np.zeros(3), 1.0, "bilm" if norm else None, mask=mask)
    for got, vectors in zip(first["weighted_op"], plain, strict=True):
        close(got[: len(vectors)], vectors)
    with torch.no_grad():
        bilm.mixes["input"].weights.copy_(torch.tensor(weights))  # type: ignore[operator, union-attr]
        bilm.mixes["input"].gamma.fill_(gamma)  # type: ignore[operator, union-attr]
    again = weight_layers("input", arrays, l2_coef=0.5, do_layer_norm=norm)
    expected = layer_norm_mix(layers, np.array(weights), gamma, "bilm" if norm else None, mask=mask)
    for got, vectors in zip(again["weighted_op"], expected, strict=True):
        close(got[: len(vectors)], vectors)
    assert float(again["regularization_op"]) == pytest.approx(0.5 * 0.35)
    top = weight_layers("top", arrays, use_top_only=True)
    close(top["weighted_op"], arrays["lm_embeddings"][:, -1], atol=1e-6)
    weighted = weight_layers("input", bilm(torch.from_numpy(ids)), do_layer_norm=norm)["weighted_op"]
    weighted.square().sum().backward()
    assert bilm.mixes["input"].weights.grad.abs().sum() > 0  # type: ignore[operator, union-attr]


def test_bilm_by_word_ids_and_files(small: SmallModel, vocabulary: Path, tmp_path: Path) -> None:
    table, out, lines = tmp_path / "table.hdf5", tmp_path / "out.hdf5", tmp_path / "lines.txt"
    dump_token_embeddings(vocabulary, small.options, small.weights, table)
    with h5py.File(table) as file:
        words: Any = small.oracle.words
        expected = [words.word(word) for word in VOCABULARY]  # its ends are begin and end
        close(file["embedding"][...], np.array(expected), atol=1e-5)
    bilm = BidirectionalLanguageModel(small.options, small.weights, False, table)
    sentences = [["the", "bank", "of", "the", "river"], ["今天", "."]]
    ops = bilm(TokenBatcher(vocabulary).batch_sentences(sentences))
    close(ops["lm_embeddings"], padded(small.oracle.embed_carry([sentences])[0]))
    lines.write_text("".join(" ".join(words) + "\n" for words in sentences), encoding="utf-8")
    dump_bilm_embeddings(vocabulary, lines, small.options, small.weights, out)
    with h5py.File(out) as file:
        assert set(file) == {"0", "1"}
        for number, (layers,) in enumerate(small.oracle.embed_carry([[words] for words in sentences])):
            assert file[str(number)].dtype == np.float32
            close(file[str(number)][...], layers)
    with pytest.raises(UsageError, match="needs embedding_weight_file"):
        BidirectionalLanguageModel(small.options, small.weights, use_character_inputs=False)


def test_published_vectors_of_bilm() -> None:
    folder = golden("bilm-tf")
    lists = json.loads((folder / "lm_embeddings_sentences.json").read_text(encoding="utf-8"))
    bilm = BidirectionalLanguageModel(folder / "options.json", folder / "lm_weights.hdf5", max_batch_size=4)
    batcher = Batcher(folder / "vocab_test.txt", 50)
    for number, batch in enumerate(zip(*lists, strict=True)):
        ops = bilm(batcher.batch_sentences([line.split() for line in batch]))
        for row, (layers, length) in enumerate(zip(ops["lm_embeddings"], ops["lengths"], strict=True)):
            with h5py.File(folder / f"lm_embeddings_{row}.hdf5", "r") as file:
                expected = np.hstack(list(file[str(number)][...]))
            np.testing.assert_allclose(layers[-1, :length], expected, atol=1e-6, rtol=1e-5)


# ---- simple_elmo


def test_simple_elmo_vectors(small: SmallModel) -> None:
    model = ElmoModel()
    with pytest.raises(UsageError, match="call load first"):
        model.get_elmo_vectors(SENTENCES)
    assert model.load(str(small.folder), max_batch_size=2) == "The model is now loaded."
    texts = [*SENTENCES, *MORE[:2]]
    batches = [texts[:2], texts[2:4], texts[4:]]
    warm = [each for batch in small.oracle.embed_carry([batches[0], *batches])[1:] for each in batch]
    cold = [each for batch in small.oracle.embed_carry(batches) for each in batch]
    for _ in range(2):  # each call begins anew
        found = model.get_elmo_vectors(texts)
        assert found.dtype == np.float64
        close(found, padded(warm).mean(1))
    close(model.get_elmo_vectors(texts, warmup=False, layers="all"), padded(cold))
    close(model.get_elmo_vectors(texts, warmup=False, layers="top"), padded(cold)[:, -1])
    with pytest.raises(UsageError, match="layers is 'mean'; allowed: top, average, all"):
        model.get_elmo_vectors(texts, layers="mean")  # type: ignore[arg-type]


def test_simple_elmo_averages(small: SmallModel) -> None:
    model = ElmoModel()
    model.load(small.folder, max_batch_size=2)
    texts = SENTENCES
    layers = [each for batch in small.oracle.embed_carry([texts[:2], texts[2:]]) for each in batch]
    unit = [each.mean((0, 1)) / np.linalg.norm(each.mean((0, 1))) for each in layers]
    close(model.get_elmo_vector_average(texts, warmup=False), np.array(unit))
    all_layers = [each.mean(1) / np.linalg.norm(each.mean(1)) for each in layers]
    close(model.get_elmo_vector_average(texts, warmup=False, layers="all"), np.array(all_layers))


def test_simple_elmo_bugs_by_name(small: SmallModel) -> None:
    """The published arithmetic on the oracle's layers: padding in the mean, layers that are renamed instead of swapped."""
    model = ElmoModel()
    model.load(small.folder, max_batch_size=2)
    texts = SENTENCES[:2]
    batch = padded(small.oracle.embed_carry([texts])[0])  # (2, 3, 4, 16)
    batch[1, 0, 2:] = empty_word(small)
    close(model.get_elmo_vectors(texts, warmup=False, layers="all", bug_compatible=True), batch)
    means = batch.mean((1, 2))
    close(
        model.get_elmo_vector_average(texts, warmup=False, bug_compatible=True),
        means / np.linalg.norm(means, axis=1, keepdims=True),
    )
    scrambled = batch.reshape(2, 4, 3, 16).mean(1)
    expected = scrambled / np.linalg.norm(scrambled, axis=(1, 2), keepdims=True)
    close(model.get_elmo_vector_average(texts, warmup=False, layers="all", bug_compatible=True), expected)


def test_simple_elmo_substitutes(tmp_path: Path) -> None:
    small = bilm_model(tmp_path, softmax=True, vocabulary=VOCABULARY)
    model = ElmoModel()
    model.load(small.folder, full=True)
    weight, bias = small.oracle.softmax  # type: ignore[misc]
    words = ["the", "bank", "of"]
    layers = small.oracle.embed_with_ends(words)[0][-1]
    scores = np.array([layers[:-2, :8] @ weight.T + bias, layers[2:, 8:] @ weight.T + bias])
    scores -= np.log(np.exp(scores).sum(-1, keepdims=True))
    scores[:, :, :2] = -np.inf
    (found,) = model.get_elmo_substitutes([" ".join(words)], topn=4)
    assert [each["word"] for each in found] == words
    for side, name in enumerate(("forward", "backward")):
        for place, each in enumerate(found):
            best = np.argsort(-scores[side, place])[:4]
            assert each[name]["candidates"] == best.tolist()
            assert each[name]["candidate_words"] == [VOCABULARY[row] for row in best]
            np.testing.assert_allclose(each[name]["logp"], scores[side, place, best], atol=2e-4)
    (old,) = model.get_elmo_substitutes([words], topn=1, nodelimiters=False, bug_compatible=True)
    lone = small.oracle.cells[0]  # the first word alone, from zeros, through both layers
    x = small.oracle.words.word("the")
    for level, cell in enumerate(lone):
        h, _ = cell.step(x, *cell.start())
        x = h + x if level else h
    assert old[1]["forward"]["candidates"] == [int((x @ weight.T + bias).argmax())]
    plain = ElmoModel()
    write_bilm(tmp_path / "plain")
    with pytest.raises(PolysemeError, match="cannot predict words"):
        plain.load(tmp_path / "plain", full=True)


# ---- Flair and SeqVec


def token(text: str) -> SimpleNamespace:
    made = SimpleNamespace(text=text, vectors={})
    made.set_embedding = made.vectors.__setitem__
    return made


@pytest.mark.parametrize("mode", ["all", "top", "average"])
def test_flair_modes(small: SmallModel, mode: str) -> None:
    embeddings = ELMoEmbeddings("mine", small.options, small.weights, embedding_mode=mode)  # type: ignore[arg-type]
    sentences = [SimpleNamespace(tokens=[token(word) for word in words]) for words in SENTENCES[:2]]
    embeddings._add_embeddings_internal(sentences)
    _, expected = small.oracle.embed_carry([[["hello"]], SENTENCES[:2]])
    assert embeddings.name == f"elmo-mine-{mode}"
    assert embeddings.embedding_length == (48 if mode == "all" else 16)
    reduce = {"all": np.ravel, "top": lambda x: x[-1], "average": lambda x: x.mean(0)}[mode]
    for sentence, layers in zip(sentences, expected, strict=True):
        for place, each in enumerate(sentence.tokens):
            close(each.vectors[f"elmo-mine-{mode}"], reduce(layers[:, place]))


def test_flair_itself(small: SmallModel) -> None:
    flair = pytest.importorskip("flair", reason="Flair is not installed")
    data = pytest.importorskip("flair.data")
    stacked = flair.embeddings.StackedEmbeddings([ELMoEmbeddings("x", small.options, small.weights, "top")])
    sentence = data.Sentence(["the", "bank"])
    stacked.embed(sentence)
    _, (expected,) = small.oracle.embed_carry([[["hello"]], [["the", "bank"]]])
    close(torch.stack([each.get_embedding() for each in sentence]), expected[-1])


def test_seqvec(small: SmallModel) -> None:
    embedder = SeqVecEmbedder(warmup_rounds=2, weights_file=small.weights, options_file=small.options, device="cpu")
    from polyseme.compat.bio_embeddings import _WARM_UP

    protein = "SEQVENCE"
    expected = small.oracle.embed_carry([[list(_WARM_UP)], [list(_WARM_UP)], [list(protein)], [list("MV"), list("TY")]])
    found = embedder.embed(protein)
    close(found, expected[2][0])
    close(embedder.reduce_per_protein(found), found.sum(0).mean(0))
    for got, layers in zip(embedder.embed_many(["MV", "TY"], batch_size=8), expected[3], strict=True):
        close(got, layers)
    fresh = SeqVecEmbedder(0, model_directory=small.folder, device="cpu", stateful=False)
    for _ in range(2):
        close(fresh.embed(protein), small.oracle.embed(list(protein))[0], atol=1e-5)
    with pytest.raises(UsageError, match="unknown settings: weight_file"):
        SeqVecEmbedder(weight_file="x")
