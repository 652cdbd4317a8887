"""Pre-train on a Ray cluster with Ray Train: `python examples/ray_train.py TEXT OUT [WORKERS] [STEPS]`.

Ray places the processes, gives them their ranks and joins them (nccl on GPUs, gloo on CPUs), as torchrun does; polyseme trains
and writes the checkpoints. TEXT and OUT are on storage that all machines share. If a worker or a machine is lost, Ray starts
all workers again and they resume from the last checkpoint; so does the same command.

On a running cluster: `RAY_ADDRESS=auto python examples/ray_train.py /shared/text.txt /shared/my-elmo 8`.
Needs `pip install 'polyseme[ray]' 'ray[train]'`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ray
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer


def pretrain(settings: dict[str, Any]) -> None:
    """Train in one of the processes."""
    import polyseme

    polyseme.pretrain("elmo", **settings)


def main(text: str, out: str, workers: int = 2, steps: int = 1000) -> None:
    ray.init(log_to_driver=False)
    cuda = ray.cluster_resources().get("GPU", 0) >= workers
    folder = Path(out).resolve()
    settings = {"corpus": str(Path(text).resolve()), "out": str(folder), "steps": steps}
    trainer = TorchTrainer(
        pretrain,
        train_loop_config=settings | {"device": "cuda" if cuda else "cpu", "checkpoint_seconds": 60.0},
        scaling_config=ScalingConfig(num_workers=workers, use_gpu=cuda),
        run_config=RunConfig(
            name=f"{folder.name}-ray", storage_path=str(folder.parent), failure_config=FailureConfig(max_failures=10)
        ),
    )
    trainer.fit()
    sys.stdout.write(f"the model is in {out}\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
