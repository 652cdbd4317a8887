"""The command line, run inside this process."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass

from polyseme.__main__ import main


@dataclass(frozen=True)
class Called:
    """How a call ended, and what it printed on both streams."""

    exit_code: int
    output: str


def polyseme_call(*words: str) -> Called:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = main(list(words))
    return Called(code, printed.getvalue())
