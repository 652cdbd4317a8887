"""BERT and GPT in a task: frozen or fine-tuned, thawed layer by layer, and kept in the task's folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from polyseme.tasks.config import FeaturesConfig
from polyseme.tasks.folder import load
from polyseme.tasks.tagging import Tagging
from polyseme.tasks.tagging_config import TaggingConfig
from tests.encoders.small_subwords import bert, gpt

CONLL = "Ann B-PER\nsaw O\nthe O\nbank B-LOC\n\nMoney O\nhelps O\nAnn B-PER\n"


@pytest.mark.parametrize("make", [bert, gpt])
@pytest.mark.parametrize("mode", ["frozen", "finetune"])
def test_in_a_task(tmp_path: Path, make, mode: str) -> None:
    (tmp_path / "train.conll").write_text(CONLL)
    config = TaggingConfig(features=FeaturesConfig(mode=mode, unfreeze="gradual", layer_decay=2.0))  # type: ignore[arg-type]
    examples = Tagging.read(tmp_path / "train.conll", config, training=True)
    encoder = make()
    before = encoder.embed([["Ann", "saw"]])[0]
    task = Tagging.build(config, examples, [encoder])
    lr_multipliers = {rule.prefix: rule for rule in task.lr_multipliers()}
    batch = task.prepare(next(batch for _, batch in task.data(examples).by_length()))
    task.loss(batch).total.backward()
    moved = [name for name, weight in task.named_parameters() if weight.grad is not None]
    inside = [name for name in moved if name.startswith("features.tuned.")]
    if mode == "frozen":
        assert not inside and not lr_multipliers
    else:
        begins = sorted({round(rule.start, 1) for rule in lr_multipliers.values()})
        assert begins == [0.0, 0.1, 0.2] and set(inside) <= set(lr_multipliers)  # layer 2, layer 1, the embeddings
        assert any("wte" in name or "word_embeddings" in name for name in inside)
        with torch.no_grad():
            for weight in task.features.tuned.parameters():
                weight.add_(0.01)
    np.testing.assert_array_equal(encoder.embed([["Ann", "saw"]])[0], before)  # the caller's own stays
    task.eval().save(tmp_path / "task")
    asked = [["Ann", "saw", "Money"]]
    assert load(tmp_path / "task").predict(asked) == task.predict(asked)
