"""Train: pre-train a language model on text, adapt one to a domain, train a task on labelled data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.api.arguments import (
    AnyCorpus,
)
from polyseme.base.errors import UsageError, arg
from polyseme.base.options import options_of

if TYPE_CHECKING:
    from polyseme.text.config import TextConfig
    from polyseme.text.corpus import Corpus


def large_pages() -> None:
    """Ask the system for memory in large pages, before PyTorch is loaded: on a CPU small ones cost a fifth of a step."""
    import os

    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


def corpus_of(source: AnyCorpus, text: TextConfig, given: Mapping[str, Any]) -> Corpus:
    """The text to train on: a `Corpus`, which says itself how it is read, or files and the options of reading them."""
    from polyseme.text.corpus import Corpus

    if isinstance(source, Corpus):
        if idle := [name for name in options_of({"text": text}) if name in given]:
            raise UsageError(f"{', '.join(map(arg, idle))}: a Corpus says itself how its text is read; set it there")
        return source
    return text.open([source] if isinstance(source, str | Path) else list(source))
