"""What the language models share that read words of a table from left to right: their probabilities, and their folder.

A sentence is read with a mark before its first word, and each place predicts the next: n words have n + 1 predictions, the end
mark counted. A subclass says how places are read (`top_states`); the output layer makes probabilities of all words of it.

model.safetensors    the weights; output.safetensors those of the output layer (of a tied one its bias alone)
vocabulary.txt       one word a line, the marks among them
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
from polyseme.text.words import Splitter, get_splitter


class LeftToRight(Encoder):
    """A language model over a word table, with an output layer."""

    config: LeftToRightConfig
    output: FullSoftmax
    predicts_words = True
    closed_vocabulary = True

    def __init__(
        self,
        config: LeftToRightConfig,
        *,
        vocabulary: Vocabulary,
        splitter: Splitter = get_splitter("whitespace"),  # noqa: B008 (immutable)
    ) -> None:
        super().__init__(config, splitter)
        if len(vocabulary) != config.size:
            raise ConfigError(f"size is {config.size}, but there are {len(vocabulary)} words; the table has a row for each")
        missing = [mark for mark in (config.begin, config.end, config.unknown) if mark not in vocabulary]
        if missing:
            raise ConfigError(f"the vocabulary lacks {' and '.join(missing)}")
        self.vocabulary = vocabulary
        self._marks = vocabulary.ids([config.begin, config.end])

    @property
    def first(self) -> int:
        """Row of the mark that is read before the first word."""
        return int(self._marks[0])

    @property
    def end(self) -> int:
        """Row of the end mark."""
        return int(self._marks[1])

    @abstractmethod
    def top_states(self, rows: Tensor) -> Tensor:
        """Rows of the words that are read, the mark before them first, (batch, places) -> (batch, places, output.dim).

        A state knows the words up to its own place and predicts the next one.
        """

    # ---- words -> rows

    def rows(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The rows of words; a mark inside of a sentence is no mark, but an unknown word."""
        found = self.vocabulary.ids(words)
        found[np.isin(found, self._marks)] = self.vocabulary.ids([self.config.unknown])[0]
        return found

    def padded(self, texts: list[list[str]]) -> tuple[Tensor, Tensor]:
        """Rows of the words of texts (batch, longest), the end mark behind them, and the lengths; on the CPU."""
        lengths = np.array([len(text) for text in texts], dtype=np.int64)
        found = np.full((len(texts), int(lengths.max(initial=0))), self.end, dtype=np.int64)
        for place, text in enumerate(texts):
            found[place, : len(text)] = self.rows(text)
        return torch.from_numpy(found), torch.from_numpy(lengths)

    def prepare(self, sentences: Sequence[Sentence]) -> Batch:
        texts = self._some_texts(sentences)
        rows, lengths = self.padded(texts)
        mask = torch.arange(rows.shape[1]) < lengths[:, None]
        return Batch(rows.to(self.device), mask.to(self.device), lengths.to(self.device))

    # ---- what it can be asked

    @property
    def boundary_tokens(self) -> tuple[str, str]:  # type: ignore[override]
        return self.config.begin, self.config.end

    def log_probs(self, sentences: Sequence[Sentence], *, start: str | None = None) -> LogProbs:
        check_start(self.kind, start, self.start_states)
        texts = self._texts(sentences)
        results: list[WordLogProbs | None] = [None] * len(texts)
        with torch.inference_mode():
            for some in batch_by_words([len(text) + 1 for text in texts]):
                values = self._sentences([texts[row] for row in some])
                for row, forward in zip(some.tolist(), values, strict=True):
                    results[row] = self._answer(texts[row], forward)
        return LogProbs(results)  # type: ignore[arg-type]

    def _sentences(self, texts: list[list[str]]) -> list[np.ndarray]:
        """Natural logs for each text alone, (words + 1,) each."""
        words, lengths = self.padded(texts)
        marks = torch.tensor([self.first, self.end]).expand(len(texts), 2)
        rows = torch.cat([marks[:, :1], words, marks[:, 1:]], dim=1).to(self.device)
        inside = torch.arange(rows.shape[1] - 1) <= lengths[:, None]  # a text of n words has n + 1 predictions
        places = inside.to(self.device)
        found = self.output.log_probs(self.top_states(rows[:, :-1])[places], rows[:, 1:][places])
        return np.split(found.double().cpu().numpy(), np.cumsum(lengths.numpy() + 1)[:-1])

    def _answer(self, text: list[str], forward: np.ndarray) -> WordLogProbs:
        known = [self.vocabulary.find(word) not in (None, *self._marks) for word in text]
        return WordLogProbs(text, forward, None, np.array(known, dtype=bool))

    # ---- in a folder

    def write_files(self, folder: Path, dtype: torch.dtype) -> None:
        weights = {name: value for name, value in self.state_dict().items() if not name.startswith("output.")}
        write_tensors(weights, folder / "model.safetensors", dtype)
        write_tensors(self.output.state_dict(), folder / "output.safetensors", dtype)
        write_text(folder / "vocabulary.txt", self.vocabulary.to_text())

    @classmethod
    def read_files(cls, folder: Path, config: Any, splitter: Splitter) -> Self:
        words = folder / "vocabulary.txt"
        if not words.exists():
            raise FormatError(folder, "lacks vocabulary.txt, the words of its table")
        vocabulary = Vocabulary.read(words, unknown=config.unknown, begin=config.begin, end=config.end)
        try:
            with meta_init():  # no time spent on random weights that are replaced at once
                model = cls(config, vocabulary=vocabulary, splitter=splitter)
        except ConfigError as error:
            raise FormatError(words, str(error)) from error
        weights = read_tensors(folder / "model.safetensors")
        output = read_tensors(folder / "output.safetensors")
        load_weights(model, weights | {f"output.{name}": value for name, value in output.items()}, folder)
        return model.eval()

    def info(self) -> dict[str, Any]:
        parameters = sum(value.numel() for name, value in self.named_parameters() if not name.startswith("output."))
        return super().info() | {"parameters": parameters, "vocabulary": len(self.vocabulary), "language_model": True}
