"""Sentiment trees: the Stanford Sentiment Treebank (Socher et al., EMNLP 2013), in which every phrase has a label.

A line is a tree in brackets, `(3 (2 It) (4 (2 's) (3 fun)))`; labels go from 0, very negative, to 4, very positive. A tree is
stored flat, as its words and the spans of its phrases: a classifier needs no more, and deep trees need no recursion. Words are
those of running text: `-LRB-` is read as `(`, `\\/` as `/`, and two backticks as a straight quote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from polyseme.base.errors import FormatError
from polyseme.text.labelled.bad_rows import BadRows
from polyseme.text.labelled.numbered_lines import numbered_lines
from polyseme.text.labelled.text_in_context import TextInContext
from polyseme.text.words import plain_word

LABELS = ("0", "1", "2", "3", "4")
"""From very negative to very positive; 2 is neutral."""
_TWO = {"0": "negative", "1": "negative", "3": "positive", "4": "positive"}
_SIGNS = re.compile(r"[()]|[^ \t()]+")  # a no-break space (7 1/2) belongs to its word


@dataclass(frozen=True, slots=True)
class Phrase:
    """The words of a phrase and their sentiment."""

    words: tuple[str, ...]
    label: str
    sentence: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """The sentence around them; they begin at word `begin`. The same words elsewhere are the same phrase."""
    begin: int = field(default=0, repr=False, compare=False)
    where: int | None = field(default=None, repr=False, compare=False)
    """The line of its file, for messages."""

    def in_sentence(self) -> TextInContext:
        """Return the words in the context of their sentence."""
        return TextInContext((self.sentence,), 0, self.begin, self.begin + len(self.words))


@dataclass(frozen=True, slots=True)
class Tree:
    """A sentence and its phrases."""

    words: tuple[str, ...]
    spans: tuple[tuple[int, int, str], ...]
    """First word, the word after the last, label; in the order of opening brackets, so the sentence comes first."""
    where: int | None = field(default=None, repr=False, compare=False)
    """The line of its file, for messages."""

    @property
    def label(self) -> str:
        """The label of the sentence."""
        return self.spans[0][2]

    def phrases(self) -> list[Phrase]:
        """Return all phrases, the sentence first; single words are phrases too."""
        return [Phrase(self.words[begin:end], label, self.words, begin, self.where) for begin, end, label in self.spans]


def read_trees(path: str | Path, *, strict: bool = True) -> list[Tree]:
    """Read all trees of a file (plain or compressed), one per line; blank lines are skipped.

    `strict=False`: lines that are no trees are skipped and counted.

    >>> import tempfile; file = Path(tempfile.mkdtemp(), "a.txt"); _ = file.write_text("(3 (2 It) (4 (2 's) (3 fun)))")
    >>> [(" ".join(phrase.words), phrase.label) for phrase in read_trees(file)[0].phrases()]
    [("It 's fun", '3'), ('It', '2'), ("'s fun", '4'), ("'s", '2'), ('fun', '3')]
    """
    lines = [(number, line) for number, line in numbered_lines(path) if line.strip(" \t")]
    bad = BadRows(path, strict=strict, unit="tree")
    trees = list(bad.read_each(lines, lambda number, line: replace(_tree(f"{path}:{number}", line), where=number)))
    bad.finish(len(trees))
    if not trees:
        raise FormatError(path, "has no trees; expected one per line, such as (3 (2 It) (3 works))")
    return trees


def examples(
    trees: Iterable[Tree],
    *,
    classes: Literal[2, 5] = 5,
    phrases: Literal["none", "all", "distinct"] = "none",
    sentence_copies: int = 1,
) -> list[Phrase]:
    """Return examples: sentences ("none"), all their phrases, or each distinct phrase and label once.

    Five classes are "0" to "4"; two are "negative" (0 and 1) and "positive" (3 and 4), without neutral phrases.
    `sentence_copies`: how often each sentence is among its phrases.

    >>> examples([Tree(("so", "so"), ((0, 2, "1"), (0, 1, "2"), (1, 2, "2")))], classes=2, phrases="all")
    [Phrase(words=('so', 'so'), label='negative')]
    """

    def labelled(found: Iterable[Phrase]) -> list[Phrase]:
        if classes == 2:
            return [replace(phrase, label=_TWO[phrase.label]) for phrase in found if phrase.label in _TWO]
        return list(found)

    trees = list(trees)
    sentences = labelled(tree.phrases()[0] for tree in trees)
    if phrases == "none":
        return sentences * sentence_copies
    found = labelled(phrase for tree in trees for phrase in tree.phrases())
    return [*(dict.fromkeys(found) if phrases == "distinct" else found), *sentences * (sentence_copies - 1)]


def _tree(where: str, line: str) -> Tree:
    words: list[str] = []
    spans: list[tuple[int, int, str]] = []
    open_spans: list[int] = []  # of the brackets that are not closed
    signs = _SIGNS.findall(line)
    i = 0
    while i < len(signs):
        sign = signs[i]
        if not open_spans and (sign != "(" or spans):
            raise FormatError(where, f"has {sign[:20]!r} {'after the tree' if spans else 'before the tree'}; {_EXPECTED}")
        if sign == "(":
            label = signs[i + 1] if i + 1 < len(signs) else "the end"
            if label not in LABELS:
                raise FormatError(where, f"has {label[:20]!r} where a label from 0 to 4 is expected; {_EXPECTED}")
            open_spans.append(len(spans))
            spans.append((len(words), -1, label))
            i += 2
        elif sign == ")":
            begin, _, label = spans[open_spans[-1]]
            if begin == len(words):
                raise FormatError(where, f"has a bracket ({label}) without words; {_EXPECTED}")
            spans[open_spans.pop()] = (begin, len(words), label)
            i += 1
        else:
            if signs[i - 2] != "(" or signs[i + 1 : i + 2] != [")"]:
                raise FormatError(where, f"has the word {sign[:20]!r} outside a bracket of its own; {_EXPECTED}")
            words.append(plain_word(sign.replace("\\/", "/").replace("\\*", "*")))
            i += 1
    if open_spans:
        raise FormatError(where, f"ends with {len(open_spans)} open brackets; {_EXPECTED}")
    return Tree(tuple(words), tuple(spans))


_EXPECTED = "expected one tree per line, with a label and one word or smaller trees in each bracket: (3 (2 It) (3 works))"
