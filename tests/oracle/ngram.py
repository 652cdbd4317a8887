"""Modified Kneser-Ney as Chen and Goodman (1998) define it: plain Python, dictionaries and recursion, one word at a time.

Written from the definitions and not from our arrays: n-grams are tuples of words, "after how many different words" is the size
of a set, and a probability is asked for by recursion down to the uniform distribution.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
Gram = tuple[str, ...]


class KneserNey:
    """A model of some sentences; words that are not in `vocabulary` count as `<unk>`."""

    def __init__(
        self,
        sentences: list[list[str]],
        order: int,
        *,
        vocabulary: set[str] | None = None,
        cutoffs: list[int] | None = None,
        smoothing: str = "kneser-ney",
    ) -> None:
        self.order, self.smoothing = order, smoothing
        self.vocabulary = vocabulary or {word for sentence in sentences for word in sentence}
        self.words = sorted(self.vocabulary | {END, UNKNOWN})
        raw: list[Counter[Gram]] = [Counter() for _ in range(order + 1)]
        before: list[dict[Gram, set[str]]] = [defaultdict(set) for _ in range(order + 1)]
        for sentence in sentences:
            text = [BEGIN, *(self.known(word) for word in sentence), END]
            for size in range(1, order + 1):
                for start in range(len(text) - size + 1):
                    gram = tuple(text[start : start + size])
                    raw[size][gram] += 1
                    if start > 0:
                        before[size][gram].add(text[start - 1])
        self.counts: list[dict[Gram, int]] = [{}]
        for size in range(1, order + 1):
            lower = smoothing == "kneser-ney" and size < order
            self.counts.append(
                {g: len(before[size][g]) if lower and g[0] != BEGIN else n for g, n in raw[size].items() if g != (BEGIN,)}
            )
        cuts = cutoffs or [0] * order
        self.kept = {g for size in range(1, order + 1) for g, n in raw[size].items() if size == 1 or n > cuts[size - 1]}
        self.discounts = [[], *(self.discounts_of(self.counts[size]) for size in range(1, order + 1))]
        self.followers: dict[Gram, list[Gram]] = defaultdict(list)
        for size in range(1, order + 1):
            for gram in self.counts[size]:
                self.followers[gram[:-1]].append(gram)

    def known(self, word: str) -> str:
        return word if word in self.vocabulary else UNKNOWN

    def discounts_of(self, counts: dict[Gram, int]) -> list[float]:
        """What the counts 1, 2, and 3 or more lose."""
        if self.smoothing == "none":
            return [0.0] * 3
        n = [sum(1 for count in counts.values() if count == wanted) for wanted in range(5)]
        if self.smoothing == "absolute":
            d = n[1] / (n[1] + 2 * n[2]) if n[1] else 0.0
            return [d] * 3 if 0 < d < 1 else [0.5] * 3
        if 0 in n[1:4]:
            return [0.5, 1.0, 1.5]
        y = n[1] / (n[1] + 2 * n[2])
        found = [1 - 2 * y * n[2] / n[1], 2 - 3 * y * n[3] / n[2], 3 - 4 * y * n[4] / n[3]]
        return found if all(0 <= d <= i for i, d in enumerate(found, start=1)) else [0.5, 1.0, 1.5]

    def probability(self, word: str, context: Gram) -> float:
        """P(word | context)."""
        context = context[len(context) - min(len(context), self.order - 1) :]
        lower = self.probability(word, context[1:]) if context else 1 / len(self.words)
        total = sum(self.counts[len(gram)][gram] for gram in self.followers[context])
        if total == 0:
            return lower
        share = {gram: self.left(gram) / total for gram in self.followers[context]}
        return share.get((*context, word), 0.0) + (1 - sum(share.values())) * lower

    def left(self, gram: Gram) -> float:
        """A count after its discount; nothing is left of what was cut off."""
        if gram not in self.kept:
            return 0.0
        count = self.counts[len(gram)][gram]
        return count - self.discounts[len(gram)][min(count, 3) - 1]

    def log_prob(self, sentence: list[str]) -> float:
        text = [BEGIN, *map(self.known, sentence), END]
        return sum(math.log(self.probability(text[i], tuple(text[:i]))) for i in range(1, len(text)))
