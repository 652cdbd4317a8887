"""Clean a corpus of any size: drop documents by filters, or those that are nearly equal to an earlier one.

A document is a line of text, or a row of JSON lines, CSV or Parquet. The output folder has one part per shard (lines of text,
or JSON lines if the input is not plain text), beside each `_dropped-*.jsonl`, which says what was dropped and why (lines are
counted from 1), and `_manifest.json`. Parts are written whole, the same command resumes, and the same input gives the same
bytes, as in datasets.

Near-duplicates take three passes, each over shards, so that memory does not grow with the text:
1. *signatures*: MinHash numbers of each document, and the hashes of its bands, sorted, in `_work/`;
2. *buckets*: a range of hashes at a time, of all shards; documents with an equal band are compared with the first and the
   previous one of their bucket, by signature;
3. *rewriting*: each shard without the documents that are similar to an earlier one.
The work folder takes about 1.8 KB per document until the end.
"""

from __future__ import annotations

import json
import shutil
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.base.array_file import save_array
from polyseme.base.display import count, html_table, named_values
from polyseme.base.errors import InterruptedRun, PolysemeError, UsageError, arg
from polyseme.base.files import atomic, write_text
from polyseme.base.progress import progress
from polyseme.scale import manifest
from polyseme.scale.config import CleaningConfig
from polyseme.scale.dataset import scan, shards_of
from polyseme.scale.engines.base import Engine, Work
from polyseme.scale.engines.choice import make_engine
from polyseme.scale.folder import DatasetFolder
from polyseme.scale.manifest import Recipe
from polyseme.scale.rows import rows_of
from polyseme.scale.shards import Shard
from polyseme.text.filtering.minhash import BANDS, HASHES, bands, signature, similarity
from polyseme.text.filtering.quality import FilterConfig, reason_to_drop

_BUCKET = np.dtype([("hash", "<u8"), ("document", "<u4")])
_FOUND = np.dtype([("document", "<u8"), ("of", "<u8"), ("similarity", "<f4")])
_PARTITION = 1 << 21  # entries of buckets that are in memory: 64 MB with what is made of them
EQUAL, NEAR = "duplicate", "near-duplicate"
"""Why a document is dropped: it has the words of an earlier one, or nearly so."""
_MUCH = 0.1  # of the documents
_COMPARED = 1 << 15  # pairs of signatures that are compared at a time


@dataclass(frozen=True)
class CleanedCorpus:
    """What was kept of a corpus, and why the rest was not."""

    out: str
    documents: int
    kept: int
    reasons: dict[str, int]
    """Number of dropped documents by reason."""

    def to_json(self) -> dict[str, Any]:
        return {"out": self.out, "documents": self.documents, "kept": self.kept, "dropped": self.reasons}

    def __str__(self) -> str:
        rows = {"documents": self.documents, "kept": self.kept, **{f"dropped: {why}": n for why, n in self.reasons.items()}}
        return "\n".join(filter(None, [named_values(rows), self.caution, f"{self.out}: {count(self.kept, 'document')}"]))

    @property
    def caution(self) -> str:
        """That much more was dropped than repeats, if so: texts may be alike by design."""
        near, equal = self.reasons.get(NEAR, 0), self.reasons.get(EQUAL, 0)
        if near <= equal or near < _MUCH * self.documents:
            return ""
        what = f"{count(near, 'document')} only resemble an earlier one"
        same = "those alone that have the same words, without case and punctuation"
        return f"{what}: if your texts follow a pattern, {arg('threshold')} 1 drops {same}"

    def _repr_html_(self) -> str:
        return html_table(["reason", "dropped"], [*self.reasons.items(), ("kept", self.kept)])


@contextmanager
def _cleaning(
    inputs: Sequence[str | Path], out: str | Path, config: CleaningConfig, options: dict[str, Any]
) -> Iterator[_Cleaning]:
    """Lock the output folder, scan the input and begin the manifest, or check the one that is there."""
    folder = DatasetFolder.at(out)
    if folder.remote:
        raise UsageError(f"{arg('out')} is {folder.name}; allowed: a folder")
    engine = make_engine(config)
    options = {**options, "field": config.field, "shard_size": config.shard_size}
    with folder.lock():
        try:
            shards = scan(shards_of(inputs, config.shard_size, config.field), engine, config.field or "text")
            recipe = Recipe.of(shards, "", options)
            manifest.begin(folder, recipe, shards)
            yield _Cleaning(folder, engine, shards, recipe)
        except KeyboardInterrupt as error:
            raise InterruptedRun("interrupted: run the same command to resume") from error


def filter_corpus(
    inputs: Sequence[str | Path], out: str | Path, filters: FilterConfig, config: CleaningConfig
) -> CleanedCorpus:
    """Write the documents that pass the filters."""
    with _cleaning(inputs, out, config, {"filters": filters.to_dict()}) as run:
        return run.finish(FilterShards(run.path, config.field or "text", filters))


def dedupe_corpus(inputs: Sequence[str | Path], out: str | Path, threshold: float, config: CleaningConfig) -> CleanedCorpus:
    """Write the documents that are not nearly equal to an earlier one."""
    with _cleaning(inputs, out, config, {"threshold": threshold}) as run:
        work = run.path / "_work"
        work.mkdir(exist_ok=True)
        sizes = [shard.lines for shard in run.shards]
        run.map("hashing", SignShards(work, config.field or "text"), run.shards)
        partitions = max(-(-sum(sizes) * BANDS // _PARTITION), 1)
        run.map("comparing", CompareBuckets(work, tuple(sizes), partitions, threshold), range(partitions))
        result = run.finish(DropDuplicates(run.path, config.field or "text", tuple(sizes), partitions, _places(run.shards)))
        shutil.rmtree(work)
        return result


@dataclass(frozen=True)
class _Cleaning:
    """One run, whose output folder is locked."""

    folder: DatasetFolder
    engine: Engine
    shards: list[Shard]
    recipe: Recipe

    @property
    def path(self) -> Path:
        return Path(self.folder.address)

    def map(self, title: str, work: Work[Any, Any], tasks: Sequence[Any]) -> Iterator[Any]:
        """Do the work on all tasks; an error stops it."""
        results = []
        with progress(title, len(tasks), "shards") as advance:
            for outcome in self.engine.map(work, tasks):
                if outcome.error is not None:
                    raise PolysemeError(outcome.error)
                results.append(outcome.result)
                advance(1)
        return iter(results)

    def finish(self, work: Work[Any, Any]) -> CleanedCorpus:
        """Write all parts and the manifest."""
        reasons: Counter[str] = Counter()
        for found in self.map("writing", work, self.shards):
            reasons.update(found)
        dropped = dict(sorted(reasons.items()))
        documents = sum(shard.lines for shard in self.shards)
        kept = documents - sum(dropped.values())
        values = {**self.recipe.to_json(), "complete": True, "kept": kept, "dropped": dropped}
        self.folder.write(manifest.MANIFEST, json.dumps(values, indent=2, ensure_ascii=False) + "\n")
        return CleanedCorpus(self.folder.name, documents, kept, dropped)


Reason = Callable[[int, str], dict[str, Any] | None]
"""Of the number of a document in its shard and its text: why it is dropped."""


def rewrite(shard: Shard, folder: Path, column: str, reason: Reason) -> dict[str, int]:
    """Write a shard without some documents, and what was dropped; returns how many by reason."""
    plain = all(piece.kind == "lines" for piece in shard.pieces)
    stem = f"{shard.number:06}"
    report = folder / f"_dropped-{stem}.jsonl"
    if report.is_file():  # written last
        return dict(Counter(json.loads(line)["reason"] for line in report.read_text(encoding="utf-8").splitlines()))
    dropped: list[str] = []
    reasons: Counter[str] = Counter()
    path = folder / f"part-{stem}{'.txt' if plain else '.jsonl'}"
    with atomic(path) as part, part.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
        for number, row in enumerate(rows_of(shard.pieces, column)):
            why = reason(number, row.text)
            if why is None:
                file.write(f"{row.text if plain else json.dumps({'text': row.text}, ensure_ascii=False)}\n")
            else:
                reasons[why["reason"]] += 1
                dropped.append(json.dumps({"file": row.file, "line": row.line + 1, **why}, ensure_ascii=False))
    write_text(report, "".join(f"{line}\n" for line in dropped))
    return dict(reasons)


@dataclass(frozen=True)
class FilterShards:
    """Work that drops documents by filters."""

    folder: Path
    column: str
    filters: FilterConfig

    def start(self) -> Callable[[Shard], dict[str, int]]:
        return self.run

    def run(self, shard: Shard) -> dict[str, int]:
        def reason(number: int, text: str) -> dict[str, Any] | None:
            why = reason_to_drop(text, self.filters)
            return None if why is None else {"reason": why}

        return rewrite(shard, self.folder, self.column, reason)


@dataclass(frozen=True)
class SignShards:
    """Work that writes signatures and bands of documents."""

    folder: Path
    column: str

    def start(self) -> Callable[[Shard], None]:
        return self.run

    def run(self, shard: Shard) -> None:
        if (self.folder / f"buckets-{shard.number:06}.npy").is_file():
            return
        signatures = np.empty((shard.lines, HASHES), dtype="<u4")
        blank = np.zeros(shard.lines, dtype=bool)
        for number, row in enumerate(rows_of(shard.pieces, self.column)):
            signatures[number] = signature(row.text)
            blank[number] = not row.text.strip()
        entries = np.empty((shard.lines, BANDS), dtype=_BUCKET)
        entries["hash"] = bands(signatures)
        entries["document"] = np.arange(shard.lines, dtype=np.uint32)[:, None]
        flat = entries[~blank].reshape(-1)  # blank lines separate documents and stay
        save_array(self.folder / f"signatures-{shard.number:06}.npy", signatures)
        save_array(self.folder / f"buckets-{shard.number:06}.npy", flat[np.argsort(flat["hash"], kind="stable")])


@dataclass(frozen=True)
class CompareBuckets:
    """Work that finds similar documents whose bands fall into one range of hashes."""

    folder: Path
    sizes: tuple[int, ...]
    """Documents of each shard."""
    partitions: int
    threshold: float

    def start(self) -> Callable[[int], None]:
        return self.run

    def run(self, partition: int) -> None:
        path = self.folder / f"found-{partition:06}.npy"
        if path.is_file():
            return
        hashes, documents = self._entries(partition)
        order = np.lexsort((documents, hashes))
        hashes, documents = hashes[order], documents[order]
        starts = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]])) if len(hashes) else np.zeros(0, np.int64)
        firsts = np.repeat(documents[starts], np.diff(starts, append=len(hashes))) if len(hashes) else documents
        same = hashes[1:] == hashes[:-1]
        pairs = np.concatenate(
            [np.stack([documents[1:][same], firsts[1:][same]], 1), np.stack([documents[1:][same], documents[:-1][same]], 1)]
        )
        pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
        save_array(path, self._similar(pairs))

    def _entries(self, partition: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the hashes of a range, and the documents, counted over all shards."""
        step = (1 << 64) // self.partitions
        low = np.uint64(partition * step)
        high = None if partition == self.partitions - 1 else np.uint64((partition + 1) * step)
        hashes, documents, first = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)], 0
        for number, size in enumerate(self.sizes):
            entries = np.load(self.folder / f"buckets-{number:06}.npy", mmap_mode="r")
            begin = int(np.searchsorted(entries["hash"], low))
            end = len(entries) if high is None else int(np.searchsorted(entries["hash"], high))
            some = np.array(entries[begin:end])
            hashes.append(some["hash"])
            documents.append(some["document"].astype(np.uint64) + np.uint64(first))
            first += size
        return np.concatenate(hashes), np.concatenate(documents)

    def _similar(self, pairs: NDArray[np.uint64]) -> NDArray[np.void]:
        found = [np.zeros(0, dtype=_FOUND)]
        for begin in range(0, len(pairs), _COMPARED):
            some = pairs[begin : begin + _COMPARED]
            alike = similarity(self._signatures(some[:, 0]), self._signatures(some[:, 1]))
            kept = alike >= self.threshold
            result = np.empty(int(kept.sum()), dtype=_FOUND)
            result["document"], result["of"], result["similarity"] = some[kept, 0], some[kept, 1], alike[kept]
            found.append(result)
        return np.concatenate(found)

    def _signatures(self, documents: NDArray[np.uint64]) -> NDArray[np.uint32]:
        ends = np.cumsum(np.array(self.sizes, dtype=np.uint64))
        shards = np.searchsorted(ends, documents, side="right")
        result = np.empty((len(documents), HASHES), dtype=np.uint32)
        for number in np.unique(shards).tolist():
            here = shards == number
            first = int(ends[number]) - self.sizes[number]
            table = np.load(self.folder / f"signatures-{number:06}.npy", mmap_mode="r")
            result[here] = table[(documents[here] - np.uint64(first)).astype(np.int64)]
        return result


@dataclass(frozen=True)
class DropDuplicates:
    """Work that writes shards without documents that are similar to an earlier one."""

    folder: Path
    column: str
    sizes: tuple[int, ...]
    partitions: int
    places: tuple[tuple[int, str, int], ...]
    """Of each piece: its first document, counted over all shards, its file and its first line there."""

    def start(self) -> Callable[[Shard], dict[str, int]]:
        return self.run

    def run(self, shard: Shard) -> dict[str, int]:
        first = sum(self.sizes[: shard.number])
        found = self._found(first, first + self.sizes[shard.number])

        def reason(number: int, text: str) -> dict[str, Any] | None:
            if number not in found:
                return None
            of, alike = found[number]
            return {"reason": EQUAL if alike == 1 else NEAR, "of": self._place(of), "similarity": round(alike, 3)}

        return rewrite(shard, self.folder, self.column, reason)

    def _found(self, begin: int, end: int) -> dict[int, tuple[int, float]]:
        """Return the documents of a shard to drop, each with the earliest that has its words, or else is similar."""
        found: dict[int, tuple[int, float]] = {}
        for partition in range(self.partitions):
            table = np.load(self.folder / "_work" / f"found-{partition:06}.npy", mmap_mode="r")
            here = slice(*np.searchsorted(table["document"], np.array([begin, end], dtype=np.uint64)).tolist())
            for document, of, alike in np.array(table[here]).tolist():
                before = found.get(document - begin)
                if before is None or (alike < 1, of) < (before[1] < 1, before[0]):
                    found[document - begin] = (of, alike)
        return found

    def _place(self, document: int) -> str:
        """Return the file and line of a document."""
        first, file, line = self.places[bisect_right(self.places, document, key=lambda place: place[0]) - 1]
        return f"{file}:{line + document - first + 1}"


def _places(shards: Sequence[Shard]) -> tuple[tuple[int, str, int], ...]:
    places, document = [], 0
    for piece in (piece for shard in shards for piece in shard.pieces):
        places.append((document, piece.file, piece.first))
        document += piece.lines
    return tuple(places)
