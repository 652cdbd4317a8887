"""How a dataset of vectors is made: what a row holds, how work is cut, and what runs it. Imports no PyTorch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from polyseme.base.config import Config, setting
from polyseme.base.errors import UsageError, arg
from polyseme.encoders.embed_config import TextPooling

EngineName = Literal["local", "ray"]
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


def parse_size(text: str) -> int:
    """Parse a number of bytes, with a unit or without.

    >>> parse_size("64MB"), parse_size("1.5 GB"), parse_size("4096")
    (64000000, 1500000000, 4096)
    """
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmg]?)b?\s*", text.lower())
    if found is None:
        raise UsageError(f"{arg('shard_size')} is {text!r}; allowed: a number of bytes, or such as 500KB, 64MB or 1GB")
    return int(float(found.group(1)) * _UNITS[found.group(2)])


def parse_mix(text: str) -> tuple[float, ...] | str:
    """Parse the weights of layers, or keep the name of a trained task.

    >>> parse_mix("0.2,0.3,0.5"), parse_mix("my-tagger")
    ((0.2, 0.3, 0.5), 'my-tagger')
    """
    try:
        return tuple(float(each) for each in text.split(","))
    except ValueError:
        return text


@dataclass(frozen=True, kw_only=True)
class TextEngineConfig(Config):
    """What reads and splits a text."""

    engine: EngineName | None = setting(
        None,
        "local: processes on this machine. ray: a Ray cluster (extra ray). The result is the same.",
        default_text="local",
        group="Many machines",
    )
    workers: int | None = setting(
        None,
        "Processes that work at the same time; with local, 0: this one alone.",
        min=0,
        default_text="one per core",
        group="Many machines",
    )
    address: str | None = setting(
        None,
        "Address of a running Ray cluster, such as ray://head:10001 or auto.",
        metavar="ADDRESS",
        default_text="start one on this machine",
        group="Many machines",
    )

    def problems(self) -> Iterable[str]:
        if self.address is not None and self.engine != "ray":
            yield f"{arg('address')} is for a Ray cluster: add {arg('engine', 'ray')}"
        if self.engine == "ray" and self.workers == 0:
            yield f"{arg('workers')} is 0; with {arg('engine', 'ray')} allowed: 1 or more"


@dataclass(frozen=True, kw_only=True)
class EngineConfig(TextEngineConfig):
    """What runs work that computes."""

    threads: int = setting(1, "Threads of each worker.", min=1, group="Many machines")


@dataclass(frozen=True, kw_only=True)
class CleaningConfig(EngineConfig):
    """How a corpus is read that is cleaned."""

    field: str | None = setting(
        None,
        "Field of JSON lines, or column of CSV and Parquet, that has the text.",
        metavar="NAME",
        default_text="text",
        group="Text",
    )
    shard_size: int = setting(
        4_000_000, "Bytes of text per part, such as 64MB.", min=1, metavar="SIZE", parse=parse_size, group="Text"
    )


@dataclass(frozen=True, kw_only=True)
class DatasetConfig(EngineConfig):
    """How a dataset of vectors is made, besides the settings of `EmbedConfig`."""

    pooling: TextPooling | None = setting(
        None, "One vector per text instead of one per word, pooled as in `encode`.", default_text="none", group="Dataset"
    )
    mix: str | tuple[float, ...] | None = setting(
        None,
        "Return a weighted sum of the layers, one vector per word: the weights, or a trained task whose weights are used.",
        metavar="N,N,N|TASK",
        parse=parse_mix,
        default_text="none",
        group="Dataset",
    )
    normalize_layers: bool = setting(
        False, "Apply layer norm before the weighted sum. For a trained task, its own setting is used.", group="Dataset"
    )
    field: str | None = setting(
        None,
        "Field of JSON lines, or column of CSV and Parquet, that has the text.",
        metavar="NAME",
        default_text="text",
        group="Dataset",
    )
    shard_size: int = setting(
        1_000_000,
        "Bytes of text per part, such as 64MB. Small files share a part; a compressed or CSV file is one part.",
        min=1,
        metavar="SIZE",
        parse=parse_size,
        group="Dataset",
    )
    max_failures: int = setting(
        10, "Stop when more parts than this have failed; until then the others go on.", min=0, group="Dataset"
    )

    def problems(self) -> Iterable[str]:
        yield from super().problems()
        if self.pooling is not None and self.mix is not None:
            yield f"{arg('pooling')} and {arg('mix')} both say how vectors are combined: give one of them"
        if self.normalize_layers and self.mix is None:
            yield f"{arg('normalize_layers')} is for a mix of layers: add {arg('mix')}"


def is_dataset(out: str | Path | None, config: EngineConfig) -> bool:
    """Whether an output is a dataset: an engine is chosen, or the name is that of a folder, without a suffix."""
    if out is None:
        return False
    text = str(out)
    return config.engine is not None or "://" in text or text.endswith("/") or not Path(text).suffix or Path(text).is_dir()


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the names whose values differ."""
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
