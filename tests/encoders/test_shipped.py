"""The models that come with the package, by name; here small ones stand in their place."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.encoders import shipped
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.formats.load import load, model_path
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


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed polyseme-models with the models `en-ngram` and `en-new`, and a working folder."""
    package = tmp_path / "installed" / shipped.PACKAGE
    for number, name in enumerate(("en-ngram", "en-new"), start=1):
        elmo(seed=number).save_pretrained(package / name)
        (package / name / shipped.HASH).write_text(model_fingerprint(elmo(seed=number)) + "\n")
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(package.parent)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return package


def test_models_of_the_second_distribution(distribution: Path) -> None:
    assert seed_of(load("en-ngram")) == 1 and seed_of(load("en-new")) == 2  # also those that this version does not know
    assert load("en-ngram").source == "en-ngram" and model_path(load("en-new")) == distribution / "en-new"
    assert shipped.is_shipped("en-new") and not shipped.is_shipped("en-old")
    with pytest.raises(PolysemeError, match=r"en-old: no such file or folder.* \(known: en, .*, en-new, "):
        load("en-old")
    with pytest.raises(PolysemeError, match=r"nothing: no such file or folder.* \(known: .*en-new, en-ngram"):
        load("nothing")


def test_a_name_that_is_a_path_too_is_an_error_that_names_both(distribution: Path) -> None:
    elmo(seed=2).save_pretrained("en-ngram")
    with pytest.raises(UsageError) as told:
        load("en-ngram")
    both = (
        f"en-ngram is a model of polyseme-models ({distribution / 'en-ngram'}) and a path here ({Path('en-ngram').resolve()})"
    )
    assert str(told.value) == f"{both}: write ./en-ngram for your own, or the whole path of the other"
    assert seed_of(load("./en-ngram")) == 2 and seed_of(load(distribution / "en-ngram")) == 1


def test_without_the_distribution_the_error_says_how_to_get_it(distribution: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(distribution / "en-ngram")
    with pytest.raises(
        PolysemeError, match="polyseme-models, which is installed without it: pip install --upgrade polyseme-models"
    ):
        load("en-ngram")
    monkeypatch.setattr(shipped, "PACKAGE", "not_installed")
    with pytest.raises(PolysemeError, match="polyseme-models, which is not installed: pip install --upgrade polyseme-models"):
        load("en-ngram")
    elmo(seed=2).save_pretrained("en-ngram")
    assert seed_of(load("en-ngram")) == 2  # then it is a path like any other


def test_by_hash(distribution: Path) -> None:
    assert shipped.find_by_hash(model_fingerprint(elmo(seed=2))) == distribution / "en-new"
    assert shipped.find_by_hash(model_fingerprint(elmo(seed=3))) is None
    elmo(seed=3).save_pretrained(distribution / "en-new")  # other weights: the note is not true any more
    assert shipped.find_by_hash(model_fingerprint(elmo(seed=2))) is None


@pytest.mark.parametrize("name", shipped.NAMES)
def test_those_of_this_copy_can_be_read(name: str) -> None:
    if not (Path(shipped.__file__).parents[1] / "models" / name / "config.json").is_file():
        pytest.skip(f"this copy lacks the model {name}")
    text = {"en": "The bank of the river.", "zh": "他的包袱很重。"}[name]
    model = load(name)
    (vectors,) = model.embed([text])
    assert vectors.shape == (model.layers, len(model.words(text)), model.dim) and np.isfinite(vectors).all()
