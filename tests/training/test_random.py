from __future__ import annotations

import json
import random

import numpy as np
import torch

from polyseme.base.run import Run


def update_bar() -> list[float]:
    return [random.random(), random.gauss(0, 1), float(np.random.rand()), float(np.random.randn()), float(torch.rand(()))]


def test_all_random_states_come_back_through_json() -> None:
    run = Run(seed=4)
    run.seed_all()
    first = update_bar()  # an odd number of Gaussians: the second of the pair is part of the state
    kept = json.loads(json.dumps(run.random_states()))
    second = update_bar()
    run.restore_random(kept)
    assert update_bar() == second != first
    run.seed_all()
    assert update_bar() == first


def test_ranks_draw_differently() -> None:
    drawn = []
    for rank in range(2):
        Run(seed=4, rank=rank, world_size=2).seed_all()
        drawn.append(update_bar())
    assert all(one != two for one, two in zip(*drawn, strict=True))
