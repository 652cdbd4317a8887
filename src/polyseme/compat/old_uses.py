"""Uses of old ELMo libraries by their dotted names: which of them have a replacement, and which are left."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from polyseme.compat.old_names import ADVICE, HUB, MODULES, PACKAGES, ROOTS, SHARED, WHOLE


@dataclass
class OldUses:
    """The old packages that a script imports under some name, and where it uses the names in full."""

    bound: dict[str, str] = field(default_factory=dict)
    """Names of the script that are an old package or module: `al` for `import allennlp as al`."""
    whole: set[str] = field(default_factory=set)
    """Modules that are imported by their dotted name and replaced as a whole."""
    found: set[str] = field(default_factory=set)
    """Names of the script of which at least one use is replaced."""
    kept: set[str] = field(default_factory=set)
    """Names of the script of which at least one use stays."""

    @classmethod
    def of(cls, trees: Iterable[ast.Module]) -> OldUses:
        """Find the uses in a script, or in all cells of a notebook."""
        uses, trees = cls(), list(trees)
        nodes = [node for tree in trees for node in ast.walk(tree)]
        for alias in (alias for node in nodes if isinstance(node, ast.Import) for alias in node.names):
            root, replaced = alias.name.partition(".")[0], "." in alias.name and is_replaced(alias.name)
            if root in ROOTS and replaced and not alias.asname:
                uses.whole.add(alias.name)
            if root in ROOTS:
                uses.bound[alias.asname or root] = alias.name if alias.asname else root
        absent = {target for node in nodes if isinstance(node, ast.Assign) and _is_none(node.value) for target in node.targets}
        for node in nodes:  # bilm = BidirectionalLanguageModel(...), but not `except ImportError: bilm = None`
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node not in absent:
                uses.bound.pop(node.id, None)
        for tree in trees:
            for node, new in uses.uses(tree):
                (uses.found if new else uses.kept).add(dotted(node).partition(".")[0])
        return uses

    def uses(self, tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
        """Yield the uses of bound names, and what replaces each; empty: nothing does."""
        stack: list[ast.AST] = [tree]
        while stack:
            node = stack.pop()
            if isinstance(node, ast.Attribute | ast.Name) and (local := dotted(node).partition(".")[0]) in self.bound:
                if isinstance(node, ast.Attribute) or (isinstance(node.ctx, ast.Load) and not self._is_ours(local)):
                    yield self._replaced(node, local)
            else:
                stack += ast.iter_child_nodes(node)

    def _replaced(self, node: ast.expr, local: str) -> tuple[ast.expr, str]:
        """The longest part of a dotted name that has a replacement, and that; or the name as it is."""
        part: ast.expr = node
        while isinstance(part, ast.Attribute):
            module = self.full_name(part.value, local)
            target, names = MODULES.get(module, ("", frozenset()))
            if part.attr in names:
                return part, f"{local if self._is_ours(local) else f'polyseme.compat.{target}'}.{part.attr}"
            if (name := f"{module}.{part.attr}") in self.whole and part is node:
                return part, f"polyseme.compat.{MODULES[name][0]}"
            part = part.value
        return node, ""

    def _is_ours(self, local: str) -> bool:
        """Whether a name of the script is a module of `polyseme.compat` after the change."""
        return self.bound[local] in WHOLE or is_replaced(self.bound[local])

    def full_name(self, node: ast.expr, local: str) -> str:
        """A dotted name with the module in place of the name under which it is imported."""
        return self.bound[local] + dotted(node)[len(local) :]

    def notes(self, tree: ast.Module) -> Iterator[tuple[int, str]]:
        """Yield the lines of uses that stay, and what to do there."""
        for node, new in self.uses(tree):
            if not new:
                name = self.full_name(node, dotted(node).partition(".")[0])
                if not name.startswith("flair") or "elmo" in name.lower():  # Flair itself goes on
                    yield node.lineno, no_replacement(name, [".".join(name.split(".")[:2]), *name.split(".")])


def import_notes(node: ast.Import, uses: OldUses, only_elmo: bool) -> Iterator[str]:
    """What is left to do for a statement such as `import allennlp.nn.util`."""
    for alias in node.names:
        root, local = alias.name.partition(".")[0], alias.asname or alias.name.partition(".")[0]
        if alias.name == HUB and not only_elmo:
            yield f"{HUB} stays, because the script loads other modules too: use polyseme.compat.tfhub for its ELMo"
        if root not in PACKAGES or alias.name in WHOLE or ("." in alias.name and is_replaced(alias.name)):
            continue
        if local in uses.kept:
            yield f"import {alias.name} stays for the uses that have no replacement: remove it with them"
        elif local in uses.bound and local not in uses.found:
            yield f"import {alias.name} has no replacement: nothing uses {local} here, so remove it"


def from_notes(node: ast.ImportFrom, *, elmo: bool) -> Iterator[str]:
    """What is left to do for a statement such as `from allennlp.nn.util import get_text_field_mask`.

    `elmo`: whether the script loads an ELMo of TensorFlow Hub.
    """
    module = node.module or ""
    if module == HUB and elmo:
        yield f"{HUB} stays: write `from polyseme.compat import tfhub`, which has load, Module and KerasLayer"
    if module.partition(".")[0] not in ROOTS:
        return
    if module in ADVICE:
        yield no_replacement(module, [module])
        return
    target, known = MODULES.get(module, ("", frozenset()))
    if target and node.names[0].name == "*":
        yield f"* of {module} does not say which names are used: import them by name from polyseme.compat.{target}"
        return
    rest = [alias.name for alias in node.names if alias.name not in known and not is_replaced(f"{module}.{alias.name}")]
    if module.startswith("flair"):  # Flair itself goes on: only its ELMos are gone
        rest = [name for name in rest if "elmo" in name.lower()]
    for name in (each for each in rest if each in ADVICE):
        yield no_replacement(name, [name])
    others = [name for name in rest if name not in ADVICE]
    if others:
        yield no_replacement(f"{', '.join(others)} of {module}", [])


def dynamic_notes(node: ast.Call) -> Iterator[str]:
    """What is left to do for `importlib.import_module("allennlp.modules.elmo")`."""
    name, given = dotted(node.func).rpartition(".")[2], node.args[:1]
    if name in ("import_module", "__import__") and given and isinstance(given[0], ast.Constant):
        module = str(given[0].value)
        if module.partition(".")[0] in PACKAGES:
            target = MODULES.get(module, (WHOLE.get(module, ""),))[0]
            yield f"{module} is imported by name" + (f": use polyseme.compat.{target}" if target else " and has no replacement")


def no_replacement(what: str, names: Iterable[str]) -> str:
    """Say that something has no replacement, and what to do where that is known.

    >>> no_replacement("Vocabulary of allennlp.data", ["Vocabulary"])
    'Vocabulary of allennlp.data has no replacement'
    """
    advice = next((ADVICE[name] for name in names if name in ADVICE), "")
    return f"{what} has no replacement" + (f": {advice}" if advice else "")


def is_replaced(module: str) -> bool:
    """Whether a module has a replacement as a whole."""
    return module in MODULES and module not in SHARED


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def dotted(node: ast.expr) -> str:
    """The dotted name of an expression; `?` stands for what is no name."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"
