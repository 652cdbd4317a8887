"""Which spans of a document are mentions, and which earlier one does each mean again? End-to-end span ranking.

Lee et al. 2017, the network behind the coreference row of Peters et al. 2018, with the coarse-to-fine search of Lee et al. 2018
and without its higher-order inference. Every span of a sentence up to some length is scored as a mention; the best, so many
to a word, are kept, none of which cross. Each kept span looks for its antecedents among all before it by a product of two
vectors, and the best few are scored by a network. "None of them" scores 0.

A book must fit into memory. So nothing is ever laid out for all spans, nor for all pairs of them:

- A layer over [first; last; head; width] is a sum of four products, three of which are made once for each word. Spans are then
  scored by adding, some words at a time.
- Spans are chosen without gradients; only what was chosen is represented and scored again, with them. What is not chosen
  learns nothing, so right mentions can be chosen first in training.
- Coarse scores of pairs are made in blocks; of each block the best few go on.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from polyseme.base.errors import UsageError
from polyseme.nn.attention import MASKED_SCORE, masked_softmax

_CELLS_CPU, _CELLS_CUDA = 1 << 20, 1 << 26
"""Numbers of one tensor that stands in memory at a time: what a CPU's cache likes, and what keeps a GPU busy."""
_BLOCK = 512, 4096
"""Spans, and antecedents of them, whose coarse scores are made at a time."""
_STEPS = (1, 2, 3, 4, 5, 8, 16, 32, 64)
"""Where a class of distances ends and the next begins, in spans."""
_SPEAKERS = 3  # not known, the same, another


@dataclass(frozen=True)
class DocumentWords:
    """What is known of the words of a document."""

    states: Tensor
    """(words, dim): in their sentences."""
    own: Tensor
    """(words, own): by themselves, of which the head of a span is made."""
    sentences: Tensor
    """(words,): the number of the sentence; no span leaves it."""
    speakers: Tensor
    """(words,): the number of who speaks, 0 where that is not known."""


@dataclass(frozen=True)
class SpanRanking:
    """The spans that were kept, in the order of the text, and what each may mean again."""

    first: Tensor
    """(spans,): first word; on the CPU."""
    last: Tensor
    """(spans,): last word, itself in the span; on the CPU."""
    mention: Tensor
    """(spans,): scores of being a mention."""
    antecedents: Tensor
    """(spans, antecedents): numbers of earlier spans."""
    scores: Tensor
    """(spans, antecedents): that it means the same; `MASKED_SCORE` where there is no such antecedent. None of them has 0."""

    def loss(self, cluster: Tensor) -> Tensor:
        """The summed marginal loss, () from (spans,): the number of each span's cluster, 0 where it is in none.

        Any antecedent of the same cluster is right; where there is none, "none of them" is.
        """
        if not len(cluster):
            return self.scores.sum()
        right = (cluster[self.antecedents] == cluster[:, None]) & (cluster[:, None] > 0) & (self.scores > MASKED_SCORE / 2)
        right = torch.cat([~right.any(1, keepdim=True), right], dim=1)
        scores = torch.cat([self.scores.new_zeros(len(cluster), 1), self.scores], dim=1)
        return (scores.logsumexp(1) - scores.masked_fill(~right, MASKED_SCORE).logsumexp(1)).sum()

    def links(self) -> list[int]:
        """For each span the earlier one that it means again, -1 where there is none."""
        if not self.scores.numel():
            return [-1] * len(self.first)
        best, place = self.scores.max(dim=1)
        chosen = self.antecedents.gather(1, place[:, None]).squeeze(1)
        return chosen.masked_fill(best <= 0, -1).tolist()


@dataclass(frozen=True)
class _Kept:
    """What is computed once for each span that was kept: (spans, ...) each."""

    vectors: Tensor
    mention: Tensor
    speaker: Tensor
    left: Tensor
    right: Tensor
    by_span: Tensor
    by_antecedent: Tensor


@dataclass(frozen=True, kw_only=True)
class SpanRankerConfig:
    """Sizes and limits of a `SpanRanker`."""

    hidden_size: int = 150
    """Units of both layers of its networks."""
    feature_size: int = 20
    """Size of a feature vector (width, distance, speaker)."""
    max_span_width: int = 20
    """Maximum number of words in a span."""
    spans_per_word: float = 0.4
    """Spans that are kept, per word of the document."""
    max_antecedents: int = 50
    """Candidate antecedents of each span."""
    dropout: float = 0.2

    def __post_init__(self) -> None:
        counts = ("hidden_size", "feature_size", "max_span_width", "max_antecedents")
        problems = [f"{name} is {getattr(self, name)}; allowed: 1 or more" for name in counts if getattr(self, name) < 1]
        if not self.spans_per_word > 0:
            problems.append(f"spans_per_word is {self.spans_per_word}; allowed: above 0")
        if problems:
            raise UsageError("; ".join(problems))


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
        """`wanted` (spans, 2), first and last words: spans that are kept besides, so that they can be learned.

        The best of the others are kept all the same: of wanted ones alone, nothing would be learned of what is no mention.
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
        """(words, width): how good a mention begins at each word, by its length; `MASKED_SCORE` where its sentence is over.

        The same as `mention(vectors(...))` without dropout, for every span.
        """
        count, places = len(words.states), torch.arange(self.max_span_width, device=words.states.device)
        inward, *rest = [layer for layer in self.mention if not isinstance(layer, nn.Dropout)]
        assert isinstance(inward, nn.Linear)
        weights = inward.weight.split(self.sizes, dim=1)
        by_first, by_last = words.states @ weights[0].T, words.states @ weights[1].T  # (words, hidden)
        by_head, by_width = words.own @ weights[2].T, self.width.weight @ weights[3].T + inward.bias
        attention = self.head(words.states).squeeze(1)
        within = places[:, None] >= places  # (width, width): a span of this length has this word
        found = [words.states.new_zeros(0, self.max_span_width, dtype=torch.float32)]
        for some in _slices(count, self.max_span_width * max(by_width.shape[1], self.max_span_width), places.device):
            begin = torch.arange(count, device=places.device)[some]
            near = (begin[:, None] + places).clamp(max=count - 1)  # (some, width)
            inside = (begin[:, None] + places < count) & (words.sentences[near] == words.sentences[begin, None])
            heads = masked_softmax(attention[near].unsqueeze(1), within) @ _rows(by_head, near)  # (some, width, hidden)
            score = heads + by_first[begin, None] + _rows(by_last, near) + by_width
            for layer in rest:
                score = layer(score)
            found.append(score.squeeze(2).float().masked_fill(~inside, MASKED_SCORE))
        return torch.cat(found)

    def _raised(self, scores: Tensor, wanted: Tensor) -> Tensor:
        """Scores of candidates with those that are wanted above all others; what is too long stays out."""
        wanted = wanted[wanted[:, 1] - wanted[:, 0] < self.max_span_width].to(scores.device)
        places = wanted[:, 0], wanted[:, 1] - wanted[:, 0]
        return scores.index_put(places, scores[places].masked_fill(scores[places] > MASKED_SCORE / 2, math.inf))

    def vectors(self, words: DocumentWords, first: Tensor, last: Tensor) -> Tensor:
        """(spans, dim): first and last word, what lies between as the network sees its head, and how wide it is."""
        places = torch.arange(self.max_span_width, device=first.device)
        attention = self.head(words.states).squeeze(1)
        heads = [words.own.new_zeros(0, words.own.shape[1])]
        for some in _slices(len(first), self.max_span_width * words.own.shape[1], places.device):
            near = first[some, None] + places  # (some, width)
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
        """Of the first layer over pairs: for the span, its antecedent, the product of both, their distance, their speakers."""
        feature = self.distance.embedding_dim
        parts: Sequence[Tensor] = self.pair[0].weight.split([self.dim] * 3 + [feature] * 2, dim=1)  # type: ignore[operator]
        return parts

    def _pairs(self, kept: _Kept, some: slice, near: Tensor) -> Tensor:
        """(some, antecedents): scores of some spans with their antecedents."""
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
    """Runs of rows of a size, as many numbers together as suit the device."""
    step = max(1, (_CELLS_CUDA if device.type == "cuda" else _CELLS_CPU) // max(size, 1))
    return (slice(begin, begin + step) for begin in range(0, count, step))


def _rows(table: Tensor, numbers: Tensor) -> Tensor:
    """(..., dim): rows of a table by their numbers (...); on a CPU faster than `table[numbers]`."""
    return table.index_select(0, numbers.flatten()).view(*numbers.shape, table.shape[1])


def distance_class(steps: Tensor) -> Tensor:
    """Distances in spans, 0 or more, as classes: 1, 2, 3, 4, 5 to 7, 8 to 15 and so on.

    >>> distance_class(torch.tensor([0, 1, 4, 5, 7, 8, 64, 1000])).tolist()
    [0, 1, 4, 5, 5, 6, 9, 9]
    """
    return torch.bucketize(steps, _bounds(steps.device), right=True)


@functools.cache
def _bounds(device: torch.device) -> Tensor:
    """`_STEPS` on a device, brought there once: each copy would wait for it."""
    return torch.tensor(_STEPS, device=device)


# ---- choosing


def chosen_spans(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The best spans, at most `count`, none of which cross: scores (words, width) -> first and last words, on the CPU.

    The best comes first, then the next best that crosses none of those before it. Given back in the order of the text.

    >>> chosen_spans(torch.tensor([[1.0, 9.0], [2.0, 8.0], [3.0, MASKED_SCORE]]), 3)   # words 0 and 1; they cross words 1 and 2
    (tensor([0, 1, 2]), tensor([1, 1, 2]))
    """
    words, width_limit = scores.shape
    flat = scores.flatten()
    order = flat.argsort(descending=True, stable=True)[: int((flat > MASKED_SCORE / 2).sum())].cpu()
    furthest, nearest = [-1] * words, [words] * words  # of chosen spans: by first word the last, by last word the first one
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
    """For each span the earlier ones with the best coarse scores, at most `count`; and which of these there are.

    (spans, dim) twice, (spans,) and the prior of each class of distances -> (spans, antecedents) twice, best first. The
    coarse score of span i and an earlier one j is left(i) . right(j) + mention(j) + prior of their distance.
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
            score, place = scores.topk(min(count, len(columns)), dim=1)
            best, kept = torch.cat([best, score], dim=1).topk(count, dim=1)
            which = torch.cat([which, columns[place]], dim=1).gather(1, kept)
        found.append(which)
        there.append(best > MASKED_SCORE / 2)
    return torch.cat(found), torch.cat(there)
