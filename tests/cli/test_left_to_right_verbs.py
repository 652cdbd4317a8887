"""The command line on NNLM and ULMFiT: from text to a model, its answers, its vectors, and what it kindly refuses."""

import json

import numpy as np
import pytest

import polyseme
from tests.cli.running import one_sentence

LINES = "the cat sat on the mat .\na dog saw the river .\nthe dog sat .\n" * 6
PLAIN = ("--splitter", "whitespace", "--sentences", "lines")
SIZES = {
    "nnlm": ("--order", 3, "--dim", 6, "--hidden", 8, "--batch-words", 50, "--direct"),
    "ulmfit": ("--dim", 6, "--hidden", 8, "--layers", 2, "--rows", 2, "--row-words", 6, "--dropout-factor", 0.1),
}


@pytest.fixture(params=list(SIZES))
def trained(run, tmp_path, request):
    (tmp_path / "t.txt").write_text(LINES)
    call = ("pretrain", request.param, "-c", tmp_path / "t.txt", "-o", tmp_path / "m", *SIZES[request.param], *PLAIN)
    done = run(*call, "--epochs", 2, "--vocabulary", 11)
    assert done.code == 0 and "held-out perplexity " in done.out, done.err
    (said,) = run(*call, "--epochs", 3, "--vocabulary", 11, "--accept-changes", "--json").json
    assert said["ended"] == "budget" and said["perplexity"] > 1
    assert "other settings (settings.pretraining.hidden_size: 8 in the run, 9 now" in one_sentence(
        run(*call, "--epochs", 3, "--vocabulary", 11, "--hidden", 9)
    )
    return tmp_path / "m"


def test_score_and_perplexity(run, trained, tmp_path):
    loaded = polyseme.load(trained)
    lines = ["the dog sat .", "a zebra"]
    *rows, total = run("score", *lines, "-m", trained, "--json", "--words", "--explain").json
    np.testing.assert_allclose([row["mean"] for row in rows], loaded.score(lines))
    assert rows[1]["known"] == [True, False] and rows[0]["backward"] is None
    assert [step["word"] for step in rows[0]["steps"]] == ["the", "dog", "sat", ".", "</s>"]
    assert rows[0]["steps"][-1]["product"] == pytest.approx(rows[0]["mean"])
    expected = loaded.perplexity(lines)
    assert total["perplexity"] == {"forward": expected.forward, "backward": None, "mean": expected.mean}
    shown = run("score", *lines, "-m", trained, "--explain").out
    assert "forward, from left to right" in shown and "backward" not in shown
    (tmp_path / "other.txt").write_text("the dog sat .\na zebra\n")
    (said,) = run("perplexity", tmp_path / "other.txt", "-m", trained, "--json").json
    assert said["perplexity"]["mean"] == pytest.approx(expected.mean) and said["unknown"] == pytest.approx(1 / 6)
    carried = run("perplexity", tmp_path / "other.txt", "-m", trained, "--carry", "--json")
    if loaded.kind == "nnlm":
        assert "is of kind nnlm, which reads every sentence alone here: leave --carry out" in one_sentence(carried)
    else:
        assert carried.json[0]["perplexity"]["mean"] == pytest.approx(loaded.perplexity(lines, start="carry").mean)


def test_vectors_and_info(run, trained):
    layers = polyseme.load(trained).layers
    (row,) = run("embed", "the dog", "-m", trained, "--json").json
    assert np.array(row["vectors"]).shape[:2] == (layers, 2)
    assert "dog" in run("similar", "cat", "-m", trained, "--count", 20).out
    assert "does not know the word 'zebra'" in one_sentence(run("similar", "zebra", "-m", trained))
    facts = json.loads(run("info", trained, "--json").out)
    assert facts["vocabulary"] == 11 and facts["language_model"] is True and facts["output_parameters"] > 0
    assert run("info", trained).code == 0


def test_what_needs_both_sides(run, trained):
    said = "reads from left to right only, and this command needs both sides: give an ELMo"
    assert said in one_sentence(run("substitutes", "the dog", "-w", "dog", "-m", trained))


def test_a_task_uses_its_vectors(run, trained, tmp_path):
    (tmp_path / "train.conll").write_text("Ann B-PER\nsaw O\n\nthe O\ndog O\n" * 5)
    call = ("train", "ner", "-d", tmp_path / "train.conll", "-o", tmp_path / "ner", "--encoder", trained)
    assert run(*call, "--epochs", 1).code == 0


def test_wrong_options(run, tmp_path):
    (tmp_path / "t.txt").write_text(LINES)
    call = ("-c", tmp_path / "t.txt", "-o", tmp_path / "m", *PLAIN)
    assert "--dropout is 1.5; allowed: 0 or more, below 1" in one_sentence(run("pretrain", "nnlm", *call, "--dropout", 1.5))
    for factor in (2, 3):
        told = one_sentence(run("pretrain", "ulmfit", *call, "--dropout-factor", factor), 2)
        assert f"--dropout-factor is {factor}; allowed: from 0 to below 2, for the largest of the shares is 0.5" in told
    assert "give one budget" in one_sentence(run("pretrain", "nnlm", *call, "--epochs", 1, "--words", 9), 2)


@pytest.mark.parametrize("kind", list(SIZES))
def test_a_model_that_learns_no_unknown_word_says_so(run, tmp_path, kind, caplog):
    (tmp_path / "t.txt").write_text("one zebra .\n" + LINES)
    call = ("pretrain", kind, "-c", tmp_path / "t.txt", *SIZES[kind], *PLAIN, "--words", 20)
    assert run(*call, "-o", tmp_path / "all").code == 0
    assert "so <unk> is not trained: for perplexities of other text, give --min-count 2 or --vocabulary-size" in caplog.text
    caplog.clear()
    for number, options in enumerate((("--min-count", 2), ("--vocabulary", 8))):  # as it says
        assert run(*call, "-o", tmp_path / f"m{number}", *options).code == 0 and not caplog.text
