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
    with pytest.raises(PolysemeError, match=r"no/such/model\.hdf5: no such file or folder, and not a hub id"):
        cached_path("no/such/model.hdf5")


def test_offline_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(PolysemeError, match="owner/none: no such local path, and it cannot be downloaded from the hub"):
        cached_path("owner/none")


def test_what_is_fetched_comes_from_the_hub_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda name: str(tmp_path / name.replace("/", "--")))
    assert cached_path("owner/model") == tmp_path / "owner--model"


def test_card() -> None:
    card = write_card("A model", {"layers": 3, "vocabulary": None}, licence="cc-by-4.0", text="Good for tests.")
    assert licence_of(card) == "cc-by-4.0"
    assert "| layers | 3 |" in card and "vocabulary" not in card and "Good for tests." in card
    assert licence_of("# no front matter\nlicense: x") is None
    assert licence_of(None) is None
