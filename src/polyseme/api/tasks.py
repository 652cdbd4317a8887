"""Train tasks on labelled data, and use them."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from polyseme.api.arguments import AnyTask, FilePath
from polyseme.base.config import Config, Setting
from polyseme.base.options import build, options_of
from polyseme.base.run_config import RunConfig
from polyseme.text.config import SplitterName

if TYPE_CHECKING:
    from polyseme.encoders.base import Encoder
    from polyseme.tasks.base import Task
    from polyseme.tasks.fit import FitResult
    from polyseme.text.words import Splitter

    Encoders = str | Path | Encoder | Sequence[str | Path | Encoder]
else:
    Encoders = str

TaskName = Literal[
    "tagging",
    "classification",
    "pairs",
    "choices",
    "roles",
    "reading",
    "coreference",
    "generation",
    "ner",
    "pos",
    "chunking",
    "nli",
    "srl",
    "squad",
    "coref",
]
_FILES = "plain, gzip or xz"
TrainData = Annotated[FilePath, Setting(help=f"Labelled data to train on, {_FILES}.", metavar="FILE", flags=("-d",))]
DevData = Annotated[
    FilePath | None,
    Setting(help="Labelled data to select the best network by.", default_text="the last tenth of the data", metavar="FILE"),
]
TestData = Annotated[FilePath | None, Setting(help="Labelled data to score the best network on.", metavar="FILE")]
EncoderNames = Annotated[
    Encoders,
    Setting(
        help="none, or models joined by +: en, zh, folders, Hugging Face Hub ids, files of word vectors (vectors.bin+en).",
        metavar="MODEL",
        flags=("-e",),
    ),
]
OutTask = Annotated[
    FilePath,
    Setting(help="Folder for the trained task. A run that is there already is resumed.", metavar="FOLDER", flags=("-o",)),
]
TaskSplitter = Annotated[
    SplitterName | None,
    Setting(
        help="How to split raw text into words, in prediction too.",
        default_text="as the first encoder does; english without one",
        group="Text",
    ),
]
WordList = Annotated[
    FilePath | None,
    Setting(help="Words for the unigram splitter, most frequent first, one per line.", metavar="FILE", group="Text"),
]
CacheFolder = Annotated[
    FilePath | None,
    Setting(
        help="Folder for the layers of frozen encoders; several runs can share it.",
        default_text="in the task's folder",
        metavar="FOLDER",
        group="Encoders",
    ),
]
TaskFolder = Annotated[AnyTask, Setting(help="Folder of a trained task, as `polyseme train` wrote it.", metavar="TASK")]
LabelledData = Annotated[FilePath, Setting(help="Labelled data, in the format of the training data.", metavar="DATA")]
ErrorCount = Annotated[int, Setting(help="Number of the worst errors to show.", min=0)]
_log = logging.getLogger(__name__)


def train(
    task: TaskName,
    data: TrainData,
    *,
    out: OutTask,
    dev: DevData = None,
    test: TestData = None,
    encoder: EncoderNames = "en",
    **settings: Any,
) -> Task:
    """Train a task on labelled data, and return it ready to predict.

    `settings`: those of the task (`polyseme train TASK --help` lists them) and of the run. `out` keeps the task for
    `load_task`, and its scores in `result.json`. After a stop or a crash the same call resumes the training.

    >>> import polyseme                                                                         # doctest: +SKIP
    >>> tagger = polyseme.train("ner", "train.conll", dev="dev.conll", out="my-tagger")         # doctest: +SKIP
    >>> tagger.predict(["Ann lives in Paris ."])                                                # doctest: +SKIP
    """
    result = run_training(task, data=data, out=out, dev=dev, test=test, encoder=encoder, **settings)
    if result.stopped_by is not None:
        raise KeyboardInterrupt("the training was stopped; the same call resumes it")
    return result.task


def run_training(
    task: TaskName,
    *,
    data: TrainData,
    out: OutTask,
    dev: DevData = None,
    test: TestData = None,
    encoder: EncoderNames = "en",
    splitter: TaskSplitter = None,
    word_list: WordList = None,
    cache: CacheFolder = None,
    **settings: Any,
) -> FitResult:
    """Train a task on labelled data, and return how the training went."""
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # large pages; on a CPU small ones cost a fifth of a step
    from polyseme.studies.train import Files, Job
    from polyseme.tasks.registry import task_class

    run, options = _split_run(settings)
    job = Job(
        task_class(task), Files(data, dev, test), out, encoder, cut=_splitter(splitter, word_list), cache=cache, options=options
    )
    return job.train(run.run(), accept_changes=run.accept_changes, notify=_log.warning)


def training_configs(task: str) -> dict[str, Config]:
    """The configs whose settings `train` takes for a task."""
    from polyseme.tasks.registry import default_configs

    return {**default_configs(task), "run": RunConfig()}


def _split_run(settings: Mapping[str, Any]) -> tuple[RunConfig, dict[str, Any]]:
    """The settings of the run as a config, and the others."""
    names = options_of({"run": RunConfig()})
    run = build({"run": RunConfig()}, {name: value for name, value in settings.items() if name in names}, "training")["run"]
    return run, {name: value for name, value in settings.items() if name not in names}  # type: ignore[return-value]


def _splitter(splitter: str | Splitter | None, word_list: str | Path | None) -> Splitter | None:
    from polyseme.text.words import get_splitter

    if splitter is None and word_list is None:
        return None
    if splitter is not None and not isinstance(splitter, str):
        return splitter
    return get_splitter(splitter or "unigram", word_list)


def load_task(path: str | Path, *, device: str | None = None) -> Task:
    """Load a trained task, ready to predict; `device`: cpu by default.

    >>> import polyseme                                              # doctest: +SKIP
    >>> polyseme.load_task("my-tagger").predict(["Ann is here ."])   # doctest: +SKIP
    """
    from polyseme.base.run import Run
    from polyseme.tasks import folder

    return folder.load(Path(path).expanduser(), device=Run.from_environment(device=device or "cpu").device)


def loaded_task(task: AnyTask, device: str | None = None) -> Task:
    """The task itself, loaded if it is a folder."""
    return load_task(task, device=device) if isinstance(task, str | Path) else task
