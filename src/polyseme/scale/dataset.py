"""Make a dataset of vectors: scan the text, embed the shards that have no part yet, and complete the manifest.

The same call resumes after any stop, since a part that is there is done. A run that would mix two datasets (changed text, model
or options) is refused.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polyseme.base.display import count, format_duration, html_table
from polyseme.base.errors import InterruptedRun, PolysemeError, UsageError, arg
from polyseme.base.progress import progress, report, visible
from polyseme.encoders.embed_config import EmbedConfig
from polyseme.scale import manifest
from polyseme.scale.addresses import find_inputs
from polyseme.scale.config import DatasetConfig
from polyseme.scale.embedding import EmbedShards, options_of, part_hash
from polyseme.scale.engines.base import Engine
from polyseme.scale.engines.choice import make_engine
from polyseme.scale.engines.local import LocalEngine
from polyseme.scale.folder import DatasetFolder
from polyseme.scale.manifest import PartInfo, Recipe
from polyseme.scale.part import read_info
from polyseme.scale.rows import rows_of
from polyseme.scale.scan import Scan, exact
from polyseme.scale.shards import Shard, cut, numbered

log = logging.getLogger(__name__)
_SMALL = 1 << 26  # bytes that one process scans before others would have started
_REPORT = 30.0  # seconds between two reports, where there is no progress bar
_FOOTERS = 16  # parts whose footers are read at the same time


@dataclass(frozen=True)
class EmbeddedDataset:
    """A dataset of vectors that was written, or what there is of it."""

    out: str
    parts: int
    lines: int
    words: int
    resumed: int
    """Parts that an earlier run had made."""
    seconds: float
    """Of embedding, in this run."""
    rate: float
    """Words per second of this run."""
    failures: tuple[str, ...] = ()
    """Shards that failed, a sentence each."""

    @property
    def problem(self) -> str | None:
        """Why the dataset is incomplete; None: it is complete."""
        if not self.failures:
            return None
        failed = f"{count(len(self.failures), 'part')} of {self.out} failed"
        return f"{failed}; the same command tries them again: {'; '.join(self.failures)}"

    def to_json(self) -> dict[str, Any]:
        values = {"out": self.out, "parts": self.parts, "lines": self.lines, "words": self.words, "resumed": self.resumed}
        return {**values, "seconds": self.seconds, "words_per_second": self.rate, "failures": list(self.failures)}

    def __str__(self) -> str:
        before = f" ({self.resumed:,} of them by an earlier run)" if self.resumed else ""
        rate = f"; {self.rate:,.0f} words per second" if self.rate else ""
        return (
            f"{self.out}: {count(self.parts, 'part')}{before}, {count(self.lines, 'line')}, {count(self.words, 'word')}{rate}"
        )

    def _repr_html_(self) -> str:
        row = [self.out, self.parts, self.lines, self.words, self.resumed]
        return html_table(["dataset", "parts", "lines", "words", "resumed"], [row])


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """A model by a name that all workers can load."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of `load`."""
    fingerprint: str


def shards_of(inputs: Sequence[str | Path], shard_size: int, column: str | None) -> list[Shard]:
    """Return the shards of inputs, not scanned yet; `column`: the field that the user gave."""
    return cut(find_inputs(inputs), shard_size, column is not None)


def embed_dataset(
    shards: Sequence[Shard], out: str | Path, *, model: ModelSource, embed: EmbedConfig, config: DatasetConfig
) -> EmbeddedDataset:
    """Embed shards (`shards_of`) into the dataset `out`, or what is missing of it."""
    if embed.start == "carry":
        raise UsageError(f"{arg('start', 'carry')} needs one line after the other; a dataset is made of shards: leave it out")
    folder = DatasetFolder.at(out)
    engine = make_engine(config)
    with folder.lock():
        try:
            return _Run(folder, engine, model, embed, config).run(shards)
        except KeyboardInterrupt as error:
            raise InterruptedRun(f"interrupted: {_what_is_kept(folder, shards, config)}") from error


def _what_is_kept(folder: DatasetFolder, shards: Sequence[Shard], config: DatasetConfig) -> str:
    """What the next run finds after an interruption, and what to do."""
    finished = len({shard.name for shard in shards}.intersection(folder.parts()))
    if finished:
        return f"{finished:,} of {count(len(shards), 'part')} finished; run the same command to resume"
    size = f"{arg('shard_size')} is {config.shard_size:,} bytes, and a compressed or CSV file is one part"
    return f"no part was finished, so nothing was kept; smaller parts keep more ({size})"


def scan(shards: Sequence[Shard], engine: Engine, column: str) -> list[Shard]:
    """Return shards with exact ranges, line numbers and hashes; text that cannot be read is an error."""
    small = sum(shard.size for shard in shards) < _SMALL
    scanned: dict[int, Shard] = {}
    with progress("reading", len(shards), "shards") as advance:
        for outcome in (LocalEngine(0) if small else engine).map(Scan(column), shards):
            if outcome.error is not None or outcome.result is None:
                raise PolysemeError(outcome.error or "a shard was lost")
            scanned[outcome.number] = outcome.result
            advance(1)
    return numbered(scanned[number] for number in range(len(shards)))


@dataclass
class _Run:
    """One run of making a dataset."""

    folder: DatasetFolder
    engine: Engine
    model: ModelSource
    embed: EmbedConfig
    config: DatasetConfig

    def run(self, shards: Sequence[Shard]) -> EmbeddedDataset:
        shards = scan(shards, self.engine, self.config.field or "text")
        options = {**options_of(self.embed, self.config), "device": str(self.model.options.get("device") or "cpu")}
        recipe = Recipe.of(shards, self.model.fingerprint, options)
        manifest.begin(self.folder, recipe, shards)
        self.folder.clean()
        parts = self._done(shards)
        resumed = len(parts)
        if resumed:
            log.warning("resuming: %s of %s parts are there", f"{resumed:,}", f"{len(shards):,}")
        began = time.monotonic()
        failures, words = self._embed(shards, parts)
        seconds = time.monotonic() - began
        if not failures:
            manifest.finish(self.folder, recipe, parts)
        self.folder.clean()
        lines = sum(part.rows for part in parts.values())
        total = sum(part.words for part in parts.values())
        rate = words / seconds if words else 0.0
        return EmbeddedDataset(self.folder.name, len(parts), lines, total, resumed, seconds, rate, tuple(failures))

    def _done(self, shards: Sequence[Shard]) -> dict[str, PartInfo]:
        """Return the parts that are there and belong to these shards."""
        there = set(self.folder.parts())
        options = options_of(self.embed, self.config)

        def check(shard: Shard) -> tuple[str, PartInfo] | None:
            info = read_info(self.folder, shard.name)
            good = info is not None and info.sha256 == part_hash(shard, self.model.fingerprint, options)
            return (shard.name, info) if info is not None and good else None

        with ThreadPoolExecutor(_FOOTERS) as threads:
            found = threads.map(check, (shard for shard in shards if shard.name in there))
            return dict(each for each in found if each is not None)

    def _embed(self, shards: Sequence[Shard], parts: dict[str, PartInfo]) -> tuple[list[str], int]:
        """Embed the shards that have no part; return the failures and the number of words."""
        missing = [shard for shard in shards if shard.name not in parts]
        model = self.model
        work = EmbedShards(model.name, model.options, model.fingerprint, self.embed, self.config, self.folder)
        failures: list[str] = []
        words = 0
        if not missing:
            return failures, words
        course = _Course(sum(shard.lines for shard in missing), len(missing))
        with progress("embedding", course.total) as advance:
            for outcome in self.engine.map(work, missing):
                shard = missing[outcome.number]
                if outcome.result is not None:
                    parts[shard.name] = outcome.result
                    words += outcome.result.words
                    advance(outcome.result.rows)
                    course.done(outcome.result)
                    continue
                failures.append(f"{shard.name} ({_extent(shard)}): {outcome.error}")
                log.warning("%s", failures[-1])
                if len(failures) > self.config.max_failures:
                    raise PolysemeError(
                        f"{count(len(failures), 'part')} failed, more than {arg('max_failures', self.config.max_failures)}; "
                        f"the last: {failures[-1]}"
                    )
        return failures, words


class _Course:
    """Reports on the course of a run, where there is no progress bar."""

    def __init__(self, total: int, parts: int) -> None:
        self.total, self._parts = total, parts
        self._lines = self._words = self._made = 0
        self._began = self._last = time.monotonic()

    def done(self, part: PartInfo) -> None:
        self._lines, self._words, self._made = self._lines + part.rows, self._words + part.words, self._made + 1
        now = time.monotonic()
        if visible() or now - self._last < _REPORT:
            return
        self._last, spent = now, now - self._began
        left = spent * (self.total - self._lines) / max(self._lines, 1)
        rate = f"{self._words / spent:,.0f} words per second"
        report(f"{self._made:,} of {count(self._parts, 'part')}, {rate}, about {format_duration(left)} left")


def _extent(shard: Shard) -> str:
    """Return which lines a shard has."""
    first, last = shard.pieces[0], shard.pieces[-1]
    end = f"{last.first + last.lines}" if first.file == last.file else f"{last.file}:{last.first + last.lines}"
    return f"{first.file}:{first.first + 1} to {end}"


def first_texts(shards: Iterable[Shard], column: str) -> Iterator[str]:
    """Yield texts from the beginning, to look at, up to one that cannot be read."""
    try:
        for shard in shards:
            for row in rows_of(map(exact, shard.pieces), column):
                yield row.text
    except PolysemeError:
        return  # the shard will report it
