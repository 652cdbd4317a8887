"""`polyseme embed`: vectors of words, to a file or to the screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli import show
from polyseme.cli.options import (
    Device,
    Input,
    Json,
    Model,
    Options,
    Precision,
    PrecisionOption,
    SplitOnSpaces,
    SplitterOption,
    StartOption,
    Texts,
    VocabularyFile,
    check_splitting,
    layer_choice,
    open_model,
)
from polyseme.text.files.lines import Lines, lines_of

if TYPE_CHECKING:
    import numpy as np

    from polyseme.encoders.base import Encoder
    from polyseme.encoders.embed_config import EmbedConfig
    from polyseme.encoders.embedding_stream import EmbeddedLine

_SHOWN = 5  # numbers of a vector that fit a terminal

Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="File for the vectors: .hdf5, .npz, .parquet, .jsonl or .jsonl.gz."),
]
LayersOption = Annotated[str, typer.Option("--layers", metavar="all|top|mean|N", help="Layers to give.")]
Half = Annotated[bool, typer.Option("--fp16", help="Store 16-bit numbers: half the size, about three digits.")]
BatchWords = Annotated[
    int | None,
    typer.Option("--batch-words", min=1, help="Words computed at once; less needs less memory.", rich_help_panel="Computing"),
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        "--batch-size",
        min=1,
        help="Lines computed at once, at most; with --start carry, states carried side by side.",
        rich_help_panel="Computing",
    ),
]
SaveEvery = Annotated[
    float,
    typer.Option(
        "--save-every",
        min=0,
        metavar="SECONDS",
        help="How often work is made safe; 0: always.",
        rich_help_panel="Computing",
    ),
]


def embed(
    texts: Texts = None,
    input: Input = None,
    model: Model = None,
    out: Out = None,
    layers: LayersOption = "all",
    split_on_spaces: SplitOnSpaces = False,
    half: Half = False,
    json: Json = False,
    options: Options = None,
    vocabulary: VocabularyFile = None,
    splitter: SplitterOption = None,
    device: Device = None,
    start: StartOption = None,
    precision: PrecisionOption = Precision.fp32,
    batch_words: BatchWords = None,
    batch_size: BatchSize = None,
    save_every: SaveEvery = 2.0,
) -> None:
    """Turn every word into vectors that know their sentence.

    Each input line gives one row, empty lines too, with an array of (layers, words, numbers). Without --out, a few
    numbers of each word are shown, or all of them with --json.

    A file is whole or not there: work goes on in FILE.part, and after a stop (Ctrl-C, a crash, a power cut) the same
    command goes on where it was. Parquet and JSON lines hold the words too; HDF5 (as bilm-tf wrote it) and npz hold the
    arrays alone.

    Examples:

        polyseme embed "The bank of the river ."

        polyseme embed --input corpus.txt --out vectors.hdf5 --layers top
    """
    check_splitting(split_on_spaces, splitter)
    lines = lines_of(texts, input)
    choice = layer_choice(layers)
    if out is not None:
        from polyseme.formats.vectors.writer import writer_for

        writer_for(out)
    loaded = open_model(model, options=options, vocabulary=vocabulary, splitter=splitter, device=device, precision=precision)
    from polyseme.encoders.embed_config import EmbedConfig
    from polyseme.encoders.layer_choice import select_layers

    select_layers(choice, loaded.layers)
    settings = EmbedConfig(
        layers=choice,
        start=start.value if start else None,
        fp16=half,
        split_on_spaces=split_on_spaces,
        batch_words=batch_words,
        batch_size=batch_size,
        save_every=save_every,
    )
    if out is None:
        _show(loaded, lines, settings, json)
    else:
        from polyseme.formats.embed_file import embed_file

        show.result(embed_file(lines, out, model=loaded, config=settings), json)


def _show(model: Encoder, lines: Lines, settings: EmbedConfig, json: bool) -> None:
    from polyseme.encoders.embedding_stream import embed_lines
    from polyseme.formats.vectors.jsonl import json_line

    top = model.layers - 1 if settings.layers in ("all", "top") else settings.layers
    layer = "mean of all layers" if settings.layers == "mean" else f"layer {top}"
    for rows in embed_lines(model, lines, settings):
        for row in rows:
            if json:
                typer.echo(json_line(row), nl=False)
                continue
            show.line(f"line {row.line}: {show.count(len(row.words), 'word')}, {layer}, the first of {model.dim} numbers")
            show.columns([(show.short(word, 24), _numbers(vector)) for word, vector in _words(row)])


def _words(row: EmbeddedLine) -> Iterator[tuple[str, np.ndarray]]:
    """Words with their vectors in the last of the layers that were asked for."""
    return zip(row.words, row.stack[-1], strict=True)


def _numbers(vector: np.ndarray) -> str:
    more = " ..." if len(vector) > _SHOWN else ""
    return " ".join(f"{number:8.4f}" for number in vector[:_SHOWN]) + more
