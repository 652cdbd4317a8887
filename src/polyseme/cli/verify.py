"""`polyseme verify`: does a model give the vectors that it should?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.cli import show
from polyseme.cli.embed import BatchSize
from polyseme.cli.lines import lines_of
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

if TYPE_CHECKING:
    from polyseme.formats.vectors.check import Check

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
    if (vectors is None) != (input is None):
        raise UsageError("--vectors FILE and --input FILE go together: the vectors, and the lines they were made from")
    if write and vectors is not None:
        raise UsageError("--write keeps our own vectors; leave --vectors out")
    if vectors is None:
        given = {"--layers": layers != "all", "--start": start is not None, "--split-on-spaces": split_on_spaces}
        given |= {"--batch-size": batch_size is not None, "--splitter": splitter is not None}
        if names := [name for name, was in given.items() if was]:
            raise UsageError(f"{' and '.join(names)} say how --vectors were made: give --vectors and --input too")
    loaded = open_model(model, options=options, vocabulary=vocabulary, splitter=splitter, device=device)
    from polyseme.encoders.shipped import resolve_path
    from polyseme.formats.vectors.check import check_file, check_reference, write_reference
    from polyseme.formats.vectors.store import EmbedConfig

    folder = resolve_path(model)
    if write:
        if not folder.is_dir():
            raise PolysemeError(f"{model} is a file; reference vectors are kept in a folder: convert it first")
        path = write_reference(loaded, folder)
        show.as_json({"written": str(path)}) if json else show.line(f"{path}: written")
        return
    if vectors is not None:
        settings = EmbedConfig(
            layers=layer_choice(layers),
            start=start.value if start else None,
            split_on_spaces=split_on_spaces,
            batch_size=batch_size,
        )
        check = check_file(loaded, lines_of(None, input), vectors, settings)
    else:
        check = check_reference(loaded, folder)
    _report(check, tolerance, json)


def _report(check: Check, tolerance: float, json: bool) -> None:
    good = check.largest <= tolerance and not check.resplit
    if json:
        show.as_json(
            {
                "good": good,
                "sentences": check.sentences,
                "words": check.words,
                "largest_difference": check.largest,
                "place": check.place,
                "tolerance": tolerance,
                "split_otherwise": list(check.resplit),
            }
        )
    elif good:
        size = f"{show.count(check.sentences, 'sentence')}, {show.count(check.words, 'word')}"
        show.line(f"good: {size}, largest difference {check.largest:.2g} (allowed {tolerance:.2g})")
    if check.largest > tolerance:
        raise PolysemeError(f"the vectors differ by up to {check.largest:.2g} ({check.place}); allowed is {tolerance:.2g}")
    if check.resplit:
        which = ", ".join(map(str, check.resplit))
        raise PolysemeError(f"the splitter now splits sentence {which} in another way than when the vectors were kept")
