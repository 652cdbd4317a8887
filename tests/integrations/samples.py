"""Sentences for the tests of all integrations, and small parts of public data sets."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from polyseme.text.labelled.conll import TaggedSentence, read_conll

SENTENCES = ["The bank of the river .", "Money in the bank .", "A cat sat on the mat ."]


def data_file(name: str) -> Path:
    path = Path(os.environ.get("POLYSEME_DATA") or "absent", "tasks", name)
    if not path.exists():
        pytest.skip(f"real data: set POLYSEME_DATA to a folder with tasks/{name}")
    return path


def questions(part: str, count: int) -> tuple[list[str], list[str]]:
    """Questions of TREC and their types."""
    lines = data_file(f"sentence_classification_en/TREC.{part}.all").read_text(encoding="latin-1").splitlines()[:count]
    labels, texts = zip(*(line.split(" ", 1) for line in lines), strict=True)
    return list(texts), list(labels)


def parts_of_speech(part: str, count: int) -> list[TaggedSentence]:
    """Sentences of the English Web Treebank with universal parts of speech."""
    return read_conll(data_file(f"pos_ud_english_ewt/en_ewt-ud-{part}.conllu.gz"), strict=False)[:count]


def names_of_news(part: str, count: int) -> list[TaggedSentence]:
    """The first sentences of CoNLL-2003 that have words, with its names."""
    return read_conll(data_file(f"ner_conll2003_en/eng.{part}"), strict=False)[:count]


def majority(labels: list[str], gold: list[str]) -> float:
    """The accuracy of the most frequent label."""
    most = Counter(labels).most_common(1)[0][0]
    return sum(label == most for label in gold) / len(gold)
