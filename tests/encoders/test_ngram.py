"""The n-gram model itself, on a table small enough to reckon by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import polyseme
from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, PolysemeError, UsageError
from polyseme.encoders.config import NgramConfig
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.encoders.ngram import NgramModel
from polyseme.encoders.ngram_table import Level, NgramTable
from polyseme.text.vocabulary import Vocabulary

WORDS = ["<s>", "</s>", "<unk>", "a", "b"]
BEGIN, END, UNKNOWN, A, B = range(5)


def level(grams: dict[int, tuple[float, float]]) -> Level:
    """Probabilities and back-off weights by key."""
    keys = sorted(grams)
    numbers = np.log(np.array([grams[key] for key in keys], dtype=np.float64)).astype(np.float32).reshape(-1, 2)
    return Level(np.array(keys, dtype=np.int64), numbers[:, 0].copy(), numbers[:, 1].copy())


def small() -> NgramModel:
    """1-grams, the pairs `<s> a`, `a b`, `b b` and the triples `<s> a b`, `a b b`."""
    ones = level({BEGIN: (1e-30, 0.5), END: (0.2, 1), UNKNOWN: (0.1, 1), A: (0.3, 0.4), B: (0.4, 0.6)})
    twos = level({BEGIN * 5 + A: (0.7, 0.9), A * 5 + B: (0.8, 0.25), B * 5 + B: (0.6, 1)})
    threes = level({0 * 5 + B: (0.95, 1), 1 * 5 + B: (0.85, 1)})
    vocabulary = Vocabulary(WORDS, unknown="<unk>", begin="<s>", end="</s>")
    return NgramModel(NgramConfig(order=3), vocabulary=vocabulary, table=NgramTable(5, [ones, twos, threes]))


def test_by_hand() -> None:
    model = small()
    found, other = model.log_probs([["a", "b", "b"], ["x", "a"]])
    # a after <s>; b after <s> a; b after a b; </s> after b b (no such triple, weight 1), b (weight 0.6), so 0.2
    np.testing.assert_allclose(np.exp(found.forward), [0.7, 0.95, 0.85, 1 * 0.6 * 0.2], rtol=1e-6)
    # x is <unk>: weight of <s>; a after an unseen context; </s> after a (weight 0.4)
    np.testing.assert_allclose(np.exp(other.forward), [0.5 * 0.1, 0.3, 0.4 * 0.2], rtol=1e-6)
    assert found.backward is None and other.known.tolist() == [False, True]
    assert model.score([["x", "a"]])[0] == pytest.approx(np.log(0.05 * 0.3 * 0.08))
    said = model.perplexity([["a", "b", "b"], ["x", "a"]])
    product = 0.7 * 0.95 * 0.85 * 0.12 * 0.05 * 0.3 * 0.08
    assert said.mean == said.forward == pytest.approx(product ** (-1 / 7)) and said.backward is None and said.predictions == 7


def test_step_by_step() -> None:
    *_, last = small().chain_rule(["a", "b", "b"])
    assert (last.word, last.order, last.context) == ("</s>", 1, ("b", "b")) and last.known
    assert [each.context for each in last.backoffs] == [("b", "b"), ("b",)]
    np.testing.assert_allclose(np.exp([each.weight for each in last.backoffs]), [1, 0.6], rtol=1e-6)
    assert np.exp(last.found) == pytest.approx(0.2) and np.exp(last.log_prob) == pytest.approx(0.12)
    first, second, _ = small().chain_rule("x a")
    assert (first.word, first.known, first.context, first.order) == ("x", False, ("<s>",), 1)
    assert second.order == 1 and second.context == ("<s>", "x")
    assert [(each.context, each.weight) for each in second.backoffs] == [(("x",), 0.0)]  # `<s> x` was never seen


def test_distributions_are_the_words_probabilities() -> None:
    model = small()
    for context in ([], ["a"], ["a", "b"], ["x"], ["b", "b", "a"]):
        found = model.distribution(context)
        for word in ("a", "b", "x"):
            asked = model.log_probs([[*context, word]])[0].forward[len(context)]
            assert found[model.vocabulary.ids([word])[0]] == pytest.approx(asked)
    inside = np.exp(model.distribution(["a"], begin=False))
    assert inside[B] == pytest.approx(0.8) and inside[A] == pytest.approx(0.4 * 0.3)


def test_sentences_do_not_touch_each_other() -> None:
    model = small()
    texts = [["a", "b"], [], ["b"], ["a", "b", "b"]]
    for text, found in zip(texts, model.log_probs(texts), strict=True):
        np.testing.assert_array_equal(found.forward, model.log_probs([text])[0].forward)
    assert model.log_probs([]) == [] and model.predicts_words
    with pytest.raises(UsageError, match="at least one sentence"):
        model.perplexity([])


def test_marks_inside_a_sentence_are_unknown_words() -> None:
    model = small()
    assert model.score(["a </s> <s>"])[0] == model.score(["a x y"])[0]
    closed = NgramModel(NgramConfig(order=3, unknown=None), vocabulary=Vocabulary(WORDS, unknown=None), table=model.table)
    with pytest.raises(PolysemeError, match="'x' is not in the vocabulary, which has no unknown word"):
        closed.score(["a x"])
    with pytest.raises(UsageError, match="are special tokens: remove them"):
        closed.score(["a <s>"])


def test_vectors_by_hand() -> None:
    model = small()
    (vectors,) = model.embed([["a", "b", "b"]])
    assert vectors.shape == (1, 3, 6) and (model.layers, model.dim) == (1, 6)
    own, after = np.exp(vectors[0, :, :3]), np.exp(vectors[0, :, 3:])
    # P(a), P(a | <s>), and no longer context; P(b), P(b | a), P(b | <s> a); P(b), P(b | b), P(b | a b)
    np.testing.assert_allclose(own, [[0.3, 0.7, 0.7], [0.4, 0.8, 0.95], [0.4, 0.6, 0.85]], rtol=1e-6)
    np.testing.assert_allclose(after[:2], own[1:], rtol=1e-6)
    np.testing.assert_allclose(after[2], [0.2, 0.6 * 0.2, 0.6 * 0.2], rtol=1e-6)  # </s> after b, and after b b


def test_vectors_by_the_distributions_of_cut_models() -> None:
    model = small()
    texts = [["b", "x", "a", "b"], ["a"], [], ["a", "a", "b", "b", "b"]]
    found = model.embed(texts)
    assert [each.shape for each in found] == [(1, len(text), 6) for text in texts]
    for text, vectors in zip(texts, found, strict=True):
        ids = [BEGIN, *({"a": A, "b": B}.get(word, UNKNOWN) for word in text), END]
        for order in range(3):
            table = NgramTable(5, model.table.levels[: order + 1])
            logs = [
                table.distribution(np.array(ids[max(0, place - order) : place]))[ids[place]] for place in range(1, len(ids))
            ]
            np.testing.assert_allclose(vectors[0, :, order], logs[:-1], rtol=1e-5)
            np.testing.assert_allclose(vectors[0, :, 3 + order], logs[1:], rtol=1e-5)


def test_vectors_know_their_model_and_nothing_of_it_learns() -> None:
    one, other = small(), small()
    assert model_fingerprint(one) == model_fingerprint(other)
    other.table.levels[1].log_probs[0] -= 0.5
    assert model_fingerprint(one) != model_fingerprint(other)
    assert one.layer_groups() == {} and not list(one.parameters())
    assert one.encode("a b").shape == (6,) and np.isfinite(one.embed(["zebra"])[0]).all()
    rare = NgramTable(5, [level(dict.fromkeys(range(5), (1e-40, 1)))])
    assert (NgramModel(NgramConfig(order=1), vocabulary=one.vocabulary, table=rare).embed(["a b"])[0] == -30).all()
    with pytest.raises(UsageError, match="at least one sentence"):
        one.prepare([])


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_folder(tmp_path: Path, precision: str) -> None:
    model = small()
    again = polyseme.load(model.save_pretrained(tmp_path / "m", precision=precision))
    assert isinstance(again, NgramModel) and again.config == model.config and again.vocabulary.words == WORDS
    assert again.table.difference(model.table) <= (0 if precision == "fp32" else 5e-2)
    assert again.info() == model.info()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda a: a.pop("2.keys"), "expected"),
        (lambda a: a.update({"2.keys": a["2.keys"][::-1].copy()}), "2-grams are not sorted"),
        (lambda a: a.update({"3.keys": a["3.keys"] + 100}), "3-grams are not sorted, or do not fit"),
        (lambda a: a.update({"1.backoffs": a["1.backoffs"][:-1]}), "differ in number"),
        (lambda a: a.update({"1.log_probs": a["1.log_probs"] * np.float32("nan")}), "not finite"),
        (lambda a: a.update({"2.keys": a["2.keys"].astype(np.float32)}), "of type float32"),
        (lambda a: a.update({f"1.{name}": a[f"1.{name}"][:-1] for name in ("keys", "log_probs", "backoffs")}), "4 1-grams"),
    ],
)
def test_damaged_folders(tmp_path: Path, change, said: str) -> None:
    folder = small().save_pretrained(tmp_path / "m")
    arrays = load_file(folder / "model.safetensors")
    change(arrays)
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, folder / "model.safetensors")
    with pytest.raises(FormatError, match=said):
        polyseme.load(folder)


def test_other_mistakes(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="order is 0"):
        NgramConfig(order=0)
    model = small()
    with pytest.raises(ConfigError, match="order is 2 and there are 5 words, but the table has order 3"):
        NgramModel(NgramConfig(order=2), vocabulary=model.vocabulary, table=model.table)
    folder = model.save_pretrained(tmp_path / "m")
    config = json.loads((folder / "config.json").read_text())
    config["config"]["unknown"] = "<oov>"
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(FormatError, match="lacks <oov>"):
        polyseme.load(folder)
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(FormatError, match="damaged safetensors"):
        polyseme.load(folder)
