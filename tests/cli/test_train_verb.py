"""`polyseme train`: from labelled files to a task that answers, stopped and taken up, and its mistakes."""

import json
import os
import signal

import pytest

import polyseme
from polyseme.tasks.tagging import Tagging
from tests.cli.labelled import write_all
from tests.cli.running import one_sentence

SMALL = ["--epochs", "1", "--hidden-size", "8", "--word-dim", "4", "--encoder", "none"]


@pytest.fixture
def files(tmp_path):
    return write_all(tmp_path)


def test_from_a_file_to_a_tagger(run, model, files):
    call = ["train", "tagging", "--data", files / "train.conll", "--dev", files / "dev.conll", "--test", files / "dev.conll"]
    result = run(*call, *SMALL[:-1], model, "--out", files / "run", "--positions", "input,output", "--norm", "bilm")
    lines = result.out.splitlines()
    assert result.code == 0 and lines[0].startswith(f"{files / 'run'}: tagging, 1 step, ")
    assert lines[1] == "          f1  precision  recall  accuracy"
    assert [line.split()[0] for line in lines[2:]] == ["dev", "test"] and {len(line) for line in lines[2:]} == {len(lines[1])}
    told = json.loads((files / "run" / "result.json").read_text())
    assert [f"{told['scores']['dev'][name]:.4f}" for name in lines[1].split()] == lines[2].split()[1:]
    assert told["config"]["features"]["positions"] == ["input", "output"] and told["config"]["features"]["norm"] == "bilm"
    assert polyseme.load_task(files / "run").predict([["Ann"]])[0].words == ["Ann"]


@pytest.mark.parametrize(
    ("name", "kind", "file", "more"),
    [
        ("ner", "tagging", "train.conll", []),
        ("pos", "tagging", "train.conll", ["--column", "1"]),
        (
            "classification",
            "classification",
            "texts.tsv",
            ["--network", "pooled", "--text", "text", "--label", "1", "--header"],
        ),
        ("nli", "pairs", "pairs.tsv", []),
        ("pairs", "pairs", "scores.tsv", ["--goal", "score", "--network", "siamese"]),
    ],
)
def test_every_task(run, files, name, kind, file, more):
    result = run("train", name, "--data", files / file, *SMALL, *more, "--out", files / "run", "--json")
    (said,) = result.json
    assert said["task"] == kind and said["ended"] == "budget" and list(said["scores"]) == ["dev"]
    assert said["main"] in said["scores"]["dev"]
    count = 18 if kind == "tagging" else 20
    assert f"the last {count // 10} of {count} examples are held out" in result.err


@pytest.mark.parametrize("step", [1, 4])
def test_stopped_and_taken_up(run, files, monkeypatch, step):
    """Before the first evaluation, and after it."""
    call = [
        "train",
        "ner",
        "--data",
        files / "train.conll",
        "--dev",
        files / "dev.conll",
        *SMALL,
        "--epochs",
        "3",
        "--batch-size",
        "8",
    ]
    whole = run(*call, "--out", files / "whole")
    losses, calls = Tagging.losses, []

    def stopping(self, *arguments):
        calls.append(1)
        if len(calls) == step:
            os.kill(os.getpid(), signal.SIGINT)
        return losses(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Tagging, "losses", stopping)
        stopped = run(*call, "--out", files / "cut")
    assert stopped.code == 130 and stopped.out.splitlines()[0].endswith(", stopped")
    again = run(*call, "--out", files / "cut")
    assert again.code == whole.code == 0 and again.out.splitlines()[1:] == whole.out.splitlines()[1:]
    weights = [(files / name / "model.safetensors").read_bytes() for name in ("whole", "cut")]
    assert weights[0] == weights[1]
    sentence = one_sentence(run(*call, "--hidden-size", "9", "--out", files / "cut"))
    assert "settings.task.hidden_size: 8 in the run, 9 now" in sentence and "--accept-changes" in sentence


BAD = {
    "ragged": (b"Ann B-PER\nlives O\n\nin O O\n", "ragged:4: has 3 columns; expected 2 as in line 1"),
    "latin": (b"Ann B-PER\nR\xe9my B-PER\n", "latin:2: is not UTF-8"),
    "empty": (b"", "empty: has no sentences"),
    "mixed": (b"Ann B-PER\nis O\n\nParis I-LOC\n", "mixed:4: begins a span with another letter"),
    "letters": (b"Ann S-PER\nBob L-PER\n", "letters:1: has the tag 'S-PER'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_data(run, files, name):
    content, told = BAD[name]
    (files / name).write_bytes(content)
    good = files / "train.conll"
    for train, dev in ((files / name, good), (good, files / name)):
        sentence = one_sentence(run("train", "ner", "--data", train, "--dev", dev, "--out", files / "run", *SMALL))
        assert f"{files}/{told}" in sentence
    assert not (files / "run").exists()


def test_called_wrongly(run, model, files):
    start = ["train", "ner", "--data", files / "train.conll", "--dev", files / "dev.conll", *SMALL, "--out"]

    def said(*arguments, code=2, out="run"):
        return one_sentence(run(*start, files / out, *arguments), code)

    assert "positions[0] is 'inputs'; allowed: 'input'" in said("--positions", "inputs")
    assert "dropout is 1.5" in said("--dropout", "1.5")
    assert "encoders are 'none+en'" in said("--encoder", "none+en")
    assert "no such file or folder" in said("--encoder", files / "nothing", code=1)
    assert "needs --word-list" in said("--splitter", "unigram")
    assert "choose another folder" in one_sentence(run(*start, model), 2)
    assert "--data" in one_sentence(run("train", "ner", "--out", files / "run"), 2)
    assert "No such command 'parsing'" in one_sentence(run("train", "parsing"), 2)
    (files / "one.conll").write_text("Ann B-PER\n")
    alone = run("train", "ner", "--data", files / "one.conll", *SMALL, "--out", files / "run")
    assert "too few to hold some out: give dev data (--dev)" in one_sentence(alone)
    (files / "trees").write_text("(3 (2 It) (3 works))\n(1 (2 It) (1 fails))\n")
    phrases = run("train", "classification", "--data", files / "trees", "--phrases", "all", *SMALL, "--out", files / "run")
    assert "give dev data (--dev)" in one_sentence(phrases, 2)
    copies = run("train", "classification", "--data", files / "trees", "--sentence-copies", 2, *SMALL, "--out", files / "run")
    assert "give dev data (--dev)" in one_sentence(copies, 2)  # they would stand on both sides
    table = run("train", "classification", "--data", files / "texts.tsv", "--text", "body", *SMALL, "--out", files / "run")
    assert "has no column 'body'" in one_sentence(table, 2)


def test_labels_that_training_lacks_are_told(run, files):
    (files / "new.conll").write_text("Ann B-ORG\nsees O\nParis B-LOC\n\nBob B-ORG\n")
    call = ["train", "ner", "--data", files / "train.conll", "--dev", files / "dev.conll", "--test", files / "new.conll"]
    result = run(*call, *SMALL, "--out", files / "run")
    assert result.code == 0
    assert result.err == (
        f"polyseme: {files}/new.conll:1: has the label 'ORG' (2 times); the training data has no such label, "
        "so it counts as wrong\n"
    )
    (files / "plain.conll").write_text("Ann NOUN\n")
    call[call.index(files / "new.conll")] = files / "plain.conll"
    assert "plain.conll:1: has the tag 'NOUN'" in one_sentence(run(*call, *SMALL, "--out", files / "other"))
