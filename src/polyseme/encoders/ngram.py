"""N-gram language models: a word depends only on the few words before it (the Markov assumption).

    P(w1 ... wn) = P(w1 | <s>) P(w2 | <s> w1) ... P(</s> | ...)      the chain rule, every context cut to order - 1 words

A table holds the n-grams of the training text with their probabilities. Where it lacks one, the context loses its first word
and the lower order's probability is weighted by a back-off weight (Katz 1987). This is the form of ARPA files, and every
smoothing that interpolates orders, such as Kneser-Ney, can be written in it exactly.

A word's vector is one layer of 2 * order natural-log probabilities: of the word after the 0, 1, ... order - 1 words before it,
and likewise of the next word. Nothing of it can be fine-tuned.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, UsageError
from polyseme.base.files import write_text
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Batch, Layers, Sentence
from polyseme.encoders.chain_rule import BackoffWeight, ChainRule, NgramStep
from polyseme.encoders.config import NgramConfig
from polyseme.encoders.language_model import check_start
from polyseme.encoders.ngram_files import read_table, write_table
from polyseme.encoders.ngram_table import ZERO, NgramMatches, NgramTable
from polyseme.encoders.results import LogProbs, WordLogProbs
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import WHITESPACE, Splitter

MIN_LOG = -30.0  # vectors are clipped here


class NgramModel(Encoder):
    """An n-gram language model; `polyseme.load` reads one from a folder or an ARPA file.

    >>> from polyseme.encoders.ngram_table import Level
    >>> vocabulary = Vocabulary(["<s>", "</s>", "<unk>", "a"], unknown="<unk>", begin="<s>", end="</s>")
    >>> ones = Level(np.arange(4), np.log([1e-9, 0.25, 0.25, 0.5], dtype=np.float32), np.zeros(4, dtype=np.float32))
    >>> model = NgramModel(NgramConfig(order=1), vocabulary=vocabulary, table=NgramTable(4, [ones]))
    >>> np.exp(model.score([["a", "b"]])).round(5).tolist()     # 0.5 * 0.25 * 0.25
    [0.03125]
    """

    kind = "ngram"
    layers = 1
    predicts_words = True
    closed_vocabulary = True
    has_static_vectors = comparable = False
    export_formats = ("arpa",)
    config_type = NgramConfig
    config: NgramConfig
    vocabulary: Vocabulary

    def __init__(
        self, config: NgramConfig, *, vocabulary: Vocabulary, table: NgramTable, splitter: Splitter = WHITESPACE
    ) -> None:
        super().__init__(config, splitter)
        if (config.order, len(vocabulary)) != (table.order, table.size):
            raise ConfigError(
                f"order is {config.order} and there are {len(vocabulary)} words, but the table has "
                f"order {table.order} and {table.size} words"
            )
        tokens = (config.begin, config.end, config.unknown)
        missing = [token for token in tokens if token is not None and token not in vocabulary]
        if missing:
            raise ConfigError(f"the vocabulary lacks {' and '.join(missing)}")
        self.vocabulary, self.table = vocabulary, table
        self._begin, self._end = (int(vocabulary.ids([token])[0]) for token in tokens[:2])

    # ---- as a language model

    def log_probs(self, sentences: Sequence[Sentence], *, start: str | None = None) -> LogProbs:
        check_start(self.kind, start)
        texts = self._texts(sentences)
        matches, begins = self._read(texts)
        values, results = matches.log_probs, LogProbs()
        for text, begin in zip(texts, begins.tolist(), strict=True):
            known = np.array([self._is_known(word) for word in text], dtype=bool)
            results.append(WordLogProbs(text, values[begin + 1 : begin + len(text) + 2], None, known))
        return results

    def chain_rule(self, sentence: Sentence | WordLogProbs, *, start: str | None = None) -> ChainRule:
        """Return a factor for each word and one for the end of the sentence, with the n-gram and back-off weights used."""
        check_start(self.kind, start)
        (text,) = self._texts([sentence.words if isinstance(sentence, WordLogProbs) else sentence])
        matches, _ = self._read([text])
        tokens = [self.config.begin, *text, self.config.end]
        steps, product = ChainRule(), 0.0
        for position in range(1, len(tokens)):
            step = self._step(matches, tokens, position, product)
            product = step.product
            steps.append(step)
        return steps

    def distribution(self, context: Sequence[str], *, begin: bool = True) -> NDArray[np.float64]:
        """Return the log-probability of every word of the vocabulary after some words, (words,).

        `begin`: whether the context begins a sentence, or is from inside one.
        """
        ids = self._ids(self.words(context))
        values = self.table.distribution(np.concatenate([[self._begin], ids]) if begin else ids)
        values[self._begin] = ZERO  # foreign files have any number there
        return values

    def _step(self, matches: NgramMatches, tokens: list[str], position: int, product: float) -> NgramStep:
        longest = min(position, self.config.order - 1)
        lengths = [n for n in range(longest, 0, -1) if not np.isnan(matches.weights[n - 1, position])]
        contexts = [(tuple(tokens[position - n : position]), float(matches.weights[n - 1, position])) for n in lengths]
        found = float(matches.found[position])
        log_prob = found + sum(weight for _, weight in contexts)
        return NgramStep(
            word=tokens[position],
            log_prob=log_prob,
            product=product + log_prob,
            known=position == len(tokens) - 1 or self._is_known(tokens[position]),
            context=tuple(tokens[position - longest : position]),
            order=int(matches.order[position]),
            found=found,
            backoffs=tuple(BackoffWeight(context, weight) for context, weight in contexts),
        )

    def _read(self, texts: list[list[str]]) -> tuple[NgramMatches, NDArray[np.int64]]:
        """Look up texts with their boundary tokens, concatenated; return the matches, and where each text begins."""
        stream, begins = self._stream(texts)
        return self.table.read(stream, begins), begins

    def _stream(self, texts: list[list[str]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ids of texts with boundary tokens, concatenated, and where each begins."""
        lengths = np.array([len(text) + 2 for text in texts], dtype=np.int64)
        begins = np.cumsum(lengths) - lengths
        stream = np.full(int(lengths.sum()), self._end, dtype=np.int64)
        stream[begins] = self._begin
        for text, begin in zip(texts, begins.tolist(), strict=True):
            stream[begin + 1 : begin + len(text) + 1] = self._ids(text)
        return stream, begins

    def _ids(self, words: list[str]) -> NDArray[np.int64]:
        """Return the ids of words; a boundary token inside a sentence is an unknown word."""
        ids = self.vocabulary.ids(words)
        boundaries = (ids == self._begin) | (ids == self._end)
        if boundaries.any():
            if self.config.unknown is None:
                raise UsageError(f"{self.config.begin} and {self.config.end} are special tokens: remove them from the text")
            ids[boundaries] = self.vocabulary.ids([self.config.unknown])[0]
        return ids

    def _is_known(self, word: str) -> bool:
        return self.vocabulary.find(word) not in (None, self._begin, self._end)

    # ---- vectors

    @property
    def dim(self) -> int:
        return 2 * self.config.order

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def layer_groups(self) -> dict[str, nn.Module]:
        return {}

    @property
    def identity(self) -> str:
        """A hash of the table, which is not among the weights."""
        digest = hashlib.sha256()
        for level in self.table.levels:
            for array in (level.keys, level.log_probs, level.backoffs):
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def prepare(self, sentences: Sequence[Sentence]) -> Batch:
        texts = self._some_texts(sentences)
        lengths = torch.tensor([len(text) for text in texts])
        vectors = torch.zeros(len(texts), int(lengths.max()), self.dim)
        known, begins = self._by_order(texts)
        for row, (text, begin) in enumerate(zip(texts, begins.tolist(), strict=True)):
            own, after = known[begin + 1 : begin + 1 + len(text)], known[begin + 2 : begin + 2 + len(text)]
            vectors[row, : len(text)] = torch.from_numpy(np.concatenate([own, after], axis=1))
        return Batch(vectors, torch.arange(vectors.shape[1]) < lengths[:, None], lengths)

    def forward(self, batch: Batch) -> Layers:
        return Layers(states=batch.inputs[None], mask=batch.mask)

    def _by_order(self, texts: list[list[str]]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the log-probabilities by the models of order 1, 2, ..., (positions, order), and where texts begin."""
        stream, begins = self._stream(texts)
        tables = [NgramTable(self.table.size, self.table.levels[: order + 1]) for order in range(self.config.order)]
        values = np.stack([each.read(stream, begins).log_probs for each in tables], axis=1)
        return values.clip(min=MIN_LOG).astype(np.float32), begins

    # ---- model folders

    def write_files(self, folder: Path, dtype: torch.dtype) -> None:
        write_table(self.table, folder / "model.safetensors", dtype)
        write_text(folder / "vocabulary.txt", self.vocabulary.to_text())

    @classmethod
    def read_files(cls, folder: Path, config: NgramConfig, splitter: Splitter) -> Self:
        words = folder / "vocabulary.txt"
        vocabulary = Vocabulary.read(words, unknown=config.unknown, begin=config.begin, end=config.end)
        table = read_table(folder / "model.safetensors", config.order, len(vocabulary))
        try:
            return cls(config, vocabulary=vocabulary, table=table, splitter=splitter)
        except ConfigError as error:
            raise FormatError(folder, str(error)) from error

    def info(self) -> dict[str, Any]:
        return {
            "encoder": self.kind,
            "layers": self.layers,
            "dim": self.dim,
            "order": self.config.order,
            "vocabulary": len(self.vocabulary),
            "ngrams": [len(level) for level in self.table.levels],
            "smoothing": self.config.smoothing,
            "discounts": [[round(value, 4) for value in each] for each in self.config.discounts] or None,
            "parameters": 2 * sum(len(level) for level in self.table.levels),
            "language_model": True,
            "splitter": self.splitter.name,
        }
