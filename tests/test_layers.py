"""The house has one direction: a folder imports only from floors below its own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "polyseme"
FLOORS = [
    ["base", "nn"],
    ["text", "training", "metrics"],
    ["encoders"],
    ["formats", "pretraining", "tasks"],
    ["analysis"],
    ["studies", "scale"],
    ["api"],
    ["serve", "integrations", "compat"],
    ["cli"],
]
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


def imports(file: Path) -> set[str]:
    """The rooms of ours that a file imports from."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno} imports relatively"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("polyseme.")}
    return found


@pytest.mark.parametrize("file", sorted(SOURCE.glob("*/**/*.py")), ids=lambda file: str(file.relative_to(SOURCE)))
def test_imports_go_down(file: Path) -> None:
    room = file.relative_to(SOURCE).parts[0]
    allowed = {other for other in FLOOR if FLOOR[other] < FLOOR[room]} | {room}
    if room == "nn":
        allowed.add("base")  # errors and configs
    assert imports(file) & set(FLOOR) <= allowed


def test_every_room_has_a_floor() -> None:
    rooms = {folder.name for folder in SOURCE.iterdir() if folder.is_dir() and any(folder.glob("*.py"))}
    assert rooms <= set(FLOOR)
