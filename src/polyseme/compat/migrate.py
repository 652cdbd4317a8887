"""`polyseme migrate script.py`: change the imports of old ELMo libraries to those of `polyseme.compat`, and nothing else.

Statements are found by Python's own parser and replaced where they stand, so the rest of a file stays as it is to the byte.
What an import line cannot do (sessions of TensorFlow, names without a replacement) is listed with its line. Notebooks are
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
from polyseme.compat.old_names import ADVICE, HUB, MODULES, SESSIONS, SHARED, WHOLE
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
        if not self.diff:
            return "\n".join([f"{self.path}: nothing to change", *self.notes])
        done = f"{self.path} is changed" if self.written else "nothing is written yet: --write changes the file"
        return "\n".join([self.diff, *self.notes, done])


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
    source = ScriptFile.read(path)
    whole, notes, changed = source.text, list[str](), list[str]()
    for cell, first in source.numbered():
        tree = source.parse(cell, first)
        changed.append(_replaced(cell, list(_changes(tree, whole))))
        notes += _notes(tree, whole, first)
    after = source.with_cells(changed)
    diff = "\n".join(
        difflib.unified_diff(whole.splitlines(), after.text.splitlines(), f"{path} (before)", f"{path} (after)", lineterm="")
    )
    if write and diff:
        after.write()
    return Migration(path, diff, notes, bool(write and diff))


def _changes(tree: ast.Module, whole: str) -> Iterator[tuple[ast.stmt | ast.expr, list[str]]]:
    """Nodes and the statements (or the expression) that replace them."""
    plain: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            target, names = MODULES.get(node.module or "", ("", frozenset()))
            ours = [alias for alias in node.names if alias.name in names]
            parts = [alias for alias in node.names if alias not in ours and _is_replaced(f"{node.module}.{alias.name}")]
            rest = [alias for alias in node.names if alias not in ours and alias not in parts]
            new = [ast.unparse(ast.ImportFrom(node.module, rest, 0))] if rest else []
            new += [ast.unparse(ast.ImportFrom(f"polyseme.compat.{target}", ours, 0))] if ours else []
            for part in parts:  # from allennlp.modules import elmo
                target = MODULES[f"{node.module}.{part.name}"][0]
                new.append(f"from polyseme.compat import {target} as {part.asname or part.name}")
            if ours or parts:
                yield node, new
        elif isinstance(node, ast.Import):
            new = [_import(alias, whole) for alias in node.names]
            plain |= {alias.name for alias, each in zip(node.names, new, strict=True) if each and not alias.asname}
            if any(new):
                old = [f"import {ast.unparse(alias)}" for alias in node.names]
                yield node, [made or before for made, before in zip(new, old, strict=True)]
    for node in ast.walk(tree):  # allennlp.commands.elmo.ElmoEmbedder, after `import allennlp.commands.elmo`
        if isinstance(node, ast.Attribute) and "." in (name := _dotted(node)) and name in plain:
            yield node, [f"polyseme.compat.{MODULES[name][0]}"]


def _import(alias: ast.alias, whole: str) -> str:
    """The statement for one name of `import a, b as c`; empty: it stays."""
    if alias.name == HUB and _only_elmo(whole):
        return f"from polyseme.compat import {WHOLE[HUB]} as {alias.asname or HUB}"
    if alias.name in WHOLE and alias.name != HUB:
        return f"from polyseme.compat import {WHOLE[alias.name]}" + (f" as {alias.asname}" if alias.asname else "")
    if "." in alias.name and _is_replaced(alias.name):
        return f"import polyseme.compat.{MODULES[alias.name][0]}" + (f" as {alias.asname}" if alias.asname else "")
    return ""


def _is_replaced(module: str) -> bool:
    """Whether a module has a replacement as a whole."""
    return module in MODULES and module not in SHARED


def _only_elmo(whole: str) -> bool:
    """Whether the modules of TensorFlow Hub that a script names are all ELMos."""
    named = re.findall(r"tfhub\.dev/[\w./-]+", whole)
    return bool(re.search("elmo", whole, re.I)) and all("elmo" in each.lower() for each in named)


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def _missing(module: str, names: list[str]) -> Iterator[str]:
    """What an import names that has no replacement."""
    for name in (module, *names):
        if name in ADVICE:
            yield f"{name} has no replacement: {ADVICE[name]}"
    if _is_replaced(module):
        known = MODULES[module][1]
        rest = [name for name in names if name not in known and not _is_replaced(f"{module}.{name}")]
        if rest:
            yield f"{', '.join(rest)} of {module} has no replacement"


def _notes(tree: ast.Module, whole: str, first: int) -> Iterator[str]:
    """What import lines cannot change."""
    graph = re.search(rf"\b(?:bilm|{HUB}|polyseme\.compat)\b", whole) is not None
    for node in sorted((each for each in ast.walk(tree) if hasattr(each, "lineno")), key=lambda each: each.lineno):
        line = f"line {first + node.lineno}"
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (f"{line}: {note}" for note in _missing(node.module or "", [alias.name for alias in node.names]))
        elif isinstance(node, ast.Import) and any(alias.name == HUB for alias in node.names) and not _only_elmo(whole):
            yield f"{line}: {HUB} stays, because the script loads other modules too: use polyseme.compat.tfhub for its ELMo"
        elif graph and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = _dotted(node.func)
            if node.func.attr in SESSIONS or re.search(r"\bsess(?:ion)?\.run$", name):
                advice = SESSIONS.get(node.func.attr, "there is no session: call the model with the data itself")
                yield f"{line}: {name}: {advice}"


def _replaced(code: str, changes: list[tuple[ast.stmt | ast.expr, list[str]]]) -> str:
    """Replace nodes, from the last to the first; places are counted in bytes of UTF-8."""
    lines = [line.encode("utf-8") for line in code.split("\n")]
    for node, new in sorted(changes, key=lambda each: (each[0].lineno, each[0].col_offset), reverse=True):
        begin, end = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        before, behind = lines[begin][: node.col_offset], lines[end][node.end_col_offset :]
        between = "; " if before.strip() else "\n" + before.decode("utf-8")
        lines[begin : end + 1] = [before + between.join(new).encode("utf-8") + behind]
    return b"\n".join(lines).decode("utf-8")
