"""The next word: the probabilities that scoring gives, for every kind of model that has them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import polyseme
from polyseme.analysis.next_words import next_words
from polyseme.base.errors import PolysemeError

TEXT = "the bank of the river\na bank of money\nthe river\n" * 20


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("ngram", {"order": 3}),
        ("nnlm", {"dim": 4, "hidden_size": 5, "steps": 2}),
        ("ulmfit", {"dim": 4, "hidden_size": 5, "steps": 2}),
        ("elmo", {"size": "tiny", "steps": 2, "vocabulary_size": 9}),
    ],
)
def test_probabilities_are_those_of_scoring(tmp_path: Path, method: str, options: dict[str, object]) -> None:
    (tmp_path / "t.txt").write_text(TEXT)
    where = {"out": tmp_path / "m", "splitter": "whitespace"}
    polyseme.pretrain(method, tmp_path / "t.txt", **where, **options)  # type: ignore[arg-type]
    model, before = polyseme.load(tmp_path / "m"), ["the", "bank"]
    found = next_words(model, before, 20)
    assert {"of", "river", "</s>" if method != "elmo" else "</S>"} <= {word for word, _ in found}
    assert [p for _, p in found] == sorted((p for _, p in found), reverse=True)
    for word, probability in found:
        if not word.startswith("<"):
            (scored,) = model.log_probs([[*before, word]])
            assert math.log(probability) == pytest.approx(scored.forward[2], abs=1e-4), word


def test_a_gpt_completes_words_of_several_subwords(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(TEXT)
    options = {"size": "tiny", "vocabulary_size": 264, "max_length": 16, "steps": 60, "learning_rate": 0.01}
    polyseme.pretrain("gpt", tmp_path / "t.txt", out=tmp_path / "m", splitter="whitespace", **options)  # type: ignore[arg-type]
    model, before = polyseme.load(tmp_path / "m"), ["the", "bank"]
    found = next_words(model, before, 5)
    assert found[0][0] == "of" and found[0][1] > 0.5
    assert [p for _, p in found] == sorted((p for _, p in found), reverse=True)
    for word, probability in found:
        (scored,) = model.log_probs([before if word == "<|endoftext|>" else [*before, word]])
        assert math.log(probability) == pytest.approx(scored.forward[2], abs=1e-4), word
    assert any(len(model.subwords.encode_words([word])[0]) > 1 for word, _ in next_words(model, ["the"], 5))  # type: ignore[attr-defined]


def test_models_without_a_next_word(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(TEXT)
    model = polyseme.pretrain("word2vec", tmp_path / "t.txt", out=tmp_path / "w", dim=4, epochs=1)
    with pytest.raises(PolysemeError, match="word2vec does not tell the next word"):
        next_words(model, ["the"])
