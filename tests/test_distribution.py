"""The models of the second distribution: every one keeps the same contract. Names and paths: tests/encoders/test_shipped.py."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np
import pytest

from polyseme.analysis.neighbours import neighbours
from polyseme.base.errors import UsageError
from polyseme.encoders.base import Encoder
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.encoders.shipped import DISTRIBUTED, HASH
from polyseme.formats.info import info
from polyseme.formats.load import load

ROOT = Path(__file__).parents[1] / "models"
FOLDERS = {path.parent.name: path.parent for path in sorted((ROOT / "src" / "polyseme_models").glob("*/config.json"))}
EARLIER = {"en-v1", "zh-v1"}
"""Version 1 of the models of the package, in half precision, for the folders of tasks that name them by their fingerprints."""
EACH, EACH_EARLIER, ALL = 12_000_000, 16_000_000, 90_000_000
TEXTS = {
    "en": ["The king was crowned in London.", "He sat on the bank of the river."],
    "zh": ["今天是周日。", "他背着包袱走了。"],
}
"""A sentence that is likelier than its words backwards, and one with a word that has neighbours."""
WORDS = {"en": ("London", "river"), "zh": ("今天", "他")}

pytestmark = pytest.mark.skipif(not ROOT.is_dir(), reason="this copy lacks the models of the second distribution")
every_model = pytest.mark.parametrize("name", FOLDERS)


@functools.cache
def model(name: str) -> Encoder:
    return load(FOLDERS[name])


@functools.cache
def fingerprint(name: str) -> str:
    return model_fingerprint(model(name))


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def test_names_and_sizes() -> None:
    assert set(FOLDERS) == set(DISTRIBUTED)  # a new model is a folder and a name there
    assert sum(size(folder) for name, folder in FOLDERS.items() if name not in EARLIER) <= ALL
    listed = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in listed for name in FOLDERS)


@every_model
def test_files_and_card(name: str) -> None:
    folder = FOLDERS[name]
    assert size(folder) <= (EACH_EARLIER if name in EARLIER else EACH)
    assert (folder / HASH).read_text(encoding="ascii").strip() == fingerprint(name)
    card = (folder / "README.md").read_text(encoding="utf-8")
    for section in ("Text and licence", "Good for", "Not for", "How it was made", "training time"):
        assert section in card, section
    assert f'polyseme.load("{name}")' in card
    assert re.search(r"\*\*(Perplexity|Accuracy|Correlation|Score)[^*]*\d", card), "no measured number"
    facts = info(model(name)).facts
    assert facts["licence"] and facts["bytes"] == size(folder) and facts["format"] == "polyseme"


@every_model
def test_vectors(name: str, tmp_path: Path) -> None:
    encoder, texts = model(name), TEXTS[name[:2]]
    for text, vectors in zip(texts, encoder.embed(texts), strict=True):
        assert vectors.shape == (encoder.layers, len(encoder.words(text)), encoder.dim) and np.isfinite(vectors).all()
    pooled = encoder.encode(texts)
    assert len(pooled) == 2 and pooled.shape[1] >= encoder.dim and np.isfinite(pooled).all()
    (tmp_path / "text.txt").write_text("\n".join(texts), encoding="utf-8")
    if encoder.kind == "ngram":  # its vectors are probabilities
        with pytest.raises(UsageError, match="cosines are all near 1"):
            neighbours(encoder, texts[0], position=1, corpus=tmp_path / "text.txt")
        return
    found = neighbours(encoder, texts[0], position=1, corpus=tmp_path / "text.txt")
    assert found.in_context or found.static


@every_model
def test_questions_that_it_can_answer(name: str) -> None:
    encoder, (sentence, other) = model(name), TEXTS[name[:2]]
    words = encoder.words(sentence)
    if encoder.predicts_words:
        better, worse = encoder.score([words, words[::-1]])
        assert better > worse
        assert 1 < encoder.perplexity([sentence, other]).mean < 5000
        steps = encoder.chain_rule(sentence)
        assert len(steps) >= len(words)
    if encoder.bidirectional and encoder.predicts_words:
        assert len(encoder.substitutes(sentence, position=1, count=5)) == 5
    if encoder.can_fill:
        assert len(encoder.fill(words, position=1, count=5)[0]) == 5
    if encoder.static:
        found = [each.word for each in encoder.most_similar(WORDS[name[:2]][1], 10)]  # type: ignore[attr-defined]
        assert len(found) == 10


@every_model
def test_saved_and_loaded_it_is_the_same(name: str, tmp_path: Path) -> None:
    again = load(model(name).save_pretrained(tmp_path / "m", precision="fp16" if name in EARLIER else "int8"))
    assert model_fingerprint(again) == fingerprint(name)
    if model(name).predicts_words:
        np.testing.assert_array_equal(again.score(TEXTS[name[:2]]), model(name).score(TEXTS[name[:2]]))
