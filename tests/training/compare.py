"""Whether two runs are the same run: last checkpoints, best models and logs, to the bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

TIMES = {"seconds", "words_per_second"}


def log(out: Path) -> list[dict[str, Any]]:
    lines = (out / "run" / "log.jsonl").read_text().splitlines()
    return [{name: value for name, value in json.loads(line).items() if name not in TIMES} for line in lines]


def newest(out: Path, ending: str) -> Path:
    return max((out / "run").glob(f"checkpoint-*.{ending}"))


def values(out: Path) -> dict[str, Any]:
    """The newest checkpoint's JSON, without what depends on the clock."""
    found = json.loads(newest(out, "json").read_text())["values"]
    found["progress"].pop("seconds")
    found.pop("log_bytes")  # a length in bytes, times included
    found.pop("evaluation_seconds")
    for rank in found["processes"]:
        rank["interval"].pop("seconds")
    for name in ("checkpoint_every", "checkpoint_seconds"):
        found["settings"]["config"].pop(name)
    return found


def assert_same_tensors(first: Path, second: Path) -> None:
    one, two = load_file(first), load_file(second)
    assert set(one) == set(two)
    for name, value in one.items():
        assert torch.equal(value, two[name]), name


def assert_same_run(first: Path, second: Path) -> None:
    one, two = log(first), log(second)
    assert len(one) == len(two), f"{len(one)} lines of log, and {len(two)}"
    for here, there in zip(one, two, strict=True):
        assert here == there, f"{here} is not {there}"
    assert_same_tensors(newest(first, "safetensors"), newest(second, "safetensors"))
    assert_same_tensors(first / "model.safetensors", second / "model.safetensors")
    assert values(first) == values(second)
