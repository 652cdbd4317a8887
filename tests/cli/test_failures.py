"""What goes wrong is reported in one sentence, with the right exit code and no traceback."""

import gzip
import sys

import pytest

from polyseme import __main__
from polyseme.base.errors import PolysemeError
from polyseme.encoders.elmo import Elmo
from polyseme.text.files.decompression import ENCODING_ADVICE
from tests.cli.running import one_sentence, process, tiny


def test_missing_things(run, model, tmp_path):
    assert "No such file" in one_sentence(run("embed", "-i", tmp_path / "none.txt", "-m", model))
    assert "no such file or folder" in one_sentence(run("embed", "a", "-m", tmp_path / "none"))
    assert "empty folder" in one_sentence(run("info", tmp_path))
    assert "is a folder; expected a file with one text on each line" in one_sentence(run("score", "-i", tmp_path, "-m", model))


def test_unreadable_models(run, model, tmp_path):
    rubbish = tmp_path / "rubbish.hdf5"
    rubbish.write_bytes(b"no model at all")
    assert "rubbish.hdf5" in one_sentence(run("info", rubbish))
    folder = tiny(output=False).save_pretrained(tmp_path / "cut")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    assert "damaged" in one_sentence(run("embed", "a", "-m", folder))
    nowhere = one_sentence(run("embed", "a", "-m", model, "--device", "nowhere"), 2)
    assert "--device is 'nowhere'; allowed: cpu, cuda, mps" in nowhere


def test_wrong_calls_say_what_is_allowed(run):
    assert "No such task 'clasification'. Did you mean 'classification'? (see" in run("train", "clasification").err
    assert "No such task 'foo'; there are tagging, classification" in run("train", "foo").err
    assert "No such method 'elmoo'" in run("pretrain", "elmoo").err and "No such command 'chek'" in run("corpus", "chek").err
    assert "Missing argument 'C'; it takes A B C (see polyseme analogy" in one_sentence(run("analogy", "man", "king"), 2)
    assert "unexpected extra argument(s) (york); it takes WORD (see" in one_sentence(run("similar", "new", "york"), 2)


def test_text_that_is_not_utf8_is_reported_by_line(run, model, tmp_path):
    path, out = tmp_path / "latin.txt", tmp_path / "v.hdf5"
    path.write_bytes(b"fine\n\n\xef\xf0\xe8\n")  # Russian in cp1251
    for more in ([], ["--out", out]):
        sentence = run("embed", "-i", path, "-m", model, *more).err
        assert sentence == f"polyseme: {path}:3: is not UTF-8 (byte 0xef); {ENCODING_ADVICE}\n"
    assert not out.exists()


def test_a_cut_character_names_no_option_that_the_verb_lacks(run, model, tmp_path):
    path = tmp_path / "cut.txt"
    path.write_bytes("the bank of the river\n我们".encode()[:-1])
    where = f"polyseme: {path}:2: is not UTF-8 (byte 0xe4)"
    assert one_sentence(run("perplexity", path, "-m", model)) == f"{where}; fix the line\n"
    call = ("pretrain", "elmo", "--corpus", path, "--size", "tiny", "--out", tmp_path / "m", "--splitter", "english")
    assert run(*call).err.endswith("is not UTF-8 (byte 0xe4); fix the line, or give --skip-bad-lines\n")


def test_damaged_gzip(run, model, tmp_path):
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(b"the bank\n" * 2_000)[:-20])
    result = run("embed", "-i", path, "-m", model, "-o", tmp_path / "v.npz")
    assert "damaged gzip file" in one_sentence(result)


def test_a_missing_package_names_the_command_that_installs_it(run, model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "polyseme.formats.vectors.parquet", raising=False)
    sentence = one_sentence(run("embed", "a", "-m", model, "-o", tmp_path / "v.parquet"))
    assert "pip install 'polyseme[parquet]'" in sentence
    folder = tiny(output=False).save_pretrained(tmp_path / "zh")
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"english"', '"chinese"'))
    monkeypatch.setitem(sys.modules, "rjieba", None)
    assert "pip install 'polyseme[zh]'" in one_sentence(run("embed", "a", "-m", folder))


def test_out_cannot_be_written(run, model, tmp_path):
    (tmp_path / "file").write_text("")
    sentence = one_sentence(run("embed", "a", "-m", model, "-o", tmp_path / "file" / "v.npz"), 2)
    assert f"{tmp_path}/file is a file, not a folder; choose another place" in sentence


@pytest.mark.parametrize(
    "call",
    [
        *(["pretrain", method, "-c", "none.txt", "-o"] for method in ("ngram", "elmo", "word2vec", "bert")),
        ["adapt", "none", "-c", "none.txt", "-o"],
        ["compare", "--tasks", "tagging:none.conll:none.conll", "-o"],
        ["lineage", "-c", "none.txt", "-o"],
        ["embed", "-m", "none", "-i", "none.txt", "-o"],
        ["convert", "none"],
    ],
)
def test_a_file_in_place_of_a_folder_is_reported_before_any_work(run, tmp_path, call):
    (tmp_path / "file").write_text("mine")
    assert f"{tmp_path}/file is a file; give a folder" in one_sentence(run(*call, tmp_path / "file"), 2)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (["encode", "a", "-m", "none", "-o"], "v.npy"),
        (["convert", "none", "--to", "arpa", "--force"], "x.arpa"),
        (["senses", "-m", "none", "-c", "none.txt", "-o"], "s.vec"),
    ],
)
def test_a_folder_in_place_of_a_file_is_reported_before_any_work(run, tmp_path, call, name):
    (tmp_path / name).mkdir()
    arguments = [*call[:2], tmp_path / name, *call[2:]] if call[0] == "convert" else [*call, tmp_path / name]
    assert f"{name} is a folder; give a file" in one_sentence(run(*arguments), 2)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: 9 bytes")])
def test_too_little_memory(run, model, monkeypatch, error):
    def refuse(*arguments, **keywords):
        raise error

    monkeypatch.setattr(Elmo, "embed", refuse)
    assert "give a smaller --batch-words or a smaller --batch-size" in one_sentence(run("embed", "a", "-m", model))


@pytest.mark.parametrize(
    ("call", "option"),
    [
        (["similar", "a"], None),
        (["pretrain", "elmo", "-c", "a"], "--batch-words"),
        (["train", "tagging"], "--batch-size"),
        ([], None),
    ],
)
def test_too_little_memory_names_options_of_the_verb_only(call, option):
    sentence, code = __main__._explain(MemoryError(), call)
    given = f"a smaller {option} or " if option else ""
    assert (sentence, code) == (f"not enough memory: give {given}shorter texts, or take a smaller model", 1)


def test_internal_errors_are_reported_in_one_line_too(run, model, monkeypatch):
    def fail(*arguments, **keywords):
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr(Elmo, "embed", fail)
    result = run("embed", "a", "-m", model)
    assert result.code == 1
    advice = "(please report it with the traceback, which POLYSEME_DEBUG=1 shows)"
    assert result.err == f"polyseme: internal error: ZeroDivisionError: two lines {advice}\n"
    monkeypatch.setenv("POLYSEME_DEBUG", "1")
    assert "Traceback" in run("embed", "a", "-m", model).err


def test_a_stop_by_the_user(run, model, tmp_path, monkeypatch):
    def stop(*arguments, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr(Elmo, "embed", stop)
    assert one_sentence(run("embed", "a", "-m", model), 130) == "polyseme: stopped\n"
    sentence = one_sentence(run("embed", "a", "-m", model, "-o", tmp_path / "v.npz"), 130)
    assert "interrupted: nothing was saved" in sentence


def test_every_error_of_ours_keeps_to_one_line():
    assert __main__._explain(PolysemeError("a\nb")) == ("a\nb", 1)  # `_fail` joins the lines


def test_wrong_calls(run, tmp_path):
    one_sentence(run("embed", "a", "--model", tmp_path / "none"))
    assert "(see polyseme embed --help)" in one_sentence(run("embed", "--no-such-option"), 2)
    assert "(see polyseme --help)" in one_sentence(run("embde"), 2)


def test_in_a_process():
    """The exit code and the sentence reach the shell."""
    one_sentence(process("embde"), 2)


@pytest.mark.parametrize("more", [[], ["--input", "-"]])
def test_a_closed_standard_input(run, model, monkeypatch, more):
    monkeypatch.setattr(sys, "stdin", None)  # as Python has it then
    assert "standard input is closed: add TEXT or --input FILE" in one_sentence(run("embed", "--model", model, *more), 2)
