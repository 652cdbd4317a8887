"""GloVe: the loss and each step against plain computations, and a run that is stopped and goes on."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

import polyseme
from polyseme.base.config import ConfigError
from polyseme.base.errors import PolysemeError
from polyseme.base.run import Run
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.pretraining.glove import FIRST_SQUARE, Glove
from polyseme.pretraining.glove_config import GlovePretraining
from polyseme.text.corpus import Corpus
from polyseme.text.counting.cooccurrence import Cooccurrences

TEXT = "the cat sat on the mat .\nthe dog saw the cat .\na dog sat on a mat .\nthe bank of the river .\n" * 8
SMALL = {"dim": 5, "min_count": 1, "epochs": 4, "window": 3}
PAIRS = {(0, 0): 2.0, (0, 1): 12.5, (1, 2): 0.5, (0, 3): 1.0, (2, 3): 3.25}


def pairs() -> Cooccurrences:
    first, second = np.array(list(PAIRS), dtype=np.int32).T
    return Cooccurrences(first, second, np.array(list(PAIRS.values()), dtype=np.float32), 4)


def corpus(folder: Path, text: str = TEXT) -> Corpus:
    folder.mkdir(exist_ok=True)
    (folder / "t.txt").write_text(text, encoding="utf-8")
    return Corpus(folder / "t.txt", splitter="whitespace", sentences="lines")


def plain_loss(model: Glove, ordered: list[tuple[int, int, float]]) -> float:
    """The paper's formula, a pair at a time, in Python's own numbers."""
    dim, config = model.config.dim, model.config
    word, context = model.word.double().tolist(), model.context.double().tolist()
    total = 0.0
    for i, j, count in ordered:
        weight = min(1.0, (count / config.x_max) ** config.alpha)
        product = sum(word[i][k] * context[j][k] for k in range(dim))
        total += 0.5 * weight * (product + word[i][dim] + context[j][dim + 1] - math.log(count)) ** 2
    return total


def ordered() -> list[tuple[int, int, float]]:
    return [(i, j, x) for (i, j), x in PAIRS.items()] + [(j, i, x) for (i, j), x in PAIRS.items() if i != j]


def test_the_loss() -> None:
    model = Glove(pairs(), GlovePretraining(dim=3, x_max=3.0, alpha=0.6), Run(seed=3))
    assert model.directed_pairs == 9
    for _ in range(3):
        assert model.loss() == pytest.approx(plain_loss(model, ordered()) / 9, rel=1e-5)
        model.epoch(0)


def test_a_step_is_adagrad_on_the_gradient_of_that_loss() -> None:
    config = GlovePretraining(dim=3, batch_pairs=3, learning_rate=0.3)
    model = Glove(pairs(), config, Run(seed=1))
    word, context = (table.double().clone().requires_grad_() for table in (model.word, model.context))
    squares = [torch.full_like(table, FIRST_SQUARE) for table in (word.detach(), context.detach())]
    order = torch.randperm(5, generator=torch.Generator().manual_seed(1 * 1_000_003 + 0 + 1))
    model.epoch(0)
    keys = list(PAIRS)
    for batch in order.split(3):
        total = torch.zeros((), dtype=torch.float64)
        for place in batch.tolist():
            i, j = keys[place]
            count = PAIRS[i, j]
            for one, two in {(i, j), (j, i)}:
                product = word[one, :3] @ context[two, :3] + word[one, 3] + context[two, 4]
                total = total + 0.5 * min(1, (count / 10) ** 0.75) * (product - math.log(count)) ** 2
        for table, sums, gradient in zip((word, context), squares, torch.autograd.grad(total, (word, context)), strict=True):
            sums += gradient**2
            table.data -= 0.3 * gradient / sums.sqrt()
    torch.testing.assert_close(model.word, word.detach().float(), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(model.context, context.detach().float(), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(model.vectors(), (word + context).detach()[:, :3].float(), rtol=1e-4, atol=1e-6)
    assert (model.word[:, -1] == 1).all() and (model.context[:, -2] == 1).all()


def test_from_text_to_a_model(tmp_path: Path) -> None:
    fitted = GlovePretraining(**SMALL).fit(corpus(tmp_path), Run(seed=2), tmp_path / "m")
    model = polyseme.load(tmp_path / "m")
    assert isinstance(model, WordVectorTable) and model.kind == "word2vec" and model.splitter.name == "whitespace"
    assert list(model.vocabulary)[:2] == ["the", "."] and fitted.vocabulary_size == len(model.vocabulary) == 12
    assert model.encode(["the cat"], pooling="sif").any()
    card = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    assert "method=glove" in card and "| text | t.txt |" in card and f"| loss | {fitted.loss:.4f} |" in card
    longer = GlovePretraining(**{**SMALL, "epochs": 30}).fit(corpus(tmp_path), Run(seed=2), tmp_path / "n")
    assert longer.loss is not None and fitted.loss is not None and longer.loss < fitted.loss / 2


def test_frequent_words_are_downsampled_in_long_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def table(name: str, **options: float) -> torch.Tensor:
        GlovePretraining(**SMALL, **options).fit(corpus(tmp_path), Run(), tmp_path / name)
        return polyseme.load(tmp_path / name).table.weight

    assert torch.equal(table("short"), table("never", sample=0.0))
    monkeypatch.setattr("polyseme.pretraining.glove.LONG_TEXT", 10)
    monkeypatch.setattr("polyseme.pretraining.glove.SAMPLE", 0.02)
    long = table("long")
    assert torch.equal(long, table("asked", sample=0.02)) and not torch.equal(long, table("still-never", sample=0.0))
    with pytest.raises(ConfigError, match=r"sample is 1\.0; allowed: 0 or more, below 1"):
        GlovePretraining(sample=1.0)


def test_an_interrupted_run_resumes_to_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, text = GlovePretraining(**SMALL), corpus(tmp_path)
    config.fit(text, Run(), tmp_path / "whole")
    once = Glove.epoch

    def stopping(self: Glove, number: int, advance: object = None) -> float:
        if number == 2:
            raise KeyboardInterrupt
        return once(self, number, advance)  # type: ignore[arg-type]

    monkeypatch.setattr(Glove, "epoch", stopping)
    with pytest.raises(KeyboardInterrupt):
        config.fit(text, Run(), tmp_path / "cut")
    assert not (tmp_path / "cut" / "config.json").exists()
    monkeypatch.setattr(Glove, "epoch", once)
    config.fit(text, Run(), tmp_path / "cut")
    one, two = (polyseme.load(tmp_path / name).table.weight for name in ("whole", "cut"))
    assert torch.equal(one, two)
    heads = [json.loads(file.read_text()) for file in (tmp_path / "cut" / "run").glob("checkpoint-*.json")]
    assert sorted(head["step"] for head in heads) == [3, 4]
    with pytest.raises(PolysemeError, match=r"other settings \(dim: 5 in the run, 6 now\)"):
        config.replace(dim=6).fit(text, Run(), tmp_path / "cut")
    with pytest.raises(PolysemeError, match="the text, or how it is split, differs from that of the run"):
        config.fit(corpus(tmp_path / "other", "a new text\n"), Run(), tmp_path / "cut")


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"dim is 0; allowed: 1 or more; x_max is -1\.0; allowed: above 0"):
        GlovePretraining(dim=0, x_max=-1.0)
    with pytest.raises(PolysemeError, match="no word of the text occurs 99 times: give a lower min_count"):
        GlovePretraining(min_count=99).fit(corpus(tmp_path), Run(), tmp_path / "m")
    with pytest.raises(PolysemeError, match="no two known words are near each other"):
        GlovePretraining(min_count=1).fit(corpus(tmp_path / "b", "one\ntwo\n"), Run(), tmp_path / "n")
    with pytest.raises(PolysemeError, match="a lower min_count, or a larger sample"):
        GlovePretraining(**SMALL, sample=1e-9).fit(corpus(tmp_path), Run(), tmp_path / "s")
    with pytest.raises(PolysemeError, match="the text has no words"):
        GlovePretraining().fit(corpus(tmp_path / "c", "\n"), Run(), tmp_path / "o")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text("{}")
    with pytest.raises(PolysemeError, match="other holds a model of another run: choose another folder"):
        GlovePretraining(**SMALL).fit(corpus(tmp_path), Run(), tmp_path / "other")
    with pytest.raises(PolysemeError, match="trains in one process, and this run has 2: start it without torchrun"):
        GlovePretraining(**SMALL).fit(corpus(tmp_path), Run(world_size=2), tmp_path / "q")
    with pytest.raises(PolysemeError, match="give a lower learning_rate"):
        GlovePretraining(learning_rate=1e30, **SMALL).fit(corpus(tmp_path), Run(), tmp_path / "p")
