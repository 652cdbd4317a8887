"""The type stub is what `make stub` writes, and a user's program calls every public function."""

from __future__ import annotations

import re
from pathlib import Path

import polyseme
from scripts.write_stub import STUB, stub


def test_the_stub_is_up_to_date() -> None:
    assert STUB.read_text(encoding="utf-8") == stub(), "run `make stub`"


def test_the_typed_program_calls_every_public_name() -> None:
    text = (Path(__file__).parent / "typing" / "user.py").read_text(encoding="utf-8")
    assert set(polyseme.__all__) <= set(re.findall(r"polyseme\.(\w+)", text))
