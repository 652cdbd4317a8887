"""Small data: random draws of 30 to 300 examples from the sets of `benchmarks.defaults`, trained with defaults.

    POLYSEME_DATA=... python -m benchmarks.small_draws --draws 200 --out draws.jsonl
    python -m benchmarks.small_draws --table draws.jsonl

A draw takes a set, a number of examples and the examples at random by its number, half of the draws with a dev file of 60
examples and half without one. So that a run takes seconds on a CPU, texts are cut to 30 words (60 characters of Chinese), those
of pairs to 12 (24), sentences to tag have at most 12, and both have half as many dev and test examples. Runs on pairs take a
minute nevertheless: `--tasks classification,tagging` leaves their draws out.

Two things must hold: every run that ends no better than the prior on its dev data has restarted and says that it learned
nothing; no run that beats the prior says so. Here the prior and the score are computed anew from the labels and the
predictions, and "says" means a line that a user sees. A finished draw is not repeated: results are appended to the file, one
JSON line each.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
import random
import re
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

import polyseme
from benchmarks.defaults import SETS, DefaultsSet
from polyseme.studies import train as training
from polyseme.tasks.registry import configure_task, task_class

TASKS = ("classification", "pairs", "tagging")
LEFT_OUT = {"sst5": "the sentences of sst5-sentences, with all their phrases", "msra": "takes minutes, like resume"}
FEWEST, MOST = 30, 300
DEV, TEST = 60, 100
WORDS, CHARACTERS = 30, 60
SHORT = 12  # words of each text of a pair (twice as many characters), and of a sentence to tag
RESTART, FAILURE = "restarting with", "has learned nothing"
HAN = re.compile("[\u3400-\u9fff]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    parser.add_argument("--tasks", default=",".join(TASKS), help="tasks whose draws are trained, separated by commas")
    parser.add_argument("--out", type=Path, default=Path("draws.jsonl"), help="results, one per line")
    parser.add_argument("--table", type=Path, default=None, help="print the tables of a file of results")
    given = parser.parse_args()
    if given.table is None:
        done = {each["draw"] for each in read_results(given.out)}
        for number in range(given.first, given.first + given.draws):
            if number not in done and SETS[drawn(number)[0]].task in given.tasks.split(","):
                result = run(number)
                append(given.out, result)
                print(result["draw"], result["set"], result.get("error") or violation(result) or "as it must be", flush=True)
    print(tables(read_results(given.table or given.out)))


# ---- one draw


def run(number: int) -> dict[str, Any]:
    """Train on a draw with defaults, and record its scores, those of the prior, and what the user sees."""
    name, chance = drawn(number)
    size = round(math.exp(chance.uniform(math.log(FEWEST), math.log(MOST))))
    share = 1.0 if SETS[name].task == "classification" else 0.5
    dev, test = (round(share * DEV) if chance.random() < 0.5 else 0), round(share * TEST)
    found: dict[str, Any] = {"draw": number, "set": name, "size": size, "dev_file": bool(dev)}
    rows = chance.sample(pool(name), size + dev + test)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, observed() as (lines, splits):
        files = {"data": rows[:size], "dev": rows[size : size + dev], "test": rows[size + dev :]}
        paths = {role: write(Path(folder, role), each) for role, each in files.items() if each}
        options = {"goal": "score"} if SETS[name].options.get("goal") == "score" else {}
        try:
            task = polyseme.train(SETS[name].task, out=Path(folder, "out"), seed=1, device="cpu", **paths, **options)
        except polyseme.PolysemeError as error:
            return {**found, "error": str(error).replace(folder, "")}
        result = json.loads(Path(folder, "out", "result.json").read_text(encoding="utf-8"))
    train, held = splits[0].train, splits[0].dev
    metric, scores, baseline = result["main"], result["scores"], result["baseline"]
    own = scored(metric, held, task.predict([inputs(each) for each in held]))  # type: ignore[union-attr]
    return {
        **found,
        **{"task": result["task"], "metric": metric, "train": len(train), "dev": len(held), "steps": result["steps"]},
        **{"score": own, "prior": prior_score(metric, train, held), "reported": scores["dev"][metric]},
        **{"test": scores["test"][metric], "test_baseline": baseline["test"][metric]},
        "test_prior": baseline["majority"]["test"][metric],
        **{"restarts": result["restarts"], "learned": result["learned"], "best_step": result["best_step"]},
        **{"restart_lines": _count(lines, RESTART), "failure_lines": _count(lines, FAILURE)},
        "seconds": round(time.monotonic() - began, 1),
    }


def drawn(number: int) -> tuple[str, random.Random]:
    """The set of a draw, and the source of its other choices."""
    chance = random.Random(number)
    return chance.choice([each for each in SETS if SETS[each].task in TASKS and each not in LEFT_OUT]), chance


@contextmanager
def observed() -> Iterator[tuple[list[str], list[Any]]]:
    """Collect the lines that a user sees, and the data of the run as it was divided."""
    lines: list[str] = []
    splits: list[Any] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    def fit(builder: Any, data: Any, *arguments: Any, **keywords: Any) -> Any:
        splits.append(data)
        return original(builder, data, *arguments, **keywords)

    logger, handler, original = logging.getLogger("polyseme"), Collector(logging.INFO), training.fit
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    training.fit = fit  # type: ignore[assignment]
    try:
        yield lines, splits
    finally:
        training.fit = original
        logger.removeHandler(handler)


def _count(lines: Sequence[str], words: str) -> int:
    return sum(words in line for line in lines)


# ---- data


@cache
def pool(name: str) -> list[Any]:
    """The examples of the training file of a set, with short texts."""
    labelled: DefaultsSet = SETS[name]
    config, _ = configure_task(labelled.task, labelled.options)
    path = Path(os.environ["POLYSEME_DATA"], "tasks", labelled.train)
    task = task_class(labelled.task)
    examples = task.read(path, configure_task(labelled.task, {**task.guessed_options(path, config), **labelled.options})[0])
    if labelled.task == "tagging":
        return [each for each in examples if len(each.words) <= SHORT]
    return [each for each in examples if each.label]


def cut(text: str, words: int, characters: int) -> str:
    return text[:characters] if len(HAN.findall(text)) > 0.3 * len(text) else " ".join(text.split()[:words])


def write(path: Path, examples: Sequence[Any]) -> str:
    """Write examples as CoNLL columns or JSON lines."""
    if hasattr(examples[0], "tags"):
        texts = ("".join(f"{word} {tag}\n" for word, tag in zip(each.words, each.tags, strict=True)) for each in examples)
        path = path.with_suffix(".conll")
    else:
        names = ("first", "second") if hasattr(examples[0], "second") else ("text",)
        keys, length = (("sentence1", "sentence2"), (SHORT, 2 * SHORT)) if len(names) == 2 else (names, (WORDS, CHARACTERS))
        rows = ({key: cut(getattr(each, name), *length) for key, name in zip(keys, names, strict=True)} for each in examples)
        pairs = zip(rows, examples, strict=True)
        texts = (json.dumps({**row, "label": each.label}, ensure_ascii=False) for row, each in pairs)
        path = path.with_suffix(".jsonl")
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return str(path)


def inputs(example: Any) -> Any:
    """What a user would predict for."""
    if hasattr(example, "tags"):
        return example.words
    return (example.first, example.second) if hasattr(example, "second") else example.text


# ---- scores, apart from those of the code that is tested


def scored(metric: str, examples: Sequence[Any], outputs: Sequence[Any]) -> float:
    """The score of predictions."""
    if metric == "f1":
        gold, found = ([*(spans(each.tags) for each in side)] for side in (examples, outputs))
        right = sum(len(a & b) for a, b in zip(gold, found, strict=True))
        return 2 * right / max(sum(map(len, gold)) + sum(map(len, found)), 1)
    if metric == "pearson":
        return correlation([float(each.label) for each in examples], [each.score for each in outputs])
    return agreement([label for each in examples for label in labels(each)], [tag for each in outputs for tag in labels(each)])


def prior_score(metric: str, train: Sequence[Any], examples: Sequence[Any]) -> float:
    """The score of the most frequent label for all; no span, and one number for all, have a score of zero."""
    if metric in ("f1", "pearson"):
        return 0.0
    most = Counter(label for each in train for label in labels(each)).most_common(1)[0][0]
    gold = [label for each in examples for label in labels(each)]
    return agreement(gold, [most] * len(gold))


def labels(each: Any) -> list[str]:
    return list(each.tags) if hasattr(each, "tags") else [each.label]


def agreement(gold: Sequence[str], found: Sequence[str]) -> float:
    return sum(a == b for a, b in zip(gold, found, strict=True)) / len(gold)


def correlation(gold: Sequence[float], found: Sequence[float]) -> float:
    if np.std(gold) < 1e-9 or np.std(found) < 1e-9:
        return 0.0
    return float(np.corrcoef(gold, found)[0, 1])


def spans(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """The spans of tags such as B-PER, I-PER, E-PER, S-PER (or M for I), as the CoNLL scorer reads them."""
    found, begin, kind = set(), 0, ""
    for position, tag in enumerate([*tags, "O"]):
        place, _, name = tag.partition("-")
        continues = place in ("I", "M", "E") and kind == f"-{name}"
        if kind and not continues:
            found.add((begin, position, kind))
            kind = ""
        if place != "O" and not continues:
            begin, kind = position, f"-{name}"
        if kind and place in ("E", "S"):
            found.add((begin, position + 1, kind))
            kind = ""
    return found


# ---- results


def append(path: Path, result: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(result, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_results(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return sorted(map(json.loads, lines), key=lambda each: int(each["draw"]))


def violation(result: dict[str, Any]) -> str:
    """What a run should have done or said; empty: it is as it must be."""
    beats = result["score"] > result["prior"] + 1e-9
    problems = {
        "beats the prior and says that it learned nothing": beats and result["failure_lines"],
        "beats the prior and `learned` is false": beats and not result["learned"],
        "no better than the prior and did not restart": not beats and not result["restarts"],
        "no better than the prior and does not say so": not beats and not result["failure_lines"],
        "restarts and does not say so": result["restarts"] != result["restart_lines"],
        "another dev score than reported": abs(result["score"] - result["reported"]) > 1 / result["dev"] + 1e-3,
    }
    return "; ".join(problem for problem, holds in problems.items() if holds)


def tables(results: Sequence[dict[str, Any]]) -> str:
    """What must hold, and the scores beside the baseline, by set."""
    errors = [each for each in results if "error" in each]
    runs = [each for each in results if "error" not in each]
    wrong = [each for each in runs if violation(each)]
    nothing = [each for each in runs if each["failure_lines"]]
    lines = [
        f"{len(runs)} draws; {len(errors)} refused; {sum(each['restarts'] > 0 for each in runs)} restarted",
        f"{len(nothing)} say that they learned nothing; of these {sum(map(above_prior, nothing))} are above the prior on the "
        "test data, by two standard errors or more",
        f"{len(wrong)} violations",
        *(f"  draw {each['draw']} ({each['set']}, {each['size']}): {violation(each)}" for each in wrong),
        *(f"  draw {each['draw']} ({each['set']}, {each['size']}): refused: {each['error']}" for each in errors),
        "",
        *baseline_table(runs),
    ]
    return "\n".join(lines)


def above_prior(result: dict[str, Any]) -> bool:
    prior = result["test_prior"]
    return bool(result["test"] > prior + 2 * math.sqrt(max(prior * (1 - prior), 0.01) / TEST))


def baseline_table(runs: Sequence[dict[str, Any]]) -> list[str]:
    """By set: means on the test data, in points, and how often and by how much a run is below the baseline."""
    rows = [["set", "metric", "draws", "prior", "baseline", "polyseme", "below", "by, mean", "by, most"]]
    by = defaultdict(list)
    for each in runs:
        by[each["set"]].append(each)
        by[f"all {each['task']}"].append(each)
    for name in [*sorted(each for each in by if each in SETS), *sorted(each for each in by if each not in SETS)]:
        group = by[name]
        below = [100 * (each["test_baseline"] - each["test"]) for each in group if each["test"] < each["test_baseline"]]
        means = [f"{100 * mean(each[key] for each in group):.1f}" for key in ("test_prior", "test_baseline", "test")]
        metrics = {each["metric"] for each in group}
        metric = metrics.pop() if len(metrics) == 1 else ""
        losses = [f"{mean(below):.1f}", f"{max(below):.1f}"] if below else ["", ""]
        rows.append([name, metric, str(len(group)), *means, str(len(below)), *losses])
    rows.insert(1, ["---"] * 2 + ["---:"] * 7)
    return ["| " + " | ".join(row) + " |" for row in rows]


if __name__ == "__main__":
    main()
