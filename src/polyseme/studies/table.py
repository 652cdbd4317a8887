"""The table of a comparison: score, spread over seeds, and what a row gains over the baseline, with a bootstrap interval.

As in Table 1 of Peters et al. 2018: baseline, with, increase absolute and relative. The relative increase is the share of the
baseline's errors that are gone. A group of sets has a row for the mean of their scores, seed by seed.
"""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from polyseme.metrics.bootstrap import Comparison, ExampleSet, paired_bootstrap_of_mean
from polyseme.pretraining.cost import Cost
from polyseme.studies.compare import group_by_row
from polyseme.studies.costs import cost_of
from polyseme.studies.experiment import Experiment
from polyseme.studies.sets import labelled_set, members, title_of
from polyseme.studies.train import task_named
from polyseme.tasks.fit import TALLIES

HEAD = ("set", "share", "encoders", "measure", "mean", "spread", "seeds", "increase", "error reduction", "interval")
PROGRAMS = ("set", "share", "encoders", "measure", "mean", "spread", "error_reduction", "low", "high", "p", "scores")
COSTS = ("pretraining_seconds", "pretraining_words", "parameters", "pretraining_words_per_second")


@dataclass(frozen=True)
class Row:
    """One set, or the mean of a group of sets, with one row of encoders, over all seeds."""

    set: str
    share: float
    """Of the training data."""
    encoders: str
    measure: str
    scores: tuple[float, ...]
    """On the test data, one for each seed."""
    gain: Comparison | None
    """Over the baseline; None: it is the baseline, or cannot be compared."""
    cost: Cost | None = None
    """Of the encoders' pre-training; None: not told."""

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return statistics.fmean(self.scores)

    @property
    def std(self) -> float:
        """Standard deviation over the seeds."""
        return statistics.stdev(self.scores) if len(self.scores) > 1 else 0.0

    def formatted(self) -> list[str]:
        """As a person reads it: per cent."""
        numbers = [f"{100 * self.mean:.2f}", f"{100 * self.std:.2f}", str(len(self.scores))]
        told = [self.set, f"{100 * self.share:g}%", self.encoders, self.measure, *numbers]
        if self.gain is None:
            return [*told, "", "", ""]
        reduction = self.gain.reduction
        interval = f"{100 * reduction.low:.1f} to {100 * reduction.high:.1f} %"
        return [*told, f"{100 * self.gain.difference.value:+.2f}", f"{100 * reduction.value:.1f} %", interval]


Runs = list[list[Experiment]]
"""For each seed its experiment of each set: one, or those of a group."""


def table(experiments: Sequence[Experiment], baseline: str, groups: Sequence[str] = ()) -> list[Row]:
    """A row for each set and encoders that have done experiments, compared with the row `baseline` of the same set.

    Behind the last set of a group come the rows of its mean, by the seeds that are done in all its sets.
    """
    found = {key: [[experiment] for experiment in several] for key, several in group_by_row(experiments).items()}
    last = {group: max(place for place, key in enumerate(found) if key[0] in members(group)) for group in _begun(found, groups)}
    rows = []
    for place, (name, share, encoders) in enumerate(list(found)):
        rows.append(_row(name, share, encoders, found, baseline))
        for group in (each for each in last if last[each] == place):
            means = _means(group, found)
            rows += [_row(*key, means, baseline) for key in means]
    return rows


def _begun(found: dict[tuple[str, float, str], Runs], groups: Sequence[str]) -> Iterator[str]:
    yield from (group for group in groups if any(key[0] in members(group) for key in found))


def _means(group: str, found: dict[tuple[str, float, str], Runs]) -> dict[tuple[str, float, str], Runs]:
    """For a group what `found` has for a set: seeds that are done in all its sets."""
    means: dict[tuple[str, float, str], Runs] = {}
    for share, encoders in dict.fromkeys(key[1:] for key in found if key[0] in members(group)):
        by_seed = [{run[0].seed: run[0] for run in found.get((name, share, encoders), [])} for name in members(group)]
        seeds = [seed for seed in by_seed[0] if all(seed in experiments for experiments in by_seed)]
        if seeds:
            means[group, share, encoders] = [[experiments[seed] for experiments in by_seed] for seed in seeds]
    return means


def _row(name: str, share: float, encoders: str, found: dict[tuple[str, float, str], Runs], baseline: str) -> Row:
    runs, base = found[name, share, encoders], found.get((name, share, baseline))
    scores = tuple(statistics.fmean(_score(experiment) for experiment in run) for run in runs)
    gain = None if base is None or encoders == baseline else compared(base, runs)
    return Row(name, share, encoders, _measure(runs[0][0]), scores, gain, cost_of(runs[0][0].encoders))


def _measure(experiment: Experiment) -> str:
    return str((experiment.result or {})["main"])


def _score(experiment: Experiment) -> float:
    return float((experiment.result or {})["scores"]["test"][_measure(experiment)])


def compared(old: Runs, new: Runs) -> Comparison | None:
    """The gain of some runs over others on the same test data, by the paired bootstrap; None where counts are missing."""
    if not all(Path(experiment.out, TALLIES).is_file() for run in (*old, *new) for experiment in run):
        return None
    parts = []
    for place, experiment in enumerate(old[0]):
        before, after = ([np.load(Path(run[place].out, TALLIES)) for run in runs] for runs in (old, new))
        parts.append(ExampleSet(before, after, task_named(labelled_set(experiment.set).task).score_from_counts))
    return paired_bootstrap_of_mean(parts)


def as_markdown(rows: Sequence[Row]) -> str:
    """A table for documents."""
    whole = all(row.share == 1 for row in rows)  # then the column says nothing
    lines = [list(HEAD), ["---"] * 4 + ["---:"] * (len(HEAD) - 4)]
    lines += [[title_of(row.set), *row.formatted()[1:]] for row in rows]
    shown = [cells[:1] + cells[2 if whole else 1 :] for cells in lines]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in shown)


def as_csv(rows: Sequence[Row]) -> str:
    """A table for programs: shares of 1, every seed, and what the encoders cost."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*PROGRAMS, *COSTS])
    for row in rows:
        gain, cost = row.gain, row.cost
        told = ["", "", "", ""] if gain is None else [gain.reduction.value, gain.reduction.low, gain.reduction.high, gain.p]
        spent = [""] * 4 if cost is None else [cost.seconds, cost.words, cost.parameters, cost.words_per_second or ""]
        scores = " ".join(map(str, row.scores))
        writer.writerow([row.set, row.share, row.encoders, row.measure, row.mean, row.std, *told, scores, *spent])
    return text.getvalue()
