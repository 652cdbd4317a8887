"""pandas and Polars: frames into training, columns of vectors and predictions out of them."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.encoders.elmo import Elmo
from polyseme.integrations.data_frames import add_predictions, add_vectors
from polyseme.text.empty_texts import PREDICTION, VECTOR
from tests.integrations.samples import SENTENCES

ROWS = {"text": ["a cat", "the bank", "cat on a mat", "money in the bank"] * 5, "label": ["cats", "banks"] * 10}
FAST = {"epochs": 1, "hidden_size": 8, "min_steps": 1, "device": "cpu"}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library: str, folder: Path, model: Elmo, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    frames = pytest.importorskip(library, reason=f"needs {library}")
    frame = add_vectors(frames.DataFrame({"text": SENTENCES}), model=folder)
    np.testing.assert_allclose(np.stack(list(frame["vector"].to_numpy())), model.encode(SENTENCES), atol=1e-6)
    np.testing.assert_allclose(model.encode(frame["text"]), model.encode(SENTENCES), atol=1e-6)
    data = frames.DataFrame(ROWS)
    task = polyseme.train("classification", data, dev=data, out=tmp_path / "task", encoder=folder, **FAST)
    assert polyseme.evaluate(task, data).examples == 20
    found = add_predictions(data, task=tmp_path / "task")["prediction"]
    assert list(found) == [each.label for each in task.predict(ROWS["text"])]
    add_predictions(frames.DataFrame({"text": ["a cat", " "]}), task=task)
    assert "1 text without a word (row 1), whose prediction means nothing" in caplog.text
    both = add_predictions(data, task=task, out="label_found", probability="sure")
    assert list(both["label_found"]) == list(found)
    assert list(both["sure"]) == [each.probability for each in task.predict(ROWS["text"])]
    assert list(polyseme.Corpus(data)) == [text.split() for text in ROWS["text"]]
    with pytest.raises(UsageError, match="no column"):
        add_vectors(data, "texts", model=folder)
    with pytest.raises(UsageError, match="row 0 of text is 3"):
        add_vectors(frames.DataFrame({"text": [3, 4]}), model=folder)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_empty_cells_are_empty_texts(library: str, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    frames = pytest.importorskip(library, reason=f"needs {library}")
    (tmp_path / "new.csv").write_text("id,text\n1,a cat\n2,\n3,the bank\n4,\n")
    frame = frames.read_csv(tmp_path / "new.csv")
    found = add_vectors(frame, model=folder)["vector"]
    assert [bool(np.any(each)) for each in found.to_numpy()] == [True, False, True, False]
    data = frames.DataFrame(ROWS)
    task = polyseme.train("classification", data, dev=data, out=tmp_path / "task", encoder=folder, **FAST)
    predicted = add_predictions(frame, task=task)
    assert list(predicted["prediction"]) == [each.label for each in task.predict(["a cat", "", "the bank", ""])]
    warnings = [each.getMessage() for each in caplog.records if "(row" in each.getMessage()]
    assert warnings == [f"2 texts without a word (rows 1, 3), {what}" for what in (VECTOR, PREDICTION)]


def test_missing_values_of_pandas(folder: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    for missing in (None, float("nan"), pandas.NA, pandas.NaT, np.float32("nan")):
        frame = pandas.DataFrame({"text": pandas.Series(["a cat", missing], dtype="object")})
        assert [bool(np.any(each)) for each in add_vectors(frame, model=folder)["vector"]] == [True, False]


def test_predictions_without_probabilities(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    (tmp_path / "a.conll").write_text("Ann N\nsleeps V\n\n" * 4)
    task = polyseme.train("tagging", tmp_path / "a.conll", dev=tmp_path / "a.conll", encoder="none", out=tmp_path / "t", **FAST)
    with pytest.raises(UsageError, match="probability is 'sure', but the predictions of tagging have none: leave it out"):
        add_predictions(pandas.DataFrame({"text": ["Ann sleeps"]}), task=task, probability="sure")


def test_messages_name_the_argument_of_a_table(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
    rows = [{"text": text, "label": label} for text, label in zip(ROWS["text"], ROWS["label"], strict=True)]
    data = pyarrow.Table.from_pylist([*rows, {"text": "a cat", "label": "banks"}, {"text": "", "label": "cats"}])
    task = polyseme.train("classification", data, out=tmp_path / "task", encoder="none", **FAST)
    report = polyseme.evaluate(task, data, errors=30)
    assert "data: skipped 1 of 22 rows" in caplog.text and report.path == "data" and report.worst
    assert all(row["where"].startswith("data row ") for row in report.rows()) and report.wrong == len(report.rows())
    assert "polyseme-" not in caplog.text + str(task) + str(report)
    before = logging.getLogRecordFactory()
    with pytest.raises(PolysemeError, match=r"^data"):
        polyseme.evaluate(task, pyarrow.Table.from_pylist([{"text": "", "label": "cats"}]))
    assert logging.getLogRecordFactory() is before


def test_rows_of_a_table_are_counted_from_0(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = pytest.importorskip("pyarrow", reason="needs pyarrow").table
    frame = table({"text": [*ROWS["text"], "twice", "twice"], "label": [*ROWS["label"], "cats", "banks"]})
    task = polyseme.train("classification", frame, out=tmp_path / "task", encoder="none", **FAST)
    assert "1 text has several labels, such as 'twice' (rows 20, 21)" in caplog.text and "(lines" not in caplog.text
    report = polyseme.evaluate(task, table({"text": ["a cat"] * 3, "label": ["dogs"] * 3}))
    assert [row["where"] for row in report.rows()] == ["data row 0", "data row 1", "data row 2"] and report.wrong == 3
    assert "  and 2 equal ones: rows 1, 2" in str(report)
    assert [each.where for each in report.unknown_labels] == ["data row 0"]
    words = table({"tokens": [["Ann", "ran"], ["to", "Rome"]] * 9, "tags": [["B-PER", "O"], ["O", "B-LOC"]] * 9})
    tagger = polyseme.train("tagging", words, dev=words, out=tmp_path / "tagger", encoder="none", **FAST)
    odd = table({"tokens": [["Ann", "ran"], ["to", "Mars"]], "tags": [["B-PER", "O"], ["O", "B-X"]]})
    assert [each.where for each in polyseme.evaluate(tagger, odd).unknown_labels] == ["data row 1"]


def test_rows_in_memory_are_refused_in_one_short_sentence(tmp_path: Path) -> None:
    rows = [("a cat", "cats")] * 5000
    expected = r"is of type list \(5,000 values\); expected the path of a file .*, a Dataset or a data frame"
    for call in (
        lambda: polyseme.train("classification", rows, out=tmp_path / "task"),
        lambda: polyseme.train("classification", "a.csv", dev=rows, out=tmp_path / "task"),
        lambda: polyseme.evaluate(tmp_path, rows),
    ):
        with pytest.raises(UsageError, match=expected) as error:
            call()
        assert len(str(error.value)) < 200
    with pytest.raises(UsageError, match="expected its folder") as error:
        polyseme.load_task(rows)
    assert len(str(error.value)) < 200
