"""The exercises of the course: our solutions pass the checks, and the empty functions that learners get do not."""

from __future__ import annotations

import importlib.util
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from scripts.course import ROOT, Chapter, chapters

SOLUTIONS = Path(__file__).parent / "solutions"


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"course_{path.parent.name}_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def checks(chapter: Chapter) -> dict[str, Callable[[ModuleType], None]]:
    """The checks of a chapter by name; each takes the module with the answers."""
    found = vars(load(chapter.checks)).items()
    return {name: value for name, value in found if name.startswith("test_") and callable(value)}


def functions(module: ModuleType) -> dict[str, Callable]:
    """The functions that a file defines itself."""
    return {
        name: value for name, value in vars(module).items() if inspect.isfunction(value) and value.__module__ == module.__name__
    }


every_chapter = pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.name)


@every_chapter
def test_solutions_pass(chapter: Chapter) -> None:
    answers = load(SOLUTIONS / chapter.exercises.name)
    for check in checks(chapter).values():
        check(answers)


@every_chapter
def test_empty_functions_fail_every_check(chapter: Chapter) -> None:
    answers = load(chapter.exercises)
    assert len(checks(chapter)) >= 3
    for check in checks(chapter).values():
        with pytest.raises(NotImplementedError):
            check(answers)


@every_chapter
def test_solutions_answer_the_exercises_as_asked(chapter: Chapter) -> None:
    asked, answered = functions(load(chapter.exercises)), functions(load(SOLUTIONS / chapter.exercises.name))
    assert len(asked) >= 3 and all(function.__doc__ for function in asked.values())
    for name, function in asked.items():
        assert inspect.signature(answered[name]) == inspect.signature(function)


def test_the_command_that_learners_type() -> None:
    """Without an answer the checks fail and name the function to write."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "course/exercises/check_01.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "NotImplementedError" in done.stdout, done.stdout + done.stderr
