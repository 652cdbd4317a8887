"""`polyseme probe`, on a tiny model."""

import json

import pytest

from tests.cli.running import one_sentence

TAGS = "the D\nbank N\nof P\nthe D\nriver N\n\na D\nbank N\n. .\n\n"
SENSE = {"i": 1, "n": 1, "lemma": "bank", "pos": "NN"}


@pytest.fixture
def files(tmp_path):
    (tmp_path / "train.conll").write_text(TAGS * 5)
    (tmp_path / "test.conll").write_text(TAGS)
    rows = [
        {"words": [word, "bank"], "instances": [{**SENSE, "synsets": [synset]}]}
        for word, synset in (("the", "1-n"), ("a", "2-n"))
    ]
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("dev", "test"):
        (tmp_path / f"{name}.data.txt").write_text("bank\tN\t1-0\tthe bank\tbank\nbank\tN\t0-0\tbank\tbank\n")
        (tmp_path / f"{name}.gold.txt").write_text("F\nT\n")
    header = "word1\tindex1\tsentence1\tword2\tindex2\tsentence2\tscore"
    (tmp_path / "pairs.tsv").write_text(f"{header}\nbank\t0\tbank\tbank\t0\tbank\t9\nbank\t0\tbank\triver\t1\ta river\t2\n")
    return tmp_path


def test_tags(run, model, files):
    call = ("probe", "tags", "--train", files / "train.conll", "--test", files / "test.conll", "-m", model, "--column", "-1")
    call += ("--min-steps", 60)
    result = run(*call, "--json", "--plot", files / "a.png")
    (found,) = result.json
    assert result.code == 0 and list(found["rows"]) == ["layer 0", "layer 1", "layer 2", "mix"]
    assert found["rows"]["layer 0"]["accuracy"] == found["baselines"]["most frequent tag"]["accuracy"] == 1.0
    assert found["facts"]["training_words"] == 40 and len(found["facts"]["mix_weights"]) == 3
    assert (files / "a.png").read_bytes().startswith(b"\x89PNG")
    shown = run(*call).out
    assert "layer 0                1.0000" in shown and "mix weights" in shown


def test_tags_with_the_models_own_words(run, model, files):
    (files / "odd.conll").write_text("isn't X\nthe D\nri A\nver. B\n")
    call = ("probe", "tags", "--train", files / "odd.conll", "--test", files / "odd.conll", "-m", model, "--json")
    call += ("--min-steps", 5)
    assert run(*call, "--resplit").json[0]["facts"]["test_words"] == 4
    assert "choose another --splitter" in one_sentence(run(*call, "--resplit", "--splitter", "whitespace"), 2)


def test_senses(run, model, files):
    each = run(
        "probe",
        "senses",
        "--train",
        files / "one.jsonl",
        "--train",
        files / "two.jsonl",
        "--test",
        files / "one.jsonl",
        "-m",
        model,
        "--json",
    )
    glob = run("probe", "senses", "--train", files / "*.jsonl", "--test", files / "one.jsonl", "-m", model, "--json")
    assert each.code == 0 and each.json == glob.json
    found = each.json[0]
    assert found["facts"] == {"test_words": 2, "seen_words": 2, "training_words": 4}
    assert found["rows"]["layer 0"]["accuracy on seen"] == 0.5 and found["rows"]["layer 1"]["accuracy on seen"] == 1.0


def test_wic(run, model, files):
    result = run("probe", "wic", "--dev", files / "dev.data.txt", "--test", files / "test.data.txt", "-m", model)
    assert result.code == 0 and "chosen on dev" in result.out and "one answer" in result.out
    (files / "test.gold.txt").rename(files / "answers")
    call = ("probe", "wic", "--dev", files / "dev.data.txt", "--test", files / "test.data.txt", "-m", model, "--json")
    assert "are missing" in one_sentence(run(*call), 2)
    found = run(*call, "--test-gold", files / "answers").json[0]
    assert found["rows"]["layer 0"]["accuracy"] == 0.5 and found["rows"]["layer 1"]["accuracy"] == 1.0


def test_similarity(run, model, files):
    result = run("probe", "similarity", files / "pairs.tsv", "-m", model, "--json")
    assert result.json[0]["rows"]["layer 0"]["Spearman"] == pytest.approx(1)


def test_without_a_model_it_is_the_english_one(run, model, files, shipped):
    call = ("probe", "similarity", files / "pairs.tsv", "--json")
    (found,), (expected,) = run(*call).json, run(*call, "-m", model).json
    assert found["rows"] == expected["rows"]


def test_chinese_data_takes_the_chinese_model(run, files, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("polyseme.api.texts.loaded", lambda model: asked.append(model.name))
    (tmp_path / "zh.tsv").write_text("苹果\t香蕉\t7\n汽车\t火车\t6\n石头\t音乐\t1\n")
    for options in ((), ("-m", "en")):
        run("probe", "words", tmp_path / "zh.tsv", *options)
    assert asked == ["zh", "en"]


def test_called_wrongly(run, model, files):
    similarity = ("probe", "similarity", files / "pairs.tsv")
    assert "allowed: .png" in one_sentence(run(*similarity, "-m", model, "--plot", "a.txt"), 2)
    assert "expected the header" in one_sentence(run("probe", "similarity", files / "test.conll", "-m", model))
    tags = ("probe", "tags", "--train", files / "train.conll", "--test", files / "none", "-m", model)
    assert "No such file" in one_sentence(run(*tags))
    assert "columns have no names" in one_sentence(run(*tags, "--column", "upos"), 2)
