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
"""Words that keep their period wherever they stand."""

_BEFORE_NUMBERS = _words_of("No Nos no nos Fig Figs fig figs Vol vol Vols p pp Ch ch Sec sec Art art Eq eq")
"""Words that keep it before a number only: elsewhere "No." is an answer."""

_FUSED = _words_of("cannot gonna gotta wanna gimme lemme")
"""Two words written as one, all split behind the third letter."""

_TAILS = {"n't": 3, "'re": 3, "'ve": 3, "'ll": 3, "'s": 2, "'m": 2, "'d": 2}
"""What a contraction ends with, and how long that is."""

_CLOSING = ".,;:!?'\"’”…)]}"
"""What stands behind a link more often than it ends one."""


def split_english(text: str) -> list[str]:
    """The words of a text; joined they are the text without its white space and invisible marks.

    >>> split_english("Mr. O'Hara can't pay $1,000.50 (yet).")
    ['Mr.', "O'Hara", 'ca', "n't", 'pay', '$', '1,000.50', '(', 'yet', ')', '.']
    """
    text = strip_invisible(text)
    words: list[str] = []
    for match in _pattern().finditer(text):
        piece = match.group()
        if match.lastgroup is None:
            words.append(piece)
        elif match.lastgroup == "link":
            end = _link_end(piece)
            words.append(piece[:end])
            words.extend(split_english(piece[end:]))
        elif piece[-1] == "." and not _keeps_period(piece[:-1], text[match.end() : match.end() + 3]):
            words.extend(_parts(piece[:-1]))
            words.append(".")
        else:
            words.extend(_parts(piece))
    return words


@functools.cache
def _pattern() -> re.Pattern[str]:
    """The alternatives in the order in which they are tried; only links and words need a second look."""
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
                r"(?i:['’](?:s|m|d|re|ve|ll))(?![\w'’-])",  # behind what is no plain word: U.S.'s, 1990's
                r"(?i:['’](?:em|til|tis|twas|\d0s|n['’]))(?!\w)",  # words that begin with an apostrophe
                rf"(?P<word>{sign_of_number}{compound}(?:\.(?![.\w]))?)",
                r"\.{2,}+|-{2,}+|``|''",
                symbol_pattern(),
                r"\S",  # a stray mark or joiner
            )
        )
    )


def _keeps_period(stem: str, after: str) -> bool:
    """Whether the period behind `stem` is part of the word; `after` is a glance at what follows it."""
    following = after.lstrip()[:1]
    if stem in _ALWAYS:
        return True
    if stem in _BEFORE_NUMBERS:
        return following.isdigit()
    # An initial stands before a name; "I." ends a sentence more often than it begins one.
    return len(stem) == 1 and stem.isupper() and stem != "I" and following.isupper() and after[:1].isspace()


def _parts(word: str) -> list[str]:
    """A word without and with its contractions: `wouldn't've` is `would n't 've`."""
    if len(word) < 7 and word.lower() in _FUSED:
        return [word[:3], word[3:]]
    if "'" not in word and "’" not in word:
        return [word]
    tails: list[str] = []
    end = len(word)
    while size := _tail(word[max(end - 3, 0) : end]):
        if size == end:  # no word before it: the text was split already
            break
        tails.append(word[end - size : end])
        end -= size
    return [word[:end], *reversed(tails)]


def _tail(ending: str) -> int:
    """How many of the last (at most three) characters are a contraction."""
    plain = ending.lower().replace("’", "'")
    return _TAILS.get(plain) or _TAILS.get(plain[-2:], 0)


def _link_end(link: str) -> int:
    """Where a link ends: before the punctuation of the sentence, but with a bracket that it opened itself."""
    end = len(link)
    open_brackets = link.count("(") - link.count(")")
    while end and link[end - 1] in _CLOSING:
        if link[end - 1] == ")":
            if open_brackets >= 0:
                break
            open_brackets += 1
        end -= 1
    return end
