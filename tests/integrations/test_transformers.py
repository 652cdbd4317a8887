"""transformers: the vectors of `embed` through the Auto classes, pipelines, folders without code, real fits by the Trainer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("transformers", minversion="5", reason="needs transformers 5 (extra transformers)")

from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    pipeline,
)

import polyseme
from polyseme.base.errors import UsageError
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import ElmoConfig, WordTableConfig
from polyseme.integrations import transformers as integration
from polyseme.metrics.spans import span_scores
from polyseme.nn.config import CharactersConfig
from polyseme.text.labelled.conll import TaggedSentence
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import get_splitter
from tests.encoders.small import LSTM, TRANSFORMER, elmo
from tests.integrations.samples import majority, names_of_news, parts_of_speech, questions

SENTENCES = ["The cat sat on the bank of a river.", "Money “talks”, an antidisestablishmentarianism-naïve dog 漢字!", "Mat"]


def code_points() -> Elmo:
    """As ELMoForManyLangs makes them: a word table, and characters of a list."""
    symbols = ["<bow>", "<eow>", "<oov>", "<pad>", "<bos>", "<eos>", *"abcdefghijklmnoprstuvwy"]
    words = ["<bos>", "<eos>", "<oov>", "the", "cat", "bank"]
    torch.manual_seed(3)
    config = ElmoConfig(
        characters=CharactersConfig(dim=4, filters=((1, 4), (2, 6)), alphabet="code_points", symbols=len(symbols)),
        words=WordTableConfig(size=len(words), dim=5, max_characters=3),
        dim=8,
        lstm=LSTM,
        begin="<bos>",
        end="<eos>",
        unknown="<oov>",
    )
    vocabulary = Vocabulary(words, unknown="<oov>", begin="<bos>", end="<eos>")
    return Elmo(config, vocabulary=vocabulary, alphabet=symbols).eval()


MODELS = {
    "characters": lambda: elmo(output=True),
    "words": lambda: elmo(form="words"),
    "both": lambda: elmo(form="both"),
    "learned": lambda: elmo(start="learned"),
    "warm": lambda: elmo(start="warm"),
    "transformer": lambda: elmo(transformer=TRANSFORMER),
    "code points": code_points,
}


@pytest.mark.parametrize("kind", MODELS)
def test_auto_classes_give_the_vectors_of_embed(kind: str, tmp_path: Path) -> None:
    model = MODELS[kind]()
    model.splitter = get_splitter("english")
    expected = model.embed(SENTENCES)
    folder = integration.export(model, tmp_path / "exported")
    opened, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert AutoConfig.from_pretrained(folder).model_type == "polyseme"
    inputs = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    with torch.no_grad():
        output = opened(**inputs, output_hidden_states=True)
    states = torch.stack(output.hidden_states).numpy()
    for row, vectors in enumerate(expected):
        np.testing.assert_allclose(states[:, row, : vectors.shape[1]], vectors, atol=1e-5)
    np.testing.assert_array_equal(output.last_hidden_state.numpy(), states[-1])
    back = integration.to_encoder(opened, tokenizer)
    back.save_pretrained(tmp_path / "ours")
    again = polyseme.load(tmp_path / "ours").embed(SENTENCES)
    for ours, vectors in zip(again, expected, strict=True):
        np.testing.assert_allclose(ours, vectors, atol=1e-5)


@pytest.fixture(scope="module")
def exported(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return integration.export(folder, tmp_path_factory.mktemp("transformers") / "elmo")


def test_folders_have_no_code(exported: Path) -> None:
    assert not [path for path in exported.rglob("*") if path.suffix in (".py", ".bin", ".pkl", ".pt")]
    for path in exported.glob("*.json"):
        assert "auto_map" not in json.loads(path.read_text(encoding="utf-8"))


def test_lengths_and_order_do_not_matter(exported: Path) -> None:
    model, tokenizer = AutoModel.from_pretrained(exported), AutoTokenizer.from_pretrained(exported)
    texts = ["the cat", "", "a bank of the river , a mat and money . " * 9]
    with torch.no_grad():
        together = model(**tokenizer(texts, padding=True, return_tensors="pt")).last_hidden_state
        for row, text in enumerate(texts):
            if text:
                alone = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
                torch.testing.assert_close(together[row, : len(alone)], alone, atol=1e-5, rtol=0)
        turned = model(**tokenizer(texts[::-1], padding=True, return_tensors="pt")).last_hidden_state
    torch.testing.assert_close(turned[0], together[2], atol=1e-5, rtol=0)


def test_the_tokenizer(exported: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(exported)
    text = "The cat’s  mat, a “bank”."
    encoded = tokenizer(text, return_offsets_mapping=True)
    spans = [text[begin:end] for begin, end in encoded["offset_mapping"]]
    assert spans == ["The", "cat", "’s", "mat", ",", "a", "“", "bank", "”", "."]
    words = tokenizer(["the", "cat's"], is_split_into_words=True)
    assert len(words["input_ids"]) == 2 and tokenizer.convert_ids_to_tokens(words["input_ids"])[0] == "the"
    assert len(tokenizer("a b c d", truncation=True, max_length=2)["character_ids"]) == 2
    padded = tokenizer(["a b c", "a"], padding="max_length", max_length=5)
    assert [len(each) for each in padded["character_ids"]] == [5, 5]
    pair = tokenizer("the cat", "a mat")
    assert tokenizer.convert_ids_to_tokens(pair["input_ids"]) == ["the", "cat", "</S>", "<S>", "a", "mat"]
    with pytest.raises(UsageError, match="on the right"):
        tokenizer(["a b", "a"], padding=True, padding_side="left")


def test_left_padding_and_missing_characters_are_refused(exported: Path) -> None:
    model, tokenizer = AutoModel.from_pretrained(exported), AutoTokenizer.from_pretrained(exported)
    inputs = tokenizer(["a b", "a"], padding=True, return_tensors="pt")
    with pytest.raises(UsageError, match="on the right"):
        model(**{**inputs, "attention_mask": inputs["attention_mask"].flip(1)})
    with pytest.raises(UsageError, match="character_ids"):
        model(input_ids=inputs["input_ids"])


def test_empty_texts_in_batches_of_a_collator(exported: Path) -> None:
    model, tokenizer = AutoModel.from_pretrained(exported), AutoTokenizer.from_pretrained(exported)
    assert tokenizer("")["attention_mask"] == []
    rows = [tokenizer(text) for text in ("", "the cat", "")]
    for order in ([0, 1, 2], [1, 0, 2]):
        batch = DataCollatorWithPadding(tokenizer)([dict(rows[number]) for number in order])
        assert batch["attention_mask"].sum(1).tolist() == [2 * (number == 1) for number in order]
        with torch.no_grad():
            found = model(**batch).last_hidden_state[order.index(1)]
            torch.testing.assert_close(found, model(**tokenizer("the cat", return_tensors="pt")).last_hidden_state[0])


def test_wrong_arguments_are_named(exported: Path, folder: Path, tmp_path: Path) -> None:
    model, tokenizer = AutoModel.from_pretrained(exported), AutoTokenizer.from_pretrained(exported)
    for given in (None, [[1]], "a b"):
        with pytest.raises(UsageError, match=r"input_ids is .*; give tensors: model"):
            model(given)
    with pytest.raises(UsageError, match="expected a PolysemePreTrainedModel, got PolysemeTokenizer"):
        integration.to_encoder(tokenizer, model)
    with pytest.raises(UsageError, match="expected a Module, got str"):
        integration.optimizer("en")
    (tmp_path / "file").write_text("")
    for place in (None, tmp_path / "file"):
        with pytest.raises(UsageError, match="expected the path of a folder"):
            integration.export(folder, place)


@pytest.mark.parametrize("kind", [AutoModelForTokenClassification, AutoModelForSequenceClassification])
def test_classifiers_are_saved_and_loaded(kind: type, exported: Path, tmp_path: Path) -> None:
    model = kind.from_pretrained(exported, num_labels=3, id2label={0: "O", 1: "B-A", 2: "I-A"}).eval()
    base, tokenizer = AutoModel.from_pretrained(exported), AutoTokenizer.from_pretrained(exported)
    inputs = tokenizer(["the cat sat", "a bank"], padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**inputs, output_hidden_states=True).hidden_states
        torch.testing.assert_close(hidden[-1], base(**inputs).last_hidden_state)  # the pre-trained weights are in it
        torch.nn.init.normal_(model.mix.weights)
        before = model(**inputs).logits
        model.save_pretrained(tmp_path / "classifier")
        after = kind.from_pretrained(tmp_path / "classifier").eval()(**inputs).logits
    torch.testing.assert_close(after, before)


@pytest.mark.slow
def test_losses(exported: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(exported)
    inputs = tokenizer(["the cat sat", "a bank"], padding=True, return_tensors="pt")
    words = AutoModelForTokenClassification.from_pretrained(exported, num_labels=2)
    labels = torch.tensor([[0, 1, 0], [1, 1, -100]])
    output = words.eval()(**inputs, labels=labels)
    chosen = output.logits.log_softmax(-1)[labels >= 0].gather(1, labels[labels >= 0, None])
    torch.testing.assert_close(output.loss, -chosen.mean())
    output.loss.backward()
    assert all(each.grad is not None for each in words.elmo.encoder.tokens.parameters())
    for count, values in ((1, [0.5, 1.0]), (2, [1, 0]), (2, [[1.0, 1.0], [0.0, 1.0]])):
        target = torch.tensor(values)
        texts = AutoModelForSequenceClassification.from_pretrained(exported, num_labels=count)
        assert texts(**inputs, labels=target).loss.item() > 0


def test_pipelines(exported: Path, model: Elmo, tmp_path: Path) -> None:
    vectors = pipeline("feature-extraction", model=str(exported))(["The cat sat.", "A bank"], batch_size=2)
    np.testing.assert_allclose(vectors[0][0], model.embed(["The cat sat."], layers="top")[0], atol=1e-5)
    tagger = AutoModelForTokenClassification.from_pretrained(exported, num_labels=2, id2label={0: "B-X", 1: "I-X"})
    tagger.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(exported).save_pretrained(tmp_path)
    text = "Ann’s dog sat, in Ulan Bator."
    found = pipeline("token-classification", model=str(tmp_path))(text)
    assert [text[each["start"] : each["end"]] for each in found] == ["Ann", "’s", "dog", "sat", ",", "in", "Ulan", "Bator", "."]
    assert pipeline("token-classification", model=str(tmp_path), aggregation_strategy="simple")(text)[0]["entity_group"] == "X"


def trained(model, rows: list[dict], collator, folder: Path, optimizer: torch.optim.Optimizer | None = None, **options):
    pytest.importorskip("accelerate", reason="the Trainer of transformers needs accelerate")
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(
        output_dir=str(folder), report_to=[], disable_tqdm=True, use_cpu=True, logging_strategy="no", seed=1, **options
    )
    Trainer(model=model, args=arguments, train_dataset=rows, data_collator=collator, optimizers=(optimizer, None)).train()
    return model.eval()


def test_the_head_has_a_learning_rate_of_its_own(exported: Path) -> None:
    model = AutoModelForTokenClassification.from_pretrained(exported, num_labels=2)
    inside, head = integration.optimizer(model, head_learning_rate=0.1).param_groups
    assert (inside["lr"], head["lr"]) == (5e-4, 0.1)
    names = {id(weight): name for name, weight in model.named_parameters()}
    assert {names[id(each)] for each in head["params"]} == {"mix.weights", "mix.gamma", "classifier.weight", "classifier.bias"}
    assert len(inside["params"]) + len(head["params"]) == len(names)
    assert not integration.optimizer(AutoModel.from_pretrained(exported)).param_groups[1]["params"]  # it has no head


def test_the_trainer_changes_the_elmo(exported: Path, tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(exported)
    rows = [{**tokenizer(text), "label": number % 2} for number, text in enumerate(["the cat", "a bank of money"] * 4)]
    model = AutoModelForSequenceClassification.from_pretrained(exported, num_labels=2)
    before = model.elmo.encoder.tokens.projection.weight.clone()
    model = trained(model, rows, DataCollatorWithPadding(tokenizer), tmp_path / "run", max_steps=2, dataloader_num_workers=1)
    assert not torch.equal(before, model.elmo.encoder.tokens.projection.weight)
    opened = AutoModelForSequenceClassification.from_pretrained(tmp_path / "run" / "checkpoint-2")
    torch.testing.assert_close(opened.elmo.encoder.tokens.projection.weight, model.elmo.encoder.tokens.projection.weight)


@pytest.mark.slow
def test_the_trainer_learns_questions(tmp_path: Path) -> None:
    texts, labels = questions("train", 250)
    test_texts, gold = questions("test", 100)
    folder = integration.export("en", tmp_path / "en")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows = [{**tokenizer(text), "label": int(label)} for text, label in zip(texts, labels, strict=True)]
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=6)
    options = {"max_steps": 30, "per_device_train_batch_size": 16}
    model = trained(model, rows, DataCollatorWithPadding(tokenizer), tmp_path / "run", integration.optimizer(model), **options)
    with torch.no_grad():
        logits = model(**tokenizer(test_texts, padding=True, return_tensors="pt")).logits
    right = np.mean(logits.argmax(1).numpy() == np.array(gold, dtype=int))
    print(f"questions: {right:.3f}, majority {majority(labels, gold):.3f}")
    assert right > majority(labels, gold) + 0.2


def short(sentences: list[TaggedSentence], count: int) -> list[TaggedSentence]:
    """The first sentences of 3 to 12 words: the time of a step is that of its longest sentence."""
    return [each for each in sentences if 3 <= len(each.words) <= 12][:count]


def tags_after_training(train: list[TaggedSentence], test: list[TaggedSentence], folder: Path) -> list[list[str]]:
    """The tags of test sentences, by the shipped model after the Trainer has tuned all of it in 50 steps."""
    names = sorted({tag for each in train for tag in each.tags})
    exported = integration.export("en", folder / "en")
    tokenizer = AutoTokenizer.from_pretrained(exported)
    rows = [
        {**tokenizer(each.words, is_split_into_words=True), "labels": [names.index(tag) for tag in each.tags]} for each in train
    ]
    model = AutoModelForTokenClassification.from_pretrained(exported, num_labels=len(names))
    options = {"max_steps": 50, "per_device_train_batch_size": 16}
    model = trained(
        model, rows, DataCollatorForTokenClassification(tokenizer), folder / "run", integration.optimizer(model), **options
    )
    inputs = tokenizer([each.words for each in test], is_split_into_words=True, padding=True, return_tensors="pt")
    with torch.no_grad():
        best = model(**inputs).logits.argmax(-1).tolist()
    return [[names[number] for number in row[: len(each.words)]] for row, each in zip(best, test, strict=True)]


def share_right(found: list[list[str]], gold: list[TaggedSentence]) -> float:
    pairs = [pair for tags, each in zip(found, gold, strict=True) for pair in zip(tags, each.tags, strict=True)]
    return sum(one == other for one, other in pairs) / len(pairs)


def most_frequent(train: list[TaggedSentence], test: list[TaggedSentence]) -> float:
    return majority(*([tag for each in part for tag in each.tags] for part in (train, test)))


@pytest.mark.slow
def test_the_trainer_learns_parts_of_speech(tmp_path: Path) -> None:
    train, test = short(parts_of_speech("train", 1000), 200), short(parts_of_speech("dev", 300), 60)
    right = share_right(tags_after_training(train, test, tmp_path), test)
    print(f"parts of speech: {right:.3f}, majority {most_frequent(train, test):.3f}")
    assert right > most_frequent(train, test) + 0.3


@pytest.mark.slow
def test_the_trainer_learns_names(tmp_path: Path) -> None:
    """CoNLL-2003; the majority, `O`, finds no name at all."""
    train, test = short(names_of_news("train", 1000), 300), short(names_of_news("testa", 500), 150)
    found = tags_after_training(train, test, tmp_path)
    right, f1 = share_right(found, test), span_scores([each.tags for each in test], found).f1
    print(f"names: {right:.3f}, majority {most_frequent(train, test):.3f}; F1 {f1:.3f}, majority 0")
    assert right > most_frequent(train, test) and f1 > 0.4
