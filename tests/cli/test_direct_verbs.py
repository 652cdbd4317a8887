"""`polyseme train --network linear`, and `train choices`, from files to answers."""

import json

import pytest
from polyseme.cli.task_options import ELSEWHERE, ChoicesOptions, HeadOptions

import polyseme
from polyseme.tasks.registry import task_options
from tests.cli.running import one_sentence
from tests.encoders.small_subwords import bert, gpt

SMALL = ["--epochs", "1", "--mode", "finetune", "--decay", "slanted", "--warmup", "0.1"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("direct")
    (folder / "texts.tsv").write_text("text\tlabel\n" + "the bank\tgood\na river\tbad\n" * 3)
    (folder / "pairs.tsv").write_text("sentence1\tsentence2\tscore\n" + "the bank\ta bank\t4\na river\tmoney\t1\n" * 3)
    (folder / "tags.conll").write_text("the D\nbank N\n\na D\nriver N\n")
    asked = {"question": "the bank", "choices": ["money", "mat"], "answer": "money"}
    (folder / "choices.jsonl").write_text((json.dumps(asked) + "\n") * 4)
    answers = [{"text": "bank", "answer_start": 4}]
    paragraphs = [{"context": "the bank", "qas": [{"id": "1", "question": "the ?", "answers": answers}]}] * 4
    (folder / "squad.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    bert().save_pretrained(folder / "bert")
    gpt().save_pretrained(folder / "gpt")
    return folder


@pytest.mark.parametrize(
    ("task", "file", "encoder", "options", "asked"),
    [
        ("classification", "texts.tsv", "bert", ["--network", "linear"], ["the bank"]),
        ("classification", "texts.tsv", "gpt", ["--network", "linear", "--lm-weight", "0.5"], ["the bank"]),
        ("pairs", "pairs.tsv", "gpt", ["--network", "linear", "--both-orders", "--goal", "score"], ["the", "bank"]),
        (
            "pos",
            "tags.conll",
            "bert",
            ["--network-layers", "0", "--no-crf", "--no-task-embeddings", "--layers", "top"],
            ["a bank"],
        ),
        ("reading", "squad.json", "bert", ["--network", "linear"], ["the ?", "the bank"]),
        ("choices", "choices.jsonl", "gpt", ["--head", "tanh"], ["the bank", "money", "mat"]),
    ],
)
def test_from_files_to_answers(run, files, tmp_path, task, file, encoder, options, asked):
    call = ["--data", files / file, "--dev", files / file, "--encoder", files / encoder, *SMALL, *options]
    done = run("train", task, *call, "--out", tmp_path / "run", "--json")
    assert done.code == 0, done.err
    (said,) = done.json
    assert said["ended"] == "budget" and polyseme.load_task(tmp_path / "run").features.words.dim == 0
    found = run("predict", tmp_path / "run", *asked)
    assert found.code == 0 and found.out.strip()
    assert run("evaluate", tmp_path / "run", files / file).code == 0
    again = run("train", task, *call, "--out", tmp_path / "run", "--json")  # all is done: the same scores
    assert again.json[0]["scores"] == said["scores"]


def test_called_wrongly(run, files, tmp_path):
    call = ["train", "classification", "--data", files / "texts.tsv", "--encoder", files / "bert", "--out", tmp_path / "run"]
    assert "head and lm_weight are of the network 'linear'" in one_sentence(run(*call, "--lm-weight", "0.5"), 2)
    assert "leave out word_dim" in one_sentence(run(*call, "--network", "linear", "--word-dim", "5"), 2)
    wrong = run(*call, "--network", "linear", "--mode", "finetune", "--lm-weight", "0.5")
    assert wrong.code == 1 and "this bert tells no next words" in wrong.err
    assert "needs a warmup above 0 (published: 0.1)" in one_sentence(run(*call, "--decay", "slanted"), 2)


def test_options_are_those_of_the_config():
    for task in ("classification", "pairs", "choices"):
        known = task_options(task)
        assert all(name in known or name in ELSEWHERE for name in HeadOptions.__dataclass_fields__)
    assert all(name in known or name in ELSEWHERE for name in ChoicesOptions.__dataclass_fields__)
