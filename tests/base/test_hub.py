from __future__ import annotations

from pathlib import Path

import pytest

from polyseme.base.card import licence_of, write_card
from polyseme.base.errors import PolysemeError
from polyseme.base.hub import cached_path


def test_local_paths_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "owner" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert cached_path("owner/name") == Path("owner/name")


def test_neither_path_nor_id() -> None:
    with pytest.raises(PolysemeError, match=r"the published bert-base-chinese is google-bert/bert-base-chinese"):
        cached_path("bert-base-chinese")
    with pytest.raises(PolysemeError, match=r"no/such/model\.hdf5: no such file or folder, and not a hub id"):
        cached_path("no/such/model.hdf5")


def test_offline_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(PolysemeError, match="owner/none: no such local path, and it cannot be downloaded from the hub"):
        cached_path("owner/none")


def test_what_is_fetched_comes_from_the_hub_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With safetensors, copies of the weights for other programs are not downloaded; without, all files are."""
    import huggingface_hub

    files = ["config.json", "model.safetensors", "pytorch_model.bin", "tf_model.h5", "onnx/model.onnx", "merges.txt"]
    ignored: list[object] = []

    def download(name: str, ignore_patterns: list[str] | None) -> str:
        ignored.append(ignore_patterns and list(filter_repo_objects(files, ignore_patterns=ignore_patterns)))
        return str(tmp_path / name.replace("/", "--"))

    filter_repo_objects = huggingface_hub.utils.filter_repo_objects
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", lambda self, name: files)
    assert cached_path("owner/model") == tmp_path / "owner--model"
    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", lambda self, name: ["vectors.bin"])
    cached_path("owner/model")
    assert ignored == [["config.json", "model.safetensors", "merges.txt"], None]


def test_card() -> None:
    card = write_card("A model", {"layers": 3, "vocabulary": None}, licence="cc-by-4.0", text="Good for tests.")
    assert licence_of(card) == "cc-by-4.0"
    assert "| layers | 3 |" in card and "vocabulary" not in card and "Good for tests." in card
    assert licence_of("# no front matter\nlicense: x") is None
    assert licence_of(None) is None
