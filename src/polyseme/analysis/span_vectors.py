"""The vectors of chosen spans of sentences, embedded some sentences at a time so that memory is bounded.

A span is a range of words; its vector is the mean of theirs. Probes ask for all words of a sentence, for one word, for a term
of several words, or for the words that overlap a token of another tokenization.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from polyseme.analysis.search import normalised
from polyseme.analysis.surroundings import surroundings, with_surroundings
from polyseme.base.errors import UsageError, arg
from polyseme.base.progress import progress
from polyseme.encoders.base import Encoder
from polyseme.text.splitting.alignment import join, overlaps

EMBEDDED = 16384  # words whose layers are in memory at a time: 200 MB for three layers of 1,024 numbers
LARGE = 1 << 28  # bytes above which vectors are stored as float16, which is exact to three digits
_LARGEST = float(np.finfo(np.float16).max)

WITH_WINDOW = "layer {} with window"
"""The name of a layer with the words around a word."""
Spans = Sequence[Sequence[range]]
"""The wanted spans of each sentence."""


def token_vectors(
    encoder: Encoder, sentences: Sequence[Sequence[str]], *, resplit: bool = False, title: str = "embedding"
) -> NDArray[np.floating]:
    """Return the vectors of all tokens of all sentences, concatenated: (layers, tokens, dim).

    The encoder takes the tokens as its words. With `resplit` they are joined and split again by the encoder's splitter, and a
    token gets the mean of the words that it shares a character with (zeros if it is only white space). Tokens inside one word
    then have the same vector, so a probe cannot distinguish them.
    """
    if resplit and encoder.splitter.name == "whitespace":
        raise UsageError(
            f"the model splits at white space only, so it cannot split tokens again: choose another {arg('splitter')}"
        )
    if not resplit:
        return span_vectors(
            encoder, sentences, [[range(i, i + 1) for i in range(len(each))] for each in sentences], title=title
        )
    own = [encoder.words(join(tokens)) for tokens in sentences]
    spans = [overlaps(tokens, words) for tokens, words in zip(sentences, own, strict=True)]
    return span_vectors(encoder, own, spans, title=title)


def span_vectors(
    encoder: Encoder, sentences: Sequence[Sequence[str]], spans: Spans, *, around: bool = False, title: str = "embedding"
) -> NDArray[np.floating]:
    """Return the vectors of all spans of all sentences, concatenated: (layers, spans, dim).

    `around`: after the layers comes the mean direction of the words around each span, in the top layer.
    """
    count, layers = sum(map(len, spans)), encoder.layers + around
    small = 4 * layers * count * encoder.dim <= LARGE
    result: NDArray[np.floating] = np.empty((layers, count, encoder.dim), dtype=np.float32 if small else np.float16)
    begin = 0
    for block in span_vector_blocks(encoder, sentences, spans, around=around, title=title):
        end = begin + block.shape[1]
        result[:, begin:end] = block if small else np.clip(block, -_LARGEST, _LARGEST)
        begin = end
    return result


def span_vector_blocks(
    encoder: Encoder, sentences: Sequence[Sequence[str]], spans: Spans, *, around: bool = False, title: str = "embedding"
) -> Iterator[NDArray[np.float32]]:
    """Yield the same in blocks (layers, some spans, dim), for vectors that are only summed."""
    for words, wanted in zip(sentences, spans, strict=True):
        for span in wanted:
            if span.start < 0 or span.stop > len(words):
                raise UsageError(f"words {span.start} to {span.stop - 1} were asked for; the sentence has {len(words)} words")
    asked = [number for number, wanted in enumerate(spans) if wanted]  # other sentences are not embedded
    sentences, spans = [sentences[number] for number in asked], [spans[number] for number in asked]
    with progress(title, len(sentences), "sentences") as advance:
        for block in _blocks(sentences):
            arrays = encoder.embed(sentences[block], progress=advance)
            pairs = zip(arrays, spans[block], strict=True)
            yield np.concatenate([_at(array, wanted, around=around) for array, wanted in pairs], axis=1)


def _blocks(sentences: Sequence[Sequence[str]]) -> Iterator[slice]:
    begin = words = 0
    for end, sentence in enumerate(sentences):
        if end > begin and words + len(sentence) > EMBEDDED:
            yield slice(begin, end)
            begin, words = end, 0
        words += len(sentence)
    if begin < len(sentences):
        yield slice(begin, len(sentences))


def _at(array: NDArray[np.float32], spans: Sequence[range], *, around: bool) -> NDArray[np.float32]:
    """Average the words of a sentence (layers, words, dim) over its spans: (layers, spans, dim)."""
    if not array.shape[1]:
        return np.zeros((array.shape[0] + around, len(spans), array.shape[2]), dtype=np.float32)
    result = array[:, [span.start for span in spans]]
    for number, span in enumerate(spans):
        if len(span) != 1:
            result[:, number] = array[:, span.start : span.stop].mean(1) if span else 0.0
    if around:
        result = np.concatenate([result, surroundings(normalised(array[-1]), spans)[None]])
    return result


def layer_views(stack: NDArray[np.floating], *, around: bool = False) -> dict[str, NDArray[np.float32]]:
    """Return a stack (layers, spans, dim) as named vectors (spans, ...): each layer, their mean and their concatenation.

    `around`: the last of the stack is that of the words around the spans; with it, the top layer is one view more.

    >>> {name: vectors.shape for name, vectors in layer_views(np.zeros((2, 5, 4))).items()}
    {'layer 0': (5, 4), 'layer 1': (5, 4), 'mean': (5, 4), 'concatenation': (5, 8)}
    """
    layers = stack.astype(np.float32)
    if around:
        layers, last = layers[:-1], layers[-1]
    views = {f"layer {number}": layer for number, layer in enumerate(layers)}
    if len(layers) > 1:
        views["mean"] = layers.mean(0)
        views["concatenation"] = np.concatenate(list(layers), axis=1)
    if around:
        views[WITH_WINDOW.format(len(layers) - 1)] = with_surroundings(layers[-1], last)
    return views


def cosines(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the cosine of each pair of rows, (rows,), from -1 to 1.

    Rounded to six digits: the vectors of a word in two batches may differ after them, and equal pairs must be equal.
    """
    products = np.einsum("nd,nd->n", normalised(first), normalised(second), dtype=np.float64)
    return np.clip(np.round(products, 6), -1.0, 1.0)
