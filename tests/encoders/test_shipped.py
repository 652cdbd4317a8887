"""The models that come with the package, by name; here small ones stand in their place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.base.errors import PolysemeError
from polyseme.encoders import shipped
from polyseme.formats.load import load
from tests.encoders.small import elmo

TEXT = [["the", "bank"]]


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package's models, `en` alone, and a working folder with an `en`, a `zh` and an `es` of its own."""
    elmo(seed=1).save_pretrained(tmp_path / "package" / "models" / "en")
    monkeypatch.setattr(polyseme, "__file__", str(tmp_path / "package" / "__init__.py"))
    for name in ("en", "zh", "es"):
        elmo(seed=2).save_pretrained(tmp_path / "here" / name)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "package" / "models"


def seed_of(model: polyseme.Elmo) -> int:
    """Which of the small models it is."""
    for seed in (1, 2):
        if np.array_equal(model.embed(TEXT)[0], elmo(seed=seed).embed(TEXT)[0]):
            return seed
    raise AssertionError("none of ours")


def test_a_name_goes_before_a_path(models: Path) -> None:
    assert seed_of(load()) == seed_of(load("en")) == 1
    assert load("en").source == load().source == "en"
    for path in ("./en", "../here/en", "en/", Path("./en").resolve(), "es"):
        assert seed_of(load(path)) == 2, path
    assert shipped.shipped_folder("en") == models / "en"
    assert shipped.shipped_folder("./en") is shipped.shipped_folder("es") is shipped.shipped_folder("") is None


def test_a_copy_without_the_weights_says_what_to_do(models: Path) -> None:
    with pytest.raises(PolysemeError) as told:
        load("zh")
    said = f"this installation lacks the weights of the model 'zh' ({models / 'zh'}): choose another model, or write ./zh "
    assert str(told.value) == f"{said}for your own folder"
    assert seed_of(load("./zh")) == 2
    (models / "zh").mkdir()  # what a checkout without the large files may have
    (models / "zh" / "README.md").write_text("# zh\n")
    with pytest.raises(PolysemeError, match="lacks the weights"):
        load("zh")


def test_options_of_other_formats_are_refused(models: Path) -> None:
    with pytest.raises(PolysemeError, match="options does not apply to a polyseme folder"):
        load("en", options=models / "en" / "config.json")
    assert load("en", splitter="english").words("isn't") == ["is", "n't"]


@pytest.mark.parametrize("name", shipped.NAMES)
def test_those_of_this_copy_can_be_read(name: str) -> None:
    if not (Path(shipped.__file__).parents[1] / "models" / name / "config.json").is_file():
        pytest.skip(f"this copy lacks the model {name}")
    text = {"en": "The bank of the river.", "zh": "他的包袱很重。"}[name]
    model = load(name)
    (vectors,) = model.embed([text])
    assert vectors.shape == (model.layers, len(model.words(text)), model.dim) and np.isfinite(vectors).all()
