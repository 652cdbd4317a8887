"""Defaults only: every labelled set under POLYSEME_DATA, as a new user would train it, beside what anyone would try first.

    python -m benchmarks.defaults --seeds 1,2,3 --out results.jsonl
    python -m benchmarks.defaults --sets cola,mrpc --jobs 4 --device cuda --precision bf16
    python -m benchmarks.defaults --peers sklearn,fasttext,spacy --peer-python /path/to/python --out results.jsonl
    python -m benchmarks.defaults --table results.jsonl peers.jsonl
    python -m benchmarks.defaults --costs results.jsonl peers.jsonl

Every run is one command, `polyseme train TASK --data ... --test ... --out ...`; what is given beside it describes the files
(columns). GLUE sets have no labelled test file: their dev file is the test data, and the best network is selected on a tenth
of the training data. MR, SUBJ, CR and MPQA come as one file: ten folds. A finished run is not repeated: results are appended
to the file as JSON lines. Peers (`benchmarks.default_peers`) get the same files, with their own defaults.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

PEERS = ("sklearn", "fasttext", "spacy")


@dataclass(frozen=True)
class DefaultsSet:
    """A labelled set: its files, its columns, the metric that is reported, and the score to reach."""

    task: str
    train: str
    test: str | None = None
    dev: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    folds: int | None = None
    metric: str = "accuracy"
    bar: float | None = None


_SICK = {"train": "nli_sick_en/SICK_train.txt", "dev": "nli_sick_en/SICK_trial.txt"}
_SICK["test"] = "nli_sick_en/SICK_test_annotated.txt"
_ONE = "sentence_classification_en"


def _three(task: str, pattern: str, dev: str = "dev", **more: Any) -> DefaultsSet:
    return DefaultsSet(task, pattern.format("train"), pattern.format("test"), pattern.format(dev), **more)


SETS = {
    # ---- classification
    "cola": DefaultsSet(
        "classification",
        "glue_cola_en/train.tsv",
        "glue_cola_en/dev.tsv",
        metric="matthews",
        bar=20.0,
    ),
    "sst2": DefaultsSet("classification", "glue_sst2_en/train.tsv.gz", "glue_sst2_en/dev.tsv", bar=87.0),
    "mr": DefaultsSet("classification", f"{_ONE}/rt-polarity.all", folds=10, bar=79.0),
    "subj": DefaultsSet("classification", f"{_ONE}/subj.all", folds=10, bar=94.0),
    "cr": DefaultsSet("classification", f"{_ONE}/custrev.all", folds=10, bar=82.0),
    "mpqa": DefaultsSet("classification", f"{_ONE}/mpqa.all", folds=10),
    "trec": DefaultsSet("classification", f"{_ONE}/TREC.train.all", f"{_ONE}/TREC.test.all", bar=93.5),
    "ag": DefaultsSet("classification", "agnews_en_subset/train_subset.tsv.gz", "agnews_en_subset/test.tsv.gz", bar=88.5),
    "imdb": DefaultsSet("classification", "sentiment_imdb_en/train.jsonl.xz", "sentiment_imdb_en/test.jsonl.xz", bar=90.5),
    "sst2-sentences": _three("classification", "sst_en/sst2.{}.tsv"),
    "sst5-sentences": _three("classification", "sst_en/sst5.{}.tsv"),
    "sst5": _three("classification", "sst_en/trees.{}.txt.gz"),
    "smp2020": _three("classification", "smp2020_ewect_zh/{}.tsv.gz", bar=75.0),
    "chnsenticorp": _three("classification", "chnsenticorp_zh/{}.tsv.gz"),
    # ---- pairs
    "sick": DefaultsSet("pairs", **_SICK, options={"label": "entailment_judgment"}, bar=84.0),
    "sick-relatedness": DefaultsSet(
        "pairs", **_SICK, options={"label": "relatedness_score", "goal": "score"}, metric="pearson", bar=80.0
    ),
    "mrpc": DefaultsSet(
        "pairs", "mrpc_en/msr-para-train.tsv", "mrpc_en/msr-para-test.tsv", "mrpc_en/msr-para-val.tsv", bar=71.0
    ),
    "snli": _three("pairs", "nli_snli_subset_en/snli_subset.{}.tsv", bar=62.0),
    "rte": DefaultsSet("pairs", "glue_rte_en/train.tsv", "glue_rte_en/dev.tsv"),
    "mpe": _three(
        "pairs", "nli_mpe_en/mpe_{}.txt.gz", options={"text": "premise1", "second": "hypothesis", "label": "gold_label"}
    ),
    "stsb": _three(
        "pairs",
        "sts_benchmark_en/sts-{}.csv",
        metric="pearson",
        bar=68.0,
    ),
    "ocnli": DefaultsSet("pairs", "nli_ocnli_zh/train.50k.json.gz", "nli_ocnli_zh/dev.json.gz"),
    "lcqmc": DefaultsSet("pairs", "pairs_zh/lcqmc.dev.tsv.gz", "pairs_zh/lcqmc.test.tsv.gz"),
    "bq": DefaultsSet("pairs", "pairs_zh/bq.dev.csv.gz", "pairs_zh/bq.test.csv.gz"),
    "atec": DefaultsSet("pairs", "pairs_zh/atec.train_part1.tsv.gz", "pairs_zh/afqmc.dev.jsonl.gz"),
    # ---- words
    "conll2003": DefaultsSet(
        "tagging",
        "ner_conll2003_en/eng.train",
        "ner_conll2003_en/eng.testb",
        "ner_conll2003_en/eng.testa",
        metric="f1",
        bar=89.8,
    ),
    "ewt-pos": _three("tagging", "pos_ud_english_ewt/en_ewt-ud-{}.conllu.gz"),
    "msra": DefaultsSet("tagging", "ner_msra_zh/msra.train.bio.gz", "ner_msra_zh/msra.test.bio.gz", metric="f1"),
    "resume": _three("tagging", "ner_resume_zh/{}.char.bmes", metric="f1"),
    "ewt-roles": _three("roles", "srl_propbank_ewt_en/ewt.{}.jsonl.gz", metric="f1"),
    # ---- documents
    "squad": _three("reading", "rc_squad1.1_subset_en/squad_subset.{}.json.gz", metric="f1", bar=51.0),
    "drcd": DefaultsSet(
        "reading",
        "rc_drcd_zh/DRCD_train_subset.json.gz",
        "rc_drcd_zh/DRCD_test.json.gz",
        "rc_drcd_zh/DRCD_dev.json.gz",
        metric="f1",
    ),
    "ontogum": _three("coreference", "coref_ontogum_en/ontogum.{}.jsonlines.gz", metric="f1"),
    "litbank": _three("coreference", "coref_litbank_en/litbank.{}.jsonlines.gz", metric="f1"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS), help="names, separated by commas")
    parser.add_argument("--seeds", default="1", help="numbers, separated by commas; sets with folds use the first")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--device", default=None)
    parser.add_argument("--precision", default=None)
    parser.add_argument("--out", type=Path, default=Path("defaults.jsonl"), help="results, one per line")
    parser.add_argument("--option", action="append", default=[], help="another option, such as dropout=0.2, to try a default")
    parser.add_argument("--peers", default="", help=f"instead of polyseme: {', '.join(PEERS)}")
    parser.add_argument("--peer-python", default=sys.executable, help="the interpreter that has the peers")
    parser.add_argument("--table", type=Path, nargs="+", default=None, help="print the table of files of results")
    parser.add_argument("--costs", type=Path, nargs="+", default=None, help="print what the runs in files of results took")
    given = parser.parse_args()
    for shown, paths in ((table, given.table), (costs, given.costs)):
        if paths is not None:
            print(shown([each for path in paths for each in read_results(path)]))
            return
    done = {(each["set"], each["system"], each["seed"]) for each in read_results(given.out)}
    seeds = [int(seed) for seed in given.seeds.split(",")]
    jobs = [
        (name, system, seed)
        for name in given.sets.split(",")
        for system in (given.peers.split(",") if given.peers else ["polyseme"])
        for seed in (seeds[:1] if SETS[name].folds else seeds)
        if (name, system, seed) not in done
    ]
    with ThreadPoolExecutor(given.jobs) as pool:
        for future in as_completed([pool.submit(run, *job, given) for job in jobs]):
            result = future.result()
            with given.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
            shown = {name: value for name, value in result.items() if name in ("score", "baseline", "seconds", "error")}
            print(result["set"], result["system"], result["seed"], shown, flush=True)


def run(name: str, system: str, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """Train and score one system on one set, in a process of its own."""
    labelled, root = SETS[name], Path(os.environ["POLYSEME_DATA"], "tasks")
    files = {"data": labelled.train, "dev": labelled.dev, "test": labelled.test}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        options = {**labelled.options, **{key: str(root / path) for key, path in files.items() if path}, "seed": str(seed)}
        options |= {"folds": str(labelled.folds)} if labelled.folds else {}
        options |= dict(each.split("=", 1) for each in given.option)
        if system == "polyseme":
            options |= {key: value for key, value in (("device", given.device), ("precision", given.precision)) if value}
            command = [sys.executable, "-m", "polyseme", "train", labelled.task, "--out", str(out)]
        else:
            peers = str(Path(__file__).with_name("default_peers.py"))
            command = [given.peer_python, peers, system, labelled.task, "--out", str(out)]
        command += [word for key, value in options.items() for word in _flag(key.replace("_", "-"), value)]
        found: dict[str, Any] = {"set": name, "system": system, "seed": seed, **timed(command, log := Path(folder, "log"))}
        if not (out / "result.json").is_file():
            return {**found, "error": log.read_text(encoding="utf-8", errors="replace").strip()[-300:]}
        result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    return {**found, **scores(result, labelled)}


def timed(command: list[str], log: Path) -> dict[str, float]:
    """Run a command; return its time, that of its cores, and the most memory that it used."""
    began = time.monotonic()
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = {"seconds": time.monotonic() - began, "cpu_seconds": usage.ru_utime + usage.ru_stime}
    return {name: round(value, 1) for name, value in seconds.items()} | {"peak_gb": round(usage.ru_maxrss / 1024**2, 2)}


def _flag(name: str, value: str) -> list[str]:
    return [f"--{name}" if value == "true" else f"--no-{name}"] if value in ("true", "false") else [f"--{name}", value]


def scores(result: dict[str, Any], labelled: DefaultsSet) -> dict[str, Any]:
    """The test score in points, and that of the baseline; of folds, the means."""
    of_folds = next((each for name, each in result.get("baselines", {}).items() if name != "majority"), {})
    baseline = (result.get("baseline") or {}).get("test", of_folds).get(labelled.metric)
    return {
        "score": round(100 * result["scores"]["test"][labelled.metric], 2),
        "dev": round(100 * result["scores"].get("dev", {}).get(labelled.metric, float("nan")), 2),
        "baseline": None if baseline is None else round(100 * baseline, 2),
        "restarts": result.get("restarts"),
        "train_seconds": result.get("seconds"),
    }


def read_results(path: Path) -> list[dict[str, Any]]:
    """The results so far; failed runs are left out, so that they are repeated."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [each for each in map(json.loads, lines) if "error" not in each]


def table(results: list[dict[str, Any]]) -> str:
    """A Markdown table: a row for each set, with means over seeds."""
    by, systems = by_set_and_system(results)
    head = ["set", "metric", "bar", "baseline", *systems, "seeds", "seconds"]
    rows = [head, ["---"] * len(head)]
    for name, labelled in SETS.items():
        own = by.get((name, "polyseme"), [])
        baseline = [each["baseline"] for each in own if each.get("baseline") is not None]
        cells = [_mean([each["score"] for each in by.get((name, system), [])]) for system in systems]
        seconds = _mean([each["seconds"] for each in own])
        bar = "" if labelled.bar is None else f"{labelled.bar:g}"
        rows.append([name, labelled.metric, bar, _mean(baseline), *cells, str(len(own)), seconds])
    return _markdown(rows)


def costs(results: list[dict[str, Any]]) -> str:
    """A Markdown table: the processor time of each system, test data included, and its peak memory."""
    by, systems = by_set_and_system(results)
    head = ["set", *(f"{system}, {unit}" for unit in ("s", "GB") for system in systems)]
    rows = [head, ["---"] * len(head)]
    for name in SETS:
        runs = [by.get((name, system), []) for system in systems]
        if any(runs):
            seconds = [_mean([each["cpu_seconds"] for each in own], ".0f") for own in runs]
            rows.append([name, *seconds, *(_mean([each["peak_gb"] for each in own]) for own in runs)])
    return _markdown(rows)


def by_set_and_system(results: list[dict[str, Any]]) -> tuple[dict[tuple[str, str], list[dict[str, Any]]], list[str]]:
    """The results of each set and system, and the systems in the order of their columns."""
    by: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for each in results:
        by[each["set"], each["system"]].append(each)
    return by, [system for system in ("polyseme", *PEERS) if any(key[1] == system for key in by)]


def _markdown(rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _mean(values: list[float], form: str = ".1f") -> str:
    return f"{mean(values):{form}}" if values else ""


if __name__ == "__main__":
    main()
