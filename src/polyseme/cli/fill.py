"""`polyseme fill`: which words a BERT puts into the place of a hidden one."""

from __future__ import annotations

from typing import Annotated

import typer

from polyseme.cli import show
from polyseme.cli.options import Device, Json, SplitterOption, open_model

Text = Annotated[str, typer.Argument(metavar="TEXT", help="A text in quotes, with [MASK] where a word is hidden.")]
BertModel = Annotated[str, typer.Option("--model", "-m", metavar="MODEL", help="A BERT or its like: a folder or a hub id.")]
Count = Annotated[int, typer.Option("--count", "-n", min=1, help="How many to show for each place.")]


def fill(
    text: Text,
    model: BertModel,
    count: Count = 10,
    splitter: SplitterOption = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Fill in the hidden words of a text, by a BERT or its like.

    Each [MASK] stands for one piece of the model's vocabulary: a word, or with ## before it the end of one. Several are filled
    each by itself. ELMos answer to `polyseme substitutes`.

    Example:

        polyseme fill "The [MASK] of the river." --model my-bert
    """
    found = open_model(model, splitter=splitter, device=device).fill(text, count=count)
    show.show_result(found, json=json)
