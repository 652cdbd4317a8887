"""Sizes of a model's parts that are chosen freely, where a published size does not fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyseme.base.config import Config
from polyseme.encoders.elmo_config import ElmoConfig


@dataclass(frozen=True, kw_only=True)
class ArchitectureOverrides(Config):
    """What differs from the named size; None: as there."""

    cell_size: int | None = None
    """Size of an LSTM's cell."""
    projection_size: int | None = None
    """Size of a layer's output in one direction, and of a word's own vector."""
    layers: int | None = None
    """Layers of LSTMs or of Transformers in each direction."""
    filters: tuple[tuple[int, int], ...] | None = None
    """Pairs of (width in characters, number of filters)."""
    highway_layers: int | None = None
    """Highway layers after the filters."""
    character_dim: int | None = None
    """Size of a character's vector."""
    max_characters: int | None = None
    """Characters (bytes) of a word that are read, begin and end marks counted."""

    def apply(self, base: ElmoConfig) -> ElmoConfig:
        """A size with these parts in it.

        >>> from polyseme.encoders.elmo_config import SIZES
        >>> ArchitectureOverrides(cell_size=512, layers=3).apply(SIZES["small"]).lstm.cell_size
        512
        """
        lstm = base.lstm.replace(**_given(cell_size=self.cell_size, projection_size=self.projection_size, layers=self.layers))
        characters = base.characters
        if characters is not None:
            changes = {"filters": self.filters, "highway_layers": self.highway_layers, "dim": self.character_dim}
            characters = characters.replace(**_given(**changes, max_length=self.max_characters))
        transformer = base.transformer and base.transformer.replace(**_given(layers=self.layers))
        dim = self.projection_size or base.dim
        return base.replace(lstm=lstm, characters=characters, transformer=transformer, dim=dim)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
