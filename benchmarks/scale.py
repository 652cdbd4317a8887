"""Datasets at size: `python -m benchmarks.scale ratio|memory|files|large [--model en] [--megabytes 1]`.

ratio    words per second of two workers compared with one, one thread each; runs alternate and the best of each counts
memory   peak memory of a process that embeds a text, and ten times the text
files    a hundred thousand small files
large    one file of 2 GB: the scan of all of it, and three of its parts
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.dedupe import peak_memory, vocabulary_and_text
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
    call = ["embed", "--input", text, "--out", out, "--model", model, "--layers", "top", "--fp16", "--json", *options]
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
            found.append(embed(text, out, model, "--workers", workers, "--shard-size", size)["words_per_second"])
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


def alone(text: str, out: str, model: str) -> None:
    """Embed in this process and print its peak memory."""
    import polyseme

    polyseme.embed_dataset(text, out, model=model, layers="top", fp16=True, workers=0, shard_size=100_000)
    print(peak_memory())


def files(work: Path, count: int = 100_000) -> dict[str, Any]:
    folder = work / "texts"
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:06}.txt").write_text(f"the bank {number}\n\n", encoding="utf-8")
    began = time.monotonic()
    result = embed(folder, work / "out", str(write_model(work / "model")), "--workers", 2, "--shard-size", "100KB")
    return {"files": count, "lines": result["lines"], "parts": result["parts"], "seconds": time.monotonic() - began}


def large(work: Path, gigabytes: float = 2) -> dict[str, Any]:
    import pyarrow.parquet as pq

    from polyseme.encoders.embed_config import EmbedConfig
    from polyseme.encoders.fingerprint import model_fingerprint
    from polyseme.formats.load import load
    from polyseme.scale.config import DatasetConfig
    from polyseme.scale.dataset import scan, shards_of
    from polyseme.scale.embedding import EmbedShards
    from polyseme.scale.engines.local import LocalEngine
    from polyseme.scale.folder import DatasetFolder

    path = work / "large.txt"
    with path.open("w", encoding="utf-8") as file:
        number = 0
        while file.tell() < gigabytes * 1e9:
            file.write(
                "".join(
                    f"{each} the bank of the river is far from the town and the lake\n"
                    for each in range(number, number + 10_000)
                )
            )
            number += 10_000
    began = time.monotonic()
    shards = scan(shards_of([path], 1_000_000, None), LocalEngine(2), "text")
    seconds = time.monotonic() - began
    model = write_model(work / "model")
    folder = DatasetFolder.at(work / "out")
    embedder = EmbedShards(
        str(model), {}, model_fingerprint(load(str(model))), EmbedConfig(layers="top"), DatasetConfig(), folder
    ).start()
    for shard in (shards[0], shards[len(shards) // 2], shards[-1]):
        embedder(shard)
        rows = pq.read_table(work / "out" / shard.name, columns=["line", "words"]).to_pylist()
        assert len(rows) == shard.lines and all(row["words"][0] == str(row["line"]) for row in rows)
    assert sum(shard.lines for shard in shards) == number
    result = {"bytes": path.stat().st_size, "lines": number, "shards": len(shards), "scan_seconds": seconds}
    return {**result, "driver_peak_bytes": peak_memory()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["ratio", "memory", "files", "large", "alone"])
    parser.add_argument("--model", default="en")
    parser.add_argument("--megabytes", type=float, default=1)
    parser.add_argument("--given", nargs=2)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if given.what == "alone":
        alone(*given.given, given.model)
        return
    work = Path(tempfile.mkdtemp(prefix="polyseme-scale-"))
    try:
        sized = {"ratio": partial(ratio, rounds=given.rounds), "memory": memory}
        if given.what in sized:
            result = sized[given.what](work, given.model, given.megabytes)
        else:
            result = files(work) if given.what == "files" else large(work)
        print(json.dumps({given.what: result}), flush=True)
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
