"""An ELMo with Transformers for its trunk: all that an ELMo holds to, and what it refuses."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, PolysemeError, UsageError
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import SIZES, TRANSFORMERS, ElmoConfig
from polyseme.formats import bilm
from polyseme.nn.config import TransformerConfig
from tests.encoders.small import TRANSFORMER, elmo, sentences

TEXTS = sentences(20)  # of 0 to 12 words


def model(**options: object) -> Elmo:
    return elmo(transformer=TRANSFORMER, **options)  # type: ignore[arg-type]


def assert_close(found: list[np.ndarray], expected: list[np.ndarray], atol: float = 2e-6) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=atol)


@pytest.mark.parametrize("form", ["characters", "words", "both"])
def test_shapes(form: str) -> None:
    found = model(form=form).embed(["the cat", [], ["river"]])
    assert [array.shape for array in found] == [(4, 2, 16), (4, 0, 16), (4, 1, 16)]
    np.testing.assert_array_equal(found[0][0, :, :8], found[0][0, :, 8:])


def test_a_word_knows_its_left_and_its_right_apart() -> None:
    one, left, right = model().embed(["the bank of the river", "a bank of the river", "the bank of the money"])
    assert np.abs(one[1:, 1, :8] - left[1:, 1, :8]).max(axis=1).min() > 1e-3
    np.testing.assert_allclose(one[:, 1, 8:], left[:, 1, 8:], atol=1e-6)
    assert np.abs(one[1:, 1, 8:] - right[1:, 1, 8:]).max(axis=1).min() > 1e-4
    np.testing.assert_allclose(one[:, 1, :8], right[:, 1, :8], atol=1e-6)


def test_company_does_not_matter() -> None:
    encoder = model()
    alone = [encoder.embed([text])[0] for text in TEXTS]
    assert_close(encoder.embed(TEXTS), alone)
    assert_close(encoder.embed(TEXTS, start="zero", batch_words=30, batch_size=5), alone)


def test_long_texts_are_read_whole() -> None:
    texts = [["the", "cat", "sat", "on"] * 25, ["bank"], ["river", "money"] * 20]
    encoder = model()
    assert_close(encoder.embed(texts, batch_words=7), encoder.embed(texts, batch_words=10_000))


@pytest.mark.slow
def test_memory_grows_with_the_text_and_not_with_its_square() -> None:
    """8,000 words: the scores of one head in one layer would be 256 MB."""
    code = (
        "import resource\n"
        "from tests.encoders.small import TRANSFORMER, elmo\n"
        "model = elmo(transformer=TRANSFORMER); model.embed([['cat'] * 50])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "model.embed([['the', 'cat', 'sat', 'on'] * 2000])\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert float(found) < 64


def test_forward_gives_what_embed_gives() -> None:
    encoder = model()
    texts = [text for text in TEXTS[:6] if text]
    layers = encoder(encoder.prepare(texts))
    for row, (text, array) in enumerate(zip(texts, encoder.embed(texts), strict=True)):
        np.testing.assert_allclose(layers.states[:, row, : len(text)].detach(), array, atol=1e-6)
        assert not layers.states[:, row, len(text) :].any()


def test_gradients_reach_every_weight_and_freezing_stops_them() -> None:
    encoder = model(form="both")
    encoder(encoder.prepare(["the cat sat", "a dog"])).states.square().sum().backward()
    assert all(p.grad is not None for p in encoder.parameters())
    encoder.zero_grad(set_to_none=True)
    encoder.freeze()
    encoder.unfreeze("layer3")
    encoder(encoder.prepare(["the cat sat"])).states.square().sum().backward()
    trained = {name for name, p in encoder.named_parameters() if p.grad is not None}
    assert trained == {name for name, _ in encoder.named_parameters() if "_layers.2." in name}
    inside = {id(p) for part in encoder.layer_groups().values() for p in part.parameters()}
    assert inside == {id(p) for p in encoder.parameters()}


def test_training_changes_what_embed_gives() -> None:
    encoder = model()
    before = encoder.embed(["the cat"])[0]
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
    encoder(encoder.prepare(["the cat"])).states.square().sum().backward()
    optimizer.step()
    encoder.refresh()
    assert np.abs(before - encoder.embed(["the cat"])[0]).max() > 1e-3


def test_autocast() -> None:
    encoder = model()
    expected = encoder.embed(TEXTS[:5])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_close(encoder.embed(TEXTS[:5]), expected, atol=0.1)
        layers = encoder(encoder.prepare(TEXTS[:5]))
    layers.states.float().square().sum().backward()
    assert all(p.grad is not None for p in encoder.parameters())


def test_questions() -> None:
    encoder = model(output=True)
    alone = [encoder.score([text])[0] for text in TEXTS[:5]]
    np.testing.assert_allclose(encoder.score(TEXTS[:5]), alone, rtol=1e-5)
    same, other = (encoder.substitutes(f"the {word} sat", 1, count=5) for word in ("cat", "dog"))
    assert [each.word for each in same] == [each.word for each in other]


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_round_trip(tmp_path: Path, precision: str) -> None:
    encoder = model(form="both", output=True)
    encoder.save_pretrained(tmp_path / "m", precision=precision)
    assert not any(name.startswith("warm.") for name in load_file(tmp_path / "m" / "model.safetensors"))
    again = Elmo.from_pretrained(tmp_path / "m")
    assert again.config == encoder.config and isinstance(again, Elmo)
    assert_close(again.embed(TEXTS), encoder.embed(TEXTS), atol=0 if precision == "fp32" else 2e-2)
    assert_close(copy.deepcopy(again).embed(TEXTS), again.embed(TEXTS), atol=0)
    if precision == "fp32":
        np.testing.assert_array_equal(again.score(TEXTS), encoder.score(TEXTS))


def test_folders_of_before_know_no_trunk(tmp_path: Path) -> None:
    elmo().save_pretrained(tmp_path)
    head = json.loads((tmp_path / "config.json").read_text())
    del head["config"]["transformer"]
    (tmp_path / "config.json").write_text(json.dumps(head))
    assert Elmo.from_pretrained(tmp_path).config == elmo().config


def test_a_warm_state_does_not_belong_into_the_folder(tmp_path: Path) -> None:
    folder = model().save_pretrained(tmp_path / "m")
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, "warm.cell": torch.zeros(1)}, folder / "model.safetensors")
    with pytest.raises(FormatError, match=r"has an unknown tensor warm\.cell"):
        Elmo.from_pretrained(folder)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda m: m.embed(["cat"], start="warm"), "start is 'warm', which .*no state.*; allowed: zero"),
        (lambda m: m.embed(["cat"], start="learned"), "start is 'learned', which .* allowed: zero"),
        (lambda m: m.embed(["cat"], start="carry"), "start is 'carry', which .* allowed: zero"),
        (lambda m: m(m.prepare(["cat"]), start="carry"), "start is 'carry', which .* allowed: zero"),
        (lambda m: m.score(["cat"], start="carry"), "start is 'carry', which .* allowed: zero"),
        (lambda m: m.warm_state(), "start is 'warm'"),
        (lambda m: m.embed(["cat"], start="wram"), "unknown start 'wram'"),
        (lambda m: setattr(m, "precision", "int8"), "precision is 'int8', which applies only to LSTMs"),
        (lambda m: setattr(m, "precision", "fp8"), "unknown precision 'fp8'"),
    ],
)
def test_mistakes(call: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        call(model(output=True))  # type: ignore[operator]


def test_precision_may_be_set_to_what_it_is() -> None:
    encoder = model()
    encoder.precision = "fp32"
    assert encoder.precision == "fp32"


def test_bad_configs() -> None:
    with pytest.raises(ConfigError, match="start is 'learned', but a Transformer has no start state; allowed: 'zero'"):
        ElmoConfig(transformer=TransformerConfig(), start="learned")
    with pytest.raises(ConfigError, match="dim is 512; with 3 heads it must be a multiple of 6"):
        ElmoConfig(transformer=TransformerConfig(heads=3))


def test_description() -> None:
    facts = model().info()
    assert facts["trunk"] == "transformer" and facts["lstm"] is None and facts["transformer"] == "2 heads, 16/8"
    assert elmo().info()["trunk"] == "lstm" and elmo().info()["transformer"] is None


def test_other_formats_cannot_hold_it(tmp_path: Path) -> None:
    with pytest.raises(PolysemeError, match="bilm-tf's format is for LSTMs; this model is a Transformer"):
        bilm.write(model(), tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("size", SIZES)
def test_every_size_has_its_transformers(size: str) -> None:
    """Of twelve blocks as many as there are have that share of the LSTMs' parameters, biases and clips aside."""
    config = SIZES[size].replace(transformer=TRANSFORMERS[size])
    assert config.output == SIZES[size].output and config.half == SIZES[size].half
    with torch.device("meta"):
        transformers, lstms = (sum(p.numel() for p in Elmo(each).contextualizer.parameters()) for each in (config, SIZES[size]))
    if size != "tiny":
        assert transformers / lstms == pytest.approx(config.num_layers / 12, rel=0.02)
