"""Weights in eight bits: every kind of model is smaller, nearly the same, and exactly itself when it is saved again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import polyseme
from polyseme.base import quantization
from polyseme.base.errors import FormatError, PolysemeError, UsageError
from polyseme.base.quantization import quantize
from polyseme.base.tensor_files import read_tensors, write_tensors
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.encoders.ngram_table import Level, NgramTable
from polyseme.encoders.registry import ENCODERS
from polyseme.formats.load import load
from tests.encoders.small import elmo
from tests.encoders.small_subwords import gpt
from tests.encoders.test_registry import SMALL, TEXTS


@pytest.fixture
def everything_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantization, "_SMALLEST", 1)


@pytest.mark.parametrize("kind", ENCODERS)
def test_every_kind_of_model(tmp_path: Path, kind: str, everything_large: None) -> None:
    model = SMALL[kind]()
    again = load(model.save_pretrained(tmp_path / "m", precision="int8"))
    assert type(again) is type(model) and again.info() == model.info() and not again.training
    assert all(value.dtype == torch.float32 for value in again.parameters())
    for one, other in zip(model.embed(TEXTS), again.embed(TEXTS), strict=True):
        np.testing.assert_allclose(other, one, atol=0.05 * np.abs(one).max(initial=1.0))
    if model.predicts_words:
        np.testing.assert_allclose(again.score(TEXTS), model.score(TEXTS), rtol=0.05)
    for precision in ("int8", "fp32"):
        third = load(again.save_pretrained(tmp_path / precision, precision=precision))
        assert model_fingerprint(third) == model_fingerprint(again), precision


def test_the_error_is_at_most_half_a_step_and_rows_or_columns_are_chosen() -> None:
    torch.manual_seed(0)
    plain = torch.randn(40, 30, 5)
    for scaled in (plain * torch.logspace(-3, 3, 40)[:, None, None], plain * torch.logspace(-3, 3, 30)[None, :, None]):
        found = quantize(scaled)
        assert found.scale.numel() in scaled.shape[:2] and found.numbers.dtype == torch.int8
        assert bool(((found.weights() - scaled).abs() <= found.scale * 0.501).all())
        assert float((found.weights() - scaled).norm() / scaled.norm()) < 0.01
        assert torch.equal(quantize(found.weights()).numbers, found.numbers)  # nothing is lost twice
    assert quantize(torch.zeros(3, 4)).weights().tolist() == [[0.0] * 4] * 3


def test_only_large_matrices_are_rounded(tmp_path: Path) -> None:
    torch.manual_seed(0)
    tensors = {
        "matrix": torch.randn(256, 128),
        "bias": torch.randn(1 << 15),
        "small": torch.randn(9, 9),
        "ids": torch.arange(3),
    }
    write_tensors(tensors, tmp_path / "m.safetensors", torch.int8, exact={"start": torch.randn(256, 128)})
    again = read_tensors(tmp_path / "m.safetensors")
    assert set(again) == {*tensors, "start"}
    assert not torch.equal(again["matrix"], tensors["matrix"])
    assert all(torch.equal(again[name], tensors[name]) for name in ("bias", "small", "ids"))
    assert (tmp_path / "m.safetensors").stat().st_size < 256 * 128 * 5 + (1 << 17) + 4000


def test_the_warm_state_is_that_of_the_rounded_weights(tmp_path: Path, everything_large: None) -> None:
    again = load(elmo().save_pretrained(tmp_path / "m", precision="int8"))
    kept = load_file(tmp_path / "m" / "model.safetensors")["warm.cell"]
    again.refresh()
    np.testing.assert_allclose(again.warm_state().cell.detach().numpy(), kept.numpy(), atol=1e-6)


def test_damaged_files(tmp_path: Path, everything_large: None) -> None:
    path = elmo().save_pretrained(tmp_path / "m", precision="int8") / "model.safetensors"
    good = load_file(path)
    name = next(name for name, value in good.items() if value.dtype == torch.int8)
    scale = good[f"{name}.scale"]
    for bad, said in [
        ({f"{name}.scale": None}, "in int8 without its scales"),
        (
            {f"{name}.scale": scale.flatten()},
            r"has scales of type F32 and shape \(\d+,\) for .*; expected F32, one for each row",
        ),
        ({f"{name}.scale": scale.half()}, "has scales of type F16"),
        ({f"{name}.scale": scale * torch.nan}, "that are not finite"),
        ({name: good[name][:1], f"{name}.scale": scale[:1]}, "has shape .*, expected"),
    ]:
        save_file({key: value for key, value in {**good, **bad}.items() if value is not None}, path)
        with pytest.raises(FormatError, match=said):
            load(tmp_path / "m")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FormatError, match="damaged safetensors"):
        load(tmp_path / "m")
    model = elmo()
    with torch.no_grad():
        model.tokens.projection.weight[0, 0] = torch.nan
    with pytest.raises(PolysemeError, match=r"projection\.weight has numbers that are not finite"):
        model.save_pretrained(tmp_path / "other", precision="int8")


def test_n_grams_of_another_program_and_damaged_ones(tmp_path: Path) -> None:
    model = SMALL["ngram"]()
    levels = [Level(each.keys, each.log_probs, each.backoffs - 0.5) for each in model.table.levels]  # also where none follows
    model.table = NgramTable(model.table.size, [*levels[:-1], model.table.levels[-1]])
    folder = model.save_pretrained(tmp_path / "m", precision="int8")
    assert load(folder).table.difference(model.table) < 0.02
    good = load_file(folder / "model.safetensors")
    for name, value, said in [
        ("2.words", good["2.words"].to(torch.int32) + 1000, "do not fit the order below or the vocabulary"),
        ("2.tree", good["2.tree"] * 0, "do not fit the order below"),
        ("2.words", good["2.words"].float(), "2.words of type float32"),
        ("2.log_probs", good["2.log_probs"][1:], r"has \d+ 2-grams and probabilities of \d+"),
        ("1.log_probs.values", good["1.log_probs.values"][:1], "beyond its 1 values"),
        ("1.backoffs", good["1.backoffs"][:1], "back-off weights"),
    ]:
        save_file({**good, name: value}, folder / "model.safetensors")
        with pytest.raises(FormatError, match=said):
            load(folder)


def test_converting(tmp_path: Path, everything_large: None) -> None:
    written = polyseme.convert(gpt(), tmp_path / "m", precision="int8")
    assert written.to_json()["precision"] == "int8" and 0 < written.largest_difference < 0.2
    assert "model.int8.safetensors" in written.files and "model.safetensors" not in written.files
    assert polyseme.verify(tmp_path / "m").good
    with pytest.raises(UsageError, match="bilm-tf files have fp32 only"):
        polyseme.convert(elmo(), tmp_path / "b", to="bilm", precision="int8")
