"""The command line on n-gram models: from text to a model, its answers, and what it kindly refuses."""

import json
import math

import numpy as np
import pytest

import polyseme
from tests.cli.running import one_sentence
from tests.pretraining.test_ngram import CHINESE

LINES = "the cat sat on the mat .\na dog saw the river .\nthe dog sat .\n" * 3
PLAIN = ("--splitter", "whitespace", "--sentences", "lines")


@pytest.fixture
def ngrams(run, tmp_path):
    (tmp_path / "t.txt").write_text(LINES)
    done = run("pretrain", "ngram", "-c", tmp_path / "t.txt", "-o", tmp_path / "m", "--order", 3, *PLAIN)
    assert done.code == 0 and "3-grams" in done.out and "discounts" in done.out, done.err
    return tmp_path / "m"


def test_pretrain(run, tmp_path):
    (tmp_path / "t.txt").write_text(LINES)
    call = ("pretrain", "ngram", "-c", tmp_path / "t.txt", *PLAIN, "--json", "-o")
    (said,) = run(*call, tmp_path / "m", "--order", 2).json
    assert said["words"] == 51 and said["sentences"] == 9 and said["ngrams"][0] == said["vocabulary"] == 13
    (fewer,) = run(*call, tmp_path / "fewer", "--order", 3, "--cutoffs", "0,3", "--min-count", 4).json
    assert fewer["vocabulary"] < 13 and fewer["ngrams"][1] < said["ngrams"][1] and len(fewer["ngrams"]) == 3
    (few,) = run(*call, tmp_path / "few", "--vocabulary-size", 5, "--smoothing", "absolute", "--order", 1).json
    assert few["ngrams"] == [5]
    assert "'0;1'; expected a whole number" in one_sentence(run(*call, tmp_path / "m", "--cutoffs", "0;1"), 2)
    assert "none is below the one before" in one_sentence(run(*call, tmp_path / "m", "--cutoffs", "0,2,1"), 2)
    other = one_sentence(run(*call, tmp_path / "m", "--order", 3), 2)
    assert "holds a model with other settings (--order: 2 in the run, 3 now): give the same ones, or choose another" in other
    assert "No such option: --seed" in one_sentence(run(*call, tmp_path / "m", "--seed", 1), 2)  # counting draws no numbers
    assert run(*call, tmp_path / "m", "--order", 2).code == 0


def test_score_and_perplexity(run, ngrams, tmp_path):
    loaded = polyseme.load(ngrams)
    lines = ["the dog sat .", "a zebra"]
    *rows, total = run("score", *lines, "-m", ngrams, "--json", "--words").json
    np.testing.assert_allclose([row["mean"] for row in rows], loaded.score(lines))
    assert rows[1]["known"] == [True, False] and rows[0]["backward"] is None and "backward_words" not in rows[0]
    expected = loaded.perplexity(lines)
    assert total["perplexity"] == {"forward": expected.forward, "backward": None, "mean": expected.mean}
    shown = run("score", *lines, "-m", ngrams, "--words").out
    unknown = next(line for line in shown.splitlines() if line.startswith("    zebra "))
    assert "backward" not in shown and unknown.endswith("not in the vocabulary")
    assert f"perplexity of 2 lines: {expected.mean:,.2f}" in shown
    (tmp_path / "other.txt").write_text("the dog sat .\na zebra\n")
    (said,) = run("perplexity", tmp_path / "other.txt", "-m", ngrams, "--json").json
    assert said["perplexity"]["mean"] == pytest.approx(expected.mean) and said["unknown"] == pytest.approx(1 / 6)
    assert f"perplexity  {expected.mean:.2f}" in run("perplexity", tmp_path / "other.txt", "-m", ngrams).out


def test_huge_perplexities_stand_in_their_columns(run, tmp_path):
    (tmp_path / "t.txt").write_text("a b\na c\n")
    call = ("pretrain", "ngram", "-c", tmp_path / "t.txt", "-o", tmp_path / "m", "--order", 3, "--smoothing", "none", *PLAIN)
    assert run(*call).code == 0
    title, first, second, _, total, _ = run("score", "a b", "zebra", "-m", tmp_path / "m").out.splitlines()
    assert title == "     forward    perplexity  sentence"
    assert first == "      -0.693          1.26  a b"
    value = run("score", "zebra", "-m", tmp_path / "m", "--json").json[0]["perplexity"]
    assert value > 1e66 and second.split()[1:3] == [f"{value:.3e}", "zebra"]
    assert second.index("  zebra") == first.index("  a b") and second.endswith("(1 unknown word)")
    assert len(total) < 60
    (tmp_path / "other.txt").write_text("zebra\n")
    assert f"  perplexity  {value:.3e}\n" in run("perplexity", tmp_path / "other.txt", "-m", tmp_path / "m").out


def test_explain(run, ngrams):
    (row, _) = run("score", "the dog saw a zebra", "-m", ngrams, "--explain", "--json").json
    steps = row["steps"]
    assert [step["word"] for step in steps] == ["the", "dog", "saw", "a", "zebra", "</s>"]
    for step in steps:
        assert step["log_prob"] == pytest.approx(step["found"] + sum(each["weight"] for each in step["backoffs"]))
        assert 1 <= step["order"] <= 3 and len(step["context"]) <= 2
    assert steps[-1]["product"] == pytest.approx(row["mean"])
    shown = run("score", "the dog saw a zebra", "-m", ngrams, "--explain").out
    assert "P(dog | <s> the)" in shown and "P(a | dog saw) = " in shown and " (saw) x " in shown
    assert "(zebra is not in the vocabulary)" in shown
    assert f"{math.exp(steps[-1]['product']):.4g}" in shown


def test_explain_an_elmo(run, model):
    found = polyseme.load(model).log_probs(["The bank"])[0]
    (row, _) = run("score", "The bank", "-m", model, "--explain", "--json").json
    forward = [step for step in row["steps"] if step["direction"] == "forward"]
    backward = [step for step in row["steps"] if step["direction"] == "backward"]
    assert [step["word"] for step in forward] == ["The", "bank", "</S>"]
    assert [step["word"] for step in backward] == ["bank", "The", "<S>"]
    np.testing.assert_allclose([step["log_prob"] for step in forward], found.forward, atol=1e-6)
    np.testing.assert_allclose([step["log_prob"] for step in backward], found.backward[[1, 0, 2]], atol=1e-6)
    assert forward[-1]["product"] == pytest.approx(found.forward.sum(), abs=1e-5)
    shown = run("score", "The bank", "-m", model, "--explain").out
    assert "forward, from left to right" in shown and "backward, from right to left" in shown


def test_sunday(run, tmp_path):
    (tmp_path / "zh.txt").write_text(CHINESE, encoding="utf-8")
    call = ("pretrain", "ngram", "-c", tmp_path / "zh.txt", "-o", tmp_path / "zh", "--order", 3)
    assert run(*call, "--splitter", "characters", "--sentences", "lines").code == 0
    right, wrong, _ = run("score", "今天是周日", "今天周日是", "-m", tmp_path / "zh", "--json").json
    assert right["mean"] > wrong["mean"] and right["perplexity"] < wrong["perplexity"]
    assert "P(是 | 今 天)" in run("score", "今天是周日", "-m", tmp_path / "zh", "--explain").out


def test_convert_and_info(run, ngrams, tmp_path):
    for name in ("m.arpa", "m.arpa.gz"):
        (said,) = run("convert", ngrams, tmp_path / name, "--to", "arpa", "--json").json
        assert said["largest_difference"] == 0 and said["bytes"] == (tmp_path / name).stat().st_size
    again = one_sentence(run("convert", ngrams, tmp_path / "m.arpa", "--to", "arpa"))
    assert "m.arpa exists: choose another name, or overwrite it with --force" in again
    assert run("convert", ngrams, tmp_path / "m.arpa", "--to", "arpa", "--force").code == 0
    assert run("convert", tmp_path / "m.arpa", tmp_path / "back", "--splitter", "english").code == 0
    back = polyseme.load(tmp_path / "back")
    assert back.splitter.name == "english" and back.table.difference(polyseme.load(ngrams).table) == 0
    (tmp_path / "folder").mkdir()
    (tmp_path / "m.arpa").rename(tmp_path / "folder" / "m.arpa")
    assert polyseme.load(tmp_path / "folder").table.difference(back.table) == 0
    facts = json.loads(run("info", tmp_path / "folder", "--json").out)
    assert (facts["format"], facts["encoder"], facts["order"]) == ("ARPA", "ngram", 3) and facts["language_model"] is True
    assert run("info", ngrams).code == 0
    assert "ARPA files have fp32 only" in one_sentence(
        run("convert", ngrams, tmp_path / "half", "--to", "arpa", "--precision", "fp16"), 2
    )


def test_a_file_of_ngrams_splits_text_as_the_model_did(run, tmp_path, caplog):
    (tmp_path / "t.txt").write_text("The dog's river. It's wide.\n" * 3)
    assert run("pretrain", "ngram", "-c", tmp_path / "t.txt", "-o", tmp_path / "m", "--order", 2).code == 0
    converted = run("convert", tmp_path / "m", tmp_path / "m.arpa", "--to", "arpa")
    assert converted.code == 0 and converted.err == ""
    found = [run("perplexity", tmp_path / "t.txt", "-m", tmp_path / name, "--json").json for name in ("m", "m.arpa")]
    assert found[0] == found[1] and found[0][0]["sentences"] == 6
    given = ("convert", tmp_path / "m", tmp_path / "c.arpa", "--to", "arpa", "--splitter", "characters")
    assert run(*given).code == 0 and polyseme.load(tmp_path / "c.arpa").splitter.name == "characters"
    (tmp_path / "words.txt").write_text("The\ndog\nriver\n")
    listed = ("--splitter", "unigram", "--word-list", tmp_path / "words.txt")
    assert run("pretrain", "ngram", "-c", tmp_path / "t.txt", "-o", tmp_path / "l", *listed).code == 0
    told = run("convert", tmp_path / "l", tmp_path / "l.arpa", "--to", "arpa")
    assert told.code == 0 and "does not store how text is split, because that needs a list of words" in caplog.text


def test_only_ngrams_become_arpa(run, model, tmp_path):
    assert "--to arpa applies only to n-gram models" in one_sentence(run("convert", model, tmp_path / "m", "--to", "arpa"))


def test_vectors(run, ngrams, tmp_path):
    found = json.loads(run("embed", "the dog", "-m", ngrams, "--json").out)
    assert np.array(found["vectors"]).shape == (1, 2, 6)
    text = ("-m", ngrams, "-c", tmp_path / "t.txt")
    for verb in (("neighbours", "the dog", "-w", "dog", *text), ("senses", "dog", *text)):
        refused = one_sentence(run(*verb), 2)
        assert "models of kind ngram have a few probabilities as vectors" in refused and "choose an ELMo" in refused
    assert "models of kind ngram have no static vectors" in one_sentence(run("similar", "dog", "-m", ngrams))
    assert run("convert", ngrams, tmp_path / "copy").code == 0 and run("verify", tmp_path / "copy").code == 0


def test_what_needs_an_elmo(run, ngrams, tmp_path):
    substitutes = one_sentence(run("substitutes", "the dog", "-w", "dog", "-m", ngrams))
    assert "is of kind ngram, which has no substitutes: give an ELMo" in substitutes
    adapted = one_sentence(run("adapt", ngrams, "-c", tmp_path / "t.txt", "-o", tmp_path / "a"), 2)
    assert "models of kind ngram cannot be adapted; allowed: elmo, taglm, ulmfit" in adapted
    start = one_sentence(run("score", "the dog", "-m", ngrams, "--start", "zero"), 2)
    assert "--start is 'zero', but models of kind ngram have no start states: leave it out" in start
    assert "--to bilm applies only to ELMo models" in one_sentence(run("convert", ngrams, tmp_path / "b", "--to", "bilm"))


def test_in_a_task(run, ngrams, tmp_path):
    (tmp_path / "train.conll").write_text("Ann B-PER\nsaw O\n\nMoney O\n" * 5)
    call = ("train", "tagging", "-d", tmp_path / "train.conll", "--dev", tmp_path / "train.conll", "--encoder", ngrams)
    result = run(*call, "-o", tmp_path / "ner", "--epochs", "1", "--json")
    assert result.code == 0, result.err
    assert run("predict", tmp_path / "ner", "Ann saw Money").code == 0
    tuned = run(*call, "-o", tmp_path / "tuned", "--mode", "finetune")
    assert tuned.code != 0 and "--mode finetune does not apply to ngram, which has no weights to train" in tuned.err
    (tmp_path / "c.tsv").write_text("label\ttext\nyes\ta dog\nno\ta cat\n")
    call = ("train", "classification", "-d", tmp_path / "c.tsv", "--dev", tmp_path / "c.tsv", "--encoder", ngrams)
    linear = run(*call, "-o", tmp_path / "c", "--network", "linear")
    assert linear.code != 0 and "--network linear" in linear.err and "ngram" in linear.err, linear
