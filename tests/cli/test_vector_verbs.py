"""`pretrain word2vec|fasttext|glove`, `similar`, `analogy`, `probe words|analogies` and `convert` to files of vectors."""

import json

import numpy as np
import pytest

import polyseme
from tests.cli.running import one_sentence
from tests.cli.test_word_vector_verbs import ROWS
from tests.formats.test_word_vectors import text

LINES = "the cat sat on the mat .\na dog saw the river .\nthe bank of the river .\n" * 10
WHITE = ["--splitter", "whitespace", "--sentences", "lines", "--workers", "0"]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text(LINES, encoding="utf-8")
    return path


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_bytes(text(ROWS, header=False))
    return path


@pytest.mark.parametrize("method", ["word2vec", "fasttext", "glove"])
def test_pretrain(run, corpus, tmp_path, method):
    if method != "glove":
        pytest.importorskip("gensim", reason="word2vec and fastText are trained by gensim (extra vectors)")
    out = tmp_path / "m"
    call = ["pretrain", method, "--corpus", corpus, "--out", out, *WHITE, "--dim", 6, "--epochs", 2, "--min-count", 1]
    call += ["--buckets", 30] if method == "fasttext" else []
    (said,) = run(*call, "--json").json
    assert said["words"] == 12 and said["text_words"] == 190 and said["epochs"] == 2 and ("loss" in said) == (method == "glove")
    assert run(*call).out.startswith(f"{out}: 12 words, 2 epochs of 190 words")
    assert polyseme.load(out).embed(["the cat"])[0].shape == (1, 2, 6)
    found = run("similar", "river", "-m", out, "-n", 3, "--json").json[0]
    assert found["word"] == "river" and len(found["similar"]) == 3
    changed = run(*call, "--window", 2)
    assert changed.code in (1, 2) and "other settings" in changed.err and "window" in changed.err, changed


def test_hierarchical_softmax_has_no_negatives_unless_they_are_asked_for(run, corpus, tmp_path):
    pytest.importorskip("gensim", reason="word2vec and fastText are trained by gensim (extra vectors)")
    call = ["pretrain", "word2vec", "-c", corpus, *WHITE, "--dim", 4, "--epochs", 1, "--min-count", 1, "--hierarchical-softmax"]
    for name, more, negative in (("a", [], 0), ("b", ["--negative", 3, "--architecture", "skip-gram"], 3)):
        assert run(*call, "-o", tmp_path / name, *more).code == 0
        assert f"negative={negative}, hierarchical_softmax=True" in (tmp_path / name / "README.md").read_text()


def test_pretrain_mistakes(run, corpus, tmp_path):
    start = ["pretrain", "glove", "--corpus", corpus, "--out", tmp_path / "m", *WHITE]
    assert "no word of the text occurs 500 times: give a lower --min-count" in one_sentence(run(*start, "--min-count", 500))
    assert "--x-max is 0.0; allowed: above 0" in one_sentence(run(*start, "--x-max", 0), 2)
    assert "--dim" in one_sentence(run(*start, "--dim", 0), 2)
    start[1] = "word2vec"
    assert "--negative 0 needs --hierarchical-softmax" in one_sentence(run(*start, "--negative", 0), 2)


def test_similar_and_analogy(run, vectors, model):
    assert run("similar", "bank", "-m", vectors, "-n", 2).out == "  cosine  word\n   0.995  river\n   0.981  money\n"
    (found,) = run("analogy", "the", "of", "bank", "-m", vectors, "-n", 1, "--json").json
    assert found["words"] == ["the", "of", "bank"] and found["similar"][0]["word"] == "river"
    said = one_sentence(run("similar", "rivers", "-m", vectors))
    assert (
        said
        == "polyseme: the model does not know the word 'rivers' (did you mean 'river'?); it knows 5 words: choose another\n"
    )
    found = run("similar", "rivers", "-m", model, "--json").json[0]["similar"]  # spelled, by layer 0
    assert {each["word"] for each in found} == {"the", "bank", "of", "river", ".", "money", "a", "The", "to"}


def test_probe_words(run, vectors, model, tmp_path):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("bank\triver\t9\nbank\tthe\t1\nbank\tMoney\t8\nbank\toak\t3\n")
    (found,) = run("probe", "words", pairs, "-m", vectors, "--json").json
    assert found["rows"] == {"layer 0": {"Spearman": 1.0}}
    assert found["facts"] == {"pairs": 4, "pairs_left_out": 1, "unknown_words": 1, "such_as": "oak"}
    assert "unknown words   1" in run("probe", "words", pairs, "-m", vectors).out
    assert list(run("probe", "words", pairs, "-m", model, "--json").json[0]["rows"])[:3] == ["layer 0", "layer 1", "layer 2"]


def test_probe_analogies(run, vectors, tmp_path):
    questions = tmp_path / "q.txt"
    questions.write_text(": s\nthe of bank river\nthe of bank oak\n: t\nthe of bank money\n")
    (found,) = run("probe", "analogies", questions, "-m", vectors, "--json").json
    assert found["all"] == {"accuracy": 0.5, "right": 1, "asked": 2, "left_out": 1} and found["unknown_words"] == 1
    shown = run("probe", "analogies", questions, "-m", vectors).out.splitlines()
    assert shown[1].split() == ["s", "1.0000", "1", "1", "1"] and shown[3].split() == ["all", "0.5000", "1", "2", "1"]
    assert shown[-1] == "1 word unknown, such as oak"


@pytest.mark.parametrize("name", ["v.txt", "v.vec", "v.bin"])
def test_convert(run, vectors, model, tmp_path, name):
    out = tmp_path / name
    assert run("convert", vectors, out).out.endswith("largest difference from " + str(vectors) + ": 0\n")
    np.testing.assert_array_equal(polyseme.load(out).table.weight, polyseme.load(vectors).table.weight)
    assert "exists: choose another name" in one_sentence(run("convert", vectors, out))
    assert run("convert", model, out, "--force").code == 0
    assert polyseme.load(out).config.size == 9  # its vocabulary without marks


def test_convert_mistakes(run, vectors, tmp_path):
    assert ".txt or .vec (word2vec text), .bin" in one_sentence(run("convert", vectors, tmp_path / "v", "--to", "vectors"), 2)
    assert "fp32 only" in one_sentence(run("convert", vectors, tmp_path / "v.bin", "--precision", "fp16"), 2)


def test_a_folder_with_its_card(run, corpus, tmp_path):
    call = ["pretrain", "glove", "--corpus", corpus, "--out", tmp_path / "m", *WHITE, "--dim", 3, "--epochs", 1]
    assert run(*call, "--min-count", 1).code == 0
    facts = json.loads(run("info", tmp_path / "m", "--json").out)
    assert facts["encoder"] == "word2vec" and facts["card"] is True and facts["vocabulary"] == 12


def test_words_that_are_looked_up_need_no_splitter(run, tmp_path):
    vectors = tmp_path / "zh.vec"
    vectors.write_text("3 2\n银行 1 0\n河岸 1 0.5\n经济学 0 1\n")
    for call in (("similar", "银行"), ("analogy", "银行", "河岸", "经济学")):
        assert (found := run(*call, "-m", vectors)).code == 0 and found.err == ""


def test_convert_refuses_a_suffix_of_no_format(run, vectors, tmp_path):
    for name in ("v.foo", "v.vecs", "v.arpa"):
        told = one_sentence(run("convert", vectors, tmp_path / name), 2)
        assert "is the suffix of no format; allowed: .txt, .vec, .bin, .glove (word vectors)" in told
        assert "for a folder of this name give --to polyseme" in told and not (tmp_path / name).exists()
    assert run("convert", vectors, tmp_path / "v.foo", "--to", "polyseme").code == 0
    assert run("convert", vectors, tmp_path / "v.foo", "--force").code == 0  # a folder that is there
    assert run("convert", vectors, tmp_path / "my-model-v1.2").code == 0 and (tmp_path / "my-model-v1.2").is_dir()


def test_convert_says_what_it_keeps(run, model, tmp_path):
    said = run("convert", model, tmp_path / "v.vec").out
    assert " kB; " in said or " bytes; " in said
    assert said.endswith("(kept: layer 0 of 3, the vectors of 9 words without their context)\n")
    old = run("convert", model, tmp_path / "old", "--to", "bilm")
    with_start = "learned start state" in old.err
    assert with_start == ("mostly at the beginnings and ends of sentences" in old.out)
