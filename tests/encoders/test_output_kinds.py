"""Models with tied and adaptive output layers: in folders and out again, copied, written for bilm-tf, and damaged."""

from __future__ import annotations

import copy
import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import polyseme
from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import ElmoConfig, WordTableConfig
from polyseme.formats import bilm
from polyseme.nn.output.adaptive import AdaptiveSoftmax
from polyseme.nn.output.full import FullSoftmax, TiedSoftmax
from polyseme.training.optim import build_optimizer
from polyseme.training.optim_config import OptimConfig
from tests.encoders.small import CHARACTERS, LSTM, elmo, vocabulary

TEXTS = [["the", "bank", "zebra"], ["river"], []]
WORDS = len(vocabulary())


def tied(*, form: str = "both", project: bool = True, rows: int = WORDS, dim: int = 8) -> Elmo:
    torch.manual_seed(0)
    words, characters = WordTableConfig(size=rows, dim=dim), CHARACTERS if form == "both" else None
    model = Elmo(ElmoConfig(characters=characters, words=words, dim=8, project=project, lstm=LSTM), vocabulary=vocabulary())
    torch.nn.init.normal_(model.tie_output().bias)
    return model.eval()


def adaptive() -> Elmo:
    model = elmo(output=True)
    model.output = AdaptiveSoftmax(WORDS, 8, (5, 12, WORDS))
    return model.eval()


def is_tied(model: Elmo) -> bool:
    assert isinstance(model.output, TiedSoftmax) and model.tokens.words is not None
    return model.output.weight is model.tokens.words.weight


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_tie_holds_through_a_folder(tmp_path: Path, precision: str) -> None:
    model = tied()
    folder = model.save_pretrained(tmp_path / "m", precision=precision)
    assert set(load_file(folder / "output.safetensors")) == {"bias"}
    assert [name for name in load_file(folder / "model.safetensors") if "words" in name] == ["tokens.words.weight"]
    again = Elmo.from_pretrained(folder)
    assert isinstance(again, Elmo) and is_tied(again) and all(p.requires_grad for p in again.parameters())
    if precision == "fp32":
        np.testing.assert_array_equal(model.score(TEXTS), again.score(TEXTS))
    else:
        np.testing.assert_allclose(model.score(TEXTS), again.score(TEXTS), atol=0.02)
    with torch.no_grad():
        again.tokens.words.weight.zero_()
    assert not again.output.weight.any()


def test_a_tie_is_one_weight() -> None:
    model = tied()
    names = [name for name, _ in model.named_parameters()]
    assert names.count("tokens.words.weight") == 1 and [n for n in names if n.startswith("output.")] == ["output.bias"]
    groups = build_optimizer(OptimConfig(), model).param_groups
    assert sum(p is model.tokens.words.weight for group in groups for p in group["params"]) == 1
    again = copy.deepcopy(model)
    assert is_tied(again) and again.output.weight is not model.output.weight
    assert is_tied(copy.deepcopy(model).double()) and is_tied(copy.deepcopy(model).to("cpu"))
    model.load_state_dict(again.state_dict(), assign=True)
    assert is_tied(model)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_tie_holds_on_a_gpu() -> None:
    model = tied()
    expected = model.score(TEXTS)
    model.cuda()
    assert is_tied(model) and model.output.bias.is_cuda and model.output.weight.is_cuda
    np.testing.assert_allclose(model.score(TEXTS), expected, atol=1e-4)


def test_tied_scores_are_those_of_a_full_layer_with_the_same_numbers() -> None:
    model = tied()
    expected = model.score(TEXTS)
    full = FullSoftmax(WORDS, 8)
    full.load_state_dict({"weight": model.output.weight, "bias": model.output.bias})
    model.output = full
    np.testing.assert_array_equal(model.score(TEXTS), expected)


def test_what_cannot_be_tied() -> None:
    with pytest.raises(ConfigError, match=r"the word table's have 5, the encoder gives 8: set words.dim to 8"):
        tied(dim=5)
    with pytest.raises(ConfigError, match=rf"the table has 30 rows, the vocabulary {WORDS} words: set words.size to {WORDS}"):
        tied(rows=30)
    with pytest.raises(ConfigError, match="needs a word table, but this model has only characters"):
        elmo(output=True).tie_output()


def test_adaptive_goes_through_a_folder(tmp_path: Path) -> None:
    model = adaptive()
    again = Elmo.from_pretrained(model.save_pretrained(tmp_path / "m"))
    assert isinstance(again, Elmo) and isinstance(again.output, AdaptiveSoftmax) and again.output.ends == (5, 12, WORDS)
    np.testing.assert_array_equal(model.score(TEXTS), again.score(TEXTS))
    assert model.substitutes(TEXTS[0], 1) == again.substitutes(TEXTS[0], 1)
    assert not again.training and not again.output.training and all(p.requires_grad for p in again.parameters())


def test_adaptive_is_a_distribution_over_sentences() -> None:
    found = adaptive().substitutes(["the", "bank"], 1, count=WORDS)
    assert sum(np.exp(each.log_prob) for each in found) == pytest.approx(1.0, rel=1e-5)


ZEROS = torch.zeros
DAMAGES = {
    "unknown": ({"gain": ZEROS(3)}, r"holds \['gain'\]; expected weight .*, bias alone, or head"),
    "no tails": ({"head.weight": ZEROS(6, 8), "head.bias": ZEROS(6)}, r"lacks tails of its adaptive output layer"),
    "gap": ({"head.weight": ZEROS(6, 8), "tails.1.words.bias": ZEROS(16)}, "lacks tails .* expected tails.0.words.bias"),
    "empty head": ({"head.weight": ZEROS(1, 8), "tails.0.words.bias": ZEROS(21)}, "has 1 rows in its head and 1 tails: "),
    "missing": ({"head.weight": ZEROS(6, 8), "tails.0.words.bias": ZEROS(16)}, "lacks head.bias; lacks tails.0.projection.w"),
    "bias alone": ({"bias": ZEROS(21)}, "holds a bias alone, as if tied to the word table: .* only characters"),
    "narrow": ({"weight": ZEROS(21, 5), "bias": ZEROS(21)}, "has an output layer of width 5; the encoder gives 8"),
    "flat": ({"weight": ZEROS(21), "bias": ZEROS(21)}, r"holds \['bias', 'weight'\]; expected weight \(vocabulary, dim\)"),
    "few": ({"weight": ZEROS(20, 8), "bias": ZEROS(20)}, "has an output layer of 20 rows, but its vocabulary has 21 words"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_output_layers(tmp_path: Path, damage: str) -> None:
    folder = elmo(output=True).save_pretrained(tmp_path / "m")
    tensors, said = DAMAGES[damage]
    save_file(tensors, folder / "output.safetensors")
    with pytest.raises(FormatError, match=rf"output\.safetensors: {said}"):
        Elmo.from_pretrained(folder)


def test_damaged_sizes(tmp_path: Path) -> None:
    folder = adaptive().save_pretrained(tmp_path / "adaptive")
    good = load_file(folder / "output.safetensors")
    save_file({**good, "tails.0.projection.weight": torch.zeros(3, 8)}, folder / "output.safetensors")
    with pytest.raises(FormatError, match=r"tails\.0\.projection\.weight has shape \(3, 8\), expected \(2, 8\)"):
        Elmo.from_pretrained(folder)
    folder = tied().save_pretrained(tmp_path / "tied")
    save_file({"bias": torch.zeros(20)}, folder / "output.safetensors")
    with pytest.raises(FormatError, match=r"output\.safetensors: bias has shape \(20,\), expected \(21,\)"):
        Elmo.from_pretrained(folder)


def test_tied_for_bilm(tmp_path: Path) -> None:
    model = tied(form="words", project=False)
    again = polyseme.load(bilm.write(model, tmp_path / "m"))
    assert isinstance(again, Elmo) and type(again.output) is FullSoftmax
    np.testing.assert_allclose(again.score(TEXTS), model.score(TEXTS), rtol=1e-6)
    assert torch.equal(again.output.weight, model.tokens.words.weight)


def test_adaptive_for_bilm(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = adaptive()
    with caplog.at_level(logging.WARNING):
        folder = bilm.write(model, tmp_path / "m")
    assert "no adaptive output layer: it is lost" in caplog.text
    assert not (folder / "softmax_weights.hdf5").exists()
    again = polyseme.load(folder)
    assert isinstance(again, Elmo) and again.output is None
    np.testing.assert_allclose(again.embed(TEXTS)[0], model.embed(TEXTS)[0], atol=1e-6)
