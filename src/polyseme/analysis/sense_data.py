"""Sentences whose words carry WordNet senses: JSON lines, one sentence each.

    {"words": ["The", "primary_election"], "instances": [{"i": 1, "n": 1, "lemma": "primary_election", "pos": "NN",
     "synsets": ["00182571-n"]}]}

`i` is the position of the word and `n` the number of words. Senses are WordNet 3.0 synsets (offset and part of speech); words
without one are left out. A term of several words is one word with underscores in the file; it becomes several words.
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
    """A word with its sense."""

    span: range
    """Its words in the sentence."""
    lemma: Lemma
    synsets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SenseSentence:
    """A sentence, and its words that have a sense."""

    words: list[str]
    instances: list[Instance]


def read_senses(path: str | Path) -> list[SenseSentence]:
    """Read all sentences of a file (plain, gzip or xz)."""
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
            what = f"lacks the field {error}" if isinstance(error, KeyError) else f"is not a sentence with senses ({error})"
            raise FormatError(
                f"{path}:{number}", f"{what}; expected words, and instances with i, n, lemma, pos, synsets"
            ) from error
    if not any(sentence.instances for sentence in found):
        raise FormatError(path, "has no word with a synset")
    return found


def part_of_speech(tag: str | None) -> str:
    """Return WordNet's part of speech for a tag of any common tag set; "" if there is none.

    It comes from the tag and not from the gold synset, which a system does not know.

    >>> [part_of_speech(tag) for tag in ("NNS", "JJR", "MD", "s", "ADV", None)]
    ['n', 'a', 'v', 'a', 'r', '']
    """
    return _BY_NAME.get(tag.upper()) or _BY_LETTER.get(tag[:1].upper(), "") if tag else ""


def _sentence(row: Any) -> SenseSentence:
    words, instances = row["words"], row["instances"]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("words is not a list of strings")
    parts = [[part for part in word.split("_") if part] or [word] for word in words]
    begins = list(accumulate(map(len, parts), initial=0))
    found = []
    for each in instances:
        first, behind = each["i"], each["i"] + each["n"]
        if not 0 <= first < behind <= len(words):
            raise ValueError(f"words {first} to {behind - 1} of {len(words)}")
        synsets = tuple(_same_for_satellites(synset) for synset in each["synsets"])
        if synsets:
            lemma = (each["lemma"].lower(), part_of_speech(each["pos"]))
            found.append(Instance(range(begins[first], begins[behind]), lemma, synsets))
    return SenseSentence([part for several in parts for part in several], found)


def _same_for_satellites(synset: str) -> str:
    """Rename adjective satellites (s), which share their offsets with adjectives (a)."""
    return f"{synset[:-1]}a" if synset.endswith("-s") else synset
