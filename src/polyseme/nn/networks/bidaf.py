"""BiDAF with self-attention: scores where in a paragraph the answer to a question starts and ends.

Clark and Gardner 2017, "Simple and effective multi-paragraph reading comprehension", the network of the SQuAD row of Peters et
al. 2018, with LSTMs for its GRUs. A question may have several paragraphs. Each is read by itself, and their scores are
comparable because one softmax covers them in training (`shared_log_total`, the paper's shared normalization).

The paper has 88,000 questions. With a few thousand, its attention does not learn which words of the two texts are the same, so
two things are added. Word vectors out of context, normalized, are concatenated to the encoder's states before attention, as in
DrQA (Chen et al. 2017) and FastQA (Weissenborn et al. 2017). And attention starts as the scaled dot product of Transformers
(Vaswani et al. 2017), so that equal words match from the beginning. With 4,000 questions and word2vec vectors, dev F1 after
250 steps is 43 with both and 10 without.

The score of two words is trilinear, w . [a; b; a * b], computed as two matrix-vector products and one matmul: memory grows
with paragraph * question, not with that times the vector size. Self-attention runs in blocks of words, so without gradients it
needs little memory for a long paragraph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from polyseme.base.errors import UsageError
from polyseme.nn.attention import MASKED_SCORE, SelfAttentivePooling, masked_softmax
from polyseme.nn.dropout import VariationalDropout
from polyseme.nn.stacked_bilstm import StackedBiLstm

Pair = tuple[Tensor, Tensor]
"""One tensor for the questions and one for the paragraphs."""
_CELLS = 1 << 24
"""Scores between words in memory at a time."""


@dataclass(frozen=True)
class AnswerScores:
    """Scores of the words of paragraphs as answer boundaries; `MASKED_SCORE` on padding."""

    start: Tensor
    """(paragraphs, words): the answer starts here."""
    end: Tensor
    """(paragraphs, words): the answer ends here, inclusive."""
    none: Tensor | None
    """(paragraphs,): the paragraph has no answer, on the scale of start plus end; None: not computed."""


class Trilinear(nn.Module):
    """Scores of all pairs of words: (rows, a, dim) and (rows, b, dim) -> (rows, a, b), as w . [a; b; a * b].

    The weights of a * b start equal, as in the scaled dot product: random ones would not favour equal words.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        bound = (6 / (3 * dim + 1)) ** 0.5
        self.first, self.second = (nn.Parameter(torch.empty(dim).uniform_(-bound, bound)) for _ in range(2))
        self.both = nn.Parameter(torch.full((dim,), dim**-0.5))

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        alone = (a @ self.first.to(a.dtype)).unsqueeze(2) + (b @ self.second.to(b.dtype)).unsqueeze(1)
        return alone + (a * self.both.to(a.dtype)) @ b.transpose(1, 2)


class Biattention(nn.Module):
    """Paragraphs attend to questions: (rows, words, dim) and (rows, others, dim) -> (rows, words, 4 * dim).

    Each word h becomes [h; c; h * c; p * c]: c is the mean of the question's words, weighted by their scores with h; p is the
    mean of the paragraph's words, weighted by their best score with any word of the question.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.score = Trilinear(dim)

    def forward(self, paragraph: Tensor, question: Tensor, mask: Tensor, question_mask: Tensor) -> Tensor:
        scores = self.score(paragraph, question)  # (rows, words, others)
        attended = masked_softmax(scores, mask.unsqueeze(2) & question_mask.unsqueeze(1)) @ question
        if question.shape[1]:
            best = scores.float().masked_fill(~question_mask.unsqueeze(1), MASKED_SCORE).amax(2)
            best = best.masked_fill(~question_mask.any(1)[:, None], 0.0)  # empty question: equal weights
        else:
            best = scores.new_zeros(mask.shape)
        summary = masked_softmax(best, mask).to(paragraph.dtype).unsqueeze(1) @ paragraph  # (rows, 1, dim)
        return torch.cat([paragraph, attended, paragraph * attended, summary * attended], dim=2)


class SelfAttention(nn.Module):
    """Words attend to all other words of their paragraph: (rows, words, dim) -> (rows, words, 3 * dim).

    Each word h becomes [h; c; h * c]: c is the mean of the other words, weighted by their scores with h.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.score = Trilinear(dim)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        rows, words = mask.shape
        step = max(1, _CELLS // max(rows * words, 1))
        positions = torch.arange(words, device=mask.device)
        attended = []
        for begin in range(0, max(words, 1), step):
            some = slice(begin, begin + step)
            others = mask.unsqueeze(1) & (positions[some, None] != positions)  # (rows, step, words)
            attended.append(masked_softmax(self.score(vectors[:, some], vectors), others & mask[:, some, None]) @ vectors)
        seen = torch.cat(attended, dim=1)
        return torch.cat([vectors, seen, vectors * seen], dim=2)


class Bidaf(nn.Module):
    """Words of questions (batch, words, inputs) and of paragraphs (paragraphs, words, inputs), with masks -> `AnswerScores`.

    `owner` (paragraphs,): the question of each paragraph. Lengths, each on the CPU, save a wait for the GPU. The first `own`
    dimensions of a vector are the word out of context: they are normalized and concatenated to the encoder's output, before
    attention. Vectors `at_output`, each (rows, words, output_inputs), are concatenated there too: the output position of the
    ELMo paper. With `no_answer` each paragraph also gets a no-answer score, as in the paper. Texts may be empty.

    >>> mask = torch.ones(2, 3, dtype=torch.bool)
    >>> vectors = torch.ones(2, 3, 4)
    >>> Bidaf(4, hidden_size=8)((vectors, vectors), (mask, mask), torch.tensor([0, 1])).start.shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        inputs: int,
        *,
        own: int = 0,
        hidden_size: int = 100,
        dropout: float = 0.2,
        output_inputs: int = 0,
        no_answer: bool = False,
    ) -> None:
        super().__init__()
        if not 0 <= own <= inputs:
            raise UsageError(f"own is {own}; allowed: 0 to {inputs} (inputs)")
        self.own, self.output_inputs = own, output_inputs
        self.dropout = VariationalDropout(dropout)
        self.encoder = StackedBiLstm(inputs, hidden_size)
        encoded, dim = self.encoder.dim + own + output_inputs, 2 * hidden_size
        self.biattention = Biattention(encoded)
        self.projection = nn.Sequential(nn.Linear(4 * encoded, dim), nn.ReLU())
        self.modelling = StackedBiLstm(dim, hidden_size)
        self.self_attention = SelfAttention(dim)
        self.self_projection = nn.Sequential(nn.Linear(3 * dim, dim), nn.ReLU())
        self.start_states, self.end_states = StackedBiLstm(dim, hidden_size), StackedBiLstm(2 * dim, hidden_size)
        self.start, self.end = (nn.Linear(dim, 1) for _ in range(2))
        self.none = _NoAnswer(dim, hidden_size) if no_answer else None

    def forward(
        self, vectors: Pair, masks: Pair, owner: Tensor, lengths: Pair | None = None, at_output: Pair | None = None
    ) -> AnswerScores:
        given = 0 if at_output is None else at_output[0].shape[2]
        if given != self.output_inputs:
            raise UsageError(f"the network takes output vectors of size {self.output_inputs}; got {given}")
        counts = lengths or (masks[0].sum(1).cpu(), masks[1].sum(1).cpu())
        encoded = [self.encoder(self.dropout(text), *more) for text, *more in zip(vectors, masks, counts, strict=True)]
        if self.own:
            encoded = [
                torch.cat([x, self._isolated(text).to(x.dtype)], dim=2) for x, text in zip(encoded, vectors, strict=True)
            ]
        if at_output is not None:
            encoded = [torch.cat([x, more.to(x.dtype)], dim=2) for x, more in zip(encoded, at_output, strict=True)]
        question, paragraph = (self._clean(self.dropout(x), mask) for x, mask in zip(encoded, masks, strict=True))
        mask, words = masks[1], counts[1]
        x = self.biattention(paragraph, question.index_select(0, owner), mask, masks[0].index_select(0, owner))
        x = self.projection(x)
        states = self.modelling(self.dropout(x), mask, words)
        x = x + self.self_projection(self.self_attention(self.dropout(states), mask))
        first = self.start_states(self.dropout(x), mask, words)
        second = self.end_states(self.dropout(torch.cat([first, x], dim=2)), mask, words)
        start, end = (
            score.squeeze(2).float().masked_fill(~mask, MASKED_SCORE) for score in (self.start(first), self.end(second))
        )
        none = None if self.none is None else self.none(x, first, second, start, end, mask)
        return AnswerScores(start, end, none)

    def _isolated(self, vectors: Tensor) -> Tensor:
        """Return normalized words out of context: (rows, words, inputs) -> (rows, words, own)."""
        return F.layer_norm(vectors[:, :, : self.own], (self.own,))

    @staticmethod
    def _clean(vectors: Tensor, mask: Tensor) -> Tensor:
        """Set padding to zero: a NaN with weight 0 would still be NaN."""
        return vectors.masked_fill(~mask.unsqueeze(2), 0.0)


class _NoAnswer(nn.Module):
    """The no-answer score of a paragraph, from three means of its words: weighted by start, by end, and by learned weights."""

    def __init__(self, dim: int, hidden_size: int) -> None:
        super().__init__()
        self.pool = SelfAttentivePooling(dim)
        self.score = nn.Sequential(nn.Linear(3 * dim, hidden_size), nn.ReLU(), nn.Linear(hidden_size, 1))

    def forward(self, x: Tensor, first: Tensor, second: Tensor, start: Tensor, end: Tensor, mask: Tensor) -> Tensor:
        """(paragraphs, words, dim) three times, (paragraphs, words) three times -> (paragraphs,)."""
        means = [
            (masked_softmax(scores, mask).to(states.dtype).unsqueeze(1) @ states).squeeze(1)
            for scores, states in ((start, first), (end, second))
        ]
        scores: Tensor = self.score(torch.cat([*means, self.pool(x, mask)], dim=1))
        return scores.squeeze(1).float()


def shared_log_total(scores: Tensor, counts: Sequence[int]) -> Tensor:
    """Return the logsumexp over all paragraphs of each question.

    Scores (paragraphs, words) or (paragraphs,), and the number of paragraphs of each question -> (questions,).

    >>> shared_log_total(torch.zeros(3, 4), [1, 2]).exp().tolist()
    [4.0, 8.0]
    """
    each = torch.logsumexp(scores, dim=1) if scores.dim() == 2 else scores
    if all(count == 1 for count in counts):
        return each
    return torch.stack([torch.logsumexp(some, dim=0) for some in each.split(list(counts))])


def best_spans(start: Tensor, end: Tensor, max_answer_length: int) -> tuple[Tensor, Tensor, Tensor]:
    """Find the best span of each paragraph: scores (paragraphs, words) -> its score, first and last word, (paragraphs,) each.

    Spans have at most `max_answer_length` words. Ties go to the shortest span, then to the first.

    >>> score, first, last = best_spans(torch.tensor([[0.0, 2.0, 1.0]]), torch.tensor([[3.0, 0.0, 2.0]]), 2)
    >>> score.tolist(), first.tolist(), last.tolist()
    ([4.0], [1], [2])
    """
    words = start.shape[1]
    best, first = (start + end).max(dim=1)
    length = torch.zeros_like(first)
    for more in range(1, min(max_answer_length, words)):
        score, position = (start[:, : words - more] + end[:, more:]).max(dim=1)
        better = score > best
        best, first = torch.where(better, score, best), torch.where(better, position, first)
        length = length.masked_fill(better, more)
    return best, first, first + length
