"""Sequence to sequence: an LSTM encoder, an LSTM decoder, and attention between them.

The states of a bidirectional LSTM are the memory of a text (Bahdanau et al. 2015). A second LSTM generates word by word: each
of its states attends to the memory, and both together make the readout that scores words (global attention, Luong et al.
2015). Input feeding passes each readout to the next step. Without it, the default here, the decoder states of a known target
do not depend on attention, and training runs over all words at once; with it, word by word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, get_args

import torch
from torch import Tensor, nn

from polyseme.base.errors import UsageError
from polyseme.nn.attention import masked_softmax
from polyseme.nn.config import AttentionScore
from polyseme.nn.dropout import VariationalDropout
from polyseme.nn.networks.beam import DecoderStep
from polyseme.nn.output.full import FullSoftmax, TiedSoftmax
from polyseme.nn.stacked_bilstm import StackedBiLstm, final_states, without_autocast


@dataclass(frozen=True)
class AttentionMemory:
    """What a decoder attends to."""

    keys: Tensor
    """(rows, words, dim): compared with decoder states."""
    values: Tensor
    """(rows, words, size)."""
    mask: Tensor
    """(rows, words): true on words."""


@dataclass(frozen=True)
class DecoderState:
    """What the decoder carries from word to word."""

    memory: AttentionMemory
    hidden: Tensor
    """(layers, rows, dim)."""
    cell: Tensor
    """(layers, rows, dim)."""
    feed: Tensor
    """(rows, readout): the previous readout, zero at the beginning."""

    def repeat(self, count: int) -> DecoderState:
        """Return each row `count` times, next to each other."""
        parts = (self.memory.keys, self.memory.values, self.memory.mask)
        memory = AttentionMemory(*(part.repeat_interleave(count, dim=0) for part in parts))
        hidden, cell = (part.repeat_interleave(count, dim=1) for part in (self.hidden, self.cell))
        return DecoderState(memory, hidden, cell, self.feed.repeat_interleave(count, dim=0))

    def take(self, rows: Tensor) -> DecoderState:
        """Replace rows by others (rows,) of the same text; the memory stays."""
        return DecoderState(self.memory, self.hidden[:, rows], self.cell[:, rows], self.feed[rows])

    def select(self, rows: Tensor | slice) -> DecoderState:
        """Return some rows, with their memory."""
        memory = AttentionMemory(self.memory.keys[rows], self.memory.values[rows], self.memory.mask[rows])
        hidden, cell = (part[:, rows].contiguous() for part in (self.hidden, self.cell))
        return DecoderState(memory, hidden, cell, self.feed[rows])


class WordLosses(NamedTuple):
    """Sums over the words of a batch."""

    total: Tensor
    """The training loss; with gradients."""
    plain: Tensor
    """Without label smoothing and gradients: for perplexity."""


class DecoderAttention(nn.Module):
    """Attention to the memory, scored by a bilinear product (Luong's general) or a hidden layer (Bahdanau's additive)."""

    def __init__(self, dim: int, memory: int, score: AttentionScore = "general") -> None:
        super().__init__()
        if score not in get_args(AttentionScore):
            raise UsageError(f"attention is {score!r}; allowed: {', '.join(get_args(AttentionScore))}")
        self.key = nn.Linear(memory, dim, bias=False)
        self.query = nn.Linear(dim, dim) if score == "additive" else None
        self.score = nn.Linear(dim, 1, bias=False) if score == "additive" else None

    def remember(self, states: Tensor, mask: Tensor) -> AttentionMemory:
        """Return the states of a text (rows, words, size) as a memory."""
        return AttentionMemory(self.key(states), states, mask)

    def forward(self, states: Tensor, memory: AttentionMemory) -> tuple[Tensor, Tensor]:
        """States (rows, steps, dim) -> context (rows, steps, size) and attention weights (rows, steps, words)."""
        if self.query is not None and self.score is not None:
            both = torch.tanh(self.query(states).unsqueeze(2) + memory.keys.unsqueeze(1))  # (rows, steps, words, dim)
            scores = self.score(both).squeeze(3)
        else:
            scores = states @ memory.keys.to(states.dtype).transpose(1, 2)
        weights = masked_softmax(scores, memory.mask.unsqueeze(1))
        return weights @ memory.values.to(weights.dtype), weights


@dataclass(frozen=True, kw_only=True)
class DecoderConfig:
    """Sizes and variant of a decoder."""

    vocabulary: int
    """Words that it can generate, with special tokens."""
    word_dim: int
    """Size of a word vector, and of a readout."""
    hidden_size: int
    """Units of its LSTM."""
    memory_dim: int
    """Size of a vector of the memory."""
    layers: int = 1
    dropout: float = 0.0
    score: AttentionScore = "general"
    input_feeding: bool = False
    tied: bool = False
    """Score words with the vectors of the input table."""


class Decoder(nn.Module):
    """Previous words and a memory -> readouts (rows, steps, word_dim), which `output` turns into probabilities."""

    def __init__(self, config: DecoderConfig, begin: int) -> None:
        super().__init__()
        self.begin, self.input_feeding = begin, config.input_feeding
        self.table = nn.Embedding(config.vocabulary, config.word_dim)
        bound = (3 / config.word_dim) ** 0.5
        nn.init.uniform_(self.table.weight, -bound, bound)
        fed = config.word_dim if config.input_feeding else 0
        between = config.dropout if config.layers > 1 else 0.0
        self.lstm = nn.LSTM(config.word_dim + fed, config.hidden_size, config.layers, batch_first=True, dropout=between)
        self.attention = DecoderAttention(config.hidden_size, config.memory_dim, config.score)
        self.readout = nn.Linear(config.hidden_size + config.memory_dim, config.word_dim, bias=False)
        self.dropout = VariationalDropout(config.dropout)
        self.output = TiedSoftmax(self.table) if config.tied else FullSoftmax(config.vocabulary, config.word_dim)

    def start(self, hidden: Tensor, cell: Tensor, memory: AttentionMemory) -> DecoderState:
        """Return the state before the first word."""
        return DecoderState(memory, hidden, cell, hidden.new_zeros(hidden.shape[1], self.readout.out_features))

    def forward(self, words: Tensor, state: DecoderState) -> tuple[Tensor, Tensor, DecoderState]:
        """Known words (rows, steps) -> readouts, attention weights (rows, steps, source words), and the state after them."""
        vectors = self.dropout(self.table(words))
        if not self.input_feeding:
            return self._run(vectors, state)
        readouts, weights = [], []
        for step in range(vectors.shape[1]):
            fed = torch.cat([vectors[:, step : step + 1], state.feed.unsqueeze(1).to(vectors.dtype)], dim=2)
            readout, weight, state = self._run(fed, state)
            readouts.append(readout)
            weights.append(weight)
        return torch.cat(readouts, dim=1), torch.cat(weights, dim=1), state

    def _run(self, vectors: Tensor, state: DecoderState) -> tuple[Tensor, Tensor, DecoderState]:
        dtype = next(self.lstm.parameters()).dtype
        before = (state.hidden.to(dtype).contiguous(), state.cell.to(dtype).contiguous())
        with without_autocast(vectors.device):
            states, (hidden, cell) = self.lstm(vectors.to(dtype), before)
        context, weights = self.attention(states, state.memory)
        readouts = torch.tanh(self.readout(torch.cat([states.to(context.dtype), context], dim=2)))
        return readouts, weights, DecoderState(state.memory, hidden, cell, readouts[:, -1])

    def step(self, words: Tensor, state: DecoderState) -> DecoderStep:
        """The last words (rows,) -> the next step; the begin token is never predicted."""
        readouts, weights, state = self(words.unsqueeze(1), state)
        log_probs = self.output(readouts[:, 0]).float()
        log_probs[:, self.begin] = -torch.inf
        return DecoderStep(log_probs, weights[:, 0].argmax(1), state)


class Seq2Seq(nn.Module):
    """An encoder and a decoder: word vectors (batch, words, dim) in, sequences of words out.

    Extra vectors can be concatenated to the encoder's states in the memory. The decoder starts from the final states of both
    directions.
    """

    def __init__(self, reader: StackedBiLstm, config: DecoderConfig, *, begin: int, label_smoothing: float = 0.0) -> None:
        super().__init__()
        self.reader, self.label_smoothing = reader, label_smoothing
        self.bridge = nn.Linear(reader.dim, 2 * config.layers * config.hidden_size)
        self.decoder = Decoder(config, begin)

    def read(
        self, vectors: Tensor, mask: Tensor, lengths: Tensor, between: Tensor | None = None, at_output: Tensor | None = None
    ) -> DecoderState:
        """Encode texts; return the decoder's state before the first word."""
        states = self.reader(vectors, mask, lengths, between)
        first = torch.tanh(self.bridge(final_states(states, mask)))  # (batch, 2 * layers * hidden)
        hidden, cell = first.view(len(first), 2, self.decoder.lstm.num_layers, -1).permute(1, 2, 0, 3)
        if at_output is not None:
            states = torch.cat([states.float(), at_output.float()], dim=2)
        return self.decoder.start(hidden, cell, self.decoder.attention.remember(states, mask))

    def losses(self, state: DecoderState, targets: Tensor, positions: Tensor) -> WordLosses:
        """Return the losses of known targets (batch, steps), at `positions` (words,) of the flattened batch."""
        begin = targets.new_full((len(targets), 1), self.decoder.begin)
        readouts, _, _ = self.decoder(torch.cat([begin, targets[:, :-1]], dim=1), state)
        flat, wanted = self.decoder.dropout(readouts).flatten(0, 1)[positions], targets.flatten()[positions]
        total, each = self.decoder.output.loss(flat, wanted)
        plain = each.detach().sum()
        if self.label_smoothing:
            total = total + self.label_smoothing * self._lead(flat, wanted)
        return WordLosses(total, plain)

    def _lead(self, states: Tensor, targets: Tensor) -> Tensor:
        """Return how far the scores of the targets lie above the mean of all; label smoothing adds a fraction of it.

        The smoothed loss is log Z - (1 - e) s[target] - e mean(s), and log Z - s[target] is known.
        """
        output = self.decoder.output
        states = states.float()
        own = (states * output.weight[targets]).sum() + output.bias[targets].sum()
        return own - (states * output.weight.mean(0)).sum() - len(targets) * output.bias.mean()
