"""Solutions of the exercises of chapter 8."""

from __future__ import annotations


def spans(tags: list[str]) -> list[tuple[str, int, int]]:
    found, begin = [], None
    for position, tag in enumerate([*tags, "O"]):
        if begin is not None and not tag.startswith("I-"):
            found.append((tags[begin][2:], begin, position))
            begin = None
        if tag.startswith("B-"):
            begin = position
    return found


def span_f1(gold: list[list[str]], predicted: list[list[str]]) -> float:
    one = {(number, *span) for number, tags in enumerate(gold) for span in spans(tags)}
    other = {(number, *span) for number, tags in enumerate(predicted) for span in spans(tags)}
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 0.0


def allowed_transitions(labels: list[str]) -> list[list[bool]]:
    def follows(before: str, tag: str) -> bool:
        return not tag.startswith("I-") or before in ("B-" + tag[2:], tag)

    return [[follows(before, tag) for tag in labels] for before in labels]
