"""Nearest neighbours in a dataset of word vectors, by an approximate index (faiss, extra `faiss`) in its folder `_index/`.

    trained.faiss        the centroids, trained on a sample of the dataset
    part-000000.faiss    the vectors of one part, by centroid; removed at the end
    index.faiss, lists   all of them; the lists stay on the disk and are read where a question needs them
    index.json           what it was made from; written last

An inverted file (IVF) with 16-bit vectors of length 1: a question is compared with the vectors of the nearest centroids only.
Chosen against HNSW, which must be in memory. Memory while building is that of the vectors of one part and the centroids; each
part is work for the engine, and one that is there is not made again.
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from polyseme.analysis.neighbours import Neighbour, Neighbours, Searched
from polyseme.analysis.search import SearchResult, normalised
from polyseme.base.errors import FormatError, MissingExtraError, PolysemeError, UsageError, arg
from polyseme.base.files import atomic, read_json, write_text
from polyseme.base.lock import lock_file
from polyseme.base.progress import progress
from polyseme.encoders.base import Encoder
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.scale.engines.base import Engine
from polyseme.scale.engines.local import LocalEngine
from polyseme.scale.folder import MANIFEST
from polyseme.scale.mixing import mixed

INDEX, TRAINED, MERGED, LISTS = "index.json", "trained.faiss", "index.faiss", "index.ivfdata"
_SAMPLE = 64  # training vectors per centroid
_PROBED = 1 / 12  # of the lists, for a question
_ROW_BITS = 32  # an id is the number of a part and that of a word in it


def _faiss() -> Any:
    try:
        return importlib.import_module("faiss")
    except ImportError as error:
        raise MissingExtraError("an index over a dataset needs faiss", "faiss") from error


@dataclass(frozen=True)
class Source:
    """The vectors of a dataset: which column of which parts."""

    folder: Path
    column: str
    parts: tuple[str, ...]
    words: int

    @classmethod
    def of(cls, folder: Path, layer: str | int | None = None) -> Source:
        manifest = read_json(folder / MANIFEST)
        if not manifest.get("complete"):
            raise PolysemeError(f"{folder} is not complete: run the command that makes it again")
        options = manifest["options"]
        if options.get("pooling") is not None:
            raise UsageError(f"{folder} has one vector per text; neighbours are words: make a dataset of word vectors")
        schema = pq.read_schema(folder / next(iter(manifest["parts"])))
        names = [name for name in schema.names if name.startswith(("vec", "layer_"))]
        column = names[-1] if layer in (None, "top") or names == ["vectors"] else f"layer_{layer}"
        if column not in names:
            raise UsageError(f"{arg('layer')} is {layer!r}; {folder} has {', '.join(names)}")
        return cls(folder, column, tuple(manifest["parts"]), manifest["words"])

    def vectors(self, part: str) -> Iterator[NDArray[np.float32]]:
        """Yield the vectors of a part, (words, dim), of length 1, row group by row group."""
        with pq.ParquetFile(self.folder / part) as file:
            for group in range(file.num_row_groups):
                column = file.read_row_group(group, columns=[self.column]).column(0).combine_chunks()
                inner = column.flatten()  # a fixed_size_list per word
                yield normalised(inner.flatten().to_numpy(zero_copy_only=False).reshape(len(inner), -1))

    @property
    def key(self) -> dict[str, Any]:
        """What an index depends on."""
        manifest = read_json(self.folder / MANIFEST)
        return {"model": manifest["model"], "text": manifest["text"], "options": manifest["options"], "column": self.column}


class DatasetIndex:
    """An index that is searched."""

    def __init__(self, source: Source) -> None:
        self.source = source
        faiss = _faiss()
        self._index = faiss.read_index(str(_folder(source) / MERGED), faiss.IO_FLAG_ONDISK_SAME_DIR)
        self._index.nprobe = max(math.ceil(_PROBED * self._index.nlist), min(16, self._index.nlist))

    @classmethod
    def build(cls, source: Source, engine: Engine | None = None) -> DatasetIndex:
        """Return the index of a dataset; make it, or what is missing of it, if it is not there."""
        folder = _folder(source)
        with lock_file(folder / "lock"):
            if not (folder / INDEX).is_file() or read_json(folder / INDEX) != source.key:
                _build(source, folder, engine or LocalEngine(0))
        return cls(source)

    def search(self, vector: NDArray[np.float32], count: int) -> SearchResult:
        """Return the nearest words to a vector, nearest first: their ids and cosines."""
        cosines, ids = self._index.search(normalised(vector)[None], count)
        found = ids[0] >= 0
        return SearchResult(ids[0][found], cosines[0][found].clip(-1, 1))

    def occurrence(self, id: int) -> tuple[list[str], int]:
        """Return the sentence of a word, and the word's position in it."""
        part, row = self.source.parts[id >> _ROW_BITS], id & ((1 << _ROW_BITS) - 1)
        with pq.ParquetFile(self.source.folder / part) as file:
            for group in range(file.num_row_groups):
                words = file.read_row_group(group, columns=["words"]).column(0).combine_chunks()
                ends = words.offsets.to_numpy()
                if row < ends[-1] - ends[0]:
                    line = int(np.searchsorted(ends - ends[0], row, side="right")) - 1
                    return words[line].as_py(), row - int(ends[line] - ends[0])
                row -= int(ends[-1] - ends[0])
        raise FormatError(self.source.folder / part, "has fewer words than its index: remove the folder _index")


def _folder(source: Source) -> Path:
    return source.folder / "_index" / source.column


def _build(source: Source, folder: Path, engine: Engine) -> None:
    from faiss.contrib.ondisk import merge_ondisk

    faiss = _faiss()
    stale = folder / "building.json"
    if not stale.is_file() or read_json(stale) != source.key:  # of another dataset
        for path in folder.glob("*.faiss"):
            path.unlink()
        write_text(stale, json.dumps(source.key))
    if not (folder / TRAINED).is_file():
        _train(source, folder)
    with progress("indexing", len(source.parts), "parts") as advance:
        for outcome in engine.map(IndexParts(source, folder), range(len(source.parts))):
            if outcome.error is not None:
                raise PolysemeError(outcome.error)
            advance(1)
    merged = faiss.read_index(str(folder / TRAINED))
    (folder / LISTS).unlink(missing_ok=True)
    merge_ondisk(merged, [str(folder / f"{Path(name).stem}.faiss") for name in source.parts], str(folder / LISTS))
    with atomic(folder / MERGED) as part:
        faiss.write_index(merged, str(part))
    for name in source.parts:
        (folder / f"{Path(name).stem}.faiss").unlink(missing_ok=True)
    write_text(folder / INDEX, json.dumps(source.key))


def _train(source: Source, folder: Path) -> None:
    """Find the centroids from a sample: some vectors of parts that are evenly spread."""
    faiss = _faiss()
    lists = max(min(int(4 * math.sqrt(source.words)), source.words // 40, 65_536), 1)
    wanted = _SAMPLE * lists
    step = max(source.words // wanted, 1)
    sample, have = [], 0
    for name in source.parts[:: max(min(step, len(source.parts) // 64), 1)]:
        for vectors in source.vectors(name):
            sample.append(vectors[:: max(step // 8, 1)] if step > 8 else vectors)
            have += len(sample[-1])
        if have >= 2 * wanted:
            break
    some = np.concatenate(sample)
    chosen = np.random.default_rng(0).choice(len(some), min(wanted, len(some)), replace=False)
    quantizer = faiss.IndexFlatIP(some.shape[1])
    kind = faiss.ScalarQuantizer.QT_fp16
    index = faiss.IndexIVFScalarQuantizer(quantizer, some.shape[1], lists, kind, faiss.METRIC_INNER_PRODUCT)
    index.train(some[np.sort(chosen)])
    with atomic(folder / TRAINED) as part:
        faiss.write_index(index, str(part))


@dataclass(frozen=True)
class IndexParts:
    """Work that sorts the vectors of a part by centroid."""

    source: Source
    folder: Path

    def start(self) -> Callable[[int], None]:
        _faiss()
        return self.run

    def run(self, number: int) -> None:
        faiss = _faiss()
        name = self.source.parts[number]
        path = self.folder / f"{Path(name).stem}.faiss"
        if path.is_file():
            return
        index = faiss.read_index(str(self.folder / TRAINED))
        first = number << _ROW_BITS
        for vectors in self.source.vectors(name):
            index.add_with_ids(vectors, np.arange(first, first + len(vectors)))
            first += len(vectors)
        with atomic(path) as part:
            faiss.write_index(index, str(part))


def dataset_neighbours(
    encoder: Encoder, index: DatasetIndex, words: list[str], position: int, count: int, *, same_word: bool | None = None
) -> Neighbours:
    """Find the words of a dataset that are nearest to a word in its sentence."""
    source = index.source
    manifest = read_json(source.folder / MANIFEST)
    if manifest["model"] != model_fingerprint(encoder):
        raise UsageError(f"{source.folder} was made with another model than {encoder.source or encoder.kind}: give that one")
    vector, layers, name = _question(encoder, manifest["options"], source.column, words, position)
    found: list[Neighbour] = []
    wanted = count + len(words)  # of which the words of the same sentence are skipped
    for id, cosine in index.search(vector, wanted if same_word is None else 50 * wanted).pairs():
        sentence, place = index.occurrence(id)
        same = sentence[place].casefold() == words[position].casefold()
        if sentence != words and same_word in (None, same):
            found.append(Neighbour(sentence[place], cosine, sentence, place))
        if len(found) == count:
            break
    searched = Searched(source.words, manifest["lines"], layers, name, same_word, static=False, folder=source.folder)
    return Neighbours(words, position, found, [], searched)


def _question(
    encoder: Encoder, options: dict[str, Any], column: str, words: list[str], position: int
) -> tuple[NDArray[np.float32], list[int], str]:
    """Return the vector of a word as the dataset has it, its layers, and what they are called."""
    stack = encoder.embed([words], start=options.get("start"))[0][:, position]  # (layers, dim)
    everything = list(range(encoder.layers))
    if column.startswith("layer_"):
        number = int(column.removeprefix("layer_"))
        return stack[number], [number], f"layer {number}"
    if options.get("mix") is not None:
        return mixed(stack[:, None], options["mix"], options["normalize_layers"])[0], everything, "mix of layers"
    if options["layers"] == "mean":
        return stack.mean(0), everything, "mean of all layers"
    number = encoder.layers - 1 if options["layers"] == "top" else options["layers"]
    return stack[number], [number], f"layer {number}"
