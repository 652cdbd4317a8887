"""Semantic roles from the command line: train, predict, evaluate."""

import polyseme
from tests.cli.running import one_sentence

LINES = "1 Ann saw Bob leave ||| B-A0 B-V B-A1 I-A1\n3 Ann saw Bob leave ||| O O B-A0 B-V\n"
SMALL = ["--epochs", "1", "--hidden-size", "8", "--word-dim", "4", "--encoder", "none", "--network-layers", "2"]


def test_train_predict_and_evaluate(run, tmp_path):
    (tmp_path / "train.txt").write_text(LINES * 5)
    data = ["--data", tmp_path / "train.txt", "--dev", tmp_path / "train.txt"]
    call = ["train", "srl", *data, *SMALL, "--out", tmp_path / "run"]
    (result,) = run(*call, "--json").json
    assert result["task"] == "roles" and list(result["scores"]["dev"]) == ["f1", "precision", "recall", "perfect"]
    expected = polyseme.load_task(tmp_path / "run").predict([("Ann saw Bob leave", [1, 3]), (["Ann", "saw", "Bob."], [1])])
    one, two = expected[0].predicates
    rows = zip(expected[0].words, one.tags, two.tags, strict=True)
    result = run("predict", tmp_path / "run", "1,3 Ann saw Bob leave", "1 Ann saw Bob.", "--split-on-spaces")
    last = "".join(f"{word}\t{tag}\n" for word, tag in zip(expected[1].words, expected[1].predicates[0].tags, strict=True))
    assert result.out == "".join("\t".join(row) + "\n" for row in rows) + "\n" + last
    predicted = run("predict", tmp_path / "run", "1,3 Ann saw Bob leave", "--json").json
    roles = [{"index": each.position, "tags": each.tags} for each in (one, two)]
    assert predicted == [{"words": ["Ann", "saw", "Bob", "leave"], "predicates": roles}]
    message = one_sentence(run("predict", tmp_path / "run", "Ann saw Bob"))
    assert "expected the numbers of predicates, from 0, before the text" in message
    assert "TEXT:1: has no word 3" in one_sentence(run("predict", tmp_path / "run", "3 Ann saw Bob"))
    evaluated = run("evaluate", tmp_path / "run", tmp_path / "train.txt")
    assert evaluated.code == 0 and "10 examples" in evaluated.out.splitlines()[0]
