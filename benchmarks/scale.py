"""Datasets at size: `python -m benchmarks.scale ratio|memory|parquet|files|large [--model en] [--megabytes 1]`.

ratio    words per second of two workers compared with one, one thread each; runs alternate and the best of each counts
memory   peak memory of a process that embeds a text, and ten times the text
parquet  words per second of a random model of the size `small` into float16 means of layers, on `--device` by `--workers`
files    a hundred thousand small files, with the command killed (SIGKILL) and run again; all rows are compared
large    the same with one file of 2 GB: a million lines of 13 words, most of them long, by the model en-glove; Linux
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.arguments import at_least
from benchmarks.dedupe import peak_memory, vocabulary_and_text
from benchmarks.node_kills import descendants
from benchmarks.scale_kills import write_model

_LINE = 20  # words


def write_lines(path: Path, megabytes: float) -> Path:
    """Write lines of real text, if there is any."""
    words = vocabulary_and_text(int(megabytes * 180_000))
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < megabytes * 1e6:
            for begin in range(0, len(words), _LINE):
                file.write(" ".join(words[begin : begin + _LINE]) + "\n")
                if file.tell() >= megabytes * 1e6:
                    break
    return path


def embed(text: Path, out: Path, model: str, *options: object) -> dict[str, Any]:
    """Run the command and return its result."""
    call = ["embed", "--input", text, "--out", out, "--model", model, "--fp16", "--json", *options]
    done = subprocess.run([sys.executable, "-m", "polyseme", *map(str, call)], check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def ratio(work: Path, model: str, megabytes: float, rounds: int) -> dict[str, Any]:
    text = write_lines(work / "text.txt", megabytes)
    rates: dict[int, list[float]] = {1: [], 2: []}
    for number in range(rounds):
        for workers, found in rates.items():
            out = work / f"out-{workers}-{number}"
            size = int(megabytes * 1e6 / 24) + 1
            options = ["--layers", "top", "--workers", workers, "--shard-size", size]
            found.append(embed(text, out, model, *options)["words_per_second"])
            shutil.rmtree(out)
    best = {workers: max(found) for workers, found in rates.items()}
    return {"words_per_second": rates, "ratio": best[2] / best[1], "load": os.getloadavg()}


def memory(work: Path, model: str, megabytes: float) -> dict[str, Any]:
    peaks = []
    for factor in (1, 10):
        text = write_lines(work / f"text-{factor}.txt", megabytes * factor)
        call = [
            sys.executable,
            "-m",
            "benchmarks.scale",
            "alone",
            "--model",
            model,
            "--given",
            str(text),
            str(work / f"out-{factor}"),
        ]
        peaks.append(int(subprocess.run(call, check=True, capture_output=True, text=True).stdout.split()[-1]))
    return {"peak_bytes": peaks, "ratio": peaks[1] / peaks[0]}


def parquet(work: Path, megabytes: float, device: str, workers: int) -> dict[str, Any]:
    import torch

    from polyseme.encoders.elmo import Elmo
    from polyseme.encoders.elmo_config import SIZES

    torch.manual_seed(0)
    model = str(Elmo(SIZES["small"]).eval().save_pretrained(work / "small"))
    text = write_lines(work / "text.txt", megabytes)
    options = ["--layers", "mean", "--split-on-spaces", "--device", device, "--workers", workers, "--shard-size", "1MB"]
    options += [] if device == "cpu" else ["--precision", "fp16"]
    began = time.monotonic()
    result = embed(text, work / "out", model, *options)
    kept = {name: result[name] for name in ("words", "parts", "words_per_second")}
    return {**kept, "words_per_second_with_start": round(result["words"] / (time.monotonic() - began))}


def alone(text: str, out: str, model: str) -> None:
    """Embed in this process and print its peak memory."""
    import polyseme

    polyseme.embed_dataset(text, out, model=model, layers="top", fp16=True, workers=0, shard_size=100_000)
    print(peak_memory())


def embed_killed(text: Path, out: Path, model: str, parts: int, *options: object) -> dict[str, Any]:
    """Embed as `embed` does, but kill the command at so many parts and run it again; with seconds and peaks of memory."""
    call = ["embed", "--input", text, "--out", out, "--model", model, "--fp16", "--json", *options]
    peaks: dict[str, int] = {"command": 0, "worker": 0}
    began = time.monotonic()
    for kill in (True, False):
        process = subprocess.Popen([sys.executable, "-m", "polyseme", *map(str, call)], stdout=subprocess.PIPE, text=True)
        while process.poll() is None:
            peaks["command"] = max(peaks["command"], peak_of(process.pid))
            peaks["worker"] = max(peaks["worker"], *map(peak_of, descendants(process.pid)), 0)
            if kill and len(list(out.glob("*.parquet"))) >= parts:
                process.kill()
            time.sleep(0.2)
        output = process.communicate()[0]
        if process.returncode != (-signal.SIGKILL if kill else 0):
            raise SystemExit(f"the command ended with {process.returncode}")
    result = json.loads(output)
    kept = {name: result[name] for name in ("lines", "words", "parts", "resumed")}
    return {**kept, "seconds": round(time.monotonic() - began), "peak_bytes": peaks}


def peak_of(process: int) -> int:
    """Return the most memory that a process had; 0: it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def check_rows(out: Path, expected: Iterator[tuple[str, int, list[str]]]) -> None:
    """Compare file, line and words of all rows, in order."""
    import pyarrow.parquet as pq

    for part in sorted(out.glob("*.parquet")):
        for batch in pq.ParquetFile(part).iter_batches(columns=["file", "line", "words"]):
            for row in batch.to_pylist():
                found, wanted = (Path(row["file"]).name, row["line"], row["words"]), next(expected, None)
                if found != wanted:
                    raise SystemExit(f"{part} has the row {found}; expected: {wanted}")
    if (missing := next(expected, None)) is not None:
        raise SystemExit(f"{out} lacks the row {missing}")


def files(work: Path, count: int = 100_000) -> dict[str, Any]:
    folder = work / "texts"
    folder.mkdir()
    names = [f"{number:06}.txt" for number in range(count)]
    for number, name in enumerate(names):
        (folder / name).write_text(f"the bank {number}\n\n", encoding="utf-8")
    model = str(write_model(work / "model"))
    result = embed_killed(folder, work / "out", model, 8, "--layers", "top", "--workers", 2, "--shard-size", "100KB")
    rows = ((name, line, words) for n, name in enumerate(names) for line, words in enumerate([["the", "bank", str(n)], []]))
    check_rows(work / "out", rows)
    return {"files": count, **result}


def large(work: Path, gigabytes: float = 2) -> dict[str, Any]:
    path, long = work / "large.txt", [letter * 160 for letter in "abcdefghijkl"]
    ending = " ".join(["", *long]) + "\n"
    with path.open("w", encoding="utf-8") as file:
        lines = 0
        while file.tell() < gigabytes * 1e9:
            file.write("".join(f"{each}{ending}" for each in range(lines, lines + 1000)))
            lines += 1000
    options = ["--pooling", "mean", "--split-on-spaces", "--workers", 2, "--shard-size", "16MB"]
    result = embed_killed(path, work / "out", "en-glove", 40, *options)
    check_rows(work / "out", ((path.name, number, [str(number), *long]) for number in range(lines)))
    return {"bytes": path.stat().st_size, **result}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["ratio", "memory", "parquet", "files", "large", "alone"])
    parser.add_argument("--model", default="en")
    parser.add_argument("--megabytes", type=float, default=1)
    parser.add_argument("--given", nargs=2)
    parser.add_argument("--rounds", type=at_least(1), default=3)
    parser.add_argument("--device", default="cpu", help="of parquet")
    parser.add_argument("--workers", type=at_least(1), default=2, help="of parquet")
    given = parser.parse_args()
    if given.what == "alone":
        alone(*given.given, given.model)
        return
    work = Path(tempfile.mkdtemp(prefix="polyseme-scale-"))
    try:
        sized = {"ratio": partial(ratio, rounds=given.rounds), "memory": memory}
        if given.what == "parquet":
            result = parquet(work, given.megabytes, given.device, given.workers)
        elif given.what in sized:
            result = sized[given.what](work, given.model, given.megabytes)
        else:
            result = files(work) if given.what == "files" else large(work)
        print(json.dumps({given.what: result}), flush=True)
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
