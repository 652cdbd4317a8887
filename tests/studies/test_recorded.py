"""A run that is resumed has its own settings where the user gives none."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

import polyseme
from polyseme.base.errors import PolysemeError
from polyseme.studies.recorded import recorded_configs
from polyseme.tasks.registry import TASKS
from polyseme.training.resume import differences

OPTIONS: dict[str, Any] = {"hidden_size": 4, "word_dim": 4, "characters": None, "encoder": "none", "seed": 3}


def write_data(path: Path, rows: list[str]) -> str:
    path.write_text("text\tlabel\n" + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return str(path)


def test_what_is_not_given_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_data(tmp_path / "data.tsv", ["good\ta", "bad\tb", "so good\ta", "so bad\tb"])
    given: dict[str, Any] = {"dev": data, "out": tmp_path / "out", "encoder": "none", "seed": 3}
    polyseme.train("classification", data, epochs=2, batch_size=3, warmup=0.2, **{**given, **OPTIONS})
    entry = TASKS["classification"]
    other = dataclasses.replace(entry.training, batch_size=2, learning_rate=0.5, min_epochs=7)
    monkeypatch.setitem(TASKS, "classification", dataclasses.replace(entry, training=other))  # as a later version
    assert polyseme.train("classification", data, **given).config.hidden_size == 4
    found = recorded_configs("classification", tmp_path / "out")
    assert found is not None
    fit = found["fit"]
    assert (fit.batch_size, fit.epochs, fit.optim.warmup) == (3, 2, 0.2)  # type: ignore[attr-defined]
    assert fit.optim.learning_rate == entry.training.learning_rate  # type: ignore[attr-defined]
    with pytest.raises(PolysemeError, match=r"batch_size: 3 in the run, 2 now"):
        polyseme.train("classification", data, batch_size=2, **given)
    assert recorded_configs("classification", tmp_path) is None  # no run
    assert recorded_configs("tagging", tmp_path / "out") is None  # of another task


def test_the_learning_rate_is_that_before_restarts(tmp_path: Path) -> None:
    data = write_data(tmp_path / "same.tsv", ["x\ta", "x\ta", "x\tb"])
    options: dict[str, Any] = {"dev": data, "out": tmp_path / "out", "epochs": 1, "learning_rate": 0.01, **OPTIONS}
    polyseme.train("classification", data, **options)
    found = recorded_configs("classification", tmp_path / "out")
    assert found is not None and found["fit"].optim.learning_rate == 0.01  # type: ignore[attr-defined]
    del options["learning_rate"]
    polyseme.train("classification", data, **options)


def test_settings_that_a_record_lacks_are_those_of_its_version() -> None:
    old = {"settings": {"task": {"hidden_size": 4}}}
    same = {"settings": {"task": {"hidden_size": 4, "wide": False, "wide_features": 0, "word_layer": 0}}}
    assert differences(old, same) == {}
    wide = {"settings": {"task": {"hidden_size": 4, "wide": True}}}
    assert list(differences(old, wide)) == ["settings.task.wide"]


def test_the_batch_that_was_chosen_for_long_sentences_stays(tmp_path: Path) -> None:
    """About 2,048 words of them, however long the sentences are; what the user gives is kept."""
    lines = "".join(f"w{number} {'AB'[number % 2]}\n" for number in range(700)) + "\n"
    (tmp_path / "long.conll").write_text(6 * lines, encoding="utf-8")
    given: dict[str, Any] = {"dev": tmp_path / "long.conll", "epochs": 1, **OPTIONS}
    for number, expected in ((None, 2), (5, 5)):
        out = tmp_path / str(expected)
        for _ in range(2):  # the second call resumes the run, which is finished
            polyseme.train("tagging", tmp_path / "long.conll", out=out, **given | ({"batch_size": number} if number else {}))
            found = recorded_configs("tagging", out)
            assert found is not None and found["fit"].batch_size == expected  # type: ignore[attr-defined]
