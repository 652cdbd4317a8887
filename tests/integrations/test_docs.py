"""The code of docs/en/how-to/integrations.md runs, section by section, where the library of the section is installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "en" / "how-to" / "integrations.md"
LIBRARIES = {
    "scikit-learn": "sklearn",
    "transformers": "accelerate",
    "spaCy": "spacy",
    "sentence-transformers": "sentence_transformers",
    "gensim": "gensim",
    "Hugging Face datasets": "datasets",
    "pandas and Polars": "pandas",
    "Flair": "flair",
    "ONNX": "onnxruntime",
}
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.M | re.S))


def test_every_section_is_tested() -> None:
    assert set(SECTIONS) == set(LIBRARIES)


@pytest.mark.slow
@pytest.mark.parametrize("title", LIBRARIES)
def test_the_code_of_a_section_runs(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(LIBRARIES[title], reason=f"needs {title}")
    if title == "transformers":
        pytest.importorskip(title, minversion="5", reason="needs transformers 5")  # beside Flair it is 4
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", SECTIONS[title], re.S)
    assert code
    exec(compile("\n".join(code), f"{PAGE.name}: {title}", "exec"), {"__name__": "docs"})
