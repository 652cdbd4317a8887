"""Models by name: those of the package, each a folder under `polyseme/models`, and those of the distribution polyseme-models.

The name of a model of the package takes precedence over a path: to load your own folder `en`, write `./en`. A name of
polyseme-models that is a path as well is an error, because such a folder may be the user's own model of that method.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path

import polyseme
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.base.hub import cached_path

NAMES = ("en", "zh")
"""English, the default of `polyseme.load()`, and Chinese."""
DISTRIBUTION, PACKAGE = "polyseme-models", "polyseme_models"
DISTRIBUTED = (
    *("en-ngram", "en-nnlm", "en-word2vec", "en-fasttext", "en-glove", "en-taglm", "en-ulmfit", "en-gpt", "en-bert"),
    *("zh-word2vec", "zh-bert", "en-v1", "zh-v1"),
)
"""The models of that distribution, also for messages where it is not installed."""
HASH = "sha256.txt"
"""In the folder of such a model: its fingerprint, by which the folders of trained tasks find it."""


def distribution_folder() -> Path | None:
    """Return the folder of the installed distribution; None: it is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    places = list(spec.submodule_search_locations or []) if spec is not None else []
    return Path(places[0]) if places else None


def distributed_models() -> dict[str, Path]:
    """Return the folders of the models of the installed distribution, by name."""
    folder = distribution_folder()
    paths = sorted(folder.glob("*/config.json")) if folder is not None else []
    return {path.parent.name: path.parent for path in paths}


def is_shipped(name: str) -> bool:
    """Whether a model can be loaded by this name alone."""
    return name in NAMES or name in distributed_models()


def shipped_folder(name: str | Path) -> Path | None:
    """Return the folder of a model by its name; None: there is no such name."""
    if name not in NAMES:
        return _distributed_folder(name) if isinstance(name, str) else None
    folder = Path(polyseme.__file__).parent / "models" / str(name)
    if not (folder / "config.json").is_file():
        raise PolysemeError(
            f"this installation lacks the weights of the model {name!r} ({folder}): choose another model, or write ./{name} "
            "for your own folder"
        )
    return folder


def _distributed_folder(name: str) -> Path | None:
    folder, here = distributed_models().get(name), Path(name)
    if folder is not None and here.exists():
        both = f"{name} is a model of {DISTRIBUTION} ({folder}) and a path here ({here.resolve()})"
        raise UsageError(f"{both}: write ./{name} for your own, or the whole path of the other")
    if folder is None and name in DISTRIBUTED and not here.exists():
        lacks = "is not installed" if distribution_folder() is None else "is installed without it"
        how = f"pip install --upgrade {DISTRIBUTION}, or in a copy of the repository pip install ./models"
        raise PolysemeError(f"{name} is a model of {DISTRIBUTION}, which {lacks}: {how}")
    return folder


def find_by_hash(sha256: str) -> Path | None:
    """Return the folder of the model of polyseme-models with this fingerprint; None: there is none."""
    for folder in distributed_models().values():
        note = folder / HASH
        if note.is_file() and note.read_text(encoding="ascii", errors="replace").strip() == sha256:
            return folder
    return None


def resolve_path(name: str | Path, others: Iterable[str] = ()) -> Path:
    """Return the path of a model: a shipped one by its name, else a path, or the local copy of a hub repository.

    `others`: further names that the caller accepts, for the error message.
    """
    return shipped_folder(name) or cached_path(name, [*others, *NAMES, *sorted({*DISTRIBUTED, *distributed_models()})])
