"""Rules that split English paragraphs into sentences, and those of Hindi, Urdu, Amharic and others with their own stops.

One regular expression finds every stop (. ! ? …) that white space follows, with the quotes, brackets and references ([3])
between. These rules decide, in order, whether it ends a sentence:

1. A lower-case letter follows: no ("Yahoo! is", "he said... nothing").
2. A full stop after a word that precedes another (Mr., Fig. 3, e.g.): no.
3. A full stop after an initial or an abbreviation that may end a sentence (U.S., Inc., etc.): only before a word that begins
   sentences far more often than names (The, He, In ...): "Apple Inc. The" but "Apple Inc. Chairman".
4. A number alone at the beginning ("1. Open the door"): no.
5. A quote followed by its speaker ("Go!" John said): no.

Everything else: yes. A stop that occurs in no abbreviation or number (। ؟ ። ...) needs no white space, unless a digit or a
comma follows.
"""

from __future__ import annotations

import re

from polyseme.text.splitting.unicode_classes import INVISIBLE, strip_invisible

_SURE = "।॥؟۔։።፧။។៕"  # Devanagari and related scripts, Arabic, Urdu, Armenian, Amharic, Burmese, Khmer
_STOPS = f".!?…{_SURE}"
_SIGNS = f"-\"'“‘«(\\[{{*_–—{INVISIBLE}"
_GOES_ON = r"\d,;:،؛፣፤၊"

_STOP = re.compile(
    # A run of stops is tried only from its first, so that a million full stops take linear time.
    rf"(?<![{_STOPS}])(?P<stop>[{_STOPS}]++)(?:(?<=[{_SURE}])(?P<sure>)|)[{INVISIBLE}]*+"
    r"(?P<closing>[\"'”’»)\]}*_]*+)(?:\[\d{1,3}\])*+"  # quotes and brackets; references
    r"(?:\s(?:''|[”’)\]])(?=\s|\Z))*+"  # the same in text that was split already
    rf"[{INVISIBLE}]*+(?:\s++|(?(sure)(?![{_GOES_ON}])|(?!)))(?=[{_SIGNS}\s]*+(?P<next>\S?)(?P<more>\w{{0,14}}))"
)
_BEFORE = re.compile(r"[^\s(\[{\"“‘'’—–/]{1,24}\Z")
_NUMBERED = re.compile(r"\W?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})\Z")
_SPEAKER = re.compile(
    r"(?:[A-Z][\w'’.-]{0,20} ){1,3}(?:said|says|asked|asks|replied|cried|added|answered|shouted|whispered|exclaimed|wrote)\b"
)


def _words_of(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


_STANDS_BEFORE = _words_of(
    "Mr Mrs Ms Messrs Mme Mlle Dr Prof Rev Hon Gen Col Maj Capt Cmdr Cpl Lt Sgt Sen Rep Reps Sens Gov Pres Supt Adm Brig",
    "St Mt Ft Fr vs v cf viz e.g i.e c ca approx Gens Drs Profs Msgr Insp Det",
)
"""Never the end of a sentence."""

_BEFORE_NUMBERS = _words_of(
    "No Nos no nos Fig Figs fig figs Vol vol Vols p pp Ch ch Sec sec Art art Eq eq Op op Par par Ex",
    "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec",
)
"""Not the end of a sentence before a number."""

_MAY_END = _words_of(
    "Inc Corp Co Cos Ltd Bros Assn Dept Univ Jr Sr Esq Ave Blvd Rd Ph.D etc al est dept Calif Conn Fla Ariz Mass Mich",
    "Minn Tenn Wis Okla Ont Que Pa Va Wash Ore Colo Ga Ill Tex Jan Feb Aug Sept Oct Nov Dec ed eds trans",
)
"""The end of a sentence if the next word begins one."""

_BEGINS = _words_of(
    "The A An This That These Those It Its He His She Her They Their We Our You Your I My There Here",
    "In On At By For From To Of With Without After Before During Since Until When While Where Who What Why How Which",
    "But And Or So Yet If As Because Although Though However Then Thus Also Another Some Many Most Several Other Others",
    "Both Each Every All No Not Such One Two Now Today Later Meanwhile Moreover Nevertheless Instead Finally Despite",
    "Is Are Was Were Do Does Did Has Have Had Can Could Will Would Should May Might Under Over Between According",
)
"""Words that begin sentences far more often than names."""

_CHAPTER = re.compile(r"[ivxlc]+\Z")  # "John viii. 46"
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]\Z")
_HEAD = re.compile(r"[^\W\d_]+")


def english_sentences(paragraph: str) -> list[str]:
    """Split a paragraph into sentences without surrounding white space; invisible ones are dropped.

    >>> english_sentences('Mr. Poe of the U.S. left. "Why?" she asked. He paid $3.50.')
    ['Mr. Poe of the U.S. left.', '"Why?" she asked.', 'He paid $3.50.']
    """
    sentences = []
    start = 0
    for stop in _STOP.finditer(paragraph):
        if _ends(paragraph, start, stop):
            sentences.append(paragraph[start : stop.end()].strip())
            start = stop.end()
    last = paragraph[start:].strip()
    return [*sentences, last] if strip_invisible(last).strip() else sentences


def _ends(text: str, start: int, stop: re.Match[str]) -> bool:
    letter = stop["next"]
    if letter.islower():
        return False
    if stop["closing"][:1] in ("'", '"', "”", "’") and _SPEAKER.match(text, stop.end(), stop.end() + 90):
        return False
    following = _HEAD.match(letter + stop["more"])
    begins = following is not None and following.group() in _BEGINS
    if stop["stop"] != ".":
        # "I... I do": a sentence that trails off and repeats its word has not ended.
        return "!" in stop["stop"] or "?" in stop["stop"] or following is None or following.group() != "I"
    if stop.start() - start <= 5 and _NUMBERED.match(text, start, stop.start()):
        return False
    before = _BEFORE.search(text, max(stop.start() - 25, start), stop.start())
    return before is None or _full_stop_ends(before.group(), letter, begins)


def _full_stop_ends(before: str, letter: str, begins: bool) -> bool:
    """Whether a full stop between a word and the next letter ends a sentence."""
    if before in _STANDS_BEFORE:
        return False
    if letter.isdigit() and (before in _BEFORE_NUMBERS or _CHAPTER.match(before)):
        return False
    initial = len(before) == 1 and before.isupper() and before != "I"
    if initial or before in _MAY_END or _DOTTED.match(before):
        return begins
    return True
