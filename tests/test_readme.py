"""Every command and every piece of Python in the README and the docs runs, on a tiny model called `my-elmo`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.oracle.make import VOCABULARY, write_bilm

ROOT = Path(__file__).parents[1]
SLOW = {"lineage.md-bash", "lineage.md-python", "tasks.md-bash"}  # many processes, each of which loads PyTorch; ten methods
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(language: str) -> list[pytest.param]:
    """Fenced blocks of a language, one test for each page."""
    found = []
    for page in PAGES:
        pieces = re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)
        if pieces:
            name = f"{page.name}-{language}"
            found.append(pytest.param(pieces, id=name, marks=[pytest.mark.slow] if name in SLOW else []))
    return found


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    write_bilm(tmp_path / "my-elmo", vocabulary=list(VOCABULARY), softmax=True)
    (tmp_path / "sentences.txt").write_text("The bank of the river .\n\nMoney in the bank .\n", encoding="utf-8")
    for name in ("train.conll", "dev.conll"):
        (tmp_path / name).write_text("Ann B-PER\nsaw O\nthe O\nSeine B-LOC\n\nMoney O\nhelps O\nAnn B-PER\n", encoding="utf-8")
    for name in ("train.tsv", "pairs.tsv"):
        rows = ["sentence1\tsentence2\tlabel"] if name == "pairs.tsv" else ["sentence\tlabel"]
        rows += ["a good bank" + ("\ta fine bank\tyes" if name == "pairs.tsv" else "\tgood")] * 3
        rows += ["a bad bank" + ("\ta river\tno" if name == "pairs.tsv" else "\tbad")] * 3
        (tmp_path / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


def run(command: list[str], desk: Path, shell: str = "") -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        shell or command,
        shell=bool(shell),
        cwd=desk,
        env={**os.environ, "PATH": path, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{shell or command}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("pieces", blocks("bash"))
def test_commands(pieces: list[str], desk: Path) -> None:
    for line in "".join(pieces).splitlines():
        if line.strip() and not line.startswith("#"):
            run([], desk, shell=line)


@pytest.mark.parametrize("pieces", blocks("python"))
def test_python(pieces: list[str], desk: Path) -> None:
    for piece in pieces:
        run([sys.executable, "-c", piece], desk)


def test_the_readme_has_both() -> None:
    assert len(blocks("bash")) >= 1 and len(blocks("python")) >= 1


@pytest.mark.slow
def test_demo(tmp_path: Path) -> None:
    """The same word, and its neighbours in other sentences: of its own sense, in both languages."""
    said = run([sys.executable, str(ROOT / "examples" / "senses.py")], tmp_path)
    river, money = re.findall(r"\$ polyseme neighbours \"[^\n]*--word bank.*?by its own vector", said, re.S)
    assert "Danube" in river and "Danube" not in money and "lending" in money and "lending" not in river
    assert "[包袱]" in said and "[苹果]" in said
