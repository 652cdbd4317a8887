"""Vectors of words and of whole texts: of some texts, or of all lines of a file."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from polyseme.api.arguments import AnyModel, FilePath, Texts
from polyseme.api.models import ModelRequest, loaded
from polyseme.api.settings import with_settings
from polyseme.api.texts import peek
from polyseme.base.config import Setting
from polyseme.base.errors import UsageError, arg
from polyseme.text.files.lines import file_lines

if TYPE_CHECKING:
    from polyseme.encoders.base import Encoder
    from polyseme.encoders.embed_config import EmbedConfig, EncodeConfig
    from polyseme.encoders.embedding_stream import EmbeddedLine
    from polyseme.formats.embed_file import EmbeddedFile
    from polyseme.formats.encode_file import EncodedFile, EncodedText

ModelForText = Annotated[
    AnyModel | None,
    Setting(
        help="Name of a shipped model (en, zh), or folder, file or Hugging Face Hub id of any other.",
        default_text="en; zh if the text is mostly Chinese",
        metavar="MODEL",
        group="Model",
        flags=("-m",),
    ),
]
VectorsOut = Annotated[
    FilePath | None,
    Setting(help="File for the vectors: .hdf5, .npz, .parquet, .jsonl or .jsonl.gz.", metavar="FILE", flags=("-o",)),
]
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

    writer_for(out)  # report a wrong suffix or a missing package before the model is loaded
    lines = file_lines(input) if isinstance(input, str | Path) else input
    encoder, lines = _model_for(lines, model, config)
    return write(lines, out, model=encoder, config=config)


@with_settings(config="polyseme.encoders.embed_config:EmbedConfig")
def embed(
    texts: Texts, *, model: ModelForText = None, out: VectorsOut = None, config: EmbedConfig
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

    if out is not None:
        writer_for(out)  # report a wrong suffix or a missing package before the model is loaded
    encoder, lines = _model_for(texts, model, config)
    if out is None:
        return (line for some in embed_lines(encoder, lines, config) for line in some)
    return write(lines, out, model=encoder, config=config)


@with_settings(config="polyseme.encoders.embed_config:EncodeConfig")
def encode(
    texts: Texts, *, model: ModelForText = None, out: TextVectorsOut = None, config: EncodeConfig
) -> EncodedFile | Iterator[EncodedText]:
    """Compute one vector for each text, for search, clustering and classifiers.

    Each input line gives one vector, empty lines zeros. Without an output file, a few numbers per text are shown, or all of
    them as JSON.
    """
    from polyseme.formats.encode_file import check_suffix, encode_file, encode_lines

    if out is not None:
        check_suffix(out)
    encoder, lines = _model_for(texts, model, config)
    if out is None:
        return encode_lines(encoder, lines, config)
    return encode_file(encoder, lines, out, config)


def _model_for(
    texts: Iterable[Any], model: AnyModel | ModelRequest | None, config: EmbedConfig | EncodeConfig
) -> tuple[Encoder, Iterable[Any]]:
    """The model, for Chinese the Chinese one unless the user named another, and the texts, of which some may be read.

    English for Chinese is refused.
    """
    from polyseme.text.script import ScriptProfile

    first, texts = peek(texts)
    profile = ScriptProfile.of("\n".join(first))
    if profile.is_chinese and (model is None or (isinstance(model, ModelRequest) and not model.given)):
        _log.warning("the text is mostly Chinese (%s): %s", profile.percent, arg("model", "zh"))
        model = ModelRequest("zh", model.options if isinstance(model, ModelRequest) else {})
    encoder = loaded("en" if model is None else model, split_on_spaces=config.split_on_spaces)
    unsplit = not config.split_on_spaces and encoder.splitter.name == "english" and not encoder.reads_subwords
    if profile.is_chinese and encoder.source == "en":
        what = f"the text is mostly Chinese ({profile.percent}), and {encoder.source} is an English model"
        raise UsageError(f"{what}: give {arg('model', 'zh')}, or a Chinese model of your own")
    if profile.needs_chinese_splitter and unsplit and any(isinstance(text, str) for text in first):
        raise UsageError(profile.refusal())
    if unsplit and (problem := profile.warning()):
        _log.warning("%s: consider %s, or text whose words are separated by spaces", problem, arg("splitter", "characters"))
    return encoder, texts
