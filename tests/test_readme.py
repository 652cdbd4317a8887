"""Every command and every Python block of the README and the docs runs, on a tiny model called `my-elmo`.

Each page has a folder of its own. `scripts/pages.py` runs the blocks; a block marked `output` is compared with what the block
before it prints. `polyseme.compare` starts no processes here, which would import PyTorch again: tests/studies has tests of
them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.pages import Block, blocks, differences, run, run_command
from tests.page_files import make_files
from tests.studies.in_process import train_in_process

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("README*.md"), *sorted(page for page in (ROOT / "docs").rglob("*.md") if "generated" not in page.parts)]
SLOW = {
    "zh/": "has the commands of the English page",
    "README.zh": "has the commands of the README",
    "en/concepts/lineage": "trains all ten methods and a task on most of them",
    "en/concepts/frozen-or-fine-tuned": "trains two taggers",
    "en/concepts/mixing-bash": "trains a tagger",
    "en/concepts/layers-bash": "probes all samples, as the README does",
    "en/get-started/command-line-bash": "has the commands of the README",
    "en/how-to/classify": "trains three tasks",
    "en/how-to/compare": "trains six taggers",
    "en/how-to/faq-bash": "writes 330 MB",
    "en/how-to/scale": "starts processes of its own",
    "en/how-to/tag": "trains two taggers",
    "en/how-to/train-bash": "trains two models",
    "en/reference/training-bash": "has the commands of how-to/train",
}
"""Pages left to `make test-all`, by the beginnings of their names, and why."""
ELSEWHERE = ["en/how-to/integrations-python", "zh/how-to/integrations-python"]
"""Pages that are not run here; the integrations have a test of their own, `tests/integrations/test_docs.py`."""
PRIVATE = re.compile(r"/(work|tmp|home|root|mnt)/|localhost(?!:8000|`)|\b(?!0\.0\.0\.0\b)\d+\.\d+\.\d+\.\d+\b")
"""Paths and hosts of a machine; the address of `polyseme serve`, and that of all networks, are everyone's."""


def name_of(page: Path) -> str:
    """`README`, or the path below `docs` without its suffix."""
    return str(page.relative_to(ROOT).with_suffix("")).removeprefix("docs/")


def read(page: Path) -> list[Block]:
    return blocks(page.read_text(encoding="utf-8"))


def pages(language: str) -> list:
    """The pages that have blocks of a language, as parameters of a test."""
    names = {f"{name_of(page)}-{language}": page for page in PAGES if any(each.language == language for each in read(page))}
    names = {name: page for name, page in names.items() if name not in ELSEWHERE}
    slow = {name for name in names if name.startswith(tuple(SLOW))}
    return [pytest.param(page, id=name, marks=[pytest.mark.slow] if name in slow else []) for name, page in names.items()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A folder with a model and the files that the page names; the current one."""
    page = request.node.callspec.params.get("page") if hasattr(request.node, "callspec") else None
    make_files(tmp_path, page if isinstance(page, Path) else None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    train_in_process(monkeypatch)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


@pytest.mark.parametrize("page", pages("bash"))
def test_commands(page: Path, folder: Path) -> None:
    check(page, "bash")


@pytest.mark.parametrize("page", pages("python"))
def test_python(page: Path, folder: Path) -> None:
    check(page, "python")


def check(page: Path, language: str) -> None:
    """Run the blocks of a language from top to bottom, and compare what they print with what the page shows."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in (each for each in read(page) if each.language == language):
        printed = run(block, str(page), names)
        if block.output is not None:
            problem = differences(block.output, printed)
            command = f"python -m scripts.pages {page.relative_to(ROOT)}"
            assert problem is None, f"{page}:{block.line}: {problem}; {command} rewrites it"


def test_a_failing_command_fails_with_its_message(folder: Path) -> None:
    with pytest.raises(RuntimeError, match=r"README.md:7: polyseme info no-such-model\s+polyseme: no-such-model"):
        run_command("polyseme info no-such-model", "README.md:7")
    with pytest.raises(RuntimeError, match="broken"):
        run_command("echo broken >&2; false", "README.md:8")


def test_an_output_that_is_not_printed_is_found() -> None:
    (block,) = blocks("```python\nprint('a cosine of', 0.5)\n```\n\n```output\na cosine of 0.6\n```\n")
    assert block.output is not None
    assert differences(block.output, run(block, "page", {})) == "shown 'a cosine of 0.6', printed 'a cosine of 0.5'"


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_readme_is_short(name: str) -> None:
    """About 110 lines; its first script has at most twelve, one import, and shows what it prints."""
    page = ROOT / name
    first = next(each for each in read(page) if each.language == "python")
    lines = [line for line in first.code.splitlines() if line.strip()]
    assert len(page.read_text(encoding="utf-8").splitlines()) <= 116
    assert len(lines) <= 12 and [line for line in lines if "import" in line] == ["import polyseme"]
    assert first.output is not None and all(call in first.code for call in ("load(", ".embed(", "neighbours("))


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_scores_of_the_readme_are_those_of_the_results(name: str) -> None:
    results = (ROOT / "docs" / "en" / "results" / "defaults.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+)[ （][^|]*\|[^|]*\| ([\d.]+) \| ([\d.]+) \|$", (ROOT / name).read_text(encoding="utf-8"), re.M)
    assert len(rows) >= 5
    for task, *scores in rows:
        row = re.findall(rf"^\| {task} \|.*$", results, re.M)[0]  # of the first table, the defaults
        assert all(f"| {score} " in row for score in scores), f"{name} has {scores} for {task}; the results have {row}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=name_of)
def test_pages_name_no_machine(page: Path) -> None:
    found = PRIVATE.search(page.read_text(encoding="utf-8"))
    assert found is None, found


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8")):
        path = (page.parent / target).resolve() if target else page
        if "generated" in path.parts:  # written and checked by `make docs`
            continue
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}#{anchor}"


def anchors(page: Path) -> list[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_bibtex_of_the_faq_is_that_of_the_citation_file(language: str) -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    page = (ROOT / "docs" / language / "how-to" / "faq.md").read_text(encoding="utf-8")
    patterns = {"title": r'^title: "(.+)"$', "author": r"^  - name: (.+)$", "version": r"^version: (.+)$"}
    expected = {name: re.findall(pattern, citation, re.M)[0] for name, pattern in patterns.items()}
    expected["year"] = re.findall(r'^date-released: "(\d+)', citation, re.M)[0]
    assert dict(re.findall(r"^  (\w+) = \{+(.+?)\}+,$", page, re.M)) == expected


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_of_the_service_names_every_endpoint(language: str) -> None:
    paths = json.loads((ROOT / "docs" / "en" / "reference" / "openapi.json").read_text(encoding="utf-8"))["paths"]
    page = (ROOT / "docs" / language / "how-to" / "serve.md").read_text(encoding="utf-8")
    names = [path.removesuffix("/{task}").rpartition("/")[2] for path in paths]
    assert len(names) > 15 and [name for name in names if not re.search(rf"[/`]{name}[`/]", page)] == []


@pytest.mark.slow
def test_demo(tmp_path: Path) -> None:
    """The neighbours of a word have its sense, in both languages."""
    command = [sys.executable, str(ROOT / "examples" / "senses.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    river, money = re.findall(r"\$ polyseme neighbours \"[^\n]*--word bank.*?static vector", done.stdout, re.S)
    assert "Danube" in river and "Danube" not in money and "lending" in money and "lending" not in river
    assert "[包袱]" in done.stdout and "[苹果]" in done.stdout
