"""`score`, `substitutes`, `convert`, `info` and `verify`."""

import math
import os

import h5py
import numpy as np
import pytest

import polyseme
from polyseme.formats import bilm
from polyseme.formats.verify import difference
from tests.cli.running import Result, one_sentence, tiny


def different(result: Result) -> str:
    """The verdict is on stdout, and what differs on stderr."""
    assert result.code == 1 and result.out.startswith("different: ") and result.err.count("\n") == 1, result
    return result.err


def test_score(run, model, loaded, tmp_path):
    text = tmp_path / "t.txt"
    text.write_text("The bank of the river.\n\nzzz bank\n")
    result = run("score", "-i", text, "-m", model, "--json", "--words")
    *rows, total = result.json
    lines = ["The bank of the river.", "", "zzz bank"]
    for row, found in zip(rows, loaded.log_probs(lines), strict=True):
        assert row["mean"] == pytest.approx(found.score, abs=1e-5)
        assert row["perplexity"] == pytest.approx(math.exp(-found.score / len(found.forward)), rel=1e-5)
        assert len(row["forward_words"]) == len(row["words"]) == len(row["known"])
    assert rows[2]["known"] == [False, True] and [row["unknown"] for row in rows] == [0, 0, 1]
    expected = loaded.perplexity(lines)
    assert total["lines"] == 3 and total["predictions"] == expected.predictions
    assert total["perplexity"]["mean"] == pytest.approx(expected.mean, rel=1e-5)
    assert total["perplexity"]["forward"] == pytest.approx(expected.forward, rel=1e-5)


def test_score_for_people(run, model, tmp_path):
    shown = run("score", "The bank", "zzz", "-m", model, "--words").out
    unknown = next(line for line in shown.splitlines() if line.startswith("    zzz "))
    assert unknown.endswith("not in the vocabulary") and "perplexity of 2 lines: forward" in shown
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    result = run("score", "-i", empty, "-m", model, "--json")
    assert result.json[0]["perplexity"]["mean"] is None and result.code == 0


def test_score_names_unknown_words_and_with_what_it_compares(run, model):
    known, unknown, *_, total = run("score", "the bank", "zzz bank qqq", "-m", model).out.splitlines()[1:]
    assert known.endswith("  the bank") and unknown.endswith("  zzz bank qqq  (2 unknown words)")
    assert total.startswith("40% of the words are outside the vocabulary: compare it only where about as many words are")
    assert "outside" not in run("score", "the bank", "-m", model).out


def test_score_warns_of_texts_without_a_word(run, model):
    result = run("score", "the bank", " ", "", "-m", model)
    said = "2 texts without a word (lines 2, 3), whose score is that of the sentence boundary alone: leave such texts out"
    assert result.code == 0 and result.err == f"polyseme: {said}\n"


def test_a_model_without_output_layer_cannot_score(run, tmp_path):
    folder = tiny(output=False).save_pretrained(tmp_path / "bare")
    result = run("score", "a", "-m", folder, "--json")
    assert "no output layer" in one_sentence(result)


def test_substitutes(run, model, loaded):
    sentence = "The bank of the river."
    answer = run("substitutes", sentence, "--word", "bank", "-n", 3, "-m", model, "--json").json[0]
    expected = loaded.substitutes(sentence, 1, count=3)
    assert answer["position"] == 1
    assert [each["word"] for each in answer["substitutes"]] == [each.word for each in expected]
    same = run("substitutes", sentence, "--position", 1, "-n", 3, "-m", model)
    assert same.out.splitlines()[0] == "The [bank] of the river ." and len(same.out.splitlines()) == 5


def test_substitutes_called_wrongly(run, model):
    call = ("substitutes", "the bank of the bank", "-m", model)
    assert "0: the, 1: bank" in one_sentence(run(*call), 2)
    assert "occurs at positions 1, 4: choose one with --position" in one_sentence(run(*call, "--word", "bank"), 2)
    assert "is not in the sentence" in one_sentence(run(*call, "--word", "river"), 2)
    assert "position is 9" in one_sentence(run(*call, "--position", "9"), 2)


def test_info(run, model):
    facts = run("info", model, "--json")
    assert '"dim": 16' in facts.out and '"format": "polyseme"' in facts.out
    shown = run("info", model, "--card").out
    assert "licence            not stated" in shown and "# elmo" in shown


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_convert_and_verify(run, model, tmp_path, precision):
    out = tmp_path / "converted"
    result = run("convert", model, out, "--precision", precision, "--json")
    answer = result.json[0]
    assert result.code == 0 and "verify.safetensors" in answer["files"]
    assert answer["largest_difference"] == 0 if precision == "fp32" else 0 < answer["largest_difference"] < 1e-2
    assert run("verify", out).out.startswith("good: 9 sentences")
    assert run("verify", out, "--json").json[0]["good"] is True
    assert "not empty" in one_sentence(run("convert", model, out))
    assert run("convert", model, out, "--force").code == 0


def test_convert_to_bilm_and_back(run, model, loaded, tmp_path):
    assert run("convert", model, tmp_path / "bilm", "--to", "bilm").code == 0
    assert {path.name for path in (tmp_path / "bilm").iterdir()} >= {"options.json", "weights.hdf5"}
    assert "bilm-tf" in run("info", tmp_path / "bilm").out
    assert run("convert", tmp_path / "bilm", tmp_path / "back").code == 0
    words = [["The", "bank"], []]
    for ours, theirs in zip(loaded.embed(words), polyseme.load(tmp_path / "back").embed(words), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    half = one_sentence(run("convert", model, tmp_path / "half", "--to", "bilm", "--precision", "fp16"), 2)
    assert "bilm-tf files have fp32 only: leave --precision out, or use --to polyseme" in half


@pytest.mark.parametrize("target", ["polyseme", "bilm", "vectors"])
def test_convert_shows_on_a_terminal_what_it_does(run, model, tmp_path, monkeypatch, target):
    assert "writing" not in run("convert", model, tmp_path / "silent.vec", "--to", target).err
    monkeypatch.setattr("polyseme.base.progress.visible", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, for rich
    shown = run("convert", model, tmp_path / "out.vec", "--to", target).err
    assert 0 < shown.index("writing") < shown.index("reading it back and comparing")


def test_verify_finds_a_changed_weight(run, tmp_path):
    model = tiny(output=False)
    folder = model.save_pretrained(tmp_path / "m")
    assert "has no reference vectors" in one_sentence(run("verify", folder))
    assert run("verify", folder, "--write").code == 0
    assert run("verify", folder).code == 0
    reference = (folder / "verify.safetensors").read_bytes()
    model.tokens.projection.bias.data[0] += 1e-3
    model.save_pretrained(folder)
    (folder / "verify.safetensors").write_bytes(reference)
    assert "differ by up to 0.001 (sentence " in different(run("verify", folder))
    bad = run("verify", folder, "--json")
    assert bad.code == 1 and bad.json[0]["good"] is False and "--tolerance is 1e-05" in bad.err
    assert run("verify", folder, "--tolerance", "0.1").code == 0


def test_verify_finds_another_splitter(run, tmp_path):
    folder = tiny(output=False).save_pretrained(tmp_path / "m")
    run("verify", folder, "--write")
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"english"', '"whitespace"'))
    assert "splits sentence 0, 1, 2, 3, 4, 7, 8 differently" in different(run("verify", folder))


@pytest.mark.parametrize("kind", [".hdf5", ".npz"])
def test_verify_against_somebodys_file(run, model, tmp_path, kind):
    text, vectors = tmp_path / "t.txt", tmp_path / f"v{kind}"
    text.write_text("The bank of the river .\n\nmoney\n")
    run("embed", "-i", text, "-m", model, "-o", vectors)
    call = ("verify", model, "--vectors", vectors, "--input", text)
    assert run(*call).out.startswith("good: 3 sentences, 7 words")
    text.write_text("The bank of the river !\n\nmoney\n")
    assert "line 0, word" in different(run(*call))
    text.write_text("The bank\n")
    assert "(layers, words, dim) = (3, 6, 16) for line 0; the model gives (3, 2, 16)" in one_sentence(run(*call))
    text.write_text("The bank of the river .\n\nmoney\nmore\n")
    assert "has no vectors for line 3" in one_sentence(run(*call))
    text.write_text("The bank of the river .\n\n")
    assert "has vectors of more lines than the 2 of the input" in one_sentence(run(*call))
    one_sentence(run("verify", model, "--vectors", vectors), 2)


def test_verify_makes_vectors_as_they_were_made(run, model, tmp_path):
    text, vectors = tmp_path / "t.txt", tmp_path / "v.npz"
    text.write_text("Banks, rivers.\nmoney, more\nthe end\n")
    made = ["--splitter", "whitespace", "--start", "carry", "--batch-size", "1"]
    assert run("embed", "-i", text, "-m", model, "-o", vectors, *made).code == 0
    call = ("verify", model, "--vectors", vectors, "--input", text)
    assert run(*call, *made).out.startswith("good: 3 sentences, 6 words")
    one_sentence(run(*call, *made[2:]))  # other words
    assert "differ by up to" in different(run(*call, *made[:4]))  # three states instead of one
    assert "--splitter describes given vectors: add --vectors and --input" in one_sentence(run("verify", model, *made[:2]), 2)
    assert "--batch-size describes given vectors" in one_sentence(run("verify", model, *made[4:]), 2)


def test_verify_reads_a_single_layer_without_its_axis(run, model, loaded, tmp_path):
    text, vectors = tmp_path / "t.txt", tmp_path / "v.hdf5"
    text.write_text("The bank\n")
    with h5py.File(vectors, "w") as file:
        file["0"] = loaded.embed(["The bank"], layers="top")[0]
    assert run("verify", model, "--vectors", vectors, "--input", text, "--layers", "top").code == 0


def test_damaged_reference_vectors(run, tmp_path):
    folder = tiny(output=False).save_pretrained(tmp_path / "m")
    (folder / "verify.safetensors").write_bytes(b"rubbish")
    assert "is not a file of reference vectors" in one_sentence(run("verify", folder))


def test_a_model_that_gives_no_numbers_is_not_converted(run, tmp_path):
    folder = bilm.write(tiny(output=False), tmp_path / "source")
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        file["CNN_proj/b_proj"][0] = np.nan
    for kind in ("bilm", "polyseme"):
        one_sentence(run("convert", folder, tmp_path / "out", "--to", kind))
        assert not (tmp_path / "out").exists()


def test_differences_that_are_no_numbers():
    one, other = tiny(output=False), tiny(output=False)
    assert difference(one, other) == 0
    one.tokens.projection.bias.data[0] = float("nan")
    assert difference(one, other) == difference(other, one) == math.inf


def test_convert_keeps_a_splitter(run, tmp_path):
    folder = bilm.write(tiny(output=False), tmp_path / "source")
    assert run("embed", "isn't it?", "-m", folder, "--splitter", "english", "--json").json[0]["words"][:2] == ["is", "n't"]
    assert run("convert", folder, tmp_path / "out", "--splitter", "english").code == 0
    assert polyseme.load(tmp_path / "out").splitter.name == "english"
    call = ("embed", "a", "-m", folder, "--splitter", "english", "--split-on-spaces")
    assert "--split-on-spaces and --splitter both say how to split the text: give one" in one_sentence(run(*call), 2)


def test_score_says_what_is_missing_before_its_table(run, tmp_path):
    folder = tiny(output=False).save_pretrained(tmp_path / "bare")
    assert "no output layer" in one_sentence(run("score", "a", "-m", folder))


def test_verify_options_that_would_be_ignored(run, model, tmp_path):
    assert "--layers and --start" in one_sentence(run("verify", model, "--start", "warm", "--layers", "top"), 2)
    run("embed", "a", "-m", model, "-o", tmp_path / "v.npz")
    (tmp_path / "none.txt").write_text("")
    call = ("verify", model, "--vectors", tmp_path / "v.npz", "--input", tmp_path / "none.txt")
    assert "no lines to compare" in one_sentence(run(*call))


@pytest.mark.parametrize("kind", [".hdf5", ".npz"])
def test_verify_against_a_damaged_file(run, model, tmp_path, kind):
    text, vectors = tmp_path / "t.txt", tmp_path / f"v{kind}"
    text.write_text("The bank of the river .\n")
    call = ("verify", model, "--vectors", vectors, "--input", text)
    if kind == ".npz":
        run("embed", "-i", text, "-m", model, "-o", vectors)
        content = bytearray(vectors.read_bytes())
        content[len(content) // 2] ^= 1
        vectors.write_bytes(bytes(content))
        assert "line 0 cannot be read" in one_sentence(run(*call))
        np.savez(vectors, **{"0": np.array([{}, None], dtype=object)})
        assert "line 0 cannot be read" in one_sentence(run(*call))
    with h5py.File(tmp_path / "v.hdf5", "w") as file:
        file["0"] = [b"a", b"b"]
    call = ("verify", model, "--vectors", tmp_path / "v.hdf5", "--input", text)
    assert "expected numbers" in one_sentence(run(*call))
    with h5py.File(tmp_path / "v.hdf5", "w") as file:
        file.create_group("0")
    assert "line 0 cannot be read" in one_sentence(run(*call))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is unreadable for root")
def test_unreadable_reference_vectors(run, tmp_path):
    folder = tiny(output=False).save_pretrained(tmp_path / "m")
    run("verify", folder, "--write")
    (folder / "verify.safetensors").chmod(0)
    assert "Permission denied" in one_sentence(run("verify", folder))


def test_reference_vectors_that_are_a_folder(run, tmp_path):
    folder = tiny(output=False).save_pretrained(tmp_path / "m")
    (folder / "verify.safetensors").mkdir()
    assert "Is a directory" in one_sentence(run("verify", folder))
