"""`polyseme predict`: answers to arguments, files and pipes."""

import gzip
import io
import sys

import pytest

import polyseme
from polyseme.cli import predict
from polyseme.encoders.elmo import Elmo
from tests.cli.labelled import TINY, write_all
from tests.cli.running import one_sentence
from tests.encoders.small import elmo


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = write_all(tmp_path_factory.mktemp("runs"))
    options = {**TINY, "encoders": "none"}
    polyseme.train("tagging", folder / "train.conll", out=folder / "tagger", **options)
    polyseme.train("classification", folder / "texts.tsv", out=folder / "classifier", network="pooled", **options)
    polyseme.train("pairs", folder / "pairs.tsv", out=folder / "judge", network="siamese", **options)
    polyseme.train("pairs", folder / "scores.tsv", out=folder / "scorer", network="siamese", goal="score", **options)
    return folder


def test_tags(run, runs):
    texts = ["Ann lives in Oslo.", "Bob"]
    expected = polyseme.load_task(runs / "tagger").predict(texts)
    assert expected[0].words == ["Ann", "lives", "in", "Oslo", "."]
    blocks = ["".join(f"{word}\t{tag}\n" for word, tag in zip(each.words, each.tags, strict=True)) for each in expected]
    result = run("predict", runs / "tagger", *texts)
    assert result.code == 0 and result.out == "\n".join(blocks) and result.err == ""
    assert run("predict", runs / "tagger", *texts, "--json").json == [{"words": e.words, "tags": e.tags} for e in expected]
    (spaces,) = run("predict", runs / "tagger", texts[0], "--split-on-spaces", "--json").json
    assert spaces["words"] == ["Ann", "lives", "in", "Oslo."]


def test_labels(run, runs):
    texts = ["a good film", "", "a bad\tone"]
    expected = polyseme.load_task(runs / "classifier").predict(texts)
    lines = [f"{each.label}\t{each.probability:.4f}\t{text}" for each, text in zip(expected, texts, strict=True)]
    assert run("predict", runs / "classifier", *texts).out.splitlines() == lines
    said = run("predict", runs / "classifier", *texts, "--json").json
    assert [each["text"] for each in said] == texts
    assert said[0]["probabilities"] == expected[0].probabilities and said[0]["label"] == expected[0].label
    assert sum(said[0]["probabilities"].values()) == pytest.approx(1)


def test_pairs(run, runs, tmp_path):
    two = run("predict", runs / "judge", "it rains", "it is wet")
    one = run("predict", runs / "judge", "it rains\tit is wet")
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
    monkeypatch.setattr(predict, "AT_A_TIME", 4)
    assert run("predict", runs / "tagger", "--input", tmp_path / "a.gz").out == whole.out
    said = run("predict", runs / "tagger", "--input", tmp_path / "a.gz", "--json").json
    assert [" ".join(each["words"]) for each in said] == texts


def test_documents_are_the_same_whatever_the_chunks(run, runs, tmp_path, monkeypatch):
    out = tmp_path / "tagger"
    polyseme.train("tagging", runs / "train.conll", out=out, **{**TINY, "encoders": elmo()}, document_context=True)
    texts = [f"line{number} " + "Ann " * 299 for number in range(11)]  # three are read together
    texts[5] = ""
    (tmp_path / "a.txt").write_text("".join(text + "\n" for text in texts))
    embed, read = Elmo.embed, []
    monkeypatch.setattr(Elmo, "embed", lambda self, texts, **more: read.extend(map(tuple, texts)) or embed(self, texts, **more))
    expected = polyseme.load_task(out).predict(texts)
    whole = sorted(read)
    assert sorted(map(len, whole)) == [0, 602, 602, 904, 904]  # marks between sentences counted
    for size in (2, 100):
        read.clear()
        monkeypatch.setattr(predict, "AT_A_TIME", size)
        said = run("predict", out, "--input", tmp_path / "a.txt", "--json").json
        assert sorted(read) == whole and [each["tags"] for each in said] == [each.tags for each in expected]


def test_from_a_pipe(run, runs, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO("a good film\nnaïve\n".encode()))))
    assert [line.split("\t")[2] for line in run("predict", runs / "classifier").out.splitlines()] == ["a good film", "naïve"]


@pytest.mark.parametrize(
    ("task", "text", "told"),
    [
        ("tagger", "Ann\tB-PER\nsleeps\tO\n\nBob\tB-PER\n", True),
        ("tagger", "# text = Ann\n1\tAnn\n", True),
        ("classifier", "text\tlabel\na good film\tpos\n", True),
        ("classifier", "a good film\tat last\na bad film\n", False),
        ("classifier", "\n", False),
        ("judge", "it rains\tit is wet\n", False),
    ],
)
def test_labelled_data_is_taken_for_text_with_a_note(run, runs, tmp_path, task, text, told):
    (tmp_path / "a.txt").write_text(text)
    result = run("predict", runs / task, "--input", tmp_path / "a.txt")
    assert result.code == 0 and result.out
    note = (
        f"polyseme: {tmp_path}/a.txt: line after line has a tab, as in labelled data, and each whole line is taken for a text; "
        f"give the texts alone, one a line, or score the data with polyseme evaluate {runs / task} FILE\n"
    )
    assert result.err == (note if told else "")


def test_called_wrongly(run, runs, tmp_path):
    assert "is no trained task (task.json is missing)" in one_sentence(run("predict", tmp_path, "a"))
    assert "either TEXT or --input" in one_sentence(run("predict", runs / "tagger", "a", "--input", "b"), 2)
    assert "give TEXT twice" in one_sentence(run("predict", runs / "judge", "one", "two", "three"), 2)
    (tmp_path / "a.txt").write_text("one\ttwo\n\n")
    assert "a.txt:2: holds 1 text; this task judges pairs" in run("predict", runs / "judge", "-i", tmp_path / "a.txt").err
    (tmp_path / "latin.txt").write_bytes(b"fine\nna\xefve\n")
    assert "latin.txt:2: is not UTF-8" in one_sentence(run("predict", runs / "tagger", "-i", tmp_path / "latin.txt"))
    assert "nowhere" in one_sentence(run("predict", runs / "tagger", "a", "--device", "nowhere"), 2)
