"""Options for the sizes of a model's parts, where the named sizes do not fit."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from polyseme.base.errors import UsageError

PANEL = "Parts, where the size does not fit"

Cell = Annotated[int | None, typer.Option("--cell", min=1, help="Size of an LSTM's cell.", rich_help_panel=PANEL)]
Projection = Annotated[
    int | None,
    typer.Option("--projection", min=1, help="Size of a layer's output in one direction.", rich_help_panel=PANEL),
]
TrunkLayers = Annotated[int | None, typer.Option("--layers", min=1, help="Layers in each direction.", rich_help_panel=PANEL)]
Filters = Annotated[
    str | None,
    typer.Option(
        "--filters", metavar="W:N,...", help="Filters over characters: width and number of each.", rich_help_panel=PANEL
    ),
]
WordDim = Annotated[
    int | None,
    typer.Option("--word-dim", min=1, help="Size of a row of the word table; not given: 100.", rich_help_panel=PANEL),
]
Highways = Annotated[int | None, typer.Option("--highways", min=0, help="Layers after the filters.", rich_help_panel=PANEL)]
MaxCharacters = Annotated[
    int | None,
    typer.Option("--max-characters", min=3, help="Characters of a word that are read, marks counted.", rich_help_panel=PANEL),
]


def parse_filters(text: str | None) -> tuple[tuple[int, int], ...] | None:
    """`1:32,2:64` -> ((1, 32), (2, 64)).

    >>> parse_filters("1:32,2:64")
    ((1, 32), (2, 64))
    """
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]+:[0-9]+(,[0-9]+:[0-9]+)*", text):
        raise UsageError(f"--filters is {text!r}; expected width:number for each width, such as 1:32,2:32,3:64")
    return tuple((int(width), int(count)) for width, count in (pair.split(":") for pair in text.split(",")))
