"""Reading comprehension from the command line: train, predict, evaluate."""

import json

import pytest

import polyseme
from tests.cli.running import one_sentence

SMALL = ["--epochs", "1", "--hidden-size", "4", "--word-dim", "4", "--encoder", "none"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reading")
    answers = [{"text": "Ann", "answer_start": 0}]
    for name, second in (("v1", answers), ("v2", [])):
        qas = [{"id": "1", "question": "Who is here?", "answers": answers}, {"id": "2", "question": "Who?", "answers": second}]
        data = {"data": [{"paragraphs": [{"context": "Ann is here.", "qas": qas}] * 5}]}
        (folder / f"{name}.json").write_text(json.dumps(data))
    return folder


@pytest.mark.parametrize(("name", "file"), [("reading", "v1.json"), ("squad", "v2.json")])
def test_from_a_file_to_answers(run, files, name, file):
    folder = files / f"run-{name}"
    result = run("train", name, "--data", files / file, *SMALL, "--max-answer-length", "2", "--out", folder, "--json")
    (reported,) = result.json
    assert reported["task"] == "reading" and reported["main"] == "f1" and set(reported["scores"]["dev"]) == {"f1", "exact"}
    assert "of 10 examples, drawn at random by --seed 0, are held out" in result.err
    task = polyseme.load_task(folder)
    assert task.config.max_answer_length == 2 and task.rules == ("squad" if name == "reading" else "squad2")
    (answer,) = task.predict([("Who is here?", "It is Bob.")])
    two = run("predict", folder, "Who is here?", "It is Bob.")
    one = run("predict", folder, "Who is here?\tIt is Bob.")
    assert two.out == one.out == f"{answer.text}\t{answer.score:.4f}\tWho is here?\tIt is Bob.\n"
    (predicted,) = run("predict", folder, "Who is here?", "It is Bob.", "--json").json
    assert predicted["answer"] == answer.text and predicted["score"] == pytest.approx(answer.score)
    assert predicted["place"] == (None if answer.span is None else [answer.span.begin, answer.span.end])
    (spaces,) = run("predict", folder, "Who is here?", "It is Bob.", "--json", "--split-on-spaces").json
    assert spaces["answer"] in ("", "It", "is", "Bob.", "It is", "is Bob.")
    assert run("evaluate", folder, files / "v2.json").code == 0


def test_called_wrongly(run, files, tmp_path):
    polyseme.train("reading", files / "v1.json", out=tmp_path / "run", encoder="none", epochs=1, hidden_size=4, word_dim=4)
    message = one_sentence(run("predict", tmp_path / "run", "Who?"), 2)
    assert "a question and a paragraph" in message and "TEXT twice" in message
    (tmp_path / "a.txt").write_text("one\ttwo\nthree\n")
    message = run("predict", tmp_path / "run", "-i", tmp_path / "a.txt").err
    assert "a.txt:2: has 1 text; " in message and "a question and a paragraph" in message
    (tmp_path / "a.tsv").write_text("text\tlabel\n")
    call = ["train", "reading", "--data", tmp_path / "a.tsv", *SMALL, "--out", tmp_path / "other"]
    assert "a.tsv:1: is not JSON" in one_sentence(run(*call))
    call = ["train", "reading", "--data", files / "v2.json", *SMALL, "--no-allow-no-answer", "--out", tmp_path / "other"]
    assert "--no-allow-no-answer" in run(*call).err
