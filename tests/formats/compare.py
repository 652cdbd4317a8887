"""What the tests of this folder share: sentences, and the comparison of a model with the oracle."""

import json
from pathlib import Path

import numpy as np

from polyseme.encoders.elmo import Elmo
from tests.oracle.elmo import OracleElmo

SENTENCES = [
    ["the", "bank", "of", "the", "river", "."],
    ["Winfrey", "naïve", "今天", "x" * 70, "", "a", "\ud800b"],
    ["."],
    ["A", "café", ",", "is", "n't", "it", "?"],
    ["<S>", "bank", "Bank", "</S>", "周日"],
]


def same_vectors(model: Elmo, oracle: OracleElmo, sentences: list[list[str]] = SENTENCES, atol: float = 1e-5) -> None:
    """From zeros, each sentence by itself; and carried on, in batches of two rows of which the last is short.

    Carried states of these random models swing: the oracle's own, in 64 bits, move by up to 7.5e-6 where the word vectors are
    rounded once to 32 bits (20 draws). So for what is computed in 32 bits throughout, three times the tolerance.
    """
    alone = model.embed(sentences, start="zero")
    for got, sentence in zip(alone, sentences, strict=True):
        np.testing.assert_allclose(got, oracle.embed(sentence)[0], atol=atol)
    batches = [sentences[first : first + 2] for first in range(0, len(sentences), 2)]
    expected = [layers for batch in oracle.embed_carry(batches) for layers in batch]
    model.reset_state()
    carried = model.embed(sentences, start="carry", batch_size=2)
    for got, layers in zip(carried, expected, strict=True):
        np.testing.assert_allclose(got, layers, atol=3 * atol)


def same_log_probs(model: Elmo, oracle: OracleElmo, sentences: list[list[str]] = SENTENCES) -> None:
    """Of each word from both sides; the oracle tells the begin mark first, the model last."""
    for got, sentence in zip(model.log_probs(sentences, start="zero"), sentences, strict=True):
        forward, backward = oracle.log_probs(sentence)
        np.testing.assert_allclose(got.forward, forward, atol=2e-5)
        np.testing.assert_allclose(got.backward, np.roll(backward, -1), atol=2e-5)


def lines(path: Path) -> list[str]:
    """The words of a vocabulary file."""
    return path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")


def bilm_oracle(folder: Path, **settings: object) -> OracleElmo:
    """The oracle of a folder in bilm-tf's form."""
    vocabulary = lines(folder / "vocab.txt") if (folder / "vocab.txt").exists() else None
    options = json.loads((folder / "options.json").read_text(encoding="utf-8"))
    return OracleElmo.from_bilm(options, folder / "weights.hdf5", vocabulary, **settings)  # type: ignore[arg-type]
