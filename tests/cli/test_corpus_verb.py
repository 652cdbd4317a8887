"""`polyseme corpus`: what it prints, what it writes, and how it fails."""

import json

import pytest

import polyseme
from polyseme.base.errors import PolysemeError
from tests.cli.running import one_sentence, process

LINES = ["The bank of the river.", "The bank.", "A bank? The bank."]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("\n".join(LINES) + "\n")
    return folder


def test_help(run):
    for arguments in (["corpus", "--help"], ["corpus", "check", "--help"], ["corpus", "vocab", "--help"]):
        result = run(*arguments)
        assert result.code == 0 and result.err == "" and "text" in result.out


def test_check(run, folder):
    result = run("corpus", "check", folder)
    assert result.code == 0 and result.err == ""
    rows = dict(line.rsplit("  ", 1) for line in result.out.splitlines() if "  " in line)
    found = {name.strip(): value for name, value in rows.items()}
    assert found["files"] == "1" and found["lines"] == "3" and found["sentences"] == "4" and found["words"] == "15"
    assert "15 words are few" in result.out


def test_check_as_json(run, folder):
    (folder / "empty.txt").write_text("")
    result = run("corpus", "check", folder, "--json", "--splitter", "whitespace", "--sentences", "lines")
    (report,) = result.json
    assert result.code == 0 and report["words"] == sum(len(line.split()) for line in LINES)
    assert report["distinct_words"] == len({word for line in LINES for word in line.split()})
    assert report["empty_files"] == [str(folder / "empty.txt")] and len(report["problems"]) == 2


def test_forecast(run, folder, monkeypatch):
    from polyseme.pretraining import forecast

    monkeypatch.setattr(forecast, "_STEPS", 2)
    result = run("corpus", "check", folder, "--size", "tiny", "--epochs", 3, "--device", "cpu", "--json")
    (report,) = result.json
    found = report["forecast"]
    assert result.code == 0 and found["parameters"] > 30_000 and found["memory_bytes"] > 16 * found["parameters"]
    assert found["seconds"] == pytest.approx(3 * report["words"] / found["words_per_second"])
    assert found["disk_bytes"] > 9 * 4 * found["parameters"]


def test_forecast_for_people(run, folder, monkeypatch):
    from polyseme.pretraining import forecast

    monkeypatch.setattr(
        forecast, "forecast", lambda *arguments: forecast.Forecast(14_243_307, 625_000_000, 5123.4, 12_001.0, 1_940_000_000)
    )
    reach = run("corpus", "check", folder, "--size", "small", "--minutes", "0.1").out
    words = json.loads(run("corpus", "check", folder, "--json").out)["words"]
    assert f"about {5123.4 * 0.85 * 6 / words:,.0f}" in next(
        line for line in reach.splitlines() if line.startswith("training epochs")
    )
    shown = run("corpus", "check", folder, "--size", "small", "--device", "cpu").out
    assert "training epochs" not in shown
    for name, value in {
        "parameters": "14,243,307",
        "training speed": "about 5,123 words per second",
        "training time": "about 3 h 20 min",
        "training memory": "about 625 MB, besides about 0.5 GB of Python and PyTorch",
        "training disk": "about 1.9 GB",
    }.items():
        assert any(line.startswith(name) and line.endswith(value) for line in shown.splitlines()), name
    on_gpu = forecast.Forecast(14_243_307, 625_000_000, 5123.4, 12_001.0, 1_940_000_000, on_gpu=True)
    monkeypatch.setattr(forecast, "forecast", lambda *arguments: on_gpu)
    assert "about 625 MB, on the GPU\n" in run("corpus", "check", folder, "--size", "small", "--device", "cpu").out
    assert "training" not in run("corpus", "check", folder).out.replace("for training", "")
    assert "give either --epochs or --minutes" in one_sentence(
        run("corpus", "check", folder, "--size", "tiny", "--epochs", 2, "--minutes", 2), 2
    )
    assert "add --size" in one_sentence(run("corpus", "check", folder, "--minutes", 2), 2)
    assert "add --size" in one_sentence(run("corpus", "check", folder, "--epochs", 2), 2)
    (folder / "a.txt").write_text("\n")
    assert run("corpus", "check", folder, "--size", "small").code == 1


def test_check_fails_on_what_training_could_not_read(run, folder, tmp_path):
    (folder / "b.txt").write_bytes(b"na\xefve\n")
    result = run("corpus", "check", folder)
    assert result.code == 1 and "1 line is bad" in result.out
    assert result.err == "polyseme: 1 bad line: training would stop there; skip them with --skip-bad-lines\n"
    assert run("corpus", "check", folder, "--skip-bad-lines").code == 0
    (tmp_path / "empty.txt").write_text("")
    result = run("corpus", "check", tmp_path / "empty.txt")
    assert result.code == 1 and "no words to train on" in result.err
    (tmp_path / "latin.txt").write_bytes(b"na\xefve\n")
    result = run("corpus", "check", tmp_path / "latin.txt")
    assert "1 line is bad" in result.out and "no words to train on; 1 bad line, not UTF-8" in result.err


def test_vocab(run, folder, tmp_path):
    out = tmp_path / "made" / "v.txt"
    result = run("corpus", "vocab", folder, "--out", out)
    assert result.code == 0 and result.out == f"{out}: 11 lines, from 15 words of text\n"
    # bank 4; . and The 3 each; A, ?, of, river, the 1 each: ties in the order of code points
    assert out.read_text().split() == ["<S>", "</S>", "<UNK>", "bank", ".", "The", "?", "A", "of", "river", "the"]
    run("corpus", "vocab", folder, "--out", out, "--size", 5)
    assert out.read_text().split() == ["<S>", "</S>", "<UNK>", "bank", "."]
    result = run("corpus", "vocab", folder / "*.txt", "--out", out, "--min-count", 3, "--json")
    assert result.json == [{"written": str(out), "size": 6, "words": 15}]
    assert out.read_text().split() == ["<S>", "</S>", "<UNK>", "bank", ".", "The"]


def test_vocab_stops_at_a_bad_line_and_keeps_what_was_there(run, folder, tmp_path):
    out = tmp_path / "v.txt"
    out.write_text("before")
    (folder / "b.txt").write_bytes(b"fine\nna\xefve\n")
    sentence = one_sentence(run("corpus", "vocab", folder, "--out", out))
    assert "b.txt:2: is not UTF-8 (byte 0xef)" in sentence and out.read_text() == "before"
    assert run("corpus", "vocab", folder, "--out", out, "--skip-bad-lines").code == 0
    assert "fine" in out.read_text().split()


@pytest.fixture
def chinese(tmp_path):
    """A text, and a list of words to split it by."""
    (tmp_path / "zh.txt").write_text("他的包袱很重。他的包！\n", encoding="utf-8")
    (tmp_path / "words.txt").write_text("<S>\n</S>\n<UNK>\n的\n包袱\n他\n", encoding="utf-8")
    return tmp_path / "zh.txt", "--splitter", "unigram", "--sentences", "chinese"


def test_unigram_splitter(run, chinese, tmp_path):
    listed, out = ("--word-list", tmp_path / "words.txt"), tmp_path / "v.txt"
    (report,) = run("corpus", "check", *chinese, *listed, "--json").json
    assert (report["words"], report["distinct_words"], report["sentences"]) == (10, 8, 2)
    assert run("corpus", "vocab", *chinese, *listed, "--out", out).code == 0
    found = out.read_text(encoding="utf-8").split()
    assert set(found[:5]) == {"<S>", "</S>", "<UNK>", "他", "的"} and set(found[5:]) == set("很重。包！") | {"包袱"}
    assert run("corpus", "check", *chinese, "--word-list", out, "--json").json[0]["words"] == 10  # what it wrote, it reads


@pytest.mark.parametrize("verb", [("check",), ("vocab", "--out", "v.txt")])
def test_the_unigram_splitter_needs_a_word_list(run, chinese, tmp_path, monkeypatch, verb):
    monkeypatch.chdir(tmp_path)
    call = ("corpus", *verb, *chinese)
    assert "--splitter unigram needs --word-list: words, most frequent first" in one_sentence(run(*call), 2)
    assert "none.txt: No such file" in one_sentence(run(*call, "--word-list", "none.txt"))
    (tmp_path / "empty.txt").write_text("\n")
    assert "empty.txt: has no words" in one_sentence(run(*call, "--word-list", "empty.txt"))
    other = ("corpus", *verb, chinese[0], "--splitter", "characters", "--word-list", "words.txt")
    assert "--word-list applies only to --splitter unigram, not to 'characters'" in one_sentence(run(*other), 2)
    assert not (tmp_path / "v.txt").exists()


def test_wrong_calls(run, folder, tmp_path):
    out = tmp_path / "v.txt"
    assert "no such file or folder" in one_sentence(run("corpus", "check", tmp_path / "none"))
    assert "out" in one_sentence(run("corpus", "vocab", folder), 2)
    assert "--size is 2; allowed: 4 or more" in one_sentence(run("corpus", "vocab", folder, "-o", out, "--size", 2), 2)
    assert "'klingon'" in one_sentence(run("corpus", "check", folder, "--splitter", "klingon"), 2)
    assert "no word occurs 99 times" in one_sentence(run("corpus", "vocab", folder, "-o", out, "--min-count", 99))
    assert not out.exists()


def test_a_vanished_file_in_the_middle(run, folder, monkeypatch):
    from polyseme.text.files.sources import Source

    def vanish(self, *files):
        raise PolysemeError("cannot read a.txt: No such file or directory")

    monkeypatch.setattr(Source, "chunks", vanish)
    assert "No such file" in one_sentence(run("corpus", "check", folder))


def test_standard_input(run):
    result = run("corpus", "check", "-", "--workers", 0, "--json", stdin=b"One two. Three.\n")
    assert result.code == 0 and json.loads(result.out)["sentences"] == 2


@pytest.mark.slow  # the test above has standard input, and tests/text/test_corpus.py the workers
def test_standard_input_with_workers_in_a_process():
    result = process("corpus", "check", "-", "--workers", 2, "--json", text=b"One two. Three.\n")
    assert result.code == 0 and json.loads(result.out)["sentences"] == 2


@pytest.mark.parametrize(("name", "options", "warned"), [
    ("a.csv", [], True), ("a.TSV.gz", [], True), ("a.json", [], True),
    ("a.json", ["--field", "text"], False), ("a.jsonl", [], False), ("a.txt", [], False),
])  # fmt: skip
def test_a_table_is_read_as_plain_text_with_a_note(run, tmp_path, name, options, warned):
    (tmp_path / name).write_text('{"text": "The bank."}\n')
    for command in (["check"], ["vocab", "--out", tmp_path / "words.txt"]):
        err = run("corpus", command[0], tmp_path / name, *command[1:], *options).err
        assert (f"{name} is read as plain text, one text per line, with its header and all its columns" in err) == warned


def test_training_on_a_table_is_noted(caplog, tmp_path):
    (tmp_path / "a.csv").write_text("text,label\nThe bank of the river .,1\nThe bank lent money .,2\n")
    model = polyseme.pretrain("ngram", tmp_path / "a.csv", out=tmp_path / "model", order=2)
    polyseme.perplexity(tmp_path / "a.csv", model=model)
    polyseme.neighbours("The bank .", word="bank", corpus=tmp_path / "a.csv", model="en")
    assert caplog.text.count("a.csv is read as plain text") == 3
