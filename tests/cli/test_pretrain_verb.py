"""`polyseme pretrain`: from a file to a model that embeds, taken up again, and its mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import polyseme
from polyseme.__main__ import main

ARGUMENTS = ["--size", "tiny", "--vocabulary", "50", "--epochs", "2", "--sentences", "lines", "--words", "whitespace"]


def write(path: Path) -> str:
    path.write_text("the cat sat on the mat .\na dog saw the river .\n" * 30, encoding="utf-8")
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
    assert capsys.readouterr().err == "polyseme: give one budget: --epochs, --minutes or --total-words\n"
    assert main(["pretrain", "elmo", "--corpus", str(tmp_path / "none"), "--out", str(tmp_path / "m")]) == 1
    assert "none: no such file or folder" in capsys.readouterr().err
    (tmp_path / "empty.txt").write_text("\n")
    assert main(["pretrain", "elmo", "--corpus", str(tmp_path / "empty.txt"), "--out", str(tmp_path / "m")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
