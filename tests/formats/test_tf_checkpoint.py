"""Checkpoints of bilm-tf's training and TensorFlow Hub's module: the oracle's vectors, and what is wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import polyseme
from polyseme.base.errors import FormatError, UsageError
from polyseme.compat import tfhub
from polyseme.formats import tf_checkpoint
from polyseme.formats.crc32c import crc32c
from tests.formats import tf_writer
from tests.formats.compare import bilm_oracle, same_log_probs, same_vectors
from tests.oracle.make import BilmSettings, bilm_arrays, write_bilm

TINY = {"dim": 6, "projection": 4, "embedding": 2, "filters": ((1, 2), (2, 3)), "highways": 1, "softmax": True}
"""The model of tests/formats/tf_checkpoint, which TensorFlow 2.21 wrote: `tf.compat.v1.train.Saver` on `training_names`."""


def write_training(folder: Path, *, shards: int = 1, **settings: object) -> Path:
    """A folder of bilm-tf's training: options, vocabulary, checkpoint; beside it (hdf5/) the same weights for the oracle."""
    model = BilmSettings(**settings)  # type: ignore[arg-type]
    write_bilm(folder / "hdf5", **settings)
    for path in (folder / "hdf5").glob("[ov]*"):
        shutil.copy(path, folder)
    tf_writer.write_checkpoint(folder / "model.ckpt-12", tf_writer.training_names(bilm_arrays(model)), shards=shards)
    return folder


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"softmax": True, "shards": 2},
        {"words_only": True, "softmax": True},
        {"layers": 1, "flat_single_layer": True, "characters": 261},
        {"dim": 8, "projection": 8, "highways": None},
    ],
    ids=str,
)
def test_a_checkpoint_has_the_vectors_of_the_oracle(settings: dict, tmp_path: Path) -> None:
    folder = write_training(tmp_path, **settings)
    model, oracle = polyseme.load(folder), bilm_oracle(folder / "hdf5")
    same_vectors(model, oracle)  # type: ignore[arg-type]
    if settings.get("softmax"):
        same_log_probs(model, oracle)  # type: ignore[arg-type]


def test_a_checkpoint_that_tensorflow_wrote(tmp_path: Path) -> None:
    model = polyseme.load(Path(__file__).parent / "tf_checkpoint")
    oracle = bilm_oracle(write_bilm(tmp_path, **TINY))
    same_vectors(model, oracle)  # type: ignore[arg-type]
    same_log_probs(model, oracle)  # type: ignore[arg-type]


def test_a_checkpoint_by_any_of_its_names(tmp_path: Path) -> None:
    folder = write_training(tmp_path, **TINY)
    expected = polyseme.load(folder / "hdf5").embed([["bank"]])[0]
    for name in ("model.ckpt-12", "model.ckpt-12.index", "model.ckpt-12.data-00000-of-00001"):
        np.testing.assert_array_equal(polyseme.load(folder / name).embed([["bank"]])[0], expected)


def test_the_latest_of_several(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = write_training(tmp_path, **TINY)
    for number in (9, 100):
        arrays = tf_writer.training_names(bilm_arrays(BilmSettings(seed=number, **TINY)))  # type: ignore[arg-type]
        tf_writer.write_checkpoint(folder / f"model.ckpt-{number}", arrays)

    def found() -> np.ndarray:
        return polyseme.load(folder).embed([["bank"]])[0]

    np.testing.assert_array_equal(found(), polyseme.load(folder / "model.ckpt-100").embed([["bank"]])[0])
    assert "has 3 checkpoints: read model.ckpt-100.index" in caplog.text
    (folder / "checkpoint").write_text('model_checkpoint_path: "/home/me/model.ckpt-9"\nall_model_checkpoint_paths: "x"\n')
    np.testing.assert_array_equal(found(), polyseme.load(folder / "model.ckpt-9").embed([["bank"]])[0])


def test_shared_embeddings_are_the_output_layer(tmp_path: Path) -> None:
    folder = write_training(tmp_path, words_only=True, softmax=True)
    arrays = bilm_arrays(BilmSettings(words_only=True, softmax=True))
    del arrays["softmax/W"]
    tf_writer.write_checkpoint(folder / "model.ckpt-12", tf_writer.training_names(arrays))
    model = polyseme.load(folder)
    assert torch.equal(model.output.weight, torch.from_numpy(arrays["embedding"]))  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """TensorFlow Hub's module, unpacked, with the weights of `hdf5/`."""
    tmp_path = tmp_path_factory.mktemp("hub")
    write_bilm(tmp_path / "hdf5")
    (tmp_path / "elmo" / "variables").mkdir(parents=True)
    (tmp_path / "elmo" / "saved_model.pb").write_bytes(b"\x08\x01")
    arrays = tf_writer.hub_names(bilm_arrays(BilmSettings()))
    tf_writer.write_checkpoint(tmp_path / "elmo" / "variables" / "variables", arrays, shards=2)
    return tmp_path / "elmo"


def test_the_module_of_tensorflow_hub(hub: Path) -> None:
    oracle = bilm_oracle(hub.parent / "hdf5")
    same_vectors(polyseme.load(hub), oracle)  # type: ignore[arg-type]
    lines = ["the cat  is on the mat", "dogs"]
    layers = [oracle.embed(line.split())[0] for line in lines]
    shares = np.exp([0.1, 0.3, -0.4]) / np.exp([0.1, 0.3, -0.4]).sum()
    for found in (
        tfhub.Module(hub, trainable=True)(lines, signature="default", as_dict=True),
        tfhub.load(str(hub)).signatures["default"](np.array(lines)),
        tfhub.Module(hub)(
            {"tokens": [lines[0].split(), ["dogs", "", "", "", "", ""]], "sequence_len": [6, 1]}, "tokens", as_dict=True
        ),
    ):
        sizes = {"word_emb": 8, "lstm_outputs1": 16, "lstm_outputs2": 16, "elmo": 16}
        assert {name: tuple(value.shape) for name, value in found.items()} == {
            **{name: (2, 6, size) for name, size in sizes.items()},
            "default": (2, 16),
        }
        for row, stack in enumerate(layers):
            words, mixed = stack.shape[1], 1.5 * np.tensordot(shares, stack, axes=1)
            np.testing.assert_allclose(found["word_emb"][row, :words], stack[0, :, :8], atol=1e-5)
            np.testing.assert_allclose(found["lstm_outputs2"][row, :words], stack[2], atol=1e-5)
            np.testing.assert_allclose(found["elmo"].numpy()[row, :words], mixed, atol=1e-5)
            np.testing.assert_allclose(found["default"][row], mixed.mean(0), atol=1e-5)
            assert not found["elmo"][row, words:].any()


def test_a_layer_of_keras_outside_a_network(hub: Path) -> None:
    lines = np.array(["the bank", "river"])
    found = tfhub.Module(hub)(lines, as_dict=True)
    one = tfhub.KerasLayer(hub, trainable=False, input_shape=[], dtype="string")
    torch.testing.assert_close(one(lines), found["default"])
    every = tfhub.KerasLayer(hub, signature="default", signature_outputs_as_dict=True)
    torch.testing.assert_close(every(lines), found)
    torch.testing.assert_close(tfhub.KerasLayer(hub, output_key="elmo")(lines), found["elmo"])
    words = tfhub.KerasLayer(hub, signature="tokens", output_key="elmo")
    torch.testing.assert_close(words({"tokens": [["the", "bank"], ["river", ""]], "sequence_len": [2, 1]}), found["elmo"])
    with pytest.raises(UsageError, match="output_key is 'top'; allowed: word_emb, elmo, default"):
        tfhub.KerasLayer(hub, output_key="top")(lines)


def test_the_mix_of_a_module_can_be_trained(hub: Path) -> None:
    module = tfhub.Module(hub, trainable=True).train()
    module(["the bank"]).square().sum().backward()
    assert {name for name, p in module.named_parameters() if p.grad is not None} == {"mix.weights", "mix.gamma"}


def test_modules_in_the_cache_of_tensorflow_hub(hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("TFHUB_CACHE_DIR", str(cache))
    with pytest.raises(polyseme.PolysemeError, match="is not in TensorFlow Hub's cache"):
        tfhub.load("https://tfhub.dev/google/elmo/1")
    shutil.copytree(hub, cache / "0eadd30f548cbfd3065119697ded6bb381668285")  # as seen in the logs of version 1
    assert tfhub.load("https://tfhub.dev/google/elmo/1")(["bank"]).shape == (1, 16)


# ---- files that are wrong


def test_checksums_of_any_length() -> None:
    data = np.random.default_rng(0).integers(0, 256, 5000, dtype=np.uint8).tobytes()
    for length in (0, 1, 255, 256, 257, 1024, 5000):
        assert crc32c(data[:length]) == tf_writer.crc32c(data[:length])


def test_every_damaged_byte_is_noticed(tmp_path: Path) -> None:
    folder = write_training(tmp_path, **TINY)
    index, data = folder / "model.ckpt-12.index", folder / "model.ckpt-12.data-00000-of-00001"
    intact = index.read_bytes()
    for place in [*range(0, len(intact) - 48, 97), len(intact) - 45, len(intact) - 44]:
        index.write_bytes(intact[:place] + bytes([intact[place] ^ 1]) + intact[place + 1 :])
        with pytest.raises(FormatError):
            polyseme.load(folder)
    for length in (0, 20, 60, len(intact) // 2):
        index.write_bytes(intact[:length] + intact[-8:])
        with pytest.raises(FormatError):
            polyseme.load(index)
    index.write_bytes(intact)
    weights = data.read_bytes()
    char_embed = next(v for name, v in tf_checkpoint.variables(index).items() if name == "lm/char_embed")
    data.write_bytes(weights[: char_embed.offset] + b"\xff" + weights[char_embed.offset + 1 :])
    with pytest.raises(FormatError, match="the checksum of char_embed is wrong"):
        polyseme.load(folder)
    data.write_bytes(weights[:100])
    with pytest.raises(FormatError, match=r"is truncated: .* ends behind it"):
        polyseme.load(folder)
    data.unlink()
    with pytest.raises(FormatError, match=r"needs model\.ckpt-12\.data-00000-of-00001, which is not beside it"):
        polyseme.load(folder)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (tf_writer.entry(1, (1 << 30, 1 << 30), 0, 0, 40, 0), r"of shape \[1073741824, 1073741824\] has 40 bytes"),
        (tf_writer.entry(1, (1 << 62,), 0, 0, 0, 0), "has the impossible shape"),
        (tf_writer.entry(1, (10,), 7, 0, 40, 0), "is in file 7 of 1"),
        (tf_writer.entry(1, (1 << 30,), 0, 0, 1 << 32, 0), "is truncated"),
        (tf_writer.entry(1, (10,), 0, 0, 40, 0) + tf_writer.field(7, b""), "is stored in slices"),
        (b"\xff\xff", "is not the index of a checkpoint"),
        (tf_writer.field(2, b"\x12\x7f"), "is not the index of a checkpoint"),
    ],
)
def test_declared_sizes_are_checked_first(changed: bytes, said: str, tmp_path: Path) -> None:
    folder = write_training(tmp_path, **TINY)
    items = {b"": tf_writer.field(1, 1), b"lm/char_embed": changed}
    tf_writer.write_table(folder / "model.ckpt-12.index", items)
    with pytest.raises(FormatError, match=said):
        polyseme.load(folder)


def test_what_is_no_language_model(tmp_path: Path) -> None:
    write_bilm(tmp_path)
    (tmp_path / "weights.hdf5").unlink()
    tf_writer.write_checkpoint(tmp_path / "model.ckpt-1", {"dense/kernel": np.ones((2, 2), np.float32)})
    with pytest.raises(FormatError, match=r"has no LSTMs of a language model .*its variables: dense/kernel"):
        polyseme.load(tmp_path)
    options = json.loads((tmp_path / "options.json").read_text())
    options["lstm"]["dim"] = 25
    (tmp_path / "options.json").write_text(json.dumps(options))
    arrays = tf_writer.training_names(bilm_arrays(BilmSettings()))
    tf_writer.write_checkpoint(tmp_path / "model.ckpt-1", arrays)
    with pytest.raises(FormatError, match=r"has shape \[16, 96\], expected \[16, 100\]"):
        polyseme.load(tmp_path)
