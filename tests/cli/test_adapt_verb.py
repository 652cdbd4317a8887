"""`polyseme adapt`: what it says before and after, taken up again, back to HDF5, and its mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import polyseme
from tests.cli.running import one_sentence, tiny
from tests.encoders.test_sequence import ulmfit
from tests.oracle.make import write_bilm

LINES = ["the stent of the river .", "a dose to the bank .", "the ward of a bank ."] * 8
HELD_OUT = LINES[-(len(LINES) // 10) :]
QUICK = ["--epochs", "2", "--learning-rate", "0.01", "--batch-words", "100"]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "domain.txt").write_text("\n".join(LINES), encoding="utf-8")
    return tmp_path / "domain.txt"


def test_before_and_after(run, model, text: Path, tmp_path: Path) -> None:
    call = ["adapt", model, "--corpus", text, "--out", tmp_path / "out", "--sentences", "lines", *QUICK]
    result = run(*call)
    assert result.code == 0 and all(line.startswith("epoch ") for line in result.err.splitlines()), result
    first, added, scores, few, old = result.out.splitlines()
    assert (
        few
        == f"only {sum(len(line.split()) for line in HELD_OUT)} words of the text are held out: the difference may be chance"
    )
    assert old.startswith("over the old vocabulary: untouched model ") and "added words count as unknown" in old
    untouched = polyseme.load(model).perplexity([line.split() for line in HELD_OUT]).mean
    assert f"untouched model {untouched:,.2f}, after " in old
    assert first.startswith(f"{tmp_path / 'out'}: ") and added == "added 3 words"
    assert scores.startswith("held-out perplexity: before ") and "), after " in scores and scores.count("forward") == 2
    found = polyseme.load(tmp_path / "out")
    assert found.splitter.name == "english" and found.vocabulary.words[-3:] == ["dose", "stent", "ward"]
    again = run(*call, "--json").json[0]
    assert again["added_words"] == 3 and again["better"] is True and again["ended"] == "budget"
    assert again["after"]["perplexity"] < again["before"]["perplexity"]
    assert f"after {again['after']['perplexity']:,.2f} (forward {again['after']['forward']:,.2f}" in scores
    assert "this training is finished; nothing to do. To train for longer, give --" in run(*call).err
    changed = one_sentence(run(*call[:-4], "--learning-rate", "0.02"))
    assert "other settings" in changed and "(--learning-rate: 0.01 in the run, 0.02 now)" in changed


def test_without_an_output_layer(run, text: Path, tmp_path: Path) -> None:
    start = tiny(output=False).save_pretrained(tmp_path / "start")
    call = ["adapt", start, "-c", text, "-o", tmp_path / "out", *QUICK, "--vocabulary-size", "9", "--freeze", "tokens"]
    result = run(*call)
    assert result.code == 0, result
    assert "added 0 words\nheld-out perplexity: before: no output layer, after " in result.out
    assert len(polyseme.load(tmp_path / "out").vocabulary) == 9
    assert run(*call, "--json").json[0]["before"] is None


def test_hdf5_and_back(run, text: Path, tmp_path: Path) -> None:
    source = write_bilm(tmp_path / "elmo", softmax=True, scale=0.8)
    result = run("adapt", source, "-c", text, "-o", tmp_path / "out", *QUICK, "--new-words", "2", "--negatives", "9")
    assert result.code == 0 and "takes text split at spaces, one sentence per line" in result.err
    assert "for raw text add --splitter english" in result.err
    assert "added 2 words" in result.out
    assert run("convert", tmp_path / "out", tmp_path / "home", "--to", "bilm").code == 0
    back = polyseme.load(tmp_path / "home")
    assert len(back.vocabulary) == back.output.size == 14 and back.splitter.name == "whitespace"
    assert json.loads(run("info", tmp_path / "out", "--json").out)["vocabulary"] == 14
    assert run("score", "the stent of the river .", "--model", tmp_path / "home").code == 0


@pytest.mark.slow  # tests/pretraining/test_adapt.py has the same without the command line
def test_no_gain_is_reported(run, text: Path, tmp_path: Path) -> None:
    good = ["adapt", tiny().save_pretrained(tmp_path / "start"), "-c", text, "-o", tmp_path / "good", "--sentences", "lines"]
    assert run(*good, "--epochs", "20", "--learning-rate", "0.01").code == 0
    bad = ["adapt", tmp_path / "good", "-c", text, "-o", tmp_path / "bad", "--sentences", "lines"]
    result = run(*bad, "--epochs", "1", "--learning-rate", "3")
    assert result.code == 0 and f"no better than the untouched model: {tmp_path / 'bad'} holds the best" in result.out
    assert polyseme.load(tmp_path / "bad").output is not None


def test_mistakes(run, model, text: Path, tmp_path: Path) -> None:
    call = ["adapt", model, "--corpus", text, "--out", tmp_path / "out"]
    assert "no such file or folder" in one_sentence(run("adapt", model, "-c", tmp_path / "none", "-o", tmp_path / "out"))
    one_sentence(run("adapt", tmp_path / "none", "-c", text, "-o", tmp_path / "out"))
    assert "give exactly one of" in one_sentence(run(*call, "--epochs", "1", "--words", "9"), 2)
    wrong = run(*call, "--freeze", "layer3")
    assert wrong.code == 2 and wrong.err.splitlines()[-1].startswith("polyseme: unknown layer group 'layer3'")
    assert run(*call, "--batching", "packed", "--epochs", "1").code == 0
    assert "choose another folder" in one_sentence(run("adapt", model, "-c", text, "-o", model), 2)
    assert not (Path(model) / "run").exists()
    assert json.loads((tmp_path / "out" / "config.json").read_text())["splitter"] == "english"


def test_a_ulmfit_goes_on_at_rates_by_layer(run, model, text: Path, tmp_path: Path) -> None:
    start = ulmfit().save_pretrained(tmp_path / "start")
    call = ["adapt", start, "-c", text, "-o", tmp_path / "out", "--epochs", "2", "--dropout-multiplier", "0.5"]
    result = run(*call)
    assert result.code == 0 and "added 4 words" in result.out and "held-out perplexity: before" in result.out, result
    found = polyseme.load(tmp_path / "out")
    assert found.kind == "ulmfit" and "stent" in found.vocabulary
    assert run(*call, "--json").json[0]["added_words"] == 4
    wrong = run("adapt", start, "-c", text, "-o", tmp_path / "a", "--batching", "packed", "--dropout", "0.1")
    assert "--batching and --dropout apply only to ELMo models, and this one is ulmfit" in one_sentence(wrong, 2)
    wrong = run("adapt", model, "-c", text, "-o", tmp_path / "a", "--layer-decay", "2")
    assert "--layer-decay applies only to ULMFiT models" in one_sentence(wrong, 2)
    wrong = run("adapt", start, "-c", text, "-o", tmp_path / "a", "--dropout-multiplier", "-1")
    assert "--dropout-multiplier is -1.0; allowed: 0 or more" in one_sentence(wrong, 2)
