"""What left-to-right language models over a word table share: probabilities, and files.

A sentence is read with a begin token before its first word, and each position predicts the next word: n words have n + 1
predictions, including the end token. A subclass says how positions are read (`top_states`).

model.safetensors    the weights; output.safetensors those of the output layer (only the bias of a tied one)
vocabulary.txt       one word per line, special tokens included
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError
from polyseme.base.files import write_text
from polyseme.base.tensor_files import load_weights, read_tensors, write_tensors
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Batch, Sentence
from polyseme.encoders.config import LeftToRightConfig
from polyseme.encoders.language_model import check_start
from polyseme.encoders.results import LogProbs, WordLogProbs
from polyseme.nn.meta_init import meta_init
from polyseme.nn.output.full import FullSoftmax
from polyseme.text.batching.batches import batch_by_words
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import WHITESPACE, Splitter


class LeftToRight(Encoder):
    """A left-to-right language model over a word table, with an output layer."""

    config: LeftToRightConfig
    vocabulary: Vocabulary
    output: FullSoftmax
    predicts_words = True
    closed_vocabulary = True

    def __init__(self, config: LeftToRightConfig, *, vocabulary: Vocabulary, splitter: Splitter = WHITESPACE) -> None:
        super().__init__(config, splitter)
        if len(vocabulary) != config.size:
            raise ConfigError(f"size is {config.size}, but there are {len(vocabulary)} words; the table needs a row for each")
        missing = [token for token in (config.begin, config.end, config.unknown) if token not in vocabulary]
        if missing:
            raise ConfigError(f"the vocabulary lacks {' and '.join(missing)}")
        self.vocabulary = vocabulary
        self._boundaries = vocabulary.ids([config.begin, config.end])

    @property
    def first(self) -> int:
        """Row of the token that is read before the first word."""
        return int(self._boundaries[0])

    @property
    def end(self) -> int:
        return int(self._boundaries[1])

    @abstractmethod
    def top_states(self, rows: Tensor) -> Tensor:
        """Read rows of words, the begin token first, (batch, positions) -> (batch, positions, output.dim).

        A state has seen the words up to its own position and predicts the next one.
        """

    # ---- words -> rows

    def rows(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Return the rows of words; a begin or end token inside a sentence is an unknown word."""
        rows = self.vocabulary.ids(words)
        rows[np.isin(rows, self._boundaries)] = self.vocabulary.ids([self.config.unknown])[0]
        return rows

    def padded(self, texts: list[list[str]]) -> tuple[Tensor, Tensor]:
        """Return the rows of texts (batch, words), padded with the end token, and the lengths; on the CPU."""
        lengths = np.array([len(text) for text in texts], dtype=np.int64)
        rows = np.full((len(texts), int(lengths.max(initial=0))), self.end, dtype=np.int64)
        for number, text in enumerate(texts):
            rows[number, : len(text)] = self.rows(text)
        return torch.from_numpy(rows), torch.from_numpy(lengths)

    def prepare(self, sentences: Sequence[Sentence]) -> Batch:
        texts = self._some_texts(sentences)
        rows, lengths = self.padded(texts)
        mask = torch.arange(rows.shape[1]) < lengths[:, None]
        return Batch(rows.to(self.device), mask.to(self.device), lengths.to(self.device))

    # ---- as a language model

    def log_probs(self, sentences: Sequence[Sentence], *, start: str | None = None) -> LogProbs:
        check_start(self.kind, start, self.start_states)
        texts = self._texts(sentences)
        results: list[WordLogProbs | None] = [None] * len(texts)
        with torch.inference_mode():
            for rows in batch_by_words([len(text) + 1 for text in texts]):
                values = self._sentences([texts[row] for row in rows])
                for row, forward in zip(rows.tolist(), values, strict=True):
                    results[row] = self._answer(texts[row], forward)
        return LogProbs(results)  # type: ignore[arg-type]

    def _sentences(self, texts: list[list[str]]) -> list[np.ndarray]:
        """Return the natural-log probabilities of each text alone, (words + 1,) each."""
        words, lengths = self.padded(texts)
        tokens = torch.tensor([self.first, self.end]).expand(len(texts), 2)
        rows = torch.cat([tokens[:, :1], words, tokens[:, 1:]], dim=1).to(self.device)
        inside = (torch.arange(rows.shape[1] - 1) <= lengths[:, None]).to(self.device)  # n words have n + 1 predictions
        values = self.output.log_probs(self.top_states(rows[:, :-1])[inside], rows[:, 1:][inside])
        return np.split(values.double().cpu().numpy(), np.cumsum(lengths.numpy() + 1)[:-1])

    def _answer(self, text: list[str], forward: np.ndarray) -> WordLogProbs:
        known = [self.vocabulary.find(word) not in (None, *self._boundaries) for word in text]
        return WordLogProbs(text, forward, None, np.array(known, dtype=bool))

    # ---- model folders

    def write_files(self, folder: Path, dtype: torch.dtype) -> None:
        weights = {name: value for name, value in self.state_dict().items() if not name.startswith("output.")}
        write_tensors(weights, folder / "model.safetensors", dtype)
        write_tensors(self.output.state_dict(), folder / "output.safetensors", dtype)
        write_text(folder / "vocabulary.txt", self.vocabulary.to_text())

    @classmethod
    def read_files(cls, folder: Path, config: Any, splitter: Splitter) -> Self:
        words = folder / "vocabulary.txt"
        if not words.exists():
            raise FormatError(folder, "lacks vocabulary.txt")
        vocabulary = Vocabulary.read(words, unknown=config.unknown, begin=config.begin, end=config.end)
        try:
            with meta_init():  # no time for random weights that are replaced at once
                model = cls(config, vocabulary=vocabulary, splitter=splitter)
        except ConfigError as error:
            raise FormatError(words, str(error)) from error
        weights = read_tensors(folder / "model.safetensors")
        output = read_tensors(folder / "output.safetensors")
        load_weights(model, weights | {f"output.{name}": value for name, value in output.items()}, folder)
        return model.eval()

    def info(self) -> dict[str, Any]:
        return super().info() | {"vocabulary": len(self.vocabulary), "language_model": True}
