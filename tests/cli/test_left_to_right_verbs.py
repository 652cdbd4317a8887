"""The command line on NNLM and ULMFiT: from text to a model, its scores, its vectors, and what it refuses."""

import json
import shutil

import numpy as np
import pytest

import polyseme
from polyseme.__main__ import main
from tests.cli.running import one_sentence

LINES = "the cat sat on the mat .\na dog saw the river .\nthe dog sat .\n" * 6
PLAIN = ("--splitter", "whitespace", "--sentences", "lines")
SIZES = {
    "nnlm": ("--order", 3, "--dim", 6, "--hidden-size", 8, "--batch-words", 50, "--direct-connections"),
    "ulmfit": ("--dim", 6, "--hidden-size", 8, "--layers", 2, "--batch-size", 2, "--bptt", 6, "--dropout-multiplier", 0.1),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """One model of each kind, and the command that trained it."""
    folder, found = tmp_path_factory.mktemp("models"), {}
    (folder / "t.txt").write_text(LINES)
    for kind, sizes in SIZES.items():
        call = ("pretrain", kind, "-c", folder / "t.txt", "-o", folder / kind, *sizes, *PLAIN, "--vocabulary-size", 11)
        assert main([str(each) for each in (*call, "--epochs", 2)]) == 0
        found[kind] = (folder / kind, call)
    return found


@pytest.fixture(params=list(SIZES))
def trained(models, request):
    return models[request.param][0]


@pytest.mark.parametrize("kind", SIZES)
def test_resumed_with_other_settings(run, models, tmp_path, kind):
    folder, call = models[kind]
    call = [shutil.copytree(folder, tmp_path / "m") if each == folder else each for each in call]
    done = run(*call, "--epochs", 2)
    assert done.code == 0 and "held-out perplexity " in done.out
    (result,) = run(*call, "--epochs", 3, "--accept-changes", "--json").json
    assert result["ended"] == "budget" and result["perplexity"] > 1
    assert "--hidden-size: 8 in the run, 9 now" in one_sentence(run(*call, "--epochs", 3, "--hidden-size", 9))


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
        assert "--carry applies only to ULMFiT models" in one_sentence(carried, 2)
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
    assert "which has no substitutes: give an ELMo" in one_sentence(run("substitutes", "the dog", "-w", "dog", "-m", trained))


def test_a_task_uses_its_vectors(run, trained, tmp_path):
    (tmp_path / "train.conll").write_text("Ann B-PER\nsaw O\n\nthe O\ndog O\n" * 5)
    call = ("train", "ner", "-d", tmp_path / "train.conll", "-o", tmp_path / "ner", "--encoder", trained)
    assert run(*call, "--epochs", 1, "--hidden-size", 8).code == 0


def test_wrong_options(run, tmp_path):
    (tmp_path / "t.txt").write_text(LINES)
    call = ("-c", tmp_path / "t.txt", "-o", tmp_path / "m", *PLAIN)
    assert "--dropout is 1.5; allowed: 0 or more, below 1" in one_sentence(run("pretrain", "nnlm", *call, "--dropout", 1.5), 2)
    for factor in (2, 3):
        message = one_sentence(run("pretrain", "ulmfit", *call, "--dropout-multiplier", factor), 2)
        assert f"--dropout-multiplier is {factor}; allowed: below 2, because the largest dropout probability is 0.5" in message
    message = one_sentence(run("pretrain", "nnlm", *call, "--epochs", 1, "--words", 9), 2)
    assert "give exactly one of --steps, --epochs" in message


@pytest.mark.parametrize("kind", list(SIZES))
def test_a_model_without_unknown_words_is_reported(run, tmp_path, kind):
    (tmp_path / "t.txt").write_text("one zebra .\n" + LINES)
    call = ("pretrain", kind, "-c", tmp_path / "t.txt", *SIZES[kind], *PLAIN, "--words", 20)
    result = run(*call, "-o", tmp_path / "all")
    assert result.code == 0 and "<unk> is not trained" in result.err and "give --min-count 2 or --vocabulary-size" in result.err
    for number, options in enumerate((("--min-count", 2), ("--vocabulary-size", 8))):  # as it says
        result = run(*call, "-o", tmp_path / f"m{number}", *options)
        assert result.code == 0 and "<unk>" not in result.err
