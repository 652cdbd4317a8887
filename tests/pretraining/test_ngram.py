"""N-gram models from text, compared with a plain implementation of the definitions."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.base.config import ConfigError
from polyseme.base.errors import PolysemeError
from polyseme.base.run import Run
from polyseme.encoders.ngram import NgramModel
from polyseme.formats import arpa
from polyseme.pretraining.ngram import build
from polyseme.pretraining.ngram_config import NgramPretraining
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards
from tests.analysis.real import real
from tests.oracle.ngram import BEGIN, KneserNey

CHINESE = """今天是周日
今天是晴天
今天是他的生日
昨天是周六
明天是周一
周日我们去公园
周日他在家
后天是周二
今天周日公园里人很多
我们周日去
他是老师
今天我们去
"""


def corpus(lines: list[str], folder: Path, words: str = "whitespace") -> Corpus:
    folder.mkdir(exist_ok=True)
    (folder / "text.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Corpus(folder / "text.txt", splitter=words, sentences="lines", workers=0)


def trained(sentences: list[list[str]], folder: Path, **options: object) -> NgramModel:
    text = corpus([" ".join(sentence) for sentence in sentences], folder)
    return build(Shards.build(text, folder), NgramPretraining(**options))  # type: ignore[arg-type]


def random_text(seed: int) -> list[list[str]]:
    """Sentences in which words depend on those before, so that counts from one to many come in every order."""
    draw = random.Random(seed)
    words = [chr(ord("a") + place) for place in range(draw.randint(2, 12))]
    text = []
    for _ in range(draw.randint(1, 60)):
        sentence = [draw.choice(words)]
        while draw.random() < 0.8:
            near = words.index(sentence[-1])
            sentence.append(words[(near + draw.choice([1, 1, 1, 2, 3, draw.randrange(len(words))])) % len(words)])
        text.append(sentence)
    return text


def compare(model: NgramModel, oracle: KneserNey, seed: int) -> None:
    """Distributions after contexts of the text and after random ones, and whole sentences."""
    draw = random.Random(seed)
    words = [*oracle.words, "unheard"]
    for _ in range(20):
        context = [draw.choice(words) for _ in range(draw.randint(0, 4))]
        context = [word for word in context if word != "</s>"]
        found = np.exp(model.distribution(context))
        asked = (BEGIN, *(oracle.known(word) for word in context))
        for word in oracle.words:
            place = int(model.vocabulary.ids([word])[0])
            assert found[place] == pytest.approx(oracle.probability(word, asked), rel=2e-5)
        assert found[1:].sum() == pytest.approx(1, abs=1e-5)
        if context:
            assert model.score([context])[0] == pytest.approx(oracle.log_prob(context), rel=1e-5)


@pytest.mark.parametrize("seed", range(24))
def test_it_is_what_the_definitions_say(tmp_path: Path, seed: int) -> None:
    text, order = random_text(seed), seed % 5 + 1
    model = trained(text, tmp_path, order=order)
    oracle = KneserNey(text, order)
    assert model.config.discounts == tuple(pytest.approx(each) for each in oracle.discounts[1:])
    compare(model, oracle, seed)


@pytest.mark.parametrize("seed", range(30, 38))
def test_rare_words_and_cut_offs(tmp_path: Path, seed: int) -> None:
    text = random_text(seed)
    counts = {word: sum(sentence.count(word) for sentence in text) for sentence in text for word in sentence}
    least = sorted(counts.values())[len(counts) // 3]
    model = trained(text, tmp_path, order=4, min_count=least, cutoffs=(0, 0, 1, 2))
    oracle = KneserNey(text, 4, vocabulary={word for word in counts if counts[word] >= least}, cutoffs=[0, 0, 1, 2])
    assert [len(level) for level in model.table.levels[1:]] == [sum(len(g) == n for g in oracle.kept) for n in (2, 3, 4)]
    assert not model.table.problems()
    compare(model, oracle, seed)


@pytest.mark.parametrize("seed", range(40, 45))
def test_absolute_discounting(tmp_path: Path, seed: int) -> None:
    text = random_text(seed)
    compare(trained(text, tmp_path, order=3, smoothing="absolute"), KneserNey(text, 3, smoothing="absolute"), seed)


def test_a_text_shorter_than_the_order(tmp_path: Path) -> None:
    text = [["a"], ["a", "b"]]
    model = trained(text, tmp_path, order=6)
    assert [len(level) for level in model.table.levels] == [5, 4, 3, 1, 0, 0]
    compare(model, KneserNey(text, 6), 1)
    for again in (model.save_pretrained(tmp_path / "m"), arpa.write(model, tmp_path / "m.arpa")):
        assert polyseme.load(again).table.difference(model.table) == 0


def test_maximum_likelihood(tmp_path: Path) -> None:
    model = trained([["a", "b"], ["a", "c"], ["a", "b", "a"]], tmp_path, order=2, smoothing="none")
    found = dict(zip(model.vocabulary, np.exp(model.distribution(["a"])), strict=True))
    assert found["b"] == pytest.approx(2 / 4) and found["c"] == found["</s>"] == pytest.approx(1 / 4)
    assert found["a"] < 1e-90 and np.isfinite(model.score([["z", "a"]])).all()


def test_maximum_likelihood_is_that_of_nltk(tmp_path: Path) -> None:
    pytest.importorskip("nltk")
    from nltk.lm import MLE
    from nltk.lm.preprocessing import padded_everygram_pipeline

    text = random_text(7)
    theirs = MLE(2)
    theirs.fit(*padded_everygram_pipeline(2, text))
    ours = trained(text, tmp_path, order=2, smoothing="none")
    for context in sorted({word for sentence in text for word in sentence}):
        found = np.exp(ours.distribution([context], begin=False))
        for word, value in zip(ours.vocabulary, found, strict=True):
            if word != BEGIN:
                assert value == pytest.approx(theirs.score(word, [context]), rel=1e-5, abs=1e-60)


def test_unknown_words_of_the_text_are_the_models_own(tmp_path: Path) -> None:
    text = [["a", "<unk>", "b"], ["<UNK>", "b"], ["<s>", "a"], ["</s>", "<S>", "</S>"]]
    model = trained(text, tmp_path, order=2)
    assert model.vocabulary.words == ["<s>", "</s>", "<unk>", "a", "b"]
    plain = [["a", "<unk>", "b"], ["<unk>", "b"], ["<unk>", "a"], ["<unk>"] * 3]
    compare(model, KneserNey(plain, 2), 0)
    assert model.score([["<s>", "a"]])[0] == model.score([["never", "a"]])[0]


def test_a_vocabulary_of_the_most_frequent(tmp_path: Path) -> None:
    model = trained([["a", "a", "b", "b", "c"]], tmp_path, order=2, vocabulary_size=5)
    assert model.vocabulary.words == ["<s>", "</s>", "<unk>", "a", "b"]
    with pytest.raises(PolysemeError, match="the vocabulary is empty: no word occurs 9 times; give a lower min_count"):
        trained([["a"]], tmp_path / "few", order=2, min_count=9)


def test_sunday(tmp_path: Path) -> None:
    """What the Chinese n-gram tutorials begin with: the words in their order are likelier than out of it."""
    text = corpus(CHINESE.split(), tmp_path, words="characters")
    for order in (2, 3, 5):
        model = NgramPretraining(order=order).fit(text, Run(), tmp_path / f"m{order}").model
        right, wrong = model.score(["今天是周日", "今天周日是"])
        assert right > wrong + 1
        assert polyseme.load(tmp_path / f"m{order}").score(["今天是周日"])[0] == right
        steps = model.chain_rule("今天是周日")
        assert [step.word for step in steps] == [*"今天是周日", "</s>"]
        assert sum(step.log_prob for step in steps) == pytest.approx(right)


def test_fit_writes_a_folder_with_a_card(tmp_path: Path) -> None:
    text = corpus(["a b c", "a b"], tmp_path)
    made = NgramPretraining(order=2).fit(text, Run(), tmp_path / "m")
    assert (made.words, made.sentences) == (5, 2)
    card = (tmp_path / "m" / "README.md").read_text()
    assert "| order | 2 |" in card and "text.txt" in card and str(tmp_path) not in card
    again = NgramPretraining(order=2).fit(text, Run(), tmp_path / "m")  # the same once more
    assert polyseme.load(tmp_path / "m").config == again.model.config
    for head in ({"polyseme_format": 1, "encoder": "elmo"}, {"model_type": "bert", "polyseme": {"encoder": "elmo"}}):
        (tmp_path / "m" / "config.json").write_text(json.dumps(head))
        with pytest.raises(PolysemeError, match=r"holds another kind of model \(elmo\): choose another folder"):
            NgramPretraining(order=2).fit(text, Run(), tmp_path / "m")


@pytest.mark.parametrize("elsewhere", [False, True])
def test_another_model_is_not_written_over(tmp_path: Path, elsewhere: bool) -> None:
    (tmp_path / "a.txt").write_text("a b c\na b\n")
    out, place = tmp_path / "m", tmp_path / "text" if elsewhere else None
    text = Corpus(tmp_path / "a.txt", splitter="whitespace", sentences="lines", workers=0, shards=place)
    NgramPretraining(order=3).fit(text, Run(), out)
    before = {path: path.read_bytes() for path in out.iterdir() if path.is_file()}
    with pytest.raises(
        PolysemeError, match=r"m holds a model with other settings \(order: 3 in the run, 2 now\): give the same ones"
    ):
        NgramPretraining(order=2).fit(text, Run(), out)
    (tmp_path / "a.txt").write_text("a b d\n")
    with pytest.raises(PolysemeError, match=r"the text, or how it is split, (is not|differs)"):
        NgramPretraining(order=3).fit(text, Run(), out)
    (out / "run" / "ngram.json").unlink()
    with pytest.raises(PolysemeError, match="m holds the model of another run: choose another folder, or remove it"):
        NgramPretraining(order=3).fit(text, Run(), out)
    assert before == {path: path.read_bytes() for path in out.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"order": 0}, "order is 0"),
        ({"vocabulary_size": 3}, "vocabulary_size is 3; allowed: 4 or more"),
        ({"min_count": 0}, "min_count is 0"),
        ({"cutoffs": (1,)}, "cutoffs is 1; the first is 0"),
        ({"cutoffs": (0, 2, 1)}, "none is below the one before"),
        ({"order": 2, "cutoffs": (0, 0, 1)}, "cutoffs is 0,0,1; allowed with order=2: at most 2 numbers"),
    ],
)
def test_what_cannot_be(options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        NgramPretraining(**options)  # type: ignore[arg-type]


@pytest.mark.slow
def test_penn_treebank(tmp_path: Path) -> None:
    """Published: 141.2 (modified Kneser-Ney, 5-grams, no cut-offs, `</s>` counted; Mikolov and Zweig 2012)."""
    folder = real("lm_ptb_en")
    read = {"splitter": "whitespace", "sentences": "lines"}
    model = NgramPretraining(order=5).fit(Corpus(folder / "ptb.train.txt.gz", **read), Run(), tmp_path / "m").model
    found = model.perplexity(list(Corpus(folder / "ptb.test.txt.gz", **read)))
    assert found.predictions == 82430
    assert 141.1 < found.mean < 141.3
