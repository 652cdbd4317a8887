"""Wrong inputs of the old calls: the error says what was given and what is expected. Strings are lists of characters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyseme
from polyseme.base.errors import UsageError
from polyseme.compat import tfhub
from polyseme.compat.allennlp import Elmo, ElmoEmbedder, batch_to_ids
from polyseme.compat.bilm import Batcher, BidirectionalLanguageModel, TokenBatcher, dump_bilm_embeddings, weight_layers
from polyseme.compat.bio_embeddings import SeqVecEmbedder
from polyseme.compat.elmoformanylangs import Embedder
from polyseme.compat.simple_elmo import ElmoModel
from tests.compat.small_models import SmallModel


def simple_elmo(small: SmallModel) -> ElmoModel:
    model = ElmoModel()
    model.load(small.folder)
    return model


TAKES_SENTENCES: dict[str, Callable[[SmallModel], Callable[[Any], Any]]] = {
    "batch_to_ids": lambda small: batch_to_ids,
    "embed_batch": lambda small: ElmoEmbedder(small.options, small.weights).embed_batch,
    "sents2elmo": lambda small: Embedder(small.folder).sents2elmo,
    "get_elmo_vectors": lambda small: simple_elmo(small).get_elmo_vectors,
    "get_elmo_vector_average": lambda small: simple_elmo(small).get_elmo_vector_average,
    "Batcher": lambda small: Batcher(None, 50).batch_sentences,
    "TokenBatcher": lambda small: TokenBatcher(small.folder / "words.txt").batch_sentences,
}


@pytest.mark.parametrize("name", TAKES_SENTENCES)
def test_sentences_are_lists_of_words(name: str, small: SmallModel, caplog: pytest.LogCaptureFixture) -> None:
    (small.folder / "words.txt").write_text("<S>\n</S>\n<UNK>\n", encoding="utf-8")
    call = TAKES_SENTENCES[name](small)
    with pytest.raises(UsageError, match=r"got None; expected a list of sentences"):
        call(None)
    with pytest.raises(UsageError, match=r"sentence 1 is None; expected a list of words, such as"):
        call([["the"], None])
    with pytest.raises(UsageError, match=r"sentence 0 is \['the', 3\]"):
        call([["the", 3]])
    assert not caplog.text
    assert len(call("aa")) == len(call([["a"], ["a"]]))
    assert "'aa' is one string" in caplog.text


def test_other_calls(small: SmallModel, tmp_path: Path) -> None:
    embedder = ElmoEmbedder(small.options, small.weights)
    bilm = BidirectionalLanguageModel(small.options, small.weights)
    hub = tfhub.Module(small.folder)
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: Elmo(small.options, small.weights, 1)([["a"]]), r"got \[\['a'\]\]; expected ids, as batch_to_ids"),
        (lambda: bilm([["a"]]), "expected ids, as batch_to_ids or the batch_sentences of a batcher"),
        (lambda: bilm(None), "got None; expected ids"),
        (lambda: weight_layers("input", None), "the result of a BidirectionalLanguageModel"),
        (lambda: weight_layers(None, bilm(np.ones((1, 3, 50), int))), "expected a name"),
        (lambda: embedder.embed_sentence(None), "expected a list of words"),
        (lambda: list(embedder.embed_sentences([["a"]], batch_size=0)), "batch_size is 0; allowed: 1 or more"),
        (lambda: embedder.embed_file("text.txt", tmp_path / "out.hdf5"), "expected an open file"),
        (lambda: Embedder(small.folder).sents2elmo([["a"]], output_layer="top"), "output_layer is 'top'; allowed"),
        (lambda: hub(None), "expected strings, got None"),
        (lambda: hub(["a", 3]), "expected strings, got 3"),
        (lambda: hub({"tokens": [["a"]]}, signature="tokens"), "a dictionary of sequence_len and tokens; got tokens"),
        (lambda: hub([["a"]], signature="tokens"), "a dictionary of sequence_len and tokens; got list"),
        (lambda: hub({"tokens": [["a"]], "sequence_len": [1]}), "the signature default takes a dictionary of text"),
        (lambda: SeqVecEmbedder(0, weights_file=small.weights, options_file=small.options).embed(None), "is None"),
        (lambda: polyseme.migrate(None), "script is None; expected the path of a Python script"),
    ]
    for call, said in wrong:
        with pytest.raises(UsageError, match=said):
            call()
    with pytest.raises(UsageError, match="no such file; expected a text with one sentence per line"):
        dump_bilm_embeddings(None, "absent.txt", small.options, small.weights, tmp_path / "out.hdf5")
    assert not list(tmp_path.iterdir())
