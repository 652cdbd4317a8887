"""Roles from the command line: trained, asked and judged."""

from polyseme.cli.task_options import ELSEWHERE, RolesOptions

import polyseme
from polyseme.tasks.registry import configure_task, task_options
from tests.cli.running import one_sentence

LINES = "1 Ann saw Bob leave ||| B-A0 B-V B-A1 I-A1\n3 Ann saw Bob leave ||| O O B-A0 B-V\n"
SMALL = ["--epochs", "1", "--hidden-size", "8", "--word-dim", "4", "--encoder", "none", "--network-layers", "2"]


def test_trained_asked_and_judged(run, tmp_path):
    (tmp_path / "train.txt").write_text(LINES * 5)
    call = [
        "train",
        "srl",
        "--data",
        tmp_path / "train.txt",
        "--dev",
        tmp_path / "train.txt",
        *SMALL,
        "--out",
        tmp_path / "run",
    ]
    (said,) = run(*call, "--json").json
    assert said["task"] == "roles" and list(said["scores"]["dev"]) == ["f1", "precision", "recall", "perfect"]
    expected = polyseme.load_task(tmp_path / "run").predict([("Ann saw Bob leave", [1, 3]), (["Ann", "saw", "Bob."], [1])])
    one, two = expected[0].predicates
    rows = zip(expected[0].words, one.tags, two.tags, strict=True)
    result = run("predict", tmp_path / "run", "1,3 Ann saw Bob leave", "1 Ann saw Bob.", "--split-on-spaces")
    last = "".join(f"{word}\t{tag}\n" for word, tag in zip(expected[1].words, expected[1].predicates[0].tags, strict=True))
    assert result.out == "".join("\t".join(row) + "\n" for row in rows) + "\n" + last
    said = run("predict", tmp_path / "run", "1,3 Ann saw Bob leave", "--json").json
    told = [{"index": each.position, "tags": each.tags} for each in (one, two)]
    assert said == [{"words": ["Ann", "saw", "Bob", "leave"], "predicates": told}]
    assert "first their numbers" in one_sentence(run("predict", tmp_path / "run", "Ann saw Bob"))
    assert "TEXT:1: has no word 3" in one_sentence(run("predict", tmp_path / "run", "3 Ann saw Bob"))
    judged = run("evaluate", tmp_path / "run", tmp_path / "train.txt")
    assert judged.code == 0 and "10 examples" in judged.out.splitlines()[0]


def test_options_are_those_of_the_config():
    known = task_options("roles")
    assert all(name in known or name in ELSEWHERE for name in RolesOptions.__dataclass_fields__)
    given = RolesOptions(data="a", out="b", network_layers=4, positions="input, output").chosen()
    config, _ = configure_task("roles", given)
    assert config.layers == 4 and config.features.positions == ("input", "output")
    assert configure_task("roles", {})[0].layers == 8  # as the help tells
