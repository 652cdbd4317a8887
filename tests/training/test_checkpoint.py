from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from polyseme.base.errors import PolysemeError
from polyseme.training.checkpoint import Checkpoint, CheckpointManager
from polyseme.training.trainer import Trainer
from tests.training import toy
from tests.training.compare import assert_same_run, newest


def damage(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "cut":
        data = data[: len(data) // 2]
    elif how == "flipped":
        data[len(data) // 2] ^= 1
    elif how == "empty":
        data = bytearray()
    path.unlink() if how == "gone" else path.write_bytes(data)


CASES = [("safetensors", how) for how in ("cut", "flipped", "empty", "gone")]
CASES += [("json", how) for how in ("cut", "flipped", "empty")]


def fit(out: Path) -> None:
    Trainer(toy.config(), toy.RUN).fit(toy.learner(), toy.ToyBatches(), toy.dev(), out)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, to be read only."""
    fit(out := tmp_path_factory.mktemp("whole"))
    return out


@pytest.mark.parametrize(("ending", "how"), CASES)
def test_a_damaged_one_falls_back(tmp_path: Path, whole: Path, ending: str, how: str, caplog: pytest.LogCaptureFixture) -> None:
    shutil.copytree(whole, tmp_path / "hurt")
    assert CheckpointManager(tmp_path / "hurt" / "run").steps() == [40, 35]
    damage(newest(tmp_path / "hurt", ending), how)
    fit(tmp_path / "hurt")
    assert "checkpoint-00000040" in caplog.text
    assert "resuming from the checkpoint before, of step 35" in caplog.text
    assert_same_run(whole, tmp_path / "hurt")


def test_all_damaged_is_an_error(tmp_path: Path) -> None:
    checkpoints = CheckpointManager(tmp_path)
    for step in (1, 2):
        checkpoints.write(Checkpoint(step, {"a": torch.ones(2)}, {}))
    for file in tmp_path.glob("*.safetensors"):
        damage(file, "flipped")
    with pytest.raises(PolysemeError, match=r"no checkpoint can be read: .*00000002.* damaged .*00000001.* damaged"):
        CheckpointManager(tmp_path).latest()


def test_every_bit_comes_back(tmp_path: Path) -> None:
    strange = torch.tensor([0.1, -0.0, 1e-45, 3.4e38])
    tensors = {
        "floats": strange,
        "doubles": strange.double() / 3,
        "halves": strange.bfloat16(),
        "counts": torch.tensor(2**62 + 1),
        "view": strange[1:3],
        "same": strange,
        "turned": torch.arange(6).view(2, 3).T,
    }
    values = {"third": 1 / 3, "text": "größe", "list": [1, None, 2**60]}
    CheckpointManager(tmp_path).write(Checkpoint(7, tensors, values))
    found = CheckpointManager(tmp_path).latest()
    assert found is not None and found.step == 7 and found.values == values
    for name, value in tensors.items():
        assert found.tensors[name].dtype == value.dtype
        assert torch.equal(found.tensors[name], value)
    assert torch.signbit(found.tensors["floats"][1])


def test_two_are_kept(tmp_path: Path) -> None:
    checkpoints = CheckpointManager(tmp_path)
    for step in (1, 5, 120):
        checkpoints.write(Checkpoint(step, {"a": torch.ones(1)}, {}))
    assert checkpoints.steps() == [120, 5]
    assert len(list(tmp_path.iterdir())) == 4


def test_a_damaged_one_is_not_kept_in_place_of_a_good_one(tmp_path: Path) -> None:
    checkpoints = CheckpointManager(tmp_path)
    for step in (1, 9):
        checkpoints.write(Checkpoint(step, {"a": torch.ones(1)}, {}))
    damage(tmp_path / "checkpoint-00000009.json", "cut")
    again = CheckpointManager(tmp_path)
    assert again.latest() is not None
    again.write(Checkpoint(4, {"a": torch.ones(1)}, {}))
    assert again.steps() == [4, 1]


def test_another_format_is_told(tmp_path: Path) -> None:
    CheckpointManager(tmp_path).write(Checkpoint(1, {"a": torch.ones(1)}, {}))
    path = tmp_path / "checkpoint-00000001.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"polyseme_checkpoint": 9}))
    with pytest.raises(PolysemeError, match="has format 9; this version reads 1"):
        CheckpointManager(tmp_path).latest()


def test_a_checkpoint_that_only_others_see(tmp_path: Path) -> None:
    """The main process is on another machine than before, whose folder is not shared, or shows new files late."""
    manager = CheckpointManager(tmp_path)
    manager.wait_for([[], []], seconds=0)
    told = f"process 1 finds the checkpoint of step 40 in {tmp_path}, and process 0 does not: keep the folder on storage that"
    with pytest.raises(PolysemeError, match=told):
        manager.wait_for([[], [40]], seconds=0)
    manager.write(Checkpoint(40, {"w": torch.zeros(1)}, {}))
    manager.wait_for([[], [40]], seconds=0)
    with pytest.raises(PolysemeError, match="process 1 finds the checkpoint of step 50"):
        manager.wait_for([[40], [50]], seconds=0)
