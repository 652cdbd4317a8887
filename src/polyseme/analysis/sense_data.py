"""Sentences whose words carry WordNet senses: JSON lines, one sentence each.

    {"words": ["The", "primary_election"], "instances": [{"i": 1, "n": 1, "lemma": "primary_election", "pos": "NN",
     "synsets": ["00182571-n"]}]}

`i` is the position of the word and `n` the number of words. Senses are WordNet 3.0 synsets (offset and part of speech); words
without one are left out. A term of several words is one word with underscores there, and is several words for a model,
which never saw underscores.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from polyseme.base.errors import FormatError
from polyseme.text.labelled.numbered_lines import numbered_lines

Lemma = tuple[str, str]
"""A lemma and its part of speech: n, v, a or r."""
_BY_NAME = {"ADV": "r", "AUX": "v", "PROPN": "n"}  # Universal Dependencies, where the first letter misleads
_BY_LETTER = {"N": "n", "V": "v", "M": "v", "J": "a", "A": "a", "S": "a", "R": "r", "W": "r"}  # Penn tags and WordNet's own


@dataclass(frozen=True, slots=True)
class Instance:
    """A word whose sense is known."""

    position: range
    """Its words in the sentence."""
    lemma: Lemma
    synsets: tuple[str, ...]
    """The senses, any of which is right."""


@dataclass(frozen=True, slots=True)
class SenseSentence:
    """A sentence, and those of its words whose sense is known."""

    words: list[str]
    instances: list[Instance]


def read_senses(path: str | Path) -> list[SenseSentence]:
    """All sentences of a file (plain, gzip or xz)."""
    found = []
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{path}:{number}", f"is not valid JSON ({error})") from error
        try:
            found.append(_sentence(row))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"lacks the field {error}" if isinstance(error, KeyError) else f"is no sentence with senses ({error})"
            raise FormatError(
                f"{path}:{number}", f"{what}; expected words, and instances with i, n, lemma, pos, synsets"
            ) from error
    if not any(sentence.instances for sentence in found):
        raise FormatError(path, "holds no word with a synset")
    return found


def part_of_speech(tag: str | None) -> str:
    """The part of speech that WordNet knows, from a tag of any of the usual sets; "" where there is none.

    It comes from the tag and not from the true synset, which a system that answers does not know.

    >>> [part_of_speech(tag) for tag in ("NNS", "JJR", "MD", "s", "ADV", None)]
    ['n', 'a', 'v', 'a', 'r', '']
    """
    return _BY_NAME.get(tag.upper()) or _BY_LETTER.get(tag[:1].upper(), "") if tag else ""


def _sentence(row: Any) -> SenseSentence:
    words, instances = row["words"], row["instances"]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("words is no list of strings")
    pieces = [[piece for piece in word.split("_") if piece] or [word] for word in words]
    begins = list(accumulate(map(len, pieces), initial=0))
    found = []
    for each in instances:
        first, behind = each["i"], each["i"] + each["n"]
        if not 0 <= first < behind <= len(words):
            raise ValueError(f"words {first} to {behind - 1} of {len(words)}")
        synsets = tuple(_same_for_satellites(synset) for synset in each["synsets"])
        if synsets:
            lemma = (each["lemma"].lower(), part_of_speech(each["pos"]))
            found.append(Instance(range(begins[first], begins[behind]), lemma, synsets))
    return SenseSentence([piece for several in pieces for piece in several], found)


def _same_for_satellites(synset: str) -> str:
    """Adjective satellites (s) share their numbers with adjectives (a)."""
    return f"{synset[:-1]}a" if synset.endswith("-s") else synset
