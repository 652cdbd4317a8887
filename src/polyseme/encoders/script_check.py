"""Whether a model can read the script of a text: what is refused, and what the user is told."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

from polyseme.base.errors import arg
from polyseme.text.script import MOSTLY, SOME, ScriptProfile
from polyseme.text.traditional import MIN_LINES, traditional_characters

if TYPE_CHECKING:
    from polyseme.encoders.base import Encoder

_FEW_LETTERS = 20  # a name in Latin letters is no English text
_SMALL = re.compile(r"(?<!\w)[a-z]+(?!\w)")
_FEW_SMALL = 2  # words in small letters: a short sentence has them, and a name has one at most (Banco de Chile)
_FEW_WORDS = 30  # a sentence of names is no other language
_UNKNOWN = 0.4  # of the words of a text; of English tweets it is 0.22, of German 0.69
_WORD = re.compile(r"[^\W\d_]{2,}")
_SHOWN = 3  # traditional characters
_FEW_COMMAS = 3  # behind words may be typing errors
_WITH_COMMA = re.compile(r"(?<!\S)[^\W\d_]{2,}[,;:?!](?!\S)")
_COMMA_ALONE = re.compile(r"(?<!\S),(?!\S)")
_LOOKED_AT = 2000  # characters of texts that come one call after the other; 0.1 ms


def refusal(encoder: Encoder, profile: ScriptProfile, *, split_on_spaces: bool = False) -> str | None:
    """Why a model cannot read a text at all, and what to do; None: it can."""
    if (what := _chinese_for_english(encoder, profile)) is not None:
        return f"{what}: give {arg('model', 'zh')}, or a Chinese model of your own"
    if profile.needs_chinese_splitter and _splits_as_english(encoder, split_on_spaces):
        return profile.refusal()
    return None


def warnings(
    encoder: Encoder, profile: ScriptProfile, text: str, *, split_on_spaces: bool | None = False, looked_up: bool = False
) -> list[str]:
    """What the user should know about a text that a model can read, but not well. `text`: a sample, that of the profile.

    `split_on_spaces`: None where the user cannot choose it. `looked_up`: the text is single words, which nothing splits.
    """
    at_spaces = bool(split_on_spaces)
    about_script = (_about_language(encoder, profile, text), traditional(encoder, profile, text))
    if looked_up:
        return [each for each in about_script if each]
    about_words = _about_words(encoder, profile, at_spaces) or _split_again(encoder, profile, split_on_spaces)
    return [each for each in (about_words, *about_script, _unsplit(encoder, text, at_spaces)) if each]


def task_warnings(encoder: Encoder, profile: ScriptProfile, text: str) -> list[str]:
    """What the user of a trained task should know, who cannot choose its encoder any more."""
    what = _chinese_for_english(encoder, profile) or other_letters(encoder, profile, text)
    advice = "predictions mean little; train the task on such texts, with an encoder that reads them"
    return [each for each in (what and f"{what}: {advice}", traditional(encoder, profile, text)) if each]


def adaptation_warning(encoder: Encoder, profile: ScriptProfile, text: str) -> str | None:
    """That a shipped model is to be adapted to a language that it has not read; None: it has."""
    what = (
        _chinese_for_english(encoder, profile) or other_letters(encoder, profile, text) or unknown_words(encoder, profile, text)
    )
    advice = "what it has learned helps little there; adapt a model of that language, or train one (polyseme pretrain)"
    return what and f"{what}: {advice}"


def sample(texts: Sequence[str | Sequence[str]]) -> str:
    """The first characters of some texts, each a string or its words."""
    found, room = list[str](), _LOOKED_AT
    for text in texts:
        found.append(text[:room] if isinstance(text, str) else " ".join(text[:room])[:room])
        room -= len(found[-1])
        if room <= 0:
            break
    return "\n".join(found)


def unreadable(encoder: Encoder, texts: Sequence[Any]) -> str | None:
    """Why a model cannot read sentences that it splits into words itself, and what to do; None: it can, or it has words."""
    seen = sample([text for text in texts if isinstance(text, str)])
    return None if seen.isascii() else refusal(encoder, ScriptProfile.of(seen))


def _splits_as_english(encoder: Encoder, split_on_spaces: bool) -> bool:
    return not split_on_spaces and encoder.splitter.name == "english" and not encoder.reads_subwords


def _about_words(encoder: Encoder, profile: ScriptProfile, split_on_spaces: bool) -> str | None:
    at_spaces = not split_on_spaces and encoder.splitter.name == "whitespace"
    if profile.needs_chinese_splitter and at_spaces:
        what = f"the text is mostly Chinese ({profile.percent}) without spaces"
        return f"{what}, and {encoder.source} takes words separated by spaces: load it with {arg('splitter', 'chinese')}"
    if profile.needs_chinese_splitter and split_on_spaces:
        what = f"the text is mostly Chinese ({profile.percent}) without spaces, so each line is one word"
        return f"{what}: leave out {arg('split_on_spaces')}, and the model splits it"
    problem = profile.warning() if _splits_as_english(encoder, split_on_spaces) else None
    return problem and f"{problem}: consider {arg('splitter', 'characters')}, or text whose words are separated by spaces"


def _split_again(encoder: Encoder, profile: ScriptProfile, split_on_spaces: bool | None) -> str | None:
    """Chinese text with spaces between its words is split anew, by the words of the model."""
    is_kept = split_on_spaces or encoder.reads_subwords or encoder.splitter.name in ("whitespace", "english")
    if is_kept or not profile.is_chinese or not profile.is_split or profile.letters < _FEW_LETTERS:
        return None
    what = "the text has spaces between Chinese words, and is split anew, since the model has words of its own"
    keep = f"give {arg('split_on_spaces', True)}"
    if split_on_spaces is None:
        keep = f"load it with {arg('splitter', 'whitespace')}"
    return f"{what}: to keep yours, {keep}"


def _unsplit(encoder: Encoder, text: str, split_on_spaces: bool) -> str | None:
    """Words with punctuation at their end, for a model that takes words as they are."""
    if split_on_spaces or encoder.splitter.name != "whitespace" or encoder.reads_subwords or _COMMA_ALONE.search(text):
        return None
    found = _WITH_COMMA.findall(text)
    if len(found) < _FEW_COMMAS:
        return None
    what = f"words of the text end with punctuation ({found[0]!r}), and {encoder.source} takes words separated by spaces"
    return f"{what}: load it with {arg('splitter', 'english')}, or split the text"


def _about_language(encoder: Encoder, profile: ScriptProfile, text: str) -> str | None:
    what = other_letters(encoder, profile, text)
    if what is None:
        unknown = unknown_words(encoder, profile, text)
        return unknown and f"{unknown}: a model of your own text knows them (polyseme pretrain)"
    if encoder.source == "zh" and profile.share("Latin") >= MOSTLY:
        return f"{what}: consider {arg('model', 'en')}"
    return f"{what}: its vectors and probabilities mean little; train a model on your own text (polyseme pretrain)"


def other_letters(encoder: Encoder, profile: ScriptProfile, text: str, what: str = "text") -> str | None:
    """That a shipped model has read hardly any text in the letters of this one. `what`: the text, as the user calls it."""
    long = profile.letters >= _FEW_LETTERS or len(_SMALL.findall(text)) >= _FEW_SMALL
    if encoder.source == "zh" and long and profile.share("Latin") >= MOSTLY:
        few = profile.share("Han") < SOME
        return f"the {what} has few Chinese characters, and zh is a Chinese model" if few else None
    if encoder.source not in ("en", "zh") or not profile.is_foreign:
        return None
    return f"the {what} is mostly in {profile.main}, and the model {encoder.source} has read none"


def unknown_words(encoder: Encoder, profile: ScriptProfile, text: str, what: str = "text") -> str | None:
    """That the English model has not read the language of a text in Latin letters, though it can read the letters."""
    vocabulary = encoder.vocabulary if encoder.source == "en" and profile.share("Latin") >= MOSTLY else None
    if vocabulary is None or (unknown := unknown_share(text, vocabulary)) < _UNKNOWN:
        return None
    share = f"{unknown:.0%} of the words of the {what} are not in the vocabulary of {encoder.source}"
    return f"{share}, as in a language other than English"


def unknown_share(text: str, vocabulary: Container[str]) -> float:
    """Return the share of words that a vocabulary lacks, in lower case too; 0: the text has few words.

    >>> unknown_share("le chat est sur la table " * 10, {"table", "sur", "la"})
    0.5
    >>> unknown_share("le chat", {"table"})
    0.0
    """
    words = _WORD.findall(text)
    unknown = sum(word not in vocabulary and word.lower() not in vocabulary for word in words)
    return unknown / len(words) if len(words) >= _FEW_WORDS else 0.0


def _chinese_for_english(encoder: Encoder, profile: ScriptProfile) -> str | None:
    if not profile.is_chinese or encoder.source != "en":
        return None
    return f"the text is mostly Chinese ({profile.percent}), and {encoder.source} is an English model"


def traditional(encoder: Encoder, profile: ScriptProfile, text: str) -> str | None:
    """A model whose vocabulary lacks the traditional characters of a text was trained on simplified ones."""
    if not profile.is_chinese or encoder.vocabulary is None or not traditional_characters(text):
        return None
    found = traditional_characters(text, encoder.vocabulary.characters)
    if not found:
        return None
    return f"the text has traditional characters ({''.join(found[:_SHOWN])} ...), {_not_known(encoder, 'it')}"


def traditional_lines(encoder: Encoder, found: int, lines: int) -> str | None:
    """That some lines of a text are in traditional characters, which the model has not read; None: hardly any."""
    if not found or found < MIN_LINES * lines:
        return None
    many = "1 line has" if found == 1 else f"{found:,} lines have"
    return f"{many} traditional characters, of {lines:,}, {_not_known(encoder, 'it' if found == 1 else 'them')}"


def _not_known(encoder: Encoder, it: str) -> str:
    what = f"and no word that {encoder.source or 'the model'} knows has them"
    return f"{what}: convert {it} to simplified ones first, for example with OpenCC"
