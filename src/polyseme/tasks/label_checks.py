"""Labels as people write them: one class in several spellings, rows that repeat, classes with too few examples."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

FEWEST = 3
"""Classes with fewer examples are reported."""
LARGEST = 0.95
"""A class with a larger share of the examples is reported."""
_SHOWN = 5


def merge_spellings(
    examples: Sequence[Any], known: Sequence[str] | None, *, strict: bool = False
) -> tuple[list[Any], dict[str, str]]:
    """Return examples in which labels that differ only in case or blanks are one, and the new name of each label.

    The most frequent spelling is kept. `known`: labels that are, and that others are matched with. `strict`: change nothing.
    """
    counts = Counter(example.label for example in examples if example.label is not None)
    names = {} if strict else _names(counts, known)
    if not names:
        return list(examples), {}
    changed = [dataclasses.replace(each, label=names[each.label]) if each.label in names else each for each in examples]
    return changed, names


def _names(counts: Counter[str], known: Sequence[str] | None) -> dict[str, str]:
    """Return the new name of each label that has one.

    >>> _names(Counter({"neg": 5, "Neg": 2, "pos": 4}), None), _names(Counter({"POS": 1, "x": 1}), ["pos", "neg"])
    ({'Neg': 'neg'}, {'POS': 'pos'})
    """
    order = known if known is not None else [label for label, _ in sorted(counts.items(), key=lambda each: (-each[1], each[0]))]
    kept: dict[str, str] = {}
    for label in order:
        kept.setdefault(_folded(label), label)
    exact = set(known or ())
    found = {label: kept.get(_folded(label), label) for label in counts if label not in exact}
    return {label: name for label, name in found.items() if name != label}


def _folded(label: str) -> str:
    return "".join(label.split()).casefold()


def spelling_messages(names: Mapping[str, str]) -> list[str]:
    """Say which labels are read as which.

    >>> spelling_messages({"Neg": "neg", "NEG": "neg"})
    ["labels that differ only in case or blanks are one: 'NEG' and 'Neg' are read as 'neg'"]
    """
    spellings: dict[str, list[str]] = {}
    for label, name in sorted(names.items()):
        spellings.setdefault(name, []).append(repr(label))
    merged = "; ".join(f"{' and '.join(labels)} are read as {name!r}" for name, labels in spellings.items())
    return [f"labels that differ only in case or blanks are one: {merged}"] if merged else []


def label_problems(texts: Sequence[Hashable], labels: Sequence[str | None], *, classes: bool = True) -> list[str]:
    """Return what to know of labelled texts: repeated rows, texts with several labels, rare and dominating classes."""
    total = len(texts)
    found = []
    rows = Counter(zip(texts, labels, strict=True))
    if repeated := total - len(rows):
        found.append(f"{repeated:,} of {total:,} rows repeat another: the same text and label")
    of_texts: dict[Hashable, set[str | None]] = {}
    for text, label in rows:
        of_texts.setdefault(text, set()).add(label)
    if disputed := [text for text, several in of_texts.items() if len(several) > 1]:
        example = " | ".join(disputed[0]) if isinstance(disputed[0], tuple) else str(disputed[0])
        many = "1 text has" if len(disputed) == 1 else f"{len(disputed):,} texts have"
        found.append(f"{many} several labels, such as {example[:60]!r}")
    return [*found, *_class_problems(Counter(label for label in labels if label is not None))] if classes else found


def _class_problems(counts: Counter[str]) -> list[str]:
    found = []
    if rare := sorted((label for label, count in counts.items() if count < FEWEST), key=lambda label: (counts[label], label)):
        shown = ", ".join(f"{label} ({counts[label]})" for label in rare[:_SHOWN]) + (" ..." if len(rare) > _SHOWN else "")
        found.append(f"{len(rare):,} of {len(counts):,} classes have fewer than {FEWEST} examples: {shown}")
    label, most = counts.most_common(1)[0]
    if len(counts) > 1 and most > LARGEST * counts.total():
        found.append(f"{most / counts.total():.1%} of the examples have the label {label!r}; a network may predict it always")
    return found
