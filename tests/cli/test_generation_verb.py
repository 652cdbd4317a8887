"""Generation from the command line: train on two files or two columns, predict, evaluate."""

import pytest

import polyseme
from polyseme.base.errors import PolysemeError
from polyseme.studies.sets import SETS
from polyseme.tasks.generation_config import DecodingConfig
from polyseme.tasks.registry import configure_task
from tests.cli.running import one_sentence

pytest.importorskip("sacrebleu", reason="sacrebleu is missing: pip install 'polyseme[generation]'")
SMALL = ["--epochs", "1", "--hidden-size", "8", "--word-dim", "4", "--encoder", "none", "--target-dim", "8"]


def test_train_predict_and_evaluate(run, tmp_path):
    (tmp_path / "train.en").write_text("a dog runs .\na cat sits .\n" * 6)
    (tmp_path / "train.de").write_text("Ein Hund läuft.\nEine Katze sitzt.\n" * 6)
    call = ["train", "generation", "--data", tmp_path / "train", *SMALL, "--out", tmp_path / "run"]
    assert "give the name that they share and their suffixes" in one_sentence(run(*call), 2)
    (said,) = run(*call, "--source", "en", "--target", "de", "--num-beams", "2", "--max-length", "5", "--tied", "--json").json
    assert said["task"] == "generation" and list(said["scores"]["dev"]) == ["bleu", "chrf"]
    task = polyseme.load_task(tmp_path / "run")
    assert (task.config.decoding.num_beams, task.config.tied, task.config.target_splitter) == (2, True, "english")
    expected = task.predict(["a dog sits .", "a"])
    assert run("predict", tmp_path / "run", "a dog sits .", "a").out == "".join(f"{each.text}\n" for each in expected)
    said = run("predict", tmp_path / "run", "a dog sits .", "--json").json
    assert said == [{"text": "a dog sits .", "answer": expected[0].text, "score": pytest.approx(expected[0].score, abs=1e-5)}]
    evaluated = run("evaluate", tmp_path / "run", tmp_path / "train")
    assert evaluated.code == 0 and "12 examples" in evaluated.out.splitlines()[0] and "bleu" in evaluated.out.splitlines()[1]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run with a beam of 4, and its data."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "data.tsv").write_text("a dog runs .\tEin Hund läuft.\na cat sits .\tEine Katze sitzt.\n" * 6)
    options = {"epochs": 1, "hidden_size": 8, "word_dim": 4, "target_dim": 8, "num_beams": 4, "max_length": 6}
    polyseme.train("generation", folder / "data.tsv", out=folder / "run", encoder="none", **options)
    return folder


def test_how_predict_decodes(run, trained):
    task, texts = polyseme.load_task(trained / "run"), ["a dog runs .", "a cat"]
    ask = ["predict", trained / "run", *texts]
    expected = task.predict(texts, decoding=task.decoding.replace(num_return_sequences=3, length_penalty=0.5))
    blocks = ["".join(f"{each.text}\n" for each in [first, *first.others]) for first in expected]
    assert run(*ask, "--num-return-sequences", "3", "--length-penalty", "0.5").out == "\n".join(blocks)
    first, _ = run(*ask, "--num-return-sequences", "3", "--length-penalty", "0.5", "--json").json
    assert [first["answer"], *(each["answer"] for each in first["others"])] == blocks[0].splitlines()
    assert run(*ask, "--max-length", "1", "--num-beams", "1").out.splitlines() == [
        each.text for each in task.predict(texts, decoding=task.decoding.replace(max_length=1, num_beams=1))
    ]
    sampling = ["--strategy", "sample", "--temperature", "2", "--top-k", "9", "--top-p", "0.9", "--sampling-seed", "7"]
    drawn = DecodingConfig(strategy="sample", temperature=2, top_k=9, top_p=0.9, sampling_seed=7, num_beams=4, max_length=6)
    said = run(*ask, *sampling, "--json").json
    assert [each["answer"] for each in said] == [each.text for each in task.predict(texts, decoding=drawn)]


def test_how_evaluate_decodes(run, trained):
    call = ["evaluate", trained / "run", trained / "data.tsv", "--json"]
    (usual,), (one,) = run(*call).json, run(*call, "--max-length", "1").json
    assert all(len(error["wrong"][0]["predicted"].split()) <= 1 for error in one["errors"]) and one["errors"]
    assert usual["scores"] != one["scores"]


def test_decoding_options_are_those_of_one_call(trained):
    task, texts = polyseme.load_task(trained / "run"), ["a dog runs .", "a cat"]
    before, usual = task.decoding, [each.text for each in task.predict(texts)]
    polyseme.evaluate(task, trained / "data.tsv", max_length=1)
    lazy = polyseme.predict(task, texts, max_length=1)
    assert task.decoding == before and [each.text for each in task.predict(texts)] == usual
    assert [str(each) for each in lazy] != usual
    with pytest.raises(PolysemeError, match="no_such"):
        polyseme.evaluate(task, trained / "no_such", max_length=1)
    assert task.decoding == before


def test_blocks_of_answers_are_of_one_length(run, trained, tmp_path):
    (tmp_path / "in").write_text("a dog\n\na cat\n")
    for strategy in ("beam", "sample"):
        lines = run(
            "predict", trained / "run", "--input", tmp_path / "in", "--num-return-sequences", "3", "--strategy", strategy
        ).out.split("\n")
        assert len(lines) == 12 and lines[3:8] == [""] * 5 and lines[11] == ""  # a line between blocks, and the last line's end
    _, blank, _ = run("predict", trained / "run", "--input", tmp_path / "in", "--num-return-sequences", "3", "--json").json
    assert blank["others"] == [{"answer": "", "score": None}] * 2


def test_evaluate_reads_other_layouts(run, trained, tmp_path):
    """The task was trained from two columns without a header."""
    call = ["evaluate", trained / "run"]
    usual = run(*call, trained / "data.tsv", "--json").json[0]["scores"]
    (tmp_path / "a.tsv").write_text("Ein Hund läuft.\t1\ta dog runs .\nEine Katze sitzt.\t2\ta cat sits .\n" * 6)
    turned = run(*call, tmp_path / "a.tsv", "--source", "2", "--target", "0", "--json").json[0]
    assert turned["examples"] == 12 and turned["scores"] == pytest.approx(usual)
    (tmp_path / "b.en").write_text("a dog runs .\na cat sits .\n" * 6)
    (tmp_path / "b.de").write_text("Ein Hund läuft.\nEine Katze sitzt.\n" * 6)
    files = run(*call, tmp_path / "b", "--source", "en", "--target", "de", "--json").json[0]
    assert files["scores"] == pytest.approx(usual)
    message = one_sentence(run(*call, tmp_path / "a.tsv", "--source", "en", "--target", "de"), 2)
    assert "has no column 'en' for --source" in message and "a number from 0" in message
    (tmp_path / "c.tsv").write_text("it\tes\ndog\tHund\n")
    assert "--header or --no-header" in one_sentence(run(*call, tmp_path / "c.tsv"))
    assert run(*call, tmp_path / "c.tsv", "--no-header", "--json").json[0]["examples"] == 2


def test_wrong_decoding(run, trained):
    call = ["predict", trained / "run", "a dog"]
    assert "--num-return-sequences 5 exceeds --num-beams 4" in one_sentence(run(*call, "--num-return-sequences", "5"), 2)
    assert "--num-beams is 0; allowed: 1 or more" in one_sentence(run(*call, "--num-beams", "0"), 2)
    assert "--length-penalty is nan" in one_sentence(run(*call, "--length-penalty", "nan"), 2)
    assert "--top-p is 2.0" in one_sentence(run(*call, "--strategy", "sample", "--top-p", "2"), 2)
    assert "--strategy is 'greedy'; allowed: beam, sample" in one_sentence(run(*call, "--strategy", "greedy"), 2)
    message = one_sentence(run(*call, "--temperature", "2", "--top-k", "3"), 2)
    assert "--temperature, --top-k need --strategy sample" in message
    message = one_sentence(run(*call, "--strategy", "sample", "--num-beams", "2"), 2)
    assert "--num-beams" in message and "--strategy beam" in message


def test_only_generation_decodes(run, trained_tasks):
    message = "--num-beams, --top-p: only generation has decoding options, and this task is classification"
    for call in (["predict", "a dog"], ["evaluate", trained_tasks / "texts.tsv"]):
        call.insert(1, trained_tasks / "classifier")
        assert message in one_sentence(run(*call, "--num-beams", "2", "--top-p", "0.5"), 2)
        assert run(*call).code == 0
    message = one_sentence(run(*call, "--source", "0", "--target", "1"), 2)
    assert "--source, --target: data files of classification have no such option" in message


def test_plain_text_is_refused(run, tmp_path):
    (tmp_path / "plain").write_text("a dog runs .\n" * 9)
    message = one_sentence(run("train", "generation", "--data", tmp_path / "plain", *SMALL, "--out", tmp_path / "run"))
    assert "no tab" in message and "--source en and --target de" in message


def test_bleu_tokenizer(run, tmp_path):
    (tmp_path / "a.tsv").write_text("source\ttarget\n" + "a dog runs .\tEin Hund läuft.\na cat sits .\tEine Katze sitzt.\n" * 3)
    call = ["train", "generation", "--data", tmp_path / "a.tsv", *SMALL, "--out", tmp_path / "run"]
    message = "--bleu-tokenizer is 'de'; allowed: 13a, intl, zh, char, none"
    assert message in one_sentence(run(*call, "--bleu-tokenizer", "de"), 2)
    result = run(*call, "--bleu-tokenizer", "char", "--header")
    assert result.code == 0 and "1 of 6 examples, drawn at random" in result.err
    assert polyseme.load_task(tmp_path / "run").config.bleu_tokenizer == "char"


def test_the_set(tmp_path, monkeypatch):
    labelled = SETS["multi30k"]
    config, _ = configure_task((labelled.task), labelled.options)
    assert (config.source, config.target) == ("en", "de")
    monkeypatch.setenv("POLYSEME_DATA", str(tmp_path))
    folder = tmp_path / "tasks" / "mt_multi30k"
    folder.mkdir(parents=True)
    for name in ("train.en.gz", "train.de.gz", "val.en", "val.de", "test_2016_flickr.en"):
        (folder / name).touch()
    with pytest.raises(PolysemeError, match=r"test_2016_flickr\.de: no such file.*github\.com/multi30k"):
        labelled.files()
    (folder / "test_2016_flickr.de").touch()
    assert labelled.files()["train"] == folder / "train"
