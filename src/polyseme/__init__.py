"""polyseme: contextual word representations that anyone can train on their own text and use today.

    import polyseme
    model = polyseme.load("path/to/any/elmo")
    vectors = model.embed(["The bank of the river .", "Money in the bank ."])

Names are imported when they are first used, so that `import polyseme` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyseme.encoders.elmo import Elmo
    from polyseme.encoders.elmo_config import ElmoConfig
    from polyseme.formats.load import load
    from polyseme.nn.mix import Mix
    from polyseme.studies.train import load_task, train

__version__ = "0.1.0"
__all__ = ["Elmo", "ElmoConfig", "Mix", "__version__", "load", "load_task", "train"]

_HOMES = {
    "Elmo": "polyseme.encoders.elmo",
    "ElmoConfig": "polyseme.encoders.elmo_config",
    "Mix": "polyseme.nn.mix",
    "load": "polyseme.formats.load",
    "load_task": "polyseme.studies.train",
    "train": "polyseme.studies.train",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'polyseme' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
