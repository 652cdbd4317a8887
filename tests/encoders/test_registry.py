"""Every kind of encoder that is registered, tested by being there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import polyseme
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.encoders.base import Encoder
from polyseme.encoders.config import FlairConfig
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.encoders.flair import Flair
from polyseme.encoders.registry import ENCODERS, encoder_class
from polyseme.encoders.taglm import TagLm
from polyseme.text.splitting.unigram import UnigramSegmenter
from tests.analysis.fake import Fake
from tests.encoders.small import elmo
from tests.encoders.small_subwords import bert, gpt
from tests.encoders.test_fasttext import table as fasttext
from tests.encoders.test_ngram import small as ngram
from tests.encoders.test_nnlm import small as nnlm
from tests.encoders.test_ulmfit import small as ulmfit
from tests.encoders.test_word2vec import table


def flair() -> Flair:
    torch.manual_seed(0)
    characters = ["<unk>", *"abehikntr ", "\n"]
    return Flair(FlairConfig(symbols=len(characters), character_dim=3, hidden_size=4), characters=characters).eval()


SMALL: dict[str, Callable[[], Encoder]] = {
    "elmo": lambda: elmo(form="both", output=True),
    "taglm": lambda: elmo(form="both", output=True, kind=TagLm),
    "word2vec": table,
    "fasttext": fasttext,
    "ngram": ngram,
    "nnlm": nnlm,
    "ulmfit": ulmfit,
    "flair": flair,
    "bert": bert,
    "gpt": gpt,
}
"""A small model of each kind; a new kind adds a line."""
TEXTS = [["the", "bank", "zebra"], [], ["River"]]


@pytest.mark.parametrize("kind", ENCODERS)
def test_saved_and_loaded_it_embeds_the_same(tmp_path: Path, kind: str) -> None:
    model = SMALL[kind]()
    assert type(model) is encoder_class(kind) and model.kind == kind
    model.splitter = UnigramSegmenter(["的", "包袱"])
    folder = model.save_pretrained(tmp_path / "m")
    written = {file.name for file in folder.iterdir()}
    assert written <= {"config.json", "README.md", "words.txt", *ENCODERS[kind].files}
    head = json.loads((folder / "config.json").read_text())
    assert head.get("polyseme", head)["encoder"] == kind
    again = polyseme.load(folder)
    assert type(again) is type(model) and again.config == model.config and not again.training
    assert again.words("他的包袱") == model.words("他的包袱") == ["他", "的", "包袱"]
    for one, other in zip(model.embed(TEXTS), again.embed(TEXTS), strict=True):
        assert one.shape[::2] == (model.layers, model.dim)
        np.testing.assert_array_equal(one, other)
    assert model_fingerprint(again) == model_fingerprint(model)
    assert again.info() == model.info()


@pytest.mark.parametrize("kind", ENCODERS)
def test_padding_is_zero_and_texts_do_not_touch_each_other(kind: str) -> None:
    model = SMALL[kind]()
    layers = model(model.prepare(TEXTS))
    assert layers.states.shape == (model.layers, 3, 3, model.dim)
    assert not layers.states[:, ~layers.mask].any()
    for text, vectors in zip(TEXTS, model.embed(TEXTS), strict=True):
        np.testing.assert_allclose(vectors, model.embed([text])[0], atol=1e-6)


@pytest.mark.parametrize("kind", ENCODERS)
def test_what_it_is(kind: str) -> None:
    facts = SMALL[kind]().info()
    assert facts["encoder"] == kind and facts["parameters"] > 0 and facts["splitter"] == "whitespace"
    assert facts["layers"] >= 1 and facts["dim"] >= 1


def test_other_kinds(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown encoder 'elmoo' \(did you mean 'elmo'\?\)"):
        encoder_class("elmoo")
    with pytest.raises(PolysemeError, match=r"cannot save an encoder of kind 'fake'; allowed: elmo, taglm, "):
        Fake(lambda words, place: [[1.0]]).save_pretrained(tmp_path / "m")
    assert not (tmp_path / "m").exists()
