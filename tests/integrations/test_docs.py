"""The code of how-to/integrations runs, in both languages, section by section, where a section's library is installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = {language: Path(__file__).parents[2] / "docs" / language / "how-to" / "integrations.md" for language in ("en", "zh")}
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
SECTIONS = {
    language: dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", page.read_text("utf-8"), re.M | re.S))
    for language, page in PAGES.items()
}


def test_every_section_is_tested() -> None:
    for sections in SECTIONS.values():
        assert [title.replace(" 与 ", " and ") for title in sections] == list(LIBRARIES)


@pytest.mark.slow
@pytest.mark.parametrize("language", PAGES)
@pytest.mark.parametrize("title", LIBRARIES)
def test_the_code_of_a_section_runs(title: str, language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(LIBRARIES[title], reason=f"needs {title}")
    if title == "transformers":
        pytest.importorskip(title, minversion="5", reason="needs transformers 5")  # beside Flair it is 4
    monkeypatch.chdir(tmp_path)
    section = list(SECTIONS[language].values())[list(LIBRARIES).index(title)]
    code = re.findall(r"```python\n(.*?)```", section, re.S)
    assert code
    exec(compile("\n".join(code), f"{PAGES[language]}: {title}", "exec"), {"__name__": "docs"})
