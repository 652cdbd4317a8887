"""Generators: what they read and refuse, unknown words, ways to decode, where target words start, and that they learn."""

from __future__ import annotations

import dataclasses
import logging
import math
import os
import random
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("sacrebleu", reason="sacrebleu is missing: pip install 'polyseme[generation]'")

from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, MissingExtraError, PolysemeError, UsageError
from polyseme.base.run import Run
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.nn.config import CharactersConfig
from polyseme.tasks.config import FeaturesConfig, TaskWordConfig
from polyseme.tasks.fit import Splits, TaskBuilder, fit
from polyseme.tasks.fit_config import FitConfig
from polyseme.tasks.folder import load
from polyseme.tasks.generation import BEGIN, END, MARKS, Generation
from polyseme.tasks.generation_config import DecodingConfig, GenerationConfig
from polyseme.tasks.predictions import GeneratedText
from polyseme.text.labelled.parallel import TextPair
from polyseme.text.word_vectors import WordVectors
from polyseme.text.words import get_splitter
from polyseme.training.optim_config import OptimConfig
from tests.encoders.small import elmo

FEATURES = FeaturesConfig(words=TaskWordConfig(dim=16, characters=CharactersConfig(dim=4, filters=((2, 8),), highway_layers=0)))
PAIRS = [TextPair("a dog runs .", "Ein Hund läuft."), TextPair("a cat runs .", "Ein Kater läuft.")]


def small(**changes: Any) -> GenerationConfig:
    return GenerationConfig(**({"hidden_size": 8, "target_dim": 8, "features": FEATURES, "min_count": 1} | changes))


def built(examples: list[TextPair], **changes: Any) -> Generation:
    torch.manual_seed(0)
    return Generation.build(small(**changes), examples, splitter=get_splitter("english")).eval()


# ---- data


def test_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.en").write_text("one\n\nthree\n")
    (tmp_path / "a.de").write_text("eins\nzwei\ndrei\n")
    config = small(source="en", target="de")
    with pytest.raises(FormatError, match=r"a\.en:2: is blank"):
        Generation.read(tmp_path / "a", config.replace(strict=True))
    with caplog.at_level(logging.WARNING):
        found = Generation.read(tmp_path / "a", config, training=True)
    assert found == [TextPair("one", "eins"), TextPair("three", "drei")]
    assert "skipped 1 of 3 pairs with a blank text, the first on line 2" in caplog.text
    (tmp_path / "a.tsv").write_text("one\teins\n")
    assert Generation.read(tmp_path / "a.tsv", small()) == found[:1]
    (tmp_path / "a.tsv").write_text("source\ttarget\none\teins\n")
    assert Generation.read(tmp_path / "a.tsv", small()) == found[:1]
    assert len(Generation.read(tmp_path / "a.tsv", small(header=False))) == 2


def test_configs_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"min_count is 0; .*; hidden_size is 0; .*; dropout is 1.0"):
        small(hidden_size=0, min_count=0, dropout=1.0)
    with pytest.raises(ConfigError, match="positions=\\['between'\\] needs network_layers=2"):
        small(features=FEATURES.replace(positions=("between",)))
    with pytest.raises(ConfigError, match="num_return_sequences=6 exceeds num_beams=5"):
        DecodingConfig(num_return_sequences=6)
    with pytest.raises(
        ConfigError, match=r"num_beams is 0; .*; length_penalty is -1.0; .*; temperature is 0.0; .*; top_k is -1"
    ):
        DecodingConfig(num_beams=0, length_penalty=-1.0, temperature=0.0, top_k=-1)
    config = small(decoding=DecodingConfig(strategy="sample", num_return_sequences=9))
    assert GenerationConfig.from_dict(config.to_dict()) == config


def test_target_words() -> None:
    task = built(PAIRS)
    assert task.labels == [*MARKS, "Ein", "läuft", "￭.", "Hund", "Kater"]
    assert built(PAIRS, min_count=2).labels == [*MARKS, "Ein", "läuft", "￭."]
    assert built(PAIRS, max_vocabulary=2).labels == [*MARKS, "Ein", "läuft"]
    with pytest.raises(PolysemeError, match=r"none of the 5 target words occurs 3 times: give min_count=1"):
        built(PAIRS, min_count=3)
    with pytest.raises(UsageError, match=r"the text 'a' has no target"):
        built([*PAIRS, TextPair("a")])
    asked = task.data([TextPair("x", "Ein <S> </S>! läuft.")]).gather([0]).examples[0]
    assert [task.labels[number] for number in asked.target] == [
        "Ein", "<UNK>", "￭<UNK>", "￭<UNK>", "<UNK>", "￭<UNK>", "￭<UNK>", "￭<UNK>", "￭<UNK>", "läuft", "￭.", "</S>"
    ]  # fmt: skip


def test_what_the_training_data_settles() -> None:
    assert (built(PAIRS).config.target_splitter, built(PAIRS).config.bleu_tokenizer) == ("english", "13a")
    chinese = built([TextPair("my home", "我的家"), TextPair("a dog", "一只狗")])
    assert (chinese.config.target_splitter, chinese.config.bleu_tokenizer) == ("characters", "zh")
    assert chinese.labels[4:7] == ["我", "￭的", "￭家"]
    assert built(PAIRS, target_splitter="whitespace").labels[4:] == ["Ein", "läuft.", "Hund", "Kater"]
    words = built([TextPair(["a", "dog"], ["ein", "Hund", "."])])
    assert words.labels[4:] == ["ein", "Hund", "."]


@pytest.mark.parametrize(
    ("texts", "changes", "expected"),
    [
        (["我的家", "一只狗在iPhone上"], {}, ("characters", "zh")),
        (["我的家很大，狗也很多，大家都喜欢卡拉OK，" * 2, "他们说の"], {}, ("characters", "zh")),  # hardly any kana
        (["私は学校に行きます。", "犬が走る。"], {}, ("characters", "char")),
        (["東京大学文学部は休講", "日本経済新聞の記事"], {}, ("characters", "char")),  # many more Chinese characters than kana
        (["나는 학교에 갔습니다.", "개가 달린다."], {}, ("characters", "13a")),
        (["ฉันไปโรงเรียน", "หมาวิ่ง 我"], {"target_splitter": "characters"}, ("characters", "char")),
        (["ฉัน ไป โรงเรียน", "หมา วิ่ง"], {"target_splitter": "whitespace"}, ("whitespace", "13a")),
        (["Ein Hund läuft.", "我"], {"target_splitter": "characters"}, ("characters", "13a")),  # whose words stay whole
        (["私は学校に行きます。"], {"bleu_tokenizer": "intl"}, ("characters", "intl")),
    ],
)
def test_how_bleu_cuts(texts: list[str], changes: dict[str, Any], expected: tuple[str, str]) -> None:
    config = Generation.resolve_defaults(small(**changes), [TextPair("a", text) for text in texts])
    assert (config.target_splitter, config.bleu_tokenizer) == expected


def test_bleu_of_japanese_counts_characters() -> None:
    """An answer with one wrong ending is nearly right."""
    pair = TextPair("I go to school", "わたしはまいにちがっこうにいきます。")
    task = built([pair])
    assert task.score([pair], [GeneratedText("わたしはまいにちがっこうにいきました。", [], 0.0)])["bleu"] > 0.7


def test_without_sacrebleu_nothing_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'polyseme\[generation\]'"):
        built(PAIRS)


# ---- where target words start


def test_target_words_start_from_vectors(tmp_path: Path) -> None:
    vectors = WordVectors(["Hund", ".", "Katze"], np.array([[3, 4], [0, 1], [5, 5]], dtype=np.float32), 3)
    WordVectorTable.from_vectors(vectors).save_pretrained(tmp_path / "de")
    task = built(PAIRS, target_encoder=str(tmp_path / "de"), tied=True)
    assert task.config.target_dim == 2
    table = task.network.decoder.table.weight
    rows = table[[task.labels.index("Hund"), task.labels.index("￭.")]]
    torch.testing.assert_close(rows, torch.tensor([[1.0, 4 / 3], [0.0, 1 / 3]]))  # mean length 3
    task.save(tmp_path / "task")
    torch.testing.assert_close(load(tmp_path / "task").network.decoder.table.weight, table)  # and the folder need not be there
    with pytest.raises(PolysemeError, match="has none of the 1 target words: check its language"):
        built([TextPair("a", "wort")], target_encoder=str(tmp_path / "de"))
    (tmp_path / "v.txt").write_text("Hund 1 2\n")
    with pytest.raises(UsageError, match=r"v\.txt, a file; give a model folder: `polyseme convert`"):
        built(PAIRS, target_encoder=str(tmp_path / "v.txt"))


def test_target_words_start_from_the_first_layer_of_a_model(tmp_path: Path) -> None:
    model = elmo()
    model.save_pretrained(tmp_path / "elmo")
    task = built(PAIRS, target_encoder=str(tmp_path / "elmo"))
    assert task.config.target_dim == model.dim
    expected = np.stack([model.embed([[word]], layers=0)[0][0] for word in ("Ein", "läuft", ".", "Hund", "Kater")])
    expected /= np.linalg.norm(expected, axis=1).mean()
    np.testing.assert_allclose(task.network.decoder.table.weight[len(MARKS) :].detach(), expected, atol=1e-5)


# ---- decoding


class Fixed:
    """A decoder that writes a text, whatever it reads, and looks at given places of the source."""

    def __init__(self, words: list[int], places: list[int]) -> None:
        self.words, self.places = words, places

    def step(self, words: torch.Tensor, state: Any) -> Any:
        from polyseme.nn.networks.beam import DecoderStep

        step = int(state.feed[0, 0])
        log_probs = torch.full((len(words), 20), -100.0)
        log_probs[:, self.words[step]] = -0.5
        feed = state.feed + 1
        return DecoderStep(log_probs, torch.full((len(words),), self.places[step]), dataclasses.replace(state, feed=feed))


def test_unknown_words_are_copied() -> None:
    task = built(PAIRS, decoding=DecodingConfig(num_beams=1))
    ein, full_stop = task.labels.index("Ein"), task.labels.index("￭.")
    fixed = Fixed([ein, MARKS.index("<UNK>"), MARKS.index("￭<UNK>"), full_stop, END], [0, 1, 2, 3, 3])
    task.network.decoder.step = fixed.step  # type: ignore[method-assign]
    assert task.predict(["a Foo -bar ."]) == [GeneratedText("Ein Foo-.", ["Ein", "Foo", "-", "."], -0.5)]
    task.config = task.config.replace(copy_unknown=False)
    assert task.predict([["a", "Foo", "-"]])[0].text == "Ein <UNK><UNK>."


def test_ways_to_decode() -> None:
    task, texts = built(PAIRS), ["a dog runs .", "", "unheard-of words"]
    several = task.predict(texts, decoding=DecodingConfig(num_beams=4, num_return_sequences=3))
    nothing = GeneratedText("", [], -math.inf)
    assert [len(each.others) for each in several] == [2, 2, 2] and several[1] == GeneratedText("", [], 0.0, [nothing] * 2)
    assert several[0].score >= several[0].others[0].score >= several[0].others[1].score
    usual = task.predict(texts)
    assert task.decoding == task.config.decoding and not usual[0].others
    cold = task.predict(texts, decoding=DecodingConfig(strategy="sample", temperature=1e-4))
    greedy = task.predict(texts, decoding=DecodingConfig(num_beams=1))
    assert [each.text for each in cold] == [each.text for each in greedy]
    sampling = DecodingConfig(strategy="sample", num_return_sequences=4, top_p=0.9, sampling_seed=3)
    drawn = task.predict(texts, decoding=sampling)
    assert len({drawn[0].text, *(each.text for each in drawn[0].others)}) > 1
    assert [task.predict([text], decoding=sampling)[0].text for text in texts] == [each.text for each in drawn]
    again = task.predict(texts, decoding=sampling.replace(sampling_seed=4))
    assert [each.text for each in again] != [each.text for each in drawn]
    short = task.predict(texts, decoding=DecodingConfig(max_length=2))
    assert max(len(each.words) for each in short) <= 2
    assert not any(task.labels[BEGIN] in each.words for each in drawn)
    with pytest.raises(UsageError, match="expected a list of texts, got one string"):
        task.predict("a dog")


def test_as_many_answers_as_were_asked_for() -> None:
    """One word can be written in fewer ways than the beam is wide."""
    task = built(PAIRS)
    (found,) = task.predict(["a dog"], decoding=DecodingConfig(num_beams=20, num_return_sequences=20, max_length=1))
    assert len(task.prediction_lines("a dog", found)) == 20
    real = [each for each in found.others if math.isfinite(each.score)]
    assert 0 < len(real) < 19 and found.others[len(real) :] == [GeneratedText("", [], -math.inf)] * (19 - len(real))
    scores = [each["score"] for each in task.prediction_json("a dog", found)["others"]]
    assert scores == [each.score for each in real] + [None] * (19 - len(real))
    (blank,) = task.predict([" "], decoding=DecodingConfig(strategy="sample", num_return_sequences=3))
    assert task.prediction_lines(" ", blank) == [""] * 3


def test_how_answers_are_printed() -> None:
    answer = GeneratedText("Ein Hund.", ["Ein", "Hund", "."], -0.25)
    task = built(PAIRS)
    assert task.parse_line("a dog", "TEXT:1") == "a dog" and not task.multi_line
    assert task.prediction_lines("a dog", answer) == ["Ein Hund."]
    assert task.prediction_json("a dog", answer) == {"text": "a dog", "answer": "Ein Hund.", "score": -0.25}
    both = dataclasses.replace(answer, others=[GeneratedText("Hund.", ["Hund", "."], -0.5)])
    assert task.prediction_lines("a dog", both) == ["Ein Hund.", "Hund."]
    assert task.prediction_json("a dog", both)["others"] == [{"answer": "Hund.", "score": -0.5}]


def test_mistakes() -> None:
    task = built(PAIRS)
    answers = [GeneratedText("Ein Hund läuft.", [], 0.0), GeneratedText("Ein Hut läuft.", [], 0.0)]
    examples = [dataclasses.replace(pair, where=number) for number, pair in enumerate(PAIRS, 1)]
    (mistake,) = task.example_errors(examples, answers, "dev")
    assert (mistake.where, mistake.text, mistake.errors[0].gold) == ("dev:2", "a cat runs .", "Ein Kater läuft.")
    assert 0 < mistake.weight < 1
    scores = task.score(PAIRS, answers)
    assert 0 < scores["bleu"] < 1 and 0 < scores["chrf"] < 1
    assert task.score(PAIRS, [GeneratedText(str(pair.target), [], 0.0) for pair in PAIRS])["chrf"] == 1.0


def test_perplexity_is_that_of_the_loss() -> None:
    task = built(PAIRS, label_smoothing=0.1)
    data = task.data(PAIRS)
    found = task.perplexity(data)
    task.network.label_smoothing = 0.0
    with torch.no_grad():
        loss = float(task.loss(task.prepare(data.gather([0, 1]))).components["task"])
    assert found == pytest.approx(math.exp(loss), rel=1e-5)
    assert task.evaluate(data)["perplexity"] == pytest.approx(found)


# ---- learning


def turned_pairs(count: int, seed: int) -> list[TextPair]:
    """Words in another language, backwards; in some texts a name that no other has."""
    source, found = random.Random(seed), []
    for _ in range(count):
        words = [(f"w{number}", f"v{number}") for number in source.choices(range(12), k=source.randint(1, 6))]
        if source.random() < 0.4:
            words[source.randrange(len(words))] = ("".join(source.choices("abcdefghijklmn", k=6)).title(),) * 2
        target = " ".join(other for _, other in reversed(words))
        found.append(TextPair(" ".join(word for word, _ in words) + " .", target + "."))
    return found


OTHERWISE = {"input_feeding": True, "attention": "additive", "tied": True, "label_smoothing": 0.1}


@pytest.mark.slow
@pytest.mark.parametrize("changes", [pytest.param({}, id="usual"), pytest.param(OTHERWISE, id="otherwise")])
def test_it_learns_to_turn_texts_around_and_to_copy_names(changes: dict[str, Any], tmp_path: Path) -> None:
    train, dev = turned_pairs(800, 0), turned_pairs(60, 1)
    fitting = FitConfig(batch_size=32, epochs=10, optim=OptimConfig(learning_rate=1e-2, weight_decay=0.0, clip_norm=5.0))
    config = small(**({"hidden_size": 24, "target_dim": 24, "dropout": 0.1, "min_count": 2} | changes))
    outcome = fit(
        TaskBuilder(Generation, config, splitter=get_splitter("whitespace")),
        Splits(train, dev),
        tmp_path / "out",
        fitting,
        Run(seed=1),
    )
    assert outcome.scores["dev"]["bleu"] > 0.95, outcome.scores
    names = {word for pair in dev for word in str(pair.source).split() if word.istitle()}
    assert len(names) > 15 and not names & set(outcome.task.labels)  # no dev name is a known word
    texts = [str(pair.source) for pair in dev]
    answers = [answer.text for answer in outcome.task.predict(texts)]
    assert sum(answer == pair.target for answer, pair in zip(answers, dev, strict=True)) > 54
    again = load(tmp_path / "out")
    assert again.config == outcome.task.config and again.labels == outcome.task.labels
    assert [answer.text for answer in again.predict(texts)] == answers


# ---- real data


@cache
def multi30k(name: str) -> list[TextPair]:
    root = os.environ.get("POLYSEME_DATA")
    if not root or not Path(root, "tasks", "mt_multi30k").is_dir():
        pytest.skip("real data: set POLYSEME_DATA to a folder with tasks/mt_multi30k")
    return Generation.read(Path(root, "tasks", "mt_multi30k", name), small(source="en", target="de"), training=True)


@pytest.mark.slow
def test_multi30k_becomes_words_and_text_again() -> None:
    dev = multi30k("val")
    task = built(dev, min_count=2)
    asked = task.data(dev).gather(range(len(dev))).examples
    known = sum(int((each.target >= len(MARKS)).sum()) for each in asked)
    assert known / sum(len(each.target) - 1 for each in asked) > 0.8
    assert task.score(dev, [GeneratedText(str(pair.target), [], 0.0) for pair in dev])["bleu"] == pytest.approx(1.0)
