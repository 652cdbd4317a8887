"""`polyseme migrate script.py`: change the imports of old ELMo libraries to those of `polyseme.compat`, and nothing else.

Statements are found by Python's own parser and replaced where they stand, so the rest of a file stays as it is to the byte.
What is left to do by hand is listed with its line: every use of an old library that has no replacement, and sessions of
TensorFlow. Notebooks are
read too.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from polyseme.api.arguments import FilePath
from polyseme.base.config import Setting
from polyseme.base.errors import UsageError
from polyseme.compat.old_names import HUB, MODULES, ROOTS, SESSIONS, WHOLE
from polyseme.compat.old_uses import OldUses, dotted, dynamic_notes, from_notes, import_notes, is_replaced
from polyseme.compat.script_file import ScriptFile

Script = Annotated[FilePath, Setting(help="Python file or notebook (.ipynb) that uses an old ELMo library.", metavar="SCRIPT")]
Write = Annotated[bool, Setting(help="Change the file; without it, the changes are only shown.")]


@dataclass(frozen=True)
class Migration:
    """What changes in a script."""

    path: Path
    diff: str
    """Empty: nothing changes."""
    notes: list[str]
    """What is left to do by hand, with line numbers."""
    written: bool

    def to_json(self) -> dict[str, Any]:
        return {"path": str(self.path), "diff": self.diff, "notes": self.notes, "written": self.written}

    def __str__(self) -> str:
        by_hand = ["left to do by hand:", *self.notes] if self.notes else []
        if not self.diff:
            return "\n".join([f"{self.path}: nothing to change{' that has a replacement' if self.notes else ''}", *by_hand])
        left = ", and runs when what is left to do is done" if self.notes else ""
        done = f"{self.path} is changed{left}" if self.written else "nothing is written yet: --write changes the file"
        return "\n".join([self.diff, *by_hand, done])


def migrate(script: Script, *, write: Write = False) -> Migration:
    """Change the imports of a script from an old ELMo library to polyseme, or show what would change.

    Knows AllenNLP, bilm-tf, ELMoForManyLangs, simple_elmo, TensorFlow Hub, Flair and bio_embeddings;
    see docs/en/how-to/migrate.md.

    >>> import polyseme                                     # doctest: +SKIP
    >>> print(polyseme.migrate("train.py"))                 # doctest: +SKIP
    """
    if not isinstance(script, str | Path):
        raise UsageError(f"script is {script!r}; expected the path of a Python script or notebook")
    path = Path(script).expanduser()
    if path.is_dir():
        raise UsageError(f"{script} is a folder; give a Python script or notebook (.py, .ipynb)")
    source = ScriptFile.read(path)
    whole, notes, changed = source.text, list[str](), list[str]()
    trees = [source.parse(cell, first) for cell, first in source.numbered()]
    uses = OldUses.of(trees)
    for (cell, first), tree in zip(source.numbered(), trees, strict=True):
        changed.append(_replaced(cell, list(_changes(tree, uses, whole))))
        notes += _notes(tree, uses, whole, first)
    after = source.with_cells(changed)
    diff = "\n".join(
        difflib.unified_diff(whole.splitlines(), after.text.splitlines(), f"{path} (before)", f"{path} (after)", lineterm="")
    )
    if write and diff:
        after.write()
    return Migration(path, diff, notes, bool(write and diff))


def _changes(tree: ast.Module, uses: OldUses, whole: str) -> Iterator[tuple[ast.stmt | ast.expr, list[str]]]:
    """Nodes and the statements (or the expression) that replace them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            target, names = MODULES.get(node.module or "", ("", frozenset()))
            ours = [alias for alias in node.names if alias.name in names]
            parts = [alias for alias in node.names if alias not in ours and is_replaced(f"{node.module}.{alias.name}")]
            rest = [alias for alias in node.names if alias not in ours and alias not in parts]
            new = [ast.unparse(ast.ImportFrom(node.module, rest, 0))] if rest else []
            new += [ast.unparse(ast.ImportFrom(f"polyseme.compat.{target}", ours, 0))] if ours else []
            for part in parts:  # from allennlp.modules import elmo
                target = MODULES[f"{node.module}.{part.name}"][0]
                new.append(f"from polyseme.compat import {target} as {part.asname or part.name}")
            if ours or parts:
                yield node, new
        elif isinstance(node, ast.Import):
            new = [_import(alias, uses, whole) for alias in node.names]
            if any(new):
                old = [f"import {ast.unparse(alias)}" for alias in node.names]
                yield node, [made or before for made, before in zip(new, old, strict=True)]
    for use, text in uses.uses(tree):  # allennlp.commands.elmo.ElmoEmbedder, after `import allennlp`
        if text:
            yield use, [text]


def _import(alias: ast.alias, uses: OldUses, whole: str) -> str:
    """The statement for one name of `import a, b as c`; empty: it stays."""
    if alias.name == HUB and _only_elmo(whole):
        return f"from polyseme.compat import {WHOLE[HUB]} as {alias.asname or HUB}"
    if alias.name in WHOLE and alias.name != HUB:
        return f"from polyseme.compat import {WHOLE[alias.name]}" + (f" as {alias.asname}" if alias.asname else "")
    if "." in alias.name and is_replaced(alias.name):
        return f"import polyseme.compat.{MODULES[alias.name][0]}" + (f" as {alias.asname}" if alias.asname else "")
    root = alias.name.partition(".")[0]
    local = alias.asname or root
    if root in ROOTS and local in uses.found:  # import allennlp, of which some uses have a replacement
        compat = f"import polyseme.compat.{_target(root)}"
        return f"{compat}; import {ast.unparse(alias)}" if local in uses.kept else compat
    return ""


def _target(package: str) -> str:
    """The module of `polyseme.compat` for a package."""
    return next(target for module, (target, _) in MODULES.items() if module.partition(".")[0] == package)


def _only_elmo(whole: str) -> bool:
    """Whether the modules of TensorFlow Hub that a script names are all ELMos."""
    named = re.findall(r"tfhub\.dev/[\w./-]+", whole)
    return bool(re.search("elmo", whole, re.I)) and all("elmo" in each.lower() for each in named)


def _notes(tree: ast.Module, uses: OldUses, whole: str, first: int) -> Iterator[str]:
    """What import lines cannot change, in the order of the lines."""
    graph = re.search(rf"\b(?:bilm|{HUB}|polyseme\.compat)\b", whole) is not None
    found = list(uses.notes(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            found += [(node.lineno, note) for note in from_notes(node, elmo=re.search("elmo", whole, re.I) is not None)]
        elif isinstance(node, ast.Import):
            found += [(node.lineno, note) for note in import_notes(node, uses, _only_elmo(whole))]
            if graph and any(alias.name.partition(".")[0] == "tensorflow" for alias in node.names):
                found.append((node.lineno, "import tensorflow: polyseme does not need it; remove it unless other code does"))
        elif isinstance(node, ast.Call):
            found += [(node.lineno, note) for note in [*dynamic_notes(node), *(_session_notes(node) if graph else ())]]
    return (f"line {first + line}: {note}" for line, note in sorted(found, key=lambda each: each[0]))


def _session_notes(node: ast.Call) -> Iterator[str]:
    """What to do with a call of TensorFlow 1 around an old model."""
    name = dotted(node.func)
    if isinstance(node.func, ast.Attribute) and (node.func.attr in SESSIONS or re.search(r"\bsess(?:ion)?\.run$", name)):
        yield f"{name}: {SESSIONS.get(node.func.attr, 'there is no session: call the model with the data itself')}"


def _replaced(code: str, changes: list[tuple[ast.stmt | ast.expr, list[str]]]) -> str:
    """Replace nodes, from the last to the first; places are counted in bytes of UTF-8."""
    lines = [line.encode("utf-8") for line in code.split("\n")]
    for node, new in sorted(changes, key=lambda each: (each[0].lineno, each[0].col_offset), reverse=True):
        begin, end = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        before, behind = lines[begin][: node.col_offset], lines[end][node.end_col_offset :]
        between = "; " if before.strip() else "\n" + before.decode("utf-8")
        lines[begin : end + 1] = [before + between.join(new).encode("utf-8") + behind]
    return b"\n".join(lines).decode("utf-8")
