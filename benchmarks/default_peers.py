"""Other libraries with their own defaults, on the files of `benchmarks.defaults`: scikit-learn, fastText, spaCy.

    python benchmarks/default_peers.py sklearn classification --data train.tsv --test test.tsv --out result

It runs in an environment of its own, which needs the library and NumPy, but neither PyTorch nor polyseme installed: files are
read by polyseme's readers, from this checkout. Install there `scikit-learn`, `fasttext-numpy2-wheel` or `spacy`. Chinese is
read by characters: one to three of them for scikit-learn, separated by blanks for fastText; spaCy has its own splitter. A pair
is one text. Scores of pairs are learned by scikit-learn alone (ridge regression), tags by spaCy alone. spaCy takes the dev
file, or a tenth of the training data, to choose its best model. fastText has one thread.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
HAN = re.compile("[\u3400-\u9fff]")
TREE = re.compile(r"\s*\([0-4] ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", choices=sorted(SYSTEMS))
    parser.add_argument("task", choices=["classification", "pairs", "tagging"])
    for name in ("data", "dev", "test", "text", "second", "label", "format", "goal"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folds", type=int, default=None)
    given = parser.parse_args()
    scores = tag(given) if given.task == "tagging" else classify(given)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "result.json").write_text(json.dumps({"scores": {"test": scores}}))


def classify(given: argparse.Namespace) -> dict[str, float]:
    """Train on texts; a pair is one text."""
    train = read_texts(given.data, given, training=True)
    if are_scores([label for _, label in train]):
        return {"pearson": regress(given, train, read_texts(given.test, given))}
    if given.folds:
        parts = folds(train, given)
        found = [
            (label, answer)
            for number, part in enumerate(parts)
            for label, answer in answers(given, [row for other in parts[:number] + parts[number + 1 :] for row in other], part)
        ]
    else:
        found = answers(given, train, read_texts(given.test, given))
    return {"accuracy": sum(a == b for a, b in found) / len(found), "matthews": matthews(found)}


def are_scores(labels: Sequence[str]) -> bool:
    """Whether labels are numbers, not all of them whole."""
    try:
        return not all(float(label).is_integer() for label in labels)
    except ValueError:
        return False


def regress(given: argparse.Namespace, train: list[tuple[str, str]], test: list[tuple[str, str]]) -> float:
    """The correlation of the scores of test pairs with those that ridge regression predicts."""
    if given.system != "sklearn":
        raise SystemExit(f"{given.system} has no regression")
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    (texts, scores), (tests, gold) = zip(*train, strict=True), zip(*test, strict=True)
    model = make_pipeline(TfidfVectorizer(**sklearn_units(texts)), Ridge()).fit(texts, [float(score) for score in scores])
    return float(np.corrcoef([float(score) for score in gold], model.predict(tests))[0, 1])


def answers(given: argparse.Namespace, train: list[Any], test: list[Any]) -> list[tuple[str, str]]:
    predict = SYSTEMS[given.system](train, given)
    return list(zip([label for _, label in test], predict([text for text, _ in test]), strict=True))


def folds(rows: list[tuple[str, str]], given: argparse.Namespace) -> list[list[tuple[str, str]]]:
    """Folds of shuffled rows."""
    rows = list(rows)
    random.Random(given.seed).shuffle(rows)
    return [rows[number :: given.folds] for number in range(given.folds)]


def read_texts(path: str, given: argparse.Namespace, *, training: bool = False) -> list[tuple[str, str]]:
    """Read texts and labels; of sentiment trees the sentences, in training with their phrases, as polyseme does."""
    from polyseme.text.labelled.numbered_lines import first_line
    from polyseme.text.labelled.tables import read_usable_rows
    from polyseme.text.labelled.trees import examples, read_trees

    if TREE.match(first_line(path) or ""):
        return [
            (" ".join(each.words), each.label)
            for each in examples(read_trees(path), phrases="distinct" if training else "none")
        ]
    columns = {"text": given.text, "second": given.second, "label": given.label, "format": given.format}
    rows = read_usable_rows(path, strict=False, pairs=given.task == "pairs", **columns)
    return [(f"{row.first} {row.second}" if row.second else row.first, str(row.label)) for row in rows]


def is_chinese(texts: Sequence[str]) -> bool:
    sample = "".join(texts[:500])
    return len(HAN.findall(sample)) > 0.3 * len(sample)


Predict = Callable[[Sequence[str]], Sequence[str]]


def sklearn(train: list[tuple[str, str]], given: argparse.Namespace) -> Predict:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts, labels = zip(*train, strict=True)
    model = make_pipeline(TfidfVectorizer(**sklearn_units(texts)), LogisticRegression(max_iter=1000, random_state=given.seed))
    return model.fit(texts, labels).predict  # type: ignore[no-any-return]


def sklearn_units(texts: Sequence[str]) -> dict[str, Any]:
    return {"analyzer": "char", "ngram_range": (1, 3)} if is_chinese(texts) else {"ngram_range": (1, 2)}


def fasttext(train: list[tuple[str, str]], given: argparse.Namespace) -> Predict:
    import fasttext as library

    chinese = is_chinese([text for text, _ in train])

    def plain(text: str) -> str:
        return " ".join(text.replace(" ", "") if chinese else text.split()).lower()

    names = {label: f"__label__{number}" for number, label in enumerate(sorted({label for _, label in train}))}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.txt")
        path.write_text("".join(f"{names[label]} {plain(text)}\n" for text, label in train), encoding="utf-8")
        model = library.train_supervised(str(path), seed=given.seed, thread=1, verbose=0)
    back = {name: label for label, name in names.items()}
    return lambda texts: [back[model.predict(plain(text))[0][0]] for text in texts]


def spacy(train: list[tuple[str, str]], given: argparse.Namespace) -> Predict:
    labels = sorted({label for _, label in train})
    language = "zh" if is_chinese([text for text, _ in train]) else "en"

    def document(nlp: Any, row: tuple[str, str]) -> Any:
        doc = nlp.make_doc(row[0])
        doc.cats = {label: float(label == row[1]) for label in labels}
        return doc

    if given.dev:
        dev = read_texts(given.dev, given)
    else:
        train = list(train)
        random.Random(given.seed).shuffle(train)
        held = max(len(train) // 10, 1)
        train, dev = train[held:], train[:held]
    nlp = train_spacy(language, "textcat", train, dev, document, given.seed)
    return lambda texts: [max(doc.cats, key=doc.cats.get) for doc in nlp.pipe(texts)]


def tag(given: argparse.Namespace) -> dict[str, float]:
    """spaCy's entity recognizer or part-of-speech tagger on tokenized sentences."""
    from polyseme.metrics.spans import are_span_tags, span_scores, spans
    from polyseme.text.labelled.conll import read_conll

    if given.system != "spacy":
        raise SystemExit(f"{given.system} has no tagger")
    from spacy.tokens import Doc, Span

    def document(nlp: Any, sentence: Any) -> Any:
        doc = Doc(nlp.vocab, words=sentence.words, tags=None if has_spans else sentence.tags)
        doc.ents = [] if not has_spans else [Span(doc, begin, end, label=kind) for begin, end, kind in spans(sentence.tags)]
        return doc

    train, test = (read_conll(path, strict=False) for path in (given.data, given.test))
    if given.dev:
        dev = read_conll(given.dev, strict=False)
    else:
        train, dev = train[len(train) // 10 :], train[: len(train) // 10]
    has_spans = are_span_tags(tag for sentence in train for tag in sentence.tags)
    nlp = train_spacy("en", "ner" if has_spans else "tagger", train, dev, document, given.seed)
    docs = [nlp(Doc(nlp.vocab, words=sentence.words)) for sentence in test]
    if not has_spans:
        pairs = [pair for doc, each in zip(docs, test, strict=True) for pair in zip(doc, each.tags, strict=True)]
        return {"accuracy": sum(word.tag_ == tag for word, tag in pairs) / len(pairs)}
    found = [[f"{word.ent_iob_}-{word.ent_type_}" if word.ent_type_ else "O" for word in doc] for doc in docs]
    scores = span_scores([sentence.tags for sentence in test], found)
    return {"f1": scores.f1, "precision": scores.precision, "recall": scores.recall}


def train_spacy(language: str, pipe: str, train: Sequence[Any], dev: Sequence[Any], document: Any, seed: int) -> Any:
    """Train a pipeline as `spacy init config` and `spacy train` do, and return the best one."""
    import spacy as library
    from spacy.cli.init_config import init_config
    from spacy.cli.train import train as run
    from spacy.tokens import DocBin

    blank = library.blank(language)
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in (("train", train), ("dev", dev)):
            DocBin(docs=[document(blank, row) for row in rows]).to_disk(Path(folder, f"{name}.spacy"))
        config = init_config(lang=language, pipeline=[pipe], optimize="efficiency", gpu=False)
        config.to_disk(Path(folder, "config.cfg"))
        paths = {f"paths.{name}": str(Path(folder, f"{name}.spacy")) for name in ("train", "dev")}
        run(Path(folder, "config.cfg"), Path(folder, "out"), overrides={**paths, "training.seed": seed})
        return library.load(Path(folder, "out", "model-best"))


def matthews(pairs: list[tuple[str, str]]) -> float:
    """Matthews correlation of two classes."""
    labels = sorted({label for label, _ in pairs})
    if len(labels) != 2:
        return float("nan")
    counts = [[sum(pair == (a, b) for pair in pairs) for b in labels] for a in labels]
    (n, p), (q, m) = counts
    below = ((n + p) * (q + m) * (n + q) * (p + m)) ** 0.5
    return (n * m - p * q) / below if below else 0.0


SYSTEMS: dict[str, Callable[..., Predict]] = {"sklearn": sklearn, "fasttext": fasttext, "spacy": spacy}

if __name__ == "__main__":
    main()
