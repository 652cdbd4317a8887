"""The settings of a run: seed, device, precision. Imports no torch, so that `--help` is quick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from polyseme.base.config import Config, setting

if TYPE_CHECKING:
    from polyseme.base.run import Run


@dataclass(frozen=True, kw_only=True)
class RunConfig(Config):
    """Where and how a training runs."""

    seed: int = setting(
        0,
        "Seed of all random numbers. The same seed gives the same model on a CPU, and nearly the same on a GPU.",
        min=0,
        group="Training",
    )
    device: str | None = setting(
        None, "cpu or cuda.", default_text="a GPU if there is one", metavar="DEVICE", group="Computing"
    )
    precision: Literal["fp32", "bf16"] | None = setting(
        None, "Number format to compute with.", default_text="bf16 on a GPU that has it, else fp32", group="Computing"
    )
    accept_changes: bool = setting(False, "Resume a run under other settings than before.", group="Training")

    def run(self) -> Run:
        from polyseme.base.run import Run

        return Run.from_environment(seed=self.seed, device=self.device, precision=self.precision)
