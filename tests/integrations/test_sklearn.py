"""scikit-learn: vectors as `encode` gives them, clones, grid searches, pickles without weights, real fits."""

from __future__ import annotations

import pickle
import traceback
from pathlib import Path

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn", reason="needs scikit-learn (extra sklearn)")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import polyseme
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.encoders.elmo import Elmo
from polyseme.integrations.sklearn import Embedder, Tagger, TextClassifier
from tests.encoders.small import elmo
from tests.integrations.samples import SENTENCES, majority, parts_of_speech, questions

TEXTS = ["the river bank", "a cat on a mat", "money in the bank", "the dog sat"] * 6
LABELS = np.array([0, 1, 0, 1] * 6)
REASONS = {
    "check_classifier_data_not_an_array": "gives an object that cannot be iterated over",
    "check_transformer_data_not_an_array": "gives an object that cannot be iterated over",
    "check_dtype_object": "gives a column of numbers",
    "check_estimator_sparse_array": "wants a message about sparse tables",
    "check_estimator_sparse_matrix": "wants a message about sparse tables",
    "check_n_features_in": "texts have no columns to count",
    "check_n_features_in_after_fitting": "texts have no columns to count",
    "check_estimators_nan_inf": "looks for NaN in the message",
    "check_estimators_empty_data_messages": "an empty list of texts has an empty list of vectors",
}
"""Checks that cannot hold for estimators of texts, besides those that give tables of numbers."""
FAST = {"epochs": 1, "hidden_size": 8, "settings": {"min_steps": 1}}


def test_vectors_are_those_of_encode(folder: Path, model: Elmo) -> None:
    expected = model.encode(SENTENCES, pooling="mean", layers="top", normalize_embeddings=True)
    vectors = Embedder(folder, pooling="mean", layers="top", normalize=True).fit_transform(SENTENCES)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    words = Embedder(folder).transform(np.array([each.split() for each in SENTENCES], dtype=object))
    np.testing.assert_allclose(words, model.encode(SENTENCES), atol=1e-6)
    assert Embedder(folder, layers=[0, 1]).get_feature_names_out()[-1] == f"embedder{2 * model.dim - 1}"


def test_texts_in_wrong_containers_are_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="put it into a list"):
        Embedder(folder).transform("one text")
    with pytest.raises(UsageError, match="give a column"):
        Embedder(folder).transform(np.array([["a"], ["b"]]))
    with pytest.raises(UsageError, match="got a dictionary: give one of its values"):
        Embedder(folder).transform({"text": SENTENCES})
    with pytest.raises(UsageError, match="expected a list of texts, got NoneType"):
        Embedder(folder).transform(None)
    with pytest.raises(UsageError, match="a text is a string or a list of words; got None"):
        Embedder(folder).transform(["a", None])
    assert Embedder(folder).transform([]).shape == (0, Embedder(folder).transform(["a"]).shape[1])


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (None, "the target y is None: give a label for each text"),
        ("ab" * 3, "y is the string 'ababab'; expected a list with a label for each text"),
        (["a", None] * 3, "text 1 has the label None: give it a label, or leave the text out"),
        (["a", float("nan")] * 3, "text 1 has the label nan"),
    ],
)
def test_missing_labels_are_named(y: object, said: str, folder: Path) -> None:
    with pytest.raises(UsageError, match=said):
        TextClassifier(folder, **FAST).fit(SENTENCES * 2, y)


@pytest.mark.parametrize("y", [["NV"] * 4, [None] * 4, [["N"]] * 4])
def test_tags_are_lists_as_long_as_sentences(y: list, folder: Path) -> None:
    with pytest.raises(UsageError, match=r"sentence 0 is \['a', 'cat'\] with .*; expected words and as many tags, in lists"):
        Tagger(folder, **FAST).fit([["a", "cat"]] * 4, y)
    with pytest.raises(UsageError, match="give a list of tags for each text"):
        Tagger(folder, **FAST).fit([["a", "cat"]] * 4, None)


def test_wrong_settings_are_named(folder: Path) -> None:
    labels = ["a", "b", "a"]
    with pytest.raises(UsageError, match=r"settings is .*; expected a dictionary"):
        TextClassifier(folder, settings=["epochs"]).fit(SENTENCES, labels)
    with pytest.raises(UsageError, match="random_state is None; expected a whole number"):
        TextClassifier(folder, random_state=None).fit(SENTENCES, labels)
    with pytest.raises(UsageError, match="encoder is None; expected none, a name, a loaded model"):
        TextClassifier(None).fit(SENTENCES, labels)
    with pytest.raises(UsageError, match=r"0 examples are too few .*: give 2 or more"):
        TextClassifier(folder).fit([], [])


def test_clones_share_a_loaded_model(model: Elmo) -> None:
    estimator = Embedder(model, layers="top")
    copy = clone(estimator)
    assert copy.model is model and copy.get_params() == estimator.get_params()


def test_a_pickle_has_a_name_and_a_hash(folder: Path) -> None:
    big = elmo(form="both")
    big.save_pretrained(folder.parent / "both")
    loaded = polyseme.load(folder.parent / "both")
    for estimator in (Embedder(folder), Embedder(loaded)):
        data = pickle.dumps(estimator)
        assert len(data) < 1500
        again = pickle.loads(data)
        assert isinstance(again.model, str)
        np.testing.assert_array_equal(again.transform(SENTENCES), estimator.transform(SENTENCES))
    with pytest.raises(UsageError, match="save_pretrained"):
        pickle.dumps(Embedder(elmo()))


def test_another_model_of_that_name_is_refused(tmp_path: Path) -> None:
    path = elmo().save_pretrained(tmp_path / "model")
    data = pickle.dumps(Embedder(path))
    elmo(seed=1).save_pretrained(tmp_path / "model")
    with pytest.raises(PolysemeError, match="not the model that was used before"):
        pickle.loads(data).transform(SENTENCES)
    with pytest.raises(PolysemeError, match="not the model that was used before"):
        clone(pickle.loads(data)).transform(SENTENCES)


def test_pipeline_and_grid_search(folder: Path) -> None:
    pipeline = make_pipeline(Embedder(folder), LogisticRegression())
    search = GridSearchCV(pipeline, {"embedder__layers": ["top", "mean"], "logisticregression__C": [0.1, 10]}, cv=2)
    search.fit(TEXTS, LABELS)
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict_proba(TEXTS[:4]), search.predict_proba(TEXTS[:4]))


@pytest.mark.slow
def test_processes_of_a_grid_search_do_not_block_each_other(folder: Path) -> None:
    Embedder(folder).transform(SENTENCES)  # threads of this process are there before the others begin
    pipeline = make_pipeline(Embedder(folder), LogisticRegression())
    assert len(cross_val_score(pipeline, TEXTS, LABELS, cv=2, n_jobs=2)) == 2


@pytest.mark.parametrize("labels", [LABELS, np.array(["no", "yes"])[LABELS]], ids=["numbers", "names"])
def test_classifier(folder: Path, labels: np.ndarray) -> None:
    classifier = TextClassifier(folder, **FAST)
    with pytest.raises(NotFittedError):
        classifier.predict(TEXTS)
    classifier.fit(TEXTS, labels)
    assert classifier.predict(TEXTS[:3]).dtype == labels.dtype
    assert classifier.predict_proba(TEXTS[:3]).shape == (3, 2)
    data = pickle.dumps(classifier)
    weights = (folder / "model.safetensors").stat().st_size
    assert weights < 60_000 and b"tokens.characters" not in data  # none of the encoder's
    np.testing.assert_array_equal(pickle.loads(data).predict_proba(TEXTS[:4]), classifier.predict_proba(TEXTS[:4]))
    twice = pickle.loads(pickle.dumps(pickle.loads(data)))
    np.testing.assert_array_equal(twice.predict_proba(TEXTS[:4]), classifier.predict_proba(TEXTS[:4]))


def test_fine_tuned_weights_are_in_the_pickle(folder: Path) -> None:
    classifier = TextClassifier(folder, mode="finetune", **FAST).fit(TEXTS, LABELS)
    data = pickle.dumps(classifier)
    np.testing.assert_array_equal(pickle.loads(data).predict_proba(TEXTS[:4]), classifier.predict_proba(TEXTS[:4]))


def test_tagger(folder: Path, tmp_path: Path) -> None:
    words = [text.split() for text in TEXTS]
    tags = [["NOUN" if word in ("bank", "cat", "mat", "dog") else "X" for word in each] for each in words]
    tagger = Tagger(folder, out=tmp_path / "tagger", **FAST).fit(words, tags)
    predicted = tagger.predict(words)
    right = sum(a == b for p, t in zip(predicted, tags, strict=True) for a, b in zip(p, t, strict=True))
    assert tagger.score(words, tags) == pytest.approx(right / sum(map(len, tags)))
    assert pickle.loads(pickle.dumps(tagger)).predict(words) == predicted
    assert [each.tags for each in polyseme.load_task(tmp_path / "tagger").predict(words)] == predicted
    with pytest.raises(UsageError, match="as many tags"):
        tagger.fit([["a", "b"]], [["X"]])


def test_grid_search_over_a_task(folder: Path) -> None:
    search = GridSearchCV(TextClassifier(folder, **FAST), {"hidden_size": [4, 8]}, cv=2).fit(TEXTS, LABELS)
    assert search.best_params_["hidden_size"] in (4, 8)


@pytest.mark.parametrize("kind", [Embedder, TextClassifier, Tagger])
def test_checks_of_scikit_learn(kind: type, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are, most checks are skipped; with the tag of tables they run, and fail only because they give numbers."""
    assert not [each for each in check_estimator(kind(folder), on_skip=None) if each["status"] == "failed"]
    own = kind.__sklearn_tags__

    def of_tables(self: object) -> object:
        tags = own(self)
        tags.input_tags.two_d_array = True
        return tags

    monkeypatch.setattr(kind, "__sklearn_tags__", of_tables)
    results = check_estimator(kind(folder), on_skip=None, on_fail=None)
    assert sum(each["status"] == "passed" for each in results) > 10
    failed = {each["check_name"]: each["exception"] for each in results if each["status"] == "failed"}
    others = {name for name, error in failed.items() if "table of shape" not in "".join(traceback.format_exception(error))}
    assert others <= set(REASONS)


@pytest.mark.slow
def test_vectors_of_questions_beat_the_majority() -> None:
    texts, labels = questions("train", 600)
    test_texts, gold = questions("test", 200)
    pipeline = make_pipeline(Embedder("en"), LogisticRegression(max_iter=1000)).fit(texts, labels)
    assert pipeline.score(test_texts, gold) > majority(labels, gold) + 0.3


@pytest.mark.slow
def test_a_classifier_of_questions_beats_the_majority() -> None:
    texts, labels = questions("train", 600)
    test_texts, gold = questions("test", 200)
    classifier = TextClassifier("en").fit(texts, labels)
    assert classifier.score(test_texts, gold) > majority(labels, gold) + 0.3


@pytest.mark.slow
def test_a_tagger_of_parts_of_speech_beats_the_majority() -> None:
    train, test = parts_of_speech("train", 300), parts_of_speech("dev", 100)
    tagger = Tagger("en", epochs=5).fit([each.words for each in train], [each.tags for each in train])
    share = majority([tag for each in train for tag in each.tags], [tag for each in test for tag in each.tags])
    assert tagger.score([each.words for each in test], [each.tags for each in test]) > share + 0.3
