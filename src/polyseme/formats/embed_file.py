"""Embed the lines of a text into a file of vectors, in bounded memory; an interrupted run resumes where it stopped.

With `start="carry"` an interrupted run starts again: the carried states are not stored.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polyseme
from polyseme.base import format1
from polyseme.base.display import count, html_table
from polyseme.base.errors import InterruptedRun, UsageError, arg
from polyseme.base.files import wrap_os_errors
from polyseme.base.interrupts import computing
from polyseme.base.progress import progress, visible
from polyseme.base.signals import GracefulStop
from polyseme.encoders.base import Encoder
from polyseme.encoders.embed_config import EmbedConfig
from polyseme.encoders.embedding_stream import EmbeddedLine, embed_lines
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.formats.load import as_encoder
from polyseme.formats.vectors.part_folder import PartFolder
from polyseme.formats.vectors.writer import DamagedPart, FileInfo, VectorWriter, suffix_of, writer_for
from polyseme.text.files.lines import file_lines

log = logging.getLogger(__name__)
Progress = Callable[[int], None]


@dataclass(frozen=True)
class EmbeddedFile:
    """A file of vectors that was written."""

    out: Path
    lines: int
    words: int
    """Words embedded in this run."""
    resumed: int
    """Lines that an earlier, interrupted run had done."""

    def to_json(self) -> dict[str, Any]:
        return {"out": str(self.out), "lines": self.lines, "words": self.words, "resumed": self.resumed}

    def __str__(self) -> str:
        before = f" ({self.resumed:,} of them by an earlier run)" if self.resumed else ""
        return f"{self.out}: {count(self.lines, 'line')}{before}, {self.out.stat().st_size / 1e6:,.1f} MB"

    def _repr_html_(self) -> str:
        return html_table(["file", "lines", "words", "resumed"], [[self.out, self.lines, self.words, self.resumed]])


def embed_file(
    input: str | Path | Iterable[str], out: str | Path, *, model: str | Path | Encoder = "en", config: EmbedConfig | None = None
) -> EmbeddedFile:
    """Embed all lines of `input` (a file, `-` for standard input, or lines) into the file `out`.

    The suffix of `out` selects its type (see `polyseme.formats.vectors.writer`). The file is complete or absent: work is in
    `OUT.part`, and the same call resumes it after an interruption.

    >>> polyseme.embed_file("corpus.txt", "vectors.hdf5", model="en", layers="top")   # doctest: +SKIP
    """
    writer_for(out)  # a wrong suffix or a missing package is reported before the model is loaded
    lines = file_lines(input) if isinstance(input, str | Path) else input
    encoder, config = as_encoder(model), config or EmbedConfig()
    total = getattr(lines, "total", lambda: None)() if visible() else None
    with progress("embedding", total) as advance:
        written = write_lines(encoder, lines, out, config, progress=advance)
    if not written.lines:
        log.warning("%s has no lines, so %s has no vectors", getattr(lines, "name", "the text"), out)
    return written


def write_lines(
    model: Encoder,
    lines: Iterable[str],
    out: str | Path,
    config: EmbedConfig,
    *,
    progress: Progress = lambda done: None,
) -> EmbeddedFile:
    """Embed lines into the file `out`. `lines` is iterated again if the work of an earlier run does not fit it."""
    out = Path(out)
    with PartFolder(out) as part, wrap_os_errors(out, "write"), GracefulStop([signal.SIGINT]) as stop:
        job = _Job(model, config, part, writer_for(out), describe_content(model, config, out))
        writer, text = job.begin(_Stoppable(lines, stop))
        resumed = text.taken

        def advance(done: int) -> None:
            progress(done)
            stop.check()

        try:
            advance(resumed)
            words = job.run(writer, text, advance, stop)
            part.finish(writer.finish(stop.check))
        except KeyboardInterrupt as error:
            raise InterruptedRun(f"interrupted: {job.resume_note()}") from error
        finally:
            writer.close()
    return EmbeddedFile(out, text.taken, words, resumed)


@dataclass
class _Job:
    """One run of writing a file."""

    model: Encoder
    config: EmbedConfig
    part: PartFolder
    writer_type: type[VectorWriter]
    content: dict[str, Any]
    """What the content of the file depends on."""
    keep_layer_axis: bool = field(default=False, init=False)
    """Whether a single layer is (1, words, dim), because a run of format 1 began the file so."""

    def begin(self, lines: Iterable[str]) -> tuple[VectorWriter, _HashedLines]:
        journal, info = self.part.journal(), _file_info(self.model, self.config)
        if journal is not None and journal["lines"]:
            text = _HashedLines(lines)
            why = self._mismatch(journal, text)
            if why is None:
                try:
                    writer = self.writer_type(self.part.folder, info, journal["mark"])
                except DamagedPart as error:
                    why = f"it is damaged ({error})"
                else:
                    self.content["version"] = journal["about"]["version"]
                    self.keep_layer_axis = self.content["version"] == 1 and self.config.single_layer
                    log.warning("resuming after line %s of an interrupted run", f"{journal['lines']:,}")
                    return writer, text
            log.warning("cannot resume %s, because %s: starting again", self.part.folder, why)
        self.part.clear()
        return self.writer_type(self.part.folder, info, None), _HashedLines(lines)

    def _mismatch(self, journal: dict[str, Any], text: _HashedLines) -> str | None:
        """Return why the work of an earlier run does not fit; None if it does, and then its lines are skipped."""
        old = dict(journal["about"])
        if old.get("version") == 1:
            old["splitter"] = format1.SPLITTERS.get(old.get("splitter", ""), old.get("splitter"))
        if other := [name for name in self.content if name != "version" and old.get(name) != self.content[name]]:
            options = ["fp16" if name == "number" else name for name in other]
            return f"it was made with other settings ({', '.join(options)})"
        if old.get("version") not in (1, 2):
            return f"it has the unknown version {old.get('version')}"
        if self.content["start"] == "carry":
            return "carried states are not stored (start is carry)"
        for _ in zip(range(journal["lines"]), text, strict=False):
            pass
        return None if (text.taken, text.digest()) == (journal["lines"], journal["digest"]) else "the text has changed"

    def resume_note(self) -> str:
        """What to do after an interruption."""
        if not (self.part.journal() or {}).get("lines"):
            return "nothing was saved"
        return f"run the same command to {'start again from the first line' if self.config.start == 'carry' else 'resume'}"

    def run(self, writer: VectorWriter, text: _HashedLines, advance: Progress, stop: GracefulStop) -> int:
        """Embed and write the lines that are left; return the number of words."""

        def commit() -> None:
            self.part.save({"about": self.content, "lines": done[0], "digest": done[1], "mark": writer.commit()})

        words, cost, last = 0, 0.0, time.monotonic()
        done = (text.taken, text.digest())
        between_chunks = True
        try:
            for rows in _computed(embed_lines(self.model, text, self.config, first=text.taken, progress=advance), stop):
                between_chunks = False
                writer.write([EmbeddedLine(row.line, row.words, row.stack) for row in rows] if self.keep_layer_axis else rows)
                done = (text.taken, text.digest())
                words += sum(len(row.words) for row in rows)
                now = time.monotonic()
                wait = max(self.config.save_every, 20 * cost)  # at most a twentieth of the time is spent on saving
                if not self.config.save_every or now - last >= wait:
                    commit()
                    last = time.monotonic()
                    cost = last - now
                between_chunks = True
        except BaseException:  # an interruption, a bad line, too little memory: keep what is done
            if between_chunks:
                with contextlib.suppress(OSError):
                    commit()
            raise
        commit()
        return words


def _computed(chunks: Iterator[list[EmbeddedLine]], stop: GracefulStop) -> Iterator[list[EmbeddedLine]]:
    """Chunks; while one is computed, Ctrl-C stops at once."""
    while True:
        with stop.interruptible(), computing():
            rows = next(chunks, None)
        if rows is None:
            return
        yield rows


class _Stoppable:
    """Lines; while one is read, Ctrl-C stops at once."""

    def __init__(self, lines: Iterable[str], stop: GracefulStop) -> None:
        self._lines, self._stop = lines, stop

    def __iter__(self) -> Iterator[str]:
        lines = iter(self._lines)
        while True:
            with self._stop.interruptible():
                line = next(lines, None)
            if line is None:
                return
            yield line


class _HashedLines:
    """Lines, counted and hashed as they are taken."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self._hash = hashlib.sha256()
        self.taken = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        if not isinstance(line, str):
            advice = f"join its words with spaces, and give {arg('split_on_spaces', True)}"
            raise UsageError(f"a line to embed is a string; got {line!r:.80}: {advice}")
        data = line.encode("utf-8", "surrogatepass")
        self._hash.update(len(data).to_bytes(8, "little") + data)
        self.taken += 1
        return line

    def digest(self) -> str:
        return self._hash.hexdigest()


def describe_content(model: Encoder, config: EmbedConfig, out: Path) -> dict[str, Any]:
    """Return everything that the content of a file depends on, except the text."""
    return {
        "version": 2,
        "kind": suffix_of(out),
        "model": model_fingerprint(model),
        "layers": list(config.layers) if isinstance(config.layers, tuple) else config.layers,
        "start": _start(model, config),
        "precision": getattr(model, "precision", "fp32"),
        "number": "fp16" if config.fp16 else "fp32",
        "splitter": "whitespace" if config.split_on_spaces else model.splitter.name,
    }


def _start(model: Encoder, config: EmbedConfig) -> str | None:
    """Return the initial state; None for models that have none."""
    return config.start or getattr(model.config, "start", None)


def _file_info(model: Encoder, config: EmbedConfig) -> FileInfo:
    metadata = {
        "creator": f"polyseme {polyseme.__version__}",
        "model": model.source or model.kind,
        "layers": str(config.layers),
        "start": _start(model, config),
        "splitter": "whitespace" if config.split_on_spaces else model.splitter.name,
    }
    return FileInfo(fp16=config.fp16, metadata={name: value for name, value in metadata.items() if value is not None})
