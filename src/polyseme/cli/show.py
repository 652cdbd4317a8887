"""What the command line prints: results on stdout as text or JSON, notes on stderr."""

from __future__ import annotations

import itertools
import signal
import sys
from collections.abc import Iterator
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


class ReportedCode(int):
    """An exit code whose reason was printed where it arose."""


def show_result(result: Any, *, json: bool, most: int | None = None) -> None:
    """Print what a function returned, and exit as it ended.

    An iterator is printed as its items come; on a terminal at most `most` of them, unless as JSON. `to_json()` gives the value
    for `--json`; `to_lines()`, where there may be empty lines, or `str()` the text for people. A result whose `problem` is a
    sentence exits with 1; one whose `stopped_by` names a signal exits as the shell expects of it.
    """
    if result is None:
        return
    if isinstance(result, Iterator):
        limit = most if sys.stdout.isatty() and not json else None
        for each in itertools.islice(result, limit):
            show_result(each, json=json)
        if limit is not None and next(result, None) is not None:
            note(f"only the first {limit} lines are shown: give --out FILE to write all vectors, or --json to print them")
        return
    if json:
        as_json(result.to_json() if hasattr(result, "to_json") else result.to_dict())
    elif hasattr(result, "to_lines"):
        for text in result.to_lines():
            line(text)
    elif text := str(result):
        line(text.rstrip("\n"))
    if problem := getattr(result, "problem", None):
        raise PolysemeError(problem)
    if stopped := getattr(result, "stopped_by", None):
        raise typer.Exit(ReportedCode(128 + signal.Signals[stopped]))


def result(value: Any, json: bool) -> None:
    """A result object on stdout, as JSON or as text."""
    as_json(value.to_json()) if json else line(str(value))
