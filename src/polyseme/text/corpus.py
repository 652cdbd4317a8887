"""A corpus: sentences of words from files of any size, the same on every pass.

Text is streamed in blocks of a quarter of a megabyte. One process reads and decompresses, the others split sentences and
words. Results come in the order of the text, so the number of workers changes only the time.
"""

from __future__ import annotations

import hashlib
import json
import os
import unicodedata
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.base import format1
from polyseme.base.errors import UsageError, arg
from polyseme.base.files import wrap_os_errors
from polyseme.base.progress import Advance
from polyseme.text.files.parallel_map import cpu_count, parallel_map
from polyseme.text.files.reader import Chunk, TextEngine, chunk_text
from polyseme.text.files.sources import OnBadLine, Source, TextPaths
from polyseme.text.sentences import SentenceSplitter
from polyseme.text.shards.blocks import Block, TextSplitter
from polyseme.text.words import Splitter, get_splitter

if TYPE_CHECKING:
    from polyseme.text.corpus_report import CorpusReport

RULES = 2
"""Raised whenever a splitter gives other words or sentences than before, so that shards of the old rules are not reused."""

DEFAULT_SENTENCES = {
    "english": "english",
    "chinese": "chinese",
    "characters": "chinese",
    "each-character": "chinese",
    "unigram": "chinese",
    "whitespace": "lines",
}
"""The sentence splitter that goes with a splitter by default."""

_MIN_BYTES = 4 << 20  # one process splits so much text before others would have started (0.5 s)
_MAX_WORKERS = 16  # one reader feeds no more


class Corpus:
    """Re-iterable sentences of words.

    >>> import tempfile, pathlib; path = pathlib.Path(tempfile.mkdtemp(), "a.txt")
    >>> _ = path.write_text("It's late. Mr. Poe left.")
    >>> list(Corpus(path))
    [['It', "'s", 'late', '.'], ['Mr.', 'Poe', 'left', '.']]
    """

    def __init__(
        self,
        source: TextPaths | Source,
        *,
        splitter: str | Splitter = "english",
        word_list: str | os.PathLike[str] | None = None,
        sentences: str | None = None,
        normalise_quotes: bool | None = None,
        field: str | None = None,
        character_fraction: float = 0.0,
        workers: int | None = None,
        errors: OnBadLine = "strict",
        shards: str | Path | None = None,
        engine: TextEngine | None = None,
    ) -> None:
        """Open text: a path, a glob, a list of these, or `-` for standard input. Nothing is read yet.

        Args:
            source: Files of plain text, JSON lines or Parquet, compressed or not.
            splitter: How words are split: a name (see `polyseme.text.words`) or a splitter, such as that of a model.
            word_list: For `unigram`: a file of words, most frequent first, one per line.
            sentences: How sentences are split: english, chinese or lines. Default: as fits the splitter.
            normalise_quotes: Whether curly quotes become straight. Default: for English only.
            field: The field of JSON lines, or column of Parquet, that holds the text. Default: text.
            character_fraction: The fraction of the sentences that are split into characters instead of words.
            workers: Processes that split text; 0 splits in this process. Default: one per core if the text is large.
            errors: What to do with lines that cannot be read: "strict" raises an error, "skip" drops and counts them.
            shards: A folder where the encoded text is kept for other runs. Default: each run keeps its own.
            engine: What reads and splits the text instead of processes of this machine (`polyseme.scale.chunk_map`).
        """
        if workers is not None and workers < 0:
            raise UsageError(f"{arg('workers', workers)} is negative; allowed: 0 (no other processes) or more")
        splitter = get_splitter(splitter, word_list) if isinstance(splitter, str) else splitter
        sentences = sentences or DEFAULT_SENTENCES.get(splitter.name, "lines")
        straight = splitter.name == "english" if normalise_quotes is None else normalise_quotes
        self.text_splitter = TextSplitter(splitter, SentenceSplitter(sentences), straight, character_fraction)
        splitter("")  # a missing package is reported here and not by a worker
        self.source = source if isinstance(source, Source) else Source(source, field=field, errors=errors)
        self.workers = workers
        self.engine = engine
        self.shards = None if shards is None else Path(shards)
        if self.shards is not None and self.shards.exists() and not self.shards.is_dir():
            raise UsageError(f"{arg('shards', self.shards)} is a file; give a folder, which may be new")

    @property
    def splitter(self) -> Splitter:
        """How words are split."""
        return self.text_splitter.words

    @property
    def normalise_quotes(self) -> bool:
        """Whether curly quotes become straight."""
        return self.text_splitter.straight_quotes

    def __iter__(self) -> Iterator[list[str]]:
        if self.engine is None and self.processes() == 0:
            for chunk in self.source.chunks():
                yield from self.text_splitter.sentences_of(chunk.text)
        else:
            for block in self.blocks():
                yield from block.sentences()

    def blocks(self, progress: Advance | None = None) -> Iterator[Block]:
        """Yield the same sentences in blocks, for code that handles many at a time; `progress` counts words."""
        for _, block in self._map_chunks(self.text_splitter.block_of, self.source):
            yield block
            if progress is not None:
                progress(len(block.ids))

    def check(self, progress: Advance | None = None) -> CorpusReport:
        """Read the text once and report what it holds and what is wrong with it."""
        from polyseme.text.corpus_report import check_corpus

        return check_corpus(self.source, self.text_splitter, self._map_chunks, progress)

    def _map_chunks(self, function: Callable[[str], Any], source: Source) -> Iterator[tuple[Chunk, Any]]:
        if self.engine is not None:
            return self.engine(function, source)
        return parallel_map(function, source.chunks(), chunk_text, self.processes())

    def fingerprint(self) -> str:
        """Return a hash that names exactly these sentences: the files' content, their order, and how they are split.

        File names and times are not part of it, so a copied folder is the same corpus. It reads all files (about a second
        per gigabyte).
        """
        digest = hashlib.sha256(json.dumps(self._hashed_settings(), sort_keys=True).encode())
        for file in self.source.files:
            with wrap_os_errors(file.name, "read"), file.path.open("rb") as opened:
                content = hashlib.file_digest(opened, "sha256")
            digest.update(content.digest() + (b"json" if file.holds_json else b"text"))
        return digest.hexdigest()

    def _hashed_settings(self) -> dict[str, str | float | bool]:
        """Return all that decides the words, besides the files; under the names of format 1, so that hashes stay valid."""
        settings: dict[str, str | float | bool] = {
            "words": format1.old_name(format1.SPLITTERS, self.splitter.name),
            "sentences": self.text_splitter.sentences.name,
            "normalise_quotes": self.normalise_quotes,
            "field": self.source.field,
            "bad": "skip" if self.source.errors == "skip" else "stop",
            "rules": RULES,
            "unicode": unicodedata.unidata_version,
        }
        if self.splitter.name == "chinese":
            settings["rjieba"] = metadata.version("rjieba")
        if self.text_splitter.character_fraction:
            settings["character_fraction"] = self.text_splitter.character_fraction
        if fingerprint := getattr(self.splitter, "fingerprint", None):
            settings["word_list"] = fingerprint
        return settings

    def processes(self) -> int:
        """Return the number of worker processes; 0: none but this one."""
        if self.workers is not None:
            return self.workers
        few = cpu_count() < 2 or self.source.size() < _MIN_BYTES
        return 0 if few else min(cpu_count(), _MAX_WORKERS)
