"""Options whose dashes an input method or a text program has made of hyphens are refused, and not read as texts."""

import pytest

from tests.cli.running import one_sentence


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("——model", "--model"),
        ("－－model", "--model"),
        ("–model", "--model"),
        ("—-model", "--model"),
        ("——batch-words", "--batch-words"),
        ("——model=zh", "--model"),
        ("－m", "-m"),
        ("——help", "--help"),
    ],
)
def test_an_option_with_other_dashes_is_named(run, model, typed, meant):
    sentence = one_sentence(run("embed", "你好", typed, model), 2)
    assert sentence.startswith(f"polyseme: {typed} begins with a dash that is no hyphen: write {meant} ")


def test_it_is_found_where_no_text_is_expected_either(run, tmp_path):
    sentence = one_sentence(run("train", "classification", "——data", tmp_path / "a.tsv"), 2)
    assert "write --data " in sentence


@pytest.mark.parametrize("text", ["——then", "——models", "– yes", "——", "——model is a word"])
def test_texts_with_dashes_stay_texts(run, model, text):
    assert run("embed", text, "-m", model, "--layers", "top").code == 0


def test_after_two_hyphens_all_are_texts(run, model):
    assert run("embed", "-m", model, "--layers", "top", "--", "——model").code == 0
