"""Tasks that are asked with two texts at once: a pair to be judged, a question and a paragraph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from polyseme.base.errors import FormatError, UsageError
from polyseme.tasks.base import Task


class SentencePairTask(Task):
    """A task whose lines hold two texts divided by a tab; on the command line each may be an argument of its own."""

    wants: ClassVar[str]
    """What it does with them, for messages: "judges pairs"."""

    def lines_from_arguments(self, texts: Sequence[str]) -> list[str]:
        if all("\t" in text for text in texts):
            return list(texts)
        if len(texts) != 2 or any("\t" in text for text in texts):
            what = "give TEXT twice, or both as one TEXT with a tab between"
            raise UsageError(f"this task {self.wants}: {what}; got {len(texts)}")
        return ["\t".join(texts)]

    def parse_line(self, line: str, where: str, *, split_on_spaces: bool = False) -> Any:
        """Both texts."""
        texts = line.split("\t")
        if len(texts) != 2:
            given = "1 text" if len(texts) == 1 else f"{len(texts):,} texts"
            raise FormatError(where, f"holds {given}; this task {self.wants}: two texts divided by a tab")
        first, second = (text.split() if split_on_spaces else text for text in texts)
        return first, second
