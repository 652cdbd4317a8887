"""`polyseme train`: from labelled files to a task that predicts, stopped and resumed, and its errors."""

import json
import os
import re
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
    result = run(
        *call, *SMALL[:-1], model, "--out", files / "run", "--positions", "input,output", "--norm", "bilm", "--layers", "mix"
    )
    lines = result.out.splitlines()
    assert result.code == 0 and lines[0].startswith(f"{files / 'run'}: tagging, 1 step, ")
    assert lines[1].split() == ["f1", "precision", "recall", "accuracy"]
    dev, test = (next(line for line in lines if line.startswith(f"{split} ")) for split in ("dev", "test"))
    assert len(dev) == len(test) == len(lines[1]) and "most frequent tag of each word" in result.out
    titles = ["confusion matrix, test data (none: no span there)", "worst errors, test data", "layer weights", "input, elmo 1"]
    assert [line for line in lines if line in titles] == titles
    assert max(len(line) for line in lines if str(files) not in line) <= 80
    assert result.err.startswith("classes   2: LOC (18), PER (18)\n") and "\nepoch 1 of 1, loss " in result.err
    assert "train 18 examples (102 words), dev 4 examples (22 words)" in result.err and "hidden size 8" in result.err
    written = json.loads((files / "run" / "result.json").read_text())
    assert [f"{written['scores']['dev'][name]:.4f}" for name in lines[1].split()] == dev.split()[3:]
    features = written["config"]["features"]
    assert features["positions"] == ["input", "output"] and features["norm"] == "bilm"
    assert polyseme.load_task(files / "run").predict([["Ann"]])[0].words == ["Ann"]


def test_a_curve_and_a_report(files):
    pytest.importorskip("matplotlib")
    options = {"encoder": "none", "epochs": 1, "hidden_size": 8, "word_dim": 4}
    tagger = polyseme.train("ner", files / "train.conll", out=files / "run", plot=files / "curve.png", **options)
    assert (files / "curve.png").read_bytes().startswith(b"\x89PNG")
    (labels,) = (line for line in str(polyseme.info(files / "run")).splitlines() if line.startswith("labels"))
    assert labels.split() == ["labels", "LOC,", "PER", "(spans)"]
    assert "confusion matrix, dev data" in str(tagger) and "confusion matrix, dev data" in tagger._repr_html_()
    shown = polyseme.info(files / "run")
    assert shown.facts["task"] == "tagging" and shown.report.scores == tagger.report.scores
    (row,) = (line for line in str(shown).splitlines() if line.startswith("dev  this model"))
    assert row.split()[3] == f"{tagger.report.scores['dev']['f1']:.4f}"
    with pytest.raises(polyseme.PolysemeError, match="the suffix selects the format"):
        polyseme.train("ner", files / "train.conll", out=files / "other", plot=files / "curve.xyz", **options)


TABLE = ["--network", "pooled", "--text", "text", "--label", "1", "--header"]


@pytest.mark.parametrize(
    ("name", "kind", "file", "more"),
    [
        pytest.param("ner", "tagging", "train.conll", [], marks=pytest.mark.slow),  # below, it is trained and resumed
        ("pos", "tagging", "train.conll", ["--column", "1"]),
        ("classification", "classification", "texts.tsv", TABLE),
        pytest.param("nli", "pairs", "pairs.tsv", [], marks=pytest.mark.slow),  # the next is of pairs too
        ("pairs", "pairs", "scores.tsv", ["--goal", "score", "--network", "siamese"]),
    ],
)
def test_every_task(run, files, name, kind, file, more):
    result = run("train", name, "--data", files / file, *SMALL, *more, "--out", files / "run", "--json")
    (reported,) = result.json
    assert list(reported) == ["out", "task", "main", "scores", "steps", "best_step", "seconds", "ended"]
    assert reported["task"] == kind and reported["ended"] == "budget" and list(reported["scores"]) == ["dev"]
    assert reported["main"] in reported["scores"]["dev"]
    held, count = (2, 18) if kind == "tagging" else (2, 20)
    assert f": {held} of {count} examples, drawn at random by --seed 0, are held out" in result.err


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 4])  # tests/tasks/test_fit.py stops anywhere
def test_stopped_and_resumed(run, files, monkeypatch, step):
    """Before the first evaluation, and after it."""
    data = ["--data", files / "train.conll", "--dev", files / "dev.conll"]
    call = ["train", "ner", *data, *SMALL, "--epochs", "3", "--batch-size", "8"]
    expected = run(*call, "--out", files / "whole")
    compute, calls = Tagging.loss, []

    def stopping(self, *arguments):
        calls.append(1)
        if len(calls) == step:
            os.kill(os.getpid(), signal.SIGINT)
        return compute(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Tagging, "loss", stopping)
        stopped = run(*call, "--out", files / "cut")
    assert stopped.code == 130 and stopped.out.splitlines()[0].endswith(", stopped")
    is_loaded = "its training is not finished" in run("predict", files / "cut", "Ann is here .").err
    assert is_loaded == (step == 4)  # before the first evaluation there is nothing to load
    other = ["--epochs", "4", "--learning-rate", "0.5", "--mix-dropout", "0.3"]
    refused = one_sentence(run(*call, *other, "--out", files / "cut"))
    for change in (
        "--epochs: 3 in the run, 4 now",
        "--learning-rate: 0.002 in the run, 0.5 now",
        "--mix-dropout: 0.2 in the run",
    ):
        assert change in refused
    assert "holds a run with other settings (--learning-rate: 0.002 in the run" in refused and "steps" not in refused
    again = run(*call, "--out", files / "cut")
    assert run("predict", files / "cut", "Ann is here .").err == ""
    assert again.code == expected.code == 0 and again.out.splitlines()[1:-1] == expected.out.splitlines()[1:-1]
    assert again.out.splitlines()[-1] == f"predict with it: polyseme predict {files / 'cut'} --input FILE"
    weights = [(files / name / "model.safetensors").read_bytes() for name in ("whole", "cut")]
    assert weights[0] == weights[1]
    sentence = one_sentence(run(*call, "--hidden-size", "9", "--out", files / "cut"))
    assert "has a finished run with other settings (--hidden-size: 8 in the run, 9 now)" in sentence


BAD = {
    "ragged": (b"Ann B-PER\nlives O\n\nin O O\n", "ragged:4: has 3 columns; expected 2 as in line 1"),
    "empty": (b"", "empty: has no sentences"),
    "mixed": (b"Ann B-PER\nis O\n\nParis I-LOC\n", "mixed:4: begins a span with another letter"),
    "letters": (b"Ann S-PER\nBob L-PER\n", "letters:1: has the tag 'S-PER'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_data(run, files, name):
    content, problem = BAD[name]
    (files / name).write_bytes(content)
    good = files / "train.conll"
    for train, dev in ((files / name, good), (good, files / name)):
        sentence = one_sentence(run("train", "ner", "--data", train, "--dev", dev, "--strict", "--out", files / "run", *SMALL))
        assert f"{files}/{problem}" in sentence
    assert not (files / "run").exists()


def test_wrong_options(run, model, files):
    start = ["train", "ner", "--data", files / "train.conll", "--dev", files / "dev.conll", *SMALL, "--out"]

    def message(*arguments, code=2):
        return one_sentence(run(*start, files / "run", *arguments), code)

    assert "--positions is 'inputs'; allowed: input, between, output" in message("--positions", "inputs")
    assert "--dropout is 1.5; allowed: 0 or more, below 1" in message("--dropout", "1.5")
    assert "--encoder is 'none+en'; expected none, or models joined by +" in message("--encoder", "none+en")
    assert "no such file or folder" in message("--encoder", files / "nothing", code=1)
    assert "needs --word-list" in message("--splitter", "unigram")
    assert "--mode finetune: the encoders are frozen" in message("--unfreeze", "gradual")
    assert "has a model, which a trained task would overwrite: choose another folder" in one_sentence(run(*start, model), 2)
    assert "Missing option '--data'" in one_sentence(run("train", "ner", "--out", files / "run"), 2)
    assert "No such task 'parsing'" in one_sentence(run("train", "parsing"), 2)


def test_files_that_cannot_be_trained_on(run, files):
    end = [*SMALL, "--out", files / "run"]
    (files / "one.conll").write_text("Ann B-PER\n")
    alone = run("train", "ner", "--data", files / "one.conll", *end)
    assert "one.conll has 1 example, too few to hold some out: give --dev" in one_sentence(alone)
    table = run("train", "classification", "--data", files / "texts.tsv", "--text", "body", *end)
    assert "has no column 'body'" in one_sentence(table, 2)


def test_labels_that_the_training_data_lacks(run, files):
    (files / "new.conll").write_text("Ann B-ORG\nsees O\nParis B-LOC\n\nBob B-ORG\n")
    call = ["train", "ner", "--data", files / "train.conll", "--dev", files / "dev.conll", "--test", files / "new.conll"]
    result = run(*call, *SMALL, "--out", files / "run")
    assert result.code == 0
    (unknown,) = (line for line in result.err.splitlines() if line.startswith("polyseme: "))
    has = "has the label 'ORG' (2 times), which the training data lacks: it counts as wrong"
    assert unknown == f"polyseme: {files}/new.conll:1: {has}"
    assert "no better than a baseline: only 1 step; leave out --epochs, and there are at least 100" in " ".join(
        result.out.split()
    )
    (files / "plain.conll").write_text("Ann NOUN\n")
    call[call.index(files / "new.conll")] = files / "plain.conll"
    assert "plain.conll:1: has the tag 'NOUN'" in one_sentence(run(*call, *SMALL, "--out", files / "other"))


def test_folds(run, files):
    command = ("train", "classification", "--data", files / "texts.tsv", *SMALL, *TABLE, "--out", files / "run")
    result = run(*command, "--folds", "2", "--json")
    (reported,) = result.json
    assert reported["folds"] == 2 and len(reported["fold_scores"]) == 2 and "accuracy" in reported["scores"]["test"]
    assert "fold 2 of 2: test accuracy " in result.err and result.err.count("classes ") == 1
    assert "all predictions" in run(*command, "--folds", "2").out
    assert "--folds 2 divides the data itself: leave out --dev" in one_sentence(run(*command, "--folds", "2", "--dev", "x"), 2)
    assert "--folds is 1; allowed: 2 or more" in one_sentence(run(*command, "--folds", "1"), 2)


def test_columns_of_an_earlier_run_are_named_as_such(run, files):
    (files / "odd.csv").write_text(
        "body,cat\n" + "".join(f"the {each} {n} was here,{each}\n" for n in range(9) for each in "ab")
    )
    named = ("--data", files / "odd.csv", "--text", "body", "--label", "cat")
    assert run("train", "classification", *named, *SMALL, "--out", files / "run").code == 0
    again = run("train", "classification", "--data", files / "texts.tsv", *SMALL, "--out", files / "run")
    assert again.code == 2 and "has no column 'body'" in again.err
    assert f"comes from the run in {files}/run: choose another folder" in again.err
    assert run("train", "classification", "--data", files / "odd.csv", *SMALL, "--out", files / "guessed").code == 0
    again = run("train", "classification", "--data", files / "texts.tsv", *SMALL, "--out", files / "guessed")
    assert again.code == 1 and "has a finished run with other settings" in again.err and "training data changed" in again.err


def test_dev_data_that_was_given_before_is_asked_for(run, files):
    call = ("train", "classification", "--data", files / "texts.tsv", *SMALL, "--out", files / "run")
    assert run(*call, "--dev", files / "texts.tsv").code == 0
    again = run(*call)
    assert again.code == 2 and f"(--dev was given): give --dev {files / 'texts.tsv'} again, or choose another" in again.err
    assert "nothing to do" in run(*call, "--dev", files / "texts.tsv").err


def test_folders_that_hold_something_else_are_refused_before_any_work(run, model, files):
    command = ("train", "classification", "--data", files / "texts.tsv", *SMALL, *TABLE)
    out = files / "folds"
    assert run(*command, "--folds", "2", "--out", out).code == 0
    scores = (out / "result.json").read_bytes()
    refused = one_sentence(run(*command, "--out", out), 2)
    assert (
        "has a cross-validation, whose scores a trained task would overwrite: choose another folder, or give --folds" in refused
    )
    assert (out / "result.json").read_bytes() == scores and not (out / "run").exists()
    for verb in (("predict", out, "a"), ("evaluate", out, files / "texts.tsv")):
        said = one_sentence(run(*verb))
        assert "has the scores of a cross-validation with 2 folds, and no model of its own" in said and "folds/fold-1" in said
    for name in ("result.json", "fold-2/result.json"):
        (out / name).unlink()
    said = one_sentence(run("predict", out, "a"))
    assert "has a cross-validation that is not finished, 1 of 2 folds, which the same command continues: use the" in said
    for more in ((), ("--folds", "2")):
        said = one_sentence(run(*command, *more, "--out", files / "texts.tsv"), 2)
        assert said.endswith(f"--out {files}/texts.tsv is a file; give a folder\n")
    assert "has a model, which a trained task would overwrite" in one_sentence(run(*command, "--out", model), 2)


def test_a_finished_run_is_shown_or_refused_before_layers_are_computed(run, model, files, monkeypatch):
    command = ("train", "classification", "--data", files / "texts.tsv", "--encoder", model, *TABLE[2:], "--epochs", "2")
    first = run(*command, "--out", files / "run")
    assert first.code == 0, first
    monkeypatch.setattr("polyseme.tasks.data.TaskData.cache", lambda *_, **__: pytest.fail("layers are computed"))
    with monkeypatch.context() as patch:
        patch.setattr("polyseme.tasks.fit.TaskBuilder.build", lambda *_, **__: pytest.fail("a network is built"))
        again = run(*command, "--out", files / "run")
    assert f"{files}/run is trained; nothing to do" in again.err and "come from it" in again.err
    assert again.out.splitlines()[2] == first.out.splitlines()[2]  # the scores
    refused = run(*command[:-1], "3", "--out", files / "run").err
    assert "has a finished run with other settings (--epochs: 2 in the run, 3 now): choose another folder" in refused
    refused = run(*command, "--seed", "5", "--out", files / "run").err
    assert "--seed: 0 in the run, 5 now" in refused and "resume" not in refused
    (files / "run" / "result.json").unlink()  # as after a kill
    refused = run(*command[:-1], "3", "--out", files / "run").err
    assert "a run with other settings (--epochs: 2 in the run, 3 now): give the old ones to resume it" in refused


def test_the_number_of_epochs_stays_as_it_is(run, files):
    """Batches of different lengths, and evaluations that do not end with an epoch."""
    options = ("--batch-size", "7", "--min-steps", "11", "--word-dim", "4", "--hidden-size", "4", "--epochs", "3")
    said = run("train", "tagging", "--data", files / "train.conll", "--encoder", "none", *options, "--out", files / "run").err
    found = re.findall(r"^epoch ([\d.]+) of ([\d.]+),", said, re.M)
    assert [of for _, of in found] == ["4", "4", "4"] and found[-1][0] == "4", said


def test_prose_and_too_few_examples_are_named(run, files):
    (files / "raw.txt").write_text("The film was very good and long.\nI did not like it.\n")
    said = one_sentence(run("train", "tagging", "--data", files / "raw.txt", *SMALL, "--out", files / "run"))
    assert (
        "raw.txt: seems to be plain text (it begins with 'The film was" in said and "expected a word and a tag per line" in said
    )
    (files / "two.csv").write_text("text,label\nthe film is good,good\nthe film is bad,bad\n")
    said = run("train", "classification", "--data", files / "two.csv", *SMALL, "--out", files / "run").err
    assert "two.csv has 2 examples; 1 of them is held out as dev data, and the others are too few" in said
    assert "give more examples of each class, or dev data of its own with --dev" in said
