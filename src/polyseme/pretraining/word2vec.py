"""word2vec (Mikolov et al. 2013) and fastText (Bojanowski et al. 2017), by gensim's own loop (extra `vectors`).

gensim is C-fast and the field's own; what is added here is what it leaves to its users: text of any kind as memory-mapped
numbers, a state kept after each epoch, and a model folder without pickle. With one thread the vectors are, number for
number, those that gensim gives for the same sentences, settings and seed, in every process (gensim 4 draws its first vectors
from the seed and the word's place alone, and hashes no word). With more threads they differ from run to run.

A run that goes on hands gensim all epochs, those done before without any sentences: so the learning rate falls as if there had
been no stop, and nothing of gensim's inside is touched.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.base.config import Config, ConfigError
from polyseme.base.errors import MissingExtraError, PolysemeError
from polyseme.base.progress import Advance, progress
from polyseme.base.run import Run
from polyseme.encoders.config import ngram_length_problems
from polyseme.encoders.fasttext import FastTextTable
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.pretraining.epochs import EpochCheckpoints, Fitted, encode_text, write_model
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards
from polyseme.text.word_vectors import WordVectors
from polyseme.text.words import Splitter
from polyseme.training.checkpoint import Checkpoint

MAX_SENTENCE = 10_000  # words of a sentence that gensim reads; what is longer comes in pieces
_BLOCK = 1 << 16  # words that are turned into strings together


@dataclass(frozen=True, kw_only=True)
class Word2VecPretraining(Config):
    """What is taught, and how; as in gensim, where not said otherwise."""

    method: ClassVar[str] = "word2vec"

    dim: int = 100
    """Size of a vector."""
    architecture: Literal["cbow", "skip-gram"] = "cbow"
    """A word from its neighbours, or each neighbour from the word, which takes longer and is better for rare words."""
    window: int = 5
    """Neighbours of a word are so far from it at most; how far is drawn for each word anew."""
    min_count: int = 5
    """Words that come less often are left out."""
    epochs: int = 5
    """Passes over the text."""
    negative: int = 5
    """Words drawn to be told from the right one; 0: none, with the hierarchical softmax alone."""
    hierarchical_softmax: bool = False
    """Predict words by their way through a Huffman tree."""
    sample: float = 1e-3
    """Words whose share of the text is above this are passed over more and more often; 0: none."""
    learning_rate: float = 0.025
    """The first; it falls to 0.0001."""
    threads: int = 1
    """With more than 1, the result differs from run to run."""

    def __post_init__(self) -> None:
        least = {"dim": 1, "window": 1, "min_count": 1, "epochs": 1, "negative": 0, "threads": 1}
        problems = [
            f"{name} is {getattr(self, name)}; it must be at least {low}"
            for name, low in least.items()
            if getattr(self, name) < low
        ]
        if self.negative == 0 and not self.hierarchical_softmax:
            problems.append("negative is 0 and hierarchical_softmax is false, so nothing would be learned: set one of them")
        if not 0 <= self.sample < 1:
            problems.append(f"sample is {self.sample}; allowed: from 0 to below 1")
        if not self.learning_rate > 0:
            problems.append(f"learning_rate is {self.learning_rate}; it must be above 0")
        if problems:
            raise ConfigError("; ".join(problems))

    def gensim(self, seed: int) -> Any:
        """gensim's model of these settings, without words yet."""
        return _models().Word2Vec(**self._settings(seed))

    def encoder(self, model: Any, splitter: Splitter) -> WordVectorTable:
        """gensim's trained model as an encoder."""
        return WordVectorTable.from_vectors(_words(model), splitter=splitter)

    def fit(self, corpus: Corpus, run: Run, out: str | Path) -> Fitted:
        """Train on a corpus; `out` holds the model at the end, and `out/run` what a restart needs.

        A call with the same arguments goes on after the last epoch that was finished.
        """
        out = Path(out)
        model = self.gensim(run.seed)
        shards = encode_text(corpus, run, out)
        with _quiet():
            model.build_vocab(corpus_iterable=Sentences(shards))
            if not len(model.wv):
                raise PolysemeError(f"no word of the text comes {self.min_count} times or more: give a smaller --min-count")
            if self.hierarchical_softmax and len(model.wv) < 2:  # gensim would wait for ever
                what = f"one word alone comes {self.min_count} times or more, and a tree of words needs two"
                raise PolysemeError(f"{what}: give a smaller --min-count, or leave out --hierarchical")
            settings = {self.method: self.to_dict(), "corpus": shards.fingerprint, "seed": run.seed}
            epochs = EpochCheckpoints(out / "run", settings)
            found = epochs.newest()
            done = 0 if found is None else _restored(model, found)
            with progress("training", shards.total * (self.epochs - done), "words") as advance:
                model.train(
                    corpus_iterable=_ResumedCorpus(shards, done, advance),
                    total_examples=model.corpus_count,
                    epochs=self.epochs,
                    callbacks=[_CheckpointCallback(epochs, done)],
                )
        encoder = self.encoder(model, corpus.splitter)
        fitted = Fitted(encoder, out, self.epochs, len(model.wv), shards.total, epochs.seconds)
        return write_model(fitted, corpus, shards, run, {"method": self.method, **self.to_dict()})

    def _settings(self, seed: int) -> dict[str, Any]:
        """By gensim's names."""
        return {
            "vector_size": self.dim,
            "sg": int(self.architecture == "skip-gram"),
            "window": self.window,
            "min_count": self.min_count,
            "epochs": self.epochs,
            "negative": self.negative,
            "hs": int(self.hierarchical_softmax),
            "sample": self.sample,
            "alpha": self.learning_rate,
            "workers": self.threads,
            "seed": seed % 2**31,
        }


@dataclass(frozen=True, kw_only=True)
class FastTextPretraining(Word2VecPretraining):
    """What is taught, and how: as word2vec, and the subwords."""

    method: ClassVar[str] = "fasttext"

    min_n: int = 3
    """Letters of the shortest subwords, the edges of the word counted."""
    max_n: int = 6
    """Letters of the longest subwords."""
    buckets: int = 200_000
    """Rows that subwords share by their hash; published: 2,000,000, which are 800 MB for vectors of 100."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if problems := [*ngram_length_problems(self.shortest, self.longest)]:
            raise ConfigError("; ".join(problems))
        if self.shortest < 1 or self.buckets < 1:
            raise ConfigError(f"shortest is {self.shortest} and buckets is {self.buckets}; allowed: 1 or more")

    def gensim(self, seed: int) -> Any:
        subwords = {"min_n": self.min_n, "max_n": self.max_n, "bucket": self.buckets}
        return _models().FastText(**self._settings(seed), **subwords)

    def encoder(self, model: Any, splitter: Splitter) -> FastTextTable:
        return FastTextTable.from_parts(
            _words(model), model.wv.vectors_ngrams, min_n=self.shortest, max_n=self.longest, splitter=splitter
        )


class Sentences:
    """The sentences of shards as lists of words, as often as wanted; those too long for gensim in pieces."""

    def __init__(self, shards: Shards, advance: Advance | None = None) -> None:
        self._shards, self._advance = shards, advance

    def __iter__(self) -> Iterator[list[str]]:
        types = np.array(self._shards.types, dtype=object)
        offsets = np.asarray(self._shards.offsets)
        begin = 0
        while begin < len(self._shards):
            end = max(begin + 1, int(np.searchsorted(offsets, offsets[begin] + _BLOCK, side="right")) - 1)
            words = types[np.asarray(self._shards.words[offsets[begin] : offsets[end]])].tolist()
            places = (offsets[begin : end + 1] - offsets[begin]).tolist()
            for start, stop in itertools.pairwise(places):
                for piece in range(start, stop, MAX_SENTENCE):
                    yield words[piece : min(piece + MAX_SENTENCE, stop)]
            if self._advance is not None:
                self._advance(len(words))
            begin = end


class _ResumedCorpus:
    """What gensim goes over once an epoch: nothing in the epochs that were done before, and then the sentences."""

    def __init__(self, shards: Shards, done: int, advance: Advance) -> None:
        self._sentences, self._left = Sentences(shards, advance), done

    def __iter__(self) -> Iterator[list[str]]:
        self._left -= 1
        return iter(()) if self._left >= 0 else iter(self._sentences)


class _CheckpointCallback:
    """gensim tells it of each epoch's end; it keeps the state of those that were trained now."""

    def __init__(self, epochs: EpochCheckpoints, done: int) -> None:
        self._epochs, self._done, self._ended = epochs, done, 0

    def on_train_begin(self, model: Any) -> None: ...

    def on_train_end(self, model: Any) -> None: ...

    def on_epoch_begin(self, model: Any) -> None: ...

    def on_epoch_end(self, model: Any) -> None:
        self._ended += 1
        if self._ended <= self._done:
            return
        tensors = {name: torch.from_numpy(array) for name, array in _arrays(model).items()}
        kind, keys, *rest = model.random.get_state(legacy=True)
        self._epochs.keep(self._ended, tensors, {"random": [kind, keys.tolist(), *map(float, rest)]})


def _restored(model: Any, found: Checkpoint) -> int:
    """Put a state back; gives the epochs that it has behind it."""
    for name, array in _arrays(model).items():
        array[:] = found.tensors[name].numpy()
    kind, keys, position, has_gauss, gauss = found.values["random"]
    model.random.set_state((kind, np.array(keys, dtype=np.uint32), int(position), int(has_gauss), gauss))
    return found.step


def _arrays(model: Any) -> dict[str, NDArray[np.float32]]:
    """All numbers that gensim's model learns."""
    homes = ((model.wv, "vectors_vocab"), (model.wv, "vectors_ngrams"), (model, "syn1"), (model, "syn1neg"))
    found = {name: getattr(home, name) for home, name in homes if hasattr(home, name)}
    return found if "vectors_vocab" in found else {"vectors": model.wv.vectors, **found}


def _words(model: Any) -> WordVectors:
    return WordVectors(list(model.wv.index_to_key), model.wv.vectors, len(model.wv))


def _models() -> Any:
    try:
        import gensim.models
    except ImportError as error:
        raise MissingExtraError("word2vec and fastText are trained by gensim", "vectors") from error
    return gensim.models


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """gensim warns of little text and of epochs without any; both are meant here."""
    log = logging.getLogger("gensim")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
