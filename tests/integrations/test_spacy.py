"""spaCy: vectors as `embed` gives them, tasks, saved pipelines, config files, several processes, a real fit."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

import numpy as np
import pytest

spacy = pytest.importorskip("spacy", reason="needs spaCy (extra spacy)")

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch
from thinc.api import Config

import polyseme
import polyseme.integrations.spacy as integration
from polyseme.base.errors import PolysemeError
from polyseme.encoders.elmo import Elmo
from tests.encoders.small import elmo
from tests.integrations.samples import parts_of_speech

TEXTS = ["The bank of the river.  Money,\n\nmoney!", "A cat", "", "naïve 漢字 dogs sat on a mat"]


def pipeline(folder: Path, **config: object) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("polyseme", config={"model": str(folder), **config})
    return nlp


def test_vectors_are_those_of_embed(folder: Path, model: Elmo) -> None:
    doc = pipeline(folder)(TEXTS[0])
    words = [token for token in doc if not token.is_space]
    expected = model.embed([[token.text for token in words]])[0]
    places = [token.i for token in words]
    np.testing.assert_allclose(doc._.elmo[:, places], expected, atol=1e-6)
    np.testing.assert_allclose(doc.tensor[places], expected.mean(0), atol=1e-6)
    np.testing.assert_allclose(words[1].vector, expected.mean(0)[1], atol=1e-6)
    np.testing.assert_allclose(doc[1:3].vector, doc.tensor[1:3].mean(0), atol=1e-6)
    assert not doc.tensor[[token.i for token in doc if token.is_space]].any()
    assert doc.similarity(doc) == pytest.approx(1)


def test_sentences_are_read_one_by_one(folder: Path, model: Elmo) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("polyseme", config={"model": str(folder), "layers": [0, 2], "keep_layers": False})
    doc = nlp("A cat sat. The dog sat.")
    expected = model.embed([["The", "dog", "sat", "."]], layers=[0, 2])[0]
    np.testing.assert_allclose(doc.tensor[4:], np.concatenate(list(expected), axis=1), atol=1e-6)
    assert doc._.elmo is None


def test_a_vocabulary_with_vectors_does_not_hide_them(folder: Path) -> None:
    nlp = pipeline(folder)
    nlp.vocab.set_vector("cat", np.ones(3, dtype=np.float32))
    doc = nlp("A cat")
    np.testing.assert_array_equal(doc[1].vector, doc.tensor[1])


def vectors(nlp: Language) -> list[np.ndarray]:
    return [doc.tensor for doc in nlp.pipe(TEXTS)]


def same(first: list[np.ndarray], second: list[np.ndarray]) -> None:
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_saved_pipelines_give_the_same_vectors(folder: Path, tmp_path: Path) -> None:
    nlp = pipeline(folder, layers="top")
    nlp.to_disk(tmp_path / "pipeline")
    assert sum(path.stat().st_size for path in (tmp_path / "pipeline" / "polyseme").rglob("*")) < 1000
    same(vectors(spacy.load(tmp_path / "pipeline")), vectors(nlp))
    same(vectors(spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())), vectors(nlp))
    same(vectors(pickle.loads(pickle.dumps(nlp))), vectors(nlp))
    stored = pipeline(folder, store_weights=True)
    stored.to_disk(tmp_path / "whole")
    (tmp_path / "whole").rename(tmp_path / "moved")
    same(vectors(spacy.load(tmp_path / "moved")), vectors(stored))


def test_another_model_of_that_name_is_refused(tmp_path: Path) -> None:
    elmo().save_pretrained(tmp_path / "model")
    pipeline(tmp_path / "model").to_disk(tmp_path / "pipeline")
    elmo(seed=1).save_pretrained(tmp_path / "model")
    with pytest.raises(PolysemeError, match="not the model that was used before"):
        spacy.load(tmp_path / "pipeline")("A cat")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_do_not_block_each_other(method: str, folder: Path) -> None:
    """Also after this process has used its threads, of which a forked one has none."""
    import multiprocessing

    import torch

    threads, before = torch.get_num_threads(), multiprocessing.get_start_method(allow_none=True)
    torch.set_num_threads(2)
    multiprocessing.set_start_method(method, force=True)
    try:
        nlp = pipeline(folder)
        expected = vectors(nlp)
        torch.ones(2000, 2000) @ torch.ones(2000, 2000)
        docs = list(nlp.pipe(TEXTS * 20, n_process=2, batch_size=10))
    finally:
        torch.set_num_threads(threads)
        multiprocessing.set_start_method(before, force=True)
    same([doc.tensor for doc in docs[-4:]], expected)
    assert docs[-1]._.elmo.shape[0] == 3 and docs[0][0].vector.any()


@pytest.fixture(scope="module")
def tasks(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    place = tmp_path_factory.mktemp("tasks")
    rows = "Ann\tB-PER\tPROPN\nsaw\tO\tVERB\nUlan\tB-LOC\tPROPN\nBator\tI-LOC\tPROPN\n\n"
    (place / "tags.conll").write_text(rows * 12)
    (place / "texts.tsv").write_text("a cat\tcats\nthe bank\tbanks\n" * 10)
    options = {"encoder": folder, "hidden_size": 16, "min_steps": 60, "learning_rate": 0.01, "device": "cpu"}
    return {
        "ner": polyseme.train("ner", place / "tags.conll", column="1", out=place / "ner", **options),
        "pos": polyseme.train("pos", place / "tags.conll", column="2", out=place / "pos", **options),
        "texts": polyseme.train("classification", place / "texts.tsv", out=place / "texts", text="0", label="1", **options),
        "place": place,
    }


@pytest.mark.slow
def test_tasks_set_ents_tags_and_cats(tasks: dict, tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    for name in ("ner", "pos", "texts"):
        nlp.add_pipe("polyseme_task", name=name, config={"task": str(tasks["place"] / name)})
    text = "Ann saw\nUlan Bator"
    doc = nlp(text)
    words = ["Ann", "saw", "Ulan", "Bator"]
    gold = tasks["ner"].predict([words])[0]
    assert [(ent.text, ent.label_) for ent in doc.ents] == [(" ".join(words[b:e]), kind) for b, e, kind in gold.spans]
    assert doc.ents
    assert [token.tag_ for token in doc if not token.is_space] == tasks["pos"].predict([words])[0].tags
    assert doc[0].pos_ == doc[0].tag_
    assert doc.cats == pytest.approx(tasks["texts"].predict([words])[0].probabilities)
    nlp.to_disk(tmp_path / "pipeline")
    for again in (spacy.load(tmp_path / "pipeline"), pickle.loads(pickle.dumps(nlp))):
        other = again(text)
        assert [(ent.text, ent.label_) for ent in other.ents] == [(ent.text, ent.label_) for ent in doc.ents]
        assert [token.tag_ for token in other] == [token.tag_ for token in doc] and other.cats == pytest.approx(doc.cats)


CONFIG = """
[nlp]
lang = "en"
pipeline = ["tagger"]

[components]

[components.tagger]
factory = "tagger"

[components.tagger.model]
@architectures = "spacy.Tagger.v2"

[components.tagger.model.tok2vec]
@architectures = "polyseme.Tok2Vec.v1"
model = "en"
layers = "mean"
"""


def tagger(model: str, sentences: list) -> tuple[Language, list[Example]]:
    config = Config().from_str(CONFIG.replace('"en"\nlayers', f'"{model}"\nlayers'))
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    examples = []
    for each in sentences:
        doc = Doc(nlp.vocab, words=each.words)
        examples.append(Example(doc, Doc(nlp.vocab, words=each.words, tags=each.tags)))
    return nlp, examples


def fit(nlp: Language, examples: list[Example], epochs: int, learn_rate: float) -> None:
    nlp.initialize(lambda: examples).learn_rate = learn_rate
    generator = random.Random(0)
    for _ in range(epochs):
        generator.shuffle(examples)
        for batch in minibatch(examples, size=16):
            nlp.update(list(batch))


def test_spacy_trains_on_our_vectors(folder: Path, tmp_path: Path) -> None:
    from polyseme.text.labelled.conll import TaggedSentence

    sentences = [TaggedSentence(["a", "cat"], ["DT", "NN"]), TaggedSentence(["the", "bank", "sat"], ["DT", "NN", "VBD"])]
    nlp, examples = tagger(str(folder), sentences)
    fit(nlp, examples, 60, 0.1)
    assert [token.tag_ for token in nlp("a cat")] == ["DT", "NN"]
    nlp.to_disk(tmp_path / "tagger")
    again = spacy.load(tmp_path / "tagger")
    assert [token.tag_ for token in again("a cat")] == [token.tag_ for token in nlp("a cat")]


@pytest.mark.slow
def test_a_tagger_of_spacy_on_our_vectors_beats_the_majority() -> None:
    nlp, examples = tagger("en", parts_of_speech("train", 150))
    fit(nlp, examples, 4, 0.01)
    _, test = tagger("en", parts_of_speech("dev", 80))
    score = nlp.evaluate(test)["tag_acc"]
    tags = [token.tag_ for each in test for token in each.reference]
    most = max(tags.count(tag) for tag in set(tags)) / len(tags)
    print(f"tags: {score:.3f}, majority {most:.3f}")
    assert score > most + 0.3


def test_components_are_named_in_config_files(folder: Path) -> None:
    nlp = pipeline(folder)
    again = spacy.util.load_model_from_config(Config().from_str(nlp.config.to_str()), auto_fill=True)
    same(vectors(again), vectors(nlp))
    assert isinstance(again.get_pipe("polyseme"), integration.PolysemeVectors)
