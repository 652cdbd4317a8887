"""A splitter and a model that fit the script of a text."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.api.models import ModelRequest, loaded
from polyseme.base.errors import UsageError, arg
from polyseme.text.config import TextConfig

if TYPE_CHECKING:
    from polyseme.api.arguments import AnyModel
    from polyseme.encoders.base import Encoder
    from polyseme.text.corpus import Corpus
    from polyseme.text.files.reader import TextEngine
    from polyseme.text.files.sources import Source
    from polyseme.text.script import ScriptProfile
    from polyseme.text.words import Splitter

_LETTERS, _LETTERS_OF_A_PIPE = 20_000, 20  # that are looked at
_WORD_SAMPLE = 1000  # sentences of labelled data that are looked at
_log = logging.getLogger(__name__)
Notify = Callable[[str], None]


def open_text(
    source: str | Path | Sequence[str | Path] | Source,
    text: TextConfig,
    splitter: Splitter | None = None,
    notify: Notify = _log.warning,
    engine: TextEngine | None = None,
) -> Corpus:
    """Open a text. Chinese is split as such, unless the user chose a splitter; English for it is refused.

    `splitter`: that of a model, to use instead of the setting. `notify` gets what the user should know.
    `engine`: an engine that reads and splits the text.
    """
    from polyseme.text import script

    corpus = text.open([source] if isinstance(source, str | Path) else source, splitter, engine)
    corpus.source.warn_of_tables(notify)
    if corpus.splitter.name not in ("english", "whitespace"):
        return corpus
    profile = script.ScriptProfile.of_source(corpus.source)
    chosen = splitter is not None or text.splitter is not None
    if not chosen and profile.is_chinese:
        why = f"the text is mostly Chinese ({profile.percent})"
        return _chinese(corpus.source, text, profile.is_split, why, notify, engine)
    check_splitter(corpus, profile)
    if problem := profile.warning():
        notify(f"{problem}: consider {arg('splitter', 'characters')}, or text whose words are separated by spaces")
    return corpus


def check_splitter(corpus: Corpus, profile: ScriptProfile | None = None) -> Corpus:
    """Return a corpus; refuse the English splitter for Chinese."""
    from polyseme.text import script

    if corpus.splitter.name == "english":
        profile = profile or script.ScriptProfile.of_source(corpus.source)
        if profile.needs_chinese_splitter:
            raise UsageError(profile.refusal())
    return corpus


def peek(texts: Iterable[Any]) -> tuple[list[str], Iterable[Any]]:
    """Return the first texts as lines, and all texts. Of a pipe no more is read than shows its script: someone may type it."""
    from polyseme.text.files.lines import PipedLines

    again = not isinstance(texts, PipedLines | Iterator)
    source, first, letters = iter(texts), list[Any](), 0
    for text in source:
        if not isinstance(text, str) and not (isinstance(text, list | tuple) and all(isinstance(word, str) for word in text)):
            raise UsageError(f"a text is a string or a list of words; got {text!r:.80}")
        first.append(text)
        letters += sum(character.isalpha() for character in " ".join(text))
        if letters >= (_LETTERS if again else _LETTERS_OF_A_PIPE):
            break
    lines = [text if isinstance(text, str) else " ".join(text) for text in first]
    return lines, texts if again else _Peeked(texts, first, source)


def model_for(
    texts: Iterable[Any],
    model: AnyModel | ModelRequest | None,
    *,
    split_on_spaces: bool | None = None,
    looked_up: bool = False,
    to_the_end: bool = False,
) -> tuple[Encoder, Iterable[Any]]:
    """The model, for Chinese the Chinese one unless the user named another, and the texts, of which some may be read.

    English for Chinese is refused. `split_on_spaces`: None where the user cannot choose it. `looked_up`: the texts are single
    words, which nothing splits. `to_the_end`: lines that the model reads badly are counted as they are read, and reported.
    """
    first, texts = peek(texts)
    encoder = _model_for("\n".join(first), model, split_on_spaces, looked_up)
    return encoder, _counted(encoder, "\n".join(first), texts) if to_the_end else texts


def model_for_text(text: Source | Iterable[Any], model: AnyModel | ModelRequest | None) -> tuple[Encoder, Any]:
    """The same for opened files, or sentences; the words of a `Corpus` stay as they are."""
    from polyseme.text.corpus import Corpus
    from polyseme.text.files.sources import Source
    from polyseme.text.script import sample_of

    if isinstance(text, Source):
        return _model_for(sample_of(text), model), text
    return model_for(text, model, split_on_spaces=True if isinstance(text, Corpus) else None)


def model_for_words(sentences: Iterable[Sequence[str]], model: AnyModel | ModelRequest | None) -> Encoder:
    """The model for data in words: for Chinese the Chinese one unless the user named another, which may be any."""
    from polyseme.text.script import ScriptProfile

    lines = map(" ".join, itertools.islice(sentences, _WORD_SAMPLE))
    return loaded(_chosen(ScriptProfile.of("\n".join(lines)), model))


def _model_for(
    sample: str, model: AnyModel | ModelRequest | None, split_on_spaces: bool | None = None, looked_up: bool = False
) -> Encoder:
    """The model for a text that begins so."""
    from polyseme.encoders.script_check import refusal, warnings
    from polyseme.text.script import ScriptProfile

    profile = ScriptProfile.of(sample)
    encoder = loaded(_chosen(profile, model), split_on_spaces=bool(split_on_spaces))
    if refused := refusal(encoder, profile, split_on_spaces=bool(split_on_spaces)):
        raise UsageError(refused)
    for warning in warnings(encoder, profile, sample, split_on_spaces=split_on_spaces, looked_up=looked_up):
        _log.warning("%s", warning)
    return encoder


def _chosen(profile: ScriptProfile, model: AnyModel | ModelRequest | None) -> AnyModel | ModelRequest:
    """The model that the user named, or the one for the script."""
    if profile.is_chinese and (model is None or (isinstance(model, ModelRequest) and not model.given)):
        _log.warning("the text is mostly Chinese (%s), so this uses %s", profile.percent, arg("model", "zh"))
        return ModelRequest("zh", model.options if isinstance(model, ModelRequest) else {})
    return "en" if model is None else model


def _counted(encoder: Encoder, sample: str, texts: Iterable[Any]) -> Iterable[Any]:
    """Texts whose lines in traditional characters are counted, if the model has not read these and the sample tells nothing."""
    from polyseme.encoders.script_check import traditional
    from polyseme.text.script import ScriptProfile

    profile = ScriptProfile.of(sample)
    if not profile.is_chinese or encoder.vocabulary is None or traditional(encoder, profile, sample):
        return texts
    return _Counted(encoder, texts)


class _Counted:
    """Texts that warn at their end, once, if several were in traditional characters that a model has not read."""

    def __init__(self, encoder: Encoder, texts: Iterable[Any]) -> None:
        self._encoder, self._texts, self._told = encoder, texts, False

    def __iter__(self) -> Iterator[Any]:
        from polyseme.encoders.script_check import traditional_lines
        from polyseme.text.traditional import is_traditional

        known = self._encoder.vocabulary.characters if self._encoder.vocabulary else frozenset[str]()
        lines = found = 0
        for text in self._texts:
            line = text if isinstance(text, str) else " ".join(text)
            lines, found = lines + bool(line.strip()), found + is_traditional(line, known)
            yield text
        warning = traditional_lines(self._encoder, found, lines)
        if warning and not self._told:
            self._told = True
            _log.warning("%s", warning)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._texts, name)


class _Peeked:
    """Texts whose first lines were already read: the first iteration begins with those, a later one reads the texts anew."""

    def __init__(self, texts: Iterable[Any], first: list[Any], rest: Iterator[Any]) -> None:
        self._texts, self._start = texts, itertools.chain(first, rest)

    def __iter__(self) -> Iterator[Any]:
        start, self._start = self._start, None  # type: ignore[assignment]
        return iter(self._texts) if start is None else start

    def __getattr__(self, name: str) -> Any:
        return getattr(self._texts, name)


def _chinese(
    source: Source, text: TextConfig, is_split: bool, why: str, notify: Notify, engine: TextEngine | None = None
) -> Corpus:
    """Open Chinese: words that spaces separate stay, others are split by the words of the model zh."""
    from polyseme.encoders.folder import chinese_splitter
    from polyseme.text.words import WHITESPACE

    if is_split:
        notify(f"{why}, and spaces separate its words: {arg('splitter', 'whitespace')}")
        return text.replace(sentences=text.sentences or "chinese").open(source, WHITESPACE, engine)
    notify(f"{why}: its words are split by the word list of the model zh ({arg('splitter', 'unigram')})")
    return text.open(source, chinese_splitter(), engine)
