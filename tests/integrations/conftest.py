"""A tiny model in a folder, which all integrations open by its name."""

from pathlib import Path

import pytest

from polyseme.encoders.elmo import Elmo
from polyseme.text.words import get_splitter
from tests.encoders.small import elmo


@pytest.fixture(scope="session")
def model() -> Elmo:
    made = elmo(output=True)
    made.splitter = get_splitter("english")
    return made.eval()


@pytest.fixture(scope="session")
def folder(model: Elmo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model.save_pretrained(tmp_path_factory.mktemp("models") / "tiny")
