"""What goes wrong, told to a person.

Every error that a user can cause is a `PolysemeError` whose text is one sentence: what was given, what is allowed,
what to do. The command line prints that sentence and nothing else; tracebacks are for bugs of ours.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class PolysemeError(Exception):
    """The base of all errors that a user can cause and mend; the command line exits with 1."""


class UsageError(PolysemeError):
    """The call itself is wrong (an unknown option, a bad combination); the command line exits with 2."""


class FormatError(PolysemeError):
    """A file is not what it should be.

    >>> str(FormatError("weights.hdf5", "holds no dataset 'char_embed'"))
    "weights.hdf5: holds no dataset 'char_embed'"
    """

    def __init__(self, path: str | Path, what: str) -> None:
        super().__init__(f"{path}: {what}")
        self.path = Path(path)


class MissingExtraError(PolysemeError):
    """An optional package is not installed; the text names the command that installs it."""

    def __init__(self, need: str, extra: str) -> None:
        super().__init__(f"{need}, which is not installed: pip install 'polyseme[{extra}]'")  # zsh wants the quotes


def nearest(name: object, known: Iterable[str]) -> str:
    """A hint to put behind an unknown name: ` (did you mean 'filters'?)`, or the list of what is known.

    A name of another type (None, a number) is near to nothing.

    >>> nearest("filtres", ["filters", "dim"])
    " (did you mean 'filters'?)"
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1) if isinstance(name, str) else []
    if close:
        return f" (did you mean {close[0]!r}?)"
    return f" (known: {', '.join(names)})" if names else ""
