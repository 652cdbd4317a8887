"""Real kills, and memory, in processes of their own."""

import io
import os
import random
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from polyseme.__main__ import main
from polyseme.formats.vectors.part_folder import PartFolder
from tests.cli.running import environment
from tests.cli.vector_files import KINDS, read_vectors

WORDS = ["the", "bank", "of", "a", "river", "money", "to", "Zürich", "河岸", "银行", ",", ".", "!", "book"]


def lines(count: int, seed: int = 0) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.choice([0, 1, 5, 12]))) for _ in range(count)]


def killed(arguments: list[str], saves: int) -> None:
    """Run a command in a copy of this process, which is killed after some saves of its work."""
    child = os.fork()
    if child == 0:
        left, save = saves, PartFolder.save

        def save_and_die(self, journal):
            nonlocal left
            save(self, journal)
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        PartFolder.save = save_and_die
        try:
            main(arguments)
        finally:
            os._exit(1)  # it ended, or failed, before it was killed
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize("kills", [1, pytest.param(8, marks=pytest.mark.slow)])  # one kill shows what eight do
@pytest.mark.parametrize(
    "kind",  # tests/formats/vectors has the other kinds, stopped inside the process
    [kind if kind == ".jsonl" else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS if kind != ".h5"],
)
def test_killed_and_resumed(run, model, loaded, tmp_path, kind, kills):
    if kind == ".parquet":
        pytest.importorskip("pyarrow")
    count, every = 1_000 * kills, 37 * kills
    text, out = tmp_path / "text.txt", tmp_path / f"v{kind}"
    text.write_text("\n".join(lines(count)) + "\n", encoding="utf-8")
    arguments = ["embed", "-i", str(text), "-m", model, "-o", str(out), "--save-every", "0", "--batch-words", "128"]
    for _ in range(kills):
        killed(arguments, saves=2)
        assert not out.exists()
    result = run(*arguments)
    assert result.code == 0 and "resuming after line" in result.err
    found = read_vectors(out)
    assert sorted(found) == list(range(count))
    expected = loaded.embed(lines(count)[::every])
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


_INTERRUPTED = """
import os, signal, sys, threading, time
from polyseme.__main__ import main
from polyseme.formats.vectors.hdf5 import Hdf5Writer
from polyseme.formats.vectors.part_folder import PartFolder

saved, save, finish = threading.Event(), PartFolder.save, Hdf5Writer.finish

def save_and_say(self, journal):
    save(self, journal)
    saved.set()

def interrupt():
    saved.wait()
    time.sleep(float(sys.argv[1]))
    os.kill(os.getpid(), signal.SIGINT)

def finish_afterwards(self, *arguments):  # so that the work is never done before the signal, however slow the machine
    thread.join()
    return finish(self, *arguments)

PartFolder.save, Hdf5Writer.finish = save_and_say, finish_afterwards
thread = threading.Thread(target=interrupt)
thread.start()
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.slow  # a minute, for many moments; the test below has one
def test_every_interrupt_is_heard(run, model, tmp_path):
    """At many moments, most of them inside HDF5: one Ctrl-C is enough, and the same command resumes the work."""
    text, out = tmp_path / "text.txt", tmp_path / "v.hdf5"
    text.write_text("the\n" * 60_000)
    arguments = ["embed", "-i", str(text), "-m", model, "-o", str(out), "--batch-words", "2048"]
    draw = random.Random(3)
    for _ in range(6):
        call = [sys.executable, "-c", _INTERRUPTED, str(draw.random() / 5), *arguments, "--save-every", "0"]
        done = subprocess.run(call, capture_output=True, text=True, env=environment(), check=False)
        *notes, last = done.stderr.splitlines()
        assert done.returncode == 130 and last == "polyseme: interrupted: run the same command to resume", done
        assert all("resuming after line" in note for note in notes)
    assert run(*arguments).code == 0
    assert sorted(read_vectors(out)) == list(range(60_000))


def test_an_interrupt_while_waiting_for_input_stops_at_once(run, model, tmp_path, monkeypatch):
    """Nothing is ever written to the pipe that it reads; before it waits, it must stop in the same way."""
    reader, writer = os.pipe()
    reads, over = threading.Event(), threading.Event()

    class Watched(io.FileIO):
        def readinto(self, buffer):
            reads.set()
            return super().readinto(buffer)

    def interrupt():
        reads.wait()
        if not over.wait(0.3):  # by then it most likely waits
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    with io.TextIOWrapper(io.BufferedReader(Watched(reader))) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        thread.start()
        result = run("embed", "-m", model, "-o", tmp_path / "v.hdf5")
        over.set()
        reads.set()
        thread.join()
    os.close(writer)
    assert result.code == 130 and list(tmp_path.iterdir()) == []
