"""Words in their sentences, aligned as a concordance prints them (KWIC): the word in the middle column."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from polyseme.base.display import short


def join_words(words: Sequence[str], mark: int | None = None) -> str:
    """Join words with spaces, but not between Chinese ones; the word at `mark` is in brackets.

    >>> join_words(["The", "bank", "."], mark=1), join_words(["我", "在", "银行", "ATM", "前"], mark=2)
    ('The [bank] .', '我在[银行] ATM 前')
    """
    parts: list[str] = []
    for position, word in enumerate(words):
        before = words[position - 1][-1:] if position else ""
        if position and not cell_len(before) == 2 == cell_len(word[:1]):
            parts.append(" ")
        parts.append(f"[{word}]" if position == mark else word)
    return "".join(parts)


def concordance(occurrences: Sequence[tuple[Sequence[str], int]], width: int) -> list[str]:
    """Return a line for each sentence and position, cut on both sides to a width, with the words in brackets aligned.

    >>> for line in concordance([(["the", "river", "bank"], 2), (["a", "bank", "loan", "again"], 1)], 26): print(line)
    the river [bank]
            a [bank] loan aga…
    """
    lefts = [_printable(join_words(words[:position])) for words, position in occurrences]
    middles = [f"[{short(words[position], 24)}]" for words, position in occurrences]
    rights = [_printable(join_words(words[position + 1 :])) for words, position in occurrences]
    middle_width = max(map(cell_len, middles), default=0)
    width = max(width, middle_width + 18)
    room = width - middle_width - 2  # a space on both sides of the word
    needed = max(map(cell_len, rights), default=0)
    left = min(max(map(cell_len, lefts), default=0), max(room // 2, room - needed))
    lines = []
    for before, middle, after in zip(lefts, middles, rights, strict=True):
        begin = _cut_left(before, left)
        rest = short(after, width - left - 2 - cell_len(middle))
        lines.append(f"{' ' * (left - cell_len(begin))}{begin} {middle} {rest}".rstrip())
    return lines


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _cut_left(text: str, width: int) -> str:
    """Cut the beginning of a text so that it fits a number of terminal columns."""
    if cell_len(text) <= width:
        return text
    text = text[-width:]
    while cell_len(text) >= width:
        text = text[1:]
    return f"…{text.lstrip()}"
