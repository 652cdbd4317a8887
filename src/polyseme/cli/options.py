"""Options that several verbs share, and how they open a model."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.base.errors import PolysemeError, UsageError

if TYPE_CHECKING:
    from polyseme.encoders.base import Encoder
    from polyseme.encoders.elmo import Elmo
    from polyseme.encoders.gpt import Gpt
    from polyseme.encoders.layer_choice import LayerChoice
    from polyseme.encoders.left_to_right import LeftToRight
    from polyseme.encoders.ngram import NgramModel
    from polyseme.encoders.ulmfit import Ulmfit

    AnyLanguageModel = Elmo | Gpt | LeftToRight | NgramModel


class Start(StrEnum):
    """How a sentence begins."""

    learned = "learned"
    zero = "zero"
    warm = "warm"
    carry = "carry"


class Precision(StrEnum):
    """With which numbers the model computes."""

    fp32 = "fp32"
    fp16 = "fp16"
    bf16 = "bf16"
    int8 = "int8"


class Size(StrEnum):
    """Sizes of a model."""

    tiny = "tiny"
    small = "small"
    medium = "medium"
    original = "original"


class Splitter(StrEnum):
    """Ways to split words."""

    english = "english"
    chinese = "chinese"
    characters = "characters"
    whitespace = "whitespace"
    unigram = "unigram"


_FILES, _RUN = "Model", "Computing"

Texts = Annotated[list[str] | None, typer.Argument(metavar="TEXT", help="Sentences; quote each one.", show_default=False)]
Input = Annotated[
    Path | None,
    typer.Option(
        "--input", "-i", metavar="FILE", help="A text file, one sentence a line, plain or packed; - is standard input."
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Folder, file or hub id of a model, or en or zh, which come with the package. Not given: en.",
        rich_help_panel=_FILES,
    ),
]
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="en, zh, or folder, file or hub id of the model.")]
Options = Annotated[
    Path | None,
    typer.Option("--options", metavar="FILE", help="options.json, where it is not beside the weights.", rich_help_panel=_FILES),
]
VocabularyFile = Annotated[
    Path | None,
    typer.Option(
        "--vocabulary", metavar="FILE", help="Vocabulary, where it is not beside the weights.", rich_help_panel=_FILES
    ),
]
Device = Annotated[
    str | None,
    typer.Option("--device", metavar="DEVICE", help="cpu (where not given), cuda, cuda:1 or mps.", rich_help_panel=_RUN),
]
StartOption = Annotated[
    Start | None,
    typer.Option(
        "--start",
        help="State in which a sentence begins: learned, zeros, warmed up on full stops, or carried over from the line "
        "before. Not given: as the model says.",
        rich_help_panel=_RUN,
    ),
]
PrecisionOption = Annotated[
    Precision,
    typer.Option(
        "--precision",
        help="Numbers to compute with. fp32 is exact. bf16 and int8 are faster on processors with matrix units; fp16 may "
        "not be. Vectors by int8 depend slightly on the batch.",
        rich_help_panel=_RUN,
    ),
]
SplitOnSpaces = Annotated[
    bool,
    typer.Option("--split-on-spaces", help="Words are separated by spaces already; do not split the text."),
]
SplitterOption = Annotated[
    Splitter | None,
    typer.Option(
        "--splitter",
        help="How text is split into words. Not given: as the model says, which for all but our own folders is whitespace.",
        rich_help_panel=_FILES,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def open_model(
    name: str | None,
    *,
    options: Path | None = None,
    vocabulary: Path | None = None,
    splitter: Splitter | None = None,
    device: str | None = None,
    precision: Precision = Precision.fp32,
) -> Encoder:
    """The model that the options name, ready to compute."""
    from polyseme.formats.load import load

    return load(
        "en" if name is None else name,
        options=options,
        vocabulary=vocabulary,
        splitter=splitter.value if splitter else None,
        device=device,
        precision=precision.value,  # type: ignore[arg-type]
    )


def open_language_model(
    name: str | None,
    *,
    options: Path | None = None,
    vocabulary: Path | None = None,
    splitter: Splitter | None = None,
    device: str | None = None,
    precision: Precision = Precision.fp32,
    give: str = "an elmo, taglm, ngram, nnlm, ulmfit or gpt",
) -> AnyLanguageModel:
    """The model that the options name, which must be a language model: other kinds predict no words.

    `give`: what the command takes, for the error.
    """
    from polyseme.encoders.gpt import Gpt
    from polyseme.encoders.left_to_right import LeftToRight
    from polyseme.encoders.ngram import NgramModel

    model = open_model(name, options=options, vocabulary=vocabulary, splitter=splitter, device=device, precision=precision)
    if isinstance(model, NgramModel | LeftToRight | Gpt):
        return model
    return need_elmo(model, f"has no language model inside, which this command needs: give {give}")


def open_elmo(name: str | None, **options: Any) -> Elmo:
    """The model that the options name, which must be a language model that reads from both sides; options as above."""
    model = open_language_model(name, give="an ELMo", **options)
    return need_elmo(model, "reads from left to right only, and this command needs both sides: give an ELMo")


def open_adaptable(name: str | None, **options: Any) -> Elmo | Ulmfit:
    """The model that the options name, which must be one that can go on learning; options as above."""
    from polyseme.encoders.ulmfit import Ulmfit

    model = open_language_model(name, give="an ELMo or a ulmfit", **options)
    if isinstance(model, Ulmfit):
        return model
    return need_elmo(model, "cannot be adapted: give an ELMo or a ulmfit")


def need_elmo(model: Encoder, lack: str) -> Elmo:
    """The model, where it is an ELMo; else an error that says what it lacks and what to do."""
    from polyseme.encoders.elmo import Elmo

    if not isinstance(model, Elmo):
        raise PolysemeError(f"{model.source} is of kind {model.kind}, which {lack}")
    return model


def check_splitting(split_on_spaces: bool, splitter: Splitter | None) -> None:
    """Two ways to split the same text are one too many."""
    if split_on_spaces and splitter is not None:
        raise UsageError("--split-on-spaces and --splitter both say how text is split: give one of them")


def layer_choice(text: str) -> LayerChoice:
    """`all`, `top`, `mean` or a number, as the encoders take it; the range is theirs to check."""
    if text in ("all", "top", "mean"):
        return text  # type: ignore[return-value]
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"--layers is {text!r}; allowed: all, top, mean, or the number of a layer") from None
