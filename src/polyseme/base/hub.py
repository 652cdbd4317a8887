"""Models by name: a local path first, else a repository on the Hugging Face Hub.

`huggingface_hub` keeps the local cache and respects `HF_HUB_OFFLINE=1`.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from polyseme.base.errors import PolysemeError, nearest, nearest_name

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_WEIGHTS = re.compile(r"\.(?:hdf5?|h5|th|ckpt|index|pt|pth|bin|safetensors|pkl|zip|tar|t?gz|bz2|xz|txt|vec|arpa)", re.I)
"""Suffixes of files with a model. No repository is meant by such a name, though it may have one."""
_COPIES = ["*.bin", "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.ckpt", "*.pt", "*.pth", "coreml/*", "onnx/*", "openvino/*"]
"""The same weights for other programs: bert-base-uncased has five such copies beside its safetensors."""

_SHOWN = 5  # names of a folder in a message
_CLOSE = 0.8  # en-large is not en-glove, and they are alike by 0.75
_OWNERS = {"bert-": "google-bert", "gpt2": "openai-community", "distilbert-": "distilbert", "roberta-": "FacebookAI"}
"""Who has the models that were published under a name alone."""


def cached_path(name: str | Path, known_names: Sequence[str] = ()) -> Path:
    """Return a local path as it is, or the local copy of a hub repository (`owner/name`), downloaded if needed.

    `known_names`: further names that the caller accepts, for the error message.
    """
    path = Path(name).expanduser()
    if path.exists():
        return path
    if _is_meant_as_path(name):
        raise PolysemeError(f"{name}: no such file or folder{_inside(str(name))}")
    first, *rest = str(name).split("/")
    if rest and Path(first).is_dir():
        raise PolysemeError(
            f"{name}: no such file or folder{_inside(str(name))}; the hub is not asked, because the folder {first} is here"
        )
    if not _HUB_ID.fullmatch(str(name)):
        owner = next((owner for begin, owner in _OWNERS.items() if str(name).startswith(begin)), None)
        known = nearest(str(name).lower(), known_names, _CLOSE)
        known += f"; the published {name} is {owner}/{name}" if owner is not None else ""
        raise PolysemeError(f"{name}: no such file or folder, and not a hub id of the form owner/name{known}")
    from huggingface_hub import snapshot_download

    try:
        with _without_traces():
            return Path(snapshot_download(str(name), ignore_patterns=_COPIES if _has_safetensors(str(name)) else None))
    except Exception as error:  # of many kinds: no network, no such repository, offline, no permission
        raise PolysemeError(
            f"{name}: no such local path, and it cannot be downloaded from the hub ({_reason(error)})"
        ) from error


def _is_meant_as_path(name: str | Path) -> bool:
    """Whether the form of a name says that no hub repository is meant."""
    text = str(name)
    by_form = isinstance(name, Path) or text.startswith((".", "~", "/")) or text.count("/") > 1
    return by_form or _WEIGHTS.fullmatch(Path(text).suffix) is not None


def _inside(name: str) -> str:
    """A hint on what the folder of a missing path has; nothing if it is not there itself."""
    path = Path(name).expanduser()
    folder, names = path.parent, list[str]()
    with contextlib.suppress(OSError):  # not there, or not to be read
        names = sorted(each.name for each in folder.iterdir() if not each.name.startswith("."))
    if (best := nearest_name(path.name, names)) is not None:
        return f" (did you mean {name.rstrip('/').removesuffix(path.name)}{best}?)"
    if not names or folder == Path():
        return ""
    return f" ({folder} has {', '.join(names[:_SHOWN])}{', ...' if len(names) > _SHOWN else ''})"


@contextlib.contextmanager
def _without_traces() -> Iterator[None]:
    """Keep what the hub client logs about single attempts off the terminal; the error in the end says what is wrong."""
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _has_safetensors(name: str) -> bool:
    """Whether a repository has weights that polyseme reads, so that others need no download; offline it is not asked.

    `list_repo_files` would ask six times for half a minute where there is no network.
    """
    from huggingface_hub import HfApi

    try:
        files = HfApi().model_info(name).siblings or []
        return any(file.rfilename.endswith(".safetensors") for file in files)
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
