"""Every command and every Python block of the README and the docs runs, on a tiny model called `my-elmo`.

Each page has a folder of its own. Commands run in this process through `polyseme.__main__.main`, because starting Python and
importing PyTorch takes longer than most of them; lines that need a shell (pipes, files made by `printf`) get one.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from polyseme.__main__ import main
from tests.oracle.make import VOCABULARY, write_bilm

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SLOW = {
    "en/concepts/lineage-bash": "trains all ten methods and a task on most of them",
    "en/concepts/lineage-python": "trains six of the methods again",
    "en/how-to/train-bash": "has the commands of the README",
    "en/how-to/scale-bash": "starts processes of its own",
    "en/how-to/scale-python": "starts processes of its own",
}
"""Pages left to `make test-all`, and why."""
ELSEWHERE = ["en/how-to/integrations-python"]
"""Pages that have a test of their own: `tests/integrations/test_docs.py`."""
SHELL = re.compile(r"[|><$;&`]")
TAGS = "Ann B-PER\nsaw O\nthe O\nSeine B-LOC\n\nMoney O\nhelps O\nAnn B-PER\n"
TEXTS = ["sentence\tlabel", *["a good bank\tgood"] * 3, *["a bad bank\tbad"] * 3]
PAIRS = ["sentence1\tsentence2\tlabel", *["a good bank\ta fine bank\tyes"] * 3, *["a bad bank\ta river\tno"] * 3]
FILES = {
    "sentences.txt": "The bank of the river .\n\nMoney in the bank .\n",
    "train.conll": TAGS,
    "dev.conll": TAGS,
    "train.tsv": "\n".join(TEXTS) + "\n",
    "pairs.tsv": "\n".join(PAIRS) + "\n",
}
"""The files that the pages name."""
PRIVATE = re.compile(r"/(work|tmp|home|root|mnt)/|localhost(?!:8000|`)|\d+\.\d+\.\d+\.\d+\b")
"""Paths and hosts of a machine; the address of `polyseme serve` is everyone's."""


def name_of(page: Path) -> str:
    """`README`, or the path below `docs` without its suffix."""
    return str(page.relative_to(ROOT).with_suffix("")).removeprefix("docs/")


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """The fenced blocks of a language, each with the line where it begins."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(rf"^```{language}\n(.*?)^```", text, re.S | re.M)
    return [(text.count("\n", 0, each.start(1)) + 1, each[1]) for each in found]


def pages(language: str) -> list:
    """The pages that have blocks of a language, as parameters of a test."""
    names = {f"{name_of(page)}-{language}": page for page in PAGES if blocks(page, language)}
    names = {name: page for name, page in names.items() if name not in ELSEWHERE}
    return [pytest.param(page, id=name, marks=[pytest.mark.slow] if name in SLOW else []) for name, page in names.items()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model and the files that the pages name; the current one."""
    write_bilm(tmp_path / "my-elmo", vocabulary=list(VOCABULARY), softmax=True)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def run(line: str, where: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Run a command; a failure shows where it stands, and its stderr."""
    words = shlex.split(line)
    if words[0] != "polyseme" or SHELL.search(re.sub(r'"[^"$]*"', "", line)):
        done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
        code, errors = done.returncode, done.stderr
    else:
        code = main(words[1:])
        errors = capsys.readouterr().err
    assert code == 0, f"{where}: {line}\n{errors}"


@pytest.mark.parametrize("page", pages("bash"))
def test_commands(page: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for first, block in blocks(page, "bash"):
        for number, line in enumerate(block.splitlines(), first):
            if line.strip() and not line.startswith("#"):
                run(line, f"{page.name}:{number}", capsys)


@pytest.mark.parametrize("page", pages("python"))
def test_python(page: Path, folder: Path) -> None:
    for first, block in blocks(page, "python"):
        code = compile("\n" * (first - 1) + block, str(page), "exec", dont_inherit=True)
        exec(code, {"__name__": "__main__"})


def test_a_failing_command_fails_with_its_message(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError, match=r"README.md:7: polyseme info no-such-model\s+polyseme: no-such-model"):
        run("polyseme info no-such-model", "README.md:7", capsys)
    with pytest.raises(AssertionError, match="broken"):
        run("echo broken >&2; false", "README.md:8", capsys)


def test_first_script_is_short() -> None:
    """The script at the top of the README has at most 12 lines and one import."""
    lines = [line for line in blocks(ROOT / "README.md", "python")[0][1].splitlines() if line.strip()]
    assert len(lines) <= 12 and [line for line in lines if "import" in line] == ["import polyseme"]
    calls = ("load(", ".embed(", "neighbours(", 'pretrain("elmo"', 'train("tagging"', "evaluate(", "compare(")
    assert all(call in "\n".join(lines) for call in calls)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=name_of)
def test_pages_name_no_machine(page: Path) -> None:
    found = PRIVATE.search(page.read_text(encoding="utf-8"))
    assert found is None, found


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8")):
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}#{anchor}"


def anchors(page: Path) -> list[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


@pytest.mark.slow
def test_demo(tmp_path: Path) -> None:
    """The neighbours of a word have its sense, in both languages."""
    command = [sys.executable, str(ROOT / "examples" / "senses.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    river, money = re.findall(r"\$ polyseme neighbours \"[^\n]*--word bank.*?static vector", done.stdout, re.S)
    assert "Danube" in river and "Danube" not in money and "lending" in money and "lending" not in river
    assert "[包袱]" in done.stdout and "[苹果]" in done.stdout
