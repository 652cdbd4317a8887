"""Parameters that several public functions share, each declared once for Python and the command line.

At run time a model is a `str` here, because the command line reads these types without importing PyTorch; type checkers see
that a loaded model is accepted too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from polyseme.base.config import Setting
from polyseme.text.config import SplitterName

if TYPE_CHECKING:
    from polyseme.encoders.base import Encoder
    from polyseme.encoders.batch import Sentence
    from polyseme.tasks.base import Task
    from polyseme.text.corpus import Corpus

    AnyModel: TypeAlias = str | Path | Encoder
    AnyTask: TypeAlias = str | Path | Task
    AnyCorpus: TypeAlias = str | Path | Sequence[str | Path] | Corpus
    AnySentence: TypeAlias = Sentence
    FilePath: TypeAlias = str | Path
else:
    AnyModel = AnyTask = AnySentence = str
    AnyCorpus = list[str]
    FilePath = Path

SentencesName = Literal["english", "chinese", "lines"]
StartName = Literal["learned", "zero", "warm", "carry"]
PrecisionName = Literal["fp32", "fp16", "bf16", "int8"]
TrainingPrecision = Literal["fp32", "bf16"]


_MODEL, _COMPUTING = "Model", "Computing"

Model = Annotated[
    AnyModel,
    Setting(
        help="Name of a shipped model (en, zh), or folder, file or Hugging Face Hub id of any other.",
        metavar="MODEL",
        group=_MODEL,
        flags=("-m",),
    ),
]
ModelForText = Annotated[
    AnyModel | None,
    Setting(
        help="Name of a shipped model (en, zh), or folder, file or Hugging Face Hub id of any other.",
        default_text="en; zh if the text is mostly Chinese",
        metavar="MODEL",
        group=_MODEL,
        flags=("-m",),
    ),
]
ModelArgument = Annotated[
    AnyModel,
    Setting(help="Name of a shipped model (en, zh), or folder, file or Hugging Face Hub id of any other.", metavar="MODEL"),
]
OptionsFile = Annotated[
    FilePath | None, Setting(help="The options JSON, if it is not beside the weights.", metavar="FILE", group=_MODEL)
]
VocabularyFile = Annotated[
    FilePath | None, Setting(help="The vocabulary, if it is not beside the weights.", metavar="FILE", group=_MODEL)
]
TokenEmbeddingsFile = Annotated[
    FilePath | None,
    Setting(help="Cached vectors of the vocabulary (HDF5), used instead of the characters.", metavar="FILE", group=_MODEL),
]
Splitter = Annotated[
    SplitterName | None,
    Setting(
        help="How to split text into words.",
        default_text="as the model was trained; whitespace for published models, which do not say",
        group=_MODEL,
    ),
]
SubwordPooling = Annotated[
    Literal["first", "last", "mean"] | None,
    Setting(
        help="Vector of a word in BERT, GPT and the like: that of its first or last subword, or their mean.",
        default_text="as the model says; first for BERT, last for GPT",
        group=_MODEL,
    ),
]
Device = Annotated[
    str | None, Setting(help="cpu, cuda, cuda:1 or mps.", default_text="cpu", metavar="DEVICE", group=_COMPUTING)
]
TrainingDevice = Annotated[
    str | None, Setting(help="cpu or cuda.", default_text="a GPU if there is one", metavar="DEVICE", group=_COMPUTING)
]
Precision = Annotated[
    PrecisionName,
    Setting(
        help="Number format to compute with. fp32 is exact. bf16 and int8 are faster on processors with matrix units; int8 "
        "vectors depend slightly on the batch.",
        group=_COMPUTING,
    ),
]
ComputePrecision = Annotated[
    TrainingPrecision | None,
    Setting(help="Number format to compute with.", default_text="bf16 on a GPU, fp32 on a CPU", group=_COMPUTING),
]
Start = Annotated[
    StartName | None,
    Setting(
        help="Initial state of the language model: learned, zeros, warmed up on full stops, or carried over from the sentence "
        "before.",
        default_text="the model's own",
        group=_COMPUTING,
    ),
]
SplitOnSpaces = Annotated[bool, Setting(help="The text is tokenized: split it at spaces only.")]
Texts = Annotated[Sequence[AnySentence], Setting(help="Sentences; quote each one.", metavar="TEXT")]
SentenceArgument = Annotated[AnySentence, Setting(help="A sentence, in quotes.", metavar="SENTENCE")]
Word = Annotated[str | None, Setting(help="The word to look at.", metavar="WORD", flags=("-w",))]
Position = Annotated[int | None, Setting(help="Or its position in the sentence, from 0.", flags=("-p",))]
Count = Annotated[int, Setting(help="Number of results.", min=1, flags=("-n",))]
Seed = Annotated[
    int,
    Setting(
        help="Seed of the random numbers. The same seed gives the same model on a CPU, and nearly the same on a GPU.",
        min=0,
        group="Training",
    ),
]
CorpusOption = Annotated[
    AnyCorpus,
    Setting(help="Text file, folder or glob (may be repeated); - is standard input.", metavar="SOURCE", flags=("-c",)),
]
OutModel = Annotated[
    FilePath, Setting(help="Folder for the model. A run that is there already is resumed.", metavar="FOLDER", flags=("-o",))
]
AcceptChanges = Annotated[bool, Setting(help="Resume a run under other settings than before.", group="Training")]
CurvePlot = Annotated[
    FilePath | None,
    Setting(help="Draw training loss and dev score over steps: .png, .svg or .pdf (extra plots).", metavar="FILE"),
]
Plot = Annotated[FilePath | None, Setting(help="Draw the result: .png, .svg or .pdf.", metavar="FILE")]
SentencesOption = Annotated[
    SentencesName | None,
    Setting(
        help="How to split text into sentences; lines: one sentence per line.",
        default_text="by the splitter of the model: english, chinese, or lines for whitespace",
        group="Text",
    ),
]
Field = Annotated[
    str | None,
    Setting(
        help="Field of JSON lines, or column of Parquet, that has the text. If given, standard input and .json files are read "
        "as JSON lines.",
        default_text="text",
        metavar="NAME",
        group="Text",
    ),
]
Workers = Annotated[
    int | None, Setting(help="Processes that split text.", default_text="one per core", min=0, group="Computing")
]
