"""A task that names an encoder of the package finds it by its hash where the package has another model of that name now."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import polyseme
from polyseme.base.errors import FormatError
from polyseme.encoders import shipped
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.encoders.folder import load as load_encoder
from polyseme.tasks.folder import load
from tests.encoders.small import elmo

TRAINED = Path(__file__).parents[1] / "old_folders" / "tasks" / "tagging-covering"


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A task that names the package's `en`, which has other weights by now; its own is in polyseme-models, as `en-v1`."""
    package, models = tmp_path / "package", tmp_path / "site" / shipped.PACKAGE
    folder = Path(shutil.copytree(TRAINED, tmp_path / "task"))
    shutil.move(folder / "encoder-1", models / "en-v1")
    sha256 = model_fingerprint(load_encoder(models / "en-v1"))
    (models / "__init__.py").write_text("")
    (models / "en-v1" / shipped.HASH).write_text(f"{sha256}\n")
    elmo(seed=5).save_pretrained(package / "models" / "en")
    monkeypatch.setattr(polyseme, "__file__", str(package / "__init__.py"))
    monkeypatch.syspath_prepend(models.parent)
    head = json.loads((folder / "task.json").read_text())
    head["encoders"] = [{"shipped": "en", "sha256": sha256}]
    (folder / "task.json").write_text(json.dumps(head))
    return folder


def test_it_is_found_and_answers_as_before(task: Path, tmp_path: Path) -> None:
    texts = ["The bank of the river .", "Money in London"]
    assert load(task).predict(texts) == load(TRAINED).predict(texts)
    load(task).save(tmp_path / "again")  # with a copy: the name alone would now mean another encoder
    assert json.loads((tmp_path / "again" / "task.json").read_text())["encoders"][0]["folder"] == "encoder-1"
    assert load(tmp_path / "again").predict(texts) == load(TRAINED).predict(texts)


def test_without_it_the_error_says_where_earlier_models_are(task: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "site" / shipped.PACKAGE / "en-v1")
    with pytest.raises(
        FormatError, match=r"another encoder than en is now: .*pip install --upgrade polyseme-models\), or train"
    ):
        load(task)
