"""Words that keep whether a space stood before them, so that running text can be restored.

A generator produces words; readers and BLEU want text. A word that follows the previous one without a space gets the joiner
mark ￭ (as in OpenNMT's tokenizer): the end of a sentence is `￭.`, and nearly all Chinese words have it. A word that is
written both ways becomes two words, which costs little.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.text.splitting.offsets import word_offsets
from polyseme.text.splitting.unicode_classes import INVISIBLE
from polyseme.text.words import Splitter

JOINER = "￭"


def tokenize_with_joiners(text: str | Sequence[str], splitter: Splitter) -> list[str]:
    """Split a text into words with joiners; a list of words is returned as it is.

    >>> from polyseme.text.words import get_splitter
    >>> tokenize_with_joiners("Wait (a bit).", get_splitter("english"))
    ['Wait', '(', '￭a', 'bit', '￭)', '￭.']
    """
    if not isinstance(text, str):
        return list(text)
    words = splitter(text)
    joined, previous_end = [], len(text)
    for word, (begin, end) in zip(words, word_offsets(words, text), strict=True):
        apart = previous_end > begin or text[previous_end:begin].strip(INVISIBLE)
        joined.append(word if apart else JOINER + word)
        previous_end = end
    return joined


def detokenize(words: Sequence[str]) -> str:
    """Return the text of words with joiners.

    >>> detokenize(['Wait', '(', '￭a', 'bit', '￭)', '￭.'])
    'Wait (a bit).'
    """
    return "".join(word.removeprefix(JOINER) if word.startswith(JOINER) else f" {word}" for word in words).removeprefix(" ")
