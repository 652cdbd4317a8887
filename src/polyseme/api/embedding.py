"""Vectors of words: of some texts, or of all lines of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

from polyseme.api.arguments import FilePath, Model, Texts
from polyseme.api.models import loaded
from polyseme.api.settings import with_settings
from polyseme.base.config import Setting

if TYPE_CHECKING:
    from pathlib import Path

    from polyseme.encoders.embed_config import EmbedConfig
    from polyseme.encoders.embedding_stream import EmbeddedLine
    from polyseme.formats.embed_file import EmbeddedFile

VectorsOut = Annotated[
    FilePath | None,
    Setting(help="File for the vectors: .hdf5, .npz, .parquet, .jsonl or .jsonl.gz.", metavar="FILE", flags=("-o",)),
]


@with_settings(config="polyseme.encoders.embed_config:EmbedConfig")
def embed_file(input: str | Path | Iterable[str], out: str | Path, *, model: Model = "en", config: EmbedConfig) -> EmbeddedFile:
    """Write the vectors of all lines of a text to a file: HDF5, npz, Parquet or JSON lines.

    Each input line gives one entry, empty lines too. The file is complete or absent: work is kept in `OUT.part`, and after a
    stop (Ctrl-C, a crash, a power cut) the same call resumes it. Parquet and JSON lines have the words too; HDF5 (as bilm-tf
    writes it) and npz have the arrays only.

    >>> import polyseme                                                     # doctest: +SKIP
    >>> polyseme.embed_file("sentences.txt", "vectors.hdf5", layers="top")  # doctest: +SKIP
    """
    from polyseme.formats.embed_file import embed_file as write
    from polyseme.formats.vectors.writer import writer_for

    writer_for(out)  # report a wrong suffix or a missing package before the model is loaded
    return write(input, out, model=loaded(model), config=config)


@with_settings(config="polyseme.encoders.embed_config:EmbedConfig")
def embed(
    texts: Texts, *, model: Model = "en", out: VectorsOut = None, config: EmbedConfig
) -> EmbeddedFile | Iterator[EmbeddedLine]:
    """Compute a vector for each word that depends on its sentence.

    Each input line gives one result, empty lines too: an array of (words, dim) for one layer, (layers, words, dim) for
    several. Without an output file, a few numbers per word are shown, or all of them as JSON.

    A file is complete or absent: work is kept in FILE.part, and after a stop (Ctrl-C, a crash, a power cut) the same command
    resumes it. Parquet and JSON lines have the words too; HDF5 (as bilm-tf writes it) and npz have the arrays only.
    """
    from polyseme.encoders.embedding_stream import embed_lines
    from polyseme.formats.embed_file import embed_file as write
    from polyseme.formats.vectors.writer import writer_for

    if out is None:
        encoder = loaded(model, split_on_spaces=config.split_on_spaces)
        return (line for lines in embed_lines(encoder, texts, config) for line in lines)  # type: ignore[arg-type]
    writer_for(out)  # report a wrong suffix or a missing package before the model is loaded
    encoder = loaded(model, split_on_spaces=config.split_on_spaces)
    return write(texts, out, model=encoder, config=config)  # type: ignore[arg-type]
