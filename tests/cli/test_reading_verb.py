"""`polyseme train reading`, and `predict` and `evaluate` of what it wrote."""

import functools
import json
import re
import typing

import pytest
from polyseme.cli.task_options import ELSEWHERE, ReadingOptions

import polyseme
from polyseme.tasks.registry import configure_task, task_options
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
    (said,) = result.json
    assert said["task"] == "reading" and said["main"] == "f1" and set(said["scores"]["dev"]) == {"f1", "exact"}
    assert "the last 1 of 10 examples are held out" in result.err
    task = polyseme.load_task(folder)
    assert task.config.max_answer_length == 2 and task.rules == ("squad" if name == "reading" else "squad2")
    (answer,) = task.predict([("Who is here?", "It is Bob.")])
    two = run("predict", folder, "Who is here?", "It is Bob.")
    one = run("predict", folder, "Who is here?\tIt is Bob.")
    assert two.out == one.out == f"{answer.text}\t{answer.score:.4f}\tWho is here?\tIt is Bob.\n"
    (said,) = run("predict", folder, "Who is here?", "It is Bob.", "--json").json
    assert said["answer"] == answer.text and said["score"] == pytest.approx(answer.score)
    assert said["place"] == (None if answer.span is None else [answer.span.begin, answer.span.end])
    (spaces,) = run("predict", folder, "Who is here?", "It is Bob.", "--json", "--split-on-spaces").json
    assert spaces["answer"] in ("", "It", "is", "Bob.", "It is", "is Bob.")
    assert run("evaluate", folder, files / "v2.json").code == 0


def test_called_wrongly(run, files, tmp_path):
    run("train", "reading", "--data", files / "v1.json", *SMALL, "--out", tmp_path / "run")
    assert "reads a question and a paragraph: give TEXT twice" in one_sentence(run("predict", tmp_path / "run", "Who?"), 2)
    (tmp_path / "a.txt").write_text("one\ttwo\nthree\n")
    assert "a.txt:2: holds 1 text; this task reads a question" in run("predict", tmp_path / "run", "-i", tmp_path / "a.txt").err
    (tmp_path / "a.tsv").write_text("text\tlabel\n")
    call = ["train", "reading", "--data", tmp_path / "a.tsv", *SMALL, "--out", tmp_path / "other"]
    assert "a.tsv:1: is no JSON" in one_sentence(run(*call))
    call = ["train", "reading", "--data", files / "v2.json", *SMALL, "--no-allow-no-answer", "--out", tmp_path / "other"]
    assert "allow_no_answer is False, but 4 training questions have no answer" in run(*call).err


def test_options_are_those_of_the_config():
    known = task_options("reading")
    config, fitting = configure_task("reading", {})
    usual = {"task": config.to_dict(), "fitting": fitting.to_dict()}
    for field, hint in typing.get_type_hints(ReadingOptions, include_extras=True).items():
        assert field in known or field in ELSEWHERE
        value = re.search(r"not given: ([0-9.]+)\.(?: |$)", hint.__metadata__[0].help or "")
        if value is not None:
            (path,) = known[field]
            assert float(value[1]) == functools.reduce(lambda inside, step: inside[step], path.split("."), usual), field
    given = ReadingOptions(
        data="a", out="b", rules="cmrc", allow_no_answer=True, max_answer_length=3, max_paragraph_length=9
    ).chosen()
    config = configure_task("reading", given)[0]
    assert (config.rules, config.allow_no_answer, config.max_answer_length, config.max_paragraph_length) == ("cmrc", True, 3, 9)
