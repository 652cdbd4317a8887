"""word2vec (Mikolov et al. 2013) and fastText (Bojanowski et al. 2017), trained by gensim (extra `vectors`).

gensim is fast and widely used. Added here: text of any kind as memory-mapped ids, a checkpoint after each epoch, and a model
folder without pickle. With one thread the vectors equal those that gensim gives for the same sentences, settings and seed, in
every process (gensim 4 draws the initial vectors from the seed and the index of a word). With more threads they differ from
run to run.

To resume a run, gensim gets all epochs, the finished ones without any sentences: so the learning rate falls as if there had
been no interruption, and no internals of gensim are touched.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.base.errors import MissingExtraError, PolysemeError, arg
from polyseme.base.progress import Advance, progress
from polyseme.encoders.fasttext import FastTextTable
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.pretraining.epoch_job import EpochCheckpoints, EpochJob
from polyseme.pretraining.result import WordVectorResult
from polyseme.pretraining.word2vec_config import FastTextPretraining, Word2VecPretraining
from polyseme.text.shards.shards import Shards
from polyseme.text.word_vectors import WordVectors
from polyseme.training.checkpoint import Checkpoint

MAX_SENTENCE = 10_000  # words that gensim reads at once; longer sentences are cut
_BLOCK = 1 << 16  # words that are turned into strings together


class Word2VecJob(EpochJob):
    """The training of a new word2vec model."""

    method: Word2VecPretraining

    def gensim_model(self) -> Any:
        """Return gensim's model, without words yet."""
        return _gensim().Word2Vec(**self.method.gensim_settings(self.run.seed))

    def encoder(self, model: Any) -> WordVectorTable:
        """Turn gensim's trained model into an encoder."""
        return WordVectorTable.from_vectors(_vectors(model), splitter=self.corpus.splitter)

    def fit(self) -> WordVectorResult:
        """Train the model, or resume after the last finished epoch, and write it."""
        self.method = method = self.method.resolve_defaults()
        self.run = dataclasses.replace(self.run, device=torch.device("cpu"), precision="fp32")  # whatever the machine has
        model = self.gensim_model()
        shards = self.encode_text()
        with _quiet():
            model.build_vocab(corpus_iterable=Sentences(shards))
            self._check_vocabulary(len(model.wv))
            checkpoints = self.checkpoints(shards)
            checkpoint = checkpoints.newest()
            done = 0 if checkpoint is None else _restore(model, checkpoint)
            with progress("training", shards.total * (method.epochs - done), "words") as advance:
                model.train(
                    corpus_iterable=_ResumedSentences(shards, done, advance),
                    total_examples=model.corpus_count,
                    epochs=method.epochs,
                    callbacks=[_CheckpointCallback(checkpoints, done)],
                )
        return self.write(self.encoder(model), shards, checkpoints.seconds)

    def _check_vocabulary(self, size: int) -> None:
        lower = f"give a lower {arg('min_count')}"
        if not size:
            raise PolysemeError(f"no word of the text occurs {self.method.min_count} times: {lower}")
        if self.method.hierarchical_softmax and size < 2:  # gensim would wait for ever
            raise PolysemeError(
                f"only one word occurs {self.method.min_count} times, and {arg('hierarchical_softmax')} needs two: {lower}"
            )


class FastTextJob(Word2VecJob):
    """The training of a new fastText model."""

    method: FastTextPretraining

    def gensim_model(self) -> Any:
        return _gensim().FastText(**self.method.gensim_settings(self.run.seed))

    def encoder(self, model: Any) -> FastTextTable:
        lengths: dict[str, Any] = {"min_n": self.method.min_n, "max_n": self.method.max_n}
        return FastTextTable.from_parts(_vectors(model), model.wv.vectors_ngrams, **lengths, splitter=self.corpus.splitter)


class Sentences:
    """The sentences of shards as lists of words, re-iterable; those too long for gensim are cut."""

    def __init__(self, shards: Shards, advance: Advance | None = None) -> None:
        self._shards, self._advance = shards, advance

    def __iter__(self) -> Iterator[list[str]]:
        types = np.array(self._shards.types, dtype=object)
        offsets = np.asarray(self._shards.offsets)
        begin = 0
        while begin < len(self._shards):
            end = max(begin + 1, int(np.searchsorted(offsets, offsets[begin] + _BLOCK, side="right")) - 1)
            words = types[np.asarray(self._shards.words[offsets[begin] : offsets[end]])].tolist()
            edges = (offsets[begin : end + 1] - offsets[begin]).tolist()
            for start, stop in itertools.pairwise(edges):
                for first in range(start, stop, MAX_SENTENCE):
                    yield words[first : min(first + MAX_SENTENCE, stop)]
            if self._advance is not None:
                self._advance(len(words))
            begin = end


class _ResumedSentences:
    """What gensim iterates over in each epoch: nothing in the finished ones, then the sentences."""

    def __init__(self, shards: Shards, done: int, advance: Advance) -> None:
        self._sentences, self._left = Sentences(shards, advance), done

    def __iter__(self) -> Iterator[list[str]]:
        self._left -= 1
        return iter(()) if self._left >= 0 else iter(self._sentences)


class _CheckpointCallback:
    """Called by gensim at the end of each epoch: writes a checkpoint, unless the epoch was finished before."""

    def __init__(self, checkpoints: EpochCheckpoints, done: int) -> None:
        self._checkpoints, self._done, self._ended = checkpoints, done, 0

    def on_train_begin(self, model: Any) -> None: ...

    def on_train_end(self, model: Any) -> None: ...

    def on_epoch_begin(self, model: Any) -> None: ...

    def on_epoch_end(self, model: Any) -> None:
        self._ended += 1
        if self._ended <= self._done:
            return
        tensors = {name: torch.from_numpy(array) for name, array in _arrays(model).items()}
        kind, keys, *rest = model.random.get_state(legacy=True)
        self._checkpoints.write(self._ended, tensors, {"random": [kind, keys.tolist(), *map(float, rest)]})


def _restore(model: Any, checkpoint: Checkpoint) -> int:
    """Restore a state, and return the epochs that are finished."""
    for name, array in _arrays(model).items():
        array[:] = checkpoint.tensors[name].numpy()
    kind, keys, position, has_gauss, gauss = checkpoint.values["random"]
    model.random.set_state((kind, np.array(keys, dtype=np.uint32), int(position), int(has_gauss), gauss))
    return checkpoint.step


def _arrays(model: Any) -> dict[str, NDArray[np.float32]]:
    """Return all parameters of gensim's model."""
    owners = ((model.wv, "vectors_vocab"), (model.wv, "vectors_ngrams"), (model, "syn1"), (model, "syn1neg"))
    arrays = {name: getattr(owner, name) for owner, name in owners if hasattr(owner, name)}
    return arrays if "vectors_vocab" in arrays else {"vectors": model.wv.vectors, **arrays}


def _vectors(model: Any) -> WordVectors:
    return WordVectors(list(model.wv.index_to_key), model.wv.vectors, len(model.wv))


def _gensim() -> Any:
    try:
        import gensim.models
    except ImportError as error:
        raise MissingExtraError("word2vec and fastText are trained by gensim", "vectors") from error
    return gensim.models


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence gensim's warnings about little text and about epochs without any."""
    log = logging.getLogger("gensim")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
