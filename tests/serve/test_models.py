"""Which text is searched for which model."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyseme.serve.models import ServedModel, reads_script
from polyseme.text.words import get_splitter
from tests.encoders.small import elmo


@pytest.mark.parametrize(
    ("text", "readers"), [("We sat on the bank.\n小米。\n", {"english"}), ("小米发布了新手机。\nOK\n", {"chinese"})]
)
def test_a_text_is_searched_for_models_that_read_its_script(tmp_path: Path, text: str, readers: set[str]) -> None:
    path = tmp_path / "text.txt"
    path.write_text(text, encoding="utf-8")
    found = set()
    for name in ("english", "chinese"):
        encoder = elmo()
        encoder.splitter = get_splitter(name)
        if reads_script(ServedModel(name, encoder), [path]):
            found.add(name)
    assert found == readers
