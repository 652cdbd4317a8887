"""From lines of text to a file of vectors, in memory bounded by a batch, and taken up again where a stop left it.

Lines are read, split and embedded in chunks (`embed_rows`), and `store` puts the chunks into a file. Vectors do not
depend on how lines are cut into chunks, except with `start="carry"`, where chunks hold whole batches and a stopped run
starts again.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import polyseme
from polyseme.base.errors import PolysemeError
from polyseme.base.files import wrap_os_errors
from polyseme.encoders.base import BATCH_CPU, Encoder, LayerChoice
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.formats.vectors.part_folder import PartFolder
from polyseme.formats.vectors.stop import Stop
from polyseme.formats.vectors.writer import (
    DamagedPart,
    EmbeddedLine,
    FileInfo,
    ResumePoint,
    VectorWriter,
    suffix_of,
    writer_for,
)

CHUNK_LINES, CHUNK_BATCHES, CHUNK_CHARACTERS = 1024, 4, 1 << 22
Count = Callable[[int], None]
Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class EmbedConfig:
    """How lines become vectors."""

    layers: LayerChoice = "all"
    start: str | None = None
    """How a sentence begins; None: as the model says."""
    half: bool = False
    """Store 16-bit floats."""
    split_on_spaces: bool = False
    """Words are separated by white space already; otherwise the model's splitter finds them."""
    batch_words: int | None = None
    """Words in a batch; None: what suits the device."""
    batch_size: int | None = None
    """Sentences in a batch, None: what suits the device; with `start="carry"` the number of states carried side by side."""
    save_every: float = 2.0
    """Seconds between two moments at which all work so far is made safe; 0: after every chunk."""


@dataclass(frozen=True)
class StoreResult:
    """What a run did."""

    lines: int
    words: int
    """Words embedded in this run."""
    resumed: int
    """Lines that an earlier, stopped run had done."""


class EmbeddingStopped(PolysemeError):
    """The user stopped the run; the text says how to go on."""


def words_of(model: Encoder, line: str, settings: EmbedConfig) -> list[str]:
    """The words of a line."""
    return line.split() if settings.split_on_spaces else model.words(line)


def embed_rows(
    model: Encoder, lines: Iterable[str], settings: EmbedConfig, *, first: int = 0, count: Count | None = None
) -> Iterator[list[EmbeddedLine]]:
    """Rows of vectors for all lines, a chunk at a time; the first line has the number `first`."""
    number = first
    if settings.start == "carry" and isinstance(model, Elmo):  # other kinds refuse any start
        model.reset_state()
    for texts in chunks((words_of(model, line, settings) for line in lines), settings):
        arrays = model.embed(
            texts,
            layers=settings.layers,
            start=settings.start,
            batch_words=settings.batch_words,
            batch_size=settings.batch_size,
            progress=count,
        )
        if settings.half:
            with np.errstate(over="ignore"):
                arrays = [array.astype(np.float16) for array in arrays]
        yield [EmbeddedLine(number + i, words, array) for i, (words, array) in enumerate(zip(texts, arrays, strict=True))]
        number += len(texts)


def chunks(texts: Iterable[list[str]], settings: EmbedConfig) -> Iterator[list[list[str]]]:
    """Texts in chunks of some batches; with `start="carry"` a chunk ends only where a batch does."""
    step = (settings.batch_size or BATCH_CPU[1]) if settings.start == "carry" else 1
    most = CHUNK_BATCHES * (settings.batch_words or BATCH_CPU[0])
    chunk: list[list[str]] = []
    words = characters = 0
    for text in texts:
        chunk.append(text)
        words += len(text)
        characters += sum(map(len, text))
        full = len(chunk) >= CHUNK_LINES or words >= most
        if (full or characters >= CHUNK_CHARACTERS) and len(chunk) % step == 0:
            yield chunk
            chunk, words, characters = [], 0, 0
    if chunk:
        yield chunk


def store(
    model: Encoder,
    lines: Iterable[str],
    out: str | Path,
    settings: EmbedConfig,
    *,
    count: Count = lambda done: None,
    tell: Tell = lambda sentence: None,
) -> StoreResult:
    """Embed all lines into the file `out`, whose suffix names its kind; it is whole or absent.

    `lines` may be iterated again when an earlier run's work does not fit them. `count` hears of lines done, `tell` of
    what a person should know (going on after a stop, starting anew).
    """
    out = Path(out)
    make = writer_for(out)
    about = identity(model, settings, out)
    with PartFolder(out) as part, wrap_os_errors(out, "write"), Stop() as stop:

        def checked(done: int) -> None:
            count(done)
            stop.check()

        writer, text, resumed = _begin(make, part, about, _Source(lines, stop), _facts(model, settings), tell)
        try:
            checked(resumed)
            words = _work(model, writer, text, part, about, settings, checked)
            part.finish(writer.finish(stop.check))
        except KeyboardInterrupt as error:
            again = "starts again from the first line" if settings.start == "carry" else "goes on where it stopped"
            raise EmbeddingStopped(f"stopped; the same command {again}") from error
        finally:
            writer.close()
    return StoreResult(text.taken, words, resumed)


def _work(
    model: Encoder,
    writer: VectorWriter,
    text: _Taken,
    part: PartFolder,
    about: dict[str, Any],
    settings: EmbedConfig,
    count: Count,
) -> int:
    """Embed and write the rest of the text; gives the number of words."""

    def commit() -> None:
        part.save({"about": about, "lines": done[0], "digest": done[1], "mark": writer.commit()})

    words, cost, last = 0, 0.0, time.monotonic()
    done = (text.taken, text.digest())
    sound = True  # whether the writer is between two chunks
    try:
        for rows in embed_rows(model, text, settings, first=text.taken, count=count):
            sound = False
            writer.write(rows)
            done = (text.taken, text.digest())
            words += sum(len(row.words) for row in rows)
            now = time.monotonic()
            wait = max(settings.save_every, 20 * cost)  # at most a twentieth of the time goes into safety
            if not settings.save_every or now - last >= wait:
                commit()
                last = time.monotonic()
                cost = last - now
            sound = True
    except BaseException:  # a stop, a bad line, too little memory: what is done need not be done again
        if sound:
            with contextlib.suppress(OSError):
                commit()
        raise
    commit()
    return words


class _Source:
    """Lines during whose reading a stop is heard at once."""

    def __init__(self, lines: Iterable[str], stop: Stop) -> None:
        self._lines, self._stop = lines, stop

    def __iter__(self) -> Iterator[str]:
        lines = iter(self._lines)
        while True:
            with self._stop.waiting():
                line = next(lines, None)
            if line is None:
                return
            yield line


class _Taken:
    """Lines, counted and hashed as they are taken."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self._hash = hashlib.sha256()
        self.taken = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        data = line.encode("utf-8", "surrogatepass")
        self._hash.update(len(data).to_bytes(8, "little") + data)
        self.taken += 1
        return line

    def digest(self) -> str:
        """Of all lines taken so far."""
        return self._hash.hexdigest()


def _begin(
    make: type[VectorWriter], part: PartFolder, about: dict[str, Any], lines: Iterable[str], facts: FileInfo, tell: Tell
) -> tuple[VectorWriter, _Taken, int]:
    """The writer, the text that is left, and how many lines were done before."""
    journal = part.journal()
    if journal is not None and journal["lines"]:
        text = _Taken(lines)
        why = _mismatch(journal, about, text)
        if why is None:
            mark: ResumePoint = journal["mark"]
            try:
                writer = make(part.folder, facts, mark)
            except DamagedPart as error:
                why = f"it is damaged ({error})"
            else:
                tell(f"going on after line {journal['lines']:,}, where an earlier run stopped")
                return writer, text, journal["lines"]
        tell(f"{part.folder} cannot be taken up, because {why}: starting anew")
    part.clear()
    return make(part.folder, facts, None), _Taken(lines), 0


def _mismatch(journal: dict[str, Any], about: dict[str, Any], text: _Taken) -> str | None:
    """Why an earlier run's work does not fit this run; None when it does, and then its lines are taken."""
    old: dict[str, Any] = journal["about"]
    if other := [name for name in about if old.get(name) != about[name]]:
        return f"it was made with another {' and '.join(other)}"
    if about["start"] == "carry":
        return "states carried from line to line are not kept (start carry)"
    for _ in zip(range(journal["lines"]), text, strict=False):
        pass
    return None if (text.taken, text.digest()) == (journal["lines"], journal["digest"]) else "the text has changed"


def identity(model: Encoder, settings: EmbedConfig, out: Path) -> dict[str, Any]:
    """All that the content of a file depends on, but for the text."""
    return {
        "version": 1,
        "kind": suffix_of(out),
        "model": model_fingerprint(model),
        "layers": settings.layers,
        "start": _start(model, settings),
        "precision": getattr(model, "precision", "fp32"),
        "number": "fp16" if settings.half else "fp32",
        "splitter": "whitespace" if settings.split_on_spaces else model.splitter.name,
    }


def _start(model: Encoder, settings: EmbedConfig) -> str | None:
    """How a sentence begins; None for systems that have no start state."""
    return settings.start or getattr(model.config, "start", None)


def _facts(model: Encoder, settings: EmbedConfig) -> FileInfo:
    facts = {
        "creator": f"polyseme {polyseme.__version__}",
        "model": model.source or model.kind,
        "layers": str(settings.layers),
        "start": _start(model, settings),
        "splitter": "whitespace" if settings.split_on_spaces else model.splitter.name,
    }
    return FileInfo(half=settings.half, facts={name: value for name, value in facts.items() if value is not None})
