from __future__ import annotations

import logging
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
    with pytest.raises(PolysemeError, match=r"no such file or folder, and not a hub id .* \(known: en, en-glove\)$"):
        cached_path("en-large", ["en", "en-glove"])
    with pytest.raises(PolysemeError, match=r"\(did you mean 'en-glove'\?\)$"):
        cached_path("en-golve", ["en", "en-glove"])


def test_paths_are_not_asked_for_at_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def ask(*arguments: object, **keywords: object) -> str:
        raise AssertionError("the hub was asked")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", ask)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", ask)
    (tmp_path / "old-elmo").mkdir()
    (tmp_path / "old-elmo" / "weights.hdf5").touch()
    monkeypatch.chdir(tmp_path)
    for name, hint in {
        "old-elmo/weights.hdf": " (did you mean old-elmo/weights.hdf5?)",
        "./old-elmo/b": " (old-elmo has weights.hdf5)",
        "old-elmo/b": " (old-elmo has weights.hdf5); the hub is not asked, because the folder old-elmo is here",
        "./old-elm": " (did you mean ./old-elmo?)",
        "./mymodel": "",
        "~/no-such-model": "",
        "no/weights.hdf5": "",
        "no/such/model": "",
    }.items():
        with pytest.raises(PolysemeError) as caught:
            cached_path(name)
        assert str(caught.value) == f"{name}: no such file or folder{hint}"


def test_a_hub_out_of_reach_gives_one_sentence(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The hub client logs each attempt, and repeats some for half a minute."""
    import huggingface_hub

    def fail(*arguments: object, **keywords: object) -> str:
        logging.getLogger("huggingface_hub.utils._http").warning("Retrying in 1s [Retry 1/5].")
        raise OSError("no network")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", fail)
    with pytest.raises(PolysemeError, match=r"^owner/none: .* cannot be downloaded from the hub \(no network\)$"):
        cached_path("owner/none")
    assert caplog.messages == []


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

    def info_of(files: list[str]) -> huggingface_hub.ModelInfo:
        return huggingface_hub.ModelInfo(id="owner/model", siblings=[{"rfilename": file} for file in files])

    filter_repo_objects = huggingface_hub.utils.filter_repo_objects
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda self, name: info_of(files))
    assert cached_path("owner/model") == tmp_path / "owner--model"
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda self, name: info_of(["vectors.bin"]))
    cached_path("owner/model")
    assert ignored == [["config.json", "model.safetensors", "merges.txt"], None]


def test_card() -> None:
    card = write_card("A model", {"layers": 3, "vocabulary": None}, licence="cc-by-4.0", text="Good for tests.")
    assert licence_of(card) == "cc-by-4.0"
    assert "| layers | 3 |" in card and "vocabulary" not in card and "Good for tests." in card
    assert licence_of("# no front matter\nlicense: x") is None
    assert licence_of(None) is None
