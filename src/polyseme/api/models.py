"""Models as a whole: load, describe, convert and verify them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from polyseme.api.arguments import (
    Device,
    FilePath,
    ModelArgument,
    OptionsFile,
    Precision,
    Splitter,
    SubwordPooling,
    TokenEmbeddingsFile,
    VocabularyFile,
)
from polyseme.api.settings import with_settings
from polyseme.base.config import Setting
from polyseme.base.display import short
from polyseme.base.errors import UsageError, arg
from polyseme.base.progress import note_if_slow

if TYPE_CHECKING:
    from polyseme.api.arguments import AnyModel
    from polyseme.encoders.base import Encoder
    from polyseme.encoders.embed_config import EmbedConfig
    from polyseme.formats.convert import Conversion
    from polyseme.formats.info import ModelInfo
    from polyseme.formats.verify import Verification
    from polyseme.tasks.task_info import TaskInfo


ShowCard = Annotated[bool, Setting(help="Show the model card (README.md) too.")]
ConvertedOut = Annotated[
    FilePath,
    Setting(
        help="Folder to write; for arpa a file (compressed if it ends in .gz or .xz); or a file of vectors: .txt, .vec, .bin "
        "or .glove.",
        metavar="OUT",
    ),
]
TargetFormat = Annotated[
    Literal["polyseme", "bilm", "onnx", "arpa", "vectors"] | None,
    Setting(
        help="polyseme: our folder. bilm: options.json and weights.hdf5, as bilm-tf and AllenNLP read them. onnx: "
        "graphs for ONNX Runtime, fp32 or int8 (extra onnx). arpa: n-grams. "
        "vectors: a file of word vectors in word2vec's format, or GloVe's (.glove).",
        default_text="polyseme, or vectors if OUT ends in .txt, .vec, .bin or .glove",
    ),
]
StoredPrecision = Annotated[
    Literal["fp32", "fp16", "int8"],
    Setting(help="Number format of the weights in the files: fp16 halves them, int8 quarters them. In memory they are fp32."),
]
Force = Annotated[bool, Setting(help="Write into a folder that is not empty, or over a file.")]
VectorsFile = Annotated[
    FilePath | None,
    Setting(help="Vectors to compare with: HDF5 as bilm-tf writes it, or npz; needs the text too.", metavar="FILE"),
]
LinesFile = Annotated[
    FilePath | None,
    Setting(help="Text from which the vectors were made, one sentence per line.", metavar="FILE", flags=("-i",)),
]
WriteReference = Annotated[bool, Setting(help="Write reference vectors into the model's folder instead of checking.")]
Tolerance = Annotated[float, Setting(help="Largest difference allowed.", min=0)]


def load(
    model: ModelArgument = "en",
    *,
    options: OptionsFile = None,
    vocabulary: VocabularyFile = None,
    token_embeddings: TokenEmbeddingsFile = None,
    splitter: Splitter = None,
    subword_pooling: SubwordPooling = None,
    device: Device = None,
    precision: Precision = "fp32",
) -> Encoder:
    """Load a model in any known format: a shipped name, a folder, a file or a Hugging Face Hub id.

    >>> import polyseme                                       # doctest: +SKIP
    >>> polyseme.load().embed(["The bank of the river ."])    # doctest: +SKIP
    """
    if not isinstance(model, str | Path):
        what = "the name of a model, or the path of its folder or file"
        raise UsageError(f"the model is {short(repr(model))}; expected {what}")
    files: dict[str, Any] = {"options": options, "vocabulary": vocabulary, "token_embeddings": token_embeddings}
    more: dict[str, Any] = {"splitter": splitter, "subword_pooling": subword_pooling, "device": device, "precision": precision}
    with note_if_slow(f"loading {model} ..."):
        from polyseme.formats.load import load as read

        return read(str(model), **files, **more)


@dataclass(frozen=True)
class ModelRequest:
    """A model that is loaded when it is first needed, after cheaper checks."""

    name: str
    options: Mapping[str, Any]
    """Keyword arguments of `load`."""
    given: bool = True
    """Whether the user named it; else it is the default."""


def loaded(model: AnyModel | ModelRequest, *, split_on_spaces: bool = False) -> Encoder:
    """The model itself, loaded if it is a name; `split_on_spaces` excludes a splitter chosen for the model."""
    if isinstance(model, ModelRequest):
        if split_on_spaces and "splitter" in model.options:
            both = f"{arg('split_on_spaces', True)} and {arg('splitter')}"
            raise UsageError(f"{both} both say how to split the text: give one of them")
        return load(model.name, **model.options)
    return load(model) if isinstance(model, str | Path) else model


def info(model: ModelArgument, *, card: ShowCard = False) -> ModelInfo | TaskInfo:
    """Describe a model: format, sizes, alphabet, splitter, licence, card.

    Of the folder of a trained task: network, labels, encoders, scores, learned layer weights.

    >>> import polyseme      # doctest: +SKIP
    >>> polyseme.info("en")  # doctest: +SKIP
    """
    from polyseme.formats.info import info as describe
    from polyseme.tasks.folder_check import is_task

    name = model.name if isinstance(model, ModelRequest) else model
    if isinstance(name, str | Path) and is_task(Path(name).expanduser()):
        from polyseme.tasks.task_info import task_info

        return task_info(Path(name).expanduser())
    return describe(loaded(model), card=card)


def convert(
    model: ModelArgument,
    out: ConvertedOut,
    *,
    to: TargetFormat = None,
    precision: StoredPrecision = "fp32",
    force: Force = False,
) -> Conversion:
    """Convert a model to our folder, to bilm-tf's files, to ONNX, to an ARPA file or to word vectors.

    Our folder has no code and no pickle: config.json, safetensors, plain text, a model card, and reference vectors for
    `polyseme verify`. The result is read back and compared with the source.

    Published models do not say how raw text is split into words: they take text that is split at white space. A splitter
    chosen when the model is loaded is kept in our folder and in an ARPA file; a file of word vectors cannot keep it.

    >>> import polyseme                                                      # doctest: +SKIP
    >>> polyseme.convert("elmo_weights.hdf5", "my-model", precision="fp16")  # doctest: +SKIP
    """
    from polyseme.formats.convert import check_conversion
    from polyseme.formats.convert import convert as write

    check_conversion(Path(out), to=to, precision=precision, force=force)  # before the model is loaded
    return write(loaded(model), out, to=to, precision=precision, force=force)


@with_settings(config="polyseme.encoders.embed_config:EmbedConfig")
def verify(
    model: ModelArgument,
    *,
    vectors: VectorsFile = None,
    input: LinesFile = None,
    write: WriteReference = False,
    tolerance: Tolerance = 1e-5,
    config: EmbedConfig,
) -> Verification:
    """Check that a model gives the vectors it should.

    By default compares with reference vectors of a few sentences in the model's folder (verify.safetensors, written by
    `polyseme convert` and by `write`). With `vectors` and `input`, compares with vectors that another program made from those
    lines; the other settings say how it made them.

    >>> import polyseme              # doctest: +SKIP
    >>> polyseme.verify("my-model")  # doctest: +SKIP
    """
    from polyseme.formats.verify import verify as check

    if vectors is None and isinstance(model, ModelRequest) and "splitter" in model.options:
        raise UsageError(f"{arg('splitter')} describes given vectors: add {arg('vectors')} and {arg('input')}")
    return check(loaded(model), vectors, input=input, write=write, tolerance=tolerance, config=config)
