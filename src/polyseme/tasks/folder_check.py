"""Whether a path is the folder of a trained task, and if not, what it is instead. Imports no PyTorch."""

from __future__ import annotations

from pathlib import Path

from polyseme.base.errors import FormatError, UsageError, arg
from polyseme.base.files import read_json
from polyseme.base.out_paths import check_out_folder
from polyseme.encoders.shipped import DISTRIBUTED, NAMES, is_shipped

HEAD = "task.json"
"""Of a trained task: what it is."""
FOLDS = "folds.json"
"""Of a cross-validation: how its data is divided."""
PREDICTIONS = "predictions.jsonl"
"""Of a cross-validation: the predictions for all examples, each by the network that was not trained on it."""
_MODEL = "config.json"
_RESULT = "result.json"  # of a finished fold, and of all
_TRAINS = "`polyseme train` trains one on labelled data"


def is_task(path: Path) -> bool:
    """Return whether a folder holds a trained task."""
    return (path / HEAD).is_file()


def has_folds(path: Path) -> bool:
    """Return whether a folder holds a cross-validation."""
    return (path / FOLDS).is_file()


def check_task(path: str | Path) -> None:
    """Raise an error that says what a path is if it is no trained task."""
    folder = Path(path)
    if is_task(folder):
        return
    name = str(path)
    if has_folds(folder) or (folder / _MODEL).is_file():
        raise FormatError(path, _folds(folder) if has_folds(folder) else _model(name))
    if not folder.exists():
        raise FormatError(
            path, _model(name) if is_shipped(name) or name in (*NAMES, *DISTRIBUTED) else f"no such folder; {_TRAINS}"
        )
    if not folder.is_dir():
        raise FormatError(path, f"is not the folder of a trained task; {_TRAINS}")
    if (folder / "run").is_dir():
        what = "has no trained task yet: its training is running or was interrupted (run/)"
        raise FormatError(path, f"{what}; the command that started it resumes it")
    raise FormatError(path, f"is not a trained task ({HEAD} is missing); {_TRAINS}")


def check_out(out: Path) -> None:
    """Refuse a folder for a trained task that is a file, or has a model or a cross-validation, which would be overwritten."""
    from polyseme.encoders.folder import is_folder

    check_out_folder(out)
    if is_folder(out):
        raise UsageError(f"{out} has a model, which a trained task would overwrite: choose another folder")
    if has_folds(out):
        what = f"{out} has a cross-validation, whose scores a trained task would overwrite"
        raise UsageError(f"{what}: choose another folder, or give {arg('folds')} to continue it")


def check_out_of_folds(out: Path) -> None:
    """Refuse a folder for a cross-validation that is a file, or has a trained task or predictions, which would be lost."""
    check_out_folder(out)
    if is_task(out) or (out / "run").is_dir():
        what = "a trained task" if is_task(out) else "a run that was begun"
        raise UsageError(f"{out} has {what}: choose another folder for {arg('folds')}")
    if (out / PREDICTIONS).exists() and not has_folds(out):
        what = f"has {PREDICTIONS}, which a cross-validation would overwrite"
        raise UsageError(f"{out} {what}: choose another folder for {arg('folds')}, or move the file")


def _model(name: str) -> str:
    uses = f"`polyseme embed --model {name}` computes its vectors, `polyseme train TASK --encoder {name}` trains a task with it"
    return f"is a model (an encoder), not a trained task; {uses}"


def _folds(folder: Path) -> str:
    folds = sorted(folder.glob("fold-*"), key=lambda each: (len(each.name), each.name))
    trained = [each for each in folds if is_task(each)]
    use = f"use the network of one fold ({trained[0]}), or " if trained else ""
    what = f"has the scores of a cross-validation with {len(folds)} folds, and no model of its own"
    if not (folder / _RESULT).is_file():
        done, all_folds = sum((each / _RESULT).is_file() for each in folds), read_json(folder / FOLDS).get("folds")
        what = f"has a cross-validation that is not finished, {done} of {all_folds} folds, which the same command continues"
    return f"{what}: {use}train without {arg('folds')} into another folder"
