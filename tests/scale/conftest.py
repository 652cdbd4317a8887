"""A tiny model on disk, and a text with all that lines can be."""

from pathlib import Path

import pytest

from tests.cli.running import tiny


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny().save_pretrained(tmp_path_factory.mktemp("models") / "tiny"))


LINES = ["The bank of the river.", "", "It’s “money” in a bank.", "  ", "河岸 naïve", "a\u2028b c", "the end"] * 30


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES), encoding="utf-8")
    return path
