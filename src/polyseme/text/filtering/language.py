"""The language of a document, by its script and its most frequent words; needs no model and is the same on every machine.

Languages with a script of their own are told by it. Those that share Latin or Cyrillic letters are told by function words, of
which every running text has many: a third of its words in English. Short texts, lists and names are of no known language.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal

from polyseme.text.filtering.plain_words import plain_words

Language = Literal[
    "en", "de", "fr", "es", "it", "pt", "nl", "sv", "pl", "ru", "uk", "zh", "ja", "ko", "ar", "he", "el", "hi", "th"
]

_FUNCTION_WORDS = {
    "en": "the of and to in is that it was for on are as with his they be at have this from or had by but not what were we "
    "when your can said there an each which she do how their if will he you i",
    "de": "der die und den das von zu mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er hat dass sie "
    "nach wird bei einer um am sind noch wie einem über ich so zum",
    "fr": "le la les de des du et en un une est que qui dans pour pas sur au par plus ne se ce il sont avec ont mais nous vous "
    "elle être cette comme ou leur aux je",
    "es": "el la los las de del y en un una que es por con no para su se al lo como más pero sus le ya o este sí porque esta "
    "entre cuando muy sin sobre también me",
    "it": "il lo la i gli le di del della e in un una che è per non con si da sono come ma anche più al nel dei delle ha alla "
    "questo o se ci suo mi",
    "pt": "o a os as de do da dos das e em um uma que é não para com por no na se mais como mas foi ao ele seu sua ou quando "
    "muito já também pelo pela até isso",
    "nl": "de het een van en in is dat op te zijn met voor niet aan er om ook als dan maar bij ze nog naar uit was hij worden "
    "door wat over ik heeft deze",
    "sv": "och att det som en på är av för med den till inte om ett men var jag han de så vi kan när år under också efter "
    "eller nu sin där från",
    "pl": "i w na z do się nie że jest to o jak po za od ale przez przy co dla ich tym był są tak jego już czy które było oraz "
    "jej być może",
    "ru": "и в не на что с он по как это а то но из у к за от же его она так было все они для или мы был если до только",
    "uk": "і в на що не з та до як це за від у але його він про або було бути вона які є для ще так також вони",
}
ENGLISH_FUNCTION_WORDS = frozenset(_FUNCTION_WORDS["en"].split())
_SCRIPTS = {
    "ja": r"[\u3040-\u30ff]",
    "ko": r"[\uac00-\ud7af]",
    "zh": r"[\u3400-\u9fff]",
    "ar": r"[\u0600-\u06ff]",
    "he": r"[\u0590-\u05ff]",
    "el": r"[\u0370-\u03ff]",
    "hi": r"[\u0900-\u097f]",
    "th": r"[\u0e00-\u0e7f]",
}
_BY_WORD = {
    word: [name for name in _FUNCTION_WORDS if word in _FUNCTION_WORDS[name].split()]
    for words in _FUNCTION_WORDS.values()
    for word in words.split()
}
_PATTERNS = {name: re.compile(pattern) for name, pattern in _SCRIPTS.items()}
_MIN_SHARE = 0.08  # of the words, or of the letters
_JAPANESE = 0.05  # kana beside Han characters


def language_of(text: str) -> str | None:
    """Return the code of a language; None: not known.

    >>> language_of("The cat sat on the mat and looked at the dog."), language_of("Der Hund ist nicht auf dem Sofa.")
    ('en', 'de')
    >>> language_of("他们说不要去那里。"), language_of("zzz qqq")
    ('zh', None)
    """
    letters = sum(sign.isalpha() for sign in text)
    if not letters:
        return None
    if not text.isascii():
        shares = {name: len(pattern.findall(text)) / letters for name, pattern in _PATTERNS.items()}
        if shares["ja"] >= _JAPANESE and shares["ja"] + shares["zh"] >= 0.5:
            return "ja"
        if shares[best := max(shares, key=lambda name: shares[name])] >= 0.5:
            return best
    words = plain_words(text)
    found = Counter(name for word in words for name in _BY_WORD.get(word, ()))
    if not found:
        return None
    (best, count), *others = found.most_common(2)
    tied = bool(others) and others[0][1] == count
    return None if tied or count < _MIN_SHARE * len(words) else best
