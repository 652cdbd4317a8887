"""`polyseme convert`: any readable model into our folder, or into bilm-tf's files; n-grams into an ARPA file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from polyseme.cli import show
from polyseme.cli.options import Json, Options, SplitterOption, VocabularyFile, open_model


class Kind(StrEnum):
    """What to write."""

    polyseme = "polyseme"
    bilm = "bilm"
    arpa = "arpa"
    vectors = "vectors"


class Stored(StrEnum):
    """Numbers in the files."""

    fp32 = "fp32"
    fp16 = "fp16"


Source = Annotated[str, typer.Argument(metavar="SOURCE", help="Folder, file or hub id of a model in any known format.")]
Folder = Annotated[
    Path,
    typer.Argument(
        metavar="OUT", help="Folder to write; for arpa a file, packed where it ends in .gz or .xz; or vectors.txt, vectors.bin."
    ),
]
To = Annotated[
    Kind | None,
    typer.Option(
        "--to",
        help="polyseme: our folder; bilm: options.json and weights.hdf5 (bilm-tf); arpa: n-grams; vectors: a file of word "
        "vectors, as word2vec writes them.",
    ),
]
StoredOption = Annotated[Stored, typer.Option("--precision", help="Numbers in the files; fp16 halves them.")]
Force = Annotated[bool, typer.Option("--force", help="Write into a folder that holds something already.")]


def convert(
    source: Source,
    out: Folder,
    to: To = None,
    precision: StoredOption = Stored.fp32,
    force: Force = False,
    options: Options = None,
    vocabulary: VocabularyFile = None,
    splitter: SplitterOption = None,
    json: Json = False,
) -> None:
    """Convert a model into our folder, or into the files that bilm-tf and AllenNLP read.

    Our folder holds no code and no pickle: config.json, safetensors, plain text, a model card, and a few reference
    vectors for `polyseme verify`. The result is read back and compared with the source.

    Published models do not say how raw text is split into words: they take it to be split at white space. --splitter
    says otherwise, and our folder keeps it, as does an ARPA file; a file of word vectors cannot.

    OUT that ends in .txt, .vec or .bin is a file of word vectors in word2vec's text or binary form: the model's table, or
    layer 0 of the words of its vocabulary.

    Example:

        polyseme convert elmo_2x4096_512_2048cnn_2xhighway_weights.hdf5 my-model --precision fp16
    """
    from polyseme.formats.convert import convert as write

    model = open_model(source, options=options, vocabulary=vocabulary, splitter=splitter)
    show.result(write(model, out, to=None if to is None else to.value, precision=precision.value, force=force), json)
