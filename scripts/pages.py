"""Run the code of documentation pages, compare what it prints with what they show, and write it anew.

A block marked `output` after a block of `python` or `bash` is what that block prints. Numbers may differ by a hundredth, since
processors round differently. After a model or a message has changed: `python -m scripts.pages README.md docs/en/index.md`.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

WIDTH = 100
"""Columns of the terminal that a page shows."""
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```\n(?:\n?```output\n(.*?)^```\n)?", re.S | re.M)
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?![\w])")
SHELL = re.compile(r"[|><$;&`]")


@dataclasses.dataclass(frozen=True)
class Block:
    """A block of code, and the output that the page shows for it; None: the page shows none."""

    language: str
    code: str
    line: int
    output: str | None


def blocks(text: str) -> list[Block]:
    """
    >>> blocks("```python\\nprint(1)\\n```\\n\\n```output\\n1\\n```\\n")
    [Block(language='python', code='print(1)\\n', line=2, output='1\\n')]
    """
    return [Block(each[1], each[2], text.count("\n", 0, each.start(2)) + 1, each[3]) for each in BLOCK.finditer(text)]


def differences(shown: str, printed: str) -> str | None:
    """What differs between two outputs, beyond the rounding of numbers; None: nothing.

    >>> differences("cosine 0.501\\n", "cosine  0.502\\n")
    >>> differences("bank 3", "bank 4")
    "shown 'bank 3', printed 'bank 4'"
    """
    left, right = ([" ".join(line.split()) for line in text.strip().splitlines()] for text in (shown, printed))
    for first, second in zip(left, right, strict=False):
        same_words = NUMBER.sub("#", first) == NUMBER.sub("#", second)
        numbers = zip(NUMBER.findall(first), NUMBER.findall(second), strict=False)
        if not same_words or not all(_close(a, b) for a, b in numbers):
            return f"shown {first!r}, printed {second!r}"
    return None if len(left) == len(right) else f"{len(left)} lines shown, {len(right)} printed"


def _close(first: str, second: str) -> bool:
    a, b = (float(each.replace(",", "")) for each in (first, second))
    whole = "." not in first and "." not in second
    return a == b if whole else math.isclose(a, b, rel_tol=0.01, abs_tol=0.011)


def run(block: Block, where: str, names: dict[str, Any]) -> str:
    """What a block prints. Python blocks of a page share their names, as in one session."""
    if block.language == "python":
        code = compile("\n" * (block.line - 1) + block.code, where, "exec", dont_inherit=True)
        columns = {"COLUMNS": str(WIDTH)}  # whatever the terminal has, or a library has left in the environment
        with contextlib.redirect_stdout(io.StringIO()) as printed, mock.patch.dict(os.environ, columns):
            exec(code, names)
        return printed.getvalue()
    lines = [line for line in block.code.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")]
    return "".join(run_command(line, f"{where}:{block.line}") for line in lines)


def run_command(line: str, where: str) -> str:
    """The standard output of a command; polyseme runs in this process, since starting PyTorch takes long."""
    words = shlex.split(line)
    if words[0] != "polyseme" or SHELL.search(re.sub(r'"[^"$]*"', "", line)):
        done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
        code, printed, errors = done.returncode, done.stdout, done.stderr
    else:
        from polyseme.__main__ import main as polyseme

        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            code = polyseme(words[1:])
        printed, errors = out.getvalue(), err.getvalue()
    if code != 0:
        raise RuntimeError(f"{where}: {line}\n{errors}")
    return printed


def rewrite(page: Path, prepare: Callable[[], None]) -> bool:
    """Write what the blocks of a page print now; whether something has changed."""
    text = page.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "__main__"}
    prepare()
    printed = [run(each, str(page), names) for each in blocks(text)]
    outputs = iter(printed)

    def fresh(found: re.Match[str]) -> str:
        output = next(outputs)
        return found[0] if found[3] is None else found[0].replace(f"```output\n{found[3]}", f"```output\n{output.rstrip()}\n")

    new = BLOCK.sub(fresh, text)
    page.write_text(new, encoding="utf-8")
    return new != text


def main() -> None:
    from tests.page_files import make_files

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path)
    pages = [page.resolve() for page in parser.parse_args().pages]
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for page in pages:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            changed = rewrite(page, partial(make_files, Path(folder), page))
        sys.stdout.write(f"{page.name}: {'changed' if changed else 'as it was'}\n")


if __name__ == "__main__":
    main()
