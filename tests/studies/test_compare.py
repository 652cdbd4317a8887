"""A comparison on two tiny sets: every experiment once, done ones stay done, failures told, the table right."""

from __future__ import annotations

import json
import math
import os
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyseme.base.errors import PolysemeError, UsageError, flags_in_messages
from polyseme.studies.compare import Study
from polyseme.studies.config import CompareConfig
from polyseme.studies.experiment import Experiment
from polyseme.studies.experiment import main as train_experiment
from polyseme.studies.report import ComparisonResult
from polyseme.studies.sets import SETS, labelled_set
from polyseme.studies.table import ComparisonRow, as_csv, table
from tests.studies.calling import polyseme_call
from tests.studies.in_process import train_in_process

TRAIN = "Anna NNP I-NP I-PER\nsaw VBD I-VP O\nRome NNP I-NP I-LOC\n\nIn IN I-PP O\nOslo NNP I-NP I-LOC\n\n" * 6
QUICK = {"epochs": 1, "hidden_size": 4, "word_dim": 4, "min_steps": 1}


def markdown(rows: list[ComparisonRow]) -> str:
    return ComparisonResult(Path(), rows).as_markdown()


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data" / "tasks" / "ner_conll2003_en"
    folder.mkdir(parents=True)
    for name in ("eng.train", "eng.testa", "eng.testb"):
        (folder / name).write_text(TRAIN)
    monkeypatch.setenv("POLYSEME_DATA", str(tmp_path / "data"))
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("3 4\nAnna 1 0 0 0.5\nRome 0 1 0 0.5\nsaw 0 0 1 0.5\n")
    return vectors


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    train_in_process(monkeypatch)


# in processes of their own, which import PyTorch, only among the slow tests
@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_cells_are_trained_once_and_compared(
    data: Path, tmp_path: Path, request: pytest.FixtureRequest, processes: bool
) -> None:
    if not processes:
        request.getfixturevalue("in_process")
    study = Study(tmp_path / "study", ("ner",), ("none", "word2vec"), (1,), {"en": str(data)}, QUICK)
    said: list[str] = []
    experiments = study.run(jobs=2, device="cpu", notify=said.append)
    assert not [
        path for experiment in experiments for path in Path(experiment.out, "run").glob("checkpoint-*")
    ]  # they would fill the disk
    assert (
        len(experiments) == len(said) == 2
        and all(experiment.done for experiment in experiments)
        and all("test 0." in line for line in said)
    )
    written = [Path(experiment.out, "result.json").stat().st_mtime_ns for experiment in experiments]
    assert study.run(device="cpu", notify=said.append) == experiments and len(said) == 2
    assert written == [Path(experiment.out, "result.json").stat().st_mtime_ns for experiment in experiments]
    rows = table(experiments, "none")
    assert [row.encoders for row in rows] == ["none", "word2vec"] and rows[0].gain is None and rows[1].gain is not None
    assert "CoNLL-2003" in markdown(rows) and as_csv(rows).count("\n") == 3


@pytest.mark.usefixtures("in_process")
def test_texts_of_the_training_data_and_skipped_rows_are_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [f"a {'good' if number % 2 else 'bad'} film number {number},{number % 2}\n" for number in range(20)]
    (tmp_path / "train.csv").write_text("text,label\n,1\n" + "".join(rows))
    (tmp_path / "dev.csv").write_text("text,label\n,1\n" + "".join(rows[:9]))
    files = f"classification:{tmp_path}/train.csv:{tmp_path}/dev.csv"
    study = Study(tmp_path / "study", (files,), ("none",), (1,), {}, QUICK)
    study.run(device="cpu", notify=lambda _: None)
    told = [each.getMessage() for each in caplog.records if each.name.startswith("polyseme.")]
    before = told[: 1 + next(number for number, line in enumerate(told) if "have texts of the training data" in line)]
    assert re.search(r"dev\.csv: (\d+) of \1 examples have texts of the training data", before[-1])
    assert [line.partition(": skipped")[0] for line in before if "skipped 1 of" in line] == [
        f"{tmp_path}/train.csv",
        f"{tmp_path}/dev.csv",
    ]
    assert study.check_files() == []  # all experiments are done


def test_advice_on_columns_is_an_option_of_compare(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = "".join(f"a {'good' if number % 2 else 'bad'} film number {number},{number % 2}\n" for number in range(20))
    (tmp_path / "a.csv").write_text("Betreff,Etikett\n" + rows)
    with flags_in_messages():
        study = Study(tmp_path / "study", (f"classification:{tmp_path}/a.csv:{tmp_path}/a.csv",), ("none",), (1,), {}, QUICK)
        study.check_files()
    assert "give --option text=NAME, --option label=NAME, --option header=false)" in caplog.text


def test_done_cells_share_equal_vectors(data: Path, tmp_path: Path) -> None:
    first, second = Study(tmp_path / "study", ("ner",), ("word2vec",), (1, 2), {"en": str(data)}, QUICK).experiments()
    for experiment in (first, second):
        experiment.train("cpu")
    assert Path(first.out, "vectors", "model.safetensors").samefile(Path(second.out, "vectors", "model.safetensors"))


@pytest.mark.usefixtures("in_process")
def test_a_failing_cell_is_told_with_its_log(data: Path, tmp_path: Path) -> None:
    (tmp_path / "no-model").mkdir()
    study = Study(tmp_path / "study", ("ner",), ("none", "bad"), (1,), {}, QUICK, models={"bad": str(tmp_path / "no-model")})
    with pytest.raises(PolysemeError, match="1 of 2 experiments failed: ner bad"):
        study.run(jobs=2, device="cpu", notify=lambda _: None)
    assert [experiment.done for experiment in study.experiments()] == [True, False]
    assert "is an empty folder" in Path(study.experiments()[1].out, "cell.log").read_text()


def test_a_stop_lets_cells_end_and_writes_the_table_of_what_is_done(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Endless(Finished):
        """The second experiment goes on until it is asked to end; while it runs, the study is told to stop."""

        def __init__(self, experiment: Experiment) -> None:
            self.endless = experiment.row == "word2vec"
            if not self.endless:
                super().__init__(experiment)

        def poll(self) -> int | None:
            if self.endless:
                os.kill(os.getpid(), signal.SIGTERM)
            return None if self.endless else 0

        def terminate(self) -> None:
            asked.append("terminate")

        def wait(self) -> None:
            asked.append("wait")

    monkeypatch.setattr("polyseme.studies.compare._start", lambda experiment, device, jobs: Endless(experiment))
    words = f"compare --tasks ner --encoders none,word2vec --seeds 1 --option epochs=7 --vectors en={data}"
    found = polyseme_call(*words.split(), "--out", str(tmp_path / "study"))
    assert found.exit_code != 0 and asked == ["terminate", "wait"]
    assert "| none |" in (tmp_path / "study" / "table.md").read_text()


def test_options_hold_for_every_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, object]] = []
    monkeypatch.setattr(Study, "run", lambda self, **_: seen.append(self.options))
    call = ["compare", "--tasks", "ner", "--encoders", "none", "--out", str(tmp_path)]
    found = polyseme_call(*call, *["--option", "epochs=7", "--option", "norm=bilm", "--option", "mix_dropout=0.5"])
    assert found.exit_code == 0 and seen == [{"epochs": 7, "norm": "bilm", "mix_dropout": 0.5}]
    assert "such as epochs=5" in polyseme_call(*call, "--option", "epochs").output


@pytest.mark.usefixtures("in_process")
def test_done_cells_that_would_be_others_now_are_told(data: Path, tmp_path: Path) -> None:
    said: list[str] = []
    for options in (QUICK, QUICK, {**QUICK, "hidden_size": 5}):
        Study(tmp_path / "study", ("ner",), ("none",), (1,), {}, options).run(device="cpu", notify=said.append)
    assert len(said) == 2 and said[1].startswith("ner none seed 1: kept as it was trained (hidden_size: 4 then, 5 now)")
    fewer = {name: value for name, value in QUICK.items() if name != "hidden_size"}
    Study(tmp_path / "study", ("ner",), ("none",), (1,), {}, fewer).run(device="cpu", notify=said.append)
    assert "(hidden_size: 4 then, not given now)" in said[2]


@pytest.mark.usefixtures("in_process")
def test_a_model_that_was_trained_anew_is_told(data: Path, tmp_path: Path) -> None:
    said: list[str] = []
    study = Study(tmp_path / "study", ("ner",), ("word2vec",), (1,), {"en": str(data)}, QUICK)
    study.run(device="cpu", notify=said.append)
    data.write_text(data.read_text().replace("0.5", "0.7"))  # as long as before
    study.run(device="cpu", notify=said.append)
    assert len(said) == 2 and f"{data.resolve()}: trained again since" in said[1]


@pytest.mark.usefixtures("in_process")
def test_cells_under_way_begin_anew_under_other_options(data: Path, tmp_path: Path) -> None:
    said: list[str] = []
    study = Study(tmp_path / "study", ("ner",), ("none",), (1,), {}, QUICK)
    [experiment] = study.run(device="cpu", notify=lambda _: None)
    Path(experiment.out, "result.json").unlink()  # as if it had been stopped
    Path(experiment.out, "left").touch()
    Study(study.out, ("ner",), ("none",), (1,), {}, {**QUICK, "hidden_size": 5}).run(device="cpu", notify=said.append)
    assert said[0] == "ner none seed 1: started again (hidden_size: 4 then, 5 now)"
    assert experiment.done and not Path(experiment.out, "left").exists()


@pytest.mark.parametrize(("options", "shares", "told"), [
    ({"finetune:epochs": 2}, (1.0,), "applies to no experiment"),
    ({"ner:nli:epochs": 2}, (1.0,), "there is no 'nli'"),
    ({"none:finetune:epochs": 2}, (1.0,), "applies to no experiment"),
    ({"train_fraction": 0.5}, (0.5, 1.0), "contradicts train_fractions"),
])  # fmt: skip
def test_options_that_would_do_nothing(options: dict[str, Any], shares: tuple[float, ...], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Study(Path("study"), ("ner",), ("none",), options=options, train_fractions=shares).check()


def test_a_share_is_an_option_too() -> None:
    study = Study(Path("~/study"), ("ner",), ("none",), (1,), options={"train_fraction": 0.125})
    study.check()
    [experiment] = study.experiments()
    assert experiment.train_fraction == 0.125 and experiment.out.startswith(str(Path.home()))


def test_two_cells_in_one_folder_are_refused() -> None:
    study = Study(Path("study"), ("ner",), ("bert:finetune", "bert-finetune"), models={"bert": "a", "bert-finetune": "b"})
    with pytest.raises(UsageError, match="two experiments have the folder"):
        study.check()


def test_options_of_rows_that_are_left_out_are_left_out_too() -> None:
    options = {"bert:batch_size": 8, "epochs": 2}
    study = Study(Path("study"), ("ner",), ("none", "bert"), options=options, models={"bert": "a"})
    study.check()
    fewer = study.without({"bert"})
    fewer.check()
    assert fewer.rows == ("none",) and fewer.options == {"epochs": 2}


@pytest.mark.parametrize(("words", "code", "told"), [
    ("--encoders none,word2vec --baseline word2vek", 2, "--baseline word2vek is not a row"),
    ("--encoders ,", 2, "--encoders is empty"),
    ("--seeds ,", 2, "--seeds[0] is ''; expected a whole number"),
    ("--encoders none,my-elom", 1, "my-elom: no such file or folder"),
    ("--encoders non,en", 1, "(did you mean 'none'?)"),
    ("--encoders none,word2vec+en:finetune", 2, "needs word vectors: give --vectors en=FILE"),
    ("--baseline word2vec", 2, "--baseline word2vec is not a row; the rows are none, en"),
])  # fmt: skip
def test_what_makes_no_table_is_told_before_anything_is_trained(
    data: Path, tmp_path: Path, words: str, code: int, told: str
) -> None:
    found = polyseme_call("compare", "--tasks", "ner", "--out", str(tmp_path / "study"), *words.split())
    assert found.exit_code == code and told in found.output
    assert not list((tmp_path / "study").rglob("cell.json"))


@pytest.mark.parametrize(("task", "told"), [
    ("tagging:train.conll:dev.con", "cannot read dev.con: No such file or directory"),
    ("classification:a.csv:a.csv", "give --option label=NAME with one of: channel, group"),
])  # fmt: skip
def test_data_that_cannot_be_read_is_told_before_anything_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.conll").write_text(TRAIN)
    rows = [
        f"{'web' if n // 3 % 2 else 'mail'},{'sales' if n % 2 else 'help'},please answer question {n} soon" for n in range(20)
    ]
    Path("a.csv").write_text("\n".join(["channel,group,body", *rows, ""]))
    found = polyseme_call("compare", "--tasks", task, "--encoders", "none", "--out", "study")
    assert found.exit_code != 0 and told in found.output.splitlines()[-1] and found.output.count(told) == 1
    assert "Error" not in found.output and not Path("study").exists()


@pytest.mark.usefixtures("in_process")
def test_the_same_error_of_several_experiments_is_told_once(data: Path, tmp_path: Path) -> None:
    (tmp_path / "no-model").mkdir()
    study = Study(tmp_path / "study", ("ner",), ("bad",), (1, 2), {}, QUICK, models={"bad": str(tmp_path / "no-model")})
    said: list[str] = []
    with pytest.raises(PolysemeError, match="2 of 2 experiments failed"):
        study.run(device="cpu", notify=said.append)
    assert "is an empty folder" in said[0] and "ner bad seed 2  failed: as ner bad seed 1 (see " in said[1]


def test_the_log_of_an_experiment_ends_with_the_error_alone(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no-model").mkdir()
    experiment = Experiment("ner", "bad", str(tmp_path / "no-model"), 1, str(tmp_path / "out"), str(tmp_path / "layers"), {})
    monkeypatch.setattr("sys.argv", ["experiment", str(experiment.write()), "cpu"])
    with pytest.raises(SystemExit, match=r"no-model.* is an empty folder") as stopped:
        train_experiment()
    assert "Error" not in str(stopped.value)


def test_a_seed_given_twice_is_trained_once() -> None:
    config = CompareConfig(tasks=("ner",), encoders=("none", "none"), seeds=(1, 2, 1))
    study = Study.from_config(config, "out")
    assert (study.rows, study.seeds) == (("none",), (1, 2))


def made(folder: Path, row: str, seed: int, score_counts: list[list[float]], score: float) -> Experiment:
    out = folder / row / str(seed)
    out.mkdir(parents=True)
    (out / "result.json").write_text(json.dumps({"main": "accuracy", "scores": {"test": {"accuracy": score}}}))
    np.save(out / "test-tallies.npy", np.array(score_counts))
    return Experiment("nli", row, row, seed, str(out), "", {})


def test_the_table_counts_errors_that_are_gone(tmp_path: Path) -> None:
    right = lambda count: [[float(i < count), 1.0] for i in range(100)]  # noqa: E731
    experiments = [made(tmp_path, "word2vec", seed, right(80), 0.8) for seed in (1, 2)]
    experiments += [made(tmp_path, "word2vec+elmo", 1, right(84), 0.84), made(tmp_path, "word2vec+elmo", 2, right(86), 0.86)]
    base, new = table(experiments, "word2vec")
    assert (base.mean, new.mean) == pytest.approx((0.8, 0.85)) and new.std == pytest.approx(0.01 * 2**0.5)
    assert new.gain is not None and new.gain.reduction.value == pytest.approx(0.25)
    assert new.gain.reduction.low < 0.25 < new.gain.reduction.high
    assert "| 85.00 | 1.41 | 2 | +5.00 | 25.0 % |" in markdown([base, new])


def test_one_seed_has_no_standard_deviation(tmp_path: Path) -> None:
    one, two, equal = (
        ComparisonRow("nli", 1.0, "none", "accuracy", scores, None) for scores in ((0.8,), (0.8, 0.9), (0.8, 0.8))
    )
    assert math.isnan(one.std) and two.std == pytest.approx(0.05 * 2**0.5) and equal.std == 0
    assert [row.formatted()[4:7] for row in (one, two, equal)] == [
        ["80.00", "", "1"],
        ["85.00", "7.07", "2"],
        ["80.00", "0.00", "2"],
    ]
    shown = [line.split(",")[4:6] for line in as_csv([one, equal]).splitlines()[1:]]
    assert shown == [["0.8", ""], ["0.8", "0.0"]]


def test_an_error_reduction_of_no_errors_is_left_empty(tmp_path: Path) -> None:
    right = lambda count: [[float(i < count), 1.0] for i in range(10)]  # noqa: E731
    rows = [made(tmp_path, "none", 1, right(10), 1.0), made(tmp_path, "elmo", 1, right(8), 0.8)]
    found = table(rows, "none")
    assert "| 80.00 |  | 1 | -20.00 |  |  |" in markdown(found) and found[1].reduction == (None, None, None)
    assert "inf" not in str(ComparisonResult(Path(), found)) + as_csv(found) and ",0.8,,,,,1.0," in as_csv(found)
    some = table([made(tmp_path / "one", "none", 1, right(9), 0.9), made(tmp_path / "one", "elmo", 1, right(8), 0.8)], "none")
    assert "| -10.00 | -100.0 % |  |" in markdown(some)  # some resamples of the baseline have no errors


def lost(folder: Path, row: str, seed: int, warning: str | None, score: float = 0.0) -> Experiment:
    """A finished experiment that has learned nothing; `warning`: as `train` gave it, None: a version that wrote none."""
    experiment = made(folder, row, seed, [[0.0, 1.0]], score)
    result = {**(experiment.result or {}), "learned": False, **({} if warning is None else {"warning": warning})}
    (Path(experiment.out) / "result.json").write_text(json.dumps(result))
    return experiment


def test_runs_that_have_learned_nothing_are_said_below_the_table(tmp_path: Path) -> None:
    said = "the network has learned nothing: accuracy 0.0 on 9 dev examples is no better than one answer for all"
    all_lost = [lost(tmp_path / "all", row, seed, said) for row in ("none", "elmo") for seed in (1, 2)]
    result = ComparisonResult(Path(), table(all_lost, "none"))
    assert result.warning == (
        f"no run has learned anything (4 runs), so the table says nothing about the encoders. The first: {said}"
    )
    assert " ".join(str(result).splitlines()).endswith(f"WARNING: {result.warning}  The table is in table.md")
    assert result.as_markdown().endswith(f"|\n\n**Warning**: {result.warning}\n") and result.warning in result._repr_html_()
    some = [made(tmp_path / "some", "none", 1, [[1.0, 1.0]], 1.0), lost(tmp_path / "some", "elmo", 1, None)]
    found = ComparisonResult(Path(), table(some, "none")).warning
    assert found.startswith("1 of 2 runs have learned nothing (") and found.endswith(
        "The first: the network has learned nothing"
    )
    assert ", elmo), so their rows say nothing" in found
    assert "WARNING" not in str(ComparisonResult(Path(), table(some[:1], "none")))


def test_rows_that_the_table_does_not_tell_apart_are_named(tmp_path: Path) -> None:
    made_with = lambda row, seed, score: made(tmp_path, row, seed, [[score, 1.0]], score)  # noqa: E731
    experiments = [made_with("none", 1, 0.5), made_with("none", 2, 0.7), made_with("en", 1, 0.5), made_with("en", 2, 0.7)]
    found = ComparisonResult(Path("study"), table([*experiments, made_with("zh", 1, 0.5), made_with("zh", 2, 0.6)], "none"))
    said = "rows have the same scores (SICK entailment: none, en), so the table says nothing about their encoders"
    assert found.warning == said and str(found).endswith("\n\nThe table is in study/table.md")
    (Path(experiments[0].out) / "task.json").write_text(json.dumps({"config": {"wide_features": 900}}))
    with_ngrams = ComparisonResult(Path(), table(experiments, "none")).warning
    assert with_ngrams.startswith(said) and "n-grams" in with_ngrams and "option='wide=false'" in with_ngrams


def test_rows_fit_the_language_of_the_data_by_default(tmp_path: Path) -> None:
    english, chinese = tmp_path / "english.conll", tmp_path / "chinese.conll"
    english.write_text(TRAIN)
    chinese.write_text("李 B-PER.NAM\n娜 I-PER.NAM\n在 O\n北 B-LOC\n京 I-LOC\n。 O\n\n" * 6)

    def rows(*files: Path, **more: Any) -> tuple[str, ...]:
        config = CompareConfig(tasks=tuple(f"tagging:{each}:{each}" for each in files), **more)
        return Study.from_config(config, tmp_path).rows

    assert rows(english) == ("none", "en") and rows(chinese) == ("none", "zh") and rows(english, chinese) == ("none", "elmo")
    assert rows(english, vectors=(f"en={english}",)) == ("none", "word2vec", "word2vec+elmo")


def test_a_score_on_dev_data_alone_is_shown_once(tmp_path: Path) -> None:
    scores = {name: {"accuracy": 0.5} for name in ("dev", "test")}
    (tmp_path / "result.json").write_text(json.dumps({"main": "accuracy", "scores": scores, "seconds": 3}))
    for name, told in (("tagging:a:b", "dev 0.5000  (3 s)"), ("tagging:a:b:c", "dev 0.5000, test 0.5000  (3 s)")):
        assert Experiment(name, "none", "none", 1, str(tmp_path), "", {}).summary == told


@pytest.mark.usefixtures("in_process")
def test_the_warning_of_train_is_kept_for_the_table(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyseme.tasks.fit.is_no_better_than_prior", lambda *_: True)
    study = Study(tmp_path / "study", ("ner",), ("none",), (1,), {}, QUICK)
    [experiment] = study.run(device="cpu", notify=lambda _: None)
    assert experiment.result is not None and not experiment.result["learned"]
    assert experiment.result["warning"].startswith("the network has learned nothing: f1 ")
    assert experiment.result["warning"] in study.report().as_markdown()
    assert "**Warning**" in (study.out / "table.md").read_text()


def test_sets_say_where_they_come_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert all(each.source and each.title for each in SETS.values())
    monkeypatch.delenv("POLYSEME_DATA", raising=False)
    with pytest.raises(PolysemeError, match=r"POLYSEME_DATA.*SemEval"):
        labelled_set("nli").files()
    monkeypatch.setenv("POLYSEME_DATA", str(tmp_path))
    with pytest.raises(PolysemeError, match=r"no such file.*SemEval"):
        labelled_set("nli").files()
    with pytest.raises(UsageError, match=r"'nlli'.*nli"):
        labelled_set("nlli")
    with pytest.raises(UsageError, match="vectors='en=FILE'"):
        Study(tmp_path, ("nli",), ("word2vec",)).experiments()


def test_pictures_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from polyseme.studies.plots import plot_learning_curve, plot_scores
    from polyseme.studies.table import ComparisonRow

    rows = [ComparisonRow(name, 1.0, enc, "f1", (0.8 + 0.02 * n, 0.82 + 0.02 * n), None) for name in ("ner", "nli")
            for n, enc in enumerate(("none", "word2vec", "word2vec+elmo"))]  # fmt: skip
    assert plot_scores(rows, tmp_path / "table.png").read_bytes().startswith(b"\x89PNG")
    shares = [ComparisonRow("ner", share, enc, "f1", (0.5 + 0.3 * share, 0.52 + 0.3 * share + 0.05 * n), None)
              for share in (0.01, 0.1, 0.5, 1.0) for n, enc in enumerate(("word2vec", "word2vec+elmo"))]  # fmt: skip
    assert plot_learning_curve(shares, tmp_path / "curve.svg").read_text().startswith("<?xml")


def test_shares_make_a_curve_from_the_command_line(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("polyseme.studies.compare._start", lambda experiment, device, jobs: Finished(experiment))
    out = tmp_path / "study"
    words = f"compare --tasks ner --encoders none,word2vec --seeds 1 --train-fractions 0.5,1 --plot --vectors en={data}"
    told = polyseme_call(*words.split(), "--out", str(out))
    assert told.exit_code == 0, told.output
    table = told.output.partition("WARNING")[0]
    assert table.count("CoNLL-2003") == 4 and told.output.endswith(f"The table is in {out}/table.md\n")
    assert "rows have the same scores (CoNLL-2003 English names: none, word2vec)" in " ".join(told.output.split())
    assert re.search("50%  +word2vec", told.output)
    assert sorted(path.name for path in out.iterdir()) == ["cells", "curve-ner.png", "table.csv", "table.md"]
    assert polyseme_call("compare", "--tasks", "ner", "--train-fractions", "2", "--out", str(out)).exit_code == 2


class Finished:
    """A process that is done at once, and has written what an experiment writes."""

    returncode = 0

    def __init__(self, experiment: Experiment) -> None:
        out = Path(experiment.out)
        out.mkdir(parents=True)
        result = {"main": "f1", "scores": {"test": {"f1": 0.5 + 0.1 * experiment.train_fraction}}, "seconds": 1.0}
        (out / "result.json").write_text(json.dumps(result))
        np.save(out / "test-tallies.npy", np.array([[1, 2, 2], [0, 1, 1]]))

    def poll(self) -> int:
        return 0
