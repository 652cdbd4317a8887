"""What the command line prints: results on stdout as text or JSON, notes on stderr."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import typer

from polyseme.base.display import json_text
from polyseme.base.errors import PolysemeError


def line(text: str = "") -> None:
    """Print one line on stdout."""
    typer.echo(text)


def note(text: str) -> None:
    """Print one line on stderr, for the person and not for the pipe."""
    typer.echo(f"polyseme: {text}", err=True)


def as_json(value: Any, *, indent: int | None = None) -> None:
    """Print a value as JSON."""
    typer.echo(json_text(value, indent=indent))


def show_result(result: Any, *, json: bool) -> None:
    """Print what a function returned, and exit as it ended.

    An iterator is printed as its items come. `to_json()` gives the value for `--json`, `str()` the text for people. A result
    whose `problem` is a sentence exits with 1; one whose `stopped_by` names a signal exits as the shell expects of it.
    """
    if result is None:
        return
    if isinstance(result, Iterator):
        for each in result:
            show_result(each, json=json)
        return
    if json:
        as_json(result.to_json() if hasattr(result, "to_json") else result.to_dict())
    elif text := str(result):
        line(text.rstrip("\n"))
    if problem := getattr(result, "problem", None):
        raise PolysemeError(problem)
    if stopped := getattr(result, "stopped_by", None):
        raise typer.Exit(128 + signal.Signals[stopped])


def result(value: Any, json: bool) -> None:
    """A result object on stdout, as JSON or as text."""
    as_json(value.to_json()) if json else line(str(value))


def short(text: str, width: int = 40) -> str:
    """Text on one line and cut to some columns of a terminal, in which a Chinese character takes two.

    >>> short("a\\tword", 5), short("河岸边的银行", 7)
    ('a wo…', '河岸边…')
    """
    from rich.cells import cell_len, set_cell_size

    text = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * width])
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def padded(text: str, width: int) -> str:
    """Text filled up with blanks to a width in columns of a terminal."""
    from rich.cells import cell_len

    return text + " " * max(width - cell_len(text), 0)


def columns(rows: Sequence[tuple[str, str]], indent: int = 2) -> None:
    """Pairs, the second ones aligned."""
    from rich.cells import cell_len

    width = max((cell_len(left) for left, _ in rows), default=0)
    for left, right in rows:
        line(f"{' ' * indent}{padded(left, width)}  {right}")


def count(number: int, thing: str) -> str:
    """A number of things.

    >>> count(1, "word"), count(1200, "line")
    ('1 word', '1,200 lines')
    """
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def facts(values: Mapping[str, Any]) -> None:
    """Named values, without those that are None."""
    columns([(name.replace("_", " "), plain(value)) for name, value in values.items() if value is not None], indent=0)


def plain(value: Any) -> str:
    """A value as a person writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
