"""The command line on static word vectors: what works, and what says kindly that it needs a language model."""

import json

import numpy as np
import pytest

import polyseme
from tests.cli.running import one_sentence
from tests.cli.vector_files import KINDS, read_vectors
from tests.formats.test_word_vectors import FORMS, text

ROWS = {"the": [1.0, 0.0], "bank": [0.0, 1.0], "river": [0.1, 1.0], "money": [0.2, 1.0], "of": [1.0, 0.1]}
LINES = ["The bank of the river", "", "oak"]


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_bytes(text(ROWS, header=False))
    return path


def test_info(run, vectors, tmp_path):
    shown = run("info", vectors)
    assert (shown.code, shown.err) == (0, "")
    facts = json.loads(run("info", vectors, "--json").out)
    assert (facts["format"], facts["encoder"]) == ("word vectors (word2vec, GloVe)", "word2vec")
    assert (facts["layers"], facts["dim"], facts["vocabulary"], facts["parameters"]) == (1, 2, 5, 10)
    assert facts["lower_case"] is True and facts["language_model"] is False and facts["unknown_words"] == "mean of all"
    assert facts["bytes"] == vectors.stat().st_size
    folder = polyseme.load(vectors).save_pretrained(tmp_path / "ours")
    assert json.loads(run("info", folder, "--json").out)["format"] == "polyseme"


def test_info_of_a_model_by_name(run, shipped):
    facts = json.loads(run("info", "en", "--json").out)
    assert facts["encoder"] == "elmo" and facts["bytes"] > 1000 and facts["format"] == "polyseme"


def test_embed(run, vectors):
    rows = run("embed", *LINES, "-m", vectors, "--json").json
    assert [row["words"] for row in rows] == [["The", "bank", "of", "the", "river"], [], ["oak"]]
    expected = np.array([[ROWS[word] for word in ("the", "bank", "of", "the", "river")]], dtype=np.float32)
    np.testing.assert_array_equal(np.array(rows[0]["vectors"], dtype=np.float32), expected)
    np.testing.assert_allclose(rows[2]["vectors"], [[np.mean(list(ROWS.values()), axis=0)]], rtol=1e-6)
    assert run("embed", "The bank", "-m", vectors).out.startswith("line 0: 2 words, layer 0, the first of 2 numbers\n")


@pytest.mark.parametrize("kind", KINDS)
def test_embed_to_files(run, vectors, tmp_path, kind):
    if kind == ".parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / f"out{kind}"
    assert run("embed", *LINES, "-m", vectors, "-o", out).code == 0
    for line, array in enumerate(polyseme.load(vectors).embed(LINES)):
        np.testing.assert_allclose(read_vectors(out)[line], array, atol=1e-6)


def test_neighbours(run, vectors, tmp_path):
    corpus = tmp_path / "text.txt"
    corpus.write_text("the river of money\nthe bank of the river\n")
    call = ("neighbours", "The bank", "-w", "bank", "-n", 2, "-m", vectors, "-c", corpus)
    (answer,) = run(*call, "--json").json
    assert answer["in_context"] == [] and answer["layers"] == [0]
    assert [(each["word"], each["count"]) for each in answer["by_itself"]] == [("river", 2), ("money", 1)]
    shown = run(*call).out.splitlines()
    assert shown[:3] == ["The [bank]", "", "by its static vector (9 words in 2 sentences)"] and len(shown) == 5
    for more in (["--layer", "mean"], ["--same-word"], ["--other-words"], ["--layer", "0"]):
        assert "a word2vec has only static vectors" in one_sentence(run(*call, *more), 2)


def test_what_needs_a_language_model_says_so(run, vectors, tmp_path):
    kind, out = f"polyseme: {vectors} is of kind word2vec, which", tmp_path / "out"
    no_model = f"{kind} has no language model: give a model of kind elmo, taglm, ngram, nnlm, ulmfit or gpt\n"
    assert one_sentence(run("score", "the bank", "-m", vectors)) == no_model
    assert one_sentence(run("perplexity", vectors, "-m", vectors)) == no_model
    assert f"{kind} has no substitutes: give an ELMo" in one_sentence(run("substitutes", "a bank", "-w", "bank", "-m", vectors))
    adapted = one_sentence(run("adapt", vectors, "--corpus", vectors, "--out", out), 2)
    assert "models of kind word2vec cannot be adapted; allowed: elmo, taglm, ulmfit" in adapted
    assert "--to bilm applies only to ELMo models" in one_sentence(run("convert", vectors, out, "--to", "bilm"))
    assert "bf16 applies only to ELMo models" in one_sentence(run("embed", "a", "-m", vectors, "--precision", "bf16"))
    for start in ("warm", "carry"):
        assert "--start does not apply" in one_sentence(run("embed", "a", "-m", vectors, "--start", start), 2)
    assert not out.exists()


def test_convert_and_verify(run, vectors, tmp_path):
    out = tmp_path / "out"
    assert run("convert", vectors, out, "--splitter", "english").code == 0
    assert polyseme.load(out).splitter.name == "english"
    assert run("verify", out).out.startswith("good: ")
    kept = tmp_path / "v.npz"
    (tmp_path / "t.txt").write_text("the bank\n")
    assert run("embed", "-i", tmp_path / "t.txt", "-m", out, "-o", kept).code == 0
    assert run("verify", vectors, "--vectors", kept, "--input", tmp_path / "t.txt").code == 0


def test_a_file_of_vectors_does_not_hold_the_splitter(run, vectors, tmp_path, caplog):
    assert run("convert", vectors, tmp_path / "m", "--splitter", "english").code == 0
    told = run("convert", tmp_path / "m", tmp_path / "v.bin")
    note = f"{tmp_path / 'v.bin'} does not store how text is split: use it with --splitter english"
    assert told.code == 0 and caplog.messages == [note]
    assert run("convert", vectors, tmp_path / "plain.bin").code == 0 and caplog.messages == [note]  # as it is read


def test_probe(run, vectors, tmp_path):
    data = tmp_path / "tags.conll"
    data.write_text("the D\nbank N\n\nof D\nriver N\n\n" * 5)
    (table,) = run("probe", "tags", "--train", data, "--test", data, "-m", vectors, "--min-steps", 5, "--json").json
    assert list(table["rows"]) == ["layer 0"]


def test_wrong_files(run, tmp_path):
    path = tmp_path / "v.vec"
    path.write_bytes(FORMS["glove"] + b"cut 1\n")
    assert f"{path}:5: has 1 numbers" in one_sentence(run("info", path))
    path.write_text("It was late.\n")
    assert "has no known format" in one_sentence(run("embed", "a", "-m", path))
