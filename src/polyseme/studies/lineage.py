"""Pre-train all methods on one text, each in its own process, and compare them.

    out/models/METHOD            the model; it has `pretraining.json` when its training is finished
    out/models/METHOD.log        output of its training; METHOD.json: its arguments
    out/text                     the encoded text, which methods with the same words share

Methods run one after another, because a budget in minutes assumes the whole machine. Run again after a stop, finished models
stay and others are resumed; a method that fails stops no other and is reported at the end.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from polyseme.analysis.plots import check_plot
from polyseme.base import format1
from polyseme.base.errors import PolysemeError, UsageError, arg, nearest
from polyseme.base.files import write_text
from polyseme.base.hashing import hash_bytes
from polyseme.base.options import options_of
from polyseme.base.run import Run
from polyseme.base.signals import GracefulStop
from polyseme.pretraining.cost import Cost, read_cost
from polyseme.pretraining.methods import get_method, method_options
from polyseme.studies.compare import Study
from polyseme.studies.config import METHODS, LineageConfig
from polyseme.studies.experiment import quick_fingerprint
from polyseme.studies.finetuning import without_mode
from polyseme.studies.processes import Process, failure_reason, last_line, run_parallel, start_process
from polyseme.studies.report import ComparisonResult
from polyseme.text.config import TextConfig
from polyseme.text.files.sources import Source

NO_LANGUAGE_MODELS = ("word2vec", "fasttext", "glove", "bert")
"""Methods whose models give a text no probability."""
NOT_TRAINABLE = ("ngram",)
"""Methods whose models have no weights that a task could train."""
WORD_VECTORS = ("word2vec", "fasttext", "glove")
"""Methods whose models are word vectors, which cannot be fine-tuned under a head alone."""
DEFAULTS: Mapping[str, Mapping[str, str]] = {method: {"vocabulary-size": "50000"} for method in ("ngram", "nnlm", "ulmfit")}
"""Options that differ from those of `polyseme pretrain`: language models over words get the vocabulary size of ELMo."""
BUDGETS = ("epochs", "minutes", "words", "steps")
READING = ("--sentences", "--field")
"""Options of reading text, which a perplexity needs too; the model knows the splitter."""
PROGRAM = (sys.executable, "-m", "polyseme")
Notify = Callable[[str], None]


@dataclass(frozen=True)
class Lineage:
    """What is pre-trained, on what, and where it is written."""

    out: Path
    corpus: tuple[str, ...]
    methods: tuple[str, ...] = METHODS
    arguments: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Arguments of `polyseme pretrain METHOD`, besides the text and the folder (`arguments_of`)."""
    held_out: Path | None = None
    """Text for the perplexities of all language models; None: each has that of its own held-out text."""
    device: str | None = None
    """Device for perplexities; None: a GPU if there is one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "out", Path(self.out).expanduser())

    def folder(self, method: str) -> Path:
        return self.out / "models" / method

    def done(self, method: str) -> bool:
        return read_cost(self.folder(method)) is not None

    @property
    def models(self) -> dict[str, str]:
        """The folders of the finished models, by method."""
        return {method: str(self.folder(method)) for method in self.methods if self.done(method)}

    def costs(self) -> list[tuple[str, Cost | None]]:
        """Return what each model cost, with its perplexity on the held-out text."""
        costs: list[tuple[str, Cost | None]] = []
        for method in self.methods:
            cost, perplexity = read_cost(self.folder(method)), self._perplexity(method)
            if cost is not None and self.held_out is not None:
                cost = dataclasses.replace(cost, scores={} if perplexity is None else {"perplexity": perplexity})
            costs += [] if cost is None else [(method, cost)]
        return costs

    def run(self, notify: Notify = print) -> dict[str, Path]:
        """Train what is not finished, and measure perplexities; return what failed, with its log.

        Ctrl-C or SIGTERM stops it: the running method writes a checkpoint, and the same call resumes it.
        """
        for method in filter(self.done, self.methods):
            then, now = self._called(method), self._call(method)
            if then is not None and not _same_arguments(then, now):
                notify(f"{method}: kept as it was trained ({' '.join(then)} then, {' '.join(now)} now)")
        with GracefulStop() as stop:
            left = [method for method in self.methods if not self.done(method)]
            for method, code in run_parallel(left, self._start, stop):
                notify(self._summary(method, code))
            measured = [method for method in self.methods if self.done(method) and self._needs_perplexity(method)]
            for method, code in run_parallel(measured, self._start_perplexity, stop) if stop.name is None else ():
                perplexity, log = self._perplexity(method), self._perplexity_log(method)
                end = f"failed: {failure_reason(log, code)} (see {log})" if perplexity is None else f"{perplexity:,.2f}"
                notify(f"{method}: perplexity of {self.held_out} {end}")
        stop.check()
        read = {method: cost.text_words for method, cost in self.costs() if cost is not None and cost.text_words}
        if len(set(read.values())) > 1:
            counts = ", ".join(f"{method} {count:,}" for method, count in read.items())
            notify(
                f"the models cannot be compared, because the text changed after the first were trained (words: {counts}): "
                f"train all of them in another folder ({arg('out')})"
            )
        failed = {method: self.log(method) for method in self.methods if not self.done(method)}
        unmeasured = (method for method in self.methods if method not in failed and self._needs_perplexity(method))
        return failed | {f"perplexity of {method}": self._perplexity_log(method) for method in unmeasured}

    # ---- training

    def _call(self, method: str) -> list[str]:
        texts = [word for source in self.corpus for word in ("--corpus", source)]
        return [*texts, *self.arguments.get(method, ())]

    def _called(self, method: str) -> list[str] | None:
        path = self._arguments_file(method)
        call: list[str] | None = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
        return call

    def _arguments_file(self, method: str) -> Path:
        return self.out / "models" / f"{method}.json"

    def log(self, method: str) -> Path:
        return self.out / "models" / f"{method}.log"

    def _start(self, method: str) -> Process:
        call = self._call(method)
        self.folder(method).parent.mkdir(parents=True, exist_ok=True)
        write_text(self._arguments_file(method), json.dumps(call, ensure_ascii=False) + "\n")
        folders = ["--out", str(self.folder(method)), "--shards", str(self.out / "text")]
        return start_process([*PROGRAM, "pretrain", method, *folders, *call], self.log(method))

    def _summary(self, method: str, code: int) -> str:
        cost = read_cost(self.folder(method))
        if cost is None:
            return f"{method}: failed: {failure_reason(self.log(method), code)} (see {self.log(method)})"
        return f"{method}: {cost.words:,} words, {cost.seconds:,.0f} s"

    # ---- perplexity

    def _needs_perplexity(self, method: str) -> bool:
        return self.held_out is not None and method not in NO_LANGUAGE_MODELS and self._perplexity(method) is None

    def _perplexity_log(self, method: str) -> Path:
        assert self.held_out is not None
        held = self.held_out.stat()
        model = quick_fingerprint(self.folder(method))
        text = f"{self.held_out.resolve()} {held.st_size} {held.st_mtime_ns} {model}"
        key = hash_bytes(" ".join([text, *self._reading(method)]).encode())[:8]
        return self.out / "models" / f"{method}-perplexity-{key}.log"

    def _start_perplexity(self, method: str) -> Process:
        device = str(Run.from_environment(device=self.device).device)
        call = ["perplexity", str(self.held_out), "--model", str(self.folder(method)), "--device", device, "--json"]
        return start_process([*PROGRAM, *call, *self._reading(method)], self._perplexity_log(method))

    def _reading(self, method: str) -> list[str]:
        """How its text was read when it was trained, which may be before this call."""
        then = self._called(method) or self._call(method)
        return [word for name, value in pairwise(then) if name in READING for word in (name, value)]

    def _perplexity(self, method: str) -> float | None:
        """The measured perplexity of the held-out text; None: not yet."""
        if self.held_out is None:
            return None
        try:
            found: Any = json.loads(last_line(self._perplexity_log(method)))["perplexity"]
        except (ValueError, KeyError, TypeError):
            return None
        return float(found["mean"] if isinstance(found, dict) else found)


def run_lineage(config: LineageConfig, corpus: Sequence[str], out: str | Path, *, notify: Notify = print) -> ComparisonResult:
    """Pre-train the methods on a text, compare them on data sets, and write the tables of what is finished."""
    line = _lineage(config, corpus, Path(out))
    study = _study(config, line)
    if config.plot:
        check_plot("table.png")
    problems: list[str] = []
    try:
        if failed := line.run(notify=notify):
            logs = ", ".join(f"{what} ({log})" for what, log in failed.items())
            problems.append(f"failed, with their logs: {logs}; the same command tries them again")
        if study is not None:
            _finished(study, line).run(jobs=config.jobs, device=config.device, notify=notify)
    except PolysemeError as error:  # of experiments, besides what failed before
        problems.append(str(error))
    except BaseException:
        _notify_result(_report(config, line, study), notify)
        raise
    result = _report(config, line, study)
    if problems:
        _notify_result(result, notify)
        raise PolysemeError("; ".join(problems))
    if config.held_out is None and "ngram" in config.methods:
        notify(f"the n-gram model was trained on all the text: give {arg('held_out')} for its perplexity")
    return result


def _lineage(config: LineageConfig, corpus: Sequence[str], out: Path) -> Lineage:
    if "-" in corpus:
        raise UsageError(f"{arg('corpus', '-')}: every method reads the text again; write it to a file and give that")
    Source(list(corpus))  # a missing text is reported once, and not by every method
    defaults: dict[str, str | None] = {"minutes": f"{config.minutes:g}"}
    defaults |= {} if config.device is None else {"device": config.device}
    methods = tuple(dict.fromkeys(config.methods))
    held_out = None if config.held_out is None else Path(config.held_out)
    if held_out is not None and not held_out.is_file():
        raise UsageError(f"{arg('held_out', config.held_out)}: there is no such file")
    arguments = arguments_of(methods, config.pretrain, known_options(methods), defaults)
    return Lineage(out, tuple(corpus), methods, arguments, held_out, config.device)


def known_options(methods: Sequence[str]) -> dict[str, set[str]]:
    """Return the options of `polyseme pretrain` for each method, as flags, but for those that a lineage gives itself."""
    text = set(options_of({"text": TextConfig()})) - {"shards"}
    names = {method: {*method_options(method), *text, *get_method(method).call_options} for method in methods}
    return {method: {name.replace("_", "-") for name in names[method]} for method in methods}


def _study(config: LineageConfig, line: Lineage) -> Study | None:
    """The comparison of all methods, checked before any is trained; None: there are no data sets."""
    check_rows(config.rows)
    if not config.tasks:
        return None
    models = {method: str(line.folder(method)) for method in line.methods}
    options, seeds = config.scoped_options(), tuple(dict.fromkeys(config.seeds))
    study = Study(line.out, config.tasks, tuple(dict.fromkeys(config.rows)), seeds, options=options, models=models)
    study.check()
    study.check_files()
    return study


def _finished(study: Study, line: Lineage) -> Study:
    """The study without rows of methods that failed."""
    return study.without(set(study.models) - set(line.models))


def _report(config: LineageConfig, line: Lineage, study: Study | None) -> ComparisonResult:
    """Write the tables and plots of what is finished."""
    result = ComparisonResult(line.out, [])
    if study is not None:
        study, baseline = _finished(study, line), config.baseline or "word2vec"
        result = study.report(baseline if baseline in study.rows else None, plot=config.plot, costs=line.costs())
    if not result and line.costs():
        result = ComparisonResult(line.out, [], line.costs())
        write_text(line.out / "table.md", result.as_markdown())
    return result


def _notify_result(result: ComparisonResult, notify: Notify) -> None:
    if result:
        notify(str(result))


def _same_arguments(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether the arguments of two calls are equal; the old ones may have the names of format 1.

    >>> _same_arguments(["--hidden", "3"], ["--hidden-size", "3"]), _same_arguments(["--dim", "3"], ["--dim", "4"])
    (True, False)
    """
    return len(old) == len(new) and all(
        before == after or after in format1.new_words(before) for before, after in zip(old, new, strict=True)
    )


def check_rows(rows: Collection[str]) -> None:
    """Raise an error for rows that cannot be fine-tuned."""
    for row in rows:
        plain = without_mode(row)
        names = set(plain.split("+"))
        if plain != row and (found := names & set(NOT_TRAINABLE)):
            raise UsageError(f"{arg('encoders')} has {row!r}, but {found.pop()} has no weights to fine-tune: give {plain!r}")
        if plain != row and names <= set(WORD_VECTORS):
            raise UsageError(f"{arg('encoders')} has {row!r}, but word vectors alone cannot be fine-tuned: give {plain!r}")


def arguments_of(
    methods: Sequence[str], options: Sequence[str], known: Mapping[str, Collection[str]], defaults: Mapping[str, str | None]
) -> dict[str, list[str]]:
    """Return the arguments of each method, from options such as `elmo:size=tiny`, or without a method `vocabulary=10000`.

    `known`: the options of each method. An option without a method, or of `defaults`, goes to all methods that have it. A given
    budget replaces the default one. An option without a value is a switch.

    >>> arguments_of(["elmo", "glove"], ["elmo:size=tiny", "glove:dim=20"], {"elmo": ["size", "minutes"], "glove": ["dim"]},
    ...              {"minutes": "2"})
    {'elmo': ['--minutes', '2', '--size', 'tiny'], 'glove': ['--dim', '20']}
    """
    given: dict[str, dict[str, str | None]] = {method: {} for method in methods}
    for option in sorted(options, key=lambda option: ":" in option.partition("=")[0]):  # those of one method come last
        name, equals, value = option.partition("=")
        method, colon, name = name.rpartition(":")
        name = name.replace("_", "-")
        takers = [method] if colon else [each for each in methods if name in known[each]]
        if colon and method not in given:
            raise UsageError(f"{arg('pretrain')} is {option!r}: {method!r} is not among the methods{nearest(method, methods)}")
        if not takers or name not in known[takers[0]]:
            names = {each for taker in takers or methods for each in known[taker]}
            raise UsageError(f"{arg('pretrain')} is {option!r}: there is no option {name!r}{nearest(name, names)}")
        for taker in takers:
            given[taker][name] = value if equals else None
    return {method: _arguments(given[method], known[method], {**DEFAULTS.get(method, {}), **defaults}) for method in methods}


def _arguments(given: Mapping[str, str | None], known: Collection[str], defaults: Mapping[str, str | None]) -> list[str]:
    rest = {name: value for name, value in defaults.items() if name in known}
    if any(name in given for name in BUDGETS):
        rest = {name: value for name, value in rest.items() if name not in BUDGETS}
    return [word for name, value in {**rest, **given}.items() for word in (f"--{name}", value) if word is not None]
