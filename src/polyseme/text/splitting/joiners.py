"""Words that remember whether a blank stood before them, so that running text can be put together again from them.

A generator gives words; a reader, and BLEU, want the text. A word that stands right behind the one before it gets the mark ￭
(as in OpenNMT's tokenizer): the end of a sentence is `￭.`, and nearly all Chinese words have it. What is written now with a
blank and now without becomes two words, which cost little.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.text.splitting.offsets import word_offsets
from polyseme.text.splitting.unicode_classes import INVISIBLE
from polyseme.text.words import Splitter

JOINER = "￭"


def tokenize_with_joiners(text: str | Sequence[str], cut: Splitter) -> list[str]:
    """The words of a text, marked; a list of words is taken as it is.

    >>> tokenize_with_joiners("Wait (a bit).", Splitter("english"))
    ['Wait', '(', '￭a', 'bit', '￭)', '￭.']
    """
    if not isinstance(text, str):
        return list(text)
    words = cut(text)
    found, behind = [], len(text)
    for word, (begin, end) in zip(words, word_offsets(words, text), strict=True):
        apart = behind > begin or text[behind:begin].strip(INVISIBLE)
        found.append(word if apart else JOINER + word)
        behind = end
    return found


def detokenize(words: Sequence[str]) -> str:
    """The text that marked words spell.

    >>> detokenize(['Wait', '(', '￭a', 'bit', '￭)', '￭.'])
    'Wait (a bit).'
    """
    return "".join(word.removeprefix(JOINER) if word.startswith(JOINER) else f" {word}" for word in words).removeprefix(" ")
