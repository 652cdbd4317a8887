"""A user's program that calls every public function; `make style` checks its types as strictly as mypy can. It is never run."""

from __future__ import annotations

import numpy as np
import torch

import polyseme


def use_models() -> None:
    model: polyseme.Elmo = polyseme.load()
    other: polyseme.Encoder = polyseme.load("my-model", splitter="english", device="cpu", precision="fp32")
    vectors: list[np.ndarray] = model.embed(["The bank of the river ."], layers="top")
    print(vectors[0].shape, model.encode(["a text"]), other.dim, polyseme.info(model))
    print([each.word for each in model.substitutes("We sat on the bank .", word="bank", count=5)])
    print(polyseme.substitutes("We sat on the bank .", position=4, model=model), polyseme.perplexity("held-out.txt"))
    print([str(each) for each in polyseme.score(["We sat ."], words=True)])
    print(polyseme.similar("river", count=3), polyseme.analogy("man", "king", "woman", model="my-vectors"))
    print(polyseme.convert(model, "my-copy", to="polyseme", precision="fp16").largest_difference)
    print(polyseme.verify("my-copy", tolerance=1e-3).good)
    print(polyseme.migrate("old.py", write=True).notes)
    print(polyseme.senses(["bank"], corpus="news.txt", out="senses.vec", groups=2, min_uses=5).word_vectors().dim)
    print(polyseme.embed_file("corpus.txt", "vectors.hdf5", model=model, layers="top", fp16=True).lines)
    print(polyseme.embed_dataset(["a.txt", "s3://bucket/b"], "vectors", engine="local", shard_size=10**6, mix=(0.5, 0.5)).parts)


def look_inside() -> None:
    found = polyseme.neighbours("We sat on the bank .", word="bank", corpus=["news.txt"], count=3, same_word=True)
    print(found, polyseme.neighbors("We sat on the bank .", position=4, layer="mean"))
    print(polyseme.probe("tags", train="train.conllu", test="test.conllu", column="upos", epochs=5))
    print(polyseme.probe("words", "wordsim353.tsv", model="my-vectors"), polyseme.probe("samples"))


def train_models() -> None:
    corpus = polyseme.Corpus("texts/", splitter="english")
    elmo: polyseme.Elmo = polyseme.pretrain("elmo", corpus, out="my-elmo", size="small", minutes=3)
    ngram = polyseme.pretrain("ngram", "texts/", out="my-ngram", order=3)
    adapted: polyseme.Encoder = polyseme.adapt(elmo, "reports/", out="my-domain", epochs=3)
    print(ngram.dim, adapted.layers, corpus.fingerprint())


def train_tasks() -> None:
    tagger = polyseme.train("ner", "train.conll", dev="dev.conll", encoder="en", out="my-tagger", hidden_size=100, epochs=2)
    print(tagger.predict(["Ann lives in Paris ."])[0].tags)
    task: polyseme.Task = polyseme.load_task("my-tagger", device="cpu")
    print([str(each) for each in polyseme.predict(task, ["Ann is here ."])], polyseme.evaluate(task, "dev.conll", errors=3))
    print(polyseme.compare("tagging:train.conll:dev.conll", out="study", encoders=["none", "en"], seeds=[1]))
    print(polyseme.lineage("texts/", out="lineage", minutes=1.0, methods=["ngram", "elmo"]))


class Tagger(torch.nn.Module):
    def __init__(self, tags: int) -> None:
        super().__init__()
        self.elmo = polyseme.load()
        self.mix = polyseme.Mix(self.elmo.layers, dropout=0.5)
        self.out = torch.nn.Linear(self.elmo.dim, tags)

    def forward(self, sentences: list[list[str]]) -> torch.Tensor:
        layers = self.elmo(self.elmo.prepare(sentences))
        scores: torch.Tensor = self.out(self.mix(layers.states, layers.mask))
        return scores


def handle_errors() -> None:
    try:
        polyseme.load("nowhere")
    except polyseme.PolysemeError as error:
        print(error, polyseme.__version__, polyseme.ElmoConfig)
