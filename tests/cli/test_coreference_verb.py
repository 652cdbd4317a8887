"""Coreference from the command line: train, predict, evaluate."""

import json

import pytest

import polyseme
from polyseme.studies.sets import SETS
from polyseme.tasks.registry import configure_task
from tests.cli.running import one_sentence

DOCUMENT = {
    "sentences": [["Ann", "met", "Bob", "."], ["She", "saw", "him", "."]],
    "clusters": [[[0, 0], [4, 4]], [[2, 2], [6, 6]]],
}
SMALL = ["--epochs", "1", "--hidden-size", "8", "--word-dim", "4", "--encoder", "none"]
SMALL += ["--max-span-width", "2", "--max-antecedents", "4"]
TEXT = "Ann met Bob. She saw him."


def test_train_predict_and_evaluate(run, tmp_path):
    data = tmp_path / "train.jsonlines"
    data.write_text(f"{json.dumps(DOCUMENT)}\n" * 5)
    (said,) = run("train", "coref", "--data", data, "--dev", data, *SMALL, "--out", tmp_path / "run", "--json").json
    assert said["task"] == "coreference" and said["steps"] == 5
    assert list(said["scores"]["dev"]) == ["f1", "muc", "b3", "ceaf", "lea", "mentions"]
    task = polyseme.load_task(tmp_path / "run")
    (expected,) = task.predict([TEXT])
    result = run("predict", tmp_path / "run", TEXT, "Ann left.")
    blocks = result.out.split("\n\n")
    assert blocks[0].splitlines() == expected.to_lines(TEXT) and len(blocks) == 2
    (said,) = run("predict", tmp_path / "run", TEXT, "--json").json
    assert said == expected.to_json(TEXT) and said["sentences"] == DOCUMENT["sentences"]
    (said,) = run("predict", tmp_path / "run", TEXT, "--json", "--split-on-spaces").json
    assert said["sentences"] == [["Ann", "met", "Bob."], ["She", "saw", "him."]]
    (given,) = polyseme.predict(tmp_path / "run", [DOCUMENT["sentences"]])  # words of sentences
    assert given.prediction.clusters == expected.clusters
    evaluated = run("evaluate", tmp_path / "run", data)
    assert evaluated.code == 0 and "5 examples" in evaluated.out.splitlines()[0] and "ceaf" in evaluated.out
    data.write_text('{"sentences": [["Ann"]], "clusters": [[[0, 1]]]}\n')
    message = one_sentence(run("evaluate", tmp_path / "run", data))
    assert "train.jsonlines:1: has the mention [0, 1]; the document has 1 words" in message


@pytest.mark.parametrize("name", ["ontogum", "litbank"])
def test_the_sets_train_one_document_at_a_time(name):
    assert configure_task("coreference", SETS[name].options)[1].batch_size == 1
