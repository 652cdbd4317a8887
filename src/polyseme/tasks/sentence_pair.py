"""Tasks whose input is a pair of texts: two sentences, or a question and a paragraph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from polyseme.base.errors import FormatError, UsageError
from polyseme.tasks.base import Task


class SentencePairTask(Task):
    """A task whose lines are two texts with a tab between; on the command line they may be two arguments."""

    texts_per_line = 2
    pair_description: ClassVar[str]
    """What the pair is, for messages: "a question and a paragraph"."""

    def lines_from_arguments(self, texts: Sequence[str]) -> list[str]:
        if all("\t" in text for text in texts):
            return list(texts)
        if len(texts) != 2 or any("\t" in text for text in texts):
            what = "give TEXT twice, or both as one TEXT with a tab between"
            raise UsageError(f"this task reads {self.pair_description}: {what}; got {len(texts)}")
        return ["\t".join(texts)]

    def parse_line(self, line: str, where: str, *, split_on_spaces: bool = False) -> Any:
        texts = line.split("\t")
        if len(texts) != 2:
            given = "1 text" if len(texts) == 1 else f"{len(texts):,} texts"
            raise FormatError(where, f"has {given}; this task reads {self.pair_description}: two texts with a tab between")
        first, second = (text.split() if split_on_spaces else text for text in texts)
        return first, second
