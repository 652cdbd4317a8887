"""Models by name: a local path first, else a repository on the Hugging Face Hub.

`huggingface_hub` keeps the local cache and respects `HF_HUB_OFFLINE=1`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from polyseme.base.errors import PolysemeError, nearest

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_COPIES = ["*.bin", "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.ckpt", "*.pt", "*.pth", "coreml/*", "onnx/*", "openvino/*"]
"""The same weights for other programs: bert-base-uncased has five such copies beside its safetensors."""

_OWNERS = {"bert-": "google-bert", "gpt2": "openai-community", "distilbert-": "distilbert", "roberta-": "FacebookAI"}
"""Who has the models that were published under a name alone."""


def cached_path(name: str | Path, known_names: Sequence[str] = ()) -> Path:
    """Return a local path as it is, or the local copy of a hub repository (`owner/name`), downloaded if needed.

    `known_names`: further names that the caller accepts, for the error message.
    """
    path = Path(name).expanduser()
    if path.exists():
        return path
    if not (isinstance(name, str) and _HUB_ID.fullmatch(name)):
        owner = next((owner for begin, owner in _OWNERS.items() if str(name).startswith(begin)), None)
        known = nearest(str(name).lower(), known_names)
        known += f"; the published {name} is {owner}/{name}" if owner is not None else ""
        raise PolysemeError(f"{name}: no such file or folder, and not a hub id of the form owner/name{known}")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, ignore_patterns=_COPIES if _has_safetensors(name) else None))
    except Exception as error:  # of many kinds: no network, no such repository, offline, no permission
        raise PolysemeError(
            f"{name}: no such local path, and it cannot be downloaded from the hub ({_reason(error)})"
        ) from error


def _has_safetensors(name: str) -> bool:
    """Whether a repository has weights that polyseme reads, so that others need no download; offline it is not asked."""
    from huggingface_hub import HfApi

    try:
        return any(file.endswith(".safetensors") for file in HfApi().list_repo_files(name))
    except Exception:  # of many kinds; the download itself says what is wrong, or takes the cache
        return False


def upload_folder(folder: Path, repo_id: str, *, private: bool = False, token: str | None = None) -> str:
    """Upload a folder to a hub repository, created if needed; return its address."""
    from huggingface_hub import HfApi

    api = HfApi(token=token)
    try:
        api.create_repo(repo_id, private=private, exist_ok=True)
        return str(api.upload_folder(repo_id=repo_id, folder_path=str(folder)))
    except Exception as error:
        raise PolysemeError(f"cannot push to {repo_id} ({_reason(error)})") from error


def _reason(error: Exception) -> str:
    """The first line of an error, or its type."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
