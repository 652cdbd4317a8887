"""Models by name: a path on this machine first, else a repository on the Hugging Face Hub.

`HF_HUB_OFFLINE=1` and the local cache are respected by `huggingface_hub` itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from polyseme.base.errors import PolysemeError

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


def cached_path(name: str | Path, others: Sequence[str] = ()) -> Path:
    """A local path as it is, or the local copy of a hub repository (`owner/name`), downloaded where needed.

    `others`: names that the caller knows besides, for the message.
    """
    path = Path(name).expanduser()
    if path.exists():
        return path
    if not (isinstance(name, str) and _HUB_ID.fullmatch(name)):
        besides = f"; by name there are {' and '.join(others)}" if others else ""
        raise PolysemeError(f"{name}: no such file or folder, and not a hub id of the form owner/name{besides}")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name))
    except Exception as error:  # the library raises many kinds: no network, no such repository, offline, no permission
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise PolysemeError(f"{name}: no such path here, and the hub did not give it ({reason})") from error


def upload_folder(folder: Path, repo_id: str, *, private: bool = False, token: str | None = None) -> str:
    """Upload a folder to a hub repository, made where needed; gives its address."""
    from huggingface_hub import HfApi

    api = HfApi(token=token)
    try:
        api.create_repo(repo_id, private=private, exist_ok=True)
        return str(api.upload_folder(repo_id=repo_id, folder_path=str(folder)))
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise PolysemeError(f"cannot push to {repo_id} ({reason})") from error
