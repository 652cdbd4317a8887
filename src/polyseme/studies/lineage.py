"""All methods of the lineage on one text: each pre-trained once, in a process of its own, for a comparison of what they buy.

    out/models/METHOD            the model, with `pretraining.json` when its training is over
    out/models/METHOD.log        what its training said; METHOD.json: how it was called
    out/text                     the encoded text, which methods over the same words share

Methods go one after another, for a budget in minutes means the whole machine. Stopped and started again, what is done stays
done and what was stopped goes on; a method that fails is told at the end, and stops no other.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from polyseme.base.errors import UsageError, nearest
from polyseme.base.files import write_text
from polyseme.base.run import Run
from polyseme.base.signals import GracefulStop
from polyseme.pretraining.cost import Cost, read_cost
from polyseme.studies.finetuning import TUNED
from polyseme.studies.fingerprint import quick_fingerprint
from polyseme.studies.processes import Process, failure_reason, last_line, run_parallel, start_process

METHODS = ("ngram", "nnlm", "word2vec", "fasttext", "glove", "taglm", "elmo", "ulmfit", "gpt", "bert")
"""As they came."""
NO_LANGUAGE_MODELS = ("word2vec", "fasttext", "glove", "bert")
"""Methods whose models give a text no probability."""
NEVER_TUNED = ("ngram",)
"""Methods whose models have nothing that a task could train."""
TABLES = ("word2vec", "fasttext", "glove")
"""Methods whose models are words of a task, and no encoders that a head could stand on alone."""
WORDS = {"vocabulary": "50000"}
USUAL: Mapping[str, Mapping[str, str]] = {"ngram": WORDS, "nnlm": WORDS, "ulmfit": WORDS}
"""Options that differ from those of `polyseme pretrain`: language models over words know as many as an ELMo."""
BUDGETS = ("epochs", "minutes", "words")
READING = ("--sentences", "--field")
"""Options of training that a perplexity must have too: how a text is read, but for its words, which the model knows."""
Notify = Callable[[str], None]


@dataclass(frozen=True)
class Lineage:
    """What is trained, on what, and where it goes."""

    out: Path
    corpus: tuple[str, ...]
    methods: tuple[str, ...] = METHODS
    arguments: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Of `polyseme pretrain METHOD`, besides the text and the folder (`arguments_of`)."""
    held_out: Path | None = None
    """Text for the perplexities of all language models; None: each has that of the text which its own training held out."""
    device: str | None = None
    """What perplexities are computed on; None: a GPU where there is one, as everywhere in training."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "out", Path(self.out).expanduser())

    def folder(self, method: str) -> Path:
        """Where the model of a method lies."""
        return self.out / "models" / method

    def done(self, method: str) -> bool:
        """Whether it is trained to the end."""
        return read_cost(self.folder(method)) is not None

    @property
    def models(self) -> dict[str, str]:
        """The models that are done: what a comparison calls them, and their folders."""
        return {method: str(self.folder(method)) for method in self.methods if self.done(method)}

    def costs(self) -> list[tuple[str, Cost | None]]:
        """What each model cost, with its perplexity on the held-out text."""
        found: list[tuple[str, Cost | None]] = []
        for method in self.methods:
            cost, measured = read_cost(self.folder(method)), self._measured(method)
            if cost is not None and self.held_out is not None:
                cost = dataclasses.replace(cost, scores={} if measured is None else {"perplexity": measured})
            found += [] if cost is None else [(method, cost)]
        return found

    def run(self, notify: Notify = print) -> dict[str, Path]:
        """Train what is not done, and measure perplexities; gives what failed, with its log.

        Ctrl-C or SIGTERM stops it: what is under way writes a checkpoint, and the same call goes on with it.
        """
        for method in filter(self.done, self.methods):
            if (then := self._called(method)) not in (None, now := self._call(method)):
                notify(f"{method}: kept as it was trained ({' '.join(then or [])} then, {' '.join(now)} now)")
        with GracefulStop(patient=False) as stop:
            left = [method for method in self.methods if not self.done(method)]
            for method, code in run_parallel(left, self._start, stop):
                notify(self._told(method, code))
            asked = [method for method in self.methods if self.done(method) and self._wanted(method)]
            for method, code in run_parallel(asked, self._start_measuring, stop) if stop.name is None else ():
                measured, log = self._measured(method), self._measure_log(method)
                end = f"failed: {failure_reason(log, code)} (see {log})" if measured is None else f"{measured:,.2f}"
                notify(f"{method}: perplexity of {self.held_out} {end}")
        if stop.name is not None:
            raise KeyboardInterrupt
        read = {method: cost.text_words for method, cost in self.costs() if cost is not None and cost.text_words}
        if len(set(read.values())) > 1:
            told = ", ".join(f"{method} {count:,}" for method, count in read.items())
            changed = f"the text has changed since the first models were trained (words: {told})"
            notify(f"{changed}: they do not compare; train all of them in another --out")
        failed = {method: self.log(method) for method in self.methods if not self.done(method)}
        silent = (method for method in self.methods if method not in failed and self._wanted(method))
        return failed | {f"perplexity of {method}": self._measure_log(method) for method in silent}

    # ---- training

    def _call(self, method: str) -> list[str]:
        texts = [word for source in self.corpus for word in ("--corpus", source)]
        return [*texts, *self.arguments.get(method, ())]

    def _called(self, method: str) -> list[str] | None:
        """How it was called when it was trained; None: nobody knows."""
        path = self._note(method)
        found: list[str] | None = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
        return found

    def _note(self, method: str) -> Path:
        return self.out / "models" / f"{method}.json"

    def log(self, method: str) -> Path:
        """What its training said."""
        return self.out / "models" / f"{method}.log"

    def _start(self, method: str) -> Process:
        call = self._call(method)
        self.folder(method).parent.mkdir(parents=True, exist_ok=True)
        write_text(self._note(method), json.dumps(call, ensure_ascii=False) + "\n")
        places = ["--out", str(self.folder(method)), "--shards", str(self.out / "text")]
        return start_process([*PROGRAM, "pretrain", method, *places, *call], self.log(method))

    def _told(self, method: str, code: int) -> str:
        cost = read_cost(self.folder(method))
        if cost is None:
            return f"{method}: failed: {failure_reason(self.log(method), code)} (see {self.log(method)})"
        return f"{method}: {cost.words:,} words, {cost.seconds:,.0f} s"

    # ---- perplexity

    def _wanted(self, method: str) -> bool:
        """Whether a perplexity is still to be measured."""
        return self.held_out is not None and method not in NO_LANGUAGE_MODELS and self._measured(method) is None

    def _measure_log(self, method: str) -> Path:
        assert self.held_out is not None
        held = self.held_out.stat()
        asked = f"{self.held_out.resolve()} {held.st_size} {held.st_mtime_ns} {quick_fingerprint(self.folder(method))}"
        asked = " ".join([asked, *self._reading(method)])
        key = hashlib.sha256(asked.encode()).hexdigest()[:8]
        return self.out / "models" / f"{method}-perplexity-{key}.log"

    def _start_measuring(self, method: str) -> Process:
        device = str(Run.from_environment(device=self.device).device)
        call = ["perplexity", str(self.held_out), "--model", str(self.folder(method)), "--device", device, "--json"]
        return start_process([*PROGRAM, *call, *self._reading(method)], self._measure_log(method))

    def _reading(self, method: str) -> list[str]:
        """How its text was read when it was trained, which may be before this call."""
        then = self._called(method) or self._call(method)
        return [word for name, value in pairwise(then) if name in READING for word in (name, value)]

    def _measured(self, method: str) -> float | None:
        """What was measured on the held-out text; None: nothing yet."""
        if self.held_out is None:
            return None
        try:
            found: Any = json.loads(last_line(self._measure_log(method)))["perplexity"]
        except (ValueError, KeyError, TypeError):
            return None
        return float(found["mean"] if isinstance(found, dict) else found)


PROGRAM = (sys.executable, "-m", "polyseme")


def check_methods(methods: Collection[str]) -> None:
    """Complain about methods that there are not."""
    for method in methods:
        if method not in METHODS:
            raise UsageError(f"--methods holds {method!r}, which is no method{nearest(method, METHODS)}")


def check_rows(rows: Collection[str]) -> None:
    """Complain about rows of a comparison that no experiment could be trained with, before anything is."""
    for row in rows:
        plain = row.removesuffix(f":{TUNED}")
        names = set(plain.split("+"))
        if plain != row and (found := names & set(NEVER_TUNED)):
            raise UsageError(f"--encoders holds {row!r}, but {found.pop()} has nothing that could learn: give {plain!r}")
        if plain != row and names <= set(TABLES):
            raise UsageError(f"--encoders holds {row!r}, but a table of words alone is no encoder to fine-tune: give {plain!r}")


def arguments_of(
    methods: Sequence[str], options: Sequence[str], known: Mapping[str, Collection[str]], usual: Mapping[str, str | None]
) -> dict[str, list[str]]:
    """The arguments of each method, from options such as `elmo:size=tiny`, or without a method `vocabulary=10000`.

    `known`: the names that each method's command has. An option without a method goes to all that know it; `usual` likewise,
    where no option says otherwise. A budget takes the place of the usual one. An option without a value is a switch.

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
            raise UsageError(f"--pretrain is {option!r}: {method!r} is not among the methods{nearest(method, methods)}")
        if not takers or name not in known[takers[0]]:
            names = {each for taker in takers or methods for each in known[taker]}
            raise UsageError(f"--pretrain is {option!r}: there is no option {name!r}{nearest(name, names)}")
        for taker in takers:
            given[taker][name] = value if equals else None
    return {method: _arguments(given[method], known[method], {**USUAL.get(method, {}), **usual}) for method in methods}


def _arguments(given: Mapping[str, str | None], known: Collection[str], usual: Mapping[str, str | None]) -> list[str]:
    rest = {name: value for name, value in usual.items() if name in known}
    if any(name in given for name in BUDGETS):
        rest = {name: value for name, value in rest.items() if name not in BUDGETS}
    return [word for name, value in {**rest, **given}.items() for word in (f"--{name}", value) if word is not None]
