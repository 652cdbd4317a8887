"""End-to-end span ranking for coreference: which spans are mentions, and which earlier mention does each refer to?

Lee et al. 2017, the network of the coreference row of Peters et al. 2018, with the coarse-to-fine search of Lee et al. 2018
and without its higher-order inference. Every span of a sentence up to a maximum width is scored as a mention. The best ones
are kept, a number per word, and none of them cross. Each kept span finds candidate antecedents among all earlier ones by a
bilinear score, and a network scores the best of them. "No antecedent" has score 0.

A book must fit into memory, so nothing is computed for all spans or all pairs at once:

- A layer over [first; last; head; width] is a sum of four matmuls, three of which run once per word. Spans are then scored by
  additions, for some words at a time.
- Spans are chosen without gradients; only the chosen ones are represented and scored again, with gradients. The others learn
  nothing, so gold mentions can be chosen first in training.
- Coarse scores of pairs are computed in blocks, and the best of each block are kept.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from polyseme.base.config import Config, setting
from polyseme.nn.attention import MASKED_SCORE, masked_softmax

_CELLS_CPU, _CELLS_CUDA = 1 << 20, 1 << 26
"""Elements of one tensor in memory at a time: what fits a CPU cache, and what fills a GPU."""
_BLOCK = 512, 4096
"""Spans and antecedents whose coarse scores are computed at a time."""
_STEPS = (1, 2, 3, 4, 5, 8, 16, 32, 64)
"""Boundaries of the distance buckets, in spans."""
_SPEAKERS = 3  # unknown, same, different


@dataclass(frozen=True)
class DocumentWords:
    """The words of a document."""

    states: Tensor
    """(words, dim): in context."""
    own: Tensor
    """(words, own): out of context; the head of a span is a mean of these."""
    sentences: Tensor
    """(words,): number of the sentence; spans do not cross sentences."""
    speakers: Tensor
    """(words,): number of the speaker; 0: unknown."""


@dataclass(frozen=True)
class SpanRanking:
    """The kept spans in the order of the text, and their candidate antecedents."""

    first: Tensor
    """(spans,): first word; on the CPU."""
    last: Tensor
    """(spans,): last word, inclusive; on the CPU."""
    mention: Tensor
    """(spans,): mention scores."""
    antecedents: Tensor
    """(spans, antecedents): indexes of earlier spans."""
    scores: Tensor
    """(spans, antecedents): coreference scores, `MASKED_SCORE` where there is no antecedent; "no antecedent" has 0."""

    def loss(self, cluster: Tensor) -> Tensor:
        """Return the summed marginal loss, (), from the cluster of each span (spans,), 0 for none.

        Every antecedent of the same cluster is correct; if there is none, "no antecedent" is.
        """
        if not len(cluster):
            return self.scores.sum()
        right = (cluster[self.antecedents] == cluster[:, None]) & (cluster[:, None] > 0) & (self.scores > MASKED_SCORE / 2)
        right = torch.cat([~right.any(1, keepdim=True), right], dim=1)
        scores = torch.cat([self.scores.new_zeros(len(cluster), 1), self.scores], dim=1)
        return (scores.logsumexp(1) - scores.masked_fill(~right, MASKED_SCORE).logsumexp(1)).sum()

    def links(self) -> list[int]:
        """Return for each span its best antecedent, -1 for none."""
        if not self.scores.numel():
            return [-1] * len(self.first)
        best, position = self.scores.max(dim=1)
        chosen = self.antecedents.gather(1, position[:, None]).squeeze(1)
        return chosen.masked_fill(best <= 0, -1).tolist()


@dataclass(frozen=True)
class _Kept:
    """What is computed once for each kept span: (spans, ...) each."""

    vectors: Tensor
    mention: Tensor
    speaker: Tensor
    left: Tensor
    right: Tensor
    by_span: Tensor
    by_antecedent: Tensor


@dataclass(frozen=True, kw_only=True)
class SpanRankerConfig(Config):
    """Sizes and limits of a `SpanRanker`."""

    hidden_size: int = setting(150, "Units of both layers of its networks.", min=1)
    feature_size: int = setting(20, "Size of a feature vector (width, distance, speaker).", min=1)
    max_span_width: int = setting(20, "Maximum number of words in a span.", min=1)
    spans_per_word: float = setting(0.4, "Spans that are kept, per word of the document.", above=0)
    max_antecedents: int = setting(50, "Candidate antecedents of each span.", min=1)
    dropout: float = setting(0.2, "Dropout probability.", min=0, below=1)


class SpanRanker(nn.Module):
    """Keep the best spans of a document's words, and rank the antecedents of each.

    `dim`: size of a word in context; `own`: size of a word vector out of context.

    >>> words = DocumentWords(torch.ones(5, 8), torch.ones(5, 4), torch.tensor([0, 0, 0, 1, 1]), torch.zeros(5).long())
    >>> SpanRanker(8, 4, SpanRankerConfig(hidden_size=6, max_span_width=2, spans_per_word=0.8))(words).scores.shape
    torch.Size([4, 3])
    """

    def __init__(self, dim: int, own: int, config: SpanRankerConfig) -> None:
        super().__init__()
        self.max_span_width, self.spans_per_word = config.max_span_width, config.spans_per_word
        self.max_antecedents = config.max_antecedents
        feature, hidden, dropout = config.feature_size, config.hidden_size, config.dropout
        self.sizes = [dim, dim, own, feature]  # of a span's vector: first word, last word, head, width
        self.dim = sum(self.sizes)
        self.head = nn.Linear(dim, 1, bias=False)  # the softmax would take a bias out again
        self.width, self.distance = nn.Embedding(config.max_span_width, feature), nn.Embedding(len(_STEPS) + 1, feature)
        self.speaker = nn.Embedding(_SPEAKERS, feature)
        self.mention = _network(self.dim, hidden, dropout)
        self.pair = _network(3 * self.dim + 2 * feature, hidden, dropout)
        self.left, self.right = (nn.Linear(self.dim, hidden, bias=False) for _ in range(2))
        self.prior = nn.Parameter(torch.zeros(len(_STEPS) + 1))  # of each class of distances

    def forward(self, words: DocumentWords, wanted: Tensor | None = None) -> SpanRanking:
        """`wanted` (spans, 2), first and last words: spans to keep in addition, for training.

        The best of the others are kept too: they are the negative examples.
        """
        scores, room = self.candidates(words), math.ceil(self.spans_per_word * len(words.states))
        if wanted is not None:
            scores, room = self._raised(scores, wanted), room + len(wanted)
        first, last = chosen_spans(scores, room)
        begin = first.to(scores.device)
        kept = self._kept(self.vectors(words, begin, last.to(scores.device)), words.speakers[begin])
        near, there = best_antecedents(kept.left, kept.right, kept.mention, self.prior, self.max_antecedents)
        found = [kept.mention.new_zeros(0, near.shape[1])]
        found += [self._pairs(kept, some, near[some]) for some in _slices(len(near), near.shape[1] * self.dim, near.device)]
        return SpanRanking(first, last, kept.mention, near, torch.cat(found).masked_fill(~there, MASKED_SCORE))

    # ---- spans

    @torch.no_grad()
    def candidates(self, words: DocumentWords) -> Tensor:
        """Return mention scores (words, width) by first word and width; `MASKED_SCORE` beyond the sentence.

        Equals `mention(vectors(...))` without dropout, for every span.
        """
        count, positions = len(words.states), torch.arange(self.max_span_width, device=words.states.device)
        inward, *rest = [layer for layer in self.mention if not isinstance(layer, nn.Dropout)]
        assert isinstance(inward, nn.Linear)
        weights = inward.weight.split(self.sizes, dim=1)
        by_first, by_last = words.states @ weights[0].T, words.states @ weights[1].T  # (words, hidden)
        by_head, by_width = words.own @ weights[2].T, self.width.weight @ weights[3].T + inward.bias
        attention = self.head(words.states).squeeze(1)
        within = positions[:, None] >= positions  # (width, width): a span of this width includes this word
        found = [words.states.new_zeros(0, self.max_span_width, dtype=torch.float32)]
        for some in _slices(count, self.max_span_width * max(by_width.shape[1], self.max_span_width), positions.device):
            begin = torch.arange(count, device=positions.device)[some]
            near = (begin[:, None] + positions).clamp(max=count - 1)  # (some, width)
            inside = (begin[:, None] + positions < count) & (words.sentences[near] == words.sentences[begin, None])
            heads = masked_softmax(attention[near].unsqueeze(1), within) @ _rows(by_head, near)  # (some, width, hidden)
            score = heads + by_first[begin, None] + _rows(by_last, near) + by_width
            for layer in rest:
                score = layer(score)
            found.append(score.squeeze(2).float().masked_fill(~inside, MASKED_SCORE))
        return torch.cat(found)

    def _raised(self, scores: Tensor, wanted: Tensor) -> Tensor:
        """Return the scores with the wanted spans above all others; spans that are too wide are left out."""
        wanted = wanted[wanted[:, 1] - wanted[:, 0] < self.max_span_width].to(scores.device)
        positions = wanted[:, 0], wanted[:, 1] - wanted[:, 0]
        return scores.index_put(positions, scores[positions].masked_fill(scores[positions] > MASKED_SCORE / 2, math.inf))

    def vectors(self, words: DocumentWords, first: Tensor, last: Tensor) -> Tensor:
        """Return span vectors (spans, dim): first word, last word, attention-weighted head, width."""
        positions = torch.arange(self.max_span_width, device=first.device)
        attention = self.head(words.states).squeeze(1)
        heads = [words.own.new_zeros(0, words.own.shape[1])]
        for some in _slices(len(first), self.max_span_width * words.own.shape[1], positions.device):
            near = first[some, None] + positions  # (some, width)
            inside = near <= last[some, None]
            near = torch.minimum(near, last[some, None])
            heads.append((masked_softmax(attention[near], inside).unsqueeze(1) @ _rows(words.own, near)).squeeze(1))
        parts = [words.states[first], words.states[last], torch.cat(heads), self.width(last - first)]
        return torch.cat([part.float() for part in parts], dim=1)

    # ---- pairs

    def _kept(self, vectors: Tensor, speaker: Tensor) -> _Kept:
        by_span, by_antecedent = (vectors @ part.T for part in self._pair_weights()[:2])
        mention = self.mention(vectors).squeeze(1).float()
        return _Kept(vectors, mention, speaker, self.left(vectors), self.right(vectors), by_span, by_antecedent)

    def _pair_weights(self) -> Sequence[Tensor]:
        """Split the first layer over pairs: for the span, the antecedent, their product, their distance, their speakers."""
        feature = self.distance.embedding_dim
        parts: Sequence[Tensor] = self.pair[0].weight.split([self.dim] * 3 + [feature] * 2, dim=1)  # type: ignore[operator]
        return parts

    def _pairs(self, kept: _Kept, some: slice, near: Tensor) -> Tensor:
        """Return the scores of some spans with their antecedents: (some, antecedents)."""
        inward, *rest = self.pair
        assert isinstance(inward, nn.Linear)
        _, _, product, distance, speakers = self._pair_weights()
        classes = distance_class(torch.arange(len(kept.mention), device=near.device)[some, None] - near)
        who, whom = kept.speaker[some, None], kept.speaker[near]
        kinds = torch.where((who == 0) | (whom == 0), 0, torch.where(who == whom, 1, 2))
        score = (kept.vectors[some].unsqueeze(1) * _rows(kept.vectors, near)) @ product.T  # (some, antecedents, hidden)
        score = score + (kept.by_span[some] + inward.bias).unsqueeze(1) + _rows(kept.by_antecedent, near)
        score = score + _rows(self.distance.weight @ distance.T, classes) + _rows(self.speaker.weight @ speakers.T, kinds)
        for layer in rest:
            score = layer(score)
        coarse = (kept.left[some].unsqueeze(1) @ _rows(kept.right, near).transpose(1, 2)).squeeze(1).float() + self.prior[
            classes
        ]
        return score.squeeze(2).float() + coarse + kept.mention[some, None] + kept.mention[near]


def _network(inputs: int, hidden: int, dropout: float) -> nn.Sequential:
    """(..., inputs) -> (..., 1)."""
    parts = [nn.Linear(inputs, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, hidden), nn.ReLU()]
    return nn.Sequential(*parts, nn.Dropout(dropout), nn.Linear(hidden, 1))


def _slices(count: int, size: int, device: torch.device) -> Iterator[slice]:
    """Yield slices of rows of a given size, as many at a time as suit the device."""
    step = max(1, (_CELLS_CUDA if device.type == "cuda" else _CELLS_CPU) // max(size, 1))
    return (slice(begin, begin + step) for begin in range(0, count, step))


def _rows(table: Tensor, numbers: Tensor) -> Tensor:
    """Return table[numbers]: rows (..., dim) for indexes (...); faster on a CPU."""
    return table.index_select(0, numbers.flatten()).view(*numbers.shape, table.shape[1])


def distance_class(steps: Tensor) -> Tensor:
    """Return the buckets of distances in spans: 1, 2, 3, 4, 5 to 7, 8 to 15 and so on.

    >>> distance_class(torch.tensor([0, 1, 4, 5, 7, 8, 64, 1000])).tolist()
    [0, 1, 4, 5, 5, 6, 9, 9]
    """
    return torch.bucketize(steps, _bounds(steps.device), right=True)


@functools.cache
def _bounds(device: torch.device) -> Tensor:
    """`_STEPS` on a device, copied once: each copy waits for the GPU."""
    return torch.tensor(_STEPS, device=device)


# ---- choosing


def chosen_spans(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Choose the best spans, at most `count`, that do not cross: scores (words, width) -> first and last words, on the CPU.

    Greedy: the best first, then the next best that crosses none of them. Returned in the order of the text.

    >>> chosen_spans(torch.tensor([[1.0, 9.0], [2.0, 8.0], [3.0, MASKED_SCORE]]), 3)   # words 0 and 1; they cross words 1 and 2
    (tensor([0, 1, 2]), tensor([1, 1, 2]))
    """
    words, width_limit = scores.shape
    flat = scores.flatten()
    order = flat.argsort(descending=True, stable=True)[: int((flat > MASKED_SCORE / 2).sum())].cpu()
    furthest, nearest = [-1] * words, [words] * words  # of chosen spans: last word by first word, and first word by last word
    found: list[tuple[int, int]] = []
    for position in (position for some in order.split(1 << 16) for position in some.tolist()):
        if len(found) == count:
            break
        first, width = divmod(position, width_limit)
        last = first + width
        if width and (max(furthest[first + 1 : last + 1]) > last or min(nearest[first:last]) < first):
            continue
        furthest[first], nearest[last] = max(furthest[first], last), min(nearest[last], first)
        found.append((first, last))
    spans = torch.tensor(sorted(found), dtype=torch.int64).reshape(-1, 2)
    return spans[:, 0], spans[:, 1]


@torch.no_grad()
def best_antecedents(left: Tensor, right: Tensor, mention: Tensor, prior: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return for each span the earlier ones with the best coarse scores, at most `count`, and which of them exist.

    (spans, dim) twice, (spans,) and the prior of each distance bucket -> (spans, antecedents) twice, best first. The coarse
    score of span i and an earlier span j is left(i) . right(j) + mention(j) + prior of their distance.
    """
    spans = len(left)
    count = min(count, max(spans - 1, 0))
    numbers = torch.arange(spans, device=left.device)
    by_distance = prior[distance_class(numbers)]
    found, there = [numbers.new_zeros(0, count)], [numbers.new_zeros(0, count, dtype=torch.bool)]
    for begin in range(0, spans, _BLOCK[0]):
        rows = numbers[begin : begin + _BLOCK[0]]
        best, which = left.new_full((len(rows), count), MASKED_SCORE, dtype=torch.float32), numbers.new_zeros(len(rows), count)
        for columns in numbers[: begin + len(rows) - 1].split(_BLOCK[1]):
            steps = rows[:, None] - columns
            scores = (left[rows] @ right[columns].T).float() + mention[columns] + by_distance[steps.clamp(min=0)]
            scores = scores.masked_fill(steps <= 0, MASKED_SCORE)
            score, position = scores.topk(min(count, len(columns)), dim=1)
            best, kept = torch.cat([best, score], dim=1).topk(count, dim=1)
            which = torch.cat([which, columns[position]], dim=1).gather(1, kept)
        found.append(which)
        there.append(best > MASKED_SCORE / 2)
    return torch.cat(found), torch.cat(there)
