"""A full disk is one sentence and no result: by a limit on the size of files, which fails alike."""

from collections.abc import Callable
from pathlib import Path

import pytest

from polyseme.formats.vectors import hdf5
from tests.cli.running import Result, one_sentence, tiny
from tests.oracle.make import VOCABULARY, write_bilm
from tests.training.test_full_disk import room_for

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("disk")
    write_bilm(folder / "elmo", vocabulary=list(VOCABULARY), softmax=True)
    tiny().save_pretrained(folder / "tiny")
    (folder / "text.txt").write_text("the bank of\n" * 1_500)
    (folder / "out").mkdir()
    return folder


@pytest.mark.parametrize(
    ("name", "held"), [("v.npz", hdf5.SHARD_BYTES), ("shards.hdf5", 30_000), ("whole.hdf5", hdf5.SHARD_BYTES)]
)
def test_embed(run: Run, folder: Path, name: str, held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """HDF5 fails in two ways: a shard that is too large, and shards that are too large together."""
    monkeypatch.setattr(hdf5, "SHARD_BYTES", held)
    out = folder / "out" / name
    with room_for(90 * 1024):
        result = run("embed", "--input", folder / "text.txt", "--model", folder / "elmo", "--batch-words", 256, "--out", out)
    assert f"cannot write {out}: File too large" in one_sentence(result)
    assert not out.exists()


@pytest.mark.parametrize(
    ("model", "options", "told"),
    [
        ("elmo", ["--to", "bilm"], "weights.hdf5: File too large"),
        ("tiny", [], "model.safetensors: "),  # safetensors has an error of its own for a full disk
    ],
)
def test_convert(run: Run, folder: Path, model: str, options: list[str], told: str) -> None:
    out = folder / "out" / f"converted-{model}"
    with room_for(20 * 1024):
        result = run("convert", folder / model, out, *options)
    assert f"cannot write {out}/{told}" in one_sentence(result)
    assert not out.exists()
