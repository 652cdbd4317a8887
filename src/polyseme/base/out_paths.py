"""Where a result is to be written, checked before any work: a folder is no file, and a file no folder."""

from __future__ import annotations

from pathlib import Path

from polyseme.base.errors import UsageError, arg


def check_out_folder(out: str | Path, *, positional: bool = False) -> None:
    """Refuse an output that must be a folder, and is a file or inside one. `positional`: it has no flag."""
    _check(Path(out), "is a file; give a folder", positional, wrong=Path(out).exists() and not Path(out).is_dir())


def check_out_file(out: str | Path, *, positional: bool = False) -> None:
    """Refuse an output that must be a file, and is a folder or inside another file."""
    _check(Path(out), "is a folder; give a file", positional, wrong=Path(out).is_dir())


def check_no_model(out: str | Path) -> None:
    """Refuse a folder that has a model or a trained task: other files do not belong among theirs."""
    for name in ("config.json", "task.json"):
        if (Path(out).expanduser() / name).is_file():
            what = "a model" if name == "config.json" else "a trained task"
            raise UsageError(
                f"{arg('out', str(out))} is the folder of {what} (it has {name}): give another folder for the vectors"
            )


def _check(out: Path, what: str, positional: bool, *, wrong: bool) -> None:
    named = str(out) if positional else arg("out", str(out))
    if wrong:
        raise UsageError(f"{named} {what}")
    above = next((each for each in out.parents if each.exists()), None)
    if above is not None and not above.is_dir():
        raise UsageError(f"{named}: {above} is a file, not a folder; choose another place")
