"""Every task on a GPU, as far as that can be told without one (`tests.fake_cuda`)."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from polyseme.nn.stacked_bilstm import StackedBiLstm
from polyseme.tasks.config import LinearHeadConfig
from polyseme.text.labelled.conll import TaggedSentence
from tests.fake_cuda import DEVICE, FakeCudaTensor, fake_cuda
from tests.tasks.test_contract import BARE, CASES, assert_same_answers, built, cases

pytestmark = [
    pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU"),
    pytest.mark.filterwarnings("ignore:PyTorch was compiled without cuDNN"),
]
CHOOSING = 5  # waits for each document, in which spans are chosen on the CPU


QUICK = ("direct-pairs", "bidaf", "roles", "coreference", "generation")
SOME = 3  # examples


@cases(lambda name, mode: name == "tagging" or (name in QUICK and mode == "frozen"))
def test_a_step_and_answers(name: str, mode: str, tmp_path: Path) -> None:
    task, examples = built(name, mode, tmp_path)
    data = task.data(examples[:SOME])
    data.cache(task.features, tmp_path)
    answers = task.predict_data(data)
    expected = float(task.eval().loss(task.prepare(data.gather(range(SOME)))).total.detach())
    with fake_cuda() as gpu:
        task.to(DEVICE)
        assert_same_answers(task.predict_data(data), answers, 1e-4)
        for precision, tolerance in (("fp32", 1e-4), ("bf16", 0.02)):
            batch = task.prepare(data.gather(range(SOME)))
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=precision == "bf16"):
                total = task.loss(batch).total
            assert total.dtype == torch.float32 and total.tolist() == pytest.approx(expected, rel=tolerance)
        task.train()
        gpu.clear()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            total = task.loss(task.prepare(data.gather(range(SOME)))).total
        total.backward()
        waits = sum(gpu.waits.values())
    for weight in (weight for weight in task.parameters() if weight.requires_grad):
        assert isinstance(weight.grad, FakeCudaTensor) and weight.grad.dtype == torch.float32
        assert bool(weight.grad.held.isfinite().all())
    if mode != "finetune" and name not in BARE:  # whose encoders lay out their words on the CPU
        assert waits <= (SOME * CHOOSING if CASES[name].kind == "coreference" else 0), gpu.waits


def test_a_tagger_is_not_all_launches(tmp_path: Path) -> None:
    """An operation costs some five microseconds, however small it is; those of the CRF come for each word."""
    task, _ = built("tagging", "frozen", tmp_path)
    data = task.data([TaggedSentence(["cat"] * 40, ["O"] * 40)] * 16)
    data.cache(task.features, tmp_path)
    with fake_cuda() as gpu:
        task.to(DEVICE).train()
        batch = task.prepare(data.gather(range(16)))
        gpu.clear()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            task.loss(batch).total.backward()
    assert gpu.launches.total() < 600, gpu.launches.most_common(5)


def test_what_a_gpu_would_refuse_is_refused() -> None:
    with fake_cuda() as gpu:
        x = torch.ones(2, 3, device=DEVICE)
        assert x.device == DEVICE and x.is_cuda and (x @ x.T).tolist() == [[3.0, 3.0], [3.0, 3.0]]
        assert sum(gpu.waits.values()) == 1
        with pytest.raises(TypeError, match="to numpy"):
            x.numpy()
        with pytest.raises(AssertionError, match="a state or weight is on the CPU"):
            StackedBiLstm(3, 2)(x.unsqueeze(0), torch.ones(1, 2, dtype=torch.bool, device=DEVICE))
        with torch.autocast("cuda", dtype=torch.bfloat16), pytest.raises(RuntimeError, match="Unexpected floating"):
            states, _ = torch.nn.LSTM(3, 2).to(DEVICE)(x.unsqueeze(0))  # in float16
            torch.cat([states, states])


@pytest.mark.parametrize(("name", "most"), [("bert", 1), ("ulmfit", 0)])  # BERT's library looks once whether there is padding
def test_whole_examples_wait_for_nothing(name: str, most: int) -> None:
    from tests.tasks.test_linear_head import KINDS
    from tests.tasks.test_linear_head import built as direct

    task, examples = direct("pairs", KINDS[name](), linear_head=LinearHeadConfig(lm_weight=0.5 if name == "ulmfit" else 0.0))
    data = task.data(examples)
    expected = float(task.eval().loss(task.prepare(data.gather(range(8)))).total.detach())
    with fake_cuda() as gpu:
        batch = task.to(DEVICE).prepare(data.gather(range(8)))
        assert task.loss(batch).total.tolist() == pytest.approx(expected, rel=1e-4)
        task.train()
        gpu.clear()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            total = task.loss(batch).total
        total.backward()
        assert total.dtype == torch.float32 and sum(gpu.waits.values()) <= most, gpu.waits
    weights = [weight for path, weight in task.named_parameters() if weight.requires_grad and ".decoder." not in path]
    assert all(isinstance(weight.grad, FakeCudaTensor) for weight in weights)  # what is tied is not, on the fake GPU
