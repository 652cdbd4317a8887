"""Peak memory of pre-training against the size of the text: `python -m benchmarks.memory [--size small] [--words N]`.

Runs `polyseme pretrain elmo` on a text and on one ten times larger, for the same few batches and with the same vocabulary,
and samples the anonymous memory (RssAnon) of the process and its workers. Mapped pages do not count: the system
reclaims them when needed. The bar: the larger text needs at most 1.1 times as much. The text is the English
training text of POLYSEME_DATA where that is set, else words drawn by Zipf's law. Linux only.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.workload import drawn

TIMES = 10
SOURCE = Path(os.environ.get("POLYSEME_DATA", "")) / "corpora/en/en-mix.txt.xz"


def write_text(path: Path, size: int) -> list[str]:
    """Write about so many bytes of whole lines; return the options that split them."""
    if SOURCE.is_file():
        with lzma.open(SOURCE, "rb") as packed:
            path.write_bytes(packed.read(size).rpartition(b"\n")[0] + b"\n")
        return []
    path.write_text("".join(" ".join(words) + "\n" for words in drawn(size // 80)), encoding="utf-8")
    return ["--splitter", "whitespace", "--sentences", "lines"]


def anonymous(process: int) -> int:
    """Return the bytes of a process and its children; 0 if it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return 0
    own = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:")), 0)
    return 1024 * own + sum(anonymous(int(child)) for child in children)


def peaks(call: list[str], run: Path) -> dict[str, int]:
    """Return the peak while the text is encoded, and after that."""
    found = {"encoding": 0, "training": 0}
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, text=True) as process:
        while process.poll() is None:
            phase = "training" if any(run.glob("shards-*")) else "encoding"
            found[phase] = max(found[phase], anonymous(process.pid))
            time.sleep(0.02)
        assert process.stderr is not None
        if process.returncode:
            raise SystemExit(process.stderr.read())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--words", type=int, default=25_600, help="to train on")
    parser.add_argument("--bytes", type=int, default=1_500_000, help="of the smaller text")
    parser.add_argument("--vocabulary", type=int, default=5000, help="the same for both, so that the models are")
    parser.add_argument("--workers", type=int, default=2, help="the same for both: a small text would have none")
    options = parser.parse_args()
    result: dict[str, object] = vars(options) | {"text": SOURCE.name if SOURCE.is_file() else "drawn"}
    highest = []
    with tempfile.TemporaryDirectory() as folder:
        for times in (1, TIMES):
            text, out = Path(folder, f"{times}.txt"), Path(folder, f"model-{times}")
            split = write_text(text, times * options.bytes)
            call = [sys.executable, "-m", "polyseme", "pretrain", "elmo", "--corpus", str(text), "--out", str(out), *split]
            for name in ("size", "words", "vocabulary", "workers"):
                call += [f"--{name}", str(getattr(options, name))]
            found = peaks([*call, "--batch-words", "2560", "--device", "cpu"], out / "run")
            manifest = json.loads(next((out / "run").glob("shards-*/manifest.json")).read_text())
            result[f"{times}x"] = {name: manifest[name] for name in ("words", "sentences", "types")} | {
                f"{name}_mb": round(value / 1e6, 1) for name, value in found.items()
            }
            highest.append(found)
    for phase in ("encoding", "training"):
        result[f"ratio_{phase}"] = round(highest[1][phase] / highest[0][phase], 3)
    result["ratio"] = round(max(highest[1].values()) / max(highest[0].values()), 3)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
