"""Near-duplicates that were planted: `python -m benchmarks.dedupe [--documents 5000] [--scale 10]`.

Documents of 50 to 300 words of real text (POLYSEME_DATA, else random words); a third of them get a copy of which 1 to 20 % of
the words are replaced by other words of the text. Recall is the share of the copies that were dropped, by what was replaced;
precision is the share of the dropped documents that are copies, or originals behind their copy. `--scale` repeats the run with
so many times the documents, and compares the peak memory.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.memory import SOURCE


def vocabulary_and_text(words: int) -> list[str]:
    """Return running text as words: real if there is any, and as much of it as there is."""
    if SOURCE.is_file():
        found: list[str] = []
        with lzma.open(SOURCE, "rt", encoding="utf-8") as lines:
            for line in lines:
                found += line.split()
                if len(found) >= words:
                    break
        return found[:words]
    draw = random.Random(0)
    known = [f"w{number}" for number in range(20_000)]
    return draw.choices(known, weights=[1 / (rank + 3) for rank in range(20_000)], k=words)


def write_documents(path: Path, count: int, seed: int = 0) -> dict[int, tuple[int, float]]:
    """Write documents in random order; returns for each copy its line, that of its original and how much was replaced."""
    draw = random.Random(seed)
    text = vocabulary_and_text(400 * count)
    documents: list[tuple[list[str], int, float]] = []  # words, original, replaced
    begin = 0
    for number in range(count):
        size = draw.randint(50, 300)
        if begin + size > len(text):  # the text is too short: its words in another order
            begin = 0
            draw.shuffle(text)
        words = text[begin : begin + size]
        begin += size
        documents.append((words, -1, 0.0))
        if number % 3 == 0:
            share = draw.choice([0.01, 0.02, 0.05, 0.08, 0.1, 0.15, 0.2])
            copy = list(words)
            for place in draw.sample(range(size), max(round(share * size), 1)):
                copy[place] = draw.choice(text)
            documents.append((copy, len(documents) - 1, share))
    order = list(range(len(documents)))
    draw.shuffle(order)
    line = {document: number for number, document in enumerate(order)}
    with path.open("w", encoding="utf-8") as file:
        for document in order:
            file.write(" ".join(documents[document][0]) + "\n")
    return {line[n]: (line[original], share) for n, (_, original, share) in enumerate(documents) if original >= 0}


def measure(count: int, work: Path) -> dict[str, Any]:
    """Return recall, precision and peak memory of one run."""
    path, out = work / f"{count}.txt", work / f"out-{count}"
    planted = write_documents(path, count)
    call = [sys.executable, "-m", "benchmarks.dedupe", "--run", str(path), str(out)]
    peak = int(subprocess.run(call, check=True, capture_output=True, text=True).stdout.split()[-1])
    reports = (report.read_text() for report in out.glob("_dropped-*.jsonl"))
    dropped = {json.loads(line)["line"] - 1 for report in reports for line in report.splitlines()}
    pairs = {frozenset((copy, original)): share for copy, (original, share) in planted.items()}
    found = {pair: bool(pair & dropped) for pair in pairs}
    recall = {
        share: sum(found[pair] for pair in pairs if pairs[pair] == share) / max(sum(s == share for s in pairs.values()), 1)
        for share in sorted(set(pairs.values()))
    }
    slight = [found[pair] for pair in pairs if pairs[pair] <= 0.1]
    right = {max(pair) for pair in pairs}
    return {
        "documents": count + len(planted),
        "recall": {str(share): round(value, 4) for share, value in recall.items()},
        "recall_to_0.1": round(sum(slight) / len(slight), 4),
        "precision": round(len(dropped & right) / max(len(dropped), 1), 4),
        "peak_bytes": peak,
    }


def run(path: str, out: str) -> None:
    """Dedupe, and print the peak memory of this process."""
    from polyseme.api.corpora import dedupe_corpus

    dedupe_corpus([path], out=out, workers=0)
    print(peak_memory())


def peak_memory() -> int:
    """Return the peak memory of this process in bytes; `getrusage` would count that of the process which started it."""
    status = Path("/proc/self/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=5000)
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--run", nargs=2)
    given = parser.parse_args(arguments)
    if given.run:
        run(*given.run)
        return []
    work = Path(tempfile.mkdtemp(prefix="polyseme-dedupe-"))
    try:
        results = [measure(given.documents * factor, work) for factor in sorted({1, given.scale})]
        for result in results:
            print(json.dumps(result), flush=True)
        return results
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
