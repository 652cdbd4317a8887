"""Real kills, and memory, in processes of their own."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import polyseme
from tests.cli.running import environment
from tests.cli.vector_files import KINDS, read_vectors

WORDS = ["the", "bank", "of", "a", "river", "money", "to", "Zürich", "河岸", "银行", ",", ".", "!", "book"]


def lines(count: int, seed: int = 0) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.choice([0, 1, 5, 12]))) for _ in range(count)]


def kill_once(call: list[str], journal: Path, wait: float) -> None:
    """Start a run and kill it some time after its first commit."""
    before = journal.stat().st_mtime_ns if journal.exists() else 0
    with subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment()) as run:
        while run.poll() is None and not (journal.exists() and journal.stat().st_mtime_ns != before):
            time.sleep(0.001)
        time.sleep(wait)
        run.kill()
        assert b"Traceback" not in run.stderr.read()


@pytest.mark.parametrize("kills", [1, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "kind",
    [kind if kind == ".jsonl" else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS if kind != ".h5"],
)
def test_killed_and_taken_up(run, model, tmp_path, kind, kills):
    if kind == ".parquet":
        pytest.importorskip("pyarrow")
    count, every = 4_000 * kills, 37 * kills
    text, out = tmp_path / "text.txt", tmp_path / f"v{kind}"
    text.write_text("\n".join(lines(count)) + "\n", encoding="utf-8")
    arguments = ["embed", "-i", str(text), "-m", model, "-o", str(out), "--save-every", "0", "--batch-words", "256"]
    draw = random.Random(kind)
    for _ in range(kills):
        call = [sys.executable, "-m", "polyseme", *arguments]
        kill_once(call, tmp_path / f"v{kind}.part" / "journal.json", draw.random() / 5)
        assert not out.exists()
    result = run(*arguments)
    assert result.code == 0 and "resuming after line" in result.err
    found = read_vectors(out)
    assert sorted(found) == list(range(count))
    expected = polyseme.load(model).embed(lines(count)[::every])
    for line, array in zip(range(0, count, every), expected, strict=True):
        np.testing.assert_allclose(found[line], array, atol=1e-6)


_PEAK = """
import resource, sys
from polyseme.__main__ import main
main(["embed", "the bank", "-m", sys.argv[1], "-o", sys.argv[3] + ".first.hdf5"])
first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
main(["embed", "-i", sys.argv[2], "-m", sys.argv[1], "-o", sys.argv[3], "--batch-words", "1024"])
sys.stderr.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - first))
"""


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow) for kind in (".npz", ".hdf5", ".jsonl", ".parquet")]
)
def test_memory_is_bounded_by_the_batch(model, tmp_path, kind):
    """The vectors of the whole text take 100 MB as arrays; what the process grows by must not come near."""
    if kind == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / "long.txt"
    path.write_text("\n".join(["the bank of a river money to the book and on to the bank ." * 2] * 20_000))
    call = [sys.executable, "-c", _PEAK, model, str(path), str(tmp_path / f"v{kind}")]
    done = subprocess.run(call, capture_output=True, text=True, env=environment(), check=True)
    assert int(done.stderr) < 60_000, f"{done.stderr} KB"


@pytest.mark.skipif(not hasattr(signal, "SIGINT"), reason="no such signal")
@pytest.mark.slow
def test_every_interrupt_is_heard(run, model, tmp_path):
    """At many moments, most of them inside HDF5: one Ctrl-C is enough, and the work goes on from there."""
    text, out = tmp_path / "text.txt", tmp_path / "v.hdf5"
    text.write_text("the\n" * 60_000)
    arguments = ["embed", "-i", str(text), "-m", model, "-o", str(out), "--batch-words", "2048"]
    journal = tmp_path / "v.hdf5.part" / "journal.json"
    draw = random.Random(3)
    for _ in range(6):
        call = [sys.executable, "-m", "polyseme", *arguments, "--save-every", "0"]
        before = journal.stat().st_mtime_ns if journal.exists() else 0
        with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
            while process.poll() is None and not (journal.exists() and journal.stat().st_mtime_ns != before):
                time.sleep(0.001)
            time.sleep(draw.random() / 5)
            process.send_signal(signal.SIGINT)
            told = process.stderr.read().decode().splitlines()
        assert process.returncode == 130 and told[-1] == "polyseme: stopped; the same command goes on where it stopped", told
        assert all("resuming after line" in line for line in told[:-1])
    assert run(*arguments).code == 0
    assert sorted(read_vectors(out)) == list(range(60_000))


def test_an_interrupt_while_waiting_for_input_stops_at_once(model, tmp_path):
    call = [sys.executable, "-m", "polyseme", "embed", "-m", model, "-o", str(tmp_path / "v.hdf5")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(call, **pipes, env=environment()) as process:
        while not (tmp_path / "v.hdf5.part" / "lock").exists():
            time.sleep(0.01)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 130
    assert list(tmp_path.iterdir()) == []
