"""Small labelled files: names in sentences, opinions of films, pairs that agree or not."""

from pathlib import Path

PEOPLE, PLACES, VERBS = ["Ann", "Bob", "Tom Hill"], ["Paris", "New York", "Oslo"], ["lives", "works", "waits"]
TINY = {"epochs": 1, "hidden_size": 8, "word_dim": 4}
"""Options of networks that train in a moment."""


def names(count: int, first: int = 0) -> str:
    """CoNLL lines, BIO; the first 27 sentences differ."""
    found = []
    for number in range(first, first + count):
        person, place = PEOPLE[number % 3].split(), PLACES[number // 3 % 3].split()
        tags = [*_span(person, "PER"), "O", "O", *_span(place, "LOC"), "O"]
        found += [
            f"{word} {tag}\n" for word, tag in zip([*person, VERBS[number // 9 % 3], "in", *place, "."], tags, strict=True)
        ] + ["\n"]
    return "".join(found)


def _span(words: list[str], kind: str) -> list[str]:
    return [f"{'I' if place else 'B'}-{kind}" for place in range(len(words))]


def write_all(folder: Path) -> Path:
    """train.conll, dev.conll; texts.tsv; pairs.tsv; scores.tsv."""
    (folder / "train.conll").write_text(names(18))
    (folder / "dev.conll").write_text(names(4, first=18))
    (folder / "texts.tsv").write_text("text\tlabel\n" + "a good film\tpos\na bad film\tneg\n" * 10)
    (folder / "pairs.tsv").write_text("premise\thypothesis\tlabel\n" + "it rains\tit is wet\tyes\nit rains\tdry\tno\n" * 10)
    (folder / "scores.tsv").write_text("sentence1\tsentence2\tscore\n" + "it rains\tit is wet\t4.5\nit rains\tdry\t1\n" * 10)
    return folder
