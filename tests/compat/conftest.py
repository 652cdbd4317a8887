from __future__ import annotations

import pytest

from tests.compat.small_models import SmallModel, bilm_model, manylangs_model


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallModel:
    """A character model in bilm-tf's files, with skip connections and clips that fire."""
    return bilm_model(tmp_path_factory.mktemp("bilm"))


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> SmallModel:
    """An ELMoForManyLangs folder: words and characters."""
    return manylangs_model(tmp_path_factory.mktemp("manylangs"))
