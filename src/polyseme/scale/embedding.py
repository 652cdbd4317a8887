"""The work of a worker: load the model once, and turn each shard into a part.

A part depends only on its shard, the model and the options. What the model remembers of earlier texts (vectors of words,
computed in batches with others) is forgotten before each shard: in floating point the same word may differ in its last bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.base.hashing import hash_json
from polyseme.encoders.base import Encoder
from polyseme.encoders.embed_config import EmbedConfig
from polyseme.encoders.embedding_stream import EmbeddedLine, embed_lines
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.encoders.layer_choice import select_layers
from polyseme.encoders.text_pooling import text_pooler
from polyseme.formats.load import load
from polyseme.nn.threads import intra_op_threads
from polyseme.scale.config import DatasetConfig
from polyseme.scale.folder import DatasetFolder
from polyseme.scale.manifest import PartInfo
from polyseme.scale.mixing import mixed
from polyseme.scale.part import Columns, PartWriter, one_behind, read_info
from polyseme.scale.rows import Row, rows_of
from polyseme.scale.shards import Shard
from polyseme.text.splitting.offsets import word_offsets


@dataclass(frozen=True)
class EmbedShards:
    """Work that turns shards into parts."""

    model: str
    """Name or path, the same in all workers."""
    load_options: Mapping[str, Any]
    fingerprint: str
    """Of the model, so that a worker with another one is noticed."""
    embed: EmbedConfig
    dataset: DatasetConfig
    folder: DatasetFolder

    def start(self) -> Callable[[Shard], PartInfo]:
        encoder = load(self.model, **self.load_options)
        if model_fingerprint(encoder) != self.fingerprint:
            raise PolysemeError(
                f"{self.model} is another model on this worker than where the run was started: copy it to all machines"
            )
        return ShardEmbedder(encoder, self)


class ShardEmbedder:
    """Makes parts with a loaded model."""

    def __init__(self, encoder: Encoder, work: EmbedShards) -> None:
        self._encoder, self._work = encoder, work
        self._columns = columns_of(encoder, work.embed, work.dataset)
        pooling = work.dataset.pooling
        self._pooler = None if pooling is None else text_pooler(encoder, pooling)

    def __call__(self, shard: Shard) -> PartInfo:
        """Write the part of a shard, unless it is there already."""
        sha256 = self.sha256(shard)
        done = read_info(self._work.folder, shard.name)
        if done is not None and done.sha256 == sha256:
            return done
        self._encoder.forget_words()
        with intra_op_threads(self._work.dataset.threads), self._work.folder.new_part(shard.name) as path:
            writer = PartWriter(path, self._columns, sha256)
            taken: deque[Row] = deque()
            try:
                with one_behind(writer.write) as write:  # pyarrow lets other threads compute while it writes
                    for rows, words, vectors in self._chunks(shard, taken):
                        offsets = [word_offsets(some, row.text) for row, some in zip(rows, words, strict=True)]
                        write(rows, words, offsets, vectors)
            except PolysemeError:
                raise
            except Exception as error:
                raise PolysemeError(f"{_where(taken)}{type(error).__name__}: {error}") from error
            return writer.close()

    def sha256(self, shard: Shard) -> str:
        """Hash all that the part of a shard depends on."""
        return part_hash(shard, self._work.fingerprint, options_of(self._work.embed, self._work.dataset))

    def _chunks(self, shard: Shard, taken: deque[Row]) -> Iterator[tuple[list[Row], list[list[str]], list[Any]]]:
        """Yield rows with their words, and an array for each column of vectors; `taken`: rows that are being computed."""

        def lines() -> Iterator[str]:
            for row in rows_of(shard.pieces, self._work.dataset.field or "text"):
                taken.append(row)
                yield row.text

        for found in embed_lines(self._encoder, lines(), self._settings()):
            some = [taken.popleft() for _ in found]
            yield some, [line.words for line in found], self._vectors(found)

    def _settings(self) -> EmbedConfig:
        """How words are embedded, before they are pooled or mixed."""
        config = self._work.embed.replace(fp16=False)  # numbers are rounded once, when they are written
        if self._pooler is not None:
            needed = self._pooler.layers
            return config.replace(layers=needed if isinstance(needed, str | int) else tuple(needed))
        return config if self._work.dataset.mix is None else config.replace(layers="all")

    def _vectors(self, found: Sequence[EmbeddedLine]) -> list[np.ndarray]:
        """Return an array for each column: of texts (rows, dim), or of their words (words, dim)."""
        if self._pooler is not None:
            return [np.stack([self._pooler(line.words, line.vectors) for line in found])]
        return list(self._mixed(np.concatenate([line.stack for line in found], axis=1)))

    def _mixed(self, stack: np.ndarray) -> np.ndarray:
        weights = self._work.dataset.mix
        if weights is None or isinstance(weights, str):
            return stack
        return mixed(stack, weights, self._work.dataset.normalize_layers)[None]


def part_hash(shard: Shard, fingerprint: str, options: Mapping[str, Any]) -> str:
    """Hash all that a part depends on."""
    return hash_json([shard.sha256, fingerprint, dict(options)])


def options_of(embed: EmbedConfig, dataset: DatasetConfig) -> dict[str, Any]:
    """Return the options that the content of a dataset depends on, as plain values."""
    values = {**embed.to_dict(), **dataset.to_dict()}
    free = ("save_every", "engine", "workers", "address", "max_failures")
    return {name: value for name, value in values.items() if name not in free}


def columns_of(encoder: Encoder, embed: EmbedConfig, dataset: DatasetConfig) -> Columns:
    """Return the columns of vectors that a model and options give."""
    combined = [name for name in ("pooling", "mix") if getattr(dataset, name) is not None]
    if combined and embed.layers != EmbedConfig().layers:
        raise UsageError(f"{arg('layers', embed.layers)} and {arg(combined[0])} both choose layers: give one of them")
    if dataset.pooling is not None:
        return Columns(("vector",), text_pooler(encoder, dataset.pooling).dim, embed.fp16)
    if embed.single_layer or dataset.mix is not None:
        return Columns(("vectors",), encoder.dim, embed.fp16)
    chosen = select_layers(list(embed.layers) if isinstance(embed.layers, tuple) else embed.layers, encoder.layers).index
    if isinstance(chosen, list) and len(set(chosen)) < len(chosen):
        raise UsageError(f"{arg('layers')} names a layer twice; a dataset has a column for each: name it once")
    numbers = range(encoder.layers) if isinstance(chosen, slice) else chosen or ()
    return Columns(tuple(f"layer_{number}" for number in numbers), encoder.dim, embed.fp16)


def _where(taken: deque[Row]) -> str:
    if not taken:
        return ""
    first, last = taken[0], taken[-1]
    to = f" to {last.line + 1}" if first.file == last.file else f" to {last.file}:{last.line + 1}"
    return f"{first.file}:{first.line + 1}{to}: "
