"""One training: a method, a corpus, a run and a folder. Every neural method is trained by the same steps.

    encode the text -> hold out its end -> resolve open settings -> seed -> build the model -> train
    -> measure statistics for sentence vectors -> write the card

What differs between methods is in subclasses of `TrainingJob`. Methods that count or bring their own loop (n-gram, GloVe,
word2vec) are jobs with a `fit` of their own.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from polyseme.base.display import count
from polyseme.base.errors import PolysemeError, arg
from polyseme.base.progress import progress, report
from polyseme.base.run import Run
from polyseme.encoders.base import Encoder
from polyseme.nn.threads import intra_op_threads
from polyseme.pretraining.baselines import baselines
from polyseme.pretraining.card import CardData, write_finished
from polyseme.pretraining.cost import Cost, write_cost
from polyseme.pretraining.defaults import DIVISORS, MIN_COUNT, NEGATIVES_ON_CPU, TRAINED, batch_divisor, fitted_vocabulary
from polyseme.pretraining.method import NeuralMethod
from polyseme.pretraining.objective import Objective
from polyseme.pretraining.repeats import repeated_sentences, repeats_message
from polyseme.pretraining.result import PretrainingResult, TrainingResult
from polyseme.pretraining.sentence_statistics import write_statistics
from polyseme.pretraining.vocabulary_index import TypeIds
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import SPECIAL_TOKENS
from polyseme.text.word_vectors import VectorLookup
from polyseme.training.base import Batches
from polyseme.training.budget import TooShortError, too_short
from polyseme.training.checkpoint import has_checkpoint, stored_settings
from polyseme.training.config import BUDGETS, TrainConfig
from polyseme.training.distributed import process_group
from polyseme.training.optim_config import OptimConfig
from polyseme.training.resume import ConfigValues
from polyseme.training.step_runner import time_steps
from polyseme.training.trainer import Trainer, TrainOutput

_log = logging.getLogger(__name__)
_OPEN = ("vocabulary_size", "output", "negatives", "batching", "batch_words", "batch_size", "batch_subwords", "dev_size")
_MEASURED = 0.02  # of the minutes, for measuring
_TICK = 1e-3  # seconds: a clock may stand still for longer than a small model reads
_EVALUATED = 0.05  # of the minutes, for one evaluation, where the held-out text is fitted to them
_FEWEST, _SAMPLE = 50, 10  # sentences: held out at least, and evaluated to measure the speed


@dataclass
class Job(ABC):
    """A method that is about to train on a corpus."""

    method: Any
    """The config of the method."""
    corpus: Corpus
    run: Run
    out: Path
    """Folder of the model."""
    vectors: VectorLookup | None = None
    """Finds initial vectors for the words of a vocabulary."""
    accept_changes: bool = False
    """Resume under other settings."""

    @abstractmethod
    def fit(self) -> PretrainingResult:
        """Train the model and write it."""

    def encode_text(self) -> Shards:
        """Encode the text as word ids, in the run's folder or where the corpus keeps them."""
        resumed = has_checkpoint(self.out)
        with progress("encoding text", unit="words") as advance:
            return Shards.build(self.corpus, self.out / "run", advance, only_known=resumed)


class TrainingJob(Job):
    """A neural method: the steps that all of them share."""

    section = "pretraining"
    """Name of the method's settings among those of the run."""
    max_held_out = 2000
    """Sentences held out for validation, at most; a hundredth of the text where that is less, of little text 50 or a tenth."""
    unit = "sentence"
    """What the text is split into."""
    fits_held_out = False
    """Whether less text is held out where little time is given."""
    both_directions = False
    """Whether the model predicts from right to left too."""
    _threads: int | None = None
    """Threads of each operation; None: all."""

    # ---- what each method has to say

    @abstractmethod
    def resolve_defaults(self, shards: Any) -> NeuralMethod:
        """Return the method without open settings, for a text."""

    @abstractmethod
    def build(self, shards: Any) -> Encoder:
        """Build the model; all random numbers come after the seed is set."""

    @abstractmethod
    def training_data(self, model: Any, shards: Any, train: range) -> tuple[Objective, Batches]:
        """Return the objective and its batches of some sentences."""

    @abstractmethod
    def validation_data(self, shards: Any, held_out: range) -> Any:
        """Return the held-out sentences for the objective's `evaluate`."""

    def text_fingerprint(self, shards: Any) -> dict[str, Any]:
        """Return what identifies the text, and the rows of the model's tables, when a run is resumed."""
        return {"corpus": shards.fingerprint}

    def text_facts(self, shards: Any) -> dict[str, Any]:
        """Return what the card says about the text."""
        return text_facts(self.corpus, shards)

    def vocabulary_ids(self, shards: Any) -> TypeIds | None:
        """Return the id in the vocabulary of each type of the text, for baselines; None: there are none for this model."""
        return None

    def before_training(self, objective: Objective, dev: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return further fields of the card, such as scores before training."""
        return {}

    # ---- what they share

    def fit(self) -> TrainingResult:
        """Train the model, or resume its training; the folder holds the best model at any moment."""
        shards = self.encode_text()
        self.resolve(shards, *self.split(shards))
        train, held_out = self.split(shards)  # again: less may be held out now
        repeated = repeated_sentences(shards, train, held_out) if isinstance(shards, Shards) else 0
        repeats = repeats_message(repeated, len(held_out))
        if repeats and self.run.is_main_process:
            _log.warning("%s", repeats)
        settings = {
            self.section: ConfigValues(type(self.method), self.method.resume_settings()),
            **self.text_fingerprint(shards),
        }
        self.run.seed_all()
        model = self.build(shards)
        model.sentence_statistics = None  # those of the weights before
        objective, batches = self.training_data(model, shards, train)
        dev = self.validation_data(shards, held_out)
        more = self.before_training(objective, dev, settings)
        card = CardData(
            title=self.out.resolve().name,
            model=model.info(),
            text=self.text_facts(shards),
            options=self.method.to_dict() | {"seed": self.run.seed},
            run=self.run,
            words_per_epoch=batches.words_per_epoch,
            held_out=len(held_out),
            repeated=repeated,
            unit=self.unit,
            **more,
        )
        objective.card = card.unfinished()
        with process_group(self.run) as processes:
            with intra_op_threads(self._threads or torch.get_num_threads()):
                try:
                    output = Trainer(self.method.train, self.run).fit(
                        objective, batches, dev, self.out, settings=settings, accept_changes=self.accept_changes
                    )
                except TooShortError as error:
                    raise PolysemeError(f"{error.problem}; {self.minutes_advice(len(held_out))}") from None
            if output.was_finished and self.run.is_main_process:
                report(finished_message(self.out, self.method.train))
            result = self.result(output, card)
            if isinstance(shards, Shards):
                words = shards.offsets[held_out.stop] - shards.offsets[held_out.start]
                result = dataclasses.replace(result, held_out_words=int(words))
            if self.run.is_main_process and result.ended is not None:
                ids = self.vocabulary_ids(shards)
                if ids is not None:
                    counted = baselines(shards, train, held_out, ids, both=self.both_directions)
                    result = dataclasses.replace(result, baselines=dataclasses.replace(counted, repeats=repeats))
                self._write_finished(shards, card, output, result)
            processes.wait()  # a machine that is lost here must find the others when it comes back
        return result

    def split(self, shards: Any) -> tuple[range, range]:
        """Return the sentences (or documents) to train on, and those to validate on."""
        return split(len(shards), self.method.dev_size, at_most=self.max_held_out, unit=self.unit)

    def _write_finished(self, shards: Any, card: CardData, output: TrainOutput, result: TrainingResult) -> None:
        """Write what belongs to a finished model: statistics for sentence vectors, what it cost, its card."""
        write_statistics(self.out, self.corpus, shards, self.run.device)
        parameters = int(card.model["parameters"])
        write_cost(self.out, Cost.of(result, parameters=parameters, device=self.run.device.type))
        counted = result.baselines
        write_finished(self.out, card, output, "" if counted is None or not output.scores else counted.verdict(output.scores))

    def resolve(self, shards: Any, train: range, held_out: range) -> None:
        """Resolve open settings: those of a resumed run, or for a new one what fits the text, the machine and the time."""
        method: NeuralMethod = self.method
        if has_checkpoint(self.out):
            self.method = with_stored(method, self.out, self.section)
            self.method = self.resolve_defaults(shards)
            return
        self.method = self.resolve_defaults(shards)
        fewest = min(_FEWEST, len(shards) // 10) if self.unit == "sentence" else 0
        fits_held_out = self.fits_held_out and method.dev_size is None
        if method.dev_size is None and len(held_out) < fewest:
            self.method = self.method.replace(dev_size=fewest)  # a setting: runs of older versions keep their split
            method = method.replace(dev_size=fewest)  # which follows from the text alone, and is not reported
            train, held_out = self.split(shards)
        name, minutes = method.batch_setting, method.train.minutes
        alone = self.run.world_size == 1 and self.run.device.type == "cpu"
        batch_is_open = name is not None and getattr(method, name) is None
        if minutes is not None and alone and (batch_is_open or fits_held_out):
            self._fit_to_minutes(shards, train, held_out, 60 * minutes, divide=batch_is_open)
        self._report_settings(method)

    def trial_model(self, shards: Any) -> Encoder:
        """Build a model to measure the speed with."""
        return self.build(shards)

    def predicted_words(self) -> int:
        """Return how many words the output layer predicts."""
        return getattr(self.method, "vocabulary_size", None) or 0

    def minutes_advice(self, held_out: int) -> str:
        """Return what to do where the minutes are too short for a model, with so many held-out sentences."""
        faster = [arg("dev_size", 100)] if held_out > 100 else []
        if getattr(self.method, "samples", 0) is None and self.predicted_words() > NEGATIVES_ON_CPU:
            faster.append(arg("output", "sampled"))
        options = f"; these options make it faster: {' '.join(faster)}" if faster else ""
        return f"give more minutes or a smaller model{options}"

    def _fit_to_minutes(self, shards: Any, train: range, held_out: range, seconds: float, *, divide: bool) -> None:
        """Divide the batch until enough steps fit into the time, by the speed of a few small ones, and of whole ones.

        Beside other busy programs, threads that wait for each other can be slower than one alone: then it is one.
        """
        whole = self.method
        self.method = whole.with_smaller_batch(DIVISORS[-1])
        self.run.seed_all()
        model = self.trial_model(shards)
        objective, batches = self.training_data(model, shards, train)
        steps: dict[int, float] = {}
        for threads in sorted({torch.get_num_threads(), 1}, reverse=True):
            with intra_op_threads(threads):
                steps[threads] = time_steps(objective, batches, whole.train, self.run, limit=_MEASURED * seconds)
        self._threads = min(steps, key=lambda threads: steps[threads])
        step = steps[self._threads]
        self.method = whole
        if divide and batch_divisor(TRAINED * seconds, step) > 1:  # perhaps: it depends on how long a whole one takes
            with intra_op_threads(self._threads):
                data = self.training_data(model, shards, train)
                whole_step = time_steps(*data, whole.train, self.run, limit=_MEASURED * seconds)
            self.method = whole.with_smaller_batch(batch_divisor(TRAINED * seconds, step, whole_step))
        if self.fits_held_out:
            with intra_op_threads(self._threads):
                self._fit_held_out(objective, shards, held_out, seconds, step)

    def _fit_held_out(self, objective: Objective, shards: Any, held_out: range, seconds: float, step: float) -> None:
        """Hold out as many sentences as are evaluated in a small part of the time; refuse a time too short for a step."""
        sample = held_out[:_SAMPLE]
        began = time.monotonic()
        objective.evaluate(self.validation_data(shards, sample))
        each = max(time.monotonic() - began, _TICK) / len(sample)
        if self.method.dev_size is None:
            size = min(len(held_out), max(_FEWEST, int(_EVALUATED * seconds / each)))
            if size < len(held_out):
                self.method = self.method.replace(dev_size=size)
        need = step + each * (self.method.dev_size or len(held_out))
        if need > seconds:
            problem = too_short(self.method.train, need)
            raise PolysemeError(f"{problem}; {self.minutes_advice(self.method.dev_size or len(held_out))}")

    def _report_settings(self, given: NeuralMethod) -> None:
        """Report settings that the user left open."""
        values = {name: getattr(self.method, name, None) for name in _OPEN}
        found = {name: value for name, value in values.items() if value is not None and getattr(given, name) is None}
        found = {name: value for name, value in found.items() if name != "batching" and value != "full"}
        if (rate := self.method.train.optim.learning_rate) == self.method.default_learning_rate != OptimConfig().learning_rate:
            found["learning_rate"] = rate
        if self.run.is_main_process and found:
            _log.warning("chosen for this text and machine: %s", ", ".join(arg(name, value) for name, value in found.items()))

    def result(self, output: TrainOutput, card: CardData) -> TrainingResult:
        """Return the result of the training."""
        return TrainingResult(**self.result_fields(output, card))

    def result_fields(self, output: TrainOutput, card: CardData) -> dict[str, Any]:
        """Return the fields of a `TrainingResult`."""
        names = ("out", "steps", "words", "seconds", "scores", "best_step", "ended", "stopped_by")
        values = {name: getattr(output, name) for name in names}
        return values | {"method": self.method.name, "text_words": int(card.text["words_of_text"])}


def with_stored(method: NeuralMethod, out: Path, section: str) -> NeuralMethod:
    """Return a method whose open settings are those with which the run in a folder began."""
    like = {"settings": {section: ConfigValues(type(method), {})}, "config": method.train}
    stored = stored_settings(out, like)
    before, rate = stored.get("settings", {}).get(section, {}), stored.get("config", {}).get("optim", {}).get("learning_rate")
    opened = {name: before[name] for name in _OPEN if before.get(name) is not None and getattr(method, name, 0) is None}
    if before.get("output") != "sampled" and "output" in before:
        opened.pop("negatives", None)
    optim = method.train.optim
    if rate == OptimConfig().learning_rate != optim.learning_rate == method.default_learning_rate:
        method = method.replace(train=method.train.replace(optim=optim.replace(learning_rate=rate)))
    return method.replace(**opened)


def vocabulary_for(shards: Shards) -> int:
    """Return the size of the vocabulary that fits a text."""
    counts = shards.counts[len(SPECIAL_TOKENS) :]
    return fitted_vocabulary(shards.total, len(counts), int((counts >= MIN_COUNT).sum()))


def split(size: int, held_out: int | None = None, *, at_most: int, unit: str = "sentence") -> tuple[range, range]:
    """Return the sentences (or documents) to train on, and those at the end to validate on: so many, or a hundredth.

    >>> split(1000, at_most=2000)
    (range(0, 990), range(990, 1000))
    """
    if size < 2:
        lines = "; blank lines separate them, or each line is one" if unit == "document" else ""
        advice = f"; check the splitting ({arg('sentences')}), or write each on its own line" if unit == "sentence" else ""
        raise PolysemeError(f"the text has {count(size, unit)}{lines}: training needs at least 2{advice}")
    if held_out is None:
        held_out = min(at_most, max(1, size // 100))
    elif held_out >= size:
        problem = f"{arg('dev_size', held_out)} leaves nothing to train on: the text has {count(size, unit)}"
        raise PolysemeError(f"{problem}; hold out fewer, or give more text")
    return range(size - held_out), range(size - held_out, size)


def finished_message(out: Path, train: TrainConfig) -> str:
    """Say that a run is at its end, and how to train for longer.

    >>> finished_message(Path("model"), TrainConfig(epochs=10))
    'model: this training is finished; nothing to do. To train for longer, give epochs above 10, and accept_changes=True'
    """
    name = next(name for name in BUDGETS if getattr(train, name) is not None)
    longer = f"give {arg(name)} above {getattr(train, name):,}, and {arg('accept_changes', True)}"
    return f"{out}: this training is finished; nothing to do. To train for longer, {longer}"


def text_facts(corpus: Corpus, shards: Shards) -> dict[str, Any]:
    """Return what a card says about a text."""
    return {
        "text": corpus.source.names,
        "words_of_text": shards.total,
        "sentences_of_text": len(shards),
        "distinct_words_of_text": len(shards.counts) - len(SPECIAL_TOKENS),
    }


def shuffling(run: Run) -> dict[str, int]:
    """Return the arguments with which batches are shuffled and divided among processes."""
    return {"seed": run.seed, "rank": run.rank, "world_size": run.world_size}
