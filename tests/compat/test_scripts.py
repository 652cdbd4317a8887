"""Programs that make the calls of public scripts: `polyseme migrate` changes their imports, they run, and the oracle agrees.

The programs are written anew after what public code does with each library, with small models; those of bilm-tf and TensorFlow
Hub have no session. Each leaves its arrays in `result`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyseme
from tests.compat.small_models import SmallModel, close, padded
from tests.oracle.elmo import OracleElmo
from tests.oracle.make import VOCABULARY

TEXT = [["the", "bank", "of", "the", "river", "."], ["Another", "."], ["today", "naïve", "今天", "bank"]]

TUTORIAL = """
from allennlp.modules.elmo import Elmo, batch_to_ids

elmo = Elmo(OPTIONS, WEIGHTS, 2, dropout=0)
character_ids = batch_to_ids(TEXT)
embeddings = elmo(character_ids)
result = [each.detach().numpy() for each in embeddings["elmo_representations"]] + [embeddings["mask"].numpy()]
"""
CRF_FEATURES = """
import numpy as np
from allennlp.commands.elmo import ElmoEmbedder

def parse_sentence(elmo, words, mode="average"):
    vectors = elmo.embed_sentence(words)
    if mode == "average":
        return np.average(vectors, 0)
    elif mode == "weighted_average":
        return np.swapaxes(vectors, 0, 1)
    return vectors[-1, :, :]

elmo = ElmoEmbedder(OPTIONS, WEIGHTS, cuda_device=-1)
modes = ["average", "weighted_average", "last"]
result = [parse_sentence(elmo, words, mode) for words, mode in zip(TEXT, modes)]
"""
SENTENCE_SUMS = """
import numpy as np, allennlp.commands.elmo

embedder = allennlp.commands.elmo.ElmoEmbedder(options_file=OPTIONS, weight_file=WEIGHTS)
layers = [embedding for embedding in embedder.embed_sentences(TEXT, batch_size=2)]
result = [np.stack([np.mean(sentence, axis=0).sum(axis=0) for sentence in layers])]
"""
TAGGER = """
import torch
from torch import nn
from allennlp.modules import Elmo, FeedForward
from allennlp.modules.elmo import batch_to_ids

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = Elmo(OPTIONS, WEIGHTS, 1, requires_grad=False, dropout=0.0)
        self.top = nn.Linear(self.embedding.get_output_dim(), 3)

    def forward(self, batch):
        out = self.embedding(batch_to_ids(batch))
        self.seen = out["elmo_representations"][0]
        return self.top(self.seen) * out["mask"].unsqueeze(-1).float()

torch.manual_seed(0)
tagger = Tagger()
trained = [p for p in tagger.parameters() if p.requires_grad]
losses, result = [], []
for step in range(5):
    loss = nn.functional.cross_entropy(tagger(TEXT).view(-1, 3), torch.zeros(18, dtype=torch.long))
    result.append(tagger.seen.detach().numpy().copy())
    loss.backward()
    for parameter in trained:
        parameter.data -= 0.1 * parameter.grad
        parameter.grad = None
    losses.append(loss.item())
assert losses[-1] < losses[0]
result = result[:1]
"""
MANY_FEATURES = """
from elmoformanylangs import Embedder
import numpy as np

class ContextFeatures:
    def vectors(self, words_list):
        embedder = Embedder(MODEL)
        return embedder.sents2elmo(words_list)

result = ContextFeatures().vectors(TEXT)
"""
MANY_PLUGIN = """
import elmoformanylangs
import numpy as np

class Plugin:
    def load(self, path):
        self.e = elmoformanylangs.Embedder(path, batch_size=140)
        self.dim = (3, self.e.sents2elmo(["hello"], output_layer=-2)[0].shape[-1])

    def embed(self, words):
        return np.swapaxes(self.e.sents2elmo([words], output_layer=-2)[0], 0, 1)

plugin = Plugin()
plugin.load(MODEL)
assert plugin.dim == (3, 16)
result = [plugin.embed(words) for words in TEXT]
"""
MANY_INDEX = """
import sqlite3
import numpy as np
from elmoformanylangs import Embedder

def main():
    e = Embedder(MODEL)
    conn = sqlite3.connect(":memory:")
    c = conn.cursor()
    c.execute("CREATE TABLE sentences(sent_id INTEGER PRIMARY KEY, sentence text)")
    for words in TEXT:
        c.execute("INSERT INTO sentences VALUES(NULL, ?)", (" ".join(words),))
    stored = np.array([x.mean(axis=0) for x in e.sents2elmo(TEXT)])
    queries = np.array([x.mean(axis=0) for x in e.sents2elmo(TEXT[1:])])
    assert stored.dtype == queries.dtype == np.float32
    distances = ((queries[:, None] - stored[None]) ** 2).sum(-1)
    indices = distances.argsort(1)
    found = [c.execute("SELECT sentence FROM sentences WHERE rowid = ?", (int(row[0]) + 1,)).fetchone()[0] for row in indices]
    assert found == [" ".join(words) for words in TEXT[1:]]
    return stored, distances

result = list(main())
"""
SIMPLE_VECTORS = """
from simple_elmo import ElmoModel

model = ElmoModel()
model.load(MODEL, max_batch_size=2)
elmo_vectors = model.get_elmo_vectors(TEXT, layers="average")
result = []
for vect, sent in zip(elmo_vectors, TEXT):
    result.append(vect[: len(sent), :])
target_tensor = elmo_vectors[0, 1, :]
assert target_tensor.shape == (16,)
"""
SIMPLE_PAIRS = """
import numpy as np
from simple_elmo import ElmoModel

elmo = ElmoModel()
elmo.load(MODEL, max_batch_size=128)
train0 = elmo.get_elmo_vector_average(TEXT)
train1 = elmo.get_elmo_vector_average(TEXT[::-1])
x_train = [[np.dot(t0, t1)] for t0, t1 in zip(train0, train1)]
result = [np.array(x_train)]
"""
BILM_CHARACTERS = """
from bilm import Batcher, BidirectionalLanguageModel, weight_layers

batcher = Batcher(VOCAB, 50)
bilm = BidirectionalLanguageModel(OPTIONS, WEIGHTS)
context_ids = batcher.batch_sentences(TEXT[:2])
question_ids = batcher.batch_sentences(TEXT[2:])
context_embeddings = bilm(context_ids)
question_embeddings = bilm(question_ids)
elmo_context_input = weight_layers("input", context_embeddings, l2_coef=0.0)
elmo_question_input = weight_layers("input", question_embeddings, l2_coef=0.0)
result = [elmo_context_input["weighted_op"], elmo_question_input["weighted_op"]]
"""
BILM_TOKENS = """
import os
from bilm import TokenBatcher, BidirectionalLanguageModel, weight_layers, \\
    dump_token_embeddings

all_tokens = set(["<S>", "</S>"])
for sentence in TEXT:
    for token in sentence:
        all_tokens.add(token)
vocab_file = os.path.join(OUT, "vocab_small.txt")
with open(vocab_file, "w", encoding="utf-8") as fout:
    fout.write("\\n".join(sorted(all_tokens)))
token_embedding_file = os.path.join(OUT, "elmo_token_embeddings.hdf5")
dump_token_embeddings(vocab_file, OPTIONS, WEIGHTS, token_embedding_file)
batcher = TokenBatcher(vocab_file)
bilm = BidirectionalLanguageModel(OPTIONS, WEIGHTS, use_character_inputs=False, embedding_weight_file=token_embedding_file)
ops = bilm(batcher.batch_sentences(TEXT))
result = [weight_layers("input", ops, l2_coef=0.0)["weighted_op"]]
"""
BILM_CACHED = """
import os, h5py
from bilm import dump_bilm_embeddings

dataset_file, embedding_file = os.path.join(OUT, "dataset.txt"), os.path.join(OUT, "elmo_embeddings.hdf5")
with open(dataset_file, "w", encoding="utf-8") as fout:
    for sentence in TEXT:
        fout.write(" ".join(sentence) + "\\n")
dump_bilm_embeddings(VOCAB, dataset_file, OPTIONS, WEIGHTS, embedding_file)
with h5py.File(embedding_file, "r") as fin:
    result = [fin["1"][...]]
"""
HUB_MEAN = """
import tensorflow_hub as hub

elmo = hub.Module(MODEL, trainable=False)  # it was https://tfhub.dev/google/elmo/2

def elmo_vectors(x):
    embeddings = elmo(x, signature="default", as_dict=True)["elmo"]
    return embeddings.mean(1)

result = [elmo_vectors(["the bank of the river .", "the bank of the moon ."]).numpy()]
"""
HUB_TOKENS = """
import tensorflow_hub as hub

elmo = hub.load(MODEL)
tokens_input = [["the", "bank", "of", "the", "river", "."], ["Another", ".", "", "", "", ""]]
tokens_length = [6, 2]
found = elmo.signatures["tokens"](tokens=tokens_input, sequence_len=tokens_length)
result = [found["elmo"].numpy(), found["default"].numpy()]
"""
PROTEIN = """
import torch
from bio_embeddings.embed import SeqVecEmbedder

seq = "MVTYDFGSDEMHD"
embedder = SeqVecEmbedder(warmup_rounds=0, weights_file=WEIGHTS, options_file=OPTIONS)
embedding = embedder.embed(seq)
protein_embd = torch.tensor(embedding).sum(dim=0)
result = [protein_embd.cpu().detach().numpy(), embedder.reduce_per_protein(embedding)]
"""


def carried(oracle: OracleElmo, *batches: list[list[str]]) -> list[list[np.ndarray]]:
    return oracle.embed_carry(list(batches))


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors)


def pairs(oracle: OracleElmo) -> list[np.ndarray]:
    """Each call reads its batch twice, from zeros."""
    first, second = ([unit(each.mean((0, 1))) for each in carried(oracle, text, text)[1]] for text in (TEXT, TEXT[::-1]))
    return [np.array([[a @ b] for a, b in zip(first, second, strict=True)])]


def hub_tokens(oracle: OracleElmo) -> list[np.ndarray]:
    layers = [oracle.embed(words)[0].mean(0) for words in TEXT[:2]]
    return [np.stack([layers[0], np.pad(layers[1], ((0, 4), (0, 0)))]), np.stack([each.mean(0) for each in layers])]


def protein(oracle: OracleElmo) -> list[np.ndarray]:
    layers = oracle.embed(list("MVTYDFGSDEMHD"))[0].sum(0)
    return [layers, layers.mean(0)]


def sentence_index(oracle: OracleElmo) -> list[np.ndarray]:
    """The means of the mean layer, and the squared distances of the last two to all."""
    stored = np.stack([oracle.embed(words)[0].mean((0, 1)) for words in TEXT])
    return [stored, ((stored[1:, None] - stored[None]) ** 2).sum(-1)]


def one_by_one(oracle: OracleElmo) -> list[np.ndarray]:
    return [layers for (layers,) in carried(oracle, *([words] for words in TEXT))]


SCRIPTS: dict[str, tuple[str, Callable[[OracleElmo], list[np.ndarray]]]] = {
    "allennlp-tutorial": (
        TUTORIAL,
        lambda oracle: [
            *[padded(carried(oracle, TEXT)[0]).mean(1)] * 2,
            np.arange(6) < np.array([[len(words)] for words in TEXT]),
        ],
    ),
    "allennlp-crf-features": (
        CRF_FEATURES,
        lambda oracle: [
            each(layers)
            for each, layers in zip(
                (lambda x: x.mean(0), lambda x: x.swapaxes(0, 1), lambda x: x[-1]), one_by_one(oracle), strict=True
            )
        ],
    ),
    "allennlp-sentence-sums": (
        SENTENCE_SUMS,
        lambda oracle: [np.stack([each.mean(0).sum(0) for batch in carried(oracle, TEXT[:2], TEXT[2:]) for each in batch])],
    ),
    "allennlp-tagger": (TAGGER, lambda oracle: [padded(carried(oracle, TEXT)[0]).mean(1)]),
    "manylangs-features": (MANY_FEATURES, lambda oracle: [oracle.embed(words)[0].mean(0) for words in TEXT]),
    "manylangs-plugin": (MANY_PLUGIN, lambda oracle: [oracle.embed(words)[0].swapaxes(0, 1) for words in TEXT]),
    "manylangs-sentence-index": (MANY_INDEX, sentence_index),
    "simple_elmo-vectors": (
        SIMPLE_VECTORS,
        lambda oracle: [each.mean(0) for batch in carried(oracle, TEXT[:2], TEXT[:2], TEXT[2:])[1:] for each in batch],
    ),
    "simple_elmo-pairs": (SIMPLE_PAIRS, pairs),
    "bilm-characters": (
        BILM_CHARACTERS,
        lambda oracle: [padded(batch).mean(1) for batch in carried(oracle, TEXT[:2], TEXT[2:])],
    ),
    "bilm-tokens": (BILM_TOKENS, lambda oracle: [padded(carried(oracle, TEXT)[0]).mean(1)]),
    "bilm-cached": (BILM_CACHED, lambda oracle: one_by_one(oracle)[1:2]),
    "tfhub-mean": (
        HUB_MEAN,
        lambda oracle: [
            np.stack([oracle.embed(["the", "bank", "of", "the", word, "."])[0].mean((0, 1)) for word in ("river", "moon")])
        ],
    ),
    "tfhub-tokens": (HUB_TOKENS, hub_tokens),
    "seqvec": (PROTEIN, protein),
}


NOTEBOOKS = ("allennlp-tutorial", "manylangs-plugin")


@pytest.mark.parametrize(("name", "notebook"), [*((name, False) for name in SCRIPTS), *((name, True) for name in NOTEBOOKS)])
def test_a_script_runs_after_its_imports_are_changed(
    name: str, notebook: bool, small: SmallModel, many: SmallModel, tmp_path: Path
) -> None:
    code, expected = SCRIPTS[name]
    path = tmp_path / ("old.ipynb" if notebook else "old.py")
    path.write_text(as_notebook(code) if notebook else code, encoding="utf-8")
    migration = polyseme.migrate(path, write=True)
    assert migration.written
    removed = [line for line in migration.diff.splitlines()[2:] if line.startswith("-")]
    assert removed
    assert all("import" in line or "ElmoEmbedder(" in line or "dump_token" in line for line in removed)
    new = path.read_text(encoding="utf-8")
    if notebook:
        cells = json.loads(new)["cells"]
        assert cells[0]["cell_type"] == "markdown"
        new = "\n".join("".join(cell["source"]) for cell in cells[1:]).replace("%matplotlib inline", "")
    new = new.replace("from allennlp.modules import FeedForward\n", "")  # AllenNLP itself is not there
    model = many if name.startswith("manylangs") else small
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY), encoding="utf-8")
    names: dict[str, Any] = {"TEXT": TEXT, "OPTIONS": small.options, "WEIGHTS": small.weights, "MODEL": str(model.folder)}
    names |= {"VOCAB": str(tmp_path / "vocab.txt"), "OUT": str(tmp_path)}
    exec(compile(new, str(path), "exec"), names)
    arrays = expected(model.oracle)
    assert len(names["result"]) == len(arrays)
    for got, want in zip(names["result"], arrays, strict=True):
        close(got, want, atol=1e-4 if name in ("allennlp-sentence-sums", "seqvec") else 3e-5)


def as_notebook(code: str) -> str:
    """A note, a line for IPython, and the code in two cells."""
    head, _, rest = code.partition("\n\n")
    cells: list[dict[str, Any]] = [{"cell_type": "markdown", "source": ["from allennlp.modules.elmo import Elmo"]}]
    cells += [{"cell_type": "code", "source": text.splitlines(keepends=True)} for text in (f"%matplotlib inline\n{head}", rest)]
    return json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}})
