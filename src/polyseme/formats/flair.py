"""Flair's character language models: `news-forward-0.4.1.pt` and the like, a file for each direction.

A file is a pickled dictionary: `state_dict`, sizes, and a `flair.data.Dictionary` of characters, of which `restricted_pickle`
reads plain lists. Two files of equal sizes and characters in a folder, one of each direction, are one encoder. Models of GRUs,
and Flair's taggers, which are other files, are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from polyseme.base.config import config_errors_of
from polyseme.base.errors import FormatError
from polyseme.encoders.config import FlairConfig
from polyseme.encoders.flair import Flair
from polyseme.formats.pickles import is_torch_file
from polyseme.formats.restricted_pickle import Record, names_class, read_objects
from polyseme.text.words import WHITESPACE

_DICTIONARY = ("flair.data", "Dictionary")
_NAMES = {"encoder.weight": "table.weight", "proj.weight": "projection.weight", "proj.bias": "projection.bias"}
_SIZES = {"embedding_size": "character_dim", "hidden_size": "hidden_size", "nlayers": "lstm_layers", "nout": "projection_size"}


def is_model(path: Path) -> bool:
    """Whether a file is one of Flair's language models, by its content."""
    return is_torch_file(path) and names_class(path, *_DICTIONARY)


def read(paths: Sequence[Path]) -> Flair:
    """Read one direction, or both from two files."""
    config, characters, weights = _read_direction(paths[0])
    for path in paths[1:]:
        other, others, more = _read_direction(path)
        if set(other.directions) & set(config.directions):
            raise FormatError(path, f"reads {other.directions[0]}, as another file does: give at most one of each direction")
        if other.replace(directions=config.directions) != config or others != characters:
            raise FormatError(path, f"has other sizes or characters than {paths[0].name}: load them apart")
        config, weights = config.replace(directions=("forward", "backward")), weights | more
    return Flair.from_weights(config, weights, characters=characters, where=paths[0], splitter=WHITESPACE)


def _read_direction(path: Path) -> tuple[FlairConfig, list[str], dict[str, Tensor]]:
    state = read_objects(path, [_DICTIONARY])
    needed = {"state_dict", "dictionary", "is_forward_lm", *_SIZES}
    if not isinstance(state, dict) or not needed <= set(state):
        missing = ", ".join(sorted(needed - set(state))) if isinstance(state, dict) else "all of it"
        raise FormatError(path, f"is no language model of Flair: it lacks {missing}")
    kind = str(state.get("recurrent_type", "LSTM"))
    if kind.upper() != "LSTM":
        raise FormatError(path, f"is a language model of {kind}s; polyseme reads those of LSTMs")
    characters, direction = _characters(state["dictionary"], path), "forward" if state["is_forward_lm"] else "backward"
    with config_errors_of(path):
        config = FlairConfig.from_dict(
            {
                "symbols": len(characters),
                "directions": [direction],
                "document_delimiter": state.get("document_delimiter", "\n"),
                **{ours: state[theirs] for theirs, ours in _SIZES.items()},
            },
            where="its sizes",
        )
    return config, characters, _weights(state["state_dict"], direction, path)


def _characters(dictionary: Any, path: Path) -> list[str]:
    items = getattr(dictionary, "idx2item", None) if isinstance(dictionary, Record) else None
    if not isinstance(items, list) or not items or not all(isinstance(item, bytes | str) for item in items):
        raise FormatError(path, "has no list of characters")
    try:
        return [item.decode("utf-8") if isinstance(item, bytes) else item for item in items]
    except UnicodeDecodeError as error:
        raise FormatError(path, f"has a character that is not UTF-8 ({error.reason})") from error


def _weights(state: Any, direction: str, path: Path) -> dict[str, Tensor]:
    """The tensors of a direction by our names; the output layer is left out."""
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise FormatError(path, "has no dictionary of tensors")
    kept = {str(name): value.float() for name, value in state.items() if not str(name).startswith("decoder.")}
    names = {name: _NAMES.get(name, f"lstm.{name.removeprefix('rnn.')}") for name in kept}
    return {f"models.{direction}_lm.{names[name]}": value for name, value in kept.items()}
