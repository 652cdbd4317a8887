"""Imports go one way: a folder imports only from floors below its own, and no two modules import each other.

Imports inside functions count too; those for type checkers only (`if TYPE_CHECKING`) do not.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

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
FILES = sorted(SOURCE.rglob("*.py"))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node, but those for type checkers; expressions, most of a file, have none inside."""
    typed = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    for child in node.orelse if typed else ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child
            yield from statements(child)


@functools.cache
def imported(file: Path) -> set[str]:
    """The names that a file imports from polyseme: modules, and what `from` takes from them."""
    names = set()
    for node in statements(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno} imports relatively"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.startswith("polyseme.")}


def module_name(file: Path) -> str:
    parts = ("polyseme", *file.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other, directly or through others (Tarjan's components of more than one)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = []
            while not component or component[-1] != node:
                component.append(stack.pop())
            if len(component) > 1:
                found.append(sorted(component))

    for node in graph:
        if node not in index:
            visit(node)
    return sorted(found)


def test_imports_go_down() -> None:
    upward = []
    for file in SOURCE.glob("*/**/*.py"):
        room = file.relative_to(SOURCE).parts[0]
        allowed = {other for other in FLOOR if FLOOR[other] < FLOOR[room]} | {room}
        if room == "nn":
            allowed.add("base")  # errors and configs
        rooms = {name.split(".")[1] for name in imported(file)} & set(FLOOR)
        upward += [f"{file.relative_to(SOURCE)} imports {other}" for other in sorted(rooms - allowed)]
    assert upward == []


def test_no_two_modules_import_each_other() -> None:
    modules = {module_name(file): file for file in FILES}
    graph = {
        name: {target for each in imported(file) for target in (each, each.rpartition(".")[0]) if target in modules} - {name}
        for name, file in modules.items()
    }
    graph = {name: targets - {"polyseme"} for name, targets in graph.items()}  # the package itself holds the version
    assert circles(graph) == []


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_every_room_has_a_floor() -> None:
    rooms = {folder.name for folder in SOURCE.iterdir() if folder.is_dir() and any(folder.glob("*.py"))}
    assert rooms <= set(FLOOR)
