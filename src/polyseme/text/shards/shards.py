"""Shards: a corpus as numbers on disk, encoded once and memory-mapped. Training reads these.

A folder of shards holds

- `types.txt`: every distinct word (type): special tokens first, then by falling count, ties in the order of the words. For a
  vocabulary of the V most frequent words, type i has the output id i below V, and that of `<UNK>` from there on. So the same
  shards serve every vocabulary size, and character models see the spelling of every word.
- `words.bin`: the types of all words, sentence after sentence without special tokens, 32 bits each, little-endian.
- `sentences.bin`: where each sentence begins in it, and where the last ends, 64 bits each.
- `documents.bin`: the first sentence of each document, and their number, 64 bits each (see `split_documents`).
- `counts.bin`: how often each type occurs, 64 bits each.
- `manifest.json`: written last; sizes and checksums. Without a matching manifest the rest is not used.
- `spelling-*.bin`: the character ids of every type, added when a character model is trained (`shards/character_ids`).
- `running.bin`: the words with special tokens between sentences, added when documents are read (`batching/running_text`).

The fingerprint of the corpus names the folder, so changed text or rules never find old numbers.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import FormatError, PolysemeError
from polyseme.base.files import wrap_os_errors
from polyseme.base.progress import Advance
from polyseme.text.corpus import Corpus
from polyseme.text.shards.files import COUNTS, DOCUMENTS, SENTENCES, TYPES, WORDS, ShardManifest, build_once
from polyseme.text.shards.writer import write_shards


class Shards:
    """An encoded corpus; `len()` is the number of sentences. Only what is being read is in memory."""

    variant = ""
    """Added to the names of files that depend on the words, if these are not those of the text."""

    def __init__(
        self,
        words: NDArray[np.uint32],
        offsets: NDArray[np.int64],
        counts: NDArray[np.int64],
        *,
        fingerprint: str,
        folder: Path | None = None,
        types: list[str] | None = None,
        documents: NDArray[np.int64] | None = None,
    ) -> None:
        self.words, self.offsets, self.counts = words, offsets, counts
        """The types of all words, (total,); where each sentence begins and the last ends, (sentences + 1,); how often each
        type occurs, (types,)."""
        self.documents = documents
        """The first sentence of each document, and the number of sentences, (documents + 1,); None: not known."""
        self.fingerprint = fingerprint
        """The fingerprint of the corpus."""
        self.total = len(words)
        """Number of words."""
        self.folder = folder
        """Where the files are; None: everything is in memory, with `types`."""
        self._types = types

    @classmethod
    def open(cls, folder: str | Path) -> Shards:
        """Open a folder of shards; an incomplete one raises a `FormatError`."""
        folder = Path(folder)
        manifest = ShardManifest.check(folder)
        with wrap_os_errors(folder, "read"):
            words, offsets, counts = (
                np.memmap(folder / name, dtype=kind, mode="r")
                for name, kind in ((WORDS, "<u4"), (SENTENCES, "<i8"), (COUNTS, "<i8"))
            )
            documents = np.memmap(folder / DOCUMENTS, dtype="<i8", mode="r") if manifest.documents else None
        if offsets[0] != 0 or offsets[-1] != manifest.words:
            raise FormatError(folder / SENTENCES, f"does not cover the {manifest.words:,} words of the shards")
        return cls(words, offsets, counts, fingerprint=manifest.fingerprint, folder=folder, documents=documents)

    @classmethod
    def build(cls, corpus: Corpus, folder: str | Path, progress: Advance | None = None, *, only_known: bool = False) -> Shards:
        """Return the shards of a corpus, from a subfolder of `folder` or of `corpus.shards`; encode them if they are not there.

        Memory holds half a million distinct words, thirty bytes of each other one, and nothing of the text. An interrupted
        build leaves nothing behind that is used. If several processes (of torchrun on one machine) want the same shards, one
        builds them and the others wait. `progress` counts words. With `only_known`, shards of other text in the folder mean
        that the text has changed, which is an error.
        """
        fingerprint = corpus.fingerprint()
        if corpus.shards is not None:  # shared with other texts; a resumed run compares fingerprints itself
            folder, only_known = corpus.shards, False
        target = Path(folder) / f"shards-{fingerprint[:16]}"

        def ready() -> Shards | None:
            try:
                found = cls.open(target)
            except FormatError:
                return None
            return found if found.fingerprint == fingerprint else None

        if only_known and not target.exists() and any(Path(folder).glob("shards-*")):
            raise PolysemeError(
                f"the text, or how it is split, differs from that of the run in {folder}; "
                "use the same text and options to resume it, or choose another folder"
            )
        return build_once(target, ready, lambda part: write_shards(corpus, part, fingerprint, progress))

    @functools.cached_property
    def types(self) -> list[str]:
        """Every distinct word, in memory from the first use on: for small texts."""
        return list(itertools.chain.from_iterable(self.type_blocks()))

    def most_frequent(self, count: int) -> list[str]:
        """Return the first `count` types, special tokens included: a vocabulary."""
        return list(itertools.islice(itertools.chain.from_iterable(self.type_blocks()), count))

    def type_blocks(self, size: int = 8192) -> Iterator[list[str]]:
        """Yield every distinct word in order, in blocks, so that no more are in memory."""
        if self.folder is None:
            assert self._types is not None
            yield from (self._types[begin : begin + size] for begin in range(0, len(self._types), size))
            return
        path, seen = self.folder / TYPES, 0
        with wrap_os_errors(path, "read"), path.open(encoding="utf-8", newline="\n") as file:
            while block := [line.removesuffix("\n") for line in itertools.islice(file, size)]:
                seen += len(block)
                yield block
        if seen != len(self.counts):
            raise FormatError(path, f"has {seen:,} words; expected {len(self.counts):,}")

    def sentence(self, number: int) -> NDArray[np.uint32]:
        """Return the types of one sentence, (words,)."""
        if not 0 <= number < len(self):
            raise IndexError(f"sentence {number} of {len(self)}")
        return self.words[self.offsets[number] : self.offsets[number + 1]]

    def __len__(self) -> int:
        return len(self.offsets) - 1
