"""What old calls are given: sentences as lists of words, or ids of words and characters. Anything else is an error.

A string in place of a list of words is a list of characters, as it was in all of these libraries.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from polyseme.base.errors import UsageError

_log = logging.getLogger(__name__)


def word_lists(batch: Any) -> list[list[str]]:
    """Return the sentences of a batch as lists of words.

    >>> word_lists([("the", "bank"), "今天"])
    [['the', 'bank'], ['今', '天']]
    """
    if not isinstance(batch, Iterable):
        raise UsageError(f"got {batch!r}; expected a list of sentences, each a list of words, such as [['the', 'bank']]")
    if isinstance(batch, str):
        _log.warning("%.40r is one string, so that each of its characters is a sentence: give a list of lists of words", batch)
    return [_words(sentence, number) for number, sentence in enumerate(batch)]


def _words(sentence: Any, number: int) -> list[str]:
    words = list(sentence) if isinstance(sentence, Iterable) else [sentence]
    if any(not isinstance(word, str) for word in words):
        raise UsageError(f"sentence {number} is {sentence!r}; expected a list of words, such as ['the', 'bank']")
    return words


def id_tensor(ids: Any) -> Tensor:
    """Return ids in any form, as a batcher gives them, as a tensor."""
    try:
        return torch.as_tensor(ids)
    except (TypeError, ValueError, RuntimeError) as error:
        what = "expected ids, as batch_to_ids or the batch_sentences of a batcher give them"
        raise UsageError(f"got {ids!r:.60}; {what}") from error
