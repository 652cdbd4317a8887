"""The words by which documents are compared and judged: in lower case, without punctuation."""

from __future__ import annotations

import re

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")


def plain_words(text: str) -> list[str]:
    """Return the words of a text; each character of Chinese, Japanese and Korean is one.

    >>> plain_words("The bank, the BANK; 河岸")
    ['the', 'bank', 'the', 'bank', '河', '岸']
    """
    return _WORD.findall(text.lower())
