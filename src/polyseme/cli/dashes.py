"""Options with dashes that are no hyphens: `——model`, as Chinese input methods type it, and `–model`, as word processors do.

To the parser such an argument is a text like any other, which `embed` would embed together with the value behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from polyseme.base.errors import UsageError

_DASHES = re.compile(r"(?P<dashes>[-‐‑‒–—―−﹣－]+)(?P<name>[A-Za-z][A-Za-z0-9-]*)(?:=.*)?", re.DOTALL)


def check_dashes(arguments: Sequence[str], known: Iterable[str]) -> None:
    """Raise an error for an argument that is one of the known options but for its dashes; after `--` all are texts."""
    options = set(known)
    for argument in arguments:
        if argument == "--":
            return
        if (meant := option_meant(argument, options)) is not None:
            raise UsageError(
                f"{argument} begins with a dash that is no hyphen: write {meant} (in an input method, switch to English). "
                "If it is a text, put -- before the texts"
            )


def has_other_dashes(arguments: Iterable[str]) -> bool:
    """Whether an argument may be an option with other dashes."""
    return any((match := _DASHES.fullmatch(each)) and not match["dashes"].isascii() for each in arguments)


def option_meant(argument: str, known: Iterable[str]) -> str | None:
    """Return the option that is meant by an argument with other dashes.

    >>> option_meant("——model", ["--model", "-m"]), option_meant("－m", ["--model", "-m"]), option_meant("——先生", ["--model"])
    ('--model', '-m', None)
    """
    match = _DASHES.fullmatch(argument)
    if match is None or match["dashes"].isascii():
        return None
    name = match["name"]
    meant = f"--{name}" if len(name) > 1 else f"-{name}"
    return meant if meant in set(known) else None
