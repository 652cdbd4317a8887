"""The settings that come beside foreign weights: bilm-tf's `options.json` and ELMoForManyLangs' architecture.

They are read more leniently than our own configs: real files have extra keys, which are ignored with a warning. A missing key
or a wrong type is an error, and all errors are reported at once.
"""

from __future__ import annotations

import logging
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from polyseme.base.config import Config, ConfigError, config_errors_of
from polyseme.base.errors import FormatError

log = logging.getLogger(__name__)
Kind = TypeVar("Kind", bound=Config)
Filters = tuple[tuple[int, int], ...]

_TRAINING = frozenset(
    {"bidirectional", "dropout", "all_clip_norm_val", "n_epochs", "n_train_tokens", "batch_size", "n_tokens_vocab"}
    | {"unroll_steps", "n_negative_samples_batch", "learning_rate", "sample_softmax", "share_embedding_softmax"}
)
"""Keys of options.json that only training uses."""


@dataclass(frozen=True, kw_only=True)
class LstmOptions(Config):
    """`lstm` of options.json; a clip that is absent, null or 0 is off."""

    dim: int
    projection_dim: int
    n_layers: int = 1
    cell_clip: float | None = None
    proj_clip: float | None = None
    use_skip_connections: bool | None = None


@dataclass(frozen=True, kw_only=True)
class EmbeddingOptions(Config):
    """`char_cnn.embedding` of options.json."""

    dim: int


@dataclass(frozen=True, kw_only=True)
class CharCnnOptions(Config):
    """`char_cnn` of options.json."""

    activation: Literal["relu", "tanh"]
    embedding: EmbeddingOptions
    filters: Filters
    n_highway: int | None = None
    n_characters: int = 262
    """261 as bilm-tf trains, 262 with the row for absent words; the file is the same."""
    max_characters_per_token: int = 50

    def __post_init__(self) -> None:
        if self.n_characters not in (261, 262):
            raise ConfigError(f"n_characters is {self.n_characters}; allowed: 261 or 262")


@dataclass(frozen=True, kw_only=True)
class BilmOptions(Config):
    """options.json; without `char_cnn` the model has word embeddings."""

    lstm: LstmOptions
    char_cnn: CharCnnOptions | None = None


@dataclass(frozen=True, kw_only=True)
class ManyLangsEncoder(Config):
    """`encoder` of an ELMoForManyLangs architecture."""

    name: str = "elmo"
    dim: int
    projection_dim: int
    n_layers: int
    cell_clip: float | None = None
    proj_clip: float | None = None


@dataclass(frozen=True, kw_only=True)
class ManyLangsTokens(Config):
    """`token_embedder` of an ELMoForManyLangs architecture; an input of size 0 is absent."""

    name: str = "cnn"
    activation: Literal["relu", "tanh"] = "relu"
    filters: Filters = ()
    n_highway: int | None = None
    word_dim: int = 0
    char_dim: int = 0
    max_characters_per_token: int = 50


@dataclass(frozen=True, kw_only=True)
class ManyLangsOptions(Config):
    """The architecture file of an ELMoForManyLangs model."""

    encoder: ManyLangsEncoder
    token_embedder: ManyLangsTokens


def bilm_options(values: Mapping[str, Any], where: str | Path) -> BilmOptions:
    """Parse and check options.json."""
    if values.get("bidirectional") is False:
        raise FormatError(where, "describes a unidirectional model (bidirectional is false); an ELMo is bidirectional")
    return parse(BilmOptions, values, where, also_known=_TRAINING)


def parse(kind: type[Kind], values: Mapping[str, Any], where: str | Path, also_known: frozenset[str]) -> Kind:
    """Build a config from parsed JSON; unknown keys are ignored with a warning."""
    unknown: list[str] = []
    kept = _known(kind, {name: value for name, value in values.items() if name not in also_known}, "", unknown)
    if unknown:
        log.warning("%s: ignored unknown keys: %s", Path(where).name, ", ".join(unknown))
    with config_errors_of(where):
        return kind.from_dict(kept, where="the file")


def _known(kind: type[Config], values: Mapping[str, Any], prefix: str, unknown: list[str]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    kept = {}
    for name, value in values.items():
        if name not in hints:
            unknown.append(f"{prefix}{name}")
            continue
        inner = [part for part in (hints[name], *typing.get_args(hints[name])) if _is_config(part)]
        kept[name] = _known(inner[0], value, f"{prefix}{name}.", unknown) if inner and isinstance(value, Mapping) else value
    return kept


def _is_config(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Config)
