"""Flair: vectors as `embed` gives them, stacks, saved taggers without weights, a real fit."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("flair", reason="needs Flair (extra flair), in an environment of its own")

import flair
from flair.data import Corpus, Dictionary, Sentence
from flair.datasets import SentenceDataset
from flair.embeddings import FlairEmbeddings, StackedEmbeddings, TokenEmbeddings
from flair.models import LanguageModel, SequenceTagger
from flair.trainers import ModelTrainer

import polyseme
from polyseme.base.errors import PolysemeError
from polyseme.encoders.elmo import Elmo
from polyseme.integrations.flair import PolysemeEmbeddings
from tests.encoders.small import elmo
from tests.integrations.samples import SENTENCES, majority, parts_of_speech

flair.device = torch.device("cpu")


def vectors(embeddings: TokenEmbeddings, text: str) -> np.ndarray:
    sentence = Sentence(text, use_tokenizer=False)
    embeddings.embed(sentence)
    return np.stack([token.get_embedding(embeddings.get_names()).numpy() for token in sentence])


def test_vectors_are_those_of_embed(folder: Path, model: Elmo) -> None:
    words = SENTENCES[0].split()
    mean = model.embed([words], layers="mean")[0]
    np.testing.assert_allclose(vectors(PolysemeEmbeddings(folder), SENTENCES[0]), mean, atol=1e-6)
    both = PolysemeEmbeddings(folder, layers=[0, 2])
    assert both.embedding_length == 2 * model.dim and both.embedding_type == "word-level"
    expected = np.concatenate(list(model.embed([words], layers=[0, 2])[0]), axis=1)
    np.testing.assert_allclose(vectors(both, SENTENCES[0]), expected, atol=1e-6)
    stack = StackedEmbeddings([PolysemeEmbeddings(folder, layers=0), PolysemeEmbeddings(folder, layers="top")])
    assert vectors(stack, SENTENCES[0]).shape == (len(words), 2 * model.dim)
    assert not list(both.parameters())


def test_saved_embeddings(folder: Path) -> None:
    embeddings = PolysemeEmbeddings(folder, layers="top")
    params = embeddings.save_embeddings()
    again = PolysemeEmbeddings.load_embedding(params)
    np.testing.assert_array_equal(vectors(again, SENTENCES[1]), vectors(embeddings, SENTENCES[1]))
    data = pickle.dumps(embeddings)
    assert len(data) < 3000
    np.testing.assert_array_equal(vectors(pickle.loads(data), SENTENCES[1]), vectors(embeddings, SENTENCES[1]))


def test_another_model_of_that_name_is_refused(tmp_path: Path) -> None:
    params = PolysemeEmbeddings(elmo().save_pretrained(tmp_path / "model")).save_embeddings()
    elmo(seed=1).save_pretrained(tmp_path / "model")
    with pytest.raises(PolysemeError, match="not the model that was used before"):
        PolysemeEmbeddings.load_embedding(params)


@pytest.mark.parametrize("shape", [{"hidden_size": 7, "nlayers": 1}, {"hidden_size": 6, "nlayers": 2, "nout": 5}], ids=str)
def test_flairs_own_language_models(shape: dict[str, int], tmp_path: Path) -> None:
    """What Flair's language models say of words, polyseme says too, of the files that Flair writes."""
    letters = Dictionary()
    for letter in "abcdefghiklmnorstuvwxyTM .\n":
        letters.add_item(letter)
    expected = []
    for forward in (True, False):
        torch.manual_seed(int(forward))
        network = LanguageModel(letters, is_forward_lm=forward, embedding_size=4, **shape)
        network.save(tmp_path / f"{'forward' if forward else 'backward'}.pt")
        embeddings = FlairEmbeddings(network.eval(), name=str(forward))
        embeddings.eval()
        expected.append([vectors(embeddings, text) for text in SENTENCES])
    model = polyseme.load(tmp_path)
    for text, forward, backward in zip(SENTENCES, *expected, strict=True):
        found = model.embed([text.split()], layers="top")[0]
        np.testing.assert_allclose(found, np.concatenate([forward, backward], axis=1), atol=1e-5)


def sentences(part: str, count: int) -> list[Sentence]:
    made = []
    for each in parts_of_speech(part, count):
        sentence = Sentence(each.words)
        for token, tag in zip(sentence, each.tags, strict=True):
            token.set_label("upos", tag)
        made.append(sentence)
    return made


@pytest.mark.slow
def test_a_tagger_of_flair_beats_the_majority(tmp_path: Path) -> None:
    train, test = sentences("train", 150), sentences("dev", 60)
    parts = {"train": SentenceDataset(train), "dev": SentenceDataset(test), "test": SentenceDataset(test)}
    corpus = Corpus(**parts, sample_missing_splits=False)
    labels = corpus.make_label_dictionary("upos", add_unk=False)
    options = {"tag_dictionary": labels, "tag_type": "upos", "hidden_size": 64, "use_crf": False}
    tagger = SequenceTagger(embeddings=PolysemeEmbeddings("en"), **options)
    ModelTrainer(tagger, corpus).train(tmp_path / "run", max_epochs=4, learning_rate=0.1, mini_batch_size=8)
    loaded = SequenceTagger.load(tmp_path / "run" / "final-model.pt")
    score = loaded.evaluate(test, gold_label_type="upos").main_score
    tags = [[token.get_label("upos").value for sentence in part for token in sentence] for part in (train, test)]
    print(f"parts of speech: {score:.3f}, majority {majority(*tags):.3f}")
    assert score > majority(*tags) + 0.2
    assert (tmp_path / "run" / "final-model.pt").stat().st_size < 5_000_000  # the ELMo's weights alone are 27 MB
