"""CheckpointManager: the whole state of a run, atomic, checked, two of them kept.

One checkpoint is two files, `checkpoint-00000120.safetensors` (tensors) and `checkpoint-00000120.json` (all else, with the
checksums of both). The JSON is written last, so that a checkpoint exists when it does; a kill at any moment leaves the one
before. Chosen against `torch.save`: no pickle, and a flipped bit is found instead of trained on.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from polyseme.base.errors import FormatError, PolysemeError
from polyseme.base.files import atomic, read_json, wrap_os_errors, write_text
from polyseme.base.lock import LOCK

FORMAT = 1
_log = logging.getLogger(__name__)


@dataclasses.dataclass
class Checkpoint:
    """The state after `step` steps."""

    step: int
    tensors: dict[str, Tensor]
    values: dict[str, Any]


class CheckpointManager:
    """The checkpoints of one run, in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.last: int | None = None
        """The step of the newest one known to be good."""

    def write(self, checkpoint: Checkpoint) -> None:
        """Write it whole or not at all, then let go of all but it and the good one before."""
        tensors, state = self._paths(checkpoint.step)
        try:
            with atomic(tensors) as part:
                _save(_apart(checkpoint.tensors), part)
                digest = _file_digest(part)
            head = {"polyseme_checkpoint": FORMAT, "step": checkpoint.step, "tensors": digest, "values": checkpoint.values}
            write_text(state, json.dumps(head | {"digest": _digest(head)}))
        except PolysemeError as error:
            if not state.exists():
                tensors.unlink(missing_ok=True)
            kept = "" if self.last is None else f"; the checkpoint of step {self.last} is kept"
            raise PolysemeError(f"{error}{kept}: make room, then the same command goes on from there") from error
        keep = {*self._paths(checkpoint.step), *(self._paths(self.last) if self.last is not None else ())}
        self.last = checkpoint.step
        for file in sorted(self.folder.glob("checkpoint-*")):  # .json before .safetensors: never a head without its tensors
            if file not in keep:
                file.unlink(missing_ok=True)

    def newest(self) -> Checkpoint | None:
        """The newest good one, None where there is none; damaged ones are passed over with a warning."""
        problems = []
        for step in self.steps():
            try:
                found = self._read(step)
            except PolysemeError as error:
                problems.append(str(error))
                continue
            for problem in problems:
                _log.warning("%s; going on from the checkpoint before, of step %d", problem, step)
            self.last = step
            return found
        if problems:
            raise PolysemeError(f"no checkpoint can be read: {'; '.join(problems)}; start anew in another folder")
        return None

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, newest first."""
        names = (file.stem.removeprefix("checkpoint-") for file in self.folder.glob("checkpoint-*.json"))
        return sorted((int(name) for name in names if name.isdigit()), reverse=True)

    def clean(self) -> None:
        """Remove what a kill left half-written: here (safetensors leaves files, too), and in and beside the model's folder."""
        out = self.folder.parent
        inside = [left for left in self.folder.glob(".*") if left.name != LOCK]
        for left in (*inside, *out.glob(".*.part"), *out.parent.glob(f".{out.name}.*.part")):
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)

    def _paths(self, step: int) -> tuple[Path, Path]:
        name = f"checkpoint-{step:08d}"
        return self.folder / f"{name}.safetensors", self.folder / f"{name}.json"

    def _read(self, step: int) -> Checkpoint:
        tensors, state = self._paths(step)
        head = read_json(state)
        if head.get("polyseme_checkpoint", FORMAT) != FORMAT:
            raise FormatError(state, f"has format {head['polyseme_checkpoint']!r}; this version reads {FORMAT}")
        if head.pop("digest", None) != _digest(head):
            raise FormatError(state, "is damaged (its checksum differs)")
        if _file_digest(tensors) != head["tensors"]:
            raise FormatError(tensors, "is damaged (its checksum differs)")
        try:
            return Checkpoint(step, load_file(tensors), head["values"])
        except SafetensorError as error:
            raise FormatError(tensors, f"is damaged ({error})") from error


def has_checkpoint(out: Path) -> bool:
    """Whether a run has begun in a model's folder; to begin one where another run left its model is an error."""
    begun = bool(CheckpointManager(out / "run").steps())
    if not begun and (out / "config.json").exists():
        raise PolysemeError(f"{out} holds a model of another run: choose another folder, or remove it first")
    return begun


def _apart(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """On the CPU, and no two in one memory (tied weights), which the file format refuses."""
    seen: set[int] = set()
    apart = {}
    for name, value in tensors.items():
        value = value.detach().cpu().contiguous()
        storage = value.untyped_storage()
        if storage.data_ptr() in seen or storage.nbytes() != value.numel() * value.element_size():
            value = value.clone()
        seen.add(value.untyped_storage().data_ptr())
        apart[name] = value
    return apart


def _save(tensors: dict[str, Tensor], path: Path) -> None:
    try:
        save_file(tensors, path)
    except SafetensorError as error:  # a full disk is no OSError there
        raise OSError(str(error).removeprefix("Error while serializing: I/O error: ")) from error
    path.chmod(0o644)  # safetensors lets nobody but the owner read


def _digest(head: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(head, sort_keys=True).encode()).hexdigest()


def _file_digest(path: Path) -> str:
    with wrap_os_errors(path, "read"), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
