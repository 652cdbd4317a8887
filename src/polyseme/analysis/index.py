"""An index: every word of a corpus in its sentence, searchable by its vector.

A saved index is in a folder whose name is a hash of model, text and layer. Vectors are 16-bit floats, which changes a cosine
by less than 0.001, and are read from the disk when they are searched.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from polyseme.analysis.config import WINDOW
from polyseme.analysis.index_builder import IndexBuilder, Keep
from polyseme.analysis.index_files import (
    FORMAT,
    AppendableArray,
    IndexManifest,
    read_arrays,
    read_manifest,
    read_types,
    write_array,
    write_manifest,
    write_types,
)
from polyseme.analysis.search import SearchResult, nearest_rows, normalised
from polyseme.analysis.substitute_vectors import SubstituteVectors
from polyseme.analysis.surroundings import surroundings
from polyseme.base.errors import FormatError, PolysemeError, UsageError, arg
from polyseme.base.hashing import hash_json
from polyseme.base.progress import Advance
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Sentence
from polyseme.encoders.fingerprint import model_fingerprint, text_fingerprint
from polyseme.encoders.static_vectors import spelled_vectors
from polyseme.nn.matmul import array_matmul
from polyseme.nn.weight_version import WeightVersion, weight_version
from polyseme.text.shards.files import build_once

ContextLayer = Literal["top", "mean"] | int
DEFAULT_LAYER: ContextLayer = "top"
CANDIDATES = 1000
"""Words that are compared by their surroundings, too."""
SMALL = 1 << 25
"""Bytes of a table that is searched in memory."""
COMPARED_BY_SUBSTITUTES = 32
"""Occurrences of the same word that are compared by what could stand in their place, too."""
KEPT = 1 << 13
"""Occurrences whose substitutes are kept in memory: 8 MB for states of 256 numbers."""


@dataclass(frozen=True)
class SenseQuestion:
    """How occurrences of the same word are compared by their senses."""

    substitutes: SubstituteVectors
    same_word: NDArray[np.bool_]
    """(occurrences,): whether each is the word that is asked about."""


class Index:
    """The words of a corpus in context, and its distinct words with their static vectors.

    >>> index = Index.build(model, ["The bank of the river .", "Money in the bank ."])   # doctest: +SKIP
    >>> index.search(vector, count=3).rows                                               # doctest: +SKIP
    array([1, 9, 6])
    """

    def __init__(
        self, manifest: IndexManifest, arrays: dict[str, NDArray[Any]], types: list[str], folder: Path | None = None
    ) -> None:
        self.manifest = manifest
        self.types = types
        self.folder = folder
        """Where it is saved, if it is."""
        self.vectors: NDArray[np.float16] = arrays["vectors"]
        """(occurrences, dim): a vector of length 1 for each word in its sentence."""
        self.norms: NDArray[np.float32] | None = arrays.get("norms")
        """(occurrences,): the length of the vector before; None in older indexes."""
        self.words: NDArray[np.uint32] = arrays["words"]
        """(occurrences,): its number in `types`."""
        self.offsets: NDArray[np.int64] = arrays["offsets"]
        """(sentences + 1,): where each sentence begins; a repeated sentence is here once."""
        self.static: NDArray[np.float16] = arrays["own"]
        """(types, dim): the static vector of each word (layer 0), of length 1."""
        self.counts: NDArray[np.int64] = arrays["counts"]
        """(types,): occurrences of each word in the text, repeated sentences included."""
        self._checked: WeightVersion | None = None
        self._spelled: NDArray[np.floating] | None = None
        self._known: dict[int, NDArray[np.float32]] = {}  # vectors of substitutes, by occurrence

    @classmethod
    def open(cls, folder: str | Path) -> Index:
        """Open a saved index: its folder, or the folder around it if it is the only one there."""
        path = _only(Path(folder))
        manifest = read_manifest(path)
        arrays, types = read_arrays(path, manifest), read_types(path, manifest)
        if arrays["offsets"][0] != 0 or arrays["offsets"][-1] != manifest.occurrences:
            raise FormatError(
                path / "offsets.npy", f"does not cover the {manifest.occurrences:,} words of the index; build it again"
            )
        return cls(manifest, arrays, types, path)

    @classmethod
    def build(
        cls,
        encoder: Encoder,
        sentences: Iterable[Sentence],
        folder: str | Path | None = None,
        progress: Advance | None = None,
        *,
        layer: ContextLayer = DEFAULT_LAYER,
        keep_stack: Keep | None = None,
    ) -> Index:
        """Embed sentences; with `folder`, save the index in a subfolder of it, or open it if it is there.

        The name of the subfolder is a hash of the content, so another model, text or layer finds no old vectors; it is
        complete or absent. Without `folder` all vectors are in memory: two bytes per number. `layer` is the number of a
        layer, "top", or "mean" of the contextual layers. `progress` gets the number of sentences done. Without
        `folder`, `keep_stack` gets all layers of each new sentence, (layers, words, dim).
        """
        check_comparable(encoder)
        if isinstance(sentences, str):
            raise UsageError("expected a list of sentences, got one string: put it into a list")
        if isinstance(sentences, Iterator):
            sentences = list(sentences)
        chosen = layer_slice(layer, encoder.layers)
        names = {"model": model_fingerprint(encoder), "text": text_fingerprint(encoder, sentences)}
        choice = {**names, "first_layer": chosen.start, "last_layer": chosen.stop - 1}
        if folder is None:
            index = cls._in_memory(encoder, sentences, choice, progress, keep_stack)
        else:
            key = hash_json([FORMAT, choice])
            index = cls._saved(encoder, sentences, Path(folder) / f"index-{key[:16]}", choice, progress)
        index._checked = weight_version(encoder)
        return index

    @classmethod
    def _in_memory(
        cls,
        encoder: Encoder,
        sentences: Iterable[Sentence],
        choice: dict[str, Any],
        progress: Advance | None,
        keep_stack: Keep | None = None,
    ) -> Index:
        vectors: list[NDArray[np.float16]] = []
        static: list[NDArray[np.float16]] = []
        builder = IndexBuilder(encoder, _layers(choice), vectors.append, static.append, keep_stack)
        manifest = _gather(builder, encoder, sentences, choice, progress)
        arrays = {**builder.arrays(), "vectors": np.concatenate(vectors), "own": np.concatenate(static)}
        return cls(manifest, arrays, builder.types)

    @classmethod
    def _saved(
        cls, encoder: Encoder, sentences: Iterable[Sentence], folder: Path, choice: dict[str, Any], progress: Advance | None
    ) -> Index:
        def ready() -> Index | None:
            try:
                index = cls.open(folder)
            except FormatError:
                return None
            return index if choice.items() <= index.manifest.to_dict().items() else None

        return build_once(folder, ready, lambda part: _write(part, encoder, sentences, choice, progress))

    @property
    def layer(self) -> str:
        """The layers of the vectors, in words."""
        first, last = self.manifest.first_layer, self.manifest.last_layer
        return f"layer {last}" if first == last else f"mean of layers {first} to {last}"

    @property
    def layers(self) -> slice:
        """The layers whose mean the vectors are."""
        return slice(self.manifest.first_layer, self.manifest.last_layer + 1)

    def check(self, encoder: Encoder) -> None:
        """Raise if the index was built by another model: its vectors cannot be compared."""
        now = weight_version(encoder)
        if now == self._checked:
            return
        if model_fingerprint(encoder) != self.manifest.model:
            raise UsageError(f"{self.folder or 'the index'} was built by another model: build an index with this one")
        self._checked = now

    def sentence(self, number: int) -> list[str]:
        begin, end = self.offsets[number : number + 2].tolist()
        return [self.types[word] for word in self.words[begin:end].tolist()]

    def find_sentence(self, words: Sequence[str]) -> range:
        """Return the rows of the sentence that has exactly these words; none: the text does not have it."""
        wanted = set(words)
        numbers = {word: number for number, word in enumerate(self.types) if word in wanted}
        if not words or len(numbers) < len(wanted):
            return range(0)
        begins = self.offsets[:-1][np.diff(self.offsets) == len(words)]
        for place, word in enumerate(words):
            begins = begins[self.words[begins + place] == numbers[word]]
        return range(int(begins[0]), int(begins[0]) + len(words)) if len(begins) else range(0)

    def position(self, row: int) -> tuple[int, int]:
        """Return the number of an occurrence's sentence, and its position there."""
        number = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return number, row - int(self.offsets[number])

    def search(self, vector: NDArray[np.float32], count: int, among: NDArray[np.bool_] | None = None) -> SearchResult:
        """Find the occurrences nearest to a vector (dim,); `among` (occurrences,) selects the candidates."""
        return nearest_rows(self._vectors, vector, count, among)

    def search_in_context(
        self,
        vectors: NDArray[np.float32],
        position: int,
        count: int,
        among: NDArray[np.bool_] | None = None,
        *,
        window: int = WINDOW,
        senses: SenseQuestion | None = None,
    ) -> SearchResult:
        """Find the occurrences nearest to a word of a sentence (words, dim), with `window` words on each side.

        A cosine is the mean of that of the words and that of their surroundings. Of the `CANDIDATES` words that are nearest by
        themselves, those with the most similar surroundings come first. With `senses`, for occurrences of the same word the
        cosine of their substitutes counts as much again: the nearest `COMPARED_BY_SUBSTITUTES` of them, or `count` if that is
        more, are compared so. It needs vectors of the top layer alone, and their lengths.
        """
        around = surroundings(normalised(vectors), [range(position, position + 1)], window)[0]
        if not around.any():  # a sentence of one word, or no window
            return self.search(vectors[position], count, among)
        found = self.search(vectors[position], max(CANDIDATES, count), among)
        around_cosines = array_matmul(self._surroundings(found.rows, window), around)
        cosines: NDArray[np.float32] = (found.cosines + around_cosines) / np.float32(2)
        if senses is None or not (same := senses.same_word[found.rows]).any():
            return _best(found.rows, cosines, count)
        uses = _best(found.rows[same], cosines[same], max(COMPARED_BY_SUBSTITUTES, count))
        asked, others = self._substitutes(senses.substitutes, senses.substitutes.at(vectors, position), uses.rows.tolist())
        by_all = (2 * uses.cosines + array_matmul(others, asked)) / 3
        return _best(np.concatenate([uses.rows, found.rows[~same]]), np.concatenate([by_all, cosines[~same]]), count)

    def _substitutes(
        self, substitutes: SubstituteVectors, asked: NDArray[np.float32], rows: list[int]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The vectors of the substitutes of states (width,), and those of occurrences (rows, width), which are kept."""
        if len(self._known) > KEPT:
            self._known.clear()
        new = [row for row in rows if row not in self._known]
        found = substitutes(np.stack([asked, *(self._states_around(substitutes, row) for row in new)]))
        self._known.update(zip(new, found[1:], strict=True))
        return found[0], np.stack([found[0], *(self._known[row] for row in rows)])[1:]

    def _states_around(self, substitutes: SubstituteVectors, row: int) -> NDArray[np.float32]:
        """The sum of the states around an occurrence."""
        begin, end = self.offsets[(number := self.position(row)[0]) : number + 2].tolist()
        assert self.norms is not None
        beside = [self.vectors[r] * self.norms[r] if begin <= r < end else None for r in (row - 1, row + 1)]
        return substitutes.states(*beside)

    def _surroundings(self, rows: NDArray[np.int64], window: int) -> NDArray[np.float32]:
        """The same as `surroundings`, (rows, dim), for occurrences of many sentences; each vector is read once."""
        numbers = np.searchsorted(self.offsets, rows, side="right") - 1
        begins, ends = self.offsets[numbers], self.offsets[numbers + 1]
        window = min(window, int((ends - begins).max(initial=0)))
        near = rows[:, None] + np.concatenate([np.arange(-window, 0), np.arange(1, window + 1)])
        inside = (near >= begins[:, None]) & (near < ends[:, None])
        places, number_of = np.unique(near[inside], return_inverse=True)
        if not len(places):
            return np.zeros((len(rows), self.vectors.shape[1]), dtype=np.float32)
        vectors = torch.from_numpy(np.array(self._vectors[places])).float()
        first = np.cumsum(inside.sum(1)) - inside.sum(1)
        means = F.embedding_bag(torch.from_numpy(number_of), vectors, torch.from_numpy(first), mode="mean")
        return normalised(means.numpy())

    def search_static(self, vector: NDArray[np.float32], count: int, among: NDArray[np.bool_] | None = None) -> SearchResult:
        """Find the static vectors nearest to a vector (dim,); `among` (types,) selects the candidates."""
        return nearest_rows(self._static, vector, count, among)

    def search_spelled(
        self, encoder: Encoder, vector: NDArray[np.float32], count: int, among: NDArray[np.bool_] | None = None
    ) -> SearchResult:
        """Find static vectors, for a word without a row in the model's table: all as if they had none."""
        if self._spelled is None:
            self._spelled = _quick(normalised(spelled_vectors(encoder, self.types)).astype(np.float16))
        return nearest_rows(self._spelled, vector, count, among)

    @functools.cached_property
    def _vectors(self) -> NDArray[np.floating]:
        return _quick(self.vectors)

    @functools.cached_property
    def _static(self) -> NDArray[np.floating]:
        return _quick(self.static)

    def __len__(self) -> int:
        return len(self.words)


def _quick(table: NDArray[np.float16]) -> NDArray[np.floating]:
    """A small table as 32-bit numbers in memory: to convert them takes longer than to search them."""
    return table.astype(np.float32) if table.nbytes <= SMALL else table


def _best(rows: NDArray[np.int64], cosines: NDArray[np.float32], count: int) -> SearchResult:
    """The rows with the highest cosines; between equal ones the first."""
    order = np.lexsort((rows, -cosines))[:count]
    return SearchResult(rows[order], cosines[order].clip(-1, 1))


def check_comparable(encoder: Encoder) -> None:
    """Refuse a model whose vectors have no meaningful cosines."""
    if not encoder.comparable:
        reason = f"models of kind {encoder.kind} have a few probabilities as vectors, whose cosines are all near 1"
        raise UsageError(f"{reason}: choose an ELMo, a BERT, a GPT or word vectors")


def layer_slice(layer: ContextLayer, count: int) -> slice:
    """Return a choice of layers as a slice of a stack of `count`.

    >>> layer_slice("top", 3), layer_slice("mean", 3), layer_slice(0, 3)
    (slice(2, 3, None), slice(1, 3, None), slice(0, 1, None))
    """
    if layer == "mean":
        return slice(min(1, count - 1), count)
    number = count - 1 if layer == "top" else layer
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < count:
        raise UsageError(f"{arg('layer')} is {layer!r}; allowed: top, mean, or a number from 0 to {count - 1}")
    return slice(number, number + 1)


def _layers(choice: dict[str, Any]) -> slice:
    return slice(choice["first_layer"], choice["last_layer"] + 1)


def _gather(
    builder: IndexBuilder, encoder: Encoder, sentences: Iterable[Sentence], choice: dict[str, Any], progress: Advance | None
) -> IndexManifest:
    """Read all sentences and return the manifest of the index."""
    builder.read(sentences, progress)
    arrays = builder.arrays()
    if not len(arrays["words"]):
        raise PolysemeError("the text has no words to index")
    if text_fingerprint(encoder, sentences) != choice["text"]:
        raise PolysemeError("the text changed while it was read: start again when nothing writes to it")
    return IndexManifest(
        **choice,
        occurrences=len(arrays["words"]),
        sentences=len(arrays["offsets"]) - 1,
        types=len(arrays["counts"]),
        dim=encoder.dim,
    )


def _write(
    folder: Path, encoder: Encoder, sentences: Iterable[Sentence], choice: dict[str, Any], progress: Advance | None
) -> None:
    """Write an index into an empty folder, its manifest last."""
    with (
        AppendableArray(folder / "vectors.npy", encoder.dim) as vectors,
        AppendableArray(folder / "own.npy", encoder.dim) as static,
    ):
        builder = IndexBuilder(encoder, _layers(choice), vectors.add, static.add)
        manifest = _gather(builder, encoder, sentences, choice, progress)
    for name, array in builder.arrays().items():
        write_array(folder / f"{name}.npy", array)
    write_types(folder, builder.types)
    write_manifest(folder, manifest)


def _only(folder: Path) -> Path:
    """Return the folder itself, or the one index in it."""
    if (folder / "index.json").exists() or not folder.is_dir():
        return folder
    inside = sorted(path.parent for path in folder.glob("index-*/index.json"))
    if len(inside) > 1:
        raise UsageError(f"{folder} has {len(inside)} indexes: open one of {', '.join(path.name for path in inside)}")
    return inside[0] if inside else folder
