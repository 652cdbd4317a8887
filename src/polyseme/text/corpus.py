"""A corpus: sentences of words from files of any size, the same on every pass.

Text is streamed: a pass holds a few blocks of a quarter of a megabyte. One process reads and unpacks, the others split
sentences and words, and results come in the order of the text, so that the number of workers changes nothing but the
time.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from polyseme.base.errors import UsageError
from polyseme.base.files import telling
from polyseme.base.progress import Advance
from polyseme.text.files.paragraphs import text_of
from polyseme.text.files.sources import Bad, Places, Source
from polyseme.text.files.workers import cores, in_order
from polyseme.text.sentences import sentence_splitter
from polyseme.text.shards.blocks import Block, Cutter
from polyseme.text.splitting.likeliest import LikeliestSplitter
from polyseme.text.words import Splitter, splitter

if TYPE_CHECKING:
    from polyseme.text.report import Report

RULES = 2
"""Raised whenever a splitter gives other words or sentences than before: what was encoded by older rules is made anew."""

_WORTH_WORKERS = 4 << 20  # bytes of text that one process splits before others would have started (0.5 s)
_MOST_WORKERS = 16  # the reader feeds no more


class Corpus:
    """Re-iterable sentences of words.

    >>> import tempfile, pathlib; path = pathlib.Path(tempfile.mkdtemp(), "a.txt")
    >>> _ = path.write_text("It's late. Mr. Poe left.")
    >>> list(Corpus(path))
    [['It', "'s", 'late', '.'], ['Mr.', 'Poe', 'left', '.']]
    """

    def __init__(
        self,
        source: Places | Source,
        *,
        words: str | Splitter = "english",
        sentences: str = "english",
        normalise_quotes: bool | None = None,
        workers: int | None = None,
        field: str | None = None,
        bad: Bad = "stop",
        shards: str | Path | None = None,
    ) -> None:
        """A source is a path, a glob, a list of these, or `-`; `words` is a splitter or the name of one.

        Not given, `normalise_quotes` is true for English words only, and `workers` is a process for each core where the text
        is worth it; 0 splits in this process. `shards` is a folder where what is encoded of the text is kept, so that
        several runs find it there; not given, each run has its own.
        """
        if workers is not None and workers < 0:
            raise UsageError(f"workers is {workers}; allowed: 0 (this process only) or more, or None")
        cut = splitter(words) if isinstance(words, str) else words
        straight = cut.name == "english" if normalise_quotes is None else normalise_quotes
        self.cutter = Cutter(cut, sentence_splitter(sentences), straight)
        self.cutter.words("")  # a package that it lacks is told here, and not by a worker
        self.source = source if isinstance(source, Source) else Source(source, field=field, bad=bad)
        self.workers = workers
        self.shards = None if shards is None else Path(shards)
        if self.shards is not None and self.shards.exists() and not self.shards.is_dir():
            raise UsageError(f"shards is {self.shards}, which is a file; give a folder, which is made where it is not there")

    def __iter__(self) -> Iterator[list[str]]:
        if self._processes() == 0:
            for chunk in self.source.chunks():
                yield from self.cutter.sentences_of(chunk.text)
        else:
            for block in self.blocks():
                yield from block.sentences()

    def blocks(self, progress: Advance | None = None) -> Iterator[Block]:
        """The same sentences as blocks, for what handles many at a time; `progress` is told the words."""
        for _, block in in_order(self.cutter.block_of, self.source.chunks(), text_of, self._processes()):
            yield block
            if progress is not None:
                progress(len(block.ids))

    def check(self, progress: Advance | None = None) -> Report:
        """One pass over the text that counts what there is and what is wrong with it."""
        from polyseme.text.report import examine

        return examine(self.source, self.cutter, self._processes(), progress)

    def settings(self) -> dict[str, str | int | bool]:
        """All that decides the words but the files themselves."""
        settings: dict[str, str | int | bool] = {
            "words": self.cutter.words.name,
            "sentences": self.cutter.sentences.name,
            "normalise_quotes": self.cutter.straight_quotes,
            "field": self.source.field,
            "bad": self.source.bad,
            "rules": RULES,
            "unicode": unicodedata.unidata_version,
        }
        if self.cutter.words.name == "chinese":
            settings["rjieba"] = metadata.version("rjieba")
        if isinstance(self.cutter.words, LikeliestSplitter):
            settings["word_list"] = self.cutter.words.fingerprint
        return settings

    def fingerprint(self) -> str:
        """A name for exactly these sentences: a hash of the files' content, their order and the settings.

        Neither names nor times are part of it, so that a copied folder is the same corpus; it reads all files (about
        a second a gigabyte).
        """
        whole = hashlib.sha256(json.dumps(self.settings(), sort_keys=True).encode())
        for file in self.source.files:
            with telling(file.name, "read"), file.path.open("rb") as opened:
                content = hashlib.file_digest(opened, "sha256")
            whole.update(content.digest() + (b"json" if file.holds_json else b"text"))
        return whole.hexdigest()

    def _processes(self) -> int:
        if self.workers is not None:
            return self.workers
        few = cores() < 2 or self.source.size() < _WORTH_WORKERS
        return 0 if few else min(cores(), _MOST_WORKERS)
