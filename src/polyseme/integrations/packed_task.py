"""A trained task as a value that pickles: its own files, and its encoders by name and hash.

The files are those of a task folder (`polyseme.tasks.folder`): JSON, safetensors and text. A frozen encoder that has a name is
loaded by it again; a fine-tuned one exists nowhere else, so its weights are part of the value.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from polyseme.encoders.base import Encoder
from polyseme.encoders.fingerprint import known_fingerprint
from polyseme.integrations.model_reference import shared_model
from polyseme.tasks.base import Task
from polyseme.tasks.folder import load
from polyseme.tasks.folder_check import HEAD


@dataclass(frozen=True)
class PackedTask:
    """The files of a task folder."""

    files: dict[str, bytes]
    """By path in the folder."""
    named: dict[str, str]
    """Folders of encoders that are not among the files: the names of their models."""

    @classmethod
    def of(cls, task: Task, encoders: Sequence[Encoder] = ()) -> PackedTask:
        """Pack a task; `encoders`: those that it was trained with, whose names (`source`) are kept in place of weights."""
        names = {known_fingerprint(each): each.source for each in encoders if each.source is not None}
        with tempfile.TemporaryDirectory(prefix="polyseme-") as name:
            folder = Path(name)
            task.save(folder)
            head = json.loads((folder / HEAD).read_text(encoding="utf-8"))
            entries = [*head["encoders"], *([] if head["vectors"] is None else [head["vectors"]])]
            named = {each["folder"]: names[each["sha256"]] for each in entries if "folder" in each and each["sha256"] in names}
            paths = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
            kept = [path for path in paths if path.parts[0] not in named]
            return cls({path.as_posix(): (folder / path).read_bytes() for path in kept}, named)

    def load(self, device: str | None = None) -> Task:
        """Return the task; it is an error if the model of a name is not the one of training."""
        with tempfile.TemporaryDirectory(prefix="polyseme-") as name:
            folder = Path(name)
            for path, content in self.files.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(content)
            for place, model in self.named.items():
                shared_model(model).save_pretrained(folder / place)
            return load(folder, device=device or "cpu")
