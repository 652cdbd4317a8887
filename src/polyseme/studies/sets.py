"""Public labelled data sets by name: their files under `$POLYSEME_DATA/tasks`, their task, and where they come from.

Nothing is downloaded; each entry says who publishes it. Options describe the data (columns, endings of files, classes) and
nothing else: networks and their training have the defaults that every user gets.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from polyseme.base.errors import FormatError, PolysemeError, UsageError, arg, nearest
from polyseme.tasks.registry import task_name
from polyseme.text.labelled.numbered_lines import numbered_lines
from polyseme.text.labelled.parallel import side
from polyseme.text.script import is_chinese_data

VARIABLE = "POLYSEME_DATA"
_LINES = 500  # of a user's file, that tell its language


@dataclass(frozen=True)
class LabelledSet:
    """A labelled data set."""

    title: str
    task: str
    language: Literal["en", "zh"]
    train: str
    test: str
    dev: str | None = None
    """None: a random tenth of the training data."""
    splitter: str | None = None
    """Splitter of raw text; None: the text is tokenized, or the splitter of the language's model is used."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What the task must know of the files."""
    source: str = ""
    own: bool = False
    """Whether the paths are those of a user's files, and not below `$POLYSEME_DATA/tasks`."""

    def files(self) -> dict[str, Path | None]:
        """Return the paths of its files; the error for a missing file says where to get it."""
        if self.own:
            return {name: None if path is None else Path(path).expanduser() for name, path in self._paths().items()}
        root = os.environ.get(VARIABLE)
        if not root:
            raise PolysemeError(f"set {VARIABLE} to the folder whose tasks/ holds {self.title}; it comes from {self.source}")
        found = {name: None if path is None else Path(root, "tasks", path) for name, path in self._paths().items()}
        for path in found.values():
            if path is not None and not all(each.is_file() for each in self._sides(path)):
                raise PolysemeError(f"{path}: no such file; {self.title} comes from {self.source}")
        return found

    def _sides(self, path: Path) -> list[Path]:
        """The file itself, or the two files of parallel text with its name."""
        endings = [self.options[name] for name in ("source", "target") if name in self.options]
        if not endings or path.is_file():
            return [path]
        try:
            return [side(path, ending) for ending in endings]
        except FormatError as error:
            raise PolysemeError(f"{error}; {self.title} comes from {self.source}") from error

    def _paths(self) -> dict[str, str | None]:
        return {"train": self.train, "dev": self.dev, "test": self.test}


SETS = {
    "ner": LabelledSet(
        title="CoNLL-2003 English names", task="tagging", language="en",
        train="ner_conll2003_en/eng.train", dev="ner_conll2003_en/eng.testa", test="ner_conll2003_en/eng.testb",
        source="the CoNLL-2003 shared task; its text is Reuters news, by agreement with NIST",
    ),
    "pos": LabelledSet(
        title="UD English EWT parts of speech", task="tagging", language="en",
        train="pos_ud_english_ewt/en_ewt-ud-train.conllu.gz",
        dev="pos_ud_english_ewt/en_ewt-ud-dev.conllu.gz", test="pos_ud_english_ewt/en_ewt-ud-test.conllu.gz",
        options={"column": "upos"},
        source="https://github.com/UniversalDependencies/UD_English-EWT",
    ),
    "sst5": LabelledSet(
        title="Stanford Sentiment Treebank, five classes", task="classification", language="en",
        train="sst_en/trees.train.txt.gz", dev="sst_en/trees.dev.txt.gz", test="sst_en/trees.test.txt.gz",
        options={"classes": 5},
        source="https://nlp.stanford.edu/sentiment",
    ),
    "nli": LabelledSet(
        title="SICK entailment", task="pairs", language="en",
        train="nli_sick_en/SICK_train.txt", dev="nli_sick_en/SICK_trial.txt", test="nli_sick_en/SICK_test_annotated.txt",
        splitter="english",
        options={"label": "entailment_judgment"},
        source="SemEval-2014 task 1",
    ),
    "srl": LabelledSet(
        title="PropBank roles of the English Web Treebank", task="roles", language="en",
        train="srl_propbank_ewt_en/ewt.train.jsonl.gz",
        dev="srl_propbank_ewt_en/ewt.dev.jsonl.gz", test="srl_propbank_ewt_en/ewt.test.jsonl.gz",
        source="https://github.com/propbank/propbank-release, with the words of UD English EWT 2.2",
    ),
    "squad": LabelledSet(
        title="SQuAD v1.1, 4,000 questions", task="reading", language="en",
        train="rc_squad1.1_subset_en/squad_subset.train.json.gz",
        dev="rc_squad1.1_subset_en/squad_subset.dev.json.gz", test="rc_squad1.1_subset_en/squad_subset.test.json.gz",
        splitter="english",
        source="https://rajpurkar.github.io/SQuAD-explorer; here 1,000 paragraphs of it with 5 questions each",
    ),
    "multi30k": LabelledSet(
        title="Multi30k English to German", task="generation", language="en",
        train="mt_multi30k/train", dev="mt_multi30k/val", test="mt_multi30k/test_2016_flickr",
        splitter="english",
        options={"source": "en", "target": "de"},
        source="https://github.com/multi30k/dataset",
    ),
    "ontogum": LabelledSet(
        title="OntoGUM coreference", task="coreference", language="en",
        train="coref_ontogum_en/ontogum.train.jsonlines.gz",
        dev="coref_ontogum_en/ontogum.dev.jsonlines.gz", test="coref_ontogum_en/ontogum.test.jsonlines.gz",
        source="https://github.com/amir-zeldes/gum, without its Reddit documents, as JSON lines",
    ),
    "litbank": LabelledSet(
        title="LitBank coreference", task="coreference", language="en",
        train="coref_litbank_en/litbank.train.jsonlines.gz",
        dev="coref_litbank_en/litbank.dev.jsonlines.gz", test="coref_litbank_en/litbank.test.jsonlines.gz",
        source="https://github.com/dbamman/litbank as JSON lines: of 100 sorted files each tenth is test, the next dev",
    ),
    "msra": LabelledSet(
        title="MSRA Chinese names", task="tagging", language="zh",
        train="ner_msra_zh/msra.train.bio.gz", test="ner_msra_zh/msra.test.bio.gz",
        source="the SIGHAN 2006 bakeoff (Microsoft Research Asia)",
    ),
    "resume": LabelledSet(
        title="Resume Chinese names", task="tagging", language="zh",
        train="ner_resume_zh/train.char.bmes", dev="ner_resume_zh/dev.char.bmes", test="ner_resume_zh/test.char.bmes",
        source="https://github.com/jiesutd/LatticeLSTM",
    ),
    "chnsenticorp": LabelledSet(
        title="ChnSentiCorp reviews", task="classification", language="zh",
        train="chnsenticorp_zh/train.tsv.gz", dev="chnsenticorp_zh/dev.tsv.gz", test="chnsenticorp_zh/test.tsv.gz",
        source="ChnSentiCorp, the version of ERNIE (9,600 / 1,200 / 1,200)",
    ),
}  # fmt: skip
"""By name, as in `polyseme compare --tasks`."""


@dataclass(frozen=True)
class SetGroup:
    """Data sets whose mean score is reported; a task is trained on each."""

    title: str
    members: tuple[str, ...]


GROUPS = {"coref": SetGroup("coreference, mean of both sets", ("ontogum", "litbank"))}
"""By name, as in `polyseme compare --tasks`."""


def labelled_set(name: str) -> LabelledSet:
    """Return the data set of that name, or that of a user's own files: TASK:TRAIN:DEV, or TASK:TRAIN:DEV:TEST.

    >>> labelled_set("ner").task, labelled_set("pos:my-train.conllu:my-dev.conllu").train
    ('tagging', 'my-train.conllu')
    """
    if name in SETS:
        return SETS[name]
    task, *files = name.split(":")
    if not files:
        own = "or your own files as TASK:TRAIN:DEV[:TEST], such as tagging:train.conll:dev.conll"
        raise UsageError(f"there is no labelled data set called {name!r}{nearest(name, [*SETS, *GROUPS])}; {own}")
    if len(files) not in (2, 3):
        raise UsageError(f"{arg('tasks')} has {name!r}; expected TASK:TRAIN:DEV or TASK:TRAIN:DEV:TEST, with paths of files")
    return LabelledSet(
        title=f"{task} of {Path(files[0]).name}",
        task=task_name(task),
        language="zh" if _is_chinese(files[0]) else "en",
        train=files[0],
        dev=files[1],
        test=files[-1],
        own=True,
    )


def _is_chinese(path: str) -> bool:
    """Whether a user's file is in Chinese; a file that cannot be read is reported when it is used."""
    try:
        lines = [line for _, line in itertools.islice(numbered_lines(path), _LINES)]
    except (PolysemeError, OSError):
        return False
    return is_chinese_data(lines)


def members(name: str) -> tuple[str, ...]:
    """Return the data sets of a name: itself, or those of its group.

    >>> members("ner"), members("coref")
    (('ner',), ('ontogum', 'litbank'))
    """
    return GROUPS[name].members if name in GROUPS else (name,)


def title_of(name: str) -> str:
    return GROUPS[name].title if name in GROUPS else labelled_set(name).title
