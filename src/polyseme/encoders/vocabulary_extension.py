"""Vocabulary extension: new words for a pre-trained model, or a new output layer.

A new word starts as a copy of the unknown token, which it was until now: its row in the word table is that of the unknown
token, so no vector changes, and it gets an equal part of its probability, so that all probabilities still sum to one and no
other word's changes. Perplexities before and after can be compared, and nothing is random. Chosen against random rows, whose
scores would take probability from every word.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.ulmfit import Ulmfit
from polyseme.nn.output.full import FullSoftmax, TiedSoftmax
from polyseme.text.vocabulary import Vocabulary


def extend_vocabulary(model: Elmo | Ulmfit, words: Sequence[str]) -> None:
    """Append words to a model's vocabulary, with their rows, in place."""
    if not words:
        return
    vocabulary = require_vocabulary(model)
    repeated = [word for word in words if word in vocabulary]
    if repeated or len(set(words)) < len(words):
        what = f"{repeated[0]!r} is in the vocabulary already" if repeated else "a word is given twice"
        raise UsageError(f"cannot add {len(words)} words: {what}; give new words, each once")
    if not can_extend(model):
        raise PolysemeError(f"an adaptive output layer cannot be extended: set {arg('new_words')} to 0")
    have, unknown = len(vocabulary), int(vocabulary.ids([str(vocabulary.unknown)])[0])
    table, output = model.word_table, model.output
    if table is not None:
        model.set_word_rows(_extended(table.weight[:have], unknown, len(words)))
    if isinstance(output, FullSoftmax):
        if not isinstance(output, TiedSoftmax):  # whose weight is the table
            output.weight = _extended(output.weight, unknown, len(words))
        output.bias = _extended(output.bias, unknown, len(words))
        with torch.no_grad():
            part = math.log(len(words) + 1)
            output.bias[unknown] -= part
            output.bias[have:] -= part
    tokens = {"unknown": vocabulary.unknown, "begin": vocabulary.begin, "end": vocabulary.end}
    model.vocabulary = Vocabulary([*vocabulary.words, *words], **tokens)  # type: ignore[arg-type]
    model.refresh()


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
