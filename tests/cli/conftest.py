"""A tiny model on disk, also in the place of one that comes with the package, and the command line run inside this process."""

import io
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import polyseme
from polyseme.__main__ import main
from polyseme.base import interrupts
from polyseme.encoders.base import Encoder
from tests.cli.labelled import TINY, write_all
from tests.cli.running import Result, tiny


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny().save_pretrained(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture(scope="session")
def loaded(model: str) -> Encoder:
    return polyseme.load(model)


@pytest.fixture
def shipped(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package whose only model, `en`, is the tiny one."""
    shutil.copytree(model, tmp_path / "package" / "models" / "en")
    monkeypatch.setattr(polyseme, "__file__", str(tmp_path / "package" / "__init__.py"))
    return tmp_path / "package" / "models" / "en"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    def call(*arguments: object, stdin: bytes | None = None) -> Result:
        capsys.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(interrupts, "PATIENCE", 600.0)  # a busy machine must not change how a run stops
            if stdin is not None:
                patch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))))
            code = main([str(argument) for argument in arguments])
        seen = capsys.readouterr()
        return Result(code, seen.out, seen.err)

    return call


@pytest.fixture(scope="session")
def trained_tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small trained tasks, to be read only, beside their data: tagger, classifier, pairs (labels), scorer (pairs, scores)."""
    folder = write_all(tmp_path_factory.mktemp("tasks"))
    options = {**TINY, "encoder": "none"}
    polyseme.train("tagging", folder / "train.conll", out=folder / "tagger", **options)
    polyseme.train("classification", folder / "texts.tsv", out=folder / "classifier", network="pooled", **options)
    polyseme.train("pairs", folder / "pairs.tsv", out=folder / "pairs", network="siamese", **options)
    polyseme.train("pairs", folder / "scores.tsv", out=folder / "scorer", network="siamese", goal="score", **options)
    return folder
