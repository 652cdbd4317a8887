"""The kinds of encoders that a model folder can hold, each imported when it is first needed.

A new system is one line here. Its class says the rest: `config_type`, how its files are written (`write_files`) and read
back (`read_files`), and what it is, for people (`facts`).
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polyseme.base.errors import UsageError, nearest

if TYPE_CHECKING:
    from polyseme.encoders.base import Encoder


@dataclass(frozen=True)
class EncoderType:
    """A kind of encoder."""

    home: str
    """Where its class is: `module:Class`."""
    files: tuple[str, ...]
    """The files that it may write, besides those that every folder has."""


_LIBRARY = ("model.safetensors", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json")
_ELMO = ("model.safetensors", "output.safetensors", "vocabulary.txt", "characters.txt")
ENCODERS = {
    "elmo": EncoderType("polyseme.encoders.elmo:Elmo", files=_ELMO),
    "taglm": EncoderType("polyseme.encoders.taglm:TagLm", files=_ELMO),
    "word2vec": EncoderType("polyseme.encoders.word2vec:WordVectorTable", files=("model.safetensors", "vocabulary.txt")),
    "fasttext": EncoderType("polyseme.encoders.fasttext:FastTextTable", files=("model.safetensors", "vocabulary.txt")),
    "ngram": EncoderType("polyseme.encoders.ngram:NgramModel", files=("model.safetensors", "vocabulary.txt")),
    "nnlm": EncoderType("polyseme.encoders.nnlm:Nnlm", files=("model.safetensors", "output.safetensors", "vocabulary.txt")),
    "ulmfit": EncoderType(
        "polyseme.encoders.ulmfit:Ulmfit", files=("model.safetensors", "output.safetensors", "vocabulary.txt")
    ),
    "bert": EncoderType("polyseme.encoders.bert:Bert", files=_LIBRARY),
    "gpt": EncoderType("polyseme.encoders.gpt:Gpt", files=_LIBRARY),
}
"""By the name in `config.json`."""


def encoder_class(kind: str) -> type[Encoder]:
    """The class of a kind.

    >>> encoder_class("elmo").__name__
    'Elmo'
    """
    if kind not in ENCODERS:
        raise UsageError(f"there is no encoder called {kind!r}{nearest(kind, ENCODERS)}")
    module, name = ENCODERS[kind].home.split(":")
    found: type[Encoder] = getattr(importlib.import_module(module), name)
    return found
