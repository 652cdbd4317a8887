"""A Python script or notebook whose code is to be changed: its cells, its syntax, and the way back into the file."""

from __future__ import annotations

import ast
import copy
import io
import json
import re
import shutil
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from polyseme.base.errors import FormatError
from polyseme.base.files import atomic, read_bytes


@dataclass(frozen=True)
class ScriptFile:
    """The code of a file: one cell, or those of a notebook."""

    path: Path
    cells: list[str]
    notebook: dict[str, Any] | None = None
    encoding: str = "utf-8"

    @classmethod
    def read(cls, path: Path) -> ScriptFile:
        try:
            content = read_bytes(path)
            if path.suffix != ".ipynb":
                encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)  # that of its line `coding: gbk`, if any
                return cls(path, [content.decode(encoding)], encoding=encoding)
            notebook = json.loads(content.decode("utf-8"))
            return cls(path, ["".join(cell["source"]) for cell in _code_cells(notebook)], notebook)
        except (ValueError, LookupError, TypeError, SyntaxError) as error:
            how = "" if path.suffix == ".ipynb" else ", or in the encoding that its line `# -*- coding: NAME -*-` names"
            raise FormatError(path, f"is not a script or notebook in UTF-8{how} ({error})") from error

    @property
    def text(self) -> str:
        """All code, one cell after another."""
        return "\n".join(self.cells)

    def numbered(self) -> Iterator[tuple[str, int]]:
        """The cells, and the number of lines before each."""
        first = 0
        for cell in self.cells:
            yield cell, first
            first += cell.count("\n") + 1

    def parse(self, cell: str, first: int) -> ast.Module:
        """The syntax tree of a cell; lines for the shell or IPython and cells in other languages are empty statements."""
        if self.notebook is not None:
            other = re.match(r"\s*%%(?!time|capture)", cell)
            cell = "" if other else re.sub(r"(?m)^([ \t]*)[%!].*$", r"\1pass", cell)
        try:
            return ast.parse(cell)
        except (SyntaxError, ValueError) as error:
            where = f"{self.path}:{first + (getattr(error, 'lineno', None) or 1)}"
            if self.path.suffix not in (".py", ".ipynb"):
                what = f"is not Python 3 ({error}); give a Python script or notebook (.py, .ipynb)"
                raise FormatError(self.path, what) from error
            raise FormatError(where, f"is not Python 3 ({error}): correct it first, for instance with 2to3") from error

    def with_cells(self, cells: list[str]) -> ScriptFile:
        """The same file with other code."""
        if self.notebook is None:
            return replace(self, cells=cells)
        notebook = copy.deepcopy(self.notebook)
        for cell, text in zip(_code_cells(notebook), cells, strict=True):
            cell["source"] = text.splitlines(keepends=True)
        return ScriptFile(self.path, cells, notebook)

    def write(self) -> None:
        """Replace the file; its permissions stay."""
        text = self.text if self.notebook is None else json.dumps(self.notebook, indent=1, ensure_ascii=False) + "\n"
        with atomic(self.path) as part:
            part.write_bytes(text.encode(self.encoding))
            shutil.copymode(self.path, part)


def _code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
