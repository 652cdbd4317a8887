"""A stream of vectors: read lines, split them into words, embed them in chunks, yield one array per line.

Memory is bounded by a chunk of a few batches. Vectors do not depend on how lines fall into chunks, except with
`start="carry"`, where a chunk holds whole batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.base.display import columns, count, short
from polyseme.encoders.base import Encoder
from polyseme.encoders.embed_config import BATCH_CPU, BATCH_CUDA, EmbedConfig

_SHOWN = 5  # numbers of a vector that fit a terminal
CHUNK_LINES, CHUNK_BATCHES, CHUNK_CHARACTERS = 1024, 4, 1 << 22
CHUNK_LINES_CUDA, CHUNK_BATCHES_CUDA = 4096, 2


@dataclass(frozen=True)
class EmbeddedLine:
    """One line of the input and its vectors."""

    line: int
    """Its number, from 0."""
    words: list[str]
    vectors: np.ndarray
    """(layers, words, dim), or (words, dim) where a single layer was chosen; an empty line has no words."""
    last_layer: str = ""
    """The last of the chosen layers, in words."""

    @property
    def stack(self) -> np.ndarray:
        """The vectors as (layers, words, dim), whatever was chosen."""
        return self.vectors if self.vectors.ndim == 3 else self.vectors[None]

    def to_json(self) -> dict[str, Any]:
        return {"line": self.line, "words": self.words, "vectors": self.vectors.tolist()}

    def __str__(self) -> str:
        """Show the first numbers of each word, in the last of the chosen layers."""
        top = self.stack[-1]
        more = " ..." if top.shape[-1] > _SHOWN else ""
        rows = [
            (short(word, 24), " ".join(f"{number:8.4f}" for number in vector[:_SHOWN]) + more)
            for word, vector in zip(self.words, top, strict=True)
        ]
        parts = [count(len(self.words), "word"), self.last_layer, f"the first of {top.shape[-1]} numbers"]
        return "\n".join([f"line {self.line}: {', '.join(filter(None, parts))}", *([columns(rows)] if rows else [])])


def embed_lines(
    model: Encoder,
    lines: Iterable[str],
    config: EmbedConfig,
    *,
    first: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Iterator[list[EmbeddedLine]]:
    """Embed lines, a chunk at a time; the first line has the number `first`. `progress` gets the number of lines done."""
    number, layer = first, _last_layer(model, config)
    if config.start == "carry":
        model.reset_state()
    split = (line.split() if config.split_on_spaces else model.words(line) for line in lines)
    for texts in chunked(split, config, cuda=model.device.type == "cuda"):
        arrays = model.embed(
            texts,
            layers=list(config.layers) if isinstance(config.layers, tuple) else config.layers,
            start=config.start,
            batch_words=config.batch_words,
            batch_size=config.batch_size,
            progress=progress,
        )
        if config.fp16:
            with np.errstate(over="ignore"):
                arrays = [array.astype(np.float16) for array in arrays]
        yield [EmbeddedLine(number + i, *found, layer) for i, found in enumerate(zip(texts, arrays, strict=True))]
        number += len(texts)


def _last_layer(model: Encoder, config: EmbedConfig) -> str:
    if config.layers == "mean":
        return "mean of all layers"
    chosen = config.layers[-1] if isinstance(config.layers, tuple) else config.layers
    return f"layer {chosen if isinstance(chosen, int) else model.layers - 1}"


def chunked(texts: Iterable[list[str]], config: EmbedConfig, *, cuda: bool = False) -> Iterator[list[list[str]]]:
    """Group texts into chunks of a few batches; with `start="carry"` a chunk ends only where a batch does."""
    step = (config.batch_size or BATCH_CPU[1]) if config.start == "carry" else 1
    lines, batches = (CHUNK_LINES_CUDA, CHUNK_BATCHES_CUDA) if cuda else (CHUNK_LINES, CHUNK_BATCHES)
    limit = batches * (config.batch_words or (BATCH_CUDA if cuda else BATCH_CPU)[0])
    chunk: list[list[str]] = []
    words = characters = 0
    for text in texts:
        chunk.append(text)
        words += len(text)
        characters += sum(map(len, text))
        full = len(chunk) >= lines or words >= limit
        if (full or characters >= CHUNK_CHARACTERS) and len(chunk) % step == 0:
            yield chunk
            chunk, words, characters = [], 0, 0
    if chunk:
        yield chunk
