"""A corpus as numbers on disk, encoded once and mapped into memory: what training reads.

A folder of shards holds

- `types.txt`: every distinct word, the marks first, then by falling count, ties in the order of the words. For a
  vocabulary of the V most frequent words the output id of type i is i below V, and that of `<UNK>` from there on; so
  the same shards serve every size of vocabulary, and character models have every word's spelling.
- `words.bin`: the types of all words, sentence after sentence without marks, 32 bits each, little-endian.
- `sentences.bin`: where each sentence begins in it, and where the last ends, 64 bits each.
- `counts.bin`: how often each type comes, 64 bits each.
- `manifest.json`: written last; sizes and checksums. Without a manifest that fits, the rest is not trusted.
- `spelling-*.bin`: how every type is spelled for a model, added when one is first trained (see `text/shards/spelling`).

The folder is named by the corpus' fingerprint, so that changed text or rules find no old numbers.
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
from polyseme.text.shards.files import COUNTS, SENTENCES, TYPES, WORDS, ShardManifest, one_at_a_time, published
from polyseme.text.shards.writer import write_shards


class Shards:
    """An encoded corpus; `len()` is the number of sentences. Nothing is in memory but what is being looked at."""

    variant = ""
    """What is added to the names of files that depend on the words, where these are not those of the text."""

    def __init__(
        self,
        words: NDArray[np.uint32],
        offsets: NDArray[np.int64],
        counts: NDArray[np.int64],
        *,
        fingerprint: str,
        folder: Path | None = None,
        types: list[str] | None = None,
    ) -> None:
        self.words, self.offsets, self.counts = words, offsets, counts
        """The types of all words, (total,); where each sentence begins, and where the last ends, (sentences + 1,);
        how often each type comes, (types,)."""
        self.fingerprint = fingerprint
        """Of the corpus that this is."""
        self.total = len(words)
        """Words in all."""
        self.folder = folder
        """Where the files are; None: all is in memory, with `types`."""
        self._types = types

    @classmethod
    def open(cls, folder: str | Path) -> Shards:
        """Shards that were built before; a folder that is not whole is a `FormatError`."""
        folder = Path(folder)
        manifest = ShardManifest.check(folder)
        with wrap_os_errors(folder, "read"):
            words, offsets, counts = (
                np.memmap(folder / name, dtype=kind, mode="r")
                for name, kind in ((WORDS, "<u4"), (SENTENCES, "<i8"), (COUNTS, "<i8"))
            )
        if offsets[0] != 0 or offsets[-1] != manifest.words:
            raise FormatError(folder / SENTENCES, f"does not cover the {manifest.words:,} words of the shards")
        return cls(words, offsets, counts, fingerprint=manifest.fingerprint, folder=folder)

    @classmethod
    def build(cls, corpus: Corpus, folder: str | Path, progress: Advance | None = None, *, only_known: bool = False) -> Shards:
        """The shards of a corpus, in a folder of their own in `folder`, or where the corpus keeps them; encoded now, or found.

        Half a million distinct words are held in memory, thirty bytes of each of the others, and nothing of the text. A
        build that is stopped leaves nothing that is trusted, and the next one starts anew. Of several processes that want
        the same shards (those of torchrun on one machine), one builds and the others wait for it. `progress` is told the
        words. With `only_known`, shards of other text in the folder mean that the text has changed, which is an error.
        """
        fingerprint = corpus.fingerprint()
        if corpus.shards is not None:  # with those of other texts; a run that goes on compares fingerprints itself
            folder, only_known = corpus.shards, False
        place = Path(folder) / f"shards-{fingerprint[:16]}"

        def ready() -> Shards | None:
            try:
                found = cls.open(place)
            except FormatError:
                return None
            return found if found.fingerprint == fingerprint else None

        found = ready()
        if found is None and only_known and not place.exists() and any(Path(folder).glob("shards-*")):
            raise PolysemeError(
                f"the text, or how it is split, is not what the run in {folder} began with; "
                "give the same text and options to go on, or choose another folder"
            )
        if found is None:
            with one_at_a_time(place):
                found = ready()
                if found is None:
                    with published(place, lambda: ready() is not None) as part:
                        write_shards(corpus, part, fingerprint, progress)
                    found = cls.open(place)
        return found

    @functools.cached_property
    def types(self) -> list[str]:
        """Every distinct word, kept in memory when first asked for: for looking at small texts."""
        return list(itertools.chain.from_iterable(self.type_blocks()))

    def most_frequent(self, count: int) -> list[str]:
        """The first so many types, the marks counted: a vocabulary."""
        return list(itertools.islice(itertools.chain.from_iterable(self.type_blocks()), count))

    def type_blocks(self, size: int = 8192) -> Iterator[list[str]]:
        """Every distinct word in order, some at a time, so that no more are in memory."""
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
            raise FormatError(path, f"holds {seen:,} words; expected {len(self.counts):,}")

    def sentence(self, place: int) -> NDArray[np.uint32]:
        """The types of one sentence, (words,)."""
        if not 0 <= place < len(self):
            raise IndexError(f"sentence {place} of {len(self)}")
        return self.words[self.offsets[place] : self.offsets[place + 1]]

    def __len__(self) -> int:
        return len(self.offsets) - 1
