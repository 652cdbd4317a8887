"""`polyseme pretrain`: from a file to a model that embeds, taken up again, and its mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import polyseme
from polyseme.__main__ import main
from polyseme.api import training
from polyseme.base.run import Run
from polyseme.pretraining.methods import METHODS
from polyseme.pretraining.result import WordVectorResult
from tests.cli.running import one_sentence

ARGUMENTS = ["--size", "tiny", "--vocabulary-size", "50", "--epochs", "2", "--sentences", "lines", "--splitter", "whitespace"]


def write(path: Path) -> str:
    path.write_text("the cat sat on the mat .\na dog saw the river .\n" * 8, encoding="utf-8")
    return str(path)


def test_from_text_to_a_model(tmp_path: Path, capsys) -> None:
    text, out = write(tmp_path / "t.txt"), str(tmp_path / "m")
    assert main(["pretrain", "elmo", "--corpus", text, "--out", out, *ARGUMENTS, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["ended"] == "budget" and said["perplexity"] < 60
    assert polyseme.load(out).embed(["the cat"])[0].shape == (3, 2, 32)
    assert main(["pretrain", "elmo", "--corpus", text, "--out", out, *ARGUMENTS, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == said["steps"]


def test_mistakes(tmp_path: Path, capsys) -> None:
    text = write(tmp_path / "t.txt")
    two = ["pretrain", "elmo", "--corpus", text, "--out", str(tmp_path / "m"), "--epochs", "1", "--minutes", "1"]
    assert main(two) == 2
    given = "polyseme: --epochs and --minutes are given: give exactly one of --steps, --epochs, --words, --minutes\n"
    assert capsys.readouterr().err == given
    assert main(["pretrain", "elmo", "--corpus", str(tmp_path / "none"), "--out", str(tmp_path / "m")]) == 1
    assert "none: no such file or folder" in capsys.readouterr().err
    (tmp_path / "empty.txt").write_text("\n")
    assert main(["pretrain", "elmo", "--corpus", str(tmp_path / "empty.txt"), "--out", str(tmp_path / "m")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("method", METHODS)
def test_a_text_without_words_leaves_nothing_behind(run, tmp_path, method):
    (tmp_path / "empty.txt").write_text("\n \n")
    for out in (tmp_path / "new" / "model", tmp_path / "old"):
        (tmp_path / "old").mkdir(exist_ok=True)
        said = one_sentence(run("pretrain", method, "--corpus", tmp_path / "empty.txt", "--out", out))
        assert "empty.txt: the text has no words" in said
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "empty.txt", tmp_path / "old"]


def test_transformers(tmp_path: Path, capsys) -> None:
    text, out = write(tmp_path / "t.txt"), str(tmp_path / "m")
    assert main(["pretrain", "elmo", "--corpus", text, "--out", out, *ARGUMENTS, "--architecture", "transformer"]) == 0
    assert polyseme.load(out).config.architecture == "transformer"
    assert "| trunk | transformer |" in (tmp_path / "m" / "README.md").read_text()
    capsys.readouterr()
    assert main(["info", out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["transformer"] == "2 heads, 64/16"
    assert main(["embed", "--model", out, "--precision", "int8", "the cat"]) == 2
    assert "--precision is 'int8', which applies only to LSTMs" in capsys.readouterr().err
    assert main(["convert", out, str(tmp_path / "bilm"), "--to", "bilm"]) == 1
    assert "bilm-tf's format is for LSTMs" in capsys.readouterr().err


def test_outputs(tmp_path: Path, capsys) -> None:
    text = write(tmp_path / "t.txt")

    def kind(name: str, *options: str) -> str:
        assert main(["pretrain", "elmo", "--corpus", text, "--out", str(tmp_path / name), *ARGUMENTS, *options]) == 0
        newest = max((tmp_path / name / "run").glob("checkpoint-*.json"))
        said = json.loads(newest.read_text())["values"]["settings"]["settings"]["pretraining"]
        return f"{type(polyseme.load(tmp_path / name).output).__name__} {said['output']} {said['negatives']}"

    assert kind("a", "--negatives", "5") == "FullSoftmax sampled 5"
    assert kind("b", "--output", "sampled", "--tied", "--input", "both") == "TiedSoftmax sampled 8192"
    assert kind("c", "--output", "adaptive") == "AdaptiveSoftmax adaptive 8192"
    capsys.readouterr()
    start = ["pretrain", "elmo", "--corpus", text, "--out", str(tmp_path / "d")]
    assert main([*start, "--output", "adaptive", "--negatives", "5"]) == 2
    assert "--negatives 5 needs --output sampled, not adaptive" in capsys.readouterr().err
    assert main([*start, "--tied"]) == 2
    assert "--tied needs a word table: give --input words or both" in capsys.readouterr().err


def test_other_mistakes(tmp_path: Path, capsys) -> None:
    start = ["pretrain", "elmo", "--corpus", write(tmp_path / "t.txt"), "--out", str(tmp_path / "m")]

    def said(*arguments: str, code: int = 2) -> str:
        assert main([*start, *arguments]) == code
        return capsys.readouterr().err

    assert "--words" in said("--words", "english") and not (tmp_path / "m").exists()
    assert "--total-words" in said("--total-words", "100")
    assert "'klingon'" in said("--splitter", "klingon")
    assert "--warmup is 1.0; allowed: 0 or more, below 1" in said("--warmup", "1")
    assert "bf16 needs a CUDA device" in said("--precision", "bf16", "--device", "cpu")
    assert "--vectors needs a word table: give --input words or both" in said("--vectors", str(tmp_path / "v.txt"))
    assert "No such file" in said("--vectors", str(tmp_path / "v.txt"), "--input", "words", code=1)


def test_vectors_adagrad_and_words(tmp_path: Path, capsys) -> None:
    (tmp_path / "v.txt").write_text("the 1.0 0.5 0.25 0.5\ncat 0.5 0.5 -1.0 2.0\n<unk> 0.1 0.2 0.3 0.4\n", encoding="utf-8")
    (tmp_path / "t.jsonl").write_text('{"body": "the cat sat . a dog saw ."}\n' * 60 + "no JSON\n", encoding="utf-8")
    out = tmp_path / "m"
    call = ["pretrain", "elmo", "-c", str(tmp_path / "t.jsonl"), "-o", str(out), "--size", "tiny", "--words", "900"]
    call += ["--splitter", "whitespace", "--sentences", "lines", "--field", "body", "--skip-bad-lines", "--workers", "0"]
    call += ["--input", "words", "--vectors", str(tmp_path / "v.txt"), "--optimizer", "adagrad", "--device", "cpu", "--json"]
    assert main(call) == 0
    seen = capsys.readouterr()
    assert json.loads(seen.out)["words"] >= 900
    assert seen.err.startswith(f"polyseme: {tmp_path / 'v.txt'}: 3 of 10 words found (1 in lower case)\n")
    assert polyseme.load(out).config.words.dim == 4
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "optimizer=adagrad, train.optim.learning_rate=0.2" in card and "decay=constant" in card
    assert "| text | t.jsonl |" in card and str(tmp_path) not in card
    (tmp_path / "v.txt").write_text("the 1.0 0.5 0.25 0.5\n", encoding="utf-8")
    assert main(call) == 1
    assert "--vectors changed" in capsys.readouterr().err


def test_changes_are_refused_or_accepted(run, tmp_path):
    call = ["pretrain", "elmo", "--corpus", write(tmp_path / "t.txt"), "--out", tmp_path / "m", *ARGUMENTS]
    call += ["--warmup", "0.5"]
    assert run(*call).code == 0
    assert "train.optim.warmup=0.5" in (tmp_path / "m" / "README.md").read_text()
    refused = run(*call, "--learning-rate", "0.002")
    assert (
        refused.code == 1
        and refused.err.count("--learning-rate: 0.02 in the run, 0.002 now") == 1
        and "--accept-changes" in refused.err
    )
    over = run(*call, "--learning-rate", "0.002", "--accept-changes")
    assert over.code == 1 and "is finished" in over.err and "give a larger budget" in over.err


def test_unigram_splitter(run, tmp_path):
    (tmp_path / "t.txt").write_text("他的包袱很重。\n我的包很大！\n" * 10, encoding="utf-8")
    (tmp_path / "words.txt").write_text("的\n包袱\n他\n", encoding="utf-8")
    start = ["pretrain", "elmo", "--corpus", tmp_path / "t.txt", "--out", tmp_path / "m", "--size", "tiny", "--epochs", "1"]
    start += ["--splitter", "unigram", "--sentences", "chinese", "--workers", "0"]
    assert "--splitter unigram needs --word-list" in one_sentence(run(*start), 2)
    assert not (tmp_path / "m").exists()
    assert run(*start, "--word-list", tmp_path / "words.txt").code == 0
    model = polyseme.load(tmp_path / "m")
    assert (tmp_path / "m" / "words.txt").read_text(encoding="utf-8") == "的\n包袱\n他\n"
    assert model.words("他的包袱") == ["他", "的", "包袱"] and {"包袱", "重"} < set(model.vocabulary)
    (tmp_path / "words.txt").write_text("的\n他\n", encoding="utf-8")
    assert run(*start, "--word-list", tmp_path / "words.txt").code == 1  # another list splits the text differently


@pytest.mark.parametrize(("rank", "shown"), [(0, "m: 9 words"), (1, "")])
def test_under_torchrun_one_process_reports(run, monkeypatch, rank, shown):
    result = WordVectorResult(out=Path("m"), method="glove", words=9, text_words=9, seconds=1.0, vocabulary_size=9, epochs=1)
    monkeypatch.setattr(training, "_pretrain", lambda *arguments: (result, Run(rank=rank, world_size=2)))
    found = run("pretrain", "glove", "--corpus", "t.txt", "--out", "m")
    assert found.code == 0 and found.out.startswith(shown) and bool(found.out) == bool(shown)


def test_bptt_and_word_dim(run, tmp_path):
    text, out = write(tmp_path / "t.txt"), tmp_path / "m"
    call = ["pretrain", "elmo", "--corpus", text, "--out", out, *ARGUMENTS, "--input", "both"]
    assert run(*call, "--bptt", 7, "--word-dim", 6).code == 0
    newest = max((out / "run").glob("checkpoint-*.json"))
    said = json.loads(newest.read_text())["values"]["settings"]["settings"]["pretraining"]
    assert (said["bptt"], said["word_dim"]) == (7, 6)
    assert polyseme.load(out).config.words.dim == 6
    assert run(*call).code == 1  # other settings
    assert "--bptt is 0; allowed: 1 or more" in one_sentence(run(*call, "--bptt", 0), 2)
    assert "--word-dim" in one_sentence(run(*call, "--word-dim", 0), 2)
    tied = one_sentence(run(*call, "--tied", "--word-dim", 6), 2)
    assert "--word-dim is 6; allowed with --tied: 16, the size of the output" in tied
