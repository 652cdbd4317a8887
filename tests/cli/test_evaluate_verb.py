"""`polyseme evaluate`: scores, confusions and the worst errors on the screen, and as JSON."""

import json

import pytest

import polyseme
from polyseme.base.errors import UsageError
from polyseme.tasks.classification import Classification
from polyseme.tasks.predictions import Answer, LabelPrediction
from polyseme.tasks.reading import Reading
from polyseme.tasks.roles import Roles
from polyseme.tasks.tagging import Tagging
from polyseme.text.labelled.squad import AnswerSpan
from tests.cli.labelled import TINY
from tests.cli.running import one_sentence


@pytest.fixture
def runs(trained_tasks):
    return trained_tasks


def test_a_tagger(run, runs, tmp_path, monkeypatch):
    (tmp_path / "a.conll").write_text("Ann B-PER\nsees O\nNew B-LOC\nYork I-LOC\n\nBob B-PER\n\nOslo B-LOC\n")
    monkeypatch.setattr(Tagging, "predict_data", lambda task, data: [["B-PER", "O", "B-PER", "O"], ["B-LOC"], ["B-LOC"]])
    result = run("evaluate", runs / "tagger", tmp_path / "a.conll")
    assert result.code == 0 and result.err == ""
    assert (
        result.out
        == f"""{tmp_path}/a.conll: 3 examples
      f1  precision  recall  accuracy
  0.5000     0.5000  0.5000    0.5000
only 3 examples: too few for a score to mean anything

     precision  recall     f1  gold
LOC      0.500   0.500  0.500     2
PER      0.500   0.500  0.500     2

gold \\ predicted    LOC    PER  none  all  recall
LOC                   1      0     1    2   0.500
PER                   1      1     0    2   0.500
none                  0      1     0    1       -
all                   2      2     1    5
precision         0.500  0.500     -

worst errors

{tmp_path}/a.conll:1
  Ann sees New York
  New       gold none, predicted PER
  New York  gold LOC, predicted none

{tmp_path}/a.conll:6
  Bob
  gold PER, predicted LOC
"""
    )
    (report,) = run("evaluate", runs / "tagger", tmp_path / "a.conll", "--json", "--errors", "1").json
    assert report["scores"]["f1"] == 0.5 and report["main"] == "f1" and report["examples"] == 3
    assert report["confusion"] == {"labels": ["LOC", "PER", "none"], "counts": [[1, 0, 1], [1, 1, 0], [0, 1, 0]]}
    assert [wrong["gold"] for wrong in report["errors"][0]["wrong"]] == ["none", "LOC"] and len(report["errors"]) == 1


def test_a_classifier(run, runs, tmp_path, monkeypatch):
    (tmp_path / "a.tsv").write_text("text\tlabel\none\tpos\ntwo\tneg\nthree\tpos\nfour\todd\n")
    sure = [LabelPrediction(label, share, {}) for label, share in (("neg", 0.6), ("neg", 0.9), ("neg", 0.8), ("pos", 0.7))]
    monkeypatch.setattr(Classification, "predict_data", lambda task, data: sure)
    result = run("evaluate", runs / "classifier", tmp_path / "a.tsv", "--errors", "2")
    message = f"{tmp_path}/a.tsv:5: has the label 'odd', which the training data lacks: it counts as wrong"
    assert result.err == f"polyseme: {message}\n"
    assert "0.2500" in result.out
    shown = result.out.split("worst errors (2 of 3)\n")[1]
    assert shown == (
        f"\n{tmp_path}/a.tsv:4\n  three\n  gold pos, predicted neg (0.800)\n"
        f"\n{tmp_path}/a.tsv:5\n  four\n  gold odd, predicted pos (0.700)\n"
    )
    (report,) = run("evaluate", runs / "classifier", tmp_path / "a.tsv", "--json").json
    assert report["unknown_labels"] == [{"where": f"{tmp_path}/a.tsv:5", "label": "odd", "times": 1}]
    assert [error["probability"] for error in report["errors"]] == [0.8, 0.7, 0.6]


def test_roles(run, tmp_path, monkeypatch):
    file = tmp_path / "a.txt"
    file.write_text("1 Ann saw Bob leave ||| B-A0 B-V B-A1 I-A1\n3 Ann saw Bob leave ||| O O B-A0 B-V\n")
    polyseme.train("roles", file, dev=file, out=tmp_path / "run", encoder="none", network_layers=1, **TINY)
    answers = [["B-A0", "B-V", "B-A1", "O"], ["B-A1", "O", "B-A0", "B-V"]]
    monkeypatch.setattr(Roles, "predict_data", lambda task, data: answers)
    result = run("evaluate", tmp_path / "run", file)
    assert result.code == 0 and result.err == ""
    rows = [line.split() for line in result.out.splitlines()]
    assert ["A1", "0", "0", "1", "1", "0.000"] in rows and "V" not in [row[0] for row in rows if row]
    assert result.out.split("worst errors\n")[1] == (
        f"\n{file}:1\n  Ann [saw] Bob leave\n  Bob        gold none, predicted A1\n  Bob leave  gold A1, predicted none\n"
        f"\n{file}:2\n  Ann saw Bob [leave]\n  Ann  gold none, predicted A1\n"
    )


def test_a_reader(run, tmp_path, monkeypatch):
    file, right = tmp_path / "a.json", [{"text": "Ann", "answer_start": 0}, {"text": "Ann Lee", "answer_start": 0}]
    qas = [{"id": f"q{number}", "question": "Who is here?", "answers": right} for number in range(3)]
    file.write_text(json.dumps({"data": [{"paragraphs": [{"context": "Ann Lee is here.", "qas": qas}]}]}))
    polyseme.train("reading", file, dev=file, out=tmp_path / "run", encoder="none", **TINY)
    given = (("Ann Lee is", 0.5), ("Ann", 0.9), ("here", 0.25))
    answers = [Answer(text, AnswerSpan(0, 0, len(text)), score) for text, score in given]
    monkeypatch.setattr(Reading, "predict_data", lambda task, data: answers)
    result = run("evaluate", tmp_path / "run", file)
    assert result.code == 0 and "gold \\ predicted" not in result.out
    assert result.out.split("worst errors\n")[1] == (
        f"\n{file} (q2)\n  Who is here?\n  gold Ann / Ann Lee, predicted here (0.250)\n"
        f"\n{file} (q0)\n  Who is here?\n  gold Ann / Ann Lee, predicted Ann Lee is (0.500)\n"
    )
    (report,) = run("evaluate", tmp_path / "run", file, "--json", "--errors", "1").json
    wrong = {"text": "Who is here?", "gold": "Ann / Ann Lee", "predicted": "here"}
    assert report["confusion"] is None and [error["wrong"] for error in report["errors"]] == [[wrong]]


def test_many_labels_are_shown_by_pairs(run, runs, tmp_path, monkeypatch):
    labels = [f"topic-{number}" for number in range(20)]
    (tmp_path / "a.tsv").write_text("text\tlabel\n" + "".join(f"text\t{label}\n" for label in [*labels, "topic-3"]))
    answers = [LabelPrediction(label, 0.5, {}) for label in [*labels[:3], "topic-7", *labels[4:], "topic-7"]]
    monkeypatch.setattr(Classification, "predict_data", lambda task, data: answers)
    out = run("evaluate", runs / "classifier", tmp_path / "a.tsv", "--errors", "0").out
    assert out.endswith("\nmost often confused\n  topic-3 taken for topic-7  2\n")


def test_plain_text_for_a_tagger_is_named(run, runs, tmp_path):
    (tmp_path / "raw.txt").write_text("The film was good\nI did not like the second half of it at all\nNothing\n")
    said = one_sentence(run("evaluate", runs / "tagger", tmp_path / "raw.txt"))
    assert "raw.txt: seems to be plain text (it begins with 'The film was good'), not labelled data; expected a word" in said
    (tmp_path / "mixed.conll").write_text("Anna A B-PER\nsaw O\nRome C D B-LOC\n")
    assert "mixed.conll:2: has 2 columns" in one_sentence(run("evaluate", runs / "tagger", tmp_path / "mixed.conll"))


def test_a_table_with_another_layout(run, runs, tmp_path):
    file, rows = tmp_path / "a.tsv", "a good film\t7\tpos\na bad film\t8\tneg\n" * 2
    call = ("evaluate", runs / "classifier", file, "--errors", "0")
    file.write_text("a good film\tit is\tpos\tx\na bad film\tit was\tneg\ty\n" * 2)
    told = (
        "no column is evidently the text: give --text, by name or number from 0; its first row: 'a good film', 'it is', 'pos'"
    )
    assert told in one_sentence(run(*call), 2) and run(*call, "--text", "0").code == 0
    file.write_text(rows)
    result = run(*call, "--text", "0", "--label", "-1")
    assert result.code == 0 and "4 examples" in result.out
    assert run(*call).out == result.out  # found by their content
    file.write_text("what\tnumber\thow\n" + rows)
    assert "the first row names the columns" in run(*call, "--text", "0", "--label", "-1").err
    assert "--header or --no-header" in one_sentence(run(*call, "--text", "0", "--label", "-1", "--strict"))
    assert run(*call, "--text", "0", "--label", "-1", "--header", "--format", "tsv").out == result.out
    file.write_text("text\tlabel\na film\tpos\n\tneg\n")
    assert "leave out --strict" in one_sentence(run(*call, "--strict"))
    assert "1 example" in run(*call, "--no-strict").out


def test_options_of_other_tables(run, runs):
    message = one_sentence(run("evaluate", runs / "tagger", runs / "dev.conll", "--text", "0", "--label", "1"), 2)
    assert "--text, --label: data files of tagging have no such option" in message
    message = one_sentence(run("evaluate", runs / "classifier", "a", "--second", "1"), 2)
    assert "--second: data files of classification have no such option" in message


def test_bad_data(run, runs, tmp_path):
    (tmp_path / "ragged").write_text("Ann B-PER\nis O O\n")
    assert "ragged:2: has 3 columns" in one_sentence(run("evaluate", runs / "tagger", tmp_path / "ragged"))
    (tmp_path / "plain").write_text("Ann NOUN\n")
    assert "plain:1: has the tag 'NOUN'" in one_sentence(run("evaluate", runs / "tagger", tmp_path / "plain"))
    (tmp_path / "empty").write_text("")
    assert "empty" in one_sentence(run("evaluate", runs / "classifier", tmp_path / "empty"))
    assert "is not a trained task (task.json is missing)" in one_sentence(run("evaluate", tmp_path, tmp_path / "plain"))


def opinions(count: int) -> str:
    return "".join(f"the {'b' if number % 2 else 'a'} was here number {number},{number % 2}\n" for number in range(2 * count))


def test_columns_that_were_a_guess_are_found_anew(run, tmp_path):
    rows = opinions(9)
    (tmp_path / "train.csv").write_text("Review Text,Opinion\n" + rows)
    (tmp_path / "known.csv").write_text("label,text\n" + "1,the a was here\n0,the b was here\n")
    (tmp_path / "odd.csv").write_text("body,cat\n" + rows)
    (tmp_path / "few.csv").write_text("body,cat\nthe a was here,1\n")
    train = ("train", "classification", "--data", tmp_path / "train.csv", "--encoder", "none", "--epochs", "1")
    assert run(*train, "--out", tmp_path / "run").code == 0
    call = ("evaluate", tmp_path / "run")
    known = run(*call, tmp_path / "known.csv")
    trained = "the task was trained with the columns text: 'Review Text', label: 'Opinion', which this file lacks"
    assert known.code == 0 and known.err == f"polyseme: {tmp_path}/known.csv: {trained}; columns text: 'text', label: 'label'\n"
    assert "columns text: 'body', label: 'cat'" in run(*call, tmp_path / "odd.csv").err
    assert trained in one_sentence(run(*call, tmp_path / "few.csv"), 2)
    assert run(*call, tmp_path / "few.csv", "--text", "body", "--label", "cat").code == 0
    assert "lacks" not in run(*call, tmp_path / "train.csv").err
    given = ("--text", "Review Text", "--label", "Opinion", "--out", tmp_path / "strict")
    assert run(*train, *given).code == 0
    refused = one_sentence(run("evaluate", tmp_path / "strict", tmp_path / "odd.csv"), 2)
    assert "has no column 'Review Text' for --text" in refused


def test_a_header_where_the_training_data_had_none(run, tmp_path):
    rows = opinions(9)
    (tmp_path / "train.csv").write_text(rows)
    (tmp_path / "named.csv").write_text("label,text\n1,the a was here\n0,the b was here\n")
    train = ("train", "classification", "--data", tmp_path / "train.csv", "--encoder", "none", "--epochs", "1")
    assert run(*train, "--out", tmp_path / "run").code == 0
    result = run("evaluate", tmp_path / "run", tmp_path / "named.csv")
    assert "2 examples" in result.out and "columns text: 'text', label: 'label'" in result.err


def test_a_misspelt_argument_is_named(runs, tmp_path):
    with pytest.raises(UsageError, match=r"evaluate has no option error \(did you mean 'errors'\?\)"):
        polyseme.evaluate(runs / "tagger", tmp_path / "a.conll", error=3)
