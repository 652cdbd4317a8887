"""The kinds of encoders that a model folder can hold, each imported when it is first needed.

A new encoder is one line here. Its class says the rest: `config_type`, how its files are written (`write_files`) and read
(`read_files`), and its description (`info`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyseme.base.errors import UsageError, nearest
from polyseme.base.imports import import_object


@dataclass(frozen=True)
class EncoderType:
    """A kind of encoder."""

    path: str
    """Where its class is: `module:Class`."""
    files: tuple[str, ...]
    """The files that it may write, besides those of every folder."""


_LIBRARY = (
    *("model.safetensors", "model.int8.safetensors"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json"),
)
_ELMO = ("model.safetensors", "output.safetensors", "vocabulary.txt", "characters.txt")
_LANGUAGE_MODEL = ("model.safetensors", "output.safetensors", "vocabulary.txt")
_TABLE = ("model.safetensors", "vocabulary.txt")
ENCODERS = {
    "elmo": EncoderType("polyseme.encoders.elmo:Elmo", _ELMO),
    "taglm": EncoderType("polyseme.encoders.taglm:TagLm", _ELMO),
    "word2vec": EncoderType("polyseme.encoders.word2vec:WordVectorTable", _TABLE),
    "fasttext": EncoderType("polyseme.encoders.fasttext:FastTextTable", _TABLE),
    "ngram": EncoderType("polyseme.encoders.ngram:NgramModel", _TABLE),
    "nnlm": EncoderType("polyseme.encoders.nnlm:Nnlm", _LANGUAGE_MODEL),
    "ulmfit": EncoderType("polyseme.encoders.ulmfit:Ulmfit", _LANGUAGE_MODEL),
    "flair": EncoderType("polyseme.encoders.flair:Flair", ("model.safetensors", "characters.json")),
    "bert": EncoderType("polyseme.encoders.bert:Bert", _LIBRARY),
    "gpt": EncoderType("polyseme.encoders.gpt:Gpt", _LIBRARY),
}
"""By the name in `config.json`."""


def encoder_class(kind: str) -> type[Any]:
    """Return the class of a kind, a subclass of `Encoder`.

    >>> encoder_class("elmo").__name__
    'Elmo'
    """
    if kind not in ENCODERS:
        raise UsageError(f"unknown encoder {kind!r}{nearest(kind, ENCODERS)}")
    found: type[Any] = import_object(ENCODERS[kind].path)
    return found
