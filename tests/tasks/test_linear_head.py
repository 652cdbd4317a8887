"""Encoders fine-tuned with nothing but a head, as ULMFiT, GPT and BERT were published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from polyseme.base.config import ConfigError
from polyseme.base.errors import UsageError
from polyseme.base.run import Run
from polyseme.encoders.base import Encoder
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.tasks.base import Task
from polyseme.tasks.classification import Classification, LabelledText
from polyseme.tasks.classification_config import ClassificationConfig
from polyseme.tasks.config import FeaturesConfig, LinearHeadConfig, TaskWordConfig
from polyseme.tasks.fit import Splits, TaskBuilder, fit
from polyseme.tasks.fit_config import FitConfig
from polyseme.tasks.folder import load
from polyseme.tasks.pairs import LabelledPair, Pairs
from polyseme.tasks.pairs_config import PairsConfig
from polyseme.tasks.reading import Reading
from polyseme.tasks.reading_config import ReadingConfig
from polyseme.tasks.registry import configure_task
from polyseme.tasks.tagging import Tagging
from polyseme.tasks.tagging_config import TaggingConfig
from polyseme.text.labelled.conll import TaggedSentence
from polyseme.text.labelled.squad import AnswerSpan, ReadingQuestion
from polyseme.training.optim_config import OptimConfig
from tests.encoders.small import elmo
from tests.encoders.small_subwords import bert, gpt, library, wordpieces
from tests.encoders.test_sequence import ulmfit
from tests.tasks.test_contract import assert_same_answers, encoders_of

TUNED = FeaturesConfig(mode="finetune", encoder_lr_multiplier=1.0)
NOUNS, VERBS = ["bank", "river", "money", "mat", "naïve", "of"], ["sat", "a", "in", "on"]  # which all tokenizers know
TEXTS = [LabelledText([noun, verb, "the"], str(place % 2)) for place, noun in enumerate(NOUNS) for verb in VERBS]
"""The first word decides."""
PAIRS = [LabelledPair([a, "the"], ["the", b], str(b == "bank")) for b in NOUNS[:3] for a in NOUNS[:3] for _ in range(2)]
"""The second text decides."""
LAYOUT = {"classification": (Classification, ClassificationConfig, TEXTS), "pairs": (Pairs, PairsConfig, PAIRS)}
FITTING = FitConfig(
    batch_size=8, epochs=15, patience=15, optim=OptimConfig(learning_rate=0.02, weight_decay=0.0, warmup=0.1, decay="slanted")
)


def calm_bert() -> Encoder:
    """Random weights as small as a new network's, from which it learns fast."""
    encoder = bert()
    with torch.no_grad():
        for weight in (weight for weight in encoder.parameters() if weight.dim() > 1):
            weight.mul_(0.3)
    return encoder


KINDS = {"bert": calm_bert, "gpt": gpt, "ulmfit": ulmfit, "elmo": elmo}
all_kinds = pytest.mark.parametrize("make", KINDS.values(), ids=list(KINDS))


def built(kind: str, encoder: Encoder, **settings: Any) -> tuple[Task, list[Any]]:
    task, config, examples = LAYOUT[kind]
    torch.manual_seed(0)
    return task.build(config(**{"network": "linear", "features": TUNED, **settings}), examples, [encoder]), examples


# the others learn in the tests of choices, pairs, tags and spans
@pytest.mark.parametrize(
    "make", [pytest.param(make, id=name, marks=[pytest.mark.slow] * (name != "ulmfit")) for name, make in KINDS.items()]
)
def test_a_rule_is_learned_and_kept(make: Callable[[], Encoder], tmp_path: Path) -> None:
    encoder = make()
    before = model_fingerprint(encoder)
    still = LinearHeadConfig(encoder_dropout=0.0)
    features = TUNED.replace(encoder_lr_multiplier=0.3) if make is elmo else TUNED
    config = ClassificationConfig(network="linear", features=features, hidden_size=30, dropout=0.0, linear_head=still)
    outcome = fit(TaskBuilder(Classification, config, [encoder]), Splits(TEXTS, TEXTS), tmp_path / "out", FITTING, Run(seed=1))
    assert outcome.scores["dev"]["accuracy"] == 1.0
    assert model_fingerprint(encoder) == before  # the caller's own stays
    asked = [example.text for example in TEXTS[:4]] + [[], ["cat"] * 40]
    assert_same_answers(load(tmp_path / "out").predict(asked), outcome.task.predict(asked), 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("make", [calm_bert, gpt])
def test_pairs_are_compared(make: Callable[..., Encoder], tmp_path: Path) -> None:
    config = PairsConfig(network="linear", features=TUNED, dropout=0.0, both_orders=make is gpt)
    fitting = FITTING.replace(epochs=20)
    outcome = fit(TaskBuilder(Pairs, config, [make()]), Splits(PAIRS, PAIRS), tmp_path / "out", fitting, Run(seed=1))
    assert outcome.scores["dev"]["accuracy"] == 1.0


def test_both_orders_are_one(tmp_path: Path) -> None:
    task, _ = built("pairs", gpt(), both_orders=True)
    some = [("the cat", "a dog ran"), ("money", "in")]
    turned = [(b, a) for a, b in some]
    assert_same_answers(task.predict(turned), task.predict(some), 1e-6)
    ordered, _ = built("pairs", gpt())
    assert ordered.predict(turned) != ordered.predict(some)


@pytest.mark.parametrize("make", [gpt, ulmfit])
def test_the_language_model_is_learned_beside(make: Callable[[], Encoder]) -> None:
    weight = 0.5
    plain, examples = built("classification", make())
    task, _ = built("classification", make(), linear_head=LinearHeadConfig(lm_weight=weight))
    batch = task.data(examples).gather(range(6))
    with torch.no_grad():
        found, alone = (each.eval().loss(each.prepare(batch)) for each in (task, plain))
        inputs = task.network.encoder.prepare_sequence([[example.text] for example in examples[:6]])
        expected = task.network.encoder.encode_sequence(inputs, task.network.marks, predict=True).lm_loss
    torch.testing.assert_close(found.total - alone.total, weight * expected)
    assert set(found.components) == {"task", "prediction"} and set(alone.components) == {"task"}


def test_gpt_marks_are_the_networks(tmp_path: Path) -> None:
    task, examples = built("pairs", gpt())
    start = task.network.marks.detach().clone()
    assert torch.equal(start[0], start[1])  # the mark between texts
    task.loss(task.prepare(task.data(examples).gather(range(8)))).total.backward()
    assert task.network.marks.grad is not None and bool((task.network.marks.grad.abs().sum(1) > 0).all())
    with torch.no_grad():
        task.network.marks.add_(torch.randn(2, 8))
    task.eval().save(tmp_path / "task")
    again = load(tmp_path / "task")
    assert torch.equal(again.network.marks, task.network.marks)
    frozen, _ = built("pairs", gpt(), features=FeaturesConfig())
    assert not frozen.network.marks.requires_grad


def test_a_ulmfit_drops_while_it_is_fine_tuned() -> None:
    task, _ = built("classification", ulmfit(), linear_head=LinearHeadConfig(encoder_dropout=0.6))
    assert task.network.encoder.lstm.stack()[0].rate == pytest.approx(0.3)
    frozen, _ = built("classification", ulmfit(), features=FeaturesConfig())
    assert frozen.network.encoder.lstm.stack()[0].rate == 0.0


def test_bert_begins_with_its_pooler() -> None:
    encoder = bert()
    task, _ = built("classification", encoder)
    pooler = encoder.body.pooler.dense
    assert torch.equal(task.network.dense.weight, pooler.weight) and task.network.dense.weight is not pooler.weight
    assert "network.dense." in {rule.prefix for rule in task.lr_multipliers()}
    new, _ = built("classification", bert(head="BertForMaskedLM"))
    assert new.network.dense is not None and "network.dense." not in {rule.prefix for rule in new.lr_multipliers()}


def test_bert_is_what_the_library_fine_tunes() -> None:
    """The scores are those of the library's own classifier and reader with the same weights."""
    task, _ = built("pairs", bert())
    network = task.network.encoder.network.bert
    theirs = library().BertForSequenceClassification(network.config).eval()
    theirs.bert.load_state_dict(network.state_dict())
    theirs.classifier.load_state_dict(task.network.head[1].state_dict())
    made = wordpieces()("the bank of", "money in", return_token_type_ids=True, return_tensors="pt")
    (answer,) = task.predict([("the bank of", "money in")])
    with torch.no_grad():
        expected = torch.softmax(theirs(**made).logits[0].double(), 0).tolist()
    assert list(answer.probabilities.values()) == pytest.approx(expected, abs=1e-5)

    asked = [ReadingQuestion("the bank", ("money in the river",), ("money",), (AnswerSpan(0, 0, 5),))]
    reader = Reading.build(ReadingConfig(network="linear", features=TUNED), asked, [bert()])
    theirs = library().BertForQuestionAnswering(network.config).eval()
    theirs.bert.load_state_dict(network.state_dict(), strict=False)  # which has no pooler
    theirs.qa_outputs.load_state_dict(reader.network.scores.state_dict())
    made = wordpieces()("the bank", "money in the river", return_token_type_ids=True, return_tensors="pt")
    cut = [len(ids) for ids in reader.network.encoder.subwords.encode_words(["money", "in", "the", "river"])]
    begin = made["input_ids"].shape[1] - 1 - sum(cut)
    firsts = [begin + sum(cut[:word]) for word in range(len(cut))]
    with torch.no_grad():
        found = reader.eval().network(
            reader.network.encode(reader.network.prepare([["the", "bank"]], [["money", "in", "the", "river"]]))
        )
        expected = theirs(**made)
    torch.testing.assert_close(found.start[0], expected.start_logits[0, firsts], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.end[0], expected.end_logits[0, firsts], rtol=1e-4, atol=1e-5)


@all_kinds
def test_nothing_else_is_there(make: Callable[[], Encoder]) -> None:
    task, examples = built("classification", make())
    names = {name.split(".")[0] + "." + name.split(".")[1] for name, _ in task.named_parameters()}
    assert names <= {"features.tuned", "network.head", "network.dense", "network.marks"}
    assert task.features.words.words == [] and not task.features.frozen
    task.train().loss(task.prepare(task.data(examples).gather(range(4)))).total.backward()
    assert all(weight.grad is not None for weight in task.parameters() if weight.requires_grad)


@pytest.mark.parametrize("crf", [pytest.param(True, marks=pytest.mark.slow), False])
def test_tags_straight_from_an_encoder(crf: bool, tmp_path: Path) -> None:
    """Softmax or CRF on what a BERT knows of the words, and nothing else."""
    examples = [TaggedSentence([a, "the", b], ["N", "D", "B" if b == "bank" else "N"]) for a in NOUNS for b in NOUNS[:3]]
    features = TUNED.replace(layers="top", dropout=0.0, words=TaskWordConfig(enabled=False))
    config, fitting = TaggingConfig(layers=0, crf=crf, dropout=0.0, features=features), FITTING.replace(epochs=12)
    outcome = fit(
        TaskBuilder(Tagging, config, [calm_bert()]), Splits(examples, examples), tmp_path / "out", fitting, Run(seed=1)
    )
    assert outcome.scores["dev"]["accuracy"] == 1.0
    names = {name.split(".")[0] for name, _ in outcome.task.named_parameters() if not name.startswith("features.tuned")}
    assert names == {"features", "scores"} | ({"crf"} if crf else set())
    asked = [["bank", "the", "mat"], [], ["river"] * 40]
    assert load(tmp_path / "out").predict(asked) == outcome.task.predict(asked)
    with pytest.raises(ConfigError, match="give an encoder"):
        Tagging.build(config, examples, [])
    assert configure_task("tagging", {"network_layers": 0, "task_embeddings": False})[0].features.words.enabled is False


@pytest.mark.parametrize("none", [pytest.param(False, marks=pytest.mark.slow), True])
def test_spans_straight_from_a_bert(none: bool, tmp_path: Path) -> None:
    """The noun behind `the` is asked for; where there is none, nothing is."""
    sentences = [f"{a} sat on the {b} in {a}" for a in NOUNS[:3] for b in NOUNS[:3]]
    asked = [
        ReadingQuestion("the", (text,), (text.split()[4],), (AnswerSpan(0, text.index("the ") + 4, text.rindex(" in ")),))
        for text in sentences
    ]
    asked += [ReadingQuestion("the", (f"{a} sat",), (), ()) for a in NOUNS[:3]] if none else []
    config = ReadingConfig(network="linear", features=TUNED, dropout=0.0)
    fitting = FITTING.replace(epochs=25, patience=25)
    outcome = fit(TaskBuilder(Reading, config, [calm_bert()]), Splits(asked, asked), tmp_path / "out", fitting, Run(seed=1))
    assert outcome.scores["dev"]["exact"] == 1.0
    questions = [("the", sentences[0]), ("", ""), ("the", ["", "bank " * 60, "mat"])]  # the long one in windows
    task, again = outcome.task, load(tmp_path / "out")
    assert_same_answers(again.predict(questions), task.predict(questions), 1e-6)
    assert_same_answers([task.predict([each])[0] for each in questions], task.predict(questions), 1e-5)
    with pytest.raises(ConfigError, match=r"needs an encoder that reads text pairs, such as BERT; this encoder is elmo"):
        Reading.build(config, asked, [elmo()])
    with pytest.raises(ConfigError, match="omit word_dim"):
        ReadingConfig(network="linear", features=FeaturesConfig(words=TaskWordConfig(dim=5)))


def test_what_cannot_be() -> None:
    def said(text: str, **settings: Any) -> None:
        with pytest.raises(ConfigError, match=text):
            ClassificationConfig(**{"network": "linear", **settings})

    said("lm_weight belong to network='linear'", network="bcn", linear_head=LinearHeadConfig(lm_weight=0.5))
    said("omit word_dim", features=FeaturesConfig(words=TaskWordConfig(dim=5)))
    said("omit positions", features=FeaturesConfig(positions=("output",)))
    said("lm_weight=0.5 needs mode='finetune'", linear_head=LinearHeadConfig(lm_weight=0.5))
    with pytest.raises(ConfigError, match="both_orders=True needs network='linear'"):
        PairsConfig(both_orders=True)
    with pytest.raises(ConfigError, match=r"needs a left-to-right language model, .* this encoder is elmo"):
        built("classification", elmo(), linear_head=LinearHeadConfig(lm_weight=0.5))
    for encoders, given in (([], "none"), ([elmo(), elmo()], "elmo, elmo")):
        with pytest.raises(ConfigError, match=f"(exactly one contextual encoder; got {given}|give an encoder)"):
            Classification.build(ClassificationConfig(network="linear", features=TUNED), TEXTS, encoders)
    (table,) = encoders_of("vectors")
    with pytest.raises(ConfigError, match="word vectors were given"):
        Classification.build(ClassificationConfig(network="linear", features=TUNED), TEXTS, [table, elmo()])
    with pytest.raises(ConfigError, match="positions is empty"):
        Classification.build(ClassificationConfig(features=FeaturesConfig(positions=())), TEXTS, [elmo()])


def test_options_have_plain_names() -> None:
    options = {
        "network": "linear",
        "mode": "finetune",
        "lm_weight": 0.5,
        "both_orders": True,
        "decay": "slanted",
        "warmup": 0.1,
    }
    config, fitting = configure_task("pairs", options)
    assert config.linear_head.lm_weight == 0.5 and config.both_orders and fitting.optim.decay == "slanted"
    with pytest.raises(UsageError, match="lm_weight"):
        configure_task("pairs", {"lm_weight": 0.5})
