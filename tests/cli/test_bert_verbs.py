"""`polyseme pretrain bert`, `polyseme pretrain gpt` and `polyseme fill`."""

import json

import pytest

from tests.cli.running import one_sentence
from tests.encoders.small_subwords import bert, gpt

pytest.importorskip("transformers", reason="needs the extra `transformers`")
TEXT = "The bank of the river . It is wide .\nMoney in the bank . It is safe .\nA zebra sat . It ran .\n"
SMALL = ["--max-length", "16", "--words", "40"]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(TEXT)
    return path


def test_pretrain_and_fill(run, text, tmp_path):
    out = tmp_path / "m"
    call = ["pretrain", "bert", "--corpus", text, "--out", out, "--vocabulary-size", "60", *SMALL]
    result = run(*call, "--whole-word-mask", "--json")
    assert result.code == 0 and json.loads(result.out)["ended"] == "budget" and "masked_perplexity" in result.out
    assert run(*call, "--whole-word-mask").out.startswith(f"{out}: ")  # finished already
    assert "--whole-word-mask: True in the run, False now" in one_sentence(run(*call))
    (filled,) = run("fill", "The [MASK] of the [MASK] .", "--model", out, "--count", "2", "--json").json
    assert [len(fillings) for fillings in filled["fillings"]] == [2, 2]
    assert set(filled["fillings"][0][0]) == {"piece", "probability", "log_prob"}
    assert "[MASK] 2" in run("fill", "The [MASK] of the [MASK] .", "--model", out).out
    (info,) = run("info", out, "--json").json
    assert info["encoder"] == "bert" and info["network"] == "bert" and info["format"] == "polyseme"
    assert info["language_model"] is False and run("score", "a", "--model", out).code == 1


def test_pretrain_gpt(run, text, tmp_path):
    out = tmp_path / "m"
    result = run("pretrain", "gpt", "--corpus", text, "--out", out, "--vocabulary-size", "280", *SMALL)
    assert result.code == 0 and "word perplexity" in result.out
    assert run("perplexity", text, "--model", out).code == 0
    assert "left to right" in run("score", "The bank .", "--model", out, "--explain").out
    call = ("pretrain", "bert", "--corpus", text, "--out", out, "--vocabulary-size", "60", *SMALL)
    assert "(gpt, not bert): choose another folder" in one_sentence(run(*call, "--accept-changes"))


def test_fill_says_what_is_wrong(run, tmp_path):
    bert().save_pretrained(tmp_path / "b")
    gpt().save_pretrained(tmp_path / "g")
    assert "the text has no [MASK]" in one_sentence(run("fill", "no mask", "--model", tmp_path / "b"), 2)
    message = one_sentence(run("fill", "[MASK]", "--model", tmp_path / "g"))
    assert "is of kind gpt, which has no masked-word prediction: give a BERT" in message


def test_fill_takes_the_bert_of_the_models_by_name(run, tmp_path, monkeypatch):
    for name in ("en-bert", "zh-bert"):
        bert().save_pretrained(tmp_path / name)
    folders = {name: tmp_path / name for name in ("en-bert", "zh-bert")}
    monkeypatch.setattr("polyseme.encoders.shipped.distributed_models", lambda: folders)
    for text, name in (("The [MASK] of it.", "en-bert"), ("今天[MASK]很好。", "zh-bert")):
        found = run("fill", text)
        assert found.code == 0 and found.err == f"polyseme: this uses --model {name}\n"
    folders.clear()
    told = one_sentence(run("fill", "The [MASK] of it."))
    assert "en-bert is a model of polyseme-models, which is" in told and "or name a BERT of your own: --model my-bert" in told


def test_published_checkpoints_everywhere(run, tmp_path):
    model = gpt()
    model.network.save_pretrained(tmp_path)
    model.subwords.tokenizer.save_pretrained(tmp_path)
    result = run("embed", "the bank of the river", "--model", tmp_path)
    assert result.code == 0 and "5 words" in result.out
    result = run("score", "the bank of the river", "--model", tmp_path)
    assert result.code == 0 and result.out
    (info,) = run("info", tmp_path, "--json").json
    assert info["format"] == "transformers"


def test_vocabularies_that_are_too_small(run, text, tmp_path):
    call = ["--corpus", text, "--out", tmp_path / "m", *SMALL]
    message = one_sentence(run("pretrain", "gpt", *call, "--vocabulary-size", "100"), 2)
    assert "--vocabulary-size is 100" in message and "257" in message
    assert not (tmp_path / "m").exists()
    result = run("pretrain", "bert", *call, "--vocabulary-size", "20")
    assert result.code == 0 and "--vocabulary-size 20" in result.err
