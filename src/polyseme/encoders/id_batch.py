"""A batch from ids instead of words: the input of programs that spell or look up their words themselves.

Ids are those of bilm-tf and AllenNLP: 0 is padding. A word is a row of character ids (`Utf8Characters`), or its row of the word
table plus 1. Equal words are computed once, as in `Elmo.prepare`.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from polyseme.base.errors import UsageError
from polyseme.encoders.batch import Batch
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_words import ElmoInputs, WordInputs
from polyseme.text.characters import Utf8Characters


def batch_of_ids(model: Elmo, ids: Tensor) -> Batch:
    """Make the input of a model from ids that include the begin and end tokens of each sentence.

    `ids`: characters (batch, words + 2, max_length), or words (batch, words + 2).
    """
    _check_ids(model, ids)
    ids = ids.to(model.device, torch.int64)
    mask = word_mask(ids)
    lengths = mask.sum(1)
    if not torch.equal(mask, torch.arange(mask.shape[1], device=mask.device) < lengths[:, None]):
        raise UsageError("these ids have padding (zeros) between words; allowed: behind the last word only")
    if len(lengths) and int(lengths.min()) < 2:
        raise UsageError(
            "a sentence of these ids has fewer than two tokens; expected its words between a begin and an end token"
        )
    distinct, numbers = torch.unique(ids[mask], dim=0, return_inverse=True)
    index = torch.zeros(mask.shape, dtype=torch.int64, device=mask.device)
    index[mask] = numbers
    words = max(ids.shape[1] - 2, 0)
    return Batch(
        ElmoInputs(_word_inputs(distinct), index.cpu()),
        torch.arange(words, device=mask.device) < (lengths - 2)[:, None],
        lengths - 2,
    )


def add_sentence_ends(model: Elmo, ids: Tensor) -> Tensor:
    """Put the begin and end tokens around character ids: (batch, words, max_length) -> (batch, words + 2, max_length)."""
    _check_ids(model, ids)
    assert model.speller is not None
    begin, end = torch.from_numpy(model.speller.encode([model.config.begin, model.config.end])[0]).to(ids)
    padded = F.pad(ids, (0, 0, 1, 1))
    padded[:, 0] = begin
    padded[torch.arange(len(ids), device=ids.device), word_mask(ids).sum(1) + 1] = end
    return padded


def word_mask(ids: Tensor) -> Tensor:
    """Return where a word is, (batch, words): any of its ids is not 0."""
    return ids != 0 if ids.ndim == 2 else (ids != 0).any(-1)


def _word_inputs(distinct: Tensor) -> WordInputs:
    """Distinct words as rows of characters, with the lengths of their spellings, or as rows of the word table."""
    if distinct.ndim == 1:
        return WordInputs(None, None, distinct - 1)
    positions = torch.arange(1, distinct.shape[1] + 1, device=distinct.device)
    used = (distinct != Utf8Characters.padding) * positions
    return WordInputs(distinct, used.amax(1).cpu(), None)


def _check_ids(model: Elmo, ids: Tensor) -> None:
    config = model.config
    if ids.is_floating_point() or ids.is_complex() or ids.ndim not in (2, 3):
        raise UsageError(f"expected whole numbers of the shape (batch, words, characters) or (batch, words), got {_kind(ids)}")
    if ids.ndim == 3 and (not isinstance(model.speller, Utf8Characters) or config.words is not None):
        raise UsageError(f"character ids suit only models that read words by their bytes; {model.source} does not: give words")
    if ids.ndim == 2 and (config.words is None or config.characters is not None):
        raise UsageError(f"word ids suit only models of a word table; {model.source} reads characters: give character ids")
    if ids.ndim == 3 and ids.shape[2] != model.speller.max_length:  # type: ignore[union-attr]
        length = model.speller.max_length  # type: ignore[union-attr]
        raise UsageError(f"these ids have {ids.shape[2]} characters per word; {model.source} reads {length}")
    largest = Utf8Characters.symbols - 1 if ids.ndim == 3 else config.words.size  # type: ignore[union-attr]
    if ids.numel() and (int(ids.min()) < 0 or int(ids.max()) > largest):
        raise UsageError(f"these ids run from {int(ids.min())} to {int(ids.max())}; allowed: 0 to {largest}")


def _kind(ids: Tensor) -> str:
    return f"{ids.dtype} of the shape {tuple(ids.shape)}"
