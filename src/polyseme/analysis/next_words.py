"""The words that a language model expects after a text, most probable first."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.base.errors import PolysemeError
from polyseme.encoders.base import Encoder
from polyseme.encoders.bidirectional import BidirectionalLanguageModel
from polyseme.encoders.gpt import Gpt
from polyseme.encoders.left_to_right import LeftToRight
from polyseme.encoders.ngram import NgramModel


def predicts_next(encoder: Encoder) -> bool:
    """Whether `next_words` works: for n-grams, NNLM, ULMFiT, GPT and ELMo with output layer, if not backward."""
    if getattr(encoder.config, "backward", False):
        return False
    return encoder.predicts_words and isinstance(encoder, NgramModel | LeftToRight | BidirectionalLanguageModel | Gpt)


def next_words(encoder: Encoder, words: list[str], count: int = 10) -> list[tuple[str, float]]:
    """Return the words that are most probable after some words that begin a sentence, with their probabilities.

    >>> next_words(model, ["They", "sat", "on"], 1)   # doctest: +SKIP
    [('the', 0.41)]
    """
    if isinstance(encoder, Gpt) and predicts_next(encoder):
        return encoder.next_words(words, count)
    if not predicts_next(encoder) or encoder.vocabulary is None:
        raise PolysemeError(
            f"a model of kind {encoder.kind} does not tell the next word: use n-grams, nnlm, a forward ulmfit, gpt or elmo"
        )
    values = _log_probs(encoder, words)
    unknown = getattr(encoder.config, "unknown", None)
    special = [token for token in (encoder.config.begin, unknown) if token is not None and token in encoder.vocabulary]
    values[encoder.vocabulary.ids(special)] = -np.inf
    best = np.lexsort((np.arange(len(values)), -values))[:count]
    return [(encoder.vocabulary[int(row)], float(np.exp(values[row]))) for row in best if np.isfinite(values[row])]


def _log_probs(encoder: Encoder, words: list[str]) -> NDArray[np.float64]:
    """The log-probability of every word of the vocabulary as the next, (vocabulary,)."""
    if isinstance(encoder, NgramModel):
        return encoder.distribution(words)
    with torch.inference_mode():
        if isinstance(encoder, LeftToRight):
            rows = torch.tensor([[encoder.first, *encoder.rows(words).tolist()]], device=encoder.device)
            state = encoder.top_states(rows)[0, -1]
        else:
            assert isinstance(encoder, BidirectionalLanguageModel)
            states, _ = encoder.read([words], start=None)
            state = states[-1, 0, len(words), : encoder.config.output]
        return torch.log_softmax(encoder.output(state[None])[0].float(), dim=0).cpu().double().numpy()  # type: ignore[misc]
