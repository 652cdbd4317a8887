"""The `english` splitter: Penn Treebank tokens, as the published English ELMo models were trained on.

Punctuation is split off, contractions are split (`do n't`, `it 's`, `can not`); numbers, links, hyphenated words and
abbreviations stay whole. Unlike in the Treebank, symbols stay as written (no `-LRB-`, no ` `` ` for `"`), so the words joined
are the text without white space and invisible characters.

One regular expression splits, and a short second pass decides what it cannot: whether a period belongs to the word, where a
contraction splits, where a link ends. Every repetition is possessive or bounded, so the time is linear for any text.
"""

from __future__ import annotations

import functools
import re

from polyseme.text.splitting.unicode_classes import strip_invisible, symbol_pattern, word_internal


def _words_of(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


_ALWAYS = _words_of(
    "Mr Mrs Ms Messrs Mme Dr Prof Rev Hon Gen Col Maj Capt Cmdr Lt Sgt Sen Rep Gov Pres Supt Jr Sr Esq",
    "St Ave Blvd Rd Mt Ft Inc Corp Co Cos Ltd Bros Assn Dept Univ",
    "Jan Feb Mar Apr Aug Sept Sep Oct Nov Dec Tues Thurs",
    "Calif Conn Fla Ariz Ind Mich Minn Tenn Wis Okla Ont Que",
    "etc vs cf al approx ca dept est resp viz",
)
"""Abbreviations that always keep their period."""

_BEFORE_NUMBERS = _words_of("No Nos no nos Fig Figs fig figs Vol vol Vols p pp Ch ch Sec sec Art art Eq eq")
"""Abbreviations that keep it only before a number: elsewhere "No." is an answer."""

_FUSED = _words_of("cannot gonna gotta wanna gimme lemme")
"""Two words written as one, all split after the third letter."""

_TAILS = {"n't": 3, "'re": 3, "'ve": 3, "'ll": 3, "'s": 2, "'m": 2, "'d": 2}
"""Endings of contractions and their lengths."""

_CLOSING = ".,;:!?'\"’”…)]}"
"""Punctuation that usually follows a link and is not part of it."""


def split_english(text: str) -> list[str]:
    """Split a text into words; joined they are the text without white space and invisible characters.

    >>> split_english("Mr. O'Hara can't pay $1,000.50 (yet).")
    ['Mr.', "O'Hara", 'ca', "n't", 'pay', '$', '1,000.50', '(', 'yet', ')', '.']
    """
    text = strip_invisible(text)
    words: list[str] = []
    for match in _pattern().finditer(text):
        token = match.group()
        if match.lastgroup is None:
            words.append(token)
        elif match.lastgroup == "link":
            end = _link_end(token)
            words.append(token[:end])
            words.extend(split_english(token[end:]))
        elif token[-1] == "." and not _keeps_period(token[:-1], text[match.end() : match.end() + 3]):
            words.extend(_parts(token[:-1]))
            words.append(".")
        else:
            words.extend(_parts(token))
    return words


@functools.cache
def _pattern() -> re.Pattern[str]:
    """The alternatives in the order in which they are tried; only links and words need the second pass."""
    run = rf"\w[\w{word_internal()}]*+"
    joint = r"['’‐‑-](?=\w)|(?<=\d)[.,:/](?=\d)|\.(?=[a-z])|(?<=[A-Z])&(?=[A-Z])"
    compound = rf"{run}(?:(?:{joint}){run})*+"
    sign_of_number = r"(?:(?<![^\s(\[{])[-+−](?=\.?\d))?(?:(?<![\w.])\.(?=\d))?"
    return re.compile(
        "|".join(
            (
                r"(?P<link>(?:(?i:https?|ftp)://|(?i:www)\.)[^\s<>\"“”]++)",
                r"[^\W_][\w.+%-]{0,63}+@\w[\w-]*+(?:\.\w[\w-]*+)++",  # e-mail address
                rf"(?:Ph\.D|[^\W\d_](?:\.[^\W\d_](?!\w))++)(?:\.(?!\.))?(?:-{run})*+",  # U.S., e.g., U.S.-based
                r"(?i:['’](?:s|m|d|re|ve|ll))(?![\w'’-])",  # after something that is no plain word: U.S.'s, 1990's
                r"(?i:['’](?:em|til|tis|twas|\d0s|n['’]))(?!\w)",  # words that begin with an apostrophe
                rf"(?P<word>{sign_of_number}{compound}(?:\.(?![.\w]))?)",
                r"\.{2,}+|-{2,}+|``|''",
                symbol_pattern(),
                r"\S",  # a stray mark or joiner
            )
        )
    )


def _keeps_period(stem: str, after: str) -> bool:
    """Whether the period after `stem` is part of the word; `after` is the text that follows."""
    following = after.lstrip()[:1]
    if stem in _ALWAYS:
        return True
    if stem in _BEFORE_NUMBERS:
        return following.isdigit()
    # An initial stands before a name; "I." ends a sentence more often than it begins one.
    return len(stem) == 1 and stem.isupper() and stem != "I" and following.isupper() and after[:1].isspace()


def _parts(word: str) -> list[str]:
    """Split off contractions: `wouldn't've` is `would n't 've`."""
    if len(word) < 7 and word.lower() in _FUSED:
        return [word[:3], word[3:]]
    if "'" not in word and "’" not in word:
        return [word]
    tails: list[str] = []
    end = len(word)
    while size := _tail(word[max(end - 3, 0) : end]):
        if size == end:  # no word before it: the text is split already
            break
        tails.append(word[end - size : end])
        end -= size
    return [word[:end], *reversed(tails)]


def _tail(ending: str) -> int:
    """Return how many of the last (at most three) characters are a contraction."""
    plain = ending.lower().replace("’", "'")
    return _TAILS.get(plain) or _TAILS.get(plain[-2:], 0)


def _link_end(link: str) -> int:
    """Return the end of a link: before the punctuation of the sentence, but after a bracket that it opened itself."""
    end = len(link)
    open_brackets = link.count("(") - link.count(")")
    while end and link[end - 1] in _CLOSING:
        if link[end - 1] == ")":
            if open_brackets >= 0:
                break
            open_brackets += 1
        end -= 1
    return end
