"""Errors that a user can cause.

Every such error is a `PolysemeError` whose text is one sentence: what was given, what is allowed, what to do. The command
line prints that sentence and nothing else; tracebacks are for our own bugs.
"""

from __future__ import annotations

import contextlib
import difflib
import shlex
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

_NOT_GIVEN = object()
_CLOSE, _CLOSE_BEGUN, _BEGUN = 0.6, 0.8, 0.95  # how similar names must be to be meant
_flags = False
"""Whether messages name command-line flags instead of Python arguments."""
_scoped: Mapping[str, str] = {}
"""Arguments that the present call takes only as `option`, with what stands for their value."""


class PolysemeError(Exception):
    """The base of all errors that a user can cause and fix; the command line exits with 1.

    >>> issubclass(UsageError, PolysemeError)
    True
    """


class UsageError(PolysemeError):
    """The call itself is wrong (an unknown option, a bad combination); the command line exits with 2."""


class InterruptedRun(PolysemeError):
    """The user stopped the work with Ctrl-C; the text says how to resume it. The command line exits with 130."""


class FormatError(PolysemeError):
    """A file has the wrong format.

    >>> str(FormatError("weights.hdf5", "has no dataset 'char_embed'"))
    "weights.hdf5: has no dataset 'char_embed'"
    """

    def __init__(self, path: str | Path, what: str) -> None:
        super().__init__(f"{path}: {what}")
        self.path = Path(path)


class MissingExtraError(PolysemeError):
    """An optional package is not installed; the text names the command that installs it."""

    def __init__(self, need: str, extra: str) -> None:
        super().__init__(f"{need}, which is not installed: pip install 'polyseme[{extra}]'")  # zsh needs the quotes


def arg(name: str, value: object = _NOT_GIVEN) -> str:
    """Name an argument in a message: as a Python argument, or as a flag where the command line runs.

    >>> arg("layers"), arg("layers", "top"), arg("force", True)
    ('layers', "layers='top'", 'force=True')
    >>> with flags_in_messages():
    ...     arg("batch_size"), arg("layers", "top"), arg("force", True), arg("label", "My label"), arg("minutes", 2.0)
    ('--batch-size', '--layers top', '--force', "--label 'My label'", '--minutes 2')
    """
    if name in _scoped:
        value = _scoped[name] if value is _NOT_GIVEN else str(value).lower() if isinstance(value, bool) else value
        name, value = "option", f"{name}={value}"
    if not _flags:
        return name if value is _NOT_GIVEN else f"{name}={value!r}"
    flag = name.replace("_", "-")
    if value is False:
        return f"--no-{flag}"
    if value is _NOT_GIVEN or value is True:
        return f"--{flag}"
    text = ",".join(map(_typed, value)) if isinstance(value, list | tuple) else _typed(value)
    return f"--{flag} {shlex.quote(text) if any(map(str.isspace, text)) else text}"


def _typed(value: object) -> str:
    """A value as one types it: 2 and not 2.0."""
    return str(int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value)


@contextlib.contextmanager
def flags_in_messages(on: bool = True) -> Iterator[None]:
    """Let `arg` name command-line flags, or with `on=False` Python arguments, for the time of a `with` block."""
    global _flags
    before, _flags = _flags, on
    try:
        yield
    finally:
        _flags = before


@contextlib.contextmanager
def options_in_messages(names: Iterable[str], switches: Container[str] = ()) -> Iterator[None]:
    """Let `arg` name some arguments as `compare` takes them, for the time of a `with` block; `switches`: true or false.

    >>> with options_in_messages(["label", "header"], ["header"]), flags_in_messages():
    ...     arg("label"), arg("label", 2), arg("header"), arg("header", False), arg("tasks")
    ('--option label=NAME', '--option label=2', '--option header=true', '--option header=false', '--tasks')
    """
    global _scoped
    before, _scoped = _scoped, {name: "true" if name in switches else "NAME" for name in names}
    try:
        yield
    finally:
        _scoped = before


def nearest(name: object, known: Iterable[str], close: float = _CLOSE) -> str:
    """A hint to put behind an unknown name: ` (did you mean 'filters'?)`, or the list of known names.

    `close`: how similar names must be; more where all of them look alike.

    >>> nearest("filtres", ["filters", "dim"])
    " (did you mean 'filters'?)"
    >>> nearest("hiden", ["hidden_size", "wide"])
    " (did you mean 'hidden_size'?)"
    >>> nearest("lr", ["l2", "learning_rate"])
    " (did you mean 'learning_rate'?)"
    """
    names = sorted(known)
    if isinstance(name, str) and (best := nearest_name(name, names, close)) is not None:
        return f" (did you mean {best!r}?)"
    return f" (known: {', '.join(names)})" if names else ""


def nearest_name(name: str, names: Sequence[str], close: float = _CLOSE) -> str | None:
    """The known name that is meant; None: no one can tell."""
    best = max(names, key=lambda each: _closeness(name, each), default=None)
    return best if best is not None and _closeness(name, best) >= close else None


def _closeness(name: str, known: str) -> float:
    """How similar a name is to a known one, or nearly as good, to the first of its words; initials are as good as the name."""
    words = known.split("_")
    if len(words) > 1 and name == "".join(word[:1] for word in words):
        return 1.0
    begun = max((_ratio(name, "_".join(words[:count])) for count in range(1, len(words))), default=0.0)
    return max(_ratio(name, known), _BEGUN * begun if begun >= _CLOSE_BEGUN else 0.0)


def _ratio(name: str, known: str) -> float:
    return difflib.SequenceMatcher(None, known, name).ratio()
