"""Exercises of chapter 8. Write the three functions, then check them:

python -m pytest course/exercises/check_08.py
"""

from __future__ import annotations


def spans(tags: list[str]) -> list[tuple[str, int, int]]:
    """Return the spans of BIO tags as (type, begin, end), from left to right; `end` is after the last word.

    ["B-PER", "I-PER", "O", "B-LOC"] gives [("PER", 0, 2), ("LOC", 3, 4)]. A `B-` always begins a new span. You may
    assume that an `I-` always continues a span of its type.
    """
    raise NotImplementedError("spans")


def span_f1(gold: list[list[str]], predicted: list[list[str]]) -> float:
    """Return the F1 of the spans of all sentences together, from 0 to 1.

    A span is right if its type, its begin and its end are right. F1 is 2 * right / (gold spans + predicted spans); 0 if
    there are no spans at all.
    """
    raise NotImplementedError("span_f1")


def allowed_transitions(labels: list[str]) -> list[list[bool]]:
    """Return a table: entry [i][j] says whether labels[j] may come directly after labels[i].

    `O` and every `B-` may come after anything. `I-PER` may come only after `B-PER` or `I-PER`.
    """
    raise NotImplementedError("allowed_transitions")
