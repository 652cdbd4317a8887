"""Words in their sentences, one below the other, as a concordance prints them: the word in the middle column."""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.cli import show


def joined(words: Sequence[str], mark: int | None = None) -> str:
    """Words as text, with blanks between them, but not between Chinese ones; the one at `mark` in brackets.

    >>> joined(["The", "bank", "."], mark=1), joined(["我", "在", "银行", "ATM", "前"], mark=2)
    ('The [bank] .', '我在[银行] ATM 前')
    """
    from rich.cells import cell_len

    pieces: list[str] = []
    for place, word in enumerate(words):
        before = words[place - 1][-1:] if place else ""
        if place and not cell_len(before) == 2 == cell_len(word[:1]):
            pieces.append(" ")
        pieces.append(f"[{word}]" if place == mark else word)
    return "".join(pieces)


def concordance(found: Sequence[tuple[Sequence[str], int]], width: int) -> list[str]:
    """A line for each sentence and place in it, cut on both sides to a width, with the words in brackets aligned.

    >>> for line in concordance([(["the", "river", "bank"], 2), (["a", "bank", "loan", "again"], 1)], 26): print(line)
    the river [bank]
            a [bank] loan aga…
    """
    from rich.cells import cell_len

    lefts = [_plain(joined(words[:place])) for words, place in found]
    middles = [f"[{show.short(words[place], 24)}]" for words, place in found]
    rights = [_plain(joined(words[place + 1 :])) for words, place in found]
    middle_width = max(map(cell_len, middles), default=0)
    width = max(width, middle_width + 18)
    room = width - middle_width - 2  # a blank stands on both sides of the word
    needed = max(map(cell_len, rights), default=0)
    left = min(max(map(cell_len, lefts), default=0), max(room // 2, room - needed))
    lines = []
    for before, middle, after in zip(lefts, middles, rights, strict=True):
        begin = _ending(before, left)
        rest = show.short(after, width - left - 2 - cell_len(middle))
        lines.append(f"{' ' * (left - cell_len(begin))}{begin} {middle} {rest}".rstrip())
    return lines


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _ending(text: str, width: int) -> str:
    """The end of a text, cut to some columns of a terminal."""
    from rich.cells import cell_len

    if cell_len(text) <= width:
        return text
    text = text[-width:]
    while cell_len(text) >= width:
        text = text[1:]
    return f"…{text.lstrip()}"
