"""`polyseme.train`: names of encoders, names of options, data that is held out."""

import contextlib
import json
import os
import shutil
import signal

import pytest

import polyseme
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.base.options import options_of
from polyseme.formats.load import load
from polyseme.studies import train as module
from polyseme.studies.train import encoder_names, load_encoders
from polyseme.tasks.registry import TASKS, configure_task, default_configs
from polyseme.tasks.tagging import Tagging
from tests.cli.labelled import TINY, write_all
from tests.cli.running import tiny
from tests.oracle.make import write_bilm


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_all(tmp_path)


def test_models_by_their_names(desk):
    write_bilm(desk / "a")
    write_bilm(desk / "b+c", dim=12)
    (desk / "v.txt").write_text("bank 1 2\nriver 3 4\n")
    assert encoder_names("a+b+c+v.txt") == ["a", "b+c", "v.txt"] and encoder_names("b+c") == ["b+c"]
    assert encoder_names("en+zh+owner/name") == ["en", "zh", "owner/name"]
    kinds = [encoder.kind for encoder in load_encoders("a+v.txt")]
    assert kinds == ["elmo", "word2vec"] and load_encoders("none") == load_encoders([]) == []
    given = load(desk / "a")
    assert load_encoders([given, desk / "v.txt", "none"])[0] is given and load_encoders(given) == [given]
    assert load_encoders(desk / "b+c")[0].dim == 16
    for wrong in ("a+none", "+a", "a++v.txt", ""):
        with pytest.raises(UsageError, match="expected none, or models joined by"):
            encoder_names(wrong)


def test_trained_with_vectors_and_an_encoder(desk):
    write_bilm(desk / "elmo")
    (desk / "v.txt").write_text("Ann 1 2 3\nParis 3 4 5\n")
    task = polyseme.train(
        "ner", "train.conll", dev="dev.conll", encoder="v.txt+elmo", out="run", freeze_word_vectors=True, **TINY
    )
    assert task.features.words.table_dim == 3 and not task.features.words.table.weight.requires_grad
    shutil.rmtree(desk / "elmo")  # the run holds what it needs
    again = polyseme.load_task("run")
    assert again.predict(["Ann in Oslo"]) == task.predict(["Ann in Oslo"])


@pytest.mark.parametrize("kind", TASKS)
def test_options_have_one_meaning_each(kind):
    known = options_of(default_configs(kind))
    assert [name for name, option in known.items() if len(option.paths) > 1] in (["dropout"], [])
    common = {"mode", "hidden_size", "layers", "word_dim", "learning_rate", "epochs", "mix_dropout", "unknown_words"}
    assert common - set(known) <= ({"hidden_size", "word_dim", "unknown_words"} if kind == "choices" else set())


def test_options_reach_their_configs():
    config, fitting = configure_task(
        "tagging",
        {
            **{"hidden_size": 5, "network_layers": 3, "layers": "top", "dropout": 0.1, "mix_dropout": 0.3, "column": -1},
            **{"word_dim": 7, "word_dropout": 0, "freeze_word_vectors": True, "characters": None},
            **{"learning_rate": 0.5, "batch_size": 2},
        },
    )
    assert (config.hidden_size, config.layers, config.dropout, config.column) == (5, 3, 0.1, "-1")
    features, words = config.features, config.features.words
    assert (features.layers, features.dropout, words.dim, words.word_dropout) == ("top", 0.3, 7, 0.0)
    assert words.freeze_word_vectors
    assert words.characters is None and fitting.batch_size == 2 and fitting.optim.learning_rate == 0.5
    assert fitting.optim.weight_decay == 0.0 and fitting.optim.clip_norm == 5.0  # the rest stays as it is for tasks
    assert configure_task("tagging", {"dropout": 0.1})[0].features.dropout == 0.1


def test_options_that_are_wrong(desk):
    with pytest.raises(UsageError, match=r"tagging has no option hiden \(did you mean 'hidden_size'\?\)"):
        polyseme.train("tagging", "train.conll", out="run", hiden=3)
    with pytest.raises(UsageError, match="hidden_size is 'many'; expected a whole number"):
        polyseme.train("tagging", "train.conll", out="run", hidden_size="many")
    with pytest.raises(UsageError, match="there is no task called 'taging'"):
        polyseme.train("taging", "train.conll", out="run")
    with pytest.raises(UsageError, match="greek"):
        polyseme.train("tagging", "train.conll", out="run", splitter="greek")
    assert not (desk / "run").exists()


@pytest.mark.parametrize(
    "options", [{"unfreeze": "top"}, {"layer_decay": 2.0}, {"encoder_lr_multiplier": 0.5, "mode": "frozen"}]
)
def test_options_that_would_do_nothing(options):
    with pytest.raises(UsageError, match=rf"{min(options)}.*frozen"):
        configure_task("tagging", options)
    assert configure_task("tagging", {**options, "mode": "finetune"})[0].features.mode == "finetune"


def test_stopped(desk, monkeypatch):
    compute = Tagging.loss

    def stopping(self, *arguments):
        os.kill(os.getpid(), signal.SIGINT)
        return compute(self, *arguments)

    stopped = pytest.raises(KeyboardInterrupt, match="stopped at step 1; the same call resumes the training")
    with monkeypatch.context() as patch, stopped:
        patch.setattr(Tagging, "loss", stopping)
        polyseme.train("ner", "train.conll", dev="dev.conll", encoder="none", out="run", **{**TINY, "epochs": 2})
    again = polyseme.train("ner", "train.conll", dev="dev.conll", encoder="none", out="run", **{**TINY, "epochs": 2})
    assert again.predict([["Ann"]])[0].words == ["Ann"]


SWITCHES = [
    (task, name)
    for task in ("classification", "tagging")
    for name, option in options_of(default_configs(task)).items()
    if isinstance(option.default, bool)
]


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(("task", "name"), SWITCHES)
def test_a_switch_is_turned_between_two_sittings(desk, task, name, first):
    """Either the run goes on with it, or a sentence says why it cannot; only other weights are trained where it must."""
    (desk / "v.txt").write_text("Ann 1 2 3\nfilm 3 4 5\n")
    data = {"classification": "texts.tsv", "tagging": "train.conll"}[task]
    call = {"encoder": "none" if name == "task_embeddings" else "v.txt", "out": "run", **TINY}
    must = name in ("freeze_word_vectors", "crf")
    with contextlib.nullcontext() if must else contextlib.suppress(PolysemeError):
        polyseme.train(task, data, **call, **{name: first})
        polyseme.train(task, data, **{**call, name: not first, "epochs": 2, "accept_changes": True})
        assert json.loads((desk / "run" / "result.json").read_text())["steps"] == 2


def test_a_model_is_not_overwritten(desk):
    tiny().save_pretrained(desk / "model")
    before = (desk / "model" / "model.safetensors").read_bytes()
    with pytest.raises(UsageError, match="model has a model"):
        polyseme.train("tagging", "train.conll", encoder="model", out="model", **TINY)
    assert (desk / "model" / "model.safetensors").read_bytes() == before


def test_held_out_data_is_no_part_of_training(desk):
    (desk / "a.conll").write_text("".join(f"Name{number} B-P{number}\nis O\n\n" for number in range(20)))
    heard: list[str] = []
    job = module.TaskJob("ner", module.DataFiles("a.conll"), "run", "none", options=TINY)
    task = job.train(module.Run(), notify=heard.append).task
    words = [f"Name{number}" for number in range(20)]
    assert len([word for word in words if word in task.features.words.words]) == 18
    assert heard[0] == "a.conll: 2 of 20 examples, drawn at random by seed=0, are held out as dev data"
    assert "has 2 labels that the training data lacks" in heard[1] and len(heard) == 2
    (desk / "one.conll").write_text("Ann B-PER\n")
    with pytest.raises(PolysemeError, match="has 1 example, too few to hold some out"):
        polyseme.train("ner", "one.conll", out="run", **TINY)


@pytest.mark.parametrize("options", [{"phrases": "all"}, {"phrases": "distinct", "sentence_copies": 2}, {"sentence_copies": 3}])
def test_phrases_of_held_out_sentences_are_no_part_of_training(desk, options):
    trees = [f"({2 + number % 2} (1 w{number}) (4 (2 so) (3 x{number})))" for number in range(20)]
    (desk / "trees").write_text("\n".join(trees))
    config, _ = configure_task("classification", options)
    data = module.TaskJob("classification", module.DataFiles("trees"), "run", "none")._read(config, 0, print)
    held = {text.text[0] for text in data.dev}
    assert [len(text.text) for text in data.dev] == [3, 3] and {text.label for text in data.dev} == {"2", "3"}
    seen = {word for text in data.train for word in text.text}
    assert held.isdisjoint(seen) and len([word for word in seen if word.startswith("w")]) == 18
    assert len(data.train) > 18 * options.get("sentence_copies", 1) - 1


def test_a_correlation_needs_two_pairs(desk):
    (desk / "pairs.tsv").write_text("".join(f"a {n}\tb\t{n}.5\n" for n in range(8)))
    (desk / "one.tsv").write_text("a\tb\t1.0\n")
    options = {**TINY, "text": "0", "second": "1", "label": "2", "goal": "score", "encoder": "none", "hidden_size": 4}
    with pytest.raises(UsageError, match=r"one.tsv has 1 of the 2 examples that a score needs"):
        polyseme.train("pairs", "pairs.tsv", test="one.tsv", out="run", **options)
    with pytest.raises(PolysemeError, match="has 1 example, too few to hold some out"):
        polyseme.train("pairs", "one.tsv", out="run", **options)
    polyseme.train("pairs", "pairs.tsv", out="run", **options)
    assert json.loads((desk / "run" / "result.json").read_text())["examples"] == {"train": 6, "dev": 2, "test": 0}


def test_columns_may_be_numbers():
    config, _ = configure_task("generation", {"source": 1, "target": 2})
    assert (config.source, config.target) == ("1", "2")
