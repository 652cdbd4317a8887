"""ONNX graphs give the vectors of the model, for every kind of input and start, at all lengths, alone and in batches."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import polyseme
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import ElmoConfig, WordTableConfig
from polyseme.nn.config import CharactersConfig, LstmConfig
from polyseme.text.vocabulary import Vocabulary

onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
pytest.importorskip("onnxruntime", reason="needs the extra onnx")

from polyseme.integrations.onnx import OnnxElmo

WORDS = [
    *[
        "the",
        "bank",
        "of",
        "river",
        "money",
        "is",
        "河",
        "岸",
        "a",
        "very",
        "long",
        "sentence",
        ",",
        "with",
        "many",
        "words",
        "in",
        "it",
        ".",
    ]
]
CHARACTERS = CharactersConfig(dim=4, filters=((1, 6), (3, 10)), highway_layers=1, max_length=12)
LSTM = LstmConfig(cell_size=12, projection_size=8)
KINDS = {
    "characters": ElmoConfig(characters=CHARACTERS, dim=8, lstm=LSTM, start="learned", normalize_quotes=True),
    "narrow input": ElmoConfig(characters=CHARACTERS.replace(highway_layers=2), dim=5, lstm=LSTM, start="warm"),
    "no projection": ElmoConfig(characters=CHARACTERS, dim=8, lstm=LSTM.replace(cell_size=8, projection_size=None)),
    "no residual": ElmoConfig(characters=CHARACTERS, dim=8, lstm=LSTM.replace(residual=False)),
    "clips": ElmoConfig(characters=CHARACTERS, dim=8, lstm=LSTM.replace(cell_clip=0.2, projection_clip=0.1)),
    "words": ElmoConfig(characters=None, words=WordTableConfig(size=20, dim=7), dim=8, lstm=LSTM),
    "both": ElmoConfig(characters=CHARACTERS, words=WordTableConfig(size=20, dim=3, max_characters=4), dim=8, lstm=LSTM),
}


def model_of(kind: str) -> Elmo:
    torch.manual_seed(4)
    config = KINDS[kind]
    vocabulary = Vocabulary(["<S>", "</S>", "<UNK>", *WORDS[:17]]) if config.words is not None else None
    model = Elmo(config, vocabulary=vocabulary)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model.eval()


def largest(model: Elmo, written: OnnxElmo, sentences: list[list[str]]) -> float:
    pairs = zip(model.embed(sentences), written.embed(sentences), strict=True)
    return max(float(np.abs(one - other).max(initial=0.0)) for one, other in pairs)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_vectors(kind: str, tmp_path: Path) -> None:
    model = model_of(kind)
    done = polyseme.convert(model, tmp_path / "out", to="onnx")
    assert done.largest_difference < 1e-5 and set(done.files) >= {"forward.onnx", "backward.onnx", "onnx.json"}
    written = OnnxElmo(tmp_path / "out", threads=1)
    assert (written.layers, written.dim) == (model.layers, model.dim)
    for length in (1, 7, 100):
        sentence = [WORDS[(3 * at + length) % len(WORDS)] for at in range(length)]
        assert largest(model, written, [sentence]) < 1e-5
        assert largest(model, written, [sentence[: 1 + row % length] for row in range(32)]) < 1e-5


def test_each_word_is_read_once_without_needless_padding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of("both")
    polyseme.convert(model, tmp_path / "out", to="onnx")
    written, given = OnnxElmo(tmp_path / "out", threads=1), []

    class Watched:
        def __init__(self, session: Any) -> None:
            self._session = session

        def run(self, names: list[str], inputs: dict[str, Any]) -> Any:
            given.append({name: array.shape for name, array in inputs.items()})
            return self._session.run(names, inputs)

    monkeypatch.setattr(written, "_sessions", [Watched(session) for session in written._sessions])
    short, long = [["the", "bank", "the"], ["bank"]], [["the", "considerable", "bank"]]
    for sentences, width in ((short, len("bank") + 2 + 3), (long, CHARACTERS.max_length)):
        given.clear()
        assert largest(model, written, sentences) < 1e-5
        distinct = 1 + len({word for sentence in sentences for word in sentence})  # and the one at padding
        sizes = {"index": (len(sentences), 3), "lengths": (len(sentences),), "words": (distinct,)}
        assert given == [sizes | {"characters": (distinct, width)}] * 2


def test_raw_text_layers_and_empty_sentences(tmp_path: Path) -> None:
    model = model_of("characters")
    polyseme.convert(model, tmp_path / "out", to="onnx")
    written = OnnxElmo(tmp_path / "out")
    sentences = ["“The bank”", "", "a"]
    for found, expected in zip(written.embed(sentences), model.embed(sentences), strict=True):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(written.embed(["a b"], layers="top")[0], model.embed(["a b"])[0][-1], atol=1e-5)
    np.testing.assert_allclose(written.embed(["a b"], layers=1)[0], model.embed(["a b"])[0][1], atol=1e-5)
    assert written.embed([]) == []


def test_int8_is_stored_and_near(tmp_path: Path) -> None:
    model = model_of("characters")
    polyseme.convert(model, tmp_path / "out", to="onnx", precision="int8")
    graph = onnx.load(tmp_path / "out" / "forward.onnx").graph
    sizes = {each.data_type: 0 for each in graph.initializer}
    for each in graph.initializer:
        sizes[each.data_type] += int(np.prod(each.dims))
    assert sizes[onnx.TensorProto.INT8] > 5 * sizes[onnx.TensorProto.FLOAT]  # biases, scales and states stay floats
    sentence = WORDS[:9]
    found, expected = OnnxElmo(tmp_path / "out").embed([sentence])[0], model.embed([sentence])[0]
    cosines = (found * expected).sum(-1) / np.linalg.norm(found, axis=-1) / np.linalg.norm(expected, axis=-1)
    assert cosines.min() > 0.99 and np.abs(found - expected).max() > 0


@pytest.mark.slow
def test_the_shipped_model_at_all_sizes(tmp_path: Path) -> None:
    """fp32: differences below 1e-5; int8: cosines above 0.99, at lengths 1, 7 and 100 and batches of 1 and 32."""
    model = polyseme.load("en")
    for name in ("fp32", "int8"):
        polyseme.convert(model, tmp_path / name, to="onnx", precision=name)
    exact, small = OnnxElmo(tmp_path / "fp32"), OnnxElmo(tmp_path / "int8")
    for length, batch in itertools.product((1, 7, 100), (1, 32)):
        sentences = [[WORDS[(3 * at + row) % len(WORDS)] for at in range(length)] for row in range(batch)]
        assert largest(model, exact, sentences) < 1e-5
        for found, expected in zip(small.embed(sentences), model.embed(sentences), strict=True):
            cosines = (found * expected).sum(-1) / np.linalg.norm(found, axis=-1) / np.linalg.norm(expected, axis=-1)
            assert cosines.min() > 0.99


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"precision": "fp16"}, "ONNX files have fp32 or int8 only: leave precision out"),
        ({"model": "taglm"}, "applies only to ELMo models with LSTMs"),
    ],
)
def test_what_cannot_be_written(options: dict[str, str], said: str, tmp_path: Path) -> None:
    model = model_of("characters")
    if options.pop("model", None):
        model.kind = "taglm"  # type: ignore[misc]
    with pytest.raises(polyseme.PolysemeError, match=said):
        polyseme.convert(model, tmp_path / "out", to="onnx", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(polyseme.PolysemeError, match=r"has no onnx\.json: write it with polyseme convert"):
        OnnxElmo(tmp_path)
    polyseme.convert(model_of("words"), tmp_path / "out", to="onnx")
    written = OnnxElmo(tmp_path / "out")
    with pytest.raises(polyseme.PolysemeError, match="'all', 'top', or 0 to 2"):
        written.embed([["a"]], layers=3)
    with pytest.raises(polyseme.PolysemeError, match="give a list of sentences"):
        written.embed("a")
