"""Make the notebooks of the course: run the English source of each chapter once, and store its output for both languages.

    python -m scripts.course               all chapters
    python -m scripts.course 01 04         these ones
    python -m scripts.course --text 01     only the text changed: keep the stored output, run nothing

Sources are MyST Markdown, `course/en/NN-name.md` and `course/zh/NN-name.md`; both languages have the same code cells. Their
notebooks are `docs/en/course/NN-name.ipynb` and `docs/zh/course/NN-name.ipynb`, so that the site needs no kernel. A chapter
runs in an empty folder, without a network and on one thread, so that sums have the same order everywhere.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
LANGUAGES = ("en", "zh")
KERNEL = {
    "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
    "language_info": {"name": "python"},
}
MAX_SECONDS = 300
"""A chapter may take five minutes on two cores."""


@dataclass(frozen=True)
class Chapter:
    """A chapter by the name of its files, such as `01-language-models`."""

    name: str

    @property
    def number(self) -> str:
        return self.name[:2]

    def source(self, language: str) -> Path:
        return ROOT / "course" / language / f"{self.name}.md"

    def notebook(self, language: str) -> Path:
        return ROOT / "docs" / language / "course" / f"{self.name}.ipynb"

    @property
    def exercises(self) -> Path:
        return ROOT / "course" / "exercises" / f"{self.name.replace('-', '_')}.py"

    @property
    def checks(self) -> Path:
        return ROOT / "course" / "exercises" / f"check_{self.number}.py"


def chapters() -> list[Chapter]:
    """Return the chapters that have an English source, in order."""
    return [Chapter(path.stem) for path in sorted((ROOT / "course" / "en").glob("[0-9][0-9]-*.md"))]


def read_source(path: Path) -> NotebookNode:
    """Return a source as a notebook without output; the ids of cells are their numbers, so that files differ little."""
    book = jupytext.reads(path.read_text(encoding="utf-8"), fmt="md:myst")
    cells = [cell | {"id": f"cell-{number}"} for number, cell in enumerate(book.cells, 1)]
    book = nbformat.v4.new_notebook(cells=[nbformat.from_dict(cell) for cell in cells], metadata=KERNEL)
    nbformat.validate(book)
    return book


def code_cells(book: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in book.cells if cell.cell_type == "code"]


def run(book: NotebookNode) -> None:
    """Run a notebook in place and keep what a reader needs of its output: no progress bars, no logs."""
    from nbclient import NotebookClient  # starts slowly, and reading needs none

    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "src"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(book, timeout=2 * MAX_SECONDS, kernel_name="python3", resources={"metadata": {"path": folder}})
        client.execute(env=environment)
    for number, cell in enumerate(code_cells(book), 1):
        cell.outputs = _tidy(cell.outputs)
        cell.execution_count = number
        cell.metadata.pop("execution", None)
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = number
    book.metadata = nbformat.from_dict(KERNEL)


def _tidy(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Return outputs without stderr, with what was printed in a row as one."""
    kept: list[NotebookNode] = []
    for output in outputs:
        stream = output.output_type == "stream"
        if stream and output.name == "stderr":
            continue
        if stream and kept and kept[-1].output_type == "stream":
            kept[-1].text += output.text
        else:
            kept.append(output)
    return kept


def copy_outputs(source: NotebookNode, target: NotebookNode) -> None:
    """Give the code cells of a notebook the outputs of another with the same code."""
    pairs = list(zip(code_cells(source), code_cells(target), strict=True))
    for number, (one, other) in enumerate(pairs, 1):
        if one.source != other.source:
            raise SystemExit(f"code cell {number} differs between the two notebooks:\n{one.source}\n---\n{other.source}")
        other.outputs, other.execution_count = one.outputs, one.execution_count


def write(book: NotebookNode, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(book, path)


def printed(cell: NotebookNode) -> str:
    """Return what a code cell printed or gave as text."""
    texts: list[Any] = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return "\n".join(texts)


def make(chapter: Chapter, *, execute: bool) -> float:
    """Write the notebooks of a chapter; returns the seconds that it ran."""
    english, begin = read_source(chapter.source("en")), time.monotonic()
    if execute:
        run(english)
    else:
        copy_outputs(nbformat.read(chapter.notebook("en"), as_version=4), english)
    seconds = time.monotonic() - begin
    write(english, chapter.notebook("en"))
    for language in LANGUAGES[1:]:
        if chapter.source(language).exists():
            other = read_source(chapter.source(language))
            copy_outputs(english, other)
            write(other, chapter.notebook(language))
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="*", help="numbers of chapters, such as 01; default: all")
    parser.add_argument("--text", action="store_true", help="keep the stored output")
    options = parser.parse_args()
    known = {chapter.number: chapter for chapter in chapters()}
    if unknown := set(options.numbers) - set(known):
        raise SystemExit(f"no such chapter: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    for number in options.numbers or known:
        seconds = make(known[number], execute=not options.text)
        sys.stdout.write(f"{known[number].name}: {seconds:.0f} s\n")


if __name__ == "__main__":
    main()
