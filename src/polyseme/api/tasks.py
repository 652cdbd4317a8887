"""Train tasks on labelled data, and use them."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from polyseme.api.arguments import AnyTask, CurvePlot, Device, FilePath
from polyseme.api.table_files import TableFolder, folder_for_tables
from polyseme.base.config import Config, Setting
from polyseme.base.display import count, html_table, short
from polyseme.base.errors import PolysemeError, UsageError, arg, nearest
from polyseme.base.options import Option, build, options_of
from polyseme.base.progress import note_if_slow
from polyseme.base.run_config import RunConfig
from polyseme.text.config import SplitterName
from polyseme.text.labelled.dataset_files import is_dataset
from polyseme.training.run_status import number_of_epochs

if TYPE_CHECKING:
    from polyseme.encoders.base import Encoder
    from polyseme.studies.folds import CrossValidation
    from polyseme.tasks.base import Task
    from polyseme.tasks.error_analysis import ErrorReport
    from polyseme.tasks.fit import FitResult
    from polyseme.text.words import Splitter

    Encoders: TypeAlias = str | Path | Encoder | Sequence[str | Path | Encoder]
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
    Setting(help="Labelled data to select the best network by.", default_text="a random tenth of the data", metavar="FILE"),
]
TestData = Annotated[FilePath | None, Setting(help="Labelled data to score the best network on.", metavar="FILE")]
Folds = Annotated[
    int | None,
    Setting(
        help="Cross-validate: divide the data into N folds and train N times, into OUT/fold-1 and so on; each fold is the test "
        "data once. OUT itself gets the scores, the predictions for all examples (predictions.jsonl) and no model.",
        default_text="no cross-validation",
        min=2,
        group="Training",
    ),
]
EncoderNames = Annotated[
    Encoders,
    Setting(
        help="none, or models joined by +: en, zh, folders, Hub ids, files of word vectors (vectors.bin+en).",
        default_text="en; zh for Chinese; none for scripts that neither has read",
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
        default_text="as the first encoder does; english without one; characters or each-character for Chinese by characters",
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
TaskFolder = Annotated[
    AnyTask,
    Setting(help="Folder of a trained task, by `polyseme train`; classifiers joined by + are combined.", metavar="TASK"),
]
LabelledData = Annotated[FilePath, Setting(help="Labelled data, in the format of the training data.", metavar="DATA")]
ErrorCount = Annotated[int, Setting(help="Number of the worst errors to show; equal ones count as one.", min=0)]
LAYOUT = ("column", "word_column", "text", "second", "label", "source", "target", "header", "format", "strict")
"""Settings that say how a file is laid out: an evaluated file may differ in them from the training data."""
_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class TrainedTask:
    """A trained task, and how its training went."""

    fit: FitResult
    out: Path
    waited: float = 0.0
    """Seconds of this call, in which the frozen layers are computed and the scores, too."""

    @property
    def task(self) -> Task:
        """The task, ready to predict."""
        return self.fit.task

    @property
    def stopped_by(self) -> str | None:
        """The signal that interrupted the training."""
        return self.fit.result.stopped_by

    def plot(self, path: FilePath) -> None:
        """Draw training loss and dev score over steps, beside the baselines, into a png, svg or pdf file."""
        from polyseme.analysis.training_curve import plot_run

        baselines = {} if self.fit.report is None else self.fit.report.baselines("dev")
        plot_run(self.out.expanduser(), path, score=self.task.main_metric, baselines=baselines)

    def to_json(self) -> dict[str, Any]:
        """Plain values for programs."""
        result = self.fit.result
        return {
            "out": str(self.out),
            "task": self.task.kind,
            "main": self.task.main_metric,
            "scores": self.fit.scores,
            "steps": result.steps,
            "best_step": result.best_step,
            "seconds": round(result.seconds, 1),
            "ended": result.ended,
        }

    def __str__(self) -> str:
        result, report = self.fit.result, self.fit.report
        stopped = ", stopped" if result.ended is None else ""
        seconds = max(self.waited, result.seconds)  # a resumed run was trained in earlier calls, too
        time = "" if result.was_finished else f", {seconds:,.0f} s"
        head = f"{self.out}: {self.task.kind}, {count(result.steps, 'step')}{self._best()}{time}{stopped}"
        if report is None:
            return head
        use = f"predict with it: polyseme predict {shlex.quote(str(self.out))} --input FILE"
        return f"{head}\n{report}\n\n{use}"

    def _best(self) -> str:
        """Return which epoch the network is of, unless it is the last; of less than an epoch, the step."""
        result = self.fit.result
        if result.best_step in (None, result.steps):
            return ""
        if not result.epochs:
            return f", best after {result.best_step:,}"
        best = result.epochs * (result.best_step or 0) / result.steps
        return f", best: epoch {number_of_epochs(best)} of {number_of_epochs(result.epochs)}"

    def _repr_html_(self) -> str:
        return html_table([str(self)], []) if self.fit.report is None else self.fit.report._repr_html_()


def train(
    task: TaskName,
    data: TrainData,
    *,
    out: OutTask,
    dev: DevData = None,
    test: TestData = None,
    folds: Folds = None,
    encoder: EncoderNames | None = None,
    splitter: TaskSplitter = None,
    word_list: WordList = None,
    cache: CacheFolder = None,
    plot: CurvePlot = None,
    **settings: Any,
) -> Task | CrossValidation:
    """Train a task on labelled data, and return it ready to predict.

    `settings`: those of the task (`polyseme train TASK --help` lists them) and of the run. `out` keeps the task for
    `load_task`, and its scores in `result.json`. After a stop or a crash the same call resumes the training. `folds`: train as
    many times for a cross-validation, and return its scores; its `predictions` is the file with those for all examples.

    >>> import polyseme                                                                         # doctest: +SKIP
    >>> tagger = polyseme.train("ner", "train.conll", dev="dev.conll", out="my-tagger")         # doctest: +SKIP
    >>> tagger.predict(["Ann lives in Paris ."])                                                # doctest: +SKIP
    """
    more: dict[str, Any] = {"splitter": splitter, "word_list": word_list, "cache": cache, "plot": plot, **settings}
    result = run_training(task, data=data, out=out, dev=dev, test=test, folds=folds, encoder=encoder, **more)
    if not isinstance(result, TrainedTask):
        if result.stopped_by is not None:
            raise KeyboardInterrupt(f"stopped after {count(len(result.folds), 'fold')}; the same call resumes the training")
        return result
    if result.stopped_by is not None:
        raise KeyboardInterrupt(f"stopped at step {result.fit.result.steps}; the same call resumes the training")
    return result.task


def run_training(
    task: TaskName,
    *,
    data: TrainData,
    out: OutTask,
    dev: DevData = None,
    test: TestData = None,
    folds: Folds = None,
    encoder: EncoderNames | None = None,
    splitter: TaskSplitter = None,
    word_list: WordList = None,
    cache: CacheFolder = None,
    plot: CurvePlot = None,
    **settings: Any,
) -> TrainedTask | CrossValidation:
    """Train a task on labelled data, and return how the training went."""
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # large pages; on a CPU small ones cost a fifth of a step
    from polyseme.studies.train import DataFiles, TaskJob

    begun = time.monotonic()
    if any(map(is_dataset, (data, dev, test))):
        names, given = {"data": data, "dev": dev, "test": test}, {"out": out, "folds": folds, "encoder": encoder, "plot": plot}
        given |= {"splitter": splitter, "word_list": word_list, "cache": cache, **settings}
        with folder_for_tables() as folder:
            return _with_names(run_training(task, **folder.files(task, names, given)), folder)
    check_data(data=data, **{name: each for name, each in {"dev": dev, "test": test}.items() if each is not None})
    run, options = _split_run(settings)
    chosen = _splitter(splitter, word_list)
    job = TaskJob(task, DataFiles(data, dev, test), out, encoder, splitter=chosen, cache=cache, options=options)
    if plot is not None:
        from polyseme.analysis.plots import check_plot

        check_plot(plot)
    if folds is not None:
        from polyseme.studies.folds import cross_validate

        if plot is not None:
            raise UsageError(f"{arg('plot')} draws one run: leave it out with {arg('folds')}")

        return cross_validate(job, folds, run.run(), accept_changes=run.accept_changes, notify=_log.warning)
    fitted = job.train(run.run(), accept_changes=run.accept_changes, notify=_log.warning)
    trained = TrainedTask(fitted, Path(out), time.monotonic() - begun)
    trained.task.report = trained.fit.report
    if plot is not None:
        trained.plot(plot)
    return trained


def _with_names(trained: TrainedTask | CrossValidation, folder: TableFolder) -> TrainedTask | CrossValidation:
    """The same, with a report that names arguments where it has files of the folder."""
    if not isinstance(trained, TrainedTask) or (report := trained.fit.report) is None or report.errors is None:
        return trained
    report = dataclasses.replace(report, errors=folder.named_report(report.errors))
    trained.task.report = report
    return dataclasses.replace(trained, fit=dataclasses.replace(trained.fit, report=report))


def check_data(**data: Any) -> None:
    """Raise an error if labelled data, by the name of its argument, is neither a path nor a table."""
    for name, each in data.items():
        if not isinstance(each, str | Path):
            size = f" ({count(len(each), 'value')})" if isinstance(each, list | tuple | dict) else ""
            given = "None" if each is None else f"of type {type(each).__name__}{size}"
            what = "the path of a file with labelled data, a Dataset or a data frame"
            raise UsageError(f"{arg(name)} is {given}; expected {what} (pandas.DataFrame makes one from rows)")


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

    Classifiers whose folders are joined by + predict together: the mean of their probabilities.

    >>> import polyseme                                              # doctest: +SKIP
    >>> polyseme.load_task("my-tagger").predict(["Ann is here ."])   # doctest: +SKIP
    """
    if not isinstance(path, str | Path):
        raise UsageError(f"the task is {short(repr(path))}; expected its folder, which `polyseme train` writes")
    with note_if_slow(f"loading {path} ..."):
        return _loaded_task(path, device)


def _loaded_task(path: str | Path, device: str | None) -> Task:
    from polyseme.base.run import Run
    from polyseme.tasks import folder
    from polyseme.tasks.ensemble import combine_tasks
    from polyseme.tasks.finished_run import is_unfinished
    from polyseme.tasks.task_info import stored_report

    chosen = Run.from_environment(device=device or "cpu").device
    names = [path] if "+" not in str(path) or Path(path).expanduser().exists() else str(path).split("+")
    folders = [Path(name).expanduser() for name in names]
    tasks = [folder.load(each, device=chosen) for each in folders]
    for task, each in zip(tasks, folders, strict=True):
        if is_unfinished(each):
            _log.warning("%s: its training is not finished; this is the best network so far", each)
        else:
            with contextlib.suppress(PolysemeError, KeyError):  # scores are not needed to predict
                task.report = stored_report(each)
    return tasks[0] if len(tasks) == 1 else combine_tasks(tasks)


def loaded_task(task: AnyTask, device: str | None = None) -> Task:
    """The task itself, loaded if it is a folder."""
    return load_task(task, device=device) if task is None or isinstance(task, str | Path) else task


# ---- use


def evaluate(
    task: TaskFolder, data: LabelledData, *, errors: ErrorCount = 10, device: Device = None, **settings: Any
) -> ErrorReport:
    """Score a trained task on a file, and report the confusion of labels and the worst errors.

    The worst errors of a classifier are its most confident wrong answers; of a tagger, the texts with the most wrong spans or
    tags; of roles, the predicates with the most wrong arguments; of reading, the answers that share least with the right ones.
    A label that the task has not learned is reported with its line, and counts as wrong. Files are read and texts generated as
    in training, unless options say otherwise.

    >>> import polyseme                                            # doctest: +SKIP
    >>> polyseme.evaluate("my-tagger", "test.conll")               # doctest: +SKIP
    """
    from polyseme.tasks.error_analysis import unknown_labels_message
    from polyseme.tasks.leakage import leak_message, read_text_hashes

    if unknown := [name for name in settings if name not in evaluation_options()]:
        arguments = [*evaluation_options(), "errors", "device"]
        raise UsageError(f"evaluate has no option {arg(unknown[0])}{nearest(unknown[0], arguments)}")
    if not is_dataset(data):
        check_data(data=data)
    trained = loaded_task(task, device)
    if is_dataset(data):
        with folder_for_tables() as folder:
            given = folder.files(trained.kind, {"data": data}, settings)
            return folder.named_report(evaluate(trained, errors=errors, **given))
    trained = trained.sharing_weights()  # the options are for this call alone
    trained.set_data_options({name: value for name, value in settings.items() if name in LAYOUT})
    trained.set_decoding({name: value for name, value in settings.items() if name not in LAYOUT})
    known = read_text_hashes(Path(task).expanduser()) if isinstance(task, str | Path) else None
    report = trained.error_report(data, errors=errors, known=known)
    if report.leaked:
        _log.warning("%s: %s", data, leak_message(report.leaked, report.examples))
    if report.unknown_labels:
        _log.warning("%s", unknown_labels_message(report.unknown_labels, data))
    return report


def decoding_options() -> dict[str, Option]:
    """The options of generation, whose defaults are those of training."""
    from polyseme.tasks.generation_config import DecodingConfig

    return _as_trained(options_of({"decoding": DecodingConfig()}).values())


def evaluation_options() -> dict[str, Option]:
    """The options of `LAYOUT` and those of generation; the defaults are those of training."""
    from polyseme.tasks.registry import TASKS, task_config_class

    data = [option for name in TASKS for option in options_of({"task": task_config_class(name)()}).values()]
    decoding = {name: option for name, option in decoding_options().items() if name != "num_return_sequences"}
    return _as_trained(option for option in data if option.name in LAYOUT) | decoding


def _as_trained(options: Iterable[Option]) -> dict[str, Option]:
    return {
        option.name: dataclasses.replace(
            option, default=None, declared=dataclasses.replace(option.declared, default_text="as in training")
        )
        for option in options
    }
