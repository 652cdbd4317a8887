"""Generation from the command line: trained on two files or two columns, asked and judged."""

import pytest

import polyseme
from polyseme.base.errors import PolysemeError
from polyseme.cli.task_options import ELSEWHERE, GenerationOptions
from polyseme.studies.sets import SETS
from polyseme.studies.train import configured, option_names, task_named
from tests.cli.running import one_sentence

pytest.importorskip("sacrebleu", reason="sacrebleu is missing: pip install polyseme[generation]")
SMALL = ["--epochs", "1", "--hidden", "8", "--word-dim", "4", "--encoder", "none", "--target-dim", "8"]


def test_trained_asked_and_judged(run, tmp_path):
    (tmp_path / "train.en").write_text("a dog runs .\na cat sits .\n" * 6)
    (tmp_path / "train.de").write_text("Ein Hund läuft.\nEine Katze sitzt.\n" * 6)
    call = ["train", "generation", "--data", tmp_path / "train", *SMALL, "--out", tmp_path / "run"]
    assert "give the name that they share, and their endings" in one_sentence(run(*call), 2)
    (said,) = run(*call, "--source", "en", "--target", "de", "--beam", "2", "--longest", "5", "--tied", "--json").json
    assert said["task"] == "generation" and list(said["scores"]["dev"]) == ["bleu", "chrf"]
    task = polyseme.load_task(tmp_path / "run")
    assert (task.config.decoding.beam, task.config.tied, task.config.target_splitter) == (2, True, "english")
    expected = task.predict(["a dog sits .", "a"])
    assert run("predict", tmp_path / "run", "a dog sits .", "a").out == "".join(f"{each.text}\n" for each in expected)
    said = run("predict", tmp_path / "run", "a dog sits .", "--json").json
    assert said == [{"text": "a dog sits .", "answer": expected[0].text, "score": pytest.approx(expected[0].score, abs=1e-5)}]
    judged = run("evaluate", tmp_path / "run", tmp_path / "train")
    assert judged.code == 0 and "12 examples" in judged.out.splitlines()[0] and "bleu" in judged.out.splitlines()[1]


def test_options_are_those_of_the_config():
    known = option_names(task_named("generation"))
    assert all(name in known or name in ELSEWHERE for name in GenerationOptions.__dataclass_fields__)
    given = GenerationOptions(data="a", out="b", network_layers=2, attention="additive", input_feeding=True, beam=3).chosen()
    config, _ = configured(task_named("generation"), given)
    assert (config.layers, config.attention, config.input_feeding, config.decoding.beam) == (2, "additive", True, 3)
    usual = configured(task_named("generation"), {})[0]  # as the help tells
    assert (usual.layers, usual.decoder_layers, usual.target_dim, usual.min_count, usual.label_smoothing) == (1, 1, 256, 2, 0)
    assert (usual.decoding.beam, usual.decoding.longest) == (5, 200)


def test_the_set(tmp_path, monkeypatch):
    labelled = SETS["multi30k"]
    config, _ = configured(task_named(labelled.task), labelled.options)
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
