"""sentence-transformers: the mean of layers and words, saved models, real training with one of its losses."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("sentence_transformers", reason="needs sentence-transformers (extra sentence-transformers)")
pytest.importorskip("datasets", reason="the trainer of sentence-transformers needs datasets")

from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

from polyseme.base.errors import PolysemeError
from polyseme.encoders.elmo import Elmo
from polyseme.integrations.sentence_transformers import ElmoModule, load, sentence_transformer
from tests.integrations.samples import SENTENCES, data_file


def test_vectors_are_means_of_layers_and_words(folder: Path, model: Elmo) -> None:
    encoded = sentence_transformer(folder, device="cpu").encode(SENTENCES)
    expected = [stack.mean((0, 1)) for stack in model.embed(SENTENCES)]
    np.testing.assert_allclose(encoded, np.stack(expected), atol=1e-5)
    one = sentence_transformer(folder, device="cpu").encode(SENTENCES[1])
    np.testing.assert_allclose(one, expected[1], atol=1e-5)


def test_a_saved_model_gives_the_same_vectors(folder: Path, tmp_path: Path) -> None:
    model = sentence_transformer(folder, device="cpu", pooling="max")
    torch.nn.init.normal_(model[0].mix.weights)
    model[0].max_seq_length = 3
    model.save(str(tmp_path / "saved"))
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".py", ".bin", ".pkl", ".pt")]
    again = load(tmp_path / "saved", device="cpu")
    assert isinstance(again[0], ElmoModule) and again.max_seq_length == 3
    np.testing.assert_allclose(again.encode(SENTENCES), model.encode(SENTENCES), atol=1e-6)


def test_modules_of_others_are_refused(folder: Path, tmp_path: Path) -> None:
    sentence_transformer(folder, device="cpu").save(str(tmp_path / "saved"))
    path = tmp_path / "saved" / "modules.json"
    path.write_text(path.read_text().replace("polyseme.integrations.sentence_transformers.ElmoModule", "evil.Module"))
    with pytest.raises(PolysemeError, match="evil"):
        load(tmp_path / "saved")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not a list of objects with type and path"),
        ("[1]", "is not a list of objects with type and path"),
        ("[]", "names no module"),
        ('[{"type": "sentence_transformers.nothing.Pooling", "path": ""}]', "allowed: modules of the installed"),
        ('[{"type": "sentence_transformers.util.Nothing", "path": ""}]', "allowed: modules of the installed"),
        ('[{"type": "sentence_transformers.util.batch_to_device", "path": ""}]', "allowed: modules of the installed"),
    ],
)
def test_broken_lists_of_modules_are_refused(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text(content)
    with pytest.raises(PolysemeError, match=said):
        load(tmp_path)


def test_wrong_folders_and_texts_are_named(folder: Path) -> None:
    for place in (None, folder):  # a model of ours is no SentenceTransformer yet
        with pytest.raises(PolysemeError, match=r"is not the folder of a saved .*: write one with"):
            load(place)
    model = sentence_transformer(folder, device="cpu")
    for text in (None, 3, ["a", "b", "c"], ["a", None]):
        with pytest.raises(PolysemeError, match="expected texts, or pairs of texts; got"):
            model.encode([text])
    with pytest.raises(PolysemeError, match="max_seq_length is 0; allowed: 1 or more"):
        ElmoModule(folder, max_seq_length=0)


def test_empty_texts_are_zeros_in_any_batch(folder: Path) -> None:
    model = sentence_transformer(folder, device="cpu")
    vectors = model.encode(["", SENTENCES[0], ""])
    assert not vectors[[0, 2]].any()
    np.testing.assert_allclose(vectors[1], model.encode(SENTENCES[0]), atol=1e-6)
    assert not model.encode("").any() and len(model.encode([])) == 0


def test_a_prompt_stands_before_a_text_and_the_first_of_a_pair(folder: Path) -> None:
    model = sentence_transformer(folder, device="cpu")
    np.testing.assert_array_equal(model.encode(["cat"], prompt="a "), model.encode(["a cat"]))
    np.testing.assert_array_equal(model.encode([("cat", "the mat")], prompt="a "), model.encode([("a cat", "the mat")]))


@pytest.mark.slow
def test_processes_do_not_block_each_other(folder: Path) -> None:
    model = sentence_transformer(folder, device="cpu")
    expected = model.encode(SENTENCES * 20)
    pool = model.start_multi_process_pool(["cpu", "cpu"])
    try:
        found = model.encode(SENTENCES * 20, pool=pool, chunk_size=10)
    finally:
        model.stop_multi_process_pool(pool)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def train(model: SentenceTransformer, data: Dataset, loss: torch.nn.Module, folder: Path, **options: object) -> None:
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(folder), report_to=[], disable_tqdm=True, use_cpu=True, seed=1, save_strategy="no", **options
    )
    SentenceTransformerTrainer(model=model, args=arguments, train_dataset=data, loss=loss).train()


def test_losses_train_the_elmo(folder: Path, tmp_path: Path) -> None:
    model = sentence_transformer(folder, device="cpu")
    before = model[0].model.encoder.tokens.projection.weight.clone()
    data = Dataset.from_dict({"anchor": ["the cat", "a bank"] * 4, "positive": ["a cat sat", "money in the bank"] * 4})
    train(model, data, losses.MultipleNegativesRankingLoss(model), tmp_path, max_steps=2, per_device_train_batch_size=4)
    assert not torch.equal(before, model[0].model.encoder.tokens.projection.weight)


def pairs(part: str, count: int) -> dict[str, list]:
    """Pairs of the STS benchmark with scores from 0 to 1."""
    with data_file(f"sts_benchmark_en/sts-{part}.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if len(row) >= 7][:count]
    return {"first": [row[5] for row in rows], "second": [row[6] for row in rows], "label": [float(row[4]) / 5 for row in rows]}


@pytest.mark.slow
def test_training_on_similarity_beats_what_it_began_with(tmp_path: Path) -> None:
    """One answer for all pairs has a correlation of 0; plain means are what an ELMo has before training."""
    model, test = sentence_transformer("en", device="cpu"), pairs("dev", 200)
    evaluator = EmbeddingSimilarityEvaluator(test["first"], test["second"], test["label"], main_similarity="cosine")
    before = evaluator(model)[evaluator.primary_metric]
    options = {"num_train_epochs": 1, "per_device_train_batch_size": 16, "learning_rate": 3e-4}
    train(model, Dataset.from_dict(pairs("train", 320)), losses.CosineSimilarityLoss(model), tmp_path, **options)
    after = evaluator(model)[evaluator.primary_metric]
    print(f"similarity: {before:.3f} before, {after:.3f} after")
    assert after > before + 0.03 and after > 0.4
