"""`polyseme predict`: predictions for arguments, files and pipes."""

import csv
import gzip
import io
import json
import sys

import pytest

import polyseme
from polyseme.api import predicting
from polyseme.encoders.elmo import Elmo
from tests.cli.labelled import TINY
from tests.cli.running import one_sentence
from tests.encoders.small import elmo


@pytest.fixture
def runs(trained_tasks):
    return trained_tasks


def test_tags(run, runs):
    texts = ["Ann lives in Oslo.", "Bob"]
    expected = polyseme.load_task(runs / "tagger").predict(texts)
    assert expected[0].words == ["Ann", "lives", "in", "Oslo", "."]
    blocks = ["".join(f"{word}\t{tag}\n" for word, tag in zip(each.words, each.tags, strict=True)) for each in expected]
    result = run("predict", runs / "tagger", *texts)
    assert result.code == 0 and result.out == "\n".join(blocks) and result.err == ""
    assert run("predict", runs / "tagger", *texts, "--json").json == [e.to_json() for e in expected]
    (spaces,) = run("predict", runs / "tagger", texts[0], "--split-on-spaces", "--json").json
    assert spaces["words"] == ["Ann", "lives", "in", "Oslo."]


def test_words_from_an_iterator(runs):
    texts = [["Ann", "left"], [], ["Bob"]]
    for name in ("tagger", "classifier"):
        expected = polyseme.load_task(runs / name).predict(texts)
        assert [each.prediction for each in polyseme.predict(runs / name, iter(texts))] == expected


def test_predictions_are_short_in_an_interpreter(runs):
    (found,) = polyseme.predict(runs / "tagger", ["Ann lives in Paris ."])
    assert repr(found) == f"LinePrediction(line='Ann lives in Paris .', prediction={found.prediction!r})"


def test_labels(run, runs):
    texts = ["a good film", "", "a bad\tone"]
    expected = polyseme.load_task(runs / "classifier").predict(texts)
    lines = [f"{each.label}\t{each.probability:.4f}\t{text}" for each, text in zip(expected, texts, strict=True)]
    assert run("predict", runs / "classifier", *texts).out.splitlines() == lines
    predicted = run("predict", runs / "classifier", *texts, "--json").json
    assert [each["text"] for each in predicted] == texts
    assert predicted[0]["probabilities"] == expected[0].probabilities and predicted[0]["label"] == expected[0].label
    assert sum(predicted[0]["probabilities"].values()) == pytest.approx(1)


def test_texts_without_a_word_are_named(run, runs, tmp_path):
    (tmp_path / "a.txt").write_text("good\n\nbad\n \n")
    result = run("predict", runs / "classifier", "--input", tmp_path / "a.txt")
    assert len(result.out.splitlines()) == 4
    assert "2 texts without a word (lines 2, 4), whose prediction means nothing" in result.err
    assert run("predict", runs / "tagger", "--input", tmp_path / "a.txt").err == ""


def test_texts_without_a_word_are_named_in_python_too_and_once(run, runs, caplog):
    task = polyseme.load_task(runs / "classifier")
    found = task.predict(["good", "", ["bad", "one"], [" "]])
    assert [each.to_json()["text"] for each in found] == ["good", "", "bad one", " "]
    said = "2 texts without a word (items 1, 3), whose prediction means nothing"
    assert [record.getMessage() for record in caplog.records] == [said]
    caplog.clear()
    list(polyseme.predict(task, ["good", ""]))
    said = "TEXT: 1 text without a word (line 2), whose prediction means nothing"
    assert [record.getMessage() for record in caplog.records] == [said]


def test_json_has_the_text_in_python_too(runs):
    for name in ("pairs", "scorer"):
        (found,) = polyseme.load_task(runs / name).predict([("a good film", ["a", "film"])])
        assert found.to_json()["text"] == "a good film\ta film"


def test_pairs(run, runs, tmp_path):
    two = run("predict", runs / "pairs", "it rains", "it is wet")
    one = run("predict", runs / "pairs", "it rains\tit is wet")
    assert two.out == one.out and two.out.endswith("\tit rains\tit is wet\n") and two.out.split("\t")[0] in ("yes", "no")
    (tmp_path / "a.txt").write_text("it rains\tdry\nsun\tit is wet\n")
    result = run("predict", runs / "scorer", "--input", tmp_path / "a.txt")
    assert [line.split("\t", 1)[1] for line in result.out.splitlines()] == ["it rains\tdry", "sun\tit is wet"]
    (score, _) = [float(line.split("\t")[0]) for line in result.out.splitlines()]
    assert run("predict", runs / "scorer", "it rains", "dry", "--json").json[0]["score"] == pytest.approx(score, abs=1e-3)


def test_many_lines_go_in_chunks(run, runs, tmp_path, monkeypatch):
    texts = [" ".join(["Ann"] * (number % 5)) for number in range(23)]
    (tmp_path / "a.gz").write_bytes(gzip.compress("".join(text + "\n" for text in texts).encode()))
    whole = run("predict", runs / "tagger", "--input", tmp_path / "a.gz")
    monkeypatch.setattr(predicting, "LINES_AT_ONCE", 4)
    assert run("predict", runs / "tagger", "--input", tmp_path / "a.gz").out == whole.out
    predicted = run("predict", runs / "tagger", "--input", tmp_path / "a.gz", "--json").json
    assert [" ".join(each["words"]) for each in predicted] == texts


@pytest.mark.slow
def test_documents_are_the_same_whatever_the_chunks(run, runs, tmp_path, monkeypatch):
    out = tmp_path / "tagger"
    polyseme.train("tagging", runs / "train.conll", out=out, **{**TINY, "encoder": elmo()}, document_context=True)
    texts = [f"line{number} " + "Ann " * 299 for number in range(7)]  # three are read together
    texts[4] = ""
    (tmp_path / "a.txt").write_text("".join(text + "\n" for text in texts))
    embed, read = Elmo.embed, []
    monkeypatch.setattr(Elmo, "embed", lambda self, texts, **more: read.extend(map(tuple, texts)) or embed(self, texts, **more))
    expected = polyseme.load_task(out).predict(texts)
    whole = sorted(read)
    assert sorted(map(len, whole)) == [0, 300, 602, 904]  # boundary tokens between sentences included
    read.clear()
    monkeypatch.setattr(predicting, "LINES_AT_ONCE", 2)
    predicted = run("predict", out, "--input", tmp_path / "a.txt", "--json").json
    assert sorted(read) == whole and [each["tags"] for each in predicted] == [each.tags for each in expected]


def test_from_a_pipe(run, runs, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO("a good film\nnaïve\n".encode()))))
    assert [line.split("\t")[2] for line in run("predict", runs / "classifier").out.splitlines()] == ["a good film", "naïve"]


@pytest.mark.parametrize(
    ("task", "text", "what"),
    [
        ("tagger", "Ann\tB-PER\nsleeps\tO\n\nBob\tB-PER\n", "every line has a tab, as in labelled data, and is"),
        ("tagger", "# text = Ann\n1\tAnn\n", "every line has a tab, as in labelled data, and is"),
        ("tagger", "Ann B-PER\nsleeps O\n\nBob S-PER\n", "the lines are words and a tag, as in labelled data, and each is"),
        ("tagger", "Ann B-PER\nsleeps\n", None),
        (
            "tagger",
            "，\u3000O\n张 B-PER.NAM\n三 M-PER.NAM\n",
            "the lines are words and a tag, as in labelled data, and each is",
        ),
        ("classifier", "Ann B-PER\nsleeps O\n", "the lines are words and a tag, as in labelled data, and each is"),
        ("classifier", "text\tlabel\na good film\tpos\n", "every line has a tab, as in labelled data, and is"),
        ("classifier", "a good film\tat last\na bad film\n", None),
        ("pairs", "it rains\tit is wet\n", None),
    ],
)
def test_labelled_data_is_read_as_text_with_a_note(run, runs, tmp_path, task, text, what):
    (tmp_path / "a.txt").write_text(text)
    result = run("predict", runs / task, "--input", tmp_path / "a.txt")
    assert result.code == 0 and result.out
    note = (
        f"polyseme: {tmp_path}/a.txt: {what} read as one text; "
        "give the texts alone, one per line, or score the data with `polyseme evaluate`\n"
    )
    assert result.err == (note if what else "")


def test_a_line_without_a_tag_among_many_does_not_hide_that_data_is_labelled(run, runs, tmp_path):
    (tmp_path / "a.txt").write_text("-DOCSTART-\n\n" + "Ann B-PER\nsleeps O\n\n" * 10)
    noted = run("predict", runs / "tagger", "--input", tmp_path / "a.txt").err
    assert "a.txt: the lines are words and a tag, as in labelled data" in noted


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.txt", "text,label\ngood film,pos\n", "CSV (it begins with 'text,label')"),
        ("a.txt", '{"text": "good film"}\n\n{"text": "bad film"}\n', "JSON lines"),
    ],
)
def test_tables_are_refused(run, runs, tmp_path, name, text, kind):
    (tmp_path / name).write_text(text)
    message = one_sentence(run("predict", runs / "classifier", "--input", tmp_path / name), 2)
    assert f"{name} is {kind}; expected plain text, one text per line: name its column with --text, or give a file" in message


@pytest.mark.parametrize("text", ["text, label\nno comma\n", "{a}\n{b}\n", "good, but long\nbad, and short\n"])
def test_texts_with_commas_and_braces_are_no_tables(run, runs, tmp_path, text):
    (tmp_path / "a.txt").write_text(text)
    assert run("predict", runs / "classifier", "--input", tmp_path / "a.txt").code == 0


def test_called_wrongly(run, runs, tmp_path):
    assert "is not a trained task (task.json is missing)" in one_sentence(run("predict", tmp_path, "a"))
    assert f"{tmp_path}/nowhere: no such folder; `polyseme train`" in one_sentence(run("predict", tmp_path / "nowhere", "a"))
    (tmp_path / "empty.txt").touch()
    nothing = run("predict", runs / "tagger", "--input", tmp_path / "empty.txt")
    assert nothing.code == 0 and nothing.err == f"polyseme: {tmp_path}/empty.txt: no lines, so nothing is predicted\n"
    message = "the text is given twice, as TEXT and as --input: give one of them"
    assert message in one_sentence(run("predict", runs / "tagger", "a", "--input", "b"), 2)
    assert "TEXT twice" in one_sentence(run("predict", runs / "pairs", "one", "two", "three"), 2)
    (tmp_path / "a.txt").write_text("one\ttwo\n\n")
    assert "a.txt:2: has 1 text; " in run("predict", runs / "pairs", "-i", tmp_path / "a.txt").err
    (tmp_path / "latin.txt").write_bytes(b"fine\n\xef\xf0\xe8\n")
    assert "latin.txt:2: is not UTF-8" in one_sentence(run("predict", runs / "tagger", "-i", tmp_path / "latin.txt"))
    assert "nowhere" in one_sentence(run("predict", runs / "tagger", "a", "--device", "nowhere"), 2)


@pytest.mark.parametrize("verb", ["predict", "evaluate"])
def test_what_is_no_task_is_named(run, model, tmp_path, verb):
    (tmp_path / "begun" / "run").mkdir(parents=True)
    assert "en: is a model (an encoder), not a trained task; `polyseme embed --model en`" in one_sentence(run(verb, "en", "a"))
    assert f"`polyseme train TASK --encoder {model}`" in one_sentence(run(verb, model, "a"))
    said = one_sentence(run(verb, tmp_path / "begun", "a"))
    assert "its training is running or was interrupted (run/); the command that started it resumes it" in said


def predicted(result):
    return [line.split("\t", 2)[2] for line in result.out.splitlines()]


def test_a_column_of_a_table(run, runs, tmp_path):
    table, call = tmp_path / "a.csv", ("predict", runs / "classifier", "--input", tmp_path / "a.csv")
    table.write_text('id,body,label\n1,"good, ""very""\ngood",pos\n2,,neg\n3,bad,neg\n')
    texts = ['good, "very" good', "", "bad"]  # a line for each row
    assert predicted(run(*call, "--text", "body")) == texts
    expected = polyseme.load_task(runs / "classifier").predict(texts)
    assert [each["label"] for each in run(*call, "--text", "body", "--json").json] == [each.label for each in expected]
    message = one_sentence(run(*call), 2)
    assert "a.csv is CSV, and no column is evidently the text: give --text; its first row: 'id', 'body', 'label'" in message
    assert "no column 'story' for --text among 'id', 'body'" in one_sentence(run(*call, "--text", "story"), 2)
    assert "classification reads one text of a row" in one_sentence(run(*call, "--text", "body", "--second", "id"), 2)
    message = one_sentence(run("predict", runs / "classifier", "a", "--text", "b"), 2)
    assert "--text names a column of a file: give --input" in message
    table.write_text("")
    assert "a.csv: is empty; expected a table" in one_sentence(run(*call))
    table.write_text("text,label\ngood film,pos\n")
    result = run(*call)
    assert predicted(result) == ["good film"]
    assert result.err == f"polyseme: {table}: columns text: 'text'; --text names another\n"
    table.write_text("text,label\ngood film,pos\nbad,film,neg\n")
    assert "a.csv:3: has 3 columns and line 1 has 2" in run(*call).err
    table.write_text("label,text\npos,good film\nneg，bad film\n", encoding="utf-8")
    message = one_sentence(run(*call, "--text", "text"))
    assert "a.csv:3: has 1 column and line 1 has 2: its commas may be full-width (，): replace those between" in message
    assert message.endswith("each row gets a prediction, so nothing was predicted\n")
    table.write_text("body，mood\ngood film，pos\n", encoding="utf-8")
    assert "its first row: 'body，mood'; its commas may be full-width (，)" in one_sentence(run(*call), 2)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"text": "good film", "label": "pos"}\n'),
        ("a.tsv", "label\ttext\npos\tgood film\n"),
        ("a.csv", "text\ngood film\n"),
        ("a.csv", "编号,评论\n1,good film\n"),
    ],
)
def test_an_evident_column(run, runs, tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert predicted(run("predict", runs / "classifier", "--input", tmp_path / name)) == ["good film"]


def test_columns_of_pairs(run, runs, tmp_path):
    (tmp_path / "a.csv").write_text("one,two,x\nit rains,it is wet,1\nit rains,dry,2\n")
    call = ("predict", runs / "pairs", "--input", tmp_path / "a.csv")
    assert predicted(run(*call, "--text", "one", "--second", "two")) == ["it rains\tit is wet", "it rains\tdry"]
    assert "pairs reads two texts of a row: give --text and --second" in one_sentence(run(*call, "--text", "one"), 2)
    assert "give --text and --second; its first row" in one_sentence(run(*call), 2)
    (tmp_path / "a.csv").write_text("premise,hypothesis\nit rains,it is wet\n")
    assert predicted(run(*call)) == ["it rains\tit is wet"]


def test_the_column_of_the_training_data(run, tmp_path):
    rows = "".join(f"the {'b' if n % 2 else 'a'} was here number {n},{n % 2}\n" for n in range(18))
    (tmp_path / "train.csv").write_text("Review Text,Opinion\n" + rows)
    train = ("train", "classification", "--data", tmp_path / "train.csv", "--encoder", "none", "--epochs", "1")
    assert run(*train, "--out", tmp_path / "run").code == 0
    (tmp_path / "new.csv").write_text("id,Review Text\n1,the a was here\n")
    assert predicted(run("predict", tmp_path / "run", "--input", tmp_path / "new.csv")) == ["the a was here"]


TABLE = 'id,text,other\r\n7,"good, ""very""\ngood",ü\r\n8,,"a ""b"" c"\r\n9,bad,\r\n'
TEXTS = ['good, "very"\ngood', "", "bad"]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
def test_a_table_of_predictions(run, runs, tmp_path, suffix):
    table, out = tmp_path / "a.csv", tmp_path / f"new.{suffix}"
    table.write_bytes(TABLE.encode())
    result = run("predict", runs / "classifier", "--input", table, "--out", out)
    assert result.code == 0 and result.out == f"{out}: 3 rows\n"
    assert "a.csv: 1 text without a word (line 4), whose prediction means nothing" in result.err
    expected = polyseme.load_task(runs / "classifier").predict([TEXTS[0].replace("\n", " "), TEXTS[2]])
    labels, sure = [each.label for each in expected], [each.probability for each in expected]
    first, empty, last = rows_of(out)
    assert list(first) == ["id", "text", "other", "prediction", "probability"]
    assert [row["text"] for row in (first, empty, last)] == TEXTS
    assert (first["id"], first["other"], empty["other"]) == ("7", "ü", 'a "b" c')
    assert [first["prediction"], last["prediction"]] == labels
    assert [float(row["probability"]) for row in (first, last)] == pytest.approx(sure)
    assert not empty["prediction"] and not empty["probability"]
    assert run("predict", runs / "classifier", "-i", table, "-o", out, "--json").json == [{"out": str(out), "rows": 3}]


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        if path.suffix == ".jsonl":
            return [json.loads(line) for line in file]
        return list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))


def test_a_table_of_predictions_keeps_what_the_input_has(run, runs, tmp_path):
    call = ("predict", runs / "classifier", "--input")
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfid;text\n1;so, so\n2;bad\n")
    assert run(*call, tmp_path / "a.csv", "--out", tmp_path / "new.csv").code == 0
    header, first, second = (tmp_path / "new.csv").read_bytes().split(b"\n")[:3]
    assert header == b"\xef\xbb\xbfid;text;prediction;probability"
    assert first.startswith(b"1;so, so;") and second.startswith(b"2;bad;")
    (tmp_path / "a.jsonl").write_text('{"text": "good\\r", "n": [1, 2]}\n{"text": "bad", "late": null}\n')
    assert run(*call, tmp_path / "a.jsonl", "--out", tmp_path / "new.csv").code == 0
    good, bad = rows_of(tmp_path / "new.csv")
    assert good["text"] == "good\r" and good["n"] == "[1, 2]" and good["late"] == bad["n"] == ""
    assert run(*call, tmp_path / "a.jsonl", "--out", tmp_path / "new.jsonl").code == 0
    assert rows_of(tmp_path / "new.jsonl")[0]["n"] == [1, 2]
    (tmp_path / "a.tsv").write_text("1\tgood\n2\tbad\tmore\n")
    assert run(*call, tmp_path / "a.tsv", "--text", "1", "--out", tmp_path / "new.csv").code == 0
    assert [(row["0"], row["2"]) for row in rows_of(tmp_path / "new.csv")] == [("1", ""), ("2", "more")]


def test_a_table_of_predictions_for_plain_text(run, runs, tmp_path):
    (tmp_path / "a.txt").write_text("good, film\n\nbad\n")
    out = tmp_path / "new.csv"
    assert run("predict", runs / "classifier", "--input", tmp_path / "a.txt", "--out", out).code == 0
    rows = rows_of(out)
    assert list(rows[0]) == ["text", "prediction", "probability"] and [row["text"] for row in rows] == ["good, film", "", "bad"]
    assert rows[0]["prediction"] and not rows[1]["prediction"]
    assert run("predict", runs / "scorer", "it rains", "dry", "--out", out).code == 0
    assert list(rows_of(out)[0]) == ["text", "prediction"] and float(rows_of(out)[0]["prediction"]) > 0
    assert run("predict", runs / "tagger", "Ann left", "--out", tmp_path / "new.jsonl").code == 0
    assert len(rows_of(tmp_path / "new.jsonl")[0]["prediction"]) == 2
    (tmp_path / "a.txt").write_text("")
    assert run("predict", runs / "classifier", "--input", tmp_path / "a.txt", "--out", out).code == 0
    assert out.read_text() == "text,prediction\n"


def test_a_table_of_predictions_is_refused_before_any_work(run, runs, tmp_path):
    (tmp_path / "a.csv").write_text("text,label\ngood film,pos\n")
    call = ("predict", runs / "classifier", "--input", tmp_path / "a.csv", "--out")
    told = one_sentence(run(*call, tmp_path / "p.txt"), 2)
    assert "p.txt'; allowed: a name that ends in .csv, .tsv, .jsonl" in told
    assert "is the input itself: give another file" in one_sentence(run(*call, tmp_path / "a.csv"), 2)
    (tmp_path / "folder.csv").mkdir()
    assert "is a folder; give a file" in one_sentence(run(*call, tmp_path / "folder.csv"), 2)
    (tmp_path / "a.csv").write_text("text,prediction\ngood film,pos\n")
    assert "has a column 'prediction', and --out adds one of this name" in run(*call, tmp_path / "new.csv").err
    (tmp_path / "a.csv").write_text("text,x,x\ngood film,1,2\n")
    assert "has two columns 'x', which JSON lines cannot hold" in run(*call, tmp_path / "new.jsonl").err
    assert not (tmp_path / "new.csv").exists() and not list(tmp_path.glob(".*"))


def test_an_output_file_is_a_redirection(run, runs):
    assert "No such option: --out; the output goes to standard output, so redirect it: > FILE" in one_sentence(
        run("evaluate", runs / "classifier", "a", "--out", "p.txt"), 2
    )


def test_other_verbs_without_an_output_option(run):
    message = one_sentence(run("convert", "en", "--out", "my-model"), 2)
    assert "No such option: --out; OUT is an argument, so write it without --out" in message
    assert "standard output" not in one_sentence(run("serve", "--out", "a"), 2)
