"""Sentence vectors without labels: what a logistic regression and a cosine make of `encode`.

    python -m benchmarks.sentence_vectors --out vectors/ --sets mr,cr,stsb,sick
    python -m benchmarks.sentence_vectors --out vectors/ --model my-model --limit 2000
    python -m benchmarks.sentence_vectors --out vectors/ --split dev     # to choose a pooling: test files are not read

Sets are read from POLYSEME_DATA. Classification follows SentEval (Conneau and Kiela 2018): MR, CR and SUBJ in ten folds, the
other sets by their own split; the strength of the penalty is chosen inside the training data (on dev data where a set has
some). Similarity is the Pearson correlation of the cosine with human scores (Chinese pairs: with 0 and 1), and nothing is
trained. Texts are embedded once for all poolings. Finished parts are kept in the folder `--out`: the same command resumes.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import lzma
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import polyseme
from benchmarks.logistic_regression import choose_and_predict
from polyseme.encoders.base import Encoder
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.encoders.text_pooling import chunks_by_words, text_pooler

POOLINGS = ("mean", "sif", "sif+mean")
Rows = list[tuple[Any, ...]]
"""(text, label), or (text, text, score)."""


@dataclass(frozen=True)
class VectorSet:
    """A set: how its parts are read, and the score to reach."""

    read: Callable[[str], Rows]
    """From train, dev or test to rows; `all` is the one part of a set in ten folds."""
    parts: tuple[str, ...]
    bar: float
    language: str = "en"

    @property
    def is_similarity(self) -> bool:
        return "train" not in self.parts and "all" not in self.parts


def data() -> Path:
    folder = os.environ.get("POLYSEME_DATA")
    if not folder:
        sys.exit("set POLYSEME_DATA to the folder that has tasks/")
    return Path(folder) / "tasks"


def lines(name: str, encoding: str = "utf-8") -> Iterator[str]:
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(Path(name).suffix, open)
    with opened(data() / name, "rt", encoding=encoding) as file:
        for line in file:
            yield line.rstrip("\n")


def table(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(lines(name), delimiter="\t", quoting=csv.QUOTE_NONE))


def numbered(name: str) -> Rows:
    """`label text` per line."""
    return [(line.partition(" ")[2], line.partition(" ")[0]) for line in lines(f"sentence_classification_en/{name}", "latin-1")]


def stsb(part: str) -> Rows:
    fields = [line.split("\t") for line in lines(f"sts_benchmark_en/sts-{part}.csv")]
    return [(each[5], each[6], float(each[4])) for each in fields]


def sick(part: str) -> Rows:
    name = {"dev": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}[part]
    rows = table(f"nli_sick_en/{name}")
    return [(row["sentence_A"], row["sentence_B"], float(row["relatedness_score"])) for row in rows]


def lcqmc(part: str) -> Rows:
    fields = [line.split("\t") for line in lines(f"pairs_zh/lcqmc.{part}.tsv.gz")]
    return [(each[-3], each[-2], float(each[-1])) for each in fields if each[-1] in ("0", "1")]


def imdb(part: str) -> Rows:
    rows = [json.loads(line) for line in lines(f"sentiment_imdb_en/{part}.jsonl.xz")]
    return [(row["text"].replace("<br />", " "), row["label"]) for row in rows]


SETS = {
    "stsb": VectorSet(stsb, ("dev", "test"), 0.60),
    "sick": VectorSet(sick, ("dev", "test"), 0.60),
    "lcqmc": VectorSet(lcqmc, ("dev", "test"), float("nan"), "zh"),
    "trec": VectorSet(lambda part: numbered(f"TREC.{part}.all"), ("train", "test"), 87),
    "cr": VectorSet(lambda part: numbered("custrev.all"), ("all",), 80),
    "sst2": VectorSet(
        lambda part: [(row["sentence"], row["label"]) for row in table(f"sst_en/sst2.{part}.tsv")], ("train", "dev", "test"), 81
    ),
    "mr": VectorSet(lambda part: numbered("rt-polarity.all"), ("all",), 76),
    "subj": VectorSet(lambda part: numbered("subj.all"), ("all",), 92.5),
    "chnsenticorp": VectorSet(
        lambda part: [(row["text_a"], row["label"]) for row in table(f"chnsenticorp_zh/{part}.tsv.gz")],
        ("train", "dev", "test"),
        87,
        "zh",
    ),
    "imdb": VectorSet(imdb, ("train", "test"), 87),
}


class Vectors:
    """The vectors of the parts of sets, computed once for all poolings and kept in a folder."""

    def __init__(self, models: dict[str, str], folder: Path, limit: int | None, device: str | None = None) -> None:
        self._models, self._folder, self._limit, self._device = models, folder, limit, device
        self._loaded: dict[str, tuple[Encoder, str]] = {}

    def __call__(self, name: str, part: str) -> tuple[dict[str, np.ndarray], list[Any]]:
        """By pooling, the vectors of all texts (pairs: the first ones, then the second ones); and labels or scores."""
        rows = SETS[name].read(part)
        if self._limit is not None and len(rows) > self._limit:
            rows = random.Random(0).sample(rows, self._limit)
        model, fingerprint = self.model(SETS[name].language)
        path = self._folder / fingerprint / f"{name}-{part}-{self._limit or 'all'}.npz"
        texts = [row[place] for place in range(len(rows[0]) - 1) for row in rows]
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(path.with_suffix(".part.npz"), **pooled(model, texts))
            path.with_suffix(".part.npz").replace(path)
        with np.load(path) as found:
            return {pooling: found[pooling] for pooling in found.files}, [row[-1] for row in rows]

    def model(self, language: str) -> tuple[Encoder, str]:
        if language not in self._loaded:
            model = polyseme.load(self._models[language], device=self._device)
            statistics = model.sentence_statistics
            digest = "none" if statistics is None else f"{abs(float(statistics.whitening.sum())):.6f}"
            self._loaded[language] = model, f"{model_fingerprint(model)[:12]}-{digest}"
        return self._loaded[language]


def pooled(model: Encoder, texts: list[str]) -> dict[str, np.ndarray]:
    """The vectors of texts by each pooling, from one reading; the same as those of `encode`."""
    names = POOLINGS if model.sentence_statistics is not None else ("mean",)
    poolers = {name: text_pooler(model, name) for name in names}
    results: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for some in chunks_by_words([model.words(text) for text in texts], 50_000):
        for words, layers in zip(some, model.embed(some), strict=True):
            for name, pooler in poolers.items():
                results[name].append(pooler(words, layers.mean(0) if name == "mean" else layers))
    return {name: np.stack(each) for name, each in results.items()}


def similarity(vectors: np.ndarray, scores: list[float]) -> float:
    first, second = vectors[: len(scores)], vectors[len(scores) :]
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return float(np.corrcoef((first * second).sum(1) / np.maximum(lengths, 1e-12), scores)[0, 1])


def classification(vectors: dict[str, np.ndarray], labels: dict[str, list[str]], *, folds: int = 10) -> float:
    """Accuracy in percent on the test part, or over ten folds of the one part."""
    classes = sorted({label for part in labels.values() for label in part})
    ids = {part: np.array([classes.index(label) for label in given]) for part, given in labels.items()}
    if "all" not in vectors:
        dev = (vectors["dev"], ids["dev"]) if "dev" in vectors and "test" in vectors else None
        test = "test" if "test" in vectors else "dev"
        if test in vectors:
            found = choose_and_predict(vectors["train"], ids["train"], vectors[test], dev=dev)
            return 100 * float((found.predicted == ids[test]).mean())
        vectors, ids = {"all": vectors["train"]}, {"all": ids["train"]}  # choosing a pooling without test or dev data
    inputs, gold = vectors["all"], ids["all"]
    fold = np.random.default_rng(1111).permutation(len(gold)) % folds
    right = 0
    for each in range(folds):
        kept = fold != each
        found = choose_and_predict(inputs[kept], gold[kept], inputs[~kept])
        right += int((found.predicted == gold[~kept]).sum())
    return 100 * right / len(gold)


def measure(name: str, source: Vectors, split: str) -> dict[str, float]:
    """The score of each pooling on a set."""
    this = SETS[name]
    if this.is_similarity:
        vectors, scores = source(name, split)
        return {pooling: similarity(each, scores) for pooling, each in vectors.items()}
    parts = [part for part in this.parts if split == "test" or part != "test"]
    read = {part: source(name, part) for part in parts}
    labels = {part: [str(label) for label in given] for part, (_, given) in read.items()}
    return {
        pooling: classification({part: vectors[pooling] for part, (vectors, _) in read.items()}, labels)
        for pooling in read[parts[0]][0]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="What logistic regression and cosine make of sentence vectors.")
    parser.add_argument("--out", type=Path, required=True, help="folder for vectors and results.jsonl")
    parser.add_argument("--sets", default=",".join(SETS), help=f"of {', '.join(SETS)}")
    parser.add_argument("--limit", type=int, help="texts (or pairs) of a part, at most, drawn at random; default: all")
    parser.add_argument("--split", choices=("dev", "test"), default="test", help="dev: test files are not read")
    parser.add_argument("--model", default="en", help="for English sets; default: en")
    parser.add_argument("--zh-model", default="zh", help="for Chinese sets; default: zh")
    parser.add_argument("--device", help="for embedding, such as cuda; default: cpu")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    results = given.out / "results.jsonl"
    done = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    source = Vectors({"en": given.model, "zh": given.zh_model}, given.out, given.limit, given.device)
    sys.stdout.write(f"{'set':14}{'bar':>8}" + "".join(f"{each:>10}" for each in POOLINGS) + "\n")
    for name in given.sets.split(","):
        if name not in SETS:
            sys.exit(f"unknown set {name!r}; known: {', '.join(SETS)}")
        key = {"set": name, "split": given.split, "limit": given.limit, "model": source.model(SETS[name].language)[1]}
        found = next((row["scores"] for row in done if {each: row[each] for each in key} == key), None)
        if found is None:
            began = time.monotonic()
            found = measure(name, source, given.split)
            row = {**key, "scores": found, "seconds": round(time.monotonic() - began), "date": time.strftime("%Y-%m-%d")}
            with results.open("a") as file:
                file.write(json.dumps(row) + "\n")
        digits = 3 if SETS[name].is_similarity else 1
        shown = "".join(f"{found[each]:10.{digits}f}" if each in found else f"{'-':>10}" for each in POOLINGS)
        sys.stdout.write(f"{name:14}{SETS[name].bar:8.{digits}f}{shown}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
