"""Vocabulary extension: new words for a pre-trained model, or a new output layer.

A new word starts as a copy of the unknown token, which it was until now: its row in the word table is that of the unknown
token, so no vector changes, and it gets a share of its probability, so that all probabilities still sum to one and no other
word's changes. Nothing is random. Chosen against random rows, whose scores would take probability from every word, and
against equal shares, which leave next to nothing for the words that are still unknown: on other text of the same domain
those are most of the unknown words (791 of 793 on film reviews, where equal shares raised the perplexity of `en` by 9 %).
`unknown_shares` estimates the shares from counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.ulmfit import Ulmfit
from polyseme.nn.output.full import FullSoftmax, OutputLayer, TiedSoftmax
from polyseme.text.vocabulary import Vocabulary


def extend_vocabulary(model: Elmo | Ulmfit, words: Sequence[str], shares: Sequence[float] | None = None) -> None:
    """Append words to a model's vocabulary, with their rows, in place.

    `shares`: the part of the unknown token's probability that each word gets; the rest stays with it. None: equal parts.
    """
    if not words:
        return
    vocabulary = require_vocabulary(model)
    repeated = [word for word in words if word in vocabulary]
    if repeated or len(set(words)) < len(words):
        what = f"{repeated[0]!r} is in the vocabulary already" if repeated else "a word is given twice"
        raise UsageError(f"cannot add {len(words)} words: {what}; give new words, each once")
    if not can_extend(model):
        raise PolysemeError(f"an adaptive output layer cannot be extended: set {arg('new_words')} to 0")
    shares = [1 / (len(words) + 1)] * len(words) if shares is None else shares
    if len(shares) != len(words) or min(shares) <= 0 or math.fsum(shares) >= 1:
        raise UsageError(f"shares are {len(shares)} numbers for {len(words)} words; give a positive one each, below 1 in sum")
    have, unknown = len(vocabulary), int(vocabulary.ids([str(vocabulary.unknown)])[0])
    table, output = model.word_table, model.output
    if table is not None:
        model.set_word_rows(_extended(table.weight[:have], unknown, len(words)))
    if isinstance(output, FullSoftmax):
        if not isinstance(output, TiedSoftmax):  # whose weight is the table
            output.weight = _extended(output.weight, unknown, len(words))
        output.bias = _extended(output.bias, unknown, len(words))
        with torch.no_grad():
            output.bias[have:] += torch.tensor(shares, dtype=torch.float64).log().to(output.bias)
            output.bias[unknown] += math.log1p(-math.fsum(shares))
    tokens = {"unknown": vocabulary.unknown, "begin": vocabulary.begin, "end": vocabulary.end}
    model.vocabulary = Vocabulary([*vocabulary.words, *words], **tokens)  # type: ignore[arg-type]
    model.refresh()


def unknown_shares(counts: Sequence[int], others: int, other_words: int) -> list[float]:
    """Return the share of the unknown token's probability for new words, from their counts in a text (Witten and Bell 1991).

    `others`: occurrences of the words that stay unknown; `other_words`: how many these are. The number of distinct unknown
    words counts as occurrences of words that are not in the text. So rare words leave much to the unknown token.

    >>> unknown_shares([6, 2], others=3, other_words=3)
    [0.375, 0.125]
    """
    total = sum(counts) + others + len(counts) + other_words
    return [count / total for count in counts]


def unknown_log_probs(output: OutputLayer, states: Tensor, unknown: int, have: int, *, numbers: int) -> Tensor:
    """Return the log-probability of the unknown token and the new words together: (n, dim) -> (n,).

    `unknown`: its row; `have`: the words before the extension; `numbers`: scores in memory at a time, at most.
    """
    found = [states.new_zeros(0)]
    for part in states.split(max(1, numbers // output.size)):
        scores = output(part)
        found.append(torch.cat([scores[:, unknown : unknown + 1], scores[:, have:]], dim=1).logsumexp(1))
    return torch.cat(found)


def add_output_layer(model: Elmo, words: Sequence[str]) -> None:
    """Give a model without output layer a new one, randomly initialised; `words` is its vocabulary if it has none."""
    if model.output is not None:
        raise UsageError("this model has an output layer already")
    config = model.config
    if model.vocabulary is None:
        model.vocabulary = Vocabulary(words, unknown=config.unknown, begin=config.begin, end=config.end)
    model.output = FullSoftmax(len(model.vocabulary), config.output).to(model.device).train(model.training)


def can_extend(model: Elmo | Ulmfit) -> bool:
    """Whether a model's output layer can be extended."""
    return model.output is None or isinstance(model.output, FullSoftmax)


def require_vocabulary(model: Elmo | Ulmfit) -> Vocabulary:
    """Return a model's vocabulary, which must have the unknown token."""
    vocabulary = model.vocabulary
    if vocabulary is None:
        raise PolysemeError("this model has no vocabulary to extend: give it an output layer first")
    if not vocabulary.has_unknown:
        raise PolysemeError(
            f"the vocabulary of this model lacks the unknown token {vocabulary.unknown!r}; load a character-based model "
            "without its output layer to train a new one"
        )
    return vocabulary


def _extended(rows: Tensor, like: int, count: int) -> nn.Parameter:
    """Return a parameter with more rows, all copies of one."""
    with torch.no_grad():
        more = rows[like : like + 1].expand(count, *rows.shape[1:])
        return nn.Parameter(torch.cat([rows, more]), requires_grad=rows.requires_grad)
