"""A corpus as numbers on disk, encoded once and mapped into memory: what training reads.

A folder of shards holds

- `types.txt`: every distinct word, the marks first, then by falling count, ties in the order of the words. For a
  vocabulary of the V most frequent words the output id of type i is i below V, and that of `<UNK>` from there on; so
  the same shards serve every size of vocabulary, and character models have every word's spelling.
- `words.bin`: the types of all words, sentence after sentence without marks, 32 bits each, little-endian.
- `sentences.bin`: where each sentence begins in it, and where the last ends, 64 bits each.
- `counts.bin`: how often each type comes, 64 bits each.
- `manifest.json`: written last; sizes and checksums. Without a manifest that fits, the rest is not trusted.

The folder is named by the corpus' fingerprint, so that changed text or rules find no old numbers.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import FormatError
from polyseme.base.files import telling
from polyseme.base.progress import Advance
from polyseme.text.corpus import Corpus
from polyseme.text.shard_files import COUNTS, SENTENCES, TYPES, WORDS, Manifest, published
from polyseme.text.shard_writer import write_shards


class Shards:
    """An encoded corpus; `len()` is the number of sentences. Nothing is in memory but what is being looked at."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.fingerprint = manifest.fingerprint
        """Of the corpus that this is."""
        self.total = manifest.words
        """Words in all."""
        with telling(folder, "read"):
            self.words: NDArray[np.uint32] = np.memmap(folder / WORDS, dtype="<u4", mode="r")
            """The types of all words, (total,)."""
            self.offsets: NDArray[np.int64] = np.memmap(folder / SENTENCES, dtype="<i8", mode="r")
            """Where each sentence begins, and where the last ends, (sentences + 1,)."""
            self.counts: NDArray[np.int64] = np.memmap(folder / COUNTS, dtype="<i8", mode="r")
            """How often each type comes, (types,)."""

    @classmethod
    def open(cls, folder: str | Path) -> Shards:
        """Shards that were built before; a folder that is not whole is a `FormatError`."""
        folder = Path(folder)
        shards = cls(folder, Manifest.check(folder))
        if shards.offsets[0] != 0 or shards.offsets[-1] != shards.total:
            raise FormatError(folder / SENTENCES, f"does not cover the {shards.total:,} words of the shards")
        return shards

    @classmethod
    def build(cls, corpus: Corpus, folder: str | Path, progress: Advance | None = None) -> Shards:
        """The shards of a corpus, in a folder of their own in `folder`; encoded now, or found there whole.

        The distinct words are held in memory (about 150 bytes each), the text is not. A build that is stopped leaves
        nothing that is trusted, and the next one starts anew. `progress` is told the words.
        """
        fingerprint = corpus.fingerprint()
        place = Path(folder) / f"shards-{fingerprint[:16]}"

        def ready() -> Shards | None:
            try:
                found = cls.open(place)
            except FormatError:
                return None
            return found if found.fingerprint == fingerprint else None

        found = ready()
        if found is None:
            with published(place, lambda: ready() is not None) as part:
                write_shards(corpus, part, fingerprint, progress)
            found = cls.open(place)
        return found

    @functools.cached_property
    def types(self) -> list[str]:
        """Every distinct word; read when first asked for."""
        with telling(self.folder / TYPES, "read"):
            types = (self.folder / TYPES).read_text(encoding="utf-8").split("\n")[:-1]
        if len(types) != len(self.counts):
            raise FormatError(self.folder / TYPES, f"holds {len(types):,} words; expected {len(self.counts):,}")
        return types

    def sentence(self, place: int) -> NDArray[np.uint32]:
        """The types of one sentence, (words,)."""
        if not 0 <= place < len(self):
            raise IndexError(f"sentence {place} of {len(self)}")
        return self.words[self.offsets[place] : self.offsets[place + 1]]

    def __len__(self) -> int:
        return len(self.offsets) - 1
