"""Sizes: the published ones have the published numbers of parameters, and every part can be chosen."""

from __future__ import annotations

import pytest

from polyseme.base.config import ConfigError
from polyseme.base.errors import UsageError
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import SIZES
from polyseme.nn.meta_init import meta_init
from polyseme.pretraining.elmo_config import ArchitectureOverrides, ElmoPretraining
from polyseme.pretraining.methods import configure_method


@pytest.mark.parametrize(("size", "millions"), [("small", 13.6), ("medium", 28.0), ("original", 93.6)])
def test_published_sizes(size: str, millions: float) -> None:
    with meta_init():  # numbers are not what is counted
        model = Elmo(SIZES[size])
    assert sum(weight.numel() for weight in model.parameters()) / 1e6 == pytest.approx(millions, abs=0.05)


def test_every_size_can_be_chosen() -> None:
    parts = ArchitectureOverrides(
        cell_size=20,
        projection_size=6,
        layers=3,
        filters=((1, 4), (3, 5)),
        highway_layers=0,
        character_dim=7,
        max_characters=11,
    )
    config = ElmoPretraining(size="small", overrides=parts)
    model = config.encoder_config(100)
    assert (model.dim, model.lstm.cell_size, model.lstm.projection_size, model.lstm.layers) == (6, 20, 6, 3)
    assert model.characters is not None
    assert (model.characters.filters, model.characters.highway_layers) == (((1, 4), (3, 5)), 0)
    assert (model.characters.dim, model.characters.max_length) == (7, 11)
    assert ElmoPretraining.from_dict(config.to_dict(), where="here") == config
    transformer = (
        ElmoPretraining(size="tiny", architecture="transformer", overrides=ArchitectureOverrides(layers=5))
        .encoder_config(100)
        .transformer
    )
    assert transformer is not None and transformer.layers == 5
    tied = ElmoPretraining(
        size="tiny", input="words", tied=True, overrides=ArchitectureOverrides(projection_size=8)
    ).encoder_config(100)
    assert tied.words is not None and tied.words.dim == 8


def test_what_cannot_be() -> None:
    with pytest.raises(ConfigError, match="max_characters is 3; the widest filter needs 7 or more"):
        ElmoPretraining(size="small", overrides=ArchitectureOverrides(max_characters=3))
    with pytest.raises(UsageError, match=r"filters.*2"):
        configure_method("elmo", {"filters": "3"})
