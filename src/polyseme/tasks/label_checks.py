"""Labels as people write them: one class in several spellings, numbers as classes, repeated rows, rare classes."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from polyseme.base.errors import UsageError, arg
from polyseme.text.labelled.column_names import NUMBER
from polyseme.text.labelled.label_lines import PREFIX

MIN_CLASS_EXAMPLES = 3
"""Classes with fewer examples are reported."""
LARGEST = 0.95
"""A class with a larger share of the examples is reported."""
_ITEMS_SHOWN = 5  # lines or labels
_MAX_DECIMAL_CLASSES = 20  # more different numbers with decimals are no classes
_ROWS_TO_JUDGE = 20  # from which labels that differ in nearly all rows are reported
_UNIQUE_SHARE = 0.8  # of the rows with a label of their own: nothing can be learned of classes
_DECIMAL_COMMA = re.compile(r"[+-]?\d+(?:,\d+)?")
_SEPARATORS = (",", ";", "|")
_NO_LABEL = ("None", "NA")  # as Python and R write it; they may be classes, too
_WHOLE = re.compile(r"([+-]?\d+)\.0+")


def merge_spellings(
    examples: Sequence[Any], known: Sequence[str] | None, *, strict: bool = False
) -> tuple[list[Any], dict[str, str]]:
    """Return examples in which labels that differ only in case or blanks, or are equal whole numbers (1 and 1.0), are one.

    Also return the new name of each label. The most frequent spelling is kept, of numbers the one without decimals.
    `known`: labels that are, and that others are matched with. `strict`: change nothing.
    """
    counts = Counter(example.label for example in examples if example.label is not None)
    names = {} if strict else merged_names(counts, known)
    if not names:
        return list(examples), {}
    changed = [dataclasses.replace(each, label=names[each.label]) if each.label in names else each for each in examples]
    return changed, names


def merged_names(counts: Counter[str], known: Sequence[str] | None) -> dict[str, str]:
    """Return the new name of each label that has one; see `merge_spellings`.

    >>> merged_names(Counter({"neg": 5, "Neg": 2, "pos": 4}), None), merged_names(Counter({"POS": 1, "x": 1}), ["pos", "neg"])
    ({'Neg': 'neg'}, {'POS': 'pos'})
    >>> merged_names(Counter({"1.0": 5, "1": 2, "0.5": 4}), None)
    {'1.0': '1'}
    >>> merged_names(Counter({"1": 1, "pos": 1}), ["1.0", "__label__pos"])
    {'1': '1.0', 'pos': '__label__pos'}
    """
    order = known if known is not None else sorted(counts, key=lambda each: (bool(_WHOLE.fullmatch(each)), -counts[each], each))
    kept: dict[str, str] = {}
    for label in order:
        kept.setdefault(_folded(label), label)
    exact = set(known or ())
    found = {label: kept.get(_folded(label), label) for label in counts if label not in exact}
    return {label: name for label, name in found.items() if name != label}


def _folded(label: str) -> str:
    """Return what spellings of a label have in common; tasks of older versions have the prefix of fastText in their labels."""
    plain = "".join(label.split()).casefold().removeprefix(PREFIX)
    return number[1] if (number := _WHOLE.fullmatch(plain)) else plain


def spelling_messages(names: Mapping[str, str]) -> list[str]:
    """Say which labels are read as which.

    >>> spelling_messages({"Neg": "neg", "NEG": "neg"})
    ["labels that differ only in case or blanks are one: 'NEG' and 'Neg' are read as 'neg'"]
    >>> spelling_messages({"1.0": "1"})
    ["labels that are the same number are one: '1.0' are read as '1'"]
    """
    spellings: dict[str, dict[str, list[str]]] = {}
    for label, name in sorted(names.items()):
        kind = "are the same number" if NUMBER.fullmatch(label) else "differ only in case or blanks"
        spellings.setdefault(kind, {}).setdefault(name, []).append(repr(label))
    merged = {
        kind: "; ".join(f"{' and '.join(labels)} are read as {name!r}" for name, labels in each.items())
        for kind, each in sorted(spellings.items())
    }
    return [f"labels that {kind} are one: {each}" for kind, each in merged.items()]


def label_problems(
    texts: Sequence[Hashable], labels: Sequence[str | None], *, classes: bool = True, lines: Sequence[int | None] = ()
) -> list[str]:
    """Return what to know of labelled texts: repeated rows, texts with several labels, rare and dominating classes.

    `lines`: where each text is in its file.
    """
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
        where = [str(line) for text, line in zip(texts, lines, strict=bool(lines)) if text == disputed[0] and line]
        more = " ..." if len(where) > _ITEMS_SHOWN else ""
        at = f" (lines {', '.join(where[:_ITEMS_SHOWN])}{more})" if where else ""
        found.append(f"{many} several labels, such as {example[:60]!r}{at}")
    return [*found, *_class_problems(Counter(label for label in labels if label is not None))] if classes else found


def number_problems(labels: Sequence[str | None]) -> list[str]:
    """Say that labels of single texts are many numbers with decimals, no classes; an error if nearly each row has its own."""
    counts = Counter(label for label in labels if label is not None)
    decimals = _decimals(counts)
    if len(decimals) <= max(_MAX_DECIMAL_CLASSES, len(counts) / 2):
        return []
    shown = ", ".join(list(counts)[:3])
    what = f"the labels are {len(counts):,} different numbers ({shown} ...), and classification needs classes"
    advice = f"scores of pairs of texts are learned by the task pairs with {arg('goal', 'score')}"
    if len(counts) >= _UNIQUE_SHARE * counts.total():
        raise UsageError(f"{what}: make classes of them, or give another column with {arg('label')}; {advice}")
    return [f"{what}; {advice}"]


def combined_problems(labels: Sequence[str | None]) -> list[str]:
    """Say that labels are lists of several, as `a,b` beside `a` and `b,c`.

    >>> combined_problems(["a,b", "a", "b,c", "a,c"])
    ["some labels are lists, such as 'a,b': several labels of a text are not supported, and each list is read as one class"]
    """
    names = {label for label in labels if label is not None}
    if all(_DECIMAL_COMMA.fullmatch(name) for name in names):
        return []
    for separator in _SEPARATORS:
        parts = {name: {part.strip() for part in name.split(separator)} for name in names}
        counts = Counter(part for each in parts.values() for part in each)
        lists = [name for name in names if len(parts[name]) > 1 and any(counts[part] > 1 for part in parts[name])]
        if len(lists) > 1 and len(lists) >= len(names) / 3:
            what = "several labels of a text are not supported, and each list is read as one class"
            return [f"some labels are lists, such as {min(lists)!r}: {what}"]
    return []


def rare_problems(counts: Counter[str], what: str) -> list[str]:
    """Say which labels have few examples; `what` they are, as a plural.

    >>> rare_problems(Counter({"PER": 90, "PRE": 1}), "types of spans")
    ['1 of 2 types of spans has fewer than 3 examples, too few to learn it: PRE (1)']
    """
    rare = sorted(
        (label for label, count in counts.items() if count < MIN_CLASS_EXAMPLES), key=lambda label: (counts[label], label)
    )
    if not rare:
        return []
    shown = ", ".join(f"{label} ({counts[label]})" for label in rare[:_ITEMS_SHOWN]) + (
        " ..." if len(rare) > _ITEMS_SHOWN else ""
    )
    has, learn = ("has", "it") if len(rare) == 1 else ("have", "them")
    few = f"{has} fewer than {MIN_CLASS_EXAMPLES} examples, too few to learn {learn}"
    return [f"{len(rare):,} of {len(counts):,} {what} {few}: {shown}"]


def own_labels(labels: Sequence[str | None]) -> str:
    """Say that (nearly) every row has a label of its own, so that nothing can be learned; empty where classes repeat.

    Numbers with decimals are left to `number_problems`, which knows more of them.

    >>> own_labels([f"id{number}" for number in range(30)])
    'the labels of 30 rows are 30 different ones (id0, id1, id2 ...), so nothing can be learned'
    """
    counts = Counter(label for label in labels if label is not None)
    if not _are_own(counts) or len(_decimals(counts)) > len(counts) / 2:
        return ""
    shown = ", ".join(list(counts)[:3])
    return f"the labels of {counts.total():,} rows are {len(counts):,} different ones ({shown} ...), so nothing can be learned"


def _are_own(counts: Counter[str]) -> bool:
    return counts.total() >= _ROWS_TO_JUDGE and len(counts) >= _UNIQUE_SHARE * counts.total()


def _decimals(labels: Iterable[str]) -> list[str]:
    return [label for label in labels if NUMBER.fullmatch(label) and not float(label).is_integer()]


def _class_problems(counts: Counter[str]) -> list[str]:
    if _are_own(counts):
        return []  # an error says so
    found = [f"{each}; macro_f1 counts each class alike" for each in rare_problems(counts, "classes")]
    for name in _NO_LABEL:
        if name in counts and len(counts) > 2:
            many = "1 example" if counts[name] == 1 else f"{counts[name]:,} examples"
            found.append(f"{name!r} is read as a class ({many}); if it means that there is no label, leave the cells empty")
    label, most = counts.most_common(1)[0]
    if len(counts) > 1 and most > LARGEST * counts.total():
        found.append(f"{most / counts.total():.1%} of the examples have the label {label!r}; a network may predict it always")
    return found
