"""`polyseme pretrain bert`, `polyseme pretrain gpt` and `polyseme fill`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import one_sentence
from tests.encoders.small_subwords import bert, gpt

pytest.importorskip("transformers", reason="needs the extra `transformers`")


def test_pretrain_and_fill(run, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("The bank of the river . It is wide .\nMoney in the bank . It is safe .\nA zebra sat . It ran .\n")
    out = tmp_path / "m"
    call = ["pretrain", "bert", "--corpus", str(text), "--out", str(out), "--pieces", "60", "--length", "16", "--words", "40"]
    said = run(*call, "--whole-words", "--json")
    assert said.code == 0 and json.loads(said.out)["ended"] == "budget" and "masked_perplexity" in said.out
    assert run(*call, "--whole-words").out.startswith(f"{out}: ")  # done already
    assert run(*call).code == 1  # other settings
    found = json.loads(run("fill", "The [MASK] of the [MASK] .", "--model", str(out), "--count", "2", "--json").out)
    assert [len(place) for place in found["fillings"]] == [2, 2]
    assert "[MASK] 2" in run("fill", "The [MASK] of the [MASK] .", "--model", str(out)).out
    info = json.loads(run("info", str(out), "--json").out)
    assert info["encoder"] == "bert" and info["network"] == "bert" and info["format"] == "polyseme"
    assert info["language_model"] is False and run("score", "a", "--model", str(out)).code == 1  # which `score` says, too


def test_pretrain_gpt(run, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("The bank of the river .\nMoney in the bank .\nA zebra sat .\n")
    out = str(tmp_path / "m")
    said = run("pretrain", "gpt", "--corpus", str(text), "--out", out, "--pieces", "280", "--length", "16", "--words", "40")
    assert said.code == 0 and "word perplexity" in said.out
    assert run("perplexity", str(text), "--model", out).code == 0
    assert "left to right" in run("score", "The bank .", "--model", out, "--explain").out
    call = ("pretrain", "bert", "--corpus", str(text), "--out", out, "--pieces", "60", "--length", "16", "--words", "60")
    told = "holds another kind of run (gpt, not bert): choose another folder"
    assert told in one_sentence(run(*call, "--accept-changes"))


def test_fill_says_what_is_wrong(run, tmp_path: Path) -> None:
    bert().save_pretrained(tmp_path / "b")
    gpt().save_pretrained(tmp_path / "g")
    said = run("fill", "no mask", "--model", str(tmp_path / "b"))
    assert said.code == 2 and "the text has no [MASK]" in said.err
    said = run("fill", "[MASK]", "--model", str(tmp_path / "g"))
    assert said.code == 2 and "is of kind gpt, which fills in no hidden words" in said.err


def test_published_checkpoints_everywhere(run, tmp_path: Path) -> None:
    model = gpt()
    model.network.save_pretrained(tmp_path)
    model.subwords.tokenizer.save_pretrained(tmp_path)
    said = run("embed", "the bank of the river", "--model", str(tmp_path))
    assert said.code == 0 and "5 words" in said.out
    said = run("score", "the bank of the river", "--model", str(tmp_path))
    assert said.code == 0 and said.out
    assert json.loads(run("info", str(tmp_path), "--json").out)["format"] == "transformers"


def test_pieces_that_cannot_be_kept(run, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = tmp_path / "text.txt"
    text.write_text("The bank of the river . It is wide .\nMoney in the bank . It is safe .\nA zebra sat . It ran .\n")
    call = ["--corpus", str(text), "--out", str(tmp_path / "m"), "--length", "16", "--words", "40"]
    said = run("pretrain", "gpt", *call, "--pieces", "100")
    assert said.code != 0 and said.err == "polyseme: pieces is 100; 256 are bytes and one is a mark, so at least 257\n"
    assert not (tmp_path / "m").exists()
    assert run("pretrain", "bert", *call, "--pieces", "20").code == 0
    assert "pieces: the characters of the text alone are more than --pieces 20" in caplog.text
