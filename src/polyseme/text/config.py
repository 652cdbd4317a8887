"""The settings with which text is read. Imports nothing heavy, so that `--help` is fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from polyseme.base.config import Config, setting

if TYPE_CHECKING:
    from polyseme.text.corpus import Corpus
    from polyseme.text.files.reader import TextEngine
    from polyseme.text.files.sources import Source, TextPaths
    from polyseme.text.words import Splitter

SplitterName = Literal["english", "chinese", "characters", "each-character", "whitespace", "unigram"]
SentencesName = Literal["english", "chinese", "lines"]


@dataclass(frozen=True, kw_only=True)
class TextConfig(Config):
    """How text is read and split."""

    splitter: SplitterName | None = setting(
        None,
        "How words are split. Use whitespace if spaces separate the words already.",
        default_text="english; for text that is mostly Chinese, unigram with the words of the model zh",
        group="Text",
    )
    word_list: str | None = setting(
        None,
        "File of words for the unigram splitter, most frequent first, one per line (`corpus vocab` writes one).",
        metavar="FILE",
        group="Text",
    )
    sentences: SentencesName | None = setting(
        None,
        "How sentences are split. Use lines if each line is a sentence.",
        default_text="english; lines for whitespace; chinese for chinese, characters and unigram",
        group="Text",
    )
    character_fraction: float = setting(
        0.0,
        "Fraction of the sentences that are split into characters instead of words, so that a model of Chinese reads both.",
        min=0,
        below=1,
        group="Text",
    )
    field: str | None = setting(
        None,
        "Field of JSON lines, or column of Parquet, that holds the text. If given, standard input and .json files are read "
        "as JSON lines too.",
        metavar="NAME",
        default_text="text",
        group="Text",
    )
    workers: int | None = setting(None, "Processes that split text.", min=0, default_text="one per core", group="Text")
    skip_bad_lines: bool = setting(False, "Skip lines that cannot be read instead of stopping.", group="Text")
    shards: str | None = setting(
        None,
        "Folder that keeps the encoded text, so that other runs can use it.",
        metavar="FOLDER",
        default_text="the output folder",
        group="Text",
    )

    def open(self, source: TextPaths | Source, splitter: Splitter | None = None, engine: TextEngine | None = None) -> Corpus:
        """Return the text as a corpus.

        `splitter`: that of a model, to use instead of the setting. `engine`: an engine that reads and splits the text.
        """
        from polyseme.text.corpus import Corpus

        return Corpus(
            source,
            splitter=splitter or self.splitter or ("english" if self.word_list is None else "unigram"),
            word_list=None if splitter else self.word_list,
            sentences=self.sentences,
            field=self.field,
            character_fraction=self.character_fraction,
            workers=self.workers,
            errors="skip" if self.skip_bad_lines else "strict",
            shards=self.shards,
            engine=engine,
        )
