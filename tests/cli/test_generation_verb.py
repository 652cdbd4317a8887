"""Generation from the command line: trained on two files or two columns, asked and judged."""

import dataclasses
import typing

import pytest
from polyseme.cli.decoding_options import ONLY, AnswersOptions, DecodingOptions, Way
from polyseme.cli.task_options import ELSEWHERE, BleuWords, GenerationOptions

import polyseme
from polyseme.base.errors import PolysemeError
from polyseme.metrics.translation import BleuTokenizer
from polyseme.studies.sets import SETS
from polyseme.tasks.generation_config import DecodingConfig
from polyseme.tasks.registry import configure_task, task_options
from tests.cli.running import one_sentence

pytest.importorskip("sacrebleu", reason="sacrebleu is missing: pip install 'polyseme[generation]'")
SMALL = ["--epochs", "1", "--hidden-size", "8", "--word-dim", "4", "--encoder", "none", "--target-dim", "8"]


def test_trained_asked_and_judged(run, tmp_path):
    (tmp_path / "train.en").write_text("a dog runs .\na cat sits .\n" * 6)
    (tmp_path / "train.de").write_text("Ein Hund läuft.\nEine Katze sitzt.\n" * 6)
    call = ["train", "generation", "--data", tmp_path / "train", *SMALL, "--out", tmp_path / "run"]
    assert "give the name that they share, and their endings" in one_sentence(run(*call), 2)
    (said,) = run(*call, "--source", "en", "--target", "de", "--num-beams", "2", "--max-length", "5", "--tied", "--json").json
    assert said["task"] == "generation" and list(said["scores"]["dev"]) == ["bleu", "chrf"]
    task = polyseme.load_task(tmp_path / "run")
    assert (task.config.decoding.num_beams, task.config.tied, task.config.target_splitter) == (2, True, "english")
    expected = task.predict(["a dog sits .", "a"])
    assert run("predict", tmp_path / "run", "a dog sits .", "a").out == "".join(f"{each.text}\n" for each in expected)
    said = run("predict", tmp_path / "run", "a dog sits .", "--json").json
    assert said == [{"text": "a dog sits .", "answer": expected[0].text, "score": pytest.approx(expected[0].score, abs=1e-5)}]
    judged = run("evaluate", tmp_path / "run", tmp_path / "train")
    assert judged.code == 0 and "12 examples" in judged.out.splitlines()[0] and "bleu" in judged.out.splitlines()[1]


@pytest.fixture(scope="module")
def pupil(tmp_path_factory):
    """A run with a beam of 4, and its data."""
    folder = tmp_path_factory.mktemp("pupil")
    (folder / "data.tsv").write_text("a dog runs .\tEin Hund läuft.\na cat sits .\tEine Katze sitzt.\n" * 6)
    options = {"epochs": 1, "hidden_size": 8, "word_dim": 4, "target_dim": 8, "num_beams": 4, "max_length": 6}
    polyseme.train("generation", folder / "data.tsv", out=folder / "run", encoders="none", **options)
    return folder


def test_how_predict_decodes(run, pupil):
    task, texts = polyseme.load_task(pupil / "run"), ["a dog runs .", "a cat"]
    ask = ["predict", pupil / "run", *texts]
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


def test_how_evaluate_decodes(run, pupil):
    call = ["evaluate", pupil / "run", pupil / "data.tsv", "--json"]
    (usual,), (one,) = run(*call).json, run(*call, "--max-length", "1").json
    assert all(len(error["wrong"][0]["answer"].split()) <= 1 for error in one["errors"]) and one["errors"]
    assert usual["scores"] != one["scores"]


def test_blocks_of_answers_are_of_one_length(run, pupil, tmp_path):
    (tmp_path / "in").write_text("a dog\n\na cat\n")
    for way in ("beam", "sample"):
        lines = run(
            "predict", pupil / "run", "--input", tmp_path / "in", "--num-return-sequences", "3", "--strategy", way
        ).out.split("\n")
        assert len(lines) == 12 and lines[3:8] == [""] * 5 and lines[11] == ""  # a line between blocks, and the last line's end
    _, blank, _ = run("predict", pupil / "run", "--input", tmp_path / "in", "--num-return-sequences", "3", "--json").json
    assert blank["others"] == [{"answer": "", "score": None}] * 2


def test_evaluate_reads_other_layouts(run, pupil, tmp_path):
    """The pupil learned from two columns without a header."""
    call = ["evaluate", pupil / "run"]
    usual = run(*call, pupil / "data.tsv", "--json").json[0]["scores"]
    (tmp_path / "a.tsv").write_text("Ein Hund läuft.\t1\ta dog runs .\nEine Katze sitzt.\t2\ta cat sits .\n")
    turned = run(*call, tmp_path / "a.tsv", "--source", "2", "--target", "0", "--json").json[0]
    assert turned["examples"] == 2 and turned["scores"] == pytest.approx(usual)
    (tmp_path / "b.en").write_text("a dog runs .\na cat sits .\n")
    (tmp_path / "b.de").write_text("Ein Hund läuft.\nEine Katze sitzt.\n")
    files = run(*call, tmp_path / "b", "--source", "en", "--target", "de", "--json").json[0]
    assert files["scores"] == pytest.approx(usual)
    told = one_sentence(run(*call, tmp_path / "a.tsv", "--source", "en", "--target", "de"), 2)
    assert "has no column 'en'" in told and "by number: --source 0 --target 1" in told and "its columns" not in told
    (tmp_path / "c.tsv").write_text("it\tes\ndog\tHund\n")
    assert "--header or --no-header" in one_sentence(run(*call, tmp_path / "c.tsv"))
    assert run(*call, tmp_path / "c.tsv", "--no-header", "--json").json[0]["examples"] == 2


def test_only_generation_has_a_source(run, tmp_path):
    (tmp_path / "t.tsv").write_text("text\tlabel\na dog\tyes\na cat\tno\n" * 3)
    options = {"epochs": 1, "hidden_size": 4, "word_dim": 4, "network": "pooled"}
    polyseme.train("classification", tmp_path / "t.tsv", out=tmp_path / "run", encoders="none", **options)
    told = one_sentence(run("evaluate", tmp_path / "run", tmp_path / "t.tsv", "--source", "0", "--target", "1"), 2)
    assert "--source, --target: the files of this task, classification, have no such thing; leave it out" in told


def test_decoding_that_cannot_be(run, pupil):
    ask = ["predict", pupil / "run", "a dog"]
    assert "--num-return-sequences 5 exceeds --num-beams 4" in one_sentence(run(*ask, "--num-return-sequences", "5"), 2)
    assert "--num-beams is 0; allowed: 1 or more" in one_sentence(run(*ask, "--num-beams", "0"), 2)
    assert "--length-penalty is nan" in one_sentence(run(*ask, "--length-penalty", "nan"), 2)
    assert "--top-p is 2.0" in one_sentence(run(*ask, "--strategy", "sample", "--top-p", "2"), 2)
    assert "'greedy' is not one of 'beam', 'sample'" in one_sentence(run(*ask, "--strategy", "greedy"), 2)
    idle = one_sentence(run(*ask, "--temperature", "2", "--top-k", "3"), 2)
    assert (
        "--temperature, --top-k: of --strategy sample, but the strategy is beam; give --strategy sample, or leave it out"
        in idle
    )
    assert "--num-beams: of --strategy beam, but the strategy is sample" in one_sentence(
        run(*ask, "--strategy", "sample", "--num-beams", "2"), 2
    )


def test_only_generation_decodes(run, tmp_path):
    (tmp_path / "t.tsv").write_text("text\tlabel\na dog\tyes\na cat\tno\n" * 3)
    options = {"epochs": 1, "hidden_size": 4, "word_dim": 4, "network": "pooled"}
    polyseme.train("classification", tmp_path / "t.tsv", out=tmp_path / "run", encoders="none", **options)
    told = "--num-beams, --top-p: of tasks that write text (generation), but this one is classification; leave it out"
    for call in (["predict", tmp_path / "run", "a dog"], ["evaluate", tmp_path / "run", tmp_path / "t.tsv"]):
        assert told in one_sentence(run(*call, "--num-beams", "2", "--top-p", "0.5"), 2)
        assert run(*call).code == 0


def test_decoding_options_are_those_of_the_config():
    assert {each.name for each in dataclasses.fields(AnswersOptions)} == {f.name for f in dataclasses.fields(DecodingConfig)}
    ways = typing.get_args(typing.get_type_hints(DecodingConfig)["strategy"])
    assert tuple(Way) == ways == tuple(ONLY)
    assert {name for names in ONLY.values() for name in names} < {each.name for each in dataclasses.fields(DecodingOptions)}


def test_plain_text_is_refused(run, tmp_path):
    (tmp_path / "plain").write_text("a dog runs .\n" * 9)
    told = one_sentence(run("train", "generation", "--data", tmp_path / "plain", *SMALL, "--out", tmp_path / "run"))
    assert "its first line has no tab" in told and "--source en --target de" in told and "kind" not in told


def test_options_are_those_of_the_config():
    known = task_options("generation")
    assert all(name in known or name in ELSEWHERE for name in GenerationOptions.__dataclass_fields__)
    given = GenerationOptions(
        data="a", out="b", network_layers=2, attention="additive", input_feeding=True, num_beams=3
    ).chosen()
    config, _ = configure_task("generation", given)
    assert (config.layers, config.attention, config.input_feeding, config.decoding.num_beams) == (2, "additive", True, 3)
    usual = configure_task("generation", {})[0]  # as the help tells
    assert (usual.layers, usual.decoder_layers, usual.target_dim, usual.min_count, usual.label_smoothing) == (1, 1, 256, 2, 0)
    assert (usual.decoding.num_beams, usual.decoding.max_length) == (5, 200)


def test_words_of_bleu(run, tmp_path):
    assert tuple(BleuWords) == typing.get_args(BleuTokenizer)
    (tmp_path / "a.tsv").write_text("source\ttarget\n" + "a dog runs .\tEin Hund läuft.\na cat sits .\tEine Katze sitzt.\n" * 3)
    call = ["train", "generation", "--data", tmp_path / "a.tsv", *SMALL, "--out", tmp_path / "run"]
    assert "'de' is not one of '13a', 'intl', 'zh', 'char', 'none'" in one_sentence(run(*call, "--bleu-tokenizer", "de"), 2)
    result = run(*call, "--bleu-tokenizer", "char", "--header")
    assert result.code == 0 and "the last 1 of 6 examples" in result.err
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
