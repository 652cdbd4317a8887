"""The language-model API of encoders: log-probabilities, scores, perplexity, the chain rule, and words for a position.

Every encoder has these methods; one that predicts no words raises an error that says which models do. Probabilities are over
the full vocabulary, never a sample. Words outside the vocabulary count as its unknown token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from polyseme.base.display import short
from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.encoders.batch import Sentence, whole_number
from polyseme.encoders.chain_rule import ChainRule, chain_rule
from polyseme.encoders.results import LogProbs, MaskFillings, Substitutes, WordLogProbs
from polyseme.metrics.perplexity import Perplexity, PerplexityMeter
from polyseme.text.script import ScriptProfile

LANGUAGE_MODELS = "elmo, taglm, ngram, nnlm, ulmfit or gpt"
_CHUNK = 256  # sentences whose log-probabilities are in memory at a time
_SHOWN_WORDS = 30  # in a message


class LanguageModelApi:
    """A language model implements `log_probs` and gets the rest."""

    kind: ClassVar[str]
    source: str | None
    config: Any

    @property
    def boundary_tokens(self) -> tuple[str, str]:
        """The tokens before and after a sentence, as `chain_rule` shows them."""
        return self.config.begin, self.config.end

    def log_probs(self, sentences: Sequence[Sentence], *, start: str | None = None) -> LogProbs:
        """Return the natural-log probability of each word of each sentence, and of the sentence boundary.

        `start`: the start state, for models that have a choice (`start_states`).
        """
        raise self._lacks("no language model", f"give a model of kind {LANGUAGE_MODELS}")

    def score(self, sentences: Sequence[Sentence], *, start: str | None = None) -> np.ndarray:
        """Return the log-probability of each sentence, the mean of the directions: (sentences,)."""
        return np.array([each.score for each in self.log_probs(sentences, start=start)])

    def perplexity(
        self, sentences: Iterable[Sentence], *, start: str | None = None, progress: Callable[[int], None] | None = None
    ) -> Perplexity:
        """Return the perplexity over all sentences. Sentence boundaries are predicted, too.

        The sentences may be a stream. `progress` is called with the number of sentences that are done.
        """
        if isinstance(sentences, str):
            raise UsageError("expected a list of sentences, got one string: put it into a list")
        self.log_probs([], start=start)  # what the model lacks is reported before any text is read
        meter, waiting = PerplexityMeter(), iter(sentences)
        while chunk := list(islice(waiting, _CHUNK)):
            for each in self.log_probs(chunk, start=start):
                meter.add(each.forward, each.backward, unknown=int((~each.known).sum()))
            if progress is not None:
                progress(len(chunk))
        result = meter.result()
        if result is None:
            raise UsageError("perplexity needs at least one sentence; got none")
        return result

    def chain_rule(self, sentence: Sentence | WordLogProbs, *, start: str | None = None) -> ChainRule:
        """Return the factors of a sentence's probability, one for each word and boundary, with the product so far.

        Takes a sentence, or what `log_probs` returned for one.
        """
        found = sentence if isinstance(sentence, WordLogProbs) else self.log_probs([sentence], start=start)[0]
        begin, end = self.boundary_tokens
        return chain_rule(found, begin=begin, end=end)

    def substitutes(
        self,
        sentence: Sentence,
        position: int | None = None,
        *,
        word: str | None = None,
        count: int = 10,
        start: str | None = None,
    ) -> Substitutes:
        """Return the most probable words for the position of `word`, or for a position counted from 0."""
        raise self._lacks("no substitutes", "give an ELMo with its output layer; for a BERT call fill")

    def fill(self, text: Sentence, position: int | None = None, *, word: str | None = None, count: int = 10) -> MaskFillings:
        """Return the most probable subwords for each [MASK] of a text, or for a word that is masked."""
        raise self._lacks("no masked-word prediction", "give a BERT or the like; for an ELMo call substitutes")

    def _lacks(self, what: str, advice: str) -> PolysemeError:
        return PolysemeError(f"{self.source or 'this model'} is of kind {self.kind}, which has {what}: {advice}")


def check_start(kind: str, start: str | None, allowed: Sequence[str] = ()) -> None:
    """Raise an error where a model lacks a start state."""
    if start is None or start in allowed:
        return
    if not allowed:
        raise UsageError(f"{arg('start')} is {start!r}, but models of kind {kind} have no start states: leave it out")
    raise UsageError(f"{arg('start')} is {start!r}; allowed: {', '.join(allowed)}")


def check_count(count: int) -> None:
    """Raise an error where a number of results is below 1."""
    if count < 1:
        raise UsageError(f"{arg('count')} is {count}; allowed: 1 or more")


def find_position(sentence: Sentence, words: Sequence[str], word: str | None, position: int | None) -> int:
    """Return the position, from 0, that `word` or `position` names among the words of a sentence.

    >>> find_position("the bank", ["the", "bank"], "bank", None)
    1
    """
    if not words:
        raise UsageError("the sentence has no words: give one that has the word to look at")
    if (word is None) == (position is None):
        raise UsageError(f"give {arg('word')} or {arg('position')}; the words are {_numbered(words)}")
    if position is not None:
        number = whole_number(position)
        if number is None or not 0 <= number < len(words):
            raise UsageError(f"{arg('position')} is {position}; the sentence has {len(words)} words, counted from 0")
        return number
    found = [number for number, each in enumerate(words) if each == word]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{word!r} occurs at positions {', '.join(map(str, found))}: choose one with {arg('position')}")
    if word and isinstance(sentence, str) and word in sentence:
        split = f"the model splits the sentence into {_numbered(words)}"
        choose = f"choose one with {arg('position')}"
        if ScriptProfile.of(sentence).is_chinese:
            before, _, after = sentence.partition(word)
            choose += f", or write spaces around the word: {short(f'{before} {word} {after}'.strip(), 60)!r}"
        raise UsageError(f"{word!r} is not a word of its own: {split}; {choose}")
    raise UsageError(f"{word!r} is not in the sentence; its words are {_numbered(words)}")


def _numbered(words: Sequence[str]) -> str:
    more = f" and {len(words) - _SHOWN_WORDS} more" if len(words) > _SHOWN_WORDS else ""
    return ", ".join(f"{number}: {short(word, 20)}" for number, word in enumerate(words[:_SHOWN_WORDS])) + more
