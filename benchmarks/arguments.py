"""Numbers on the command lines of benchmarks: one that is not allowed is refused with a sentence that says which are."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def at_least(lowest: int) -> Callable[[str], int]:
    """Return a parser of whole numbers for `add_argument(type=...)`.

    >>> at_least(0)("12")
    12
    """

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = lowest - 1
        if number < lowest:
            raise argparse.ArgumentTypeError(f"got {text!r}; allowed: whole numbers of {lowest} or more")
        return number

    return parse
