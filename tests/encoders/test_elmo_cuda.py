"""The GPU path where there is a GPU; elsewhere its kernels run in Triton's interpreter (tests/nn/lstm/test_plain.py)."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from polyseme.nn.lstm.cuda import CudaLstm
from polyseme.nn.lstm.layers import plain_only
from tests.encoders.small import elmo, sentences

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
TEXTS = sentences(300, longest=40)


@pytest.mark.parametrize("form", ["characters", "words", "both"])
@pytest.mark.parametrize("start", ["zero", "learned", "warm", "carry"])
def test_same_vectors_as_on_the_cpu(form: str, start: str) -> None:
    cpu, cuda = elmo(form=form, start="learned"), elmo(form=form, start="learned").cuda()
    expected = cpu.embed(TEXTS, start=start, batch_size=64)
    found = cuda.embed(TEXTS, start=start, batch_size=64, batch_words=512)
    assert isinstance(cuda.lstm._prepared[1], CudaLstm)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_plain_path_and_gradients() -> None:
    model = elmo().cuda()
    with plain_only():
        expected = model.embed(TEXTS[:20])
    for a, b in zip(model.embed(TEXTS[:20]), expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    model(model.prepare(TEXTS[:20])).states.square().sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_language_model_questions() -> None:
    cpu, cuda = elmo(output=True), elmo(output=True).cuda()
    np.testing.assert_allclose(cuda.score(TEXTS), cpu.score(TEXTS), atol=1e-3)
    assert [s.word for s in cuda.substitutes(["the", "cat", "sat"], 1)] == [
        s.word for s in cpu.substitutes(["the", "cat", "sat"], 1)
    ]


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_lower_precision(precision: str) -> None:
    model = elmo().cuda()
    exact = np.concatenate([array[2] for array in model.embed(TEXTS)])
    model.precision = precision  # type: ignore[assignment]
    close = np.concatenate([array[2] for array in model.embed(TEXTS)])
    cosines = (exact * close).sum(1) / np.linalg.norm(exact, axis=1) / np.linalg.norm(close, axis=1)
    assert 0.99 < cosines.min() < 1.0
