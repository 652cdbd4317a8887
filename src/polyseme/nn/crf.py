"""A linear-chain CRF: scores the tags of a sentence as a sequence, so that a tag can depend on the one before it.

Lafferty et al. 2001; over a network's scores as in Lample et al. 2016. The score of a path is the sum of its words' scores and
of its transitions, with start and end. Transitions can be forbidden (a BIO tag `I-PER` after `O`): in the loss and the
marginals their probability is 0, and `decode` never takes them. Everything is computed in float32 or better and for whole
batches; only words are a loop (on a GPU: `crf_triton`).
"""

from __future__ import annotations

import importlib.util
from typing import Any

import torch
from torch import Tensor, nn

from polyseme.base.errors import UsageError

_CELLS_CPU, _CELLS_CUDA = 1 << 18, 1 << 26  # probabilities of transitions in memory at a time
_FUSED_TAGS = 128  # most tags whose transitions fit the registers of a GPU block
FORBIDDEN = -1e6  # finite, since gradients through -inf are NaN; far below the score of any long sentence


def _forget(crf: nn.Module, keys: object = None) -> None:
    """Set the scores of transitions to zero."""
    for weight in crf.parameters():
        nn.init.zeros_(weight)


class Crf(nn.Module):
    """Trainable transition scores: from tag to tag (tags, tags), from the start (tags,) and to the end (tags,).

    `allowed[i, j]`: tag j may follow tag i; `allowed_start[i]`, `allowed_end[i]`: a sentence may begin or end with tag i; all
    boolean, None allows all. They are not saved. Without `learn` all allowed transitions have the fixed score 0: for `decode`
    only. Masks (batch, words) are true on words and false on padding behind them.

    >>> crf = Crf(2, allowed=torch.tensor([[True, False], [True, True]]))
    >>> crf.decode(torch.tensor([[[5.0, 0.0], [0.0, 4.0]]]), torch.ones(1, 2, dtype=torch.bool))   # never 1 after 0
    [[0, 0]]
    """

    allowed: Tensor
    allowed_start: Tensor
    allowed_end: Tensor

    def __init__(
        self,
        tags: int,
        *,
        allowed: Tensor | None = None,
        allowed_start: Tensor | None = None,
        allowed_end: Tensor | None = None,
        learn: bool = True,
    ) -> None:
        super().__init__()
        self.transitions = nn.Parameter(torch.empty(tags, tags).uniform_(-0.1, 0.1))
        self.start = nn.Parameter(torch.empty(tags).uniform_(-0.1, 0.1))
        self.end = nn.Parameter(torch.empty(tags).uniform_(-0.1, 0.1))
        if not learn:
            _forget(self.requires_grad_(False))
            self.register_load_state_dict_post_hook(_forget)  # a resumed run may have learned some before
        given = {"allowed": allowed, "allowed_start": allowed_start, "allowed_end": allowed_end}
        for name, constraint in given.items():
            shape = (tags, tags) if name == "allowed" else (tags,)
            if constraint is not None and (constraint.shape != shape or constraint.dtype != torch.bool):
                raise UsageError(f"{name} is {constraint.dtype} of shape {tuple(constraint.shape)}; expected bool of {shape}")
            constraint = torch.ones(shape, dtype=torch.bool) if constraint is None else constraint.clone()
            self.register_buffer(name, constraint, persistent=False)

    def loss(self, scores: Tensor, targets: Tensor, mask: Tensor) -> Tensor:
        """Scores (batch, words, tags), gold tags (batch, words) -> negative log-likelihood of each sentence, (batch,).

        An empty sentence gives 0; a forbidden gold path about a million per forbidden transition.
        """
        with torch.autocast(scores.device.type, enabled=False):
            scores = _clean(scores, mask)
            if mask.shape[1] == 0:
                return scores.sum((1, 2))
            transitions, start, end = self._moves(scores.dtype, FORBIDDEN)
            total: Tensor = _LogTotal.apply(scores, mask, transitions, start, end)
            return (total - _path(scores, targets, mask, transitions, start, end)).masked_fill(~mask[:, 0], 0.0)

    @torch.no_grad()
    def decode(self, scores: Tensor, mask: Tensor) -> list[list[int]]:
        """Return the best allowed path of each sentence (Viterbi): scores (batch, words, tags) -> tags of each sentence."""
        if mask.shape[1] == 0:
            return [[] for _ in range(len(scores))]
        with torch.autocast(scores.device.type, enabled=False):
            scores = _clean(scores, mask)
            transitions, start, end = self._moves(scores.dtype, -torch.inf)
            best = start + scores[:, 0]  # (batch, tags): score of the best path that ends there
            same = torch.arange(len(start), device=scores.device).expand(len(scores), -1)
            before = []  # for each word but the first (batch, tags): the previous tag on the best path
            for word in range(1, scores.shape[1]):
                highest, origin = (best.unsqueeze(2) + transitions).max(dim=1)
                inside = mask[:, word, None]
                best = torch.where(inside, highest + scores[:, word], best)
                before.append(torch.where(inside, origin, same))  # padding repeats the last tag
            highest, last = (best + end).max(dim=1, keepdim=True)
        path = [last]
        for origin in reversed(before):
            path.append(origin.gather(1, path[-1]))
        stuck = torch.isneginf(highest) & mask[:, :1]
        rows = torch.cat([mask.sum(1, keepdim=True), stuck.long(), *reversed(path)], dim=1).tolist()  # one copy to the host
        for length, no_path, *_ in rows:
            if no_path:
                raise UsageError(f"the constraints allow no path of {length} words: allow more transitions, starts or ends")
        return [tags[:length] for length, _, *tags in rows]

    def marginals(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Return the probability of each tag at each word: (batch, words, tags), zero on padding."""
        with torch.autocast(scores.device.type, enabled=False):
            scores = _clean(scores, mask)
            if mask.shape[1] == 0:
                return scores
            transitions, start, end = self._moves(scores.dtype, FORBIDDEN)
            forward, backward = _sums(scores, mask, transitions, start, end)
            return torch.softmax(forward + backward - scores, dim=2).masked_fill(~mask.unsqueeze(2), 0.0)

    def _moves(self, kind: torch.dtype, forbidden: float) -> tuple[Tensor, Tensor, Tensor]:
        """Return the scores of transitions, starts and ends, `forbidden` where not allowed."""
        transitions = self.transitions.to(kind).masked_fill(~self.allowed, forbidden)
        start = self.start.to(kind).masked_fill(~self.allowed_start, forbidden)
        return transitions, start, self.end.to(kind).masked_fill(~self.allowed_end, forbidden)


def _clean(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the scores in float32 or better, zero on padding."""
    kind = torch.promote_types(scores.dtype, torch.float32)
    return scores.to(kind).masked_fill(~mask.unsqueeze(2), 0.0)


def _sums(scores: Tensor, mask: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
    """Forward and backward sums: for each word and tag the logsumexp over all paths to it and from it, (batch, words, tags).

    Both include the word's own score. They stay constant on padding.
    """
    if fused_fits(scores, transitions, start, end):
        from polyseme.nn.crf_triton import sums

        return sums(scores, mask, transitions, start, end)
    return plain_sums(scores, mask, transitions, start, end)


def fused_fits(scores: Tensor, *transitions: Tensor) -> bool:
    """Whether the kernel applies: on CUDA, in float32, with few enough tags and without gradients."""
    learned = torch.is_grad_enabled() and any(each.requires_grad for each in (scores, *transitions))
    fits = scores.dtype == torch.float32 and scores.shape[2] <= _FUSED_TAGS and not learned
    return scores.is_cuda and fits and importlib.util.find_spec("triton") is not None


def plain_sums(scores: Tensor, mask: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
    """`_sums` in plain PyTorch.

    Both directions share their steps: the cost of a step is mostly the overhead of its operations.
    """
    here = torch.stack([scores, scores.flip(1)]).unbind(2)  # at each step (2, batch, tags)
    inside = torch.stack([mask[:, 1:], mask.flip(1)[:, :-1]]).unsqueeze(3).unbind(2)  # whether there is a transition
    between = torch.stack([transitions, transitions.T]).unsqueeze(1)  # (2, 1, tags, tags)
    found = [here[0] + torch.stack([start, end]).unsqueeze(1)]
    for moved, own in zip(inside, here[1:], strict=True):
        found.append(torch.where(moved, _log_sum(found[-1].unsqueeze(3) + between), found[-1]) + own)
    forward, backward = torch.stack(found, dim=2)
    return forward, backward.flip(1)


def _log_sum(scores: Tensor) -> Tensor:
    """logsumexp over dimension 2, for finite numbers only: this saves a third of the GPU kernels."""
    top = scores.detach().amax(2, keepdim=True)
    return (scores - top).exp().sum(2).log() + top.squeeze(2)


class _LogTotal(torch.autograd.Function):
    """The logsumexp over all paths, (batch,).

    Its gradient is the probability of each tag and transition, computed for all words at once; autograd would need a dozen
    small operations per word.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> Tensor:
        top = scores.amax(2, keepdim=True)  # small numbers have small rounding errors
        scores = scores - top
        forward, backward = _sums(scores, mask, transitions, start, end)
        ctx.save_for_backward(scores, mask, transitions, end, forward, backward)
        return torch.logsumexp(forward[:, -1] + end, dim=1) + top.sum((1, 2))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        scores, mask, transitions, end, forward, backward = ctx.saved_tensors
        weights = grads[0].unsqueeze(1) * mask  # (batch, words)
        tags = torch.softmax(forward + backward - scores, dim=2) * weights.unsqueeze(2)
        last = torch.softmax(forward[:, -1] + end, dim=1)
        grad_moves = torch.zeros_like(transitions)
        step = max(1, (_CELLS_CUDA if scores.is_cuda else _CELLS_CPU) // max(len(scores) * transitions.numel(), 1))
        parts = (part.split(step, dim=1) for part in (forward[:, :-1], backward[:, 1:], weights[:, 1:]))
        for left, right, some in zip(*parts, strict=True):
            pairs = left.unsqueeze(3) + transitions + right.unsqueeze(2)  # (batch, some words, tags, tags)
            probs = torch.softmax(pairs.flatten(2), dim=2).flatten(0, 1)
            grad_moves += (probs.T @ some.flatten()).view_as(transitions)
        return tags, None, grad_moves, tags[:, 0].sum(0), last.T @ weights[:, 0]


def _path(scores: Tensor, targets: Tensor, mask: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Return the score of the given path, (batch,)."""
    targets = targets.masked_fill(~mask, 0)
    words = scores.gather(2, targets.unsqueeze(2)).squeeze(2).sum(1)  # scores are zero on padding
    between = transitions[targets[:, :-1], targets[:, 1:]].masked_fill(~mask[:, 1:], 0.0).sum(1)
    last = targets.gather(1, (mask.sum(1, keepdim=True) - 1).clamp(min=0)).squeeze(1)
    return start[targets[:, 0]] + words + between + end[last]
