"""Vectors of words and of whole texts: of some texts, or of all lines of a file."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from polyseme.api.arguments import AnyModel, FilePath, ModelForText, Texts
from polyseme.api.models import ModelRequest
from polyseme.api.settings import with_settings
from polyseme.api.texts import model_for
from polyseme.base.config import Config, Setting
from polyseme.base.display import short
from polyseme.base.errors import UsageError, arg
from polyseme.base.out_paths import check_no_model, check_out_file, check_out_folder
from polyseme.scale.addresses import is_address
from polyseme.scale.config import DatasetConfig, is_dataset
from polyseme.text.files.lines import file_lines, lines_of

if TYPE_CHECKING:
    from polyseme.encoders.embed_config import EmbedConfig, EncodeConfig
    from polyseme.encoders.embedding_stream import EmbeddedLine
    from polyseme.formats.embed_file import EmbeddedFile
    from polyseme.formats.encode_file import EncodedFile, EncodedText
    from polyseme.scale.dataset import EmbeddedDataset, ModelSource

Inputs = Annotated[
    list[str] | None,
    Setting(
        help="Text file with one sentence per line, plain or compressed; - is standard input. For a dataset (may be repeated): "
        "files, folders, globs or addresses (s3://, gs://, hf://, https://) of text, JSON lines, CSV or Parquet.",
        metavar="FILE",
        repeat=True,
        flags=("-i",),
    ),
]
VectorsOut = Annotated[
    str | None,
    Setting(
        help="File for the vectors: .hdf5, .npz, .parquet, .jsonl or .jsonl.gz. A folder or bucket, without suffix: a dataset.",
        metavar="FILE|FOLDER",
        flags=("-o",),
    ),
]
DatasetOut = Annotated[FilePath, Setting(help="Folder or bucket (s3://...) for the dataset.", metavar="FOLDER", flags=("-o",))]
TextVectorsOut = Annotated[
    FilePath | None,
    Setting(help="File for the vectors, one row per line: .npy (for numpy.load).", metavar="FILE", flags=("-o",)),
]
_log = logging.getLogger(__name__)


@with_settings(config="polyseme.encoders.embed_config:EmbedConfig")
def embed_file(
    input: str | Path | Iterable[str], out: str | Path, *, model: ModelForText = None, config: EmbedConfig
) -> EmbeddedFile:
    """Write the vectors of all lines of a text to a file: HDF5, npz, Parquet or JSON lines.

    Each input line gives one entry, empty lines too. The file is complete or absent: work is kept in `OUT.part`, and after a
    stop (Ctrl-C, a crash, a power cut) the same call resumes it. Parquet and JSON lines have the words too; HDF5 (as bilm-tf
    writes it) and npz have the arrays only.

    >>> import polyseme                                                     # doctest: +SKIP
    >>> polyseme.embed_file("sentences.txt", "vectors.hdf5", layers="top")  # doctest: +SKIP
    """
    from polyseme.formats.embed_file import embed_file as write
    from polyseme.formats.vectors.writer import writer_for

    check_out_file(out)
    writer_for(out)  # report a wrong suffix or a missing package before the model is loaded
    lines = file_lines(input) if isinstance(input, str | Path) else input
    encoder, lines = model_for(lines, model, split_on_spaces=config.split_on_spaces)
    return write(lines, out, model=encoder, config=config)


@with_settings(config="polyseme.encoders.embed_config:EmbedConfig", dataset="polyseme.scale.config:DatasetConfig")
def embed_dataset(
    input: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    model: ModelForText = None,
    config: EmbedConfig,
    dataset: DatasetConfig,
) -> EmbeddedDataset:
    """Write the vectors of large texts as a Parquet dataset, with processes of this machine or a Ray cluster.

    Input: files, folders, globs or addresses of text, JSON lines, CSV and Parquet, plain or compressed. Each line gives one
    row, blank lines too, in order. The parts are the same bytes whatever the engine, the number of workers or the
    interruptions; after a stop the same call resumes. See Beyond one machine, in the documentation.

    >>> import polyseme                                                                    # doctest: +SKIP
    >>> polyseme.embed_dataset("texts/*.txt.gz", "vectors", layers="top", workers=8)       # doctest: +SKIP
    >>> polyseme.embed_dataset("s3://bucket/texts", "s3://bucket/vectors", engine="ray")   # doctest: +SKIP
    """
    from polyseme.scale import dataset as scale

    if not is_address(str(out)):
        check_out_folder(out)
        check_no_model(out)
    dataset = _with_learned_mix(dataset)
    shards = scale.shards_of([input] if isinstance(input, str | Path) else input, dataset.shard_size, dataset.field)
    first = scale.first_texts(shards, dataset.field or "text")
    with _named_model(first, model, config, dataset) as source:
        return scale.embed_dataset(shards, out, model=source, embed=config, config=dataset)


@with_settings(config="polyseme.encoders.embed_config:EmbedConfig", dataset="polyseme.scale.config:DatasetConfig")
def embed(
    texts: Texts | None = None,
    *,
    input: Inputs = None,
    model: ModelForText = None,
    out: VectorsOut = None,
    config: EmbedConfig,
    dataset: DatasetConfig,
) -> EmbeddedFile | EmbeddedDataset | Iterator[EmbeddedLine]:
    """Compute a vector for each word that depends on its sentence.

    Each input line gives one result, empty lines too: an array of (words, dim) for one layer, (layers, words, dim) for
    several. Without an output file, a few numbers per word are shown (on a terminal, of the first lines of a file), or all of
    them as JSON.

    A file is complete or absent: work is kept in FILE.part, and after a stop (Ctrl-C, a crash, a power cut) the same command
    resumes it. Parquet and JSON lines have the words too; HDF5 (as bilm-tf writes it) and npz have the arrays only.

    A folder as output, or `--engine`, makes a dataset of Parquet parts from texts of any size, with many processes or
    machines; the same command resumes it, too (see Beyond one machine, in the documentation).
    """
    from polyseme.encoders.embedding_stream import embed_lines
    from polyseme.formats.embed_file import embed_file as write
    from polyseme.formats.vectors.writer import writer_for

    if out is not None and is_dataset(out, dataset):
        if texts or not input:
            raise UsageError(f"a dataset is made from files: give {arg('input')}, and no TEXT")
        return embed_dataset(input, out, model=model, **_given(config), **_given(dataset))
    _refuse_dataset_options(input, dataset)
    if out is not None:
        check_out_file(out)
        writer_for(out)  # report a wrong suffix or a missing package before the model is loaded
    given = lines_of(texts, input[0] if input else None)  # type: ignore[arg-type]
    encoder, lines = model_for(given, model, split_on_spaces=config.split_on_spaces, to_the_end=True)
    if out is None:
        return (line for some in embed_lines(encoder, lines, config) for line in some)
    return write(lines, out, model=encoder, config=config)


@with_settings(config="polyseme.encoders.embed_config:EncodeConfig")
def encode(
    texts: Texts, *, model: ModelForText = None, out: TextVectorsOut = None, config: EncodeConfig
) -> EncodedFile | Iterator[EncodedText]:
    """Compute one vector for each text, for search, clustering and classifiers.

    Each input line gives one vector, empty lines zeros. Without an output file, a few numbers per text are shown (on a
    terminal, of the first lines of a file), or all of them as JSON.
    """
    from polyseme.formats.encode_file import check_suffix, encode_file, encode_lines

    if out is not None:
        check_suffix(out)
        check_out_file(out)
    encoder, lines = model_for(texts, model, split_on_spaces=config.split_on_spaces, to_the_end=True)
    if out is None:
        return encode_lines(encoder, lines, config)
    return encode_file(encoder, lines, out, config)


def _given(config: Config) -> dict[str, Any]:
    """The settings of a config as keyword arguments."""
    return {item.name: getattr(config, item.name) for item in dataclasses.fields(config)}


def _refuse_dataset_options(input: Sequence[str] | None, dataset: DatasetConfig) -> None:
    default = DatasetConfig()
    given = [name for name, value in _given(dataset).items() if value != getattr(default, name)]
    if input is not None and len(input) > 1:
        given.append("input")
    if given:
        names = " and ".join("several " + arg(name) if name == "input" else arg(name) for name in given)
        raise UsageError(f"{names}: only for a dataset; give a folder as {arg('out')}")


def _with_learned_mix(config: DatasetConfig) -> DatasetConfig:
    """The config with the weights of a mix; those of a trained task are read."""
    if not isinstance(config.mix, str):
        return config
    from polyseme.tasks.folder import load as load_task

    folder = Path(config.mix).expanduser()
    if not folder.is_dir():
        allowed = "a weight for each layer, or the folder of a trained task"
        raise UsageError(f"{arg('mix')} is {short(repr(config.mix))}; allowed: {allowed}")
    positions: Any = load_task(folder).features.mixes
    mixes = [each for position in positions.values() for each in position]
    if len(mixes) != 1 or len(mixes[0].weights) == 1:
        raise UsageError(f"{config.mix} has not learned one mix of layers: give the weights themselves ({arg('mix')})")
    if mixes[0].norm not in (None, "words"):
        raise UsageError(f"{config.mix} normalizes layers over whole batches ({mixes[0].norm}): a dataset cannot do the same")
    weights = tuple((mixes[0].weights.softmax(0) * mixes[0].gamma).tolist())
    return config.replace(mix=weights, normalize_layers=mixes[0].norm == "words")


@contextlib.contextmanager
def _named_model(
    first: Iterable[str], model: AnyModel | ModelRequest | None, config: EmbedConfig, dataset: DatasetConfig
) -> Iterator[ModelSource]:
    """The model under a name that other processes can load; one that is only in memory is written to a temporary folder."""
    from polyseme.encoders.fingerprint import model_fingerprint
    from polyseme.scale.dataset import ModelSource
    from polyseme.scale.embedding import columns_of

    encoder, _ = model_for(first, model, split_on_spaces=config.split_on_spaces)
    columns_of(encoder, config, dataset)  # reports layers and poolings that the model lacks
    if dataset.mix is not None and len(dataset.mix) != encoder.layers:
        raise UsageError(f"{arg('mix')} has {len(dataset.mix)} weights; allowed: {encoder.layers}, one for each layer")
    fingerprint = model_fingerprint(encoder)
    options = dict(model.options) if isinstance(model, ModelRequest) else {}
    if model is not None and not isinstance(model, str | Path | ModelRequest):
        with tempfile.TemporaryDirectory(prefix="polyseme-") as scratch:
            encoder.save_pretrained(Path(scratch) / "model")
            yield ModelSource(name=str(Path(scratch) / "model"), fingerprint=fingerprint)
        return
    if model is None or (isinstance(model, ModelRequest) and not model.given):
        name = encoder.source or "en"
    else:
        name = str(model.name if isinstance(model, ModelRequest) else model)
    yield ModelSource(
        name=str(Path(name).absolute()) if Path(name).exists() else name, options=options, fingerprint=fingerprint
    )
