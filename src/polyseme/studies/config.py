"""Settings of comparisons. Imports no PyTorch, so that `--help` stays fast."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyseme.base.config import Config, setting
from polyseme.base.errors import UsageError, arg, nearest

METHODS = ("ngram", "nnlm", "word2vec", "fasttext", "glove", "taglm", "elmo", "ulmfit", "gpt", "bert")
"""Pre-training methods by the year of their publication."""
NONE = "none"
"""The row without encoders."""
WORD2VEC, ELMO = "word2vec", "elmo"
"""In a row: the word vectors and the shipped model of the data set's language."""
BASELINE = "word2vec if it is a row, else the first row"
_DATA, _ENCODERS, _COMPUTING = "Data", "Encoders", "Computing"
_SCOPED = "[SCOPE:]NAME=VALUE"


@dataclass(frozen=True, kw_only=True)
class StudyConfig(Config):
    """Settings that comparisons and lineages share."""

    seeds: tuple[int, ...] = setting(
        (1, 2, 3), "Random seeds; each is an experiment of its own.", min=0, metavar="N,...", group="Training"
    )
    options: tuple[str, ...] = setting(
        (),
        "Training option for all experiments (epochs=5), one data set (ner:epochs=5), one row (bert:epochs=5) or fine-tuned "
        "rows (finetune:epochs=5). May be repeated; each data set has its own defaults.",
        option="option",
        metavar=_SCOPED,
        repeat=True,
        group="Training",
    )
    jobs: int = setting(1, "Experiments to run in parallel.", min=1, flags=("-j",), group=_COMPUTING)
    device: str | None = setting(None, "cpu or cuda.", default_text="a GPU if there is one", metavar="DEVICE", group=_COMPUTING)
    plot: bool = setting(False, "Draw the scores and the costs too (needs the extra plots).")

    def scoped_options(self) -> dict[str, Any]:
        """Return the options by name with scope, such as `ner:epochs`."""
        return dict(map(parse_option, self.options))


@dataclass(frozen=True, kw_only=True)
class CompareConfig(StudyConfig):
    """Data sets times encoders times seeds."""

    tasks: tuple[str, ...] = setting(
        help="Labelled data sets by name; coref is the mean of two.", metavar="NAME,...", group=_DATA
    )
    encoders: tuple[str, ...] = setting(
        (),
        "Rows of the table: none, or encoders joined by +, with :finetune at the end to fine-tune them. word2vec and elmo are "
        "those of the data set's language.",
        default_text="none,en (zh for Chinese data); none,word2vec,word2vec+elmo with --vectors",
        metavar="ROW,...",
        group=_ENCODERS,
    )
    vectors: tuple[str, ...] = setting(
        (), "Word vectors of a language, for word2vec (may be repeated).", metavar="LANGUAGE=FILE", repeat=True, group=_ENCODERS
    )
    models: tuple[str, ...] = setting(
        (),
        "Short name of a model, for the rows (may be repeated).",
        option="model",
        metavar="NAME=FOLDER",
        repeat=True,
        group=_ENCODERS,
    )
    baseline: str | None = setting(None, "Row to compare with.", default_text=BASELINE, metavar="ROW")
    train_fractions: tuple[float, ...] = setting(
        (1.0,), "Fractions of the training data; several give a learning curve.", above=0, max=1, metavar="P,...", group=_DATA
    )

    def problems(self) -> Iterable[str]:
        yield from empty_problems(self, "tasks", "seeds", "train_fractions", *(["encoders"] if self.encoders else []))
        if self.encoders:
            yield from baseline_problems(self.baseline, self.encoders)
        named = {text.partition("=")[0] for text in self.models}
        needing = [row for row in self.encoders if WORD2VEC in row.removesuffix(":finetune").split("+")]
        if needing and not self.vectors and WORD2VEC not in named:
            yield f"the row {needing[0]!r} needs word vectors: give {arg('vectors', 'en=FILE')}"

    def rows(self, languages: Collection[str]) -> tuple[str, ...]:
        """The rows of the table, for data sets in some languages.

        >>> CompareConfig(tasks=("ner",)).rows({"en"}), CompareConfig(tasks=("msra",), vectors=("zh=vectors.bin",)).rows({"zh"})
        (('none', 'en'), ('none', 'word2vec', 'word2vec+elmo'))
        """
        if self.encoders:
            return tuple(dict.fromkeys(self.encoders))
        shipped = next(iter(languages)) if len(languages) == 1 else ELMO
        return (NONE, WORD2VEC, f"{WORD2VEC}+{ELMO}") if self.vectors else (NONE, shipped)

    def vector_files(self) -> dict[str, str]:
        return dict(_existing("vectors", text, "a language and a file, such as en=vectors.bin") for text in self.vectors)

    def model_paths(self) -> dict[str, str]:
        paths = dict(_existing("model", text, "a short name and a model, such as bert=my-bert") for text in self.models)
        for name in paths:
            if name == NONE or set(name) & set("+:,/"):
                raise UsageError(f"{arg('model')} has the name {name!r}: choose another, without + : , /")
        return paths


@dataclass(frozen=True, kw_only=True)
class LineageConfig(StudyConfig):
    """All pre-training methods on one text, and a comparison of them."""

    minutes: float = setting(
        10.0,
        "Minutes of pre-training for each neural method; n-gram models and word vectors have their default epochs.",
        above=0,
        group="Budget",
    )
    methods: tuple[str, ...] = setting(METHODS, "Methods to pre-train.", metavar="NAME,...", group="Model")
    pretrain: tuple[str, ...] = setting(
        (),
        "Setting of `polyseme pretrain METHOD`, such as elmo:size=tiny; without METHOD, of all that have it (may be repeated).",
        metavar="[METHOD:]NAME=VALUE",
        repeat=True,
        group="Model",
    )
    held_out: str | None = setting(
        None,
        "Text for the perplexities of all language models.",
        default_text="held-out text of each",
        metavar="FILE",
        group=_DATA,
    )
    tasks: tuple[str, ...] = setting((), "Labelled data sets, as in `polyseme compare`.", metavar="NAME,...", group=_DATA)
    encoders: tuple[str, ...] = setting(
        (),
        "Rows of the table, as in `polyseme compare`, such as bert:finetune.",
        default_text="none, and every method",
        metavar="ROW,...",
        group=_ENCODERS,
    )
    baseline: str | None = setting(None, "Row to compare with.", default_text=BASELINE, metavar="ROW")

    @property
    def rows(self) -> tuple[str, ...]:
        return self.encoders or (NONE, *self.methods)

    def problems(self) -> Iterable[str]:
        yield from empty_problems(self, "methods", "seeds")
        for method in self.methods:
            if method not in METHODS:
                yield f"{arg('methods')} has {method!r}, which is not a method{nearest(method, METHODS)}"
        yield from baseline_problems(self.baseline, self.rows)
        given = {"encoders": self.encoders, "baseline": self.baseline, "option": self.options, "plot": self.plot}
        if not self.tasks and (idle := [arg(name) for name, value in given.items() if value]):
            yield f"{', '.join(idle)}: belongs to the comparison, which needs {arg('tasks')}"


def empty_problems(config: Config, *names: str) -> Iterable[str]:
    """Yield a problem for each list without entries."""
    for name in names:
        if not getattr(config, name) or "" in getattr(config, name):
            yield f"{arg(name)} is empty: give at least one, or several divided by commas"


def baseline_problems(baseline: str | None, rows: tuple[str, ...]) -> Iterable[str]:
    """Yield a problem if the baseline is no row."""
    if baseline is not None and baseline not in rows:
        yield f"{arg('baseline', baseline)} is not a row; the rows are {', '.join(rows)}"


def parse_option(text: str) -> tuple[str, Any]:
    """Return the name of an option with its scope, and its value: JSON, or else a string.

    >>> parse_option("ner:epochs=15"), parse_option("norm=bilm")
    (('ner:epochs', 15), ('norm', 'bilm'))
    """
    name, equals, value = text.partition("=")
    if not equals or not all(name.split(":")):
        raise UsageError(f"{arg('option')} is {text!r}; expected a name and a value, such as epochs=5 or ner:epochs=5")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _existing(argument: str, text: str, expected: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals or not name:
        raise UsageError(f"{arg(argument)} is {text!r}; expected {expected}")
    if not Path(path).expanduser().exists():
        raise UsageError(f"{arg(argument)} is {text!r}, but {path} does not exist")
    return name, str(Path(path).expanduser())
