"""Shards: the corpus back from its numbers, and nothing trusted that is not whole."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from polyseme.base.errors import FormatError, PolysemeError, UsageError
from polyseme.text.corpus import Corpus
from polyseme.text.counting.vocabulary_index import build_vocabulary
from polyseme.text.shards import writer as shard_writer
from polyseme.text.shards.shards import Shards

MARKS = ["<S>", "</S>", "<UNK>"]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "a.txt"
    chance = random.Random(4)
    spellings = [f"w{chance.randrange(10**6)}é" for _ in range(1500)] + ["<UNK>", "</S>", "漢字"]
    lines = (" ".join(chance.choices(spellings, k=chance.randrange(1, 30))) for _ in range(1200))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def corpus(path: Path, **options: object) -> Corpus:
    return Corpus(path, splitter="whitespace", sentences="lines", **{"workers": 0, **options})


def decoded(shards: Shards) -> list[list[str]]:
    return [[shards.types[word] for word in shards.sentence(place)] for place in range(len(shards))]


def test_round_trip(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_writer, "_SLICE", 500)  # renumbered in many slices
    shards = Shards.build(corpus(text), tmp_path)
    expected = [line.split() for line in text.read_text(encoding="utf-8").splitlines()]
    assert decoded(shards) == decoded(Shards.open(shards.folder)) == expected
    words = [word for sentence in expected for word in sentence]
    true = Counter(words)
    rest = sorted((word for word in true if word not in MARKS), key=lambda word: (-true[word], word))
    assert shards.types == MARKS + rest
    assert shards.counts.tolist() == [true[word] for word in MARKS + rest]
    assert (shards.total, len(shards), len(shards.words)) == (len(words), len(expected), len(words))
    assert shards.words.dtype == np.dtype("<u4") and shards.offsets.dtype == np.dtype("<i8")
    assert isinstance(shards.words, np.memmap) and isinstance(shards.offsets, np.memmap)
    with pytest.raises(IndexError):
        shards.sentence(len(shards))


def test_the_first_types_are_the_vocabulary(text: Path, tmp_path: Path) -> None:
    shards = Shards.build(corpus(text), tmp_path)
    vocabulary, _ = build_vocabulary(corpus(text), size=500)
    assert shards.types[:500] == vocabulary.words
    ids = np.where(shards.words < 500, shards.words, 2)
    assert ids.tolist() == vocabulary.ids([word for sentence in corpus(text) for word in sentence]).tolist()


def test_workers_write_the_same_bytes(text: Path, tmp_path: Path) -> None:
    here = Shards.build(corpus(text), tmp_path / "a")
    beside = Shards.build(corpus(text, workers=2), tmp_path / "b")
    assert here.folder.name == beside.folder.name
    for path in here.folder.iterdir():
        assert path.read_bytes() == (beside.folder / path.name).read_bytes(), path.name


def test_built_once_and_anew_when_the_text_changes(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = Path(shutil.copy(text, tmp_path / "copy.txt"))
    told: list[int] = []
    first = Shards.build(corpus(copy), tmp_path, told.append)
    assert sum(told) == first.total
    monkeypatch.setattr(Corpus, "blocks", None)  # to read the text again would fail
    assert Shards.build(corpus(copy), tmp_path).folder == first.folder
    monkeypatch.undo()
    copy.write_text("other words\n")
    assert decoded(Shards.build(corpus(copy), tmp_path)) == [["other", "words"]]
    assert Shards.build(corpus(copy, normalise_quotes=True), tmp_path).folder != first.folder


def test_runs_share_the_shards_that_a_corpus_keeps(text: Path, tmp_path: Path) -> None:
    told: list[int] = []
    first = Shards.build(corpus(text, shards=tmp_path / "kept"), tmp_path / "a", told.append)
    again = Shards.build(corpus(text, shards=tmp_path / "kept"), tmp_path / "b", told.append, only_known=True)
    assert again.folder == first.folder and first.folder is not None and first.folder.parent == tmp_path / "kept"
    assert sum(told) == first.total  # encoded once
    other = Shards.build(corpus(text, normalise_quotes=True, shards=tmp_path / "kept"), tmp_path / "a", only_known=True)
    assert other.folder != first.folder and not (tmp_path / "a").exists()
    with pytest.raises(UsageError, match="is a file; give a folder"):
        corpus(text, shards=text)


def test_words_without_end_are_cropped(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"{'x' * 3000} a {'x' * 1000}y\n")
    shards = Shards.build(corpus(tmp_path / "a.txt"), tmp_path / "out")
    assert decoded(shards) == [["x" * 1000, "a", "x" * 1000]] and shards.counts.tolist() == [0, 0, 0, 2, 1]


def spoil_manifest(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"fingerprint": "0" * 64}))


SPOILS = {
    "no manifest": lambda folder: (folder / "manifest.json").unlink(),
    "half a manifest": lambda folder: (folder / "manifest.json").write_text('{"polyseme_shards": 1,'),
    "manifest of something": lambda folder: (folder / "manifest.json").write_text("{}"),
    "another corpus": spoil_manifest,
    "words cut": lambda folder: os.truncate(folder / "words.bin", 4000),
    "sentences gone": lambda folder: (folder / "sentences.bin").unlink(),
    "types changed": lambda folder: (folder / "types.txt").write_text("a\n"),
    "types gone": lambda folder: (folder / "types.txt").unlink(),
    "counts changed": lambda folder: (folder / "counts.bin").write_bytes(bytes((folder / "counts.bin").stat().st_size)),
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_what_is_not_whole_is_not_trusted(text: Path, tmp_path: Path, spoil: str) -> None:
    folder = Shards.build(corpus(text), tmp_path).folder
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    SPOILS[spoil](folder)
    if spoil != "another corpus":
        with pytest.raises(FormatError):
            Shards.open(folder)
    assert Shards.build(corpus(text), tmp_path).folder == folder
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


_KILLED = """
import os, signal, sys
from polyseme.text.shards import files as shard_files
from polyseme.text.shards import writer as shard_writer
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards

def die(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

moment, text, folder = sys.argv[1:]
if moment == "renumbering":
    shard_writer._renumber = die
elif moment == "manifest":
    shard_files.write_text = die
Shards.build(Corpus(text, splitter="whitespace", sentences="lines", workers=0), folder, die if moment == "reading" else None)
"""


@pytest.mark.parametrize("moment", ["reading", "renumbering", "manifest"])
def test_a_killed_build_leaves_nothing_trusted(text: Path, tmp_path: Path, moment: str) -> None:
    call = [sys.executable, "-c", _KILLED, moment, str(text), str(tmp_path)]
    assert subprocess.run(call, check=False).returncode == -signal.SIGKILL
    left = [path for path in tmp_path.iterdir() if path.suffix != ".lock"]
    assert len(left) == 1 and left[0].name.endswith(".part")
    with pytest.raises(FormatError, match="no complete shards"):
        Shards.open(left[0])
    shards = Shards.build(corpus(text), tmp_path)
    assert decoded(shards) == list(corpus(text))
    assert list(tmp_path.iterdir()) == [shards.folder]


_TOGETHER = """
import os, sys, time
from pathlib import Path
from polyseme.base import lock
from polyseme.text.shards import shards
from polyseme.text.corpus import Corpus

locks, text, folder, signs = sys.argv[1:]
write = shards.write_shards

def arrive(*_):
    Path(signs, str(os.getpid())).touch()

def slow(*arguments):
    print("built")
    arrive()
    while len(os.listdir(signs)) < 3:  # until the other two build too, or wait for the lock
        time.sleep(0.01)
    write(*arguments)

shards.write_shards = slow
lock._log.info = arrive  # called by a process that waits
if locks == "no locks":
    lock._acquire = lambda *_: False
corpus = Corpus(text, splitter="whitespace", sentences="lines", workers=0)
assert len(shards.Shards.build(corpus, folder)) == 1200
"""


@pytest.mark.skipif(os.name != "posix", reason="needs locks")
@pytest.mark.parametrize(("locks", "builds"), [("locks", 1), pytest.param("no locks", 3, marks=pytest.mark.slow)])
def test_of_processes_that_come_together_one_builds(text: Path, tmp_path: Path, locks: str, builds: int) -> None:
    """Where there are no locks all do, and the first to end wins."""
    folder, signs = tmp_path / "out", tmp_path / "signs"
    signs.mkdir()
    call = [sys.executable, "-c", _TOGETHER, locks, str(text), str(folder), str(signs)]
    started = [subprocess.Popen(call, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate(timeout=300)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0]
    assert "".join(said).count("built") == builds
    shards = Shards.build(corpus(text), folder)
    assert list(folder.iterdir()) == [shards.folder]


def test_text_that_changes_while_it_is_read(text: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(text, tmp_path / "copy.txt"))

    def change(words: int) -> None:
        if copy.stat().st_size == text.stat().st_size:  # once: a file that grows as it is read has no end
            copy.write_bytes(text.read_bytes() + b"more\n")

    with pytest.raises(PolysemeError, match="changed while it was read"):
        Shards.build(corpus(copy), tmp_path / "out", change)
    assert not (tmp_path / "out").exists()


def test_no_words_and_no_room(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(PolysemeError, match=r"empty.txt: the text has no words"):
        Shards.build(corpus(tmp_path / "empty.txt"), tmp_path / "out")

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shard_writer, "_write", full)
    with pytest.raises(PolysemeError, match=r"cannot write .*No space left on device"):
        Shards.build(corpus(text), tmp_path / "out")
    assert not (tmp_path / "out").exists()


_MEMORY = """
import sys
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards

def anonymous():
    return int(next(line for line in open("/proc/self/status") if line.startswith("RssAnon")).split()[1])

peak = [0]
shards = Shards.build(Corpus(sys.argv[1], splitter=sys.argv[3], workers=0), sys.argv[2], lambda words: peak.append(anonymous()))
print(max(peak), anonymous(), shards.total)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
@pytest.mark.parametrize(
    ("splitter", "words_each"),
    [("whitespace", 14), pytest.param("english", 20, marks=pytest.mark.slow)],  # slow: the same with a slower splitter
)
def test_memory_does_not_grow_with_the_text(tmp_path: Path, splitter: str, words_each: int) -> None:
    peaks = []
    for times in (30, 300):  # several chunks of text both times
        path = tmp_path / f"{times}.txt"
        path.write_text("The bank of the river, e.g. near Mr. Poe's house, is steep. It's raining. " * 40 + "\n")
        path.write_text(path.read_text() * 10 * times)
        call = [sys.executable, "-c", _MEMORY, str(path), str(tmp_path), splitter]
        peak, after, words = map(int, subprocess.run(call, capture_output=True, check=True).stdout.split())
        peaks.append(max(peak, after))
        assert words == 10 * times * 40 * words_each
    assert peaks[1] < 1.1 * peaks[0]
