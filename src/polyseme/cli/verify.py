"""`polyseme verify`: does a model give the vectors that it should?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polyseme.cli import show
from polyseme.cli.embed import BatchSize
from polyseme.cli.options import (
    Device,
    Input,
    Json,
    ModelArgument,
    Options,
    SplitOnSpaces,
    SplitterOption,
    StartOption,
    VocabularyFile,
    layer_choice,
    open_model,
)

Vectors = Annotated[
    Path | None,
    typer.Option("--vectors", metavar="FILE", help="Vectors to compare with: HDF5 as bilm-tf wrote it, or npz; needs --input."),
]
Write = Annotated[bool, typer.Option("--write", help="Keep reference vectors in the model's folder instead of checking.")]
Tolerance = Annotated[float, typer.Option("--tolerance", min=0, help="Largest difference allowed.")]
LayersOption = Annotated[str, typer.Option("--layers", metavar="all|top|mean|N", help="Layers that --vectors holds.")]


def verify(
    model: ModelArgument,
    vectors: Vectors = None,
    input: Input = None,
    write: Write = False,
    tolerance: Tolerance = 1e-5,
    layers: LayersOption = "all",
    split_on_spaces: SplitOnSpaces = False,
    start: StartOption = None,
    batch_size: BatchSize = None,
    splitter: SplitterOption = None,
    json: Json = False,
    options: Options = None,
    vocabulary: VocabularyFile = None,
    device: Device = None,
) -> None:
    """Check that a model gives the vectors that it should.

    By default against reference vectors of a few sentences, kept in the model's folder (verify.safetensors, written by
    `polyseme convert` and by --write). With --vectors and --input, against a file of vectors that somebody made from
    those lines. Exits with 1 when any number differs by more than the tolerance.

    Examples:

        polyseme verify my-model

        polyseme verify my-model --vectors theirs.hdf5 --input sentences.txt --split-on-spaces
    """
    from polyseme.encoders.embed_config import EmbedConfig
    from polyseme.formats.verify import verify as check

    config = EmbedConfig(
        layers=layer_choice(layers),
        start=start.value if start else None,
        split_on_spaces=split_on_spaces,
        batch_size=batch_size,
    )
    loaded = open_model(model, options=options, vocabulary=vocabulary, splitter=splitter, device=device)
    done = check(loaded, vectors, input=input, write=write, tolerance=tolerance, config=config)
    if json or done.good:
        show.result(done, json)
    if not write:
        done.check()
