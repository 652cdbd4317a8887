"""An index: every word of a corpus in its sentence, to be searched by its vector.

An index that is kept lies in a folder named by its content: model, text and layer. Vectors are 16-bit numbers, which
moves a cosine by less than 0.001, and stay on the disk until they are looked at.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from polyseme.analysis.index_builder import IndexBuilder
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
from polyseme.analysis.search import SearchResult, nearest_rows
from polyseme.base.errors import FormatError, PolysemeError, UsageError
from polyseme.base.progress import Advance
from polyseme.encoders.base import Encoder, Sentence
from polyseme.encoders.fingerprint import model_fingerprint, text_fingerprint
from polyseme.nn.weight_version import WeightVersion, weight_version
from polyseme.text.shards.files import build_once

ContextLayer = Literal["top", "mean"] | int
DEFAULT_LAYER: ContextLayer = "top"  # `--layer` tells it in its help


class Index:
    """The words of a corpus in context, and its distinct words by themselves.

    >>> index = Index.build(model, ["The bank of the river .", "Money in the bank ."])   # doctest: +SKIP
    >>> index.search(vector, count=3).rows                                               # doctest: +SKIP
    array([1, 9, 6])
    """

    def __init__(
        self, manifest: IndexManifest, arrays: dict[str, NDArray[Any]], types: list[str], folder: Path | None = None
    ) -> None:
        self.manifest = manifest
        self.types = types
        """The distinct words."""
        self.folder = folder
        """Where it lies, if it was kept."""
        self.vectors: NDArray[np.float16] = arrays["vectors"]
        """(occurrences, dim): a vector of length 1 for each word in its sentence."""
        self.words: NDArray[np.uint32] = arrays["words"]
        """(occurrences,): which of `types` it is."""
        self.offsets: NDArray[np.int64] = arrays["offsets"]
        """(sentences + 1,): where each sentence begins; a sentence that the text repeats is here once."""
        self.own: NDArray[np.float16] = arrays["own"]
        """(types, dim): the word's own vector (layer 0), of length 1."""
        self.counts: NDArray[np.int64] = arrays["counts"]
        """(types,): how often the text has the word, repeated sentences counted."""
        self._checked: WeightVersion | None = None

    @classmethod
    def open(cls, folder: str | Path) -> Index:
        """An index that was kept: its own folder, or the folder around it where it is the only one there."""
        position = _only(Path(folder))
        manifest = read_manifest(position)
        arrays, types = read_arrays(position, manifest), read_types(position, manifest)
        if arrays["offsets"][0] != 0 or arrays["offsets"][-1] != manifest.occurrences:
            raise FormatError(position / "offsets.npy", f"does not cover the {manifest.occurrences:,} words of the index")
        return cls(manifest, arrays, types, position)

    @classmethod
    def build(
        cls,
        encoder: Encoder,
        sentences: Iterable[Sentence],
        folder: str | Path | None = None,
        progress: Advance | None = None,
        *,
        layer: ContextLayer = DEFAULT_LAYER,
    ) -> Index:
        """Embed sentences; with `folder`, keep the index in a folder of its own in there, or find it there.

        That folder is named by content, so that another model, text or layer finds no old vectors, and it is there whole
        or not at all. Without `folder` all vectors are in memory: two bytes for each of their numbers. `layer` is the
        number of a layer, "top", or "mean" of the layers that know the context. `progress` is told the sentences.
        """
        if isinstance(sentences, str):
            raise UsageError("expected a list of sentences, got one string: put it into a list")
        if isinstance(sentences, Iterator):
            sentences = list(sentences)
        chosen = context_layers(layer, encoder.layers)
        names = {"model": model_fingerprint(encoder), "text": text_fingerprint(encoder, sentences)}
        choice = {**names, "first_layer": chosen.start, "last_layer": chosen.stop - 1}
        if folder is None:
            found = cls._in_memory(encoder, sentences, choice, progress)
        else:
            key = hashlib.sha256(json.dumps([FORMAT, choice], sort_keys=True).encode()).hexdigest()
            found = cls._kept(encoder, sentences, Path(folder) / f"index-{key[:16]}", choice, progress)
        found._checked = weight_version(encoder)
        return found

    @classmethod
    def _in_memory(
        cls, encoder: Encoder, sentences: Iterable[Sentence], choice: dict[str, Any], progress: Advance | None
    ) -> Index:
        vectors: list[NDArray[np.float16]] = []
        own: list[NDArray[np.float16]] = []
        builder = IndexBuilder(encoder, _layers(choice), vectors.append, own.append)
        manifest = _gather(builder, encoder, sentences, choice, progress)
        arrays = {**builder.arrays(), "vectors": np.concatenate(vectors), "own": np.concatenate(own)}
        return cls(manifest, arrays, builder.types)

    @classmethod
    def _kept(
        cls, encoder: Encoder, sentences: Iterable[Sentence], position: Path, choice: dict[str, Any], progress: Advance | None
    ) -> Index:
        def ready() -> Index | None:
            try:
                found = cls.open(position)
            except FormatError:
                return None
            return found if choice.items() <= found.manifest.to_dict().items() else None

        return build_once(position, ready, lambda part: _write(part, encoder, sentences, choice, progress))

    @property
    def layer(self) -> str:
        """Which layers the vectors are of, in words."""
        first, last = self.manifest.first_layer, self.manifest.last_layer
        return f"layer {last}" if first == last else f"mean of layers {first} to {last}"

    @property
    def layers(self) -> slice:
        """The layers of a stack whose mean the vectors are."""
        return slice(self.manifest.first_layer, self.manifest.last_layer + 1)

    def check(self, encoder: Encoder) -> None:
        """An error where the index was built by another model: its vectors cannot be compared."""
        now = weight_version(encoder)
        if now == self._checked:
            return
        if model_fingerprint(encoder) != self.manifest.model:
            raise UsageError(f"{self.folder or 'the index'} was built by another model: build an index with this one")
        self._checked = now

    def sentence(self, number: int) -> list[str]:
        """The words of a sentence."""
        begin, end = self.offsets[number : number + 2].tolist()
        return [self.types[word] for word in self.words[begin:end].tolist()]

    def position(self, row: int) -> tuple[int, int]:
        """An occurrence as the number of its sentence, and its position among the words there."""
        number = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return number, row - int(self.offsets[number])

    def search(self, vector: NDArray[np.float32], count: int, among: NDArray[np.bool_] | None = None) -> SearchResult:
        """The occurrences nearest to a vector (dim,); `among` (occurrences,) says which may be found."""
        return nearest_rows(self.vectors, vector, count, among)

    def search_static(self, vector: NDArray[np.float32], count: int, among: NDArray[np.bool_] | None = None) -> SearchResult:
        """The distinct words whose own vectors are nearest to one (dim,); `among` (types,) says which may be found."""
        return nearest_rows(self.own, vector, count, among)

    def __len__(self) -> int:
        """Occurrences of words."""
        return len(self.words)


def context_layers(layer: ContextLayer, count: int) -> slice:
    """A choice of layers as a slice of a stack of `count`.

    >>> context_layers("top", 3), context_layers("mean", 3), context_layers(0, 3)
    (slice(2, 3, None), slice(1, 3, None), slice(0, 1, None))
    """
    if layer == "mean":
        return slice(min(1, count - 1), count)
    number = count - 1 if layer == "top" else layer
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < count:
        raise UsageError(f"layer is {layer!r}; allowed: top, mean, or a number from 0 to {count - 1}")
    return slice(number, number + 1)


def _layers(choice: dict[str, Any]) -> slice:
    return slice(choice["first_layer"], choice["last_layer"] + 1)


def _gather(
    builder: IndexBuilder, encoder: Encoder, sentences: Iterable[Sentence], choice: dict[str, Any], progress: Advance | None
) -> IndexManifest:
    """Read all sentences; what the index is by then."""
    builder.read(sentences, progress)
    arrays = builder.arrays()
    if not len(arrays["words"]):
        raise PolysemeError("there are no words to put into the index: give text that has some")
    if text_fingerprint(encoder, sentences) != choice["text"]:
        raise PolysemeError("the text changed while it was read; start again when nothing writes to it")
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
    """Fill an empty folder with an index, its manifest last."""
    with (
        AppendableArray(folder / "vectors.npy", encoder.dim) as vectors,
        AppendableArray(folder / "own.npy", encoder.dim) as own,
    ):
        builder = IndexBuilder(encoder, _layers(choice), vectors.add, own.add)
        manifest = _gather(builder, encoder, sentences, choice, progress)
    for name, array in builder.arrays().items():
        write_array(folder / f"{name}.npy", array)
    write_types(folder, builder.types)
    write_manifest(folder, manifest)


def _only(folder: Path) -> Path:
    """The folder itself, or the one index in it."""
    if (folder / "index.json").exists() or not folder.is_dir():
        return folder
    inside = sorted(path.parent for path in folder.glob("index-*/index.json"))
    if len(inside) > 1:
        raise UsageError(f"{folder} holds {len(inside)} indexes: open one of {', '.join(path.name for path in inside)}")
    return inside[0] if inside else folder
