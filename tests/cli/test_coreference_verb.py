"""Coreference from the command line: trained, asked and judged."""

import json

from polyseme.cli.task_options import ELSEWHERE, CoreferenceOptions

import polyseme
from polyseme.studies.sets import SETS
from polyseme.tasks.registry import configure_task, task_name, task_options
from tests.cli.running import one_sentence

DOCUMENT = {
    "sentences": [["Ann", "met", "Bob", "."], ["She", "saw", "him", "."]],
    "clusters": [[[0, 0], [4, 4]], [[2, 2], [6, 6]]],
}
SMALL = [
    "--epochs",
    "1",
    "--hidden-size",
    "8",
    "--word-dim",
    "4",
    "--encoder",
    "none",
    "--max-span-width",
    "2",
    "--max-antecedents",
    "4",
]
TEXT = "Ann met Bob. She saw him."


def test_trained_asked_and_judged(run, tmp_path):
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
    assert said == expected.to_values(TEXT) and said["sentences"] == DOCUMENT["sentences"]
    (said,) = run("predict", tmp_path / "run", TEXT, "--json", "--split-on-spaces").json
    assert said["sentences"] == [["Ann", "met", "Bob."], ["She", "saw", "him."]]
    judged = run("evaluate", tmp_path / "run", data)
    assert judged.code == 0 and "5 examples" in judged.out.splitlines()[0] and "ceaf" in judged.out
    data.write_text('{"sentences": [["Ann"]], "clusters": [[[0, 1]]]}\n')
    told = one_sentence(run("evaluate", tmp_path / "run", data))
    assert "train.jsonlines:1: has the mention [0, 1] among 1 words" in told


def test_options_are_those_of_the_config():
    kind = task_name("coreference")
    known = task_options(kind)
    assert all(name in known or name in ELSEWHERE for name in CoreferenceOptions.__dataclass_fields__)
    config, fitting = configure_task(
        kind, CoreferenceOptions(data="a", out="b", max_training_sentences=7, singletons=True).chosen()
    )
    assert (config.max_training_sentences, config.singletons, fitting.batch_size) == (7, True, 1)
    usual, _ = configure_task(kind, {})  # as the help tells
    assert (usual.max_span_width, usual.spans_per_word, usual.max_antecedents, usual.max_training_sentences, usual.layers) == (
        20,
        0.4,
        50,
        50,
        1,
    )
    for name in ("ontogum", "litbank"):
        assert configure_task(kind, SETS[name].options)[1].batch_size == 1
