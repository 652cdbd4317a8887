"""The models that come with the package: they load by name, take raw text, and tell the senses of words apart.

These are the only tests that need trained weights. They ask for what any good model does, not for the answers of one version.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.analysis.index import Index
from polyseme.analysis.neighbours import nearest_words
from polyseme.analysis.sample_senses import probe_samples
from polyseme.analysis.samples import samples
from polyseme.encoders.shipped import NAMES

MODELS = Path(polyseme.__file__).parent / "models"
pytestmark = pytest.mark.skipif(
    not all((MODELS / name / "config.json").is_file() for name in NAMES), reason="this copy lacks the shipped models"
)


@pytest.fixture(scope="module")
def models():
    return {name: polyseme.load(name) for name in NAMES}


def test_load_without_a_name_is_english(models):
    assert polyseme.load().splitter.name == models["en"].splitter.name == "english"
    text = ["The bank of the river isn’t far."]
    assert np.array_equal(polyseme.load().embed(text)[0], models["en"].embed(text)[0])


@pytest.mark.parametrize("name", NAMES)
def test_files_are_small_and_have_what_score_needs(name, models):
    folder = MODELS / name
    assert (folder / "model.safetensors").stat().st_size <= 30_000_000
    assert models[name].output is not None and len(models[name].vocabulary) >= 10_000
    card = (folder / "README.md").read_text(encoding="utf-8")
    for told in ("perplexity", "licence", "Good for", "Not for"):
        assert told.lower() in card.lower(), told


def test_the_package_is_small():
    files = (path for path in MODELS.parent.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert sum(path.stat().st_size for path in files) < 100_000_000  # before it is packed into a wheel


def test_raw_chinese_needs_no_segmenter(models, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "rjieba", None)
    words = models["zh"].words("他背着包袱走了。")
    assert "".join(words) == "他背着包袱走了。" and "包袱" in words


def test_likelier_sentences_score_higher(models):
    for name, good, bad in [
        ("en", "The king was crowned in London.", "King crowned the London was in."),
        ("zh", "今天是周日。", "今天周日是。"),
    ]:
        better, worse = models[name].score([good, bad])
        assert better > worse, name


@pytest.mark.parametrize("name", NAMES)
def test_senses_of_at_least_twelve_words_part_company(name, models):
    """A word passes where at least three of four of its sentences have the nearest other one of their own sense."""
    found = probe_samples(models[name], samples(name))
    shares = {word: share for word, share in found.facts.items() if word != "split_differently"}
    assert sum(share >= 0.75 for share in shares.values()) >= 12, shares
    above = max(row["same sense"] for layer, row in found.rows.items() if layer != "layer 0")
    assert above > found.rows["layer 0"]["same sense"] + 0.2


SENTENCES = {
    "en": [
        ("The coach praised the defender for a fine play late in the game.", "play", "sport"),
        ("His second play opened in London and ran for two hundred nights.", "play", "stage"),
        ("The boat was tied to a tree on the bank of the river.", "bank", "river"),
        ("The bank raised interest on loans to small companies.", "bank", "money"),
    ],
    "zh": [
        ("相声演员抖了一个包袱，观众哈哈大笑。", "包袱", "joke"),
        ("她提着沉甸甸的包袱，跟着商队翻过了山。", "包袱", "bundle"),
        ("集市上的苹果又红又大，每斤卖三元。", "苹果", "fruit"),
        ("苹果公布了新款手机和电脑的销量。", "苹果", "company"),
    ],
}


@pytest.mark.parametrize("name", NAMES)
def test_most_new_sentences_find_their_own_sense(name, models):
    asked = {word for _, word, _ in SENTENCES[name]}
    known = [sample for sample in samples(name) if sample.word in asked]  # only uses of the same word are compared
    senses = {tuple(models[name].words(sample.sentence)): sample.sense for sample in known}
    index = Index.build(models[name], [sample.sentence for sample in known])
    right = 0
    for sentence, word, sense in SENTENCES[name]:
        place = models[name].words(sentence).index(word)
        found = nearest_words(models[name], index, sentence, place, 3, same_word=True)
        right += [senses[tuple(each.sentence)] for each in found.in_context].count(sense) >= 2
    assert right >= 3, name
