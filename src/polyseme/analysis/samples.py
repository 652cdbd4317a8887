"""The sample sentences of the package: ambiguous words, each in a few sentences per sense.

They show a model without a corpus. A file of samples is a table of three columns, word, sense and sentence, with the word in
brackets: `They fished from the [bank] of the river.`
"""

from __future__ import annotations

import importlib.resources
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from polyseme.base.errors import FormatError, PolysemeError, UsageError, arg
from polyseme.encoders.base import Encoder

if TYPE_CHECKING:
    from polyseme.tasks.base import Task

Language = Literal["en", "zh"]
_HEAD = ["word", "sense", "sentence"]
_SPLITTERS: dict[str, Language] = {
    "english": "en",
    "chinese": "zh",
    "characters": "zh",
    "each-character": "zh",
    "unigram": "zh",
}


@dataclass(frozen=True)
class Sample:
    """An ambiguous word in a sentence."""

    word: str
    sense: str
    sentence: str
    """Plain text, without the brackets around the word."""
    begin: int
    """Offset of the word, in characters."""


def language_of(reader: Encoder | Task) -> Language:
    """Return the language of an encoder or a task, known by its splitter, if there are samples for it."""
    name = reader.splitter.name
    if name not in _SPLITTERS:
        raise UsageError(
            f"the language of this model is unknown (its splitter is {name}), so there are no sample sentences for it: choose "
            f"{arg('splitter', 'english')} or {arg('splitter', 'chinese')}, or give text with {arg('corpus')}"
        )
    return _SPLITTERS[name]


def samples(language: Language) -> list[Sample]:
    """Return all samples of a language, in the order of the file."""
    if language not in get_args(Language):
        raise UsageError(f"there are no samples for language {language!r}; allowed: {', '.join(get_args(Language))}")
    name = f"samples/{language}.tsv"
    try:
        text = (importlib.resources.files("polyseme") / name).read_text(encoding="utf-8")
    except OSError as error:
        raise PolysemeError(f"cannot read {name} of the package ({error.strerror}): install polyseme again") from error
    return parse_samples(text, name)


def parse_samples(text: str, name: str) -> list[Sample]:
    """Parse the samples of a table; an error names the line.

    >>> parse_samples("word\\tsense\\tsentence\\nbank\\triver\\tA [bank] of sand.\\n", "en.tsv")
    [Sample(word='bank', sense='river', sentence='A bank of sand.', begin=2)]
    """
    head, *lines = text.removeprefix("\ufeff").splitlines() or [""]
    if head.split("\t") != _HEAD:
        raise FormatError(name, f"begins with {head!r}; expected the columns {', '.join(_HEAD)}, separated by tabs")
    return [_sample(line, f"{name}:{number}") for number, line in enumerate(lines, start=2) if line.strip()]


def _sample(line: str, where: str) -> Sample:
    fields = [field.strip() for field in line.split("\t")]
    if len(fields) != len(_HEAD) or not all(fields):
        raise FormatError(where, f"has {len(fields)} columns, or empty ones; expected {', '.join(_HEAD)}, separated by tabs")
    word, sense, marked = fields
    before, opened, rest = marked.partition("[")
    found, closed, after = rest.partition("]")
    if not opened or not closed or "[" in after or "]" in before + after:
        raise FormatError(where, "needs one word marked as [word]")
    if found.casefold() != word.casefold():
        raise FormatError(where, f"marks {found!r}; expected {word!r}")
    return Sample(word, sense, before + found + after, len(before))


def position_of(sample: Sample, encoder: Encoder) -> int | None:
    """Return the position of the sample's word among the encoder's words; None if the encoder splits the text differently."""
    end = 0
    for position, word in enumerate(encoder.words(sample.sentence)):
        begin = sample.sentence.find(word, end)
        if begin < 0 or begin > sample.begin:
            return None
        if begin == sample.begin:
            return position if len(word) == len(sample.word) else None
        end = begin + len(word)
    return None
