"""The language model of ULMFiT: an AWD-LSTM over a word table.

Howard and Ruder 2018, after Merity et al. 2017. Layer 0 is the word's vector of the table, layer l the output of LSTM l, which
has read the word and all to its left. Layers narrower than the widest are padded with zeros. The output layer is tied to the
table.

Training text is one stream with an end token between sentences, so a sentence alone starts with that token, from a zero state.
Published perplexities read the whole text as a stream: `start="carry"` reads each sentence after the one before, in the order
given, and continues over calls until `reset_state`. A backward model reads from right to left: layers and probabilities of a
word then depend on all to its right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from polyseme.base.errors import UsageError
from polyseme.encoders.batch import Batch, Layers, Sentence
from polyseme.encoders.chain_rule import ChainRule
from polyseme.encoders.config import UlmfitConfig
from polyseme.encoders.left_to_right import LeftToRight
from polyseme.encoders.results import LogProbs, WordLogProbs
from polyseme.encoders.sequence import SequenceOutput, split_texts
from polyseme.nn.awd_lstm import AwdLstm, AwdLstmOutput, AwdLstmState, drop_words
from polyseme.nn.config import AwdDropout
from polyseme.nn.output.full import TiedSoftmax
from polyseme.nn.pooling import concat_pool
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import WHITESPACE, Splitter

_CARRIED = 1024  # words that are read at a time, where the state is carried
SEQUENCE_BPTT = 70
"""Words through which gradients of a sequence's vector flow, as published (BPT3C)."""


@dataclass(frozen=True)
class UlmfitSequenceInputs:
    """Examples of one or two texts as rows of the table."""

    rows: Tensor
    """(examples, steps): words with an end token after each text, padded; the first token is read before them."""
    mask: Tensor
    """(examples, steps): True on what is pooled: all but the last end token."""
    positions: Tensor
    """(predictions,): what is predicted, as positions among all steps of all examples."""
    targets: Tensor
    """(predictions,): the rows to predict."""


class Ulmfit(LeftToRight):
    """An AWD-LSTM over a word table.

    >>> words = Vocabulary(["<s>", "</s>", "<unk>", "a"], unknown="<unk>", begin="<s>", end="</s>")
    >>> model = Ulmfit(UlmfitConfig(size=4, dim=3, hidden_size=5), vocabulary=words).eval()
    >>> model.embed([["a", "b"]])[0].shape, model.log_probs([["a", "b"]])[0].forward.shape
    ((4, 2, 5), (3,))
    """

    kind = "ulmfit"
    can_adapt = True
    predicts_next_word = True
    config_type = UlmfitConfig
    config: UlmfitConfig
    output: TiedSoftmax

    def __init__(self, config: UlmfitConfig, *, vocabulary: Vocabulary, splitter: Splitter = WHITESPACE) -> None:
        super().__init__(config, vocabulary=vocabulary, splitter=splitter)
        self.table = nn.Embedding(config.size, config.dim)
        nn.init.uniform_(self.table.weight, -0.1, 0.1)
        self.lstm = AwdLstm(dim=config.dim, hidden_size=config.hidden_size, layers=config.layers)
        self.output = TiedSoftmax(self.table)
        self._words_dropped = 0.0
        self._carried: AwdLstmState | None = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy carries no state."""
        return {**super().__getstate__(), "_carried": None}

    @property
    def start_states(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("zero",) if self.config.backward else ("zero", "carry")

    @property
    def word_table(self) -> nn.Embedding:
        return self.table

    def set_word_rows(self, rows: nn.Parameter) -> None:
        """Replace the rows of the word table, (words, dim)."""
        self.table.weight, self.table.num_embeddings = rows, len(rows)
        self.config = self.config.replace(size=len(rows))

    def scale_dropout(self, factor: float) -> None:
        self.set_dropout(AwdDropout().times(factor))

    def set_dropout(self, dropout: AwdDropout) -> None:
        """Set the dropout of training; a model that was just loaded has none."""
        self._words_dropped = dropout.words
        self.lstm.set_dropout(dropout)

    @property
    def first(self) -> int:
        return self.end

    @property
    def layers(self) -> int:
        return self.config.layers + 1

    @property
    def dim(self) -> int:
        return max(self.config.dim, self.config.hidden_size) if self.config.layers > 1 else self.config.dim

    def layer_groups(self) -> dict[str, nn.Module]:
        levels = {f"layer{level}": layer for level, layer in enumerate(self.lstm.stack(), start=1)}
        return {"table": self.table, **levels, "output": self.output}

    def padded(self, texts: list[list[str]]) -> tuple[Tensor, Tensor]:
        """Return the rows of texts in the order in which they are read."""
        return super().padded([text[::-1] for text in texts] if self.config.backward else texts)

    # ---- rows -> layers

    def forward(self, batch: Batch) -> Layers:
        rows: Tensor = batch.inputs
        first = rows.new_full((len(rows), 1), self.first)
        output = self.read(torch.cat([first, rows], dim=1), self.lstm.zero_state(len(rows)))
        own: Tensor = self.table(rows)
        stack = torch.stack([F.pad(each, (0, self.dim - each.shape[2])) for each in (own, *(x[:, 1:] for x in output.layers))])
        if self.config.backward:
            places = torch.arange(rows.shape[1], device=rows.device)
            source = torch.where(batch.mask, batch.lengths[:, None] - 1 - places, places)
            stack = stack.gather(2, source[None, :, :, None].expand_as(stack))
        return Layers(states=stack.masked_fill(~batch.mask[..., None], 0.0), mask=batch.mask)

    # ---- sequences

    def sequence_dim(self, texts: int) -> int:
        return 3 * self.config.dim

    def prepare_sequence(self, examples: Sequence[Sequence[Sentence]], *, keep_end: bool = False) -> UlmfitSequenceInputs:
        """Join two texts by the end token, as sentences in pre-training."""
        slots = [self._texts(texts) for texts in split_texts(examples)]
        joined = [self._closed(texts) for texts in zip(*slots, strict=True)]
        lengths = torch.tensor([len(rows) for rows in joined])
        rows = np.full((len(joined), int(lengths.max())), self.end, dtype=np.int64)
        for number, each in enumerate(joined):
            rows[number, : len(each)] = each
        steps = torch.arange(rows.shape[1])
        inside = steps < lengths[:, None]  # including the last end token, which is predicted and not read
        read = torch.from_numpy(rows)
        tensors = (read, steps < lengths[:, None] - 1, inside.flatten().nonzero()[:, 0], read[inside])
        return UlmfitSequenceInputs(*(each.to(self.device) for each in tensors))

    def _closed(self, texts: Sequence[list[str]]) -> NDArray[np.int64]:
        """The rows of texts in the order in which they are read, each with the end token after it."""
        rows = np.concatenate([np.append(self.rows(text), self.end) for text in texts])
        return np.append(rows[-2::-1], self.end) if self.config.backward else rows

    def encode_sequence(
        self, inputs: UlmfitSequenceInputs, tokens: Tensor | None = None, *, predict: bool = False
    ) -> SequenceOutput:
        """Concat pooling of the last layer, [last; max; mean], over all but the first token."""
        first = inputs.rows.new_full((len(inputs.rows), 1), self.first)
        reading = self._read_long(torch.cat([first, inputs.rows[:, :-1]], dim=1))
        vectors = concat_pool(reading.layers[-1][:, 1:], inputs.mask[:, :-1])
        if not predict:
            return SequenceOutput(vectors)
        states = reading.top.flatten(0, 1).index_select(0, inputs.positions)
        return SequenceOutput(vectors, self.output.loss(states, inputs.targets)[0] / len(inputs.targets))

    def _read_long(self, rows: Tensor) -> AwdLstmOutput:
        """Read rows from the zero state. Gradients end every `SEQUENCE_BPTT` words; the state does not."""
        state = self.lstm.zero_state(len(rows))
        if not torch.is_grad_enabled() or rows.shape[1] <= SEQUENCE_BPTT:
            return self.read(rows, state)
        parts = []
        for some in rows.split(SEQUENCE_BPTT, dim=1):
            parts.append(self.read(some, state))
            state = [(hidden.detach(), cell.detach()) for hidden, cell in parts[-1].end]
        layers = [torch.cat(each, dim=1) for each in zip(*(part.layers for part in parts), strict=True)]
        return AwdLstmOutput(layers, torch.cat([part.top for part in parts], dim=1), parts[-1].end)

    def top_states(self, rows: Tensor) -> Tensor:
        return self.read(rows, self.lstm.zero_state(len(rows))).top

    def read(self, rows: Tensor, state: AwdLstmState) -> AwdLstmOutput:
        """Read rows of the table (batch, steps) from a state."""
        reading: AwdLstmOutput = self.lstm(self.look_up(rows), state)
        return reading

    def look_up(self, rows: Tensor) -> Tensor:
        """Return the vectors of rows of the table; in training some words are dropped."""
        return drop_words(self.table, rows, self._words_dropped, self.training)

    # ---- as a language model

    def log_probs(self, sentences: Sequence[Sentence], *, start: str | None = None) -> LogProbs:
        """Return log-probabilities; `start`: "zero" (default), or "carry" to read on from the sentence before."""
        if start != "carry" or self.config.backward:
            return super().log_probs(sentences, start=start)
        texts = self._texts(sentences)
        lengths = np.array([len(text) + 1 for text in texts], dtype=np.int64)
        stream = np.full(int(lengths.sum()), self.end, dtype=np.int64)
        for text, stop in zip(texts, np.cumsum(lengths).tolist(), strict=True):
            stream[stop - len(text) - 1 : stop - 1] = self.rows(text)
        values = np.split(self._read_on(stream), np.cumsum(lengths)[:-1])
        return LogProbs(self._answer(text, forward) for text, forward in zip(texts, values if texts else [], strict=True))

    def chain_rule(self, sentence: Sentence | WordLogProbs, *, start: str | None = None) -> ChainRule:
        if self.config.backward:
            raise UsageError("this model reads from right to left, but steps are shown from left to right: use a forward one")
        return super().chain_rule(sentence, start=start)

    def _answer(self, text: list[str], forward: np.ndarray) -> WordLogProbs:
        """Probabilities in the order in which words were read; last that of the end, or for a backward model the begin."""
        if self.config.backward:
            forward = np.append(forward[-2::-1] if len(text) else forward[:0], forward[-1])
        return super()._answer(text, forward)

    def reset_state(self) -> None:
        self._carried = None

    @torch.inference_mode()
    def _read_on(self, stream: np.ndarray) -> np.ndarray:
        """Return the log-probabilities of rows that end with an end token, read after all before: (words,) -> (words,)."""
        state = self._carried if self._carried is not None else self.lstm.zero_state(1)
        state = [(hidden.to(self.device), cell.to(self.device)) for hidden, cell in state]
        targets = torch.from_numpy(stream).to(self.device)
        rows = F.pad(targets, (1, 0), value=self.end)[:-1]  # the end token of the text before is not read yet
        found = []
        for begin in range(0, len(rows), _CARRIED):
            reading = self.read(rows[None, begin : begin + _CARRIED], state)
            state = reading.end
            found.append(self.output.log_probs(reading.top[0], targets[begin : begin + _CARRIED]).double().cpu().numpy())
        self._carried = state
        return np.concatenate([np.zeros(0), *found])

    def info(self) -> dict[str, Any]:
        direction = {"direction": "backward"} if self.config.backward else {}
        return super().info() | {"lstm": f"{self.config.hidden_size}/{self.config.dim}"} | direction
