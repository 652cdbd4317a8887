"""`polyseme embed`: every kind of file, every kind of input."""

import bz2
import gzip
import io
import lzma
import os
import sys
import threading

import h5py
import numpy as np
import pytest

from polyseme.__main__ import main
from polyseme.text.files.decompression import ENCODING_ADVICE
from polyseme.text.splitting.unigram import UnigramSegmenter
from tests.cli.running import one_sentence, tiny
from tests.cli.vector_files import KINDS, read_vectors, read_words

LINES = ["The bank of the river.", "", "Money in the bank, isn't it?", "   ", "河岸边的银行", "x"]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _needs_pyarrow(request):
    if ".parquet" in getattr(getattr(request.node, "callspec", None), "params", {}).values():
        pytest.importorskip("pyarrow")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_holds_what_the_library_gives(run, model, loaded, text, tmp_path, kind):
    out = tmp_path / f"vectors{kind}"
    result = run("embed", "--input", text, "--model", model, "--out", out)
    assert (result.code, result.err) == (0, "")
    expected = loaded.embed(LINES)
    found = read_vectors(out)
    assert sorted(found) == list(range(len(LINES)))
    for line, array in enumerate(expected):
        assert found[line].shape == (3, len(loaded.words(LINES[line])), 16)
        np.testing.assert_allclose(found[line], array, atol=1e-6)
    assert not out.with_name(f"{out.name}.part").exists()
    if kind in (".parquet", ".jsonl", ".jsonl.gz"):
        assert read_words(out)[2] == ["Money", "in", "the", "bank", ",", "is", "n't", "it", "?"]


@pytest.mark.parametrize("kind", KINDS)
def test_one_row_for_every_line(run, model, tmp_path, kind):
    path, out = tmp_path / "in.txt", tmp_path / f"out{kind}"
    for content in (b"", b"\n", b"one", b"a\r\nb") if kind == ".jsonl" else (b"", b"a\r\nb"):
        path.write_bytes(content)
        assert run("embed", "--input", path, "-m", model, "-o", out).code == 0
        assert len(read_vectors(out)) == len(content.decode().splitlines())


@pytest.mark.parametrize("kind", KINDS)
def test_half_precision(run, model, loaded, text, tmp_path, kind):
    out = tmp_path / f"half{kind}"
    assert run("embed", "-i", text, "-m", model, "-o", out, "--fp16").code == 0
    for array, exact in zip(read_vectors(out).values(), loaded.embed(LINES), strict=False):
        assert array.dtype == (np.float32 if "jsonl" in kind else np.float16)
        np.testing.assert_allclose(array.astype(np.float64), exact.astype(np.float16), atol=1e-4)


@pytest.mark.parametrize(("choice", "layers"), [("all", (3,)), ("top", ()), ("mean", ()), ("0", ())])
def test_layers(run, model, loaded, text, tmp_path, choice, layers):
    out = tmp_path / "v.npz"
    assert run("embed", "-i", text, "-m", model, "-o", out, "--layers", choice).code == 0
    expected = loaded.embed(LINES, layers=int(choice) if choice.isdigit() else choice)
    found = read_vectors(out)
    assert found[0].shape == (*layers, 6, 16)
    np.testing.assert_allclose(found[0], expected[0].reshape(found[0].shape), atol=1e-6)


def test_no_lines_are_told(run, model, tmp_path):
    (tmp_path / "empty.txt").touch()
    result = run("embed", "--input", tmp_path / "empty.txt", "--out", tmp_path / "none.npz", "--model", model)
    assert result.code == 0 and f"{tmp_path}/empty.txt has no lines, so {tmp_path}/none.npz has no vectors" in result.err


def test_hdf5_is_as_bilm_tf_wrote_it(run, model, text, tmp_path):
    out = tmp_path / "v.hdf5"
    run("embed", "-i", text, "-m", model, "-o", out)
    with h5py.File(out) as file:
        assert set(file) == {str(line) for line in range(len(LINES))}  # nothing but lines, so counting names works
        assert file["0"].dtype == np.float32 and file["1"].shape == (3, 0, 16)
        assert file.attrs["splitter"] == "english"


def test_gzip_is_detected_by_content_and_a_byte_order_mark_is_no_word(run, model, tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbfThe bank\n\nof"))
    result = run("embed", "-i", path, "-m", model, "--json")
    assert [row["words"] for row in result.json] == [["The", "bank"], [], ["of"]]


@pytest.mark.parametrize("kind", ["gzip", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("xz", "zstd"))])
def test_packed_text(run, model, tmp_path, kind):
    pack = {"gzip": gzip.compress, "xz": lzma.compress}.get(kind) or pytest.importorskip("zstandard").ZstdCompressor().compress
    lines = [f"The bank {number}\r of" for number in range(1200)]  # several blocks; "\r" within a line ends none
    path, out = tmp_path / "text", tmp_path / "v.jsonl"
    path.write_bytes(pack("\ufeff".encode() + "\n".join(lines).encode()))
    rows = run("embed", "-i", path, "-m", model, "-o", out, "--json")
    assert rows.json == [{"out": str(out), "lines": 1200, "words": 4 * 1200, "resumed": 0}]
    path.write_bytes(pack(os.urandom(3000).hex().encode())[:-100])
    assert f"text: is a damaged {kind} file" in one_sentence(run("embed", "-i", path, "-m", model))


def test_packed_text_from_a_pipe(run, model):
    result = run("embed", "--model", model, "--json", stdin=lzma.compress("The bank\n\n河岸".encode()))
    assert [row["words"] for row in result.json] == [["The", "bank"], [], ["河岸"]]


@pytest.mark.parametrize(
    ("data", "reported"),
    [
        (bz2.compress(b"The bank\n"), "is compressed with bzip2; use gzip"),
        (b"PK\x03\x04 and so on\n", "is a zip file; use gzip"),
    ],
)
def test_text_that_must_be_unpacked_or_converted(run, model, tmp_path, data, reported):
    (tmp_path / "text").write_bytes(data)
    assert f"{tmp_path / 'text'}: {reported}" in one_sentence(run("embed", "-i", tmp_path / "text", "-m", model))


def test_split_on_spaces(run, model):
    assert run("embed", "isn't it?", "-m", model, "--json").json[0]["words"] == ["is", "n't", "it", "?"]
    rows = run("embed", "isn't it?", "-m", model, "--json", "--split-on-spaces").json
    assert rows[0]["words"] == ["isn't", "it?"]


def test_carry_depends_on_order_and_batch_size(run, tmp_path, model, loaded, text):
    out = tmp_path / "v.npz"
    assert run("embed", "-i", text, "-m", model, "-o", out, "--start", "carry", "--batch-size", 2).code == 0
    expected = loaded.embed(LINES, start="carry", batch_size=2)
    for line, array in read_vectors(out).items():
        np.testing.assert_allclose(array, expected[line], atol=1e-6)


def test_what_a_person_sees(run, model):
    result = run("embed", "The bank", "河岸", "-m", model)
    assert result.out.splitlines()[0] == "line 0: 2 words, layer 2, the first of 16 numbers"
    assert result.out.splitlines()[2].startswith("  bank  ")
    assert result.err == ""


@pytest.mark.parametrize("verb", ["embed", "encode"])
def test_a_terminal_shows_the_first_lines_of_a_file(run, model, tmp_path, monkeypatch, verb):
    (tmp_path / "five.txt").write_text("a bank\n" * 5)
    (tmp_path / "many.txt").write_text("a bank\n" * 1200)  # more than are embedded together
    piped = run(verb, "--input", tmp_path / "many.txt", "-m", model)
    assert piped.out.count("line ") == 1200 and piped.err == ""
    terminal = type("Terminal", (io.StringIO,), {"isatty": lambda stream: True})

    def shown(*arguments, stdin=None):
        monkeypatch.setattr(sys, "stdout", terminal())
        result = run(verb, *arguments, "-m", model, stdin=stdin)
        return sys.stdout.getvalue(), result.err

    few = "".join(piped.out.partition("line 5: ")[:1])
    note = "polyseme: only the first 5 lines are shown: give --out FILE to write all vectors, or --json to print them\n"
    assert shown("--input", tmp_path / "many.txt") == (few, note)
    assert shown(stdin=b"a bank\n" * 6) == (few, note)
    assert shown("--input", tmp_path / "five.txt") == (few, "")
    assert shown(*["a bank"] * 6)[0].count("line ") == 6
    out, err = shown("--input", tmp_path / "many.txt", "--json")
    assert out.count("\n") == 1200 and err == ""


def test_odd_words(run, model):
    odd = ["a" * 1_000_000, "nul \0 inside", "lone \udc80 surrogate", "\u200d \u2028 e\u0301"]
    result = run("embed", *odd, "-m", model, "--json")
    assert result.code == 0
    assert [row["line"] for row in result.json] == [0, 1, 2, 3]
    assert result.json[2]["words"] == ["lone", "\udc80", "surrogate"]
    assert run("embed", *odd, "-m", model).code == 0


@pytest.mark.parametrize("kind", KINDS)
def test_odd_words_in_files(run, model, tmp_path, kind):
    out = tmp_path / f"v{kind}"
    assert run("embed", "lone \udc80 \0", "a" * 100_000, "-m", model, "-o", out).code == 0
    assert read_vectors(out)[0].shape == (3, 3, 16)


def test_json_summary_and_an_old_file_is_replaced(run, model, text, tmp_path):
    out = tmp_path / "deep" / "v.jsonl"
    out.parent.mkdir()
    out.write_text("old")
    result = run("embed", "-i", text, "-m", model, "-o", out, "--json")
    assert result.json == [{"out": str(out), "lines": 6, "words": 17, "resumed": 0}]
    assert len(out.read_text().splitlines()) == 6


def test_a_learned_start(run, tmp_path):
    folder = tiny(output=False, start="learned").save_pretrained(tmp_path / "learned")
    assert run("embed", "a", "-m", folder, "--start", "learned").code == 0


def test_standard_input(run, model):
    result = run("embed", "--model", model, "--json", stdin="The bank\n\n河岸\n".encode())
    assert result.code == 0 and result.err == ""
    assert [row["words"] for row in result.json] == [["The", "bank"], [], ["河岸"]]
    bad = run("embed", "--model", model, "--input", "-", stdin=b"fine\n\xff\n")
    assert bad.code == 1
    assert bad.err == f"polyseme: standard input:2: is not UTF-8 (byte 0xff); {ENCODING_ADVICE}\n"


def test_a_named_pipe(run, model, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("The bank\nof the river\n",))
    writer.start()
    result = run("embed", "--model", model, "--json", "--input", pipe)
    writer.join()
    assert result.code == 0 and [row["words"] for row in result.json] == [["The", "bank"], ["of", "the", "river"]]


def test_a_closed_pipe_is_no_failure_to_report(model, capsys, monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert main(["embed", "The bank", "of the river", "-m", model, "--json"]) == 1
    assert capsys.readouterr().err == ""


def test_without_a_model_it_is_the_english_one(run, model, shipped):
    found = run("embed", "The bank", "--json").json
    assert found == run("embed", "The bank", "-m", "en", "--json").json == run("embed", "The bank", "-m", model, "--json").json
    (shipped / "config.json").unlink()
    reported = one_sentence(run("embed", "The bank"))
    assert "this installation lacks the weights of the model 'en'" in reported and "choose another model" in reported
    assert "write ./zh for your own folder" in one_sentence(run("embed", "The bank", "-m", "zh"))


def test_the_unigram_splitter_needs_the_models_own_word_list(run, model, tmp_path):
    reported = one_sentence(run("embed", "他的包袱", "-m", model, "--splitter", "unigram"), 2)
    assert "has no word list, which --splitter unigram needs" in reported
    chinese = tiny(output=False)
    chinese.splitter = UnigramSegmenter(["的", "包袱"])
    folder = chinese.save_pretrained(tmp_path / "m")
    assert run("embed", "他的包袱", "-m", folder, "--json").json[0]["words"] == ["他", "的", "包袱"]
    assert run("embed", "他的包袱", "-m", folder, "--splitter", "unigram", "--json").json[0]["words"] == ["他", "的", "包袱"]
    assert run("embed", "他的包袱", "-m", folder, "--splitter", "characters", "--json").json[0]["words"] == list("他的包袱")


def test_wrong_calls(run, model, text, tmp_path):
    assert "as TEXT and as --input" in one_sentence(run("embed", "a", "-i", text, "-m", model), 2)
    assert "allowed: .hdf5" in one_sentence(run("embed", "a", "-m", model, "-o", tmp_path / "v.txt"), 2)
    assert "all, top, mean" in one_sentence(run("embed", "a", "-m", model, "--layers", "tpo"), 2)
    assert "from 0 to 2" in one_sentence(run("embed", "a", "-m", model, "--layers", "3"), 2)
    assert "--layerz" in one_sentence(run("embed", "a", "-m", model, "--layerz", "3"), 2)
    assert "--start is 'cold'; allowed: learned, zero, warm, carry" in one_sentence(run("embed", "a", "--start", "cold"), 2)
    assert "learned" in one_sentence(run("embed", "a", "-m", model, "--start", "learned"), 2)


def test_a_dataset_is_not_written_into_the_folder_of_a_model(run, model, text, tmp_path):
    for name, what in (("config.json", "a model"), ("task.json", "a trained task")):
        folder = tmp_path / what
        folder.mkdir()
        (folder / name).write_text("{}")
        said = one_sentence(run("embed", "-i", text, "-m", model, "-o", folder), 2)
        assert f"--out '{folder}' is the folder of {what} (it has {name}): give another folder for the vectors" in said
        assert [each.name for each in folder.iterdir()] == [name]
