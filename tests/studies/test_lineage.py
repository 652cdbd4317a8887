"""All methods on one text: what is done stays done, what fails is told and stops no other, options reach their methods."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.encoders.registry import ENCODERS
from polyseme.pretraining.cost import Cost, write_cost
from polyseme.studies import lineage
from polyseme.studies.lineage import METHODS, Lineage, arguments_of, known_options
from tests.studies.calling import polyseme_call
from tests.studies.test_compare import TRAIN

TEXT = "The bank of the river .\nMoney in the bank .\nAnna saw Rome .\n" * 30


class Told:
    """In place of processes: every call, and models that are there at once; those of some methods fail."""

    def __init__(self, failing: tuple[str, ...] = ()) -> None:
        self.calls: list[list[str]] = []
        self.failing = failing

    def __call__(self, command: list[str], log: Path, **_: Any) -> Told:
        call = list(command)[3:]
        self.calls.append(call)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as file:
            if call[0] == "perplexity":
                file.write(json.dumps({"perplexity": {"mean": 42.5, "forward": 40.0}}) + "\n")
            elif call[1] in self.failing:
                file.write("polyseme: no such luck\n")
            else:
                folder = Path(call[call.index("--out") + 1])
                folder.mkdir(parents=True)
                write_cost(folder, Cost(method=call[1], seconds=2.0, words=100, text_words=50, parameters=7))
        return self

    def poll(self) -> int:
        return 0


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(TEXT)
    monkeypatch.setattr("polyseme.studies.processes._POLL_SECONDS", 0.0)
    folder = tmp_path / "data" / "tasks" / "ner_conll2003_en"
    folder.mkdir(parents=True)
    for name in ("eng.train", "eng.testa", "eng.testb"):
        (folder / name).write_text(TRAIN)
    monkeypatch.setenv("POLYSEME_DATA", str(tmp_path / "data"))
    return tmp_path


def pretended(monkeypatch: pytest.MonkeyPatch, *failing: str) -> Told:
    told = Told(failing)
    monkeypatch.setattr(lineage, "start_process", told)
    return told


def run(words: str) -> Any:
    return polyseme_call("lineage", "--corpus", "text.txt", "--out", "study", *words.split())


def test_every_method_has_a_command() -> None:
    known = known_options(METHODS)
    assert set(METHODS) == {*ENCODERS, "glove"} - {"flair"}  # whose models are trained by Flair
    assert {method for method in METHODS if "minutes" in known[method]} == {"nnlm", "taglm", "elmo", "ulmfit", "gpt", "bert"}
    assert all("splitter" in names and not names & {"corpus", "out"} for names in known.values())


def test_options_reach_their_methods() -> None:
    methods = ("ngram", "word2vec", "elmo", "bert")
    given = ["size=tiny", "bert:size=mini", "min_count=1", "elmo:words=500", "bert:whole-word-mask"]
    found = arguments_of(methods, given, known_options(methods), {"minutes": "2", "device": "cpu"})
    assert found == {
        "ngram": ["--vocabulary-size", "50000", "--min-count", "1"],
        "word2vec": ["--min-count", "1"],
        "elmo": ["--device", "cpu", "--size", "tiny", "--words", "500"],  # a budget in place of the usual one
        "bert": ["--minutes", "2", "--device", "cpu", "--size", "mini", "--whole-word-mask"],
    }
    for wrong, told in [("sice=tiny", "no option 'sice'"), ("elmo:sice=tiny", "did you mean 'size'"),
                        ("gpt:size=tiny", "'gpt' is not among the methods"), ("out=here", "no option 'out'")]:  # fmt: skip
        with pytest.raises(UsageError, match=told):
            arguments_of(methods, [wrong], known_options(methods), {})


def test_each_is_trained_once_and_one_that_fails_stops_no_other(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    processes = pretended(monkeypatch, "elmo")
    found = run("--minutes 2 --methods ngram,elmo,bert")
    assert found.exit_code == 1 and "elmo (study/models/elmo.log)" in found.output
    assert [call[1] for call in processes.calls] == [
        "ngram",
        "elmo",
        "bert",
    ] and "elmo: failed: polyseme: no such luck" in found.output
    places = ["--out", "study/models/bert", "--shards", "study/text"]
    assert processes.calls[2] == ["pretrain", "bert", *places, "--corpus", "text.txt", "--minutes", "2"]
    assert "| bert | 2.0 s | 100 | 50 | 7 |" in Path("study/table.md").read_text()
    processes.failing = ()
    again = run("--minutes 3 --methods ngram,elmo,bert")
    assert again.exit_code == 0 and [call[1] for call in processes.calls[3:]] == ["elmo"]
    assert (
        "bert: kept as it was trained (--corpus text.txt --minutes 2 then, --corpus text.txt --minutes 3 now)" in again.output
    )
    assert "give --held-out for its perplexity" in again.output


def test_perplexities_are_on_one_text(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    processes = pretended(monkeypatch)
    Path("held.txt").write_text("Money in the river .\n")
    for times in (1, 2):
        assert run("--methods ngram,word2vec,nnlm --held-out held.txt").exit_code == 0
        asked = [call for call in processes.calls if call[0] == "perplexity"]
        assert [call[3] for call in asked] == ["study/models/ngram", "study/models/nnlm"], times
    assert Path("study/table.md").read_text().count("| 42.50 |") == 2
    Path("held.txt").write_text("Another text .\n")
    run("--methods ngram --held-out held.txt")
    assert len([call for call in processes.calls if call[0] == "perplexity"]) == 3
    cost = Path("study/models/ngram/pretraining.json")
    cost.write_text(cost.read_text().replace('"words": 100', '"words": 200'))  # another model in the same place
    run("--methods ngram --held-out held.txt")
    assert len([call for call in processes.calls if call[0] == "perplexity"]) == 4


def test_perplexities_read_text_as_training_did(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    processes = pretended(monkeypatch)
    Path("held.txt").write_text("Money in the river .\n")
    call = "--methods ngram,nnlm --held-out held.txt"
    options = "--pretrain nnlm:sentences=lines --pretrain nnlm:field=body --pretrain order=3"
    assert run(f"{call} {options}").exit_code == 0
    asked = {call[3]: call[4:] for call in processes.calls if call[0] == "perplexity"}
    assert asked["study/models/ngram"][2:] == ["--json"]
    assert asked["study/models/nnlm"][2:] == ["--json", "--sentences", "lines", "--field", "body"]
    count = len(processes.calls)
    assert run(call).exit_code == 0  # the models stay as they were trained, and so do their perplexities
    assert len(processes.calls) == count
    note = Path("study/models/nnlm.json")
    note.write_text(note.read_text().replace('"lines"', '"english"'))  # read otherwise, it is to be measured anew
    run(call)
    assert [each[-4:] for each in processes.calls[count:]] == [["--sentences", "english", "--field", "body"]]


def test_the_baseline_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "240")
    shown = " ".join(polyseme_call("lineage", "--help").output.split())
    assert "default: word2vec if it is a row, else the first row" in shown


def test_a_text_that_changed_between_two_methods_is_told(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretended(monkeypatch)
    assert "the text changed" not in run("--methods ngram,word2vec").output
    cost = Path("study/models/ngram/pretraining.json")
    cost.write_text(json.dumps(json.loads(cost.read_text()) | {"text_words": 7}))
    told = run("--methods ngram,word2vec,glove").output
    assert "the text changed after the first were trained (words: ngram 7, word2vec" in told


def test_what_cannot_be_is_told_before_anything_is_trained(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    processes = pretended(monkeypatch)
    for words, told in [("--methods elmoo", "did you mean 'elmo'"), ("--pretrain sice=3", "'sice'"),
                        ("--tasks nerr", "'nerr'"), ("--tasks ner --option hiden=3", "'hiden'"),
                        ("--tasks ner --baseline nothing", "is not a row"),
                        ("--tasks ner --encoders none,word2vec+ngram:finetune", "give 'word2vec+ngram'"),
                        ("--tasks ner --encoders none,glove:finetune", "word vectors alone cannot be fine-tuned"),
                        ("--plot --option epochs=3", "--option, --plot: belongs to the comparison"),
                        ("--corpus -", "write it to a file")]:  # fmt: skip
        found = run(words)
        assert found.exit_code == 2 and told in found.output
    missing = run("--tasks nli")
    assert missing.exit_code == 1 and "no such file" in missing.output
    absent = run("--corpus absent.txt")
    assert absent.exit_code == 1 and absent.output == "polyseme: absent.txt: no such file or folder\n"
    assert not processes.calls and not Path("study").exists()


def test_the_comparison_leaves_out_what_failed(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretended(monkeypatch, "elmo")
    rows: list[tuple[str, ...]] = []
    monkeypatch.setattr("polyseme.studies.compare.Study.run", lambda self, **_: rows.append(self.rows))
    found = run("--tasks ner --methods ngram,word2vec,elmo,bert --encoders none,word2vec,elmo,word2vec+elmo,bert:finetune")
    assert rows == [("none", "word2vec", "bert:finetune")] and "elmo (study/models/elmo.log)" in found.output
    alone = run("--tasks ner --methods elmo --encoders elmo")
    assert rows[1:] == [()] and "elmo (study/models/elmo.log)" in alone.output


def test_failing_cells_are_told_beside_failing_methods(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cells_fail(self: Any, **_: Any) -> None:
        raise PolysemeError("2 of 3 experiments failed")

    pretended(monkeypatch, "elmo")
    monkeypatch.setattr("polyseme.studies.compare.Study.run", cells_fail)
    told = run("--tasks ner --methods elmo,bert").output
    assert "elmo (study/models/elmo.log)" in told and "2 of 3 experiments failed" in told
    assert "| bert | 2.0 s |" in Path("study/table.md").read_text()


def test_a_stop_ends_what_is_under_way_and_writes_what_is_done(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(Told):
        """The second process goes on until it is asked to end; while it runs, the study is told to stop."""

        def __call__(self, command: list[str], log: Path, **options: Any) -> Told:
            return self if "elmo" in command else Told()(command, log, **options)

        def poll(self) -> None:  # type: ignore[override]
            os.kill(os.getpid(), signal.SIGTERM)

        def terminate(self) -> None:
            self.calls.append(["terminate"])

        def wait(self) -> None:
            self.calls.append(["wait"])

    endless = Endless()
    monkeypatch.setattr(lineage, "start_process", endless)
    found = run("--methods word2vec,elmo,bert")
    assert found.exit_code != 0 and endless.calls == [["terminate"], ["wait"]]
    told = Path("study/table.md").read_text()
    assert "| word2vec | 2.0 s |" in told and "elmo" not in told and "bert" not in told


@pytest.mark.slow
def test_two_methods_from_text_to_table(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    words = "--methods ngram,glove,taglm --tasks ner --seeds 1 --device cpu --pretrain size=tiny --pretrain taglm:words=300"
    options = "--pretrain glove:min_count=1 --pretrain glove:dim=4 --held-out text.txt"
    options += " --option epochs=1 --option min_steps=1 --option hidden_size=4"
    found = run(f"{words} {options}")
    assert found.exit_code == 0, found.output
    told = Path("study/table.md").read_text()
    for row in ("| none |", "| glove |", "| taglm |", "| ngram |"):
        assert row in told
    positions = json.loads(Path("study/cells/ner/taglm/1/result.json").read_text())["config"]["features"]["positions"]
    assert positions == ["between"]
    assert len(list(Path("study/text").glob("shards-*"))) == 1  # the text is encoded once for all
    lineage_of = Lineage(Path("study"), ("text.txt",), ("ngram", "glove", "taglm"), held_out=Path("text.txt"))
    assert [bool(cost and cost.scores) for _, cost in lineage_of.costs()] == [True, False, True]
