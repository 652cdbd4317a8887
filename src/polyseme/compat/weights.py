"""The weights that old scripts name: paths, and addresses of published files, which are downloaded once.

A file that AllenNLP downloaded to its own cache is found there. Downloads are kept in `$POLYSEME_CACHE` (default:
`~/.cache/polyseme`); `HF_HUB_OFFLINE=1` forbids them, as everywhere in polyseme.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import urllib.request
from pathlib import Path
from typing import Any

from polyseme.api.models import load
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.base.files import atomic
from polyseme.base.progress import report
from polyseme.encoders.elmo import Elmo

_PUBLISHED = "https://s3-us-west-2.amazonaws.com/allennlp/models/elmo/"
_FILES = {
    "small": "2x1024_128_2048cnn_1xhighway/elmo_2x1024_128_2048cnn_1xhighway",
    "medium": "2x2048_256_2048cnn_1xhighway/elmo_2x2048_256_2048cnn_1xhighway",
    "original": "2x4096_512_2048cnn_2xhighway/elmo_2x4096_512_2048cnn_2xhighway",
    "5.5B": "2x4096_512_2048cnn_2xhighway_5.5B/elmo_2x4096_512_2048cnn_2xhighway_5.5B",
    "pt": "contributed/pt/elmo_pt",
    "pubmed": "contributed/pubmed/elmo_2x4096_512_2048cnn_2xhighway",
}
_ENDINGS = {"pubmed": "weights_PubMed_only"}
ALIASES = {"large": "5.5B", "portuguese": "pt", "default": "original"}


def published(model: str) -> tuple[str, str]:
    """Return the addresses of the options and weights of a published model, by the name that AllenNLP and Flair gave it."""
    name = ALIASES.get(model, model)
    if name not in _FILES:
        raise UsageError(f"unknown model {model!r}; allowed: {', '.join([*_FILES, *ALIASES])}, or give the files themselves")
    base = _PUBLISHED + _FILES[name]
    return f"{base}_options.json", f"{base}_{_ENDINGS.get(name, 'weights')}.hdf5"


def load_elmo(weights: str | Path, options: str | Path | None = None, **settings: Any) -> Elmo:
    """Load an ELMo from paths or addresses; further settings as in `polyseme.load`."""
    model = load(local_file(weights), options=None if options is None else Path(local_file(options)), **settings)
    if not isinstance(model, Elmo):
        raise UsageError(f"{weights} is a model of kind {model.kind}; this call needs an ELMo")
    return model


def local_file(name: str | Path) -> str:
    """Return a path as it is, and for an address that of the local copy."""
    address = str(name)
    if not address.startswith(("http://", "https://")):
        return address
    digest = hashlib.sha256(address.encode()).hexdigest()
    root = Path(os.environ.get("ALLENNLP_CACHE_ROOT", "~/.allennlp")).expanduser()
    known = [path for path in sorted(root.glob(f"**/{digest}*")) if path.suffix not in (".json", ".lock", ".tmp")]
    if known:
        return str(known[-1])
    folder = Path(os.environ.get("POLYSEME_CACHE", "~/.cache/polyseme")).expanduser() / digest[:16]
    path = folder / address.rpartition("/")[2]
    if not path.exists():
        _download(address, path)
    return str(path)


def _download(address: str, path: Path) -> None:
    advice = f"download it elsewhere, and give its path instead of the address, or save it as {path}"
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        raise PolysemeError(f"{address}: is not downloaded yet, and HF_HUB_OFFLINE forbids it: {advice}")
    report(f"downloading {address} to {path}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with urllib.request.urlopen(address, timeout=60) as source, atomic(path) as part, part.open("wb") as target:
            shutil.copyfileobj(source, target)
            expected = source.headers.get("Content-Length")
            if expected is not None and target.tell() != int(expected):
                raise OSError(f"{target.tell()} of {expected} bytes arrived")
    except OSError as error:  # urllib's errors are of this kind
        raise PolysemeError(f"{address}: cannot be downloaded ({error}): {advice}") from error
