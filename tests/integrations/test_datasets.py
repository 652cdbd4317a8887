"""Hugging Face datasets: into training, evaluation and pre-training, from memory and from folders; columns out of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("datasets", reason="needs datasets (extra datasets)")

from datasets import ClassLabel, Dataset, DatasetDict, Features, Sequence, Value

import polyseme
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.encoders.elmo import Elmo
from polyseme.integrations.datasets import add_predictions, add_vectors
from polyseme.text.files.data_tables import table_rows
from polyseme.text.labelled.dataset_files import write_dataset
from polyseme.text.labelled.squad import read_squad
from tests.cli.running import process
from tests.integrations.samples import SENTENCES

NAMES = ClassLabel(names=["O", "B-PER", "B-LOC"])
LABELS = ClassLabel(names=["cats", "banks"])
TEXTS = Dataset.from_dict(
    {"text": ["a cat", "the bank", "cat on a mat", "money in the bank"] * 5, "label": [0, 1, 0, 1] * 5},
    features=Features({"text": Value("string"), "label": LABELS}),
)
TAGGED = Dataset.from_dict(
    {"id": list(range(20)), "tokens": [["Ann", "saw", "Rome"], ["a", "cat"]] * 10, "ner_tags": [[1, 0, 2], [0, 0]] * 10},
    features=Features({"id": Value("int32"), "tokens": Sequence(Value("string")), "ner_tags": Sequence(NAMES)}),
)
FAST = {"epochs": 1, "hidden_size": 8, "min_steps": 1, "device": "cpu"}


def test_labels_have_names_in_memory_and_in_folders(tmp_path: Path) -> None:
    TAGGED.save_to_disk(tmp_path / "saved", num_shards=2)
    for data in (TAGGED, tmp_path / "saved"):
        rows = list(table_rows(data))
        assert len(rows) == 20 and rows[0]["ner_tags"] == ["B-PER", "O", "B-LOC"]
    assert next(table_rows(TAGGED.select([1])))["tokens"] == ["a", "cat"]


def test_classification(folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    TEXTS.save_to_disk(tmp_path / "saved")
    task = polyseme.train("classification", TEXTS, dev=tmp_path / "saved", out=tmp_path / "task", encoder=folder, **FAST)
    assert sorted(task.labels) == ["banks", "cats"]
    report = polyseme.evaluate(task, TEXTS)
    assert report.examples == 20
    result = process("evaluate", tmp_path / "task", tmp_path / "saved")
    assert result.code == 0, result.err
    named = add_predictions(TEXTS, task=tmp_path / "task")
    assert set(named["prediction"]) <= {"cats", "banks"}
    add_predictions(Dataset.from_dict({"text": ["a cat", "", "a"]}), task=tmp_path / "task", batch_size=1)
    assert [each.getMessage() for each in caplog.records if "without a word" in each.getMessage()] == [
        "1 text without a word (row 1), whose prediction means nothing"
    ]
    caplog.clear()
    empty = Dataset.from_dict({"text": ["a cat", None, "a"]})
    assert len(add_predictions(empty, task=tmp_path / "task")["prediction"]) == 3
    assert [any(vector) for vector in add_vectors(empty, model=folder)["vector"]] == [True, False, True]
    assert [len(words) for words in add_vectors(empty, model=folder, words=True)["vector"]] == [2, 0, 1]
    assert [each.getMessage() for each in caplog.records if "without a word" in each.getMessage()] == [
        "1 text without a word (row 1), whose prediction means nothing",
        "1 text without a word (row 1), whose vectors are zeros",
    ]


def test_tagging(folder: Path, tmp_path: Path) -> None:
    task = polyseme.train("ner", TAGGED, dev=TAGGED, column="ner_tags", out=tmp_path / "task", encoder=folder, **FAST)
    assert polyseme.evaluate(task, TAGGED).examples == 20
    tags = add_predictions(TAGGED, "tokens", task=tmp_path / "task")["prediction"]
    assert tags[0] == task.predict([["Ann", "saw", "Rome"]])[0].tags
    with pytest.raises(UsageError, match="ner_tags"):
        polyseme.train("ner", TAGGED, column="ner_tag", out=tmp_path / "other", encoder=folder, **FAST)


def test_reading_and_tasks_without_columns(tmp_path: Path) -> None:
    answers = [{"text": ["Rome"], "answer_start": [8]}, {"text": [], "answer_start": []}]
    data = Dataset.from_dict({"context": ["Ann saw Rome."] * 2, "question": ["What?", "Why?"], "answers": answers})
    questions = read_squad(write_dataset(data, "reading", tmp_path, "data")).questions
    assert [each.answers for each in questions] == [("Rome",), ()]
    with pytest.raises(UsageError, match="trained from files"):
        write_dataset(data, "roles", tmp_path, "data")


def test_errors_name_the_argument_and_no_temporary_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^data has no rows: give a table with labelled examples"):
        polyseme.train("classification", TEXTS.select([]), out=tmp_path / "task")
    with pytest.raises(PolysemeError, match=r"^data has no column with a well-known name for the text"):
        polyseme.train("classification", Dataset.from_dict({"a": ["x"], "b": ["y"]}), out=tmp_path / "task")
    with pytest.raises(UsageError, match="data is None; expected the path of a file with labelled data"):
        polyseme.train("classification", None, out=tmp_path / "task")
    with pytest.raises(UsageError, match="task is None; expected the folder of a trained task"):
        add_predictions(TEXTS, task=None)
    with pytest.raises(UsageError, match="the task is None; expected its folder"):
        polyseme.load_task(None)


def test_splits_are_named(tmp_path: Path) -> None:
    both = DatasetDict({"train": TEXTS, "test": TEXTS})
    both.save_to_disk(tmp_path / "both")
    with pytest.raises(UsageError, match="train, test"):
        polyseme.train("classification", both, out=tmp_path / "task")
    with pytest.raises(UsageError, match="train, test"):
        polyseme.train("classification", tmp_path / "both", out=tmp_path / "task")
    with pytest.raises(UsageError, match=r"data\['train'\]"):
        add_vectors(both)


def test_corpora(tmp_path: Path) -> None:
    TEXTS.save_to_disk(tmp_path / "saved")
    (tmp_path / "text.txt").write_text("".join(f"{text}\n" for text in TEXTS["text"]))
    expected = list(polyseme.Corpus(tmp_path / "text.txt"))
    assert list(polyseme.Corpus(TEXTS)) == expected and list(polyseme.Corpus(tmp_path / "saved")) == expected
    first = polyseme.pretrain("ngram", TEXTS, out=tmp_path / "first")
    second = polyseme.pretrain("ngram", tmp_path / "saved", out=tmp_path / "second")
    assert str(first.perplexity(SENTENCES)) == str(second.perplexity(SENTENCES))


def test_vectors(folder: Path, model: Elmo) -> None:
    data = Dataset.from_dict({"text": SENTENCES})
    vectors = np.array(add_vectors(data, model=folder)["vector"])
    np.testing.assert_allclose(vectors, model.encode(SENTENCES), atol=1e-6)
    words = add_vectors(data, model=folder, words=True, layers="top", out="words")["words"]
    np.testing.assert_allclose(words[1], model.embed(SENTENCES, layers="top")[1], atol=1e-6)
    with pytest.raises(UsageError, match="no column"):
        add_vectors(data, "texts")


@pytest.mark.slow
def test_processes_do_not_block_each_other(folder: Path, model: Elmo) -> None:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        torch.ones(2000, 2000) @ torch.ones(2000, 2000)
        model.encode(SENTENCES)
        data = Dataset.from_dict({"text": SENTENCES * 20})
        vectors = np.array(add_vectors(data, model=folder, num_proc=2)["vector"])
    finally:
        torch.set_num_threads(threads)
    np.testing.assert_allclose(vectors[:3], model.encode(SENTENCES), atol=1e-6)
