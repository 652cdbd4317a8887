"""More words for a model that is there already: rows for its word table and its output layer, or a whole output layer.

A new word begins as one more name of the unknown word, which is what it was until now: it has the unknown word's row in the
table, so no vector changes, and an even share of its probability, so that all probabilities still sum to one and no other
word's changes. A perplexity of the grown model can thus be compared with those that follow, and nothing in it is random.
Chosen against random rows, whose scores would take probability from every word.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.ulmfit import Ulmfit
from polyseme.nn.output.full import FullSoftmax, TiedSoftmax
from polyseme.text.vocabulary import Vocabulary


def extend_vocabulary(model: Elmo | Ulmfit, words: Sequence[str]) -> None:
    """Put words at the end of a model's vocabulary, with their rows; the model is changed in place."""
    if not words:
        return
    vocabulary = require_vocabulary(model)
    repeated = [word for word in words if word in vocabulary]
    if repeated or len(set(words)) < len(words):
        what = f"{repeated[0]!r} is in the vocabulary already" if repeated else "a word is given twice"
        raise UsageError(f"cannot add {len(words)} words: {what}; give new words, each once")
    if not can_extend(model):
        raise PolysemeError(
            "an adaptive output layer cannot take new words: its clusters are of the words that it has; add none (new_words 0)"
        )
    have, unknown = len(vocabulary), int(vocabulary.ids([str(vocabulary.unknown)])[0])
    table, output = model.table if isinstance(model, Ulmfit) else model.tokens.words, model.output
    if table is not None:
        table.weight = _grown(table.weight[:have], unknown, len(words))
        table.num_embeddings = size = len(table.weight)
        if isinstance(model, Ulmfit):
            model.config = model.config.replace(size=size)
        else:
            assert model.config.words is not None
            model.config = model.config.replace(words=model.config.words.replace(size=size))
    if isinstance(output, FullSoftmax):
        if not isinstance(output, TiedSoftmax):  # whose weight is the table
            output.weight = _grown(output.weight, unknown, len(words))
        output.bias = _grown(output.bias, unknown, len(words))
        with torch.no_grad():
            share = math.log(len(words) + 1)
            output.bias[unknown] -= share
            output.bias[have:] -= share
    marks = {"unknown": vocabulary.unknown, "begin": vocabulary.begin, "end": vocabulary.end}
    model.vocabulary = Vocabulary([*vocabulary.words, *words], **marks)  # type: ignore[arg-type]
    if isinstance(model, Elmo):
        model.refresh()


def add_output_layer(model: Elmo, words: Sequence[str]) -> None:
    """Give a model that has none an output layer, random as for a new model; its words are `words` if it has none either."""
    if model.output is not None:
        raise UsageError("this model has an output layer already")
    config = model.config
    if model.vocabulary is None:
        model.vocabulary = Vocabulary(words, unknown=config.unknown, begin=config.begin, end=config.end)
    model.output = FullSoftmax(len(model.vocabulary), config.output).to(model.device).train(model.training)


def can_extend(model: Elmo | Ulmfit) -> bool:
    """Whether a model's output layer, where it has one, can take new words."""
    return model.output is None or isinstance(model.output, FullSoftmax)


def require_vocabulary(model: Elmo | Ulmfit) -> Vocabulary:
    """A model's vocabulary, which must have the unknown word that stands for all others."""
    vocabulary = model.vocabulary
    if vocabulary is None:
        raise PolysemeError("this model has no vocabulary to add words to: give it an output layer, which has one")
    if not vocabulary.has_unknown:
        raise PolysemeError(
            f"the vocabulary of this model lacks the unknown word {vocabulary.unknown!r}, which stands for all words that it "
            "does not have; a model that reads characters may be loaded without its output layer, and then gets a new one"
        )
    return vocabulary


def _grown(rows: Tensor, like: int, count: int) -> nn.Parameter:
    """A parameter with so many more rows, each a copy of one that is there."""
    with torch.no_grad():
        more = rows[like : like + 1].expand(count, *rows.shape[1:])
        return nn.Parameter(torch.cat([rows, more]), requires_grad=rows.requires_grad)
