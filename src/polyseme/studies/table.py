"""The table of a comparison: scores, standard deviation over seeds, and gains over a baseline with a bootstrap interval.

As in Table 1 of Peters et al. 2018: baseline, with encoder, absolute and relative increase. The relative increase (error
reduction) is the fraction of the baseline's errors that are gone. A group of data sets has a row for the mean of their scores,
seed by seed. What the pre-training of encoders cost is read from their model folders.
"""

from __future__ import annotations

import csv
import functools
import io
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from polyseme.base.display import count, format_duration
from polyseme.base.errors import arg
from polyseme.base.files import read_json
from polyseme.encoders.shipped import shipped_folder
from polyseme.metrics.bootstrap import Comparison, ExampleSet, paired_bootstrap_of_mean
from polyseme.pretraining.cost import Cost, read_cost
from polyseme.studies.config import NONE
from polyseme.studies.experiment import Experiment
from polyseme.studies.sets import GROUPS, labelled_set, members, title_of
from polyseme.studies.train import encoder_names
from polyseme.tasks.fit import SCORE_COUNTS
from polyseme.tasks.folder_check import HEAD
from polyseme.tasks.registry import task_class

HEADER = ("data set", "train fraction", "encoders", "metric", "mean", "std", "seeds", "increase", "error reduction", "interval")
CSV_HEADER = ("set", "train_fraction", "encoders", "metric", "mean", "std", "error_reduction", "low", "high", "p", "scores")
CSV_COSTS = ("pretraining_seconds", "pretraining_words", "parameters", "pretraining_words_per_second")
FREE = Cost(method=NONE, seconds=0.0, words=0, text_words=0, parameters=0)
COST_HEADER = ("encoders", "pre-training", "words seen", "words/s", "parameters", "device", "held-out perplexity")
NamedCosts = Sequence[tuple[str, Cost | None]]
"""Rows of encoders and their costs; None: unknown."""
Key = tuple[str, float, str]
"""Data set, fraction of the training data, row of encoders."""
Runs = list[list[Experiment]]
"""For each seed its experiment on each data set: one, or those of a group."""


@dataclass(frozen=True)
class ComparisonRow:
    """One data set, or the mean of a group of them, with one row of encoders, over all seeds."""

    set: str
    train_fraction: float
    encoders: str
    measure: str
    scores: tuple[float, ...]
    """On the test data, one for each seed."""
    gain: Comparison | None
    """Over the baseline; None: it is the baseline, or cannot be compared."""
    cost: Cost | None = None
    """Of pre-training; None: unknown."""
    failures: tuple[str, ...] = ()
    """The warnings of its runs that have learned nothing; a group has none, as its data sets have rows of their own."""
    wide: bool = False
    """Whether a linear model of n-grams answers together with the network."""

    @property
    def mean(self) -> float:
        return statistics.fmean(self.scores)

    @property
    def std(self) -> float:
        """Over seeds; NaN of a single one."""
        return statistics.stdev(self.scores) if len(self.scores) > 1 else math.nan

    def formatted(self) -> list[str]:
        """Return the cells of the table, in per cent."""
        std = "" if math.isnan(self.std) else f"{100 * self.std:.2f}"
        numbers = [f"{100 * self.mean:.2f}", std, str(len(self.scores))]
        cells = [title_of(self.set), f"{100 * self.train_fraction:g}%", self.encoders, self.measure, *numbers]
        if self.gain is None:
            return [*cells, "", "", ""]
        value, low, high = self.reduction
        change = "" if value is None else f"{100 * value:.1f} %"
        interval = "" if low is None or high is None else f"{100 * low:.1f} to {100 * high:.1f} %"
        return [*cells, f"{100 * self.gain.difference.value:+.2f}", change, interval]

    @property
    def reduction(self) -> tuple[float | None, float | None, float | None]:
        """The error reduction and its interval; None: undefined, as the baseline makes no errors, or none in a resample."""
        if self.gain is None or self.gain.old == 1:
            return None, None, None
        value, low, high = self.gain.reduction.value, self.gain.reduction.low, self.gain.reduction.high
        return (value, low, high) if math.isfinite(low) and math.isfinite(high) else (value, None, None)


def table(experiments: Sequence[Experiment], baseline: str, groups: Sequence[str] = ()) -> list[ComparisonRow]:
    """Return a row for each data set and encoders with finished experiments, compared with `baseline` on the same data set.

    After the last data set of a group come the rows of its mean, over the seeds that are finished in all its data sets.
    """
    found: dict[Key, Runs] = {}
    for experiment in experiments:
        if experiment.done:
            found.setdefault((experiment.set, experiment.train_fraction, experiment.row), []).append([experiment])
    started = [group for group in groups if any(key[0] in members(group) for key in found)]
    last = {group: max(number for number, key in enumerate(found) if key[0] in members(group)) for group in started}
    rows = []
    for number, key in enumerate(found):
        rows.append(_row(key, found, baseline))
        for group in (each for each in last if last[each] == number):
            means = _means(group, found)
            rows += [_row(each, means, baseline) for each in means]
    return rows


def _means(group: str, found: dict[Key, Runs]) -> dict[Key, Runs]:
    """The runs of a group: the seeds that are finished in all its data sets."""
    means: dict[Key, Runs] = {}
    for fraction, encoders in dict.fromkeys(key[1:] for key in found if key[0] in members(group)):
        by_seed = [{run[0].seed: run[0] for run in found.get((name, fraction, encoders), [])} for name in members(group)]
        if seeds := [seed for seed in by_seed[0] if all(seed in each for each in by_seed)]:
            means[group, fraction, encoders] = [[each[seed] for each in by_seed] for seed in seeds]
    return means


def _row(key: Key, found: dict[Key, Runs], baseline: str) -> ComparisonRow:
    name, fraction, encoders = key
    runs, base = found[key], found.get((name, fraction, baseline))
    scores = tuple(statistics.fmean(_score(each) for each in run) for run in runs)
    gain = None if base is None or encoders == baseline else compare_runs(base, runs)
    failures = () if name in GROUPS else tuple(failure for run in runs for each in run if (failure := _failure(each)))
    cost = cost_of(runs[0][0].encoders)
    wide = any(_has_wide_part(each) for run in runs for each in run)
    return ComparisonRow(name, fraction, encoders, _measure(runs[0][0]), scores, gain, cost, failures, wide)


def _measure(experiment: Experiment) -> str:
    return str((experiment.result or {})["main"])


def _has_wide_part(experiment: Experiment) -> bool:
    head = Path(experiment.out, HEAD)
    return head.is_file() and bool(read_json(head)["config"].get("wide_features"))


def _failure(experiment: Experiment) -> str:
    """Return the warning of a run that has learned nothing; empty: it has."""
    result = experiment.result or {}
    return "" if result.get("learned", True) else str(result.get("warning", "the network has learned nothing"))


def failure_warning(rows: Sequence[ComparisonRow]) -> str:
    """Return how many runs have learned nothing, which, and the first warning; empty: there is none."""
    rows = [row for row in rows if row.set not in GROUPS]
    failed = [row for row in rows if row.failures]
    if not failed:
        return ""
    all_runs, number = sum(len(row.scores) for row in rows), sum(len(row.failures) for row in failed)
    if number == all_runs:
        which = f"no run has learned anything ({count(number, 'run')}), so the table says nothing about the encoders"
    else:
        names = "; ".join(dict.fromkeys(f"{title_of(row.set)}, {row.encoders}" for row in failed))
        which = f"{number} of {all_runs} runs have learned nothing ({names}), so their rows say nothing about the encoders"
    return f"{which}. The first: {failed[0].failures[0]}"


def equality_warning(rows: Sequence[ComparisonRow]) -> str:
    """Return which rows of a data set have the same scores, so that the table says nothing about them; empty: none."""
    alike: dict[tuple[object, ...], list[ComparisonRow]] = {}
    for row in rows:
        alike.setdefault((row.set, row.train_fraction, row.scores), []).append(row)
    same = [each for each in alike.values() if len(each) > 1]
    if not same:
        return ""
    names = "; ".join(dict.fromkeys(f"{title_of(each[0].set)}: {', '.join(row.encoders for row in each)}" for each in same))
    why = "the n-grams beside the network may decide all answers: compare without them"
    hint = f"; {why} ({arg('option', 'wide=false')})" if any(row.wide for each in same for row in each) else ""
    return f"rows have the same scores ({names}), so the table says nothing about their encoders{hint}"


def _score(experiment: Experiment) -> float:
    return float((experiment.result or {})["scores"]["test"][_measure(experiment)])


def compare_runs(old: Runs, new: Runs) -> Comparison | None:
    """Compare runs on the same test data by the paired bootstrap; None if counts per example are missing."""
    if not all(Path(each.out, SCORE_COUNTS).is_file() for run in (*old, *new) for each in run):
        return None
    sets = []
    for number, experiment in enumerate(old[0]):
        before, after = ([np.load(Path(run[number].out, SCORE_COUNTS)) for run in runs] for runs in (old, new))
        sets.append(ExampleSet(before, after, task_class(labelled_set(experiment.set).task).score_from_counts))
    return paired_bootstrap_of_mean(sets)


def score_header(rows: Sequence[ComparisonRow]) -> list[str]:
    """Return the header of the table; the train fraction is left out if it is always 1."""
    return _shown(list(HEADER), rows)


def score_rows(rows: Sequence[ComparisonRow]) -> list[list[str]]:
    return [_shown(row.formatted(), rows) for row in rows]


def _shown(cells: list[str], rows: Sequence[ComparisonRow]) -> list[str]:
    return cells[:1] + cells[2 if all(row.train_fraction == 1 for row in rows) else 1 :]


def as_csv(rows: Sequence[ComparisonRow]) -> str:
    """Return the table as CSV: fractions of 1, the score of every seed, and what the encoders cost."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*CSV_HEADER, *CSV_COSTS])
    for row in rows:
        gain, cost = row.gain, row.cost
        gains = [*("" if value is None else value for value in row.reduction), "" if gain is None else gain.p]
        costs = [""] * 4 if cost is None else [cost.seconds, cost.words, cost.parameters, cost.words_per_second or ""]
        scores, std = " ".join(map(str, row.scores)), "" if math.isnan(row.std) else row.std
        writer.writerow([row.set, row.train_fraction, row.encoders, row.measure, row.mean, std, *gains, scores, *costs])
    return text.getvalue()


def cost_of(encoders: str) -> Cost | None:
    """Return the cost of all encoders joined by `+`; None if one is unknown."""
    costs = [read_cost(shipped_folder(name) or Path(name).expanduser()) for name in encoder_names(encoders)]
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        return None
    return functools.reduce(Cost.plus, known) if known else FREE


def cost_rows(costs: NamedCosts) -> list[list[str]]:
    """Return the cells of a table of costs, without rows of no encoder."""
    return [[name, *_formatted(cost)] for name, cost in costs if cost is not FREE]


def _formatted(cost: Cost | None) -> list[str]:
    if cost is None:
        return ["unknown", "", "", "", "", ""]
    speed = cost.words_per_second
    perplexity = cost.scores.get("perplexity", cost.scores.get("word_perplexity"))  # per word, if the model has subwords
    return [
        format_duration(cost.seconds),
        f"{cost.words:,}",
        "" if speed is None else f"{speed:,.0f}",
        f"{cost.parameters:,}",
        cost.device,
        "" if perplexity is None else f"{perplexity:,.2f}",
    ]
