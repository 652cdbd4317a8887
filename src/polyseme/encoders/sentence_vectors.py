"""One vector per text from the vectors of its words, without labels: the poolings `sif` and `sif+mean` of `encode`.

`sif`        The static vectors of the words (layer 0) are whitened over the distinct words of a text sample and scaled to unit
             length; their mean is weighted by smooth inverse frequency, a / (a + p(word)) (Arora et al. 2017). Best for
             similarity. Arora et al. remove the common direction of the texts instead: whitening does more, and needs no
             second pass over sentence vectors.
`sif+mean`   The same, concatenated with the plain means of the layers above, which know context and word order. They are
             standardized over the texts of the sample. Best for classifiers, and nearly as good for similarity.

Each part has unit length, the means CONTEXT, so that a cosine is a weighted mean of two. What is measured on the sample is in
`SentenceStatistics`, which lies beside the weights of a model (`sentence.safetensors`): a vector never depends on the other
texts of a call. p(word) comes from the rank of a word by Zipf's law, p = 1 / ((rank + 2.7) H), so that a list of words by
frequency is enough: the model's vocabulary, or the words of the sample where it has none. Words outside the list count as the
next rank. Measured in docs/en/results/sentence-vectors.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.base.errors import FormatError, UsageError
from polyseme.base.tensor_files import read_tensors, write_tensors
from polyseme.nn.matmul import array_matmul
from polyseme.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from polyseme.encoders.base import Encoder

FILE = "sentence.safetensors"
SMOOTHING = 1e-3
"""a of a / (a + p), as in the paper."""
CONTEXT = 0.5
"""Length of the means of the upper layers, where the SIF part has 1."""
SAMPLE_SENTENCES, SAMPLE_WORDS = 1000, 100_000
"""Size of a text sample, and the most of it that is read: 4,000 sentences are better by 0.004 on STS-B than 1,000."""
_ZIPF = 2.7  # Mandelbrot's shift of the first ranks
_RANK = 1e-5  # directions with less of the largest variance are dropped: ELMo's layer 0 has every number twice
_TENSORS = ("word_mean", "whitening", "text_mean", "text_std")

Floats = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class SentenceStatistics:
    """What a model's words and texts are like on average."""

    word_mean: Floats
    """(dim,): mean of the distinct words in layer 0."""
    whitening: Floats
    """(dim, rank): from there to uncorrelated numbers of variance 1."""
    text_mean: Floats
    """(layers - 1, dim): mean of the mean vectors of texts, in the layers above."""
    text_std: Floats
    """(layers - 1, dim): their standard deviation."""
    words: Vocabulary | None = None
    """The words of the sample, most frequent first, for a model without a vocabulary."""

    @classmethod
    def fit(cls, model: Encoder, texts: Sequence[Sequence[str]]) -> Self:
        """Measure a sample of texts, of which the first words up to a limit are read."""
        sample = _sample(texts)
        if not sample:
            raise UsageError("statistics need at least one text with a word; got none")
        arrays = model.embed(sample, layers="all")
        vectors = np.concatenate([array[0] for array in arrays])  # (words of all texts, dim)
        first: dict[str, int] = {}
        for position, word in enumerate(word for text in sample for word in text):
            first.setdefault(word, position)
        mean, whitening = _whitening(vectors[list(first.values())])
        means = np.stack([array[1:].mean(1) for array in arrays])  # (texts, layers - 1, dim)
        counts = Counter(word for text in sample for word in text)
        return cls(
            word_mean=mean,
            whitening=whitening,
            text_mean=means.mean(0),
            text_std=means.std(0) + 1e-6,
            words=Vocabulary([word for word, _ in counts.most_common()]) if model.vocabulary is None else None,
        )

    def save(self, folder: Path) -> None:
        """Write the file into a model folder."""
        tensors = {name: torch.from_numpy(getattr(self, name)) for name in _TENSORS}
        if self.words is not None:
            spelled = "\0".join(self.words).encode("utf-8", "surrogatepass")
            tensors["words"] = torch.from_numpy(np.frombuffer(spelled, dtype=np.uint8).copy())
        write_tensors(tensors, folder / FILE)

    @classmethod
    def load(cls, folder: Path, model: Encoder) -> Self | None:
        """Read the file of a model folder; None: it has none."""
        path = folder / FILE
        if not path.is_file():
            return None
        tensors = {name: tensor.numpy() for name, tensor in read_tensors(path).items()}
        upper = (model.layers - 1, model.dim)
        found = {name: tensors[name].shape for name in _TENSORS if name in tensors}
        rank = found.get("whitening", (0, 0))[-1]
        expected = {"word_mean": upper[1:], "whitening": (model.dim, rank), "text_mean": upper, "text_std": upper}
        if found != expected or (model.vocabulary is None and "words" not in tensors):
            raise FormatError(path, f"does not fit the model: it has {found}, expected {expected} and words")
        spelled = tensors["words"].tobytes().decode("utf-8", "surrogatepass") if "words" in tensors else None
        words = None if spelled is None else Vocabulary(spelled.split("\0"))
        return cls(**{name: tensors[name] for name in _TENSORS}, words=words)


class SentencePooler:
    """Pools the layers of a text, (layers, words, dim), into one vector, (dim,) of its own."""

    def __init__(self, statistics: SentenceStatistics, vocabulary: Vocabulary, *, context: bool) -> None:
        """`vocabulary`: most frequent first; `context`: whether the means of the upper layers are concatenated."""
        self._statistics = statistics
        self._context = context and len(statistics.text_mean) > 0
        self._vocabulary = vocabulary
        special = {vocabulary.begin, vocabulary.end, vocabulary.unknown} - {None}
        self._special = np.array([number for each in special if (number := vocabulary.find(str(each))) is not None])
        self._norm = float((1 / (np.arange(1, len(vocabulary) - len(self._special) + 2) + _ZIPF)).sum())

    @property
    def dim(self) -> int:
        """Size of a vector."""
        rank = self._statistics.whitening.shape[1]
        return rank + (self._statistics.text_mean.size if self._context else 0)

    @property
    def layers(self) -> Sequence[int]:
        """The layers that `__call__` needs."""
        return range(len(self._statistics.text_mean) + 1) if self._context else (0,)

    def __call__(self, words: Sequence[str], layers: Floats) -> Floats:
        """Pool one text; one without words gives zeros."""
        if not words:
            return np.zeros(self.dim, np.float32)
        whitened = _unit(array_matmul(layers[0] - self._statistics.word_mean, self._statistics.whitening))
        parts = [_unit(array_matmul(self._weights(words), whitened))]
        if self._context:
            mean = (layers[1:].mean(1) - self._statistics.text_mean) / self._statistics.text_std
            parts.append(CONTEXT * _unit(mean.reshape(-1)))
        return np.concatenate(parts).astype(np.float32)

    def _weights(self, words: Sequence[str]) -> Floats:
        """The weights of words, (words,)."""
        ids = np.array([len(self._vocabulary) if (id := self._vocabulary.find(word)) is None else id for word in words])
        ranks = ids + 1 - (self._special < ids[:, None]).sum(1)
        probability = 1 / ((ranks + _ZIPF) * self._norm)
        weights: Floats = (SMOOTHING / (SMOOTHING + probability)).astype(np.float32)
        return weights


def _sample(texts: Sequence[Sequence[str]]) -> list[list[str]]:
    """The texts with words, up to a number of words; what is longer is cropped."""
    sample, left = [], SAMPLE_WORDS
    for text in texts:
        if left <= 0:
            break
        if text:
            sample.append(list(text[:left]))
            left -= len(sample[-1])
    return sample


def _whitening(vectors: Floats) -> tuple[Floats, Floats]:
    """Return the mean (dim,) of vectors (words, dim) and a matrix (dim, rank) that whitens what is left without it.

    The covariance is shrunk towards its mean variance, the more the fewer words there are for its dimensions.
    """
    count = len(vectors)
    mean = vectors.mean(0, dtype=np.float64)
    centred = vectors - mean
    values, directions = np.linalg.eigh(centred.T @ centred / count)
    kept = values > max(_RANK * values[-1], 1e-12)
    if not kept.any():  # a single word
        kept[-1] = True
    values, directions = np.maximum(values[kept], 0), directions[:, kept]
    shrinkage = len(values) / (len(values) + count)
    shrunk = (1 - shrinkage) * values + shrinkage * max(values.mean(), 1e-12)
    return mean.astype(np.float32), (directions / np.sqrt(shrunk)).astype(np.float32)


def _unit(vectors: NDArray[np.floating]) -> NDArray[np.floating]:
    """Scale vectors (..., dim) to unit length; zeros stay."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
