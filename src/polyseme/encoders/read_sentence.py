"""A sentence that a bidirectional language model has read once, for several questions: its vectors, how probable its words are
from each side, and what else would fit. Reading is most of the work of each, so a page that asks all of them waits once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.encoders.language_model import check_count
from polyseme.encoders.results import Substitute, Substitutes

if TYPE_CHECKING:
    from polyseme.encoders.elmo import Elmo
    from polyseme.text.vocabulary import Vocabulary

_AT_ONCE = 64  # words whose scores of the whole vocabulary are in memory together
_KEPT_BYTES = 1 << 22  # of such scores, which `log_probs` may keep for `substitutes`


@dataclass(frozen=True)
class SideLogProbs:
    """The log-probability of each word of a sentence, (words,), by what is read of it."""

    left: NDArray[np.float64]
    """Given all words before it."""
    right: NDArray[np.float64]
    """Given all words after it."""
    both: NDArray[np.float64]
    """Given all others: the product of both, normalised over the vocabulary; NaN for a word that is not in it."""
    known: NDArray[np.bool_]
    """Whether the vocabulary has the word; otherwise its unknown token was scored."""


class ReadSentence:
    """Words and their states (layers, words + 2, dim), begin and end token included."""

    def __init__(self, model: Elmo, words: list[str], states: Tensor) -> None:
        self._model, self.words, self._states = model, words, states
        self._both: Tensor | None = None
        """The scores of the vocabulary at each position, (words, vocabulary), where they are kept."""

    @property
    def nbytes(self) -> int:
        """Bytes of its states."""
        return self._states.untyped_storage().nbytes()

    def forget_scores(self) -> None:
        """Free what `log_probs` kept."""
        self._both = None

    @property
    def vectors(self) -> NDArray[np.float32]:
        """(layers, words, dim), as `embed` gives them."""
        return self._states[self._model.shown, 1:-1].float().cpu().numpy()

    def log_probs(self, *, keep: bool = False) -> SideLogProbs:
        """How probable each word is, from each side; `keep`: of a short sentence, keep the scores of all other words, too."""
        output, vocabulary = self._model.output_and_vocabulary()
        left, right = self._halves()
        size, words = len(self.words), self._looked_up()
        known = np.array([word in vocabulary for word in words], dtype=bool)
        ids = torch.from_numpy(vocabulary.ids(words)).to(left.device)
        special = torch.from_numpy(vocabulary.ids(self._special(vocabulary))).to(left.device)
        found = np.full((3, size), np.nan)
        with torch.inference_mode():
            for begin in range(0, size, _AT_ONCE):
                end = min(begin + _AT_ONCE, size)
                wanted = ids[begin:end, None]
                # a word is predicted from the state one position before it, in the direction of reading
                sides = output(torch.cat([left[begin:end], right[begin + 2 : end + 2]])).unflatten(0, (2, end - begin))
                both = sides[0] + sides[1]  # (words, vocabulary)
                both[:, special] = -torch.inf
                own = both.gather(1, wanted)[:, 0] - both.logsumexp(1)
                if keep and size <= _AT_ONCE and both.nbytes <= _KEPT_BYTES:
                    self._both = both
                rows = torch.stack([*sides.gather(2, wanted.expand(2, -1, -1))[..., 0], own])
                found[:, begin:end] = rows.double().cpu().numpy()
        found[2, ~known | ~np.isfinite(found[2])] = np.nan  # the tokens that are no words have no probability
        return SideLogProbs(found[0], found[1], found[2], known)

    def substitutes(self, position: int, count: int = 10) -> Substitutes:
        """The most probable words at a position. The word there is not read: only those before it and those after it."""
        check_count(count)
        output, vocabulary = self._model.output_and_vocabulary()
        left, right = self._halves()
        with torch.inference_mode():
            if self._both is not None:
                both = self._both[position]
            else:
                both = output(torch.stack([left[position], right[position + 2]])).sum(0)  # (vocabulary,)
                both[torch.from_numpy(vocabulary.ids(self._special(vocabulary))).to(both.device)] = -torch.inf
            best = torch.log_softmax(both, dim=0).topk(min(count, len(both)))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        found = [Substitute(vocabulary[row], value) for row, value in pairs if value > -np.inf]
        return Substitutes(found, words=self.words, position=position)

    def _halves(self) -> tuple[Tensor, Tensor]:
        return self._model.halves(self._states[-1])

    def _looked_up(self) -> list[str]:
        """The words as the vocabulary has them."""
        table = self._model.config.words
        return [word[: table.max_characters] for word in self.words] if table is not None else self.words

    def _special(self, vocabulary: Vocabulary) -> list[str]:
        """Tokens that are no words."""
        config = self._model.config
        return [token for token in (config.begin, config.end, config.unknown) if token in vocabulary]
