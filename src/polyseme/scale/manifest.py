"""The manifest of a dataset: what it was made from, and which parts it has. It decides whether a run may resume.

Nothing in it depends on how the work was run (engine, number of workers, time), so the same dataset has the same manifest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyseme.base.errors import FormatError, PolysemeError, arg
from polyseme.scale.config import differences
from polyseme.scale.folder import MANIFEST, SHARDS, DatasetFolder
from polyseme.scale.shards import Shard

FORMAT = 1


@dataclass(frozen=True)
class PartInfo:
    """What a part says about itself."""

    rows: int
    words: int
    sha256: str
    """Of the shard that it was made from, with all that its vectors depend on."""

    def to_json(self) -> dict[str, Any]:
        return {"rows": self.rows, "words": self.words}


@dataclass(frozen=True)
class Recipe:
    """All that the content of a dataset depends on."""

    model: str
    """Fingerprint of the model."""
    options: Mapping[str, Any]
    text: str
    """Hash of all shards: files, lines and content."""
    shards: int
    lines: int

    @classmethod
    def of(cls, shards: Sequence[Shard], model: str, options: Mapping[str, Any]) -> Recipe:
        digest = hashlib.sha256()
        for shard in shards:
            digest.update(shard.sha256.encode())
        return cls(model, dict(options), digest.hexdigest(), len(shards), sum(shard.lines for shard in shards))

    def to_json(self) -> dict[str, Any]:
        return {"polyseme_dataset": FORMAT, "model": self.model, "options": dict(self.options), "text": self.text} | {
            "shards": self.shards,
            "lines": self.lines,
        }


def begin(folder: DatasetFolder, recipe: Recipe, shards: Sequence[Shard]) -> None:
    """Write the manifest of a new dataset, or check that the one that is there is of the same dataset, or of none yet."""
    data = folder.read(MANIFEST)
    if data is None:
        if parts := folder.parts():
            raise PolysemeError(
                f"{folder.name} has Parquet files ({parts[0]}) but no {MANIFEST}: choose an empty folder for {arg('out')}"
            )
        _write_new(folder, recipe, shards)
        return
    try:
        old = json.loads(data)
    except ValueError as error:
        raise FormatError(
            f"{folder.name}/{MANIFEST}", f"is not valid JSON ({error}); remove the folder and start again"
        ) from error
    new = json.loads(_text(recipe.to_json()))
    changed = [name for name in ("polyseme_dataset", "model", "text") if old.get(name) != new[name]]
    changed += [arg(name) for name in differences(old.get("options", {}), new["options"])]
    if changed and folder.has_manifest_only():
        _write_new(folder, recipe, shards)
    elif changed:
        raise PolysemeError(
            f"{folder.name} was begun with other settings ({', '.join(changed)}): give those it was begun with to resume it, "
            f"or choose another folder for {arg('out')}"
        )


def _write_new(folder: DatasetFolder, recipe: Recipe, shards: Sequence[Shard]) -> None:
    lines = (json.dumps(shard.to_json(), ensure_ascii=False) for shard in shards)
    folder.write(SHARDS, "".join(f"{line}\n" for line in lines))
    folder.write(MANIFEST, _text({**recipe.to_json(), "complete": False}))


def finish(folder: DatasetFolder, recipe: Recipe, parts: Mapping[str, PartInfo]) -> None:
    """Write the manifest of a complete dataset."""
    listed = {name: parts[name].to_json() for name in sorted(parts)}
    words = sum(part.words for part in parts.values())
    folder.write(MANIFEST, _text({**recipe.to_json(), "complete": True, "words": words, "parts": listed}))


def _text(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
