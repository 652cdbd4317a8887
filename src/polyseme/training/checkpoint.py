"""Checkpoints: the complete state of a run, written atomically, with checksums; the last two are kept.

A checkpoint is two files, `checkpoint-00000120.safetensors` (tensors) and `checkpoint-00000120.json` (the rest, with the
checksums of both). The JSON is written last, so a checkpoint exists if it does; a kill at any moment leaves the one before.
Chosen over `torch.save`: no pickle, and a flipped bit is noticed.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from polyseme.base import format1
from polyseme.base.errors import FormatError, PolysemeError
from polyseme.base.files import atomic, read_json, replace_path_in_errors, write_text
from polyseme.base.hashing import hash_file, hash_json
from polyseme.base.lock import LOCK_NAME
from polyseme.base.tensor_files import write_unchanged
from polyseme.training.resume import translate_settings

FORMAT = 2
_log = logging.getLogger(__name__)


@dataclasses.dataclass
class Checkpoint:
    """The state after `step` steps."""

    step: int
    tensors: dict[str, Tensor]
    values: dict[str, Any]
    format: int = FORMAT
    """1: the names in `values["settings"]` are those of `polyseme.base.format1`."""


class CheckpointManager:
    """The checkpoints of one run, in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.last: int | None = None
        """Step of the latest good checkpoint."""

    def write(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint atomically, then remove all others but the good one before."""
        tensors, state = self._paths(checkpoint.step)
        try:
            with atomic(tensors) as part, replace_path_in_errors(tensors, part):
                write_unchanged(checkpoint.tensors, part)
                digest = hash_file(part)
            head = {"polyseme_checkpoint": FORMAT, "step": checkpoint.step, "tensors": digest, "values": checkpoint.values}
            write_text(state, json.dumps(head | {"digest": hash_json(head)}))
        except PolysemeError as error:
            if not state.exists():
                tensors.unlink(missing_ok=True)
            kept = "" if self.last is None else f"; the checkpoint of step {self.last} is kept"
            raise PolysemeError(f"{error}{kept}: free some space, then the same command resumes the run") from error
        keep = {*self._paths(checkpoint.step), *(self._paths(self.last) if self.last is not None else ())}
        self.last = checkpoint.step
        for file in sorted(self.folder.glob("checkpoint-*")):  # .json before .safetensors: never a head without its tensors
            if file not in keep:
                file.unlink(missing_ok=True)

    def latest(self) -> Checkpoint | None:
        """Return the latest good checkpoint, if any; log a warning for each damaged one."""
        problems = []
        for step in self.steps():
            try:
                checkpoint = self._read(step)
            except PolysemeError as error:
                problems.append(str(error))
                continue
            for problem in problems:
                _log.warning("%s; resuming from the checkpoint before, of step %d", problem, step)
            self.last = step
            return checkpoint
        if problems:
            raise PolysemeError(f"no checkpoint can be read: {'; '.join(problems)}; start again in another folder")
        return None

    def steps(self) -> list[int]:
        """Return the steps that have a checkpoint, latest first."""
        names = (file.stem.removeprefix("checkpoint-") for file in self.folder.glob("checkpoint-*.json"))
        return sorted((int(name) for name in names if name.isdigit()), reverse=True)

    def wait_for(self, seen: Sequence[Sequence[int]], seconds: float = 60.0) -> None:
        """Wait until the latest checkpoint that any process sees in its folder is here too; `seen`: by rank.

        Network file systems show new files to other machines after some seconds. If it does not appear, the folder is not
        shared, and the run would begin again on a machine that has become the main one.
        """
        latest = max(((steps[0], rank) for rank, steps in enumerate(seen) if steps), default=None)
        until = time.monotonic() + seconds
        while latest is not None and latest[0] > max(self.steps(), default=-1):
            if time.monotonic() > until:
                raise PolysemeError(
                    f"process {latest[1]} finds the checkpoint of step {latest[0]} in {self.folder}, and process 0 does not: "
                    "keep the folder on storage that all machines share"
                )
            time.sleep(0.2)

    def clean(self) -> None:
        """Remove partial files that a kill left: here (those of safetensors too), and in and beside the model's folder."""
        out = self.folder.parent
        inside = [left for left in self.folder.glob(".*") if left.name != LOCK_NAME]
        for left in (*inside, *out.glob(".*.part"), *out.parent.glob(f".{out.name}.*.part")):
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)

    def remove_all(self) -> None:
        """Remove all checkpoints: the next run in the folder begins anew."""
        for step in self.steps():
            for path in self._paths(step):
                path.unlink(missing_ok=True)

    def _paths(self, step: int) -> tuple[Path, Path]:
        name = f"checkpoint-{step:08d}"
        return self.folder / f"{name}.safetensors", self.folder / f"{name}.json"

    def _read(self, step: int) -> Checkpoint:
        tensors, state = self._paths(step)
        head = read_json(state)
        version = head.get("polyseme_checkpoint", 1)
        if version not in (1, FORMAT):
            raise FormatError(state, f"has format {version!r}; this version reads 1 and {FORMAT}")
        if head.pop("digest", None) != hash_json(head):
            raise FormatError(state, "is damaged (the checksum differs)")
        if hash_file(tensors) != head["tensors"]:
            raise FormatError(tensors, "is damaged (the checksum differs)")
        values = format1.translate("Checkpoint", head["values"]) if version == 1 else head["values"]
        try:
            return Checkpoint(step, load_file(tensors), values, version)
        except SafetensorError as error:
            raise FormatError(tensors, f"is damaged ({error})") from error


def has_checkpoint(out: Path) -> bool:
    """Whether a model's folder has a run to resume; a folder with the model of another run is an error."""
    found = bool(CheckpointManager(out / "run").steps())
    if not found and (out / "config.json").exists():
        raise PolysemeError(f"{out} holds a model of another run: choose another folder, or remove it first")
    return found


def stored_settings(out: Path, like: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the run in a model's folder; `like` says by its configs which names they have today.

    Empty where they cannot be read: resuming the run says why.
    """
    manager = CheckpointManager(out / "run")
    for step in manager.steps():
        try:
            head = read_json(manager.folder / f"checkpoint-{step:08d}.json")
        except PolysemeError:
            continue
        if head.get("polyseme_checkpoint", 1) == 1:
            values = format1.translate("Checkpoint", head.get("values", {}))
            return translate_settings(values.get("settings", {}), like)
        return dict(head.get("values", {}).get("settings", {}))
    return {}
