"""Linear heads on fine-tuned encoders from the command line, and `train choices`: train, predict, evaluate."""

import json

import pytest

import polyseme
from tests.cli.running import one_sentence
from tests.encoders.small_subwords import bert, gpt

SMALL = ["--epochs", "1", "--mode", "finetune", "--decay", "slanted", "--warmup", "0.1"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("linear")
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


POS = ["--network-layers", "0", "--no-crf", "--no-task-embeddings", "--layers", "top"]


@pytest.mark.parametrize(
    ("task", "file", "encoder", "options", "texts"),
    [
        # the same network as the next, without the language model
        pytest.param("classification", "texts.tsv", "bert", ["--network", "linear"], ["the bank"], marks=pytest.mark.slow),
        ("classification", "texts.tsv", "gpt", ["--network", "linear", "--lm-weight", "0.5"], ["the bank"]),
        pytest.param(
            *("pairs", "pairs.tsv", "gpt", ["--network", "linear", "--both-orders", "--goal", "score"], ["the", "bank"]),
            marks=pytest.mark.slow,
        ),
        pytest.param("pos", "tags.conll", "bert", POS, ["a bank"], marks=pytest.mark.slow),
        ("reading", "squad.json", "bert", ["--network", "linear"], ["the ?", "the bank"]),
        pytest.param(
            *("choices", "choices.jsonl", "gpt", ["--head", "tanh"], ["the bank", "money", "mat"]), marks=pytest.mark.slow
        ),
    ],
)
def test_train_predict_and_evaluate(run, files, tmp_path, task, file, encoder, options, texts):
    call = ["--data", files / file, "--dev", files / file, "--encoder", files / encoder, *SMALL, *options]
    done = run("train", task, *call, "--out", tmp_path / "run", "--json")
    assert done.code == 0, done.err
    (result,) = done.json
    assert result["ended"] == "budget" and polyseme.load_task(tmp_path / "run").features.words.dim == 0
    predicted = run("predict", tmp_path / "run", *texts)
    assert predicted.code == 0 and predicted.out.strip()
    assert run("evaluate", tmp_path / "run", files / file).code == 0
    again = run("train", task, *call, "--out", tmp_path / "run", "--json")  # finished already: the same scores
    assert again.json[0]["scores"] == result["scores"]


def test_called_wrongly(run, files, tmp_path):
    call = ["train", "classification", "--data", files / "texts.tsv", "--encoder", files / "bert", "--out", tmp_path / "run"]
    message = one_sentence(run(*call, "--lm-weight", "0.5"), 2)
    assert "--lm-weight" in message and "--network linear" in message
    assert "--word-dim" in one_sentence(run(*call, "--network", "linear", "--word-dim", "5"), 2)
    wrong = run(*call, "--network", "linear", "--mode", "finetune", "--lm-weight", "0.5")
    assert wrong.code == 1 and "--lm-weight" in wrong.err and "bert" in wrong.err
    message = one_sentence(run(*call, "--decay", "slanted", "--warmup", "0"), 2)
    assert "--warmup" in message and "0.1" in message
