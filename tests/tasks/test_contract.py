"""What every task holds to, with and without an encoder: a task is tested by being in the registry."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.base.run import Run
from polyseme.encoders.base import Encoder
from polyseme.encoders.config import CachePrecision
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.nn.config import CharactersConfig
from polyseme.tasks.base import Task
from polyseme.tasks.choices_config import ChoicesConfig
from polyseme.tasks.classification_config import ClassificationConfig
from polyseme.tasks.config import FeaturesConfig, LinearHeadConfig, TaskConfig, TaskWordConfig
from polyseme.tasks.coreference_config import CoreferenceConfig
from polyseme.tasks.data import TaskData
from polyseme.tasks.fit import FitResult, Splits, TaskBuilder, fit
from polyseme.tasks.fit_config import FitConfig
from polyseme.tasks.folder import load
from polyseme.tasks.generation_config import GenerationConfig
from polyseme.tasks.pairs_config import PairsConfig
from polyseme.tasks.predictions import Answer, ChoicePrediction, GeneratedText, LabelPrediction, ScorePrediction
from polyseme.tasks.reading_config import ReadingConfig
from polyseme.tasks.registry import TASKS, task_class
from polyseme.tasks.roles_config import RolesConfig
from polyseme.tasks.tagging_config import TaggingConfig
from polyseme.text.labelled.conll import TaggedSentence
from polyseme.text.word_vectors import WordVectors
from polyseme.training.base import Loss
from polyseme.training.optim_config import OptimConfig
from tests.encoders.small import elmo
from tests.training.compare import assert_same_run, assert_same_tensors

WORDS = TaskWordConfig(dim=6, characters=CharactersConfig(dim=4, filters=((2, 5),), highway_layers=0))
FITTING = FitConfig(batch_size=4, epochs=2, optim=OptimConfig(learning_rate=0.01, weight_decay=0.0))
TANH = LinearHeadConfig(head="tanh")
STEPS = 6  # of two epochs over ten examples, four at a time
SUBJECTS, ENDS = ["the cat", "a dog", "the old river", "money", "Ann"], ["sat on the mat .", "ran"]
SENTENCES = [f"{subject} {end}" for subject in SUBJECTS for end in ENDS]


@dataclass(frozen=True)
class Case:
    """A task with a config, a file of ten examples, and questions for its `predict`, the empty one among them."""

    kind: str
    config: TaskConfig
    file: str
    questions: Sequence[Any]


def _conll(plain: bool) -> str:
    def tag(word: str) -> str:
        return str(len(word)) if plain else "B-X" if word in ("cat", "dog", "river", "Ann") else "O"

    return "\n\n".join("\n".join(f"{word} {tag(word)}" for word in text.split()) for text in SENTENCES) + "\n"


def _table(head: str, rows: list[str]) -> str:
    return "\n".join([head, *rows]) + "\n"


def _squad(without: bool) -> str:
    """Who did it? The subject, or nobody where it is money."""
    rows = []
    for number, text in enumerate(SENTENCES):
        subject = next(subject for subject in SUBJECTS if text.startswith(subject))
        answers = [] if without and subject == "money" else [{"text": subject, "answer_start": 0}]
        rows.append({"context": text, "qas": [{"id": str(number), "question": f"who {text[-3:]} ?", "answers": answers}]})
    return json.dumps({"version": "1.1", "data": [{"title": "a", "paragraphs": rows}]})


TEXTS = _table("text\tlabel", [f"{text}\t{'long' if '.' in text else 'short'}" for text in SENTENCES])
THREE = _table("text\tlabel", [f"{text}\t{'abc'[number % 3]}" for number, text in enumerate(SENTENCES)])
PAIRS = _table(
    "sentence1\tsentence2\tlabel", [f"{SENTENCES[0]}\t{text}\t{'yes' if 'the' in text else 'no'}" for text in SENTENCES]
)
SCORES = _table("sentence1\tsentence2\tscore", [f"{SENTENCES[1]}\t{text}\t{1 + len(text) / 5}" for text in SENTENCES])
ROLES = "".join(
    f"{len(tags)} {subject} {verb} to the mat ||| {' '.join(tags)} B-V B-AM I-AM I-AM\n"
    for subject, tags in zip(SUBJECTS, (["B-A0", "I-A0", "I-A0"][: len(subject.split())] for subject in SUBJECTS), strict=True)
    for verb in ("went", "ran")
)
COREFERENCE = "".join(
    json.dumps({"sentences": [text.split(), ["It", "is", "it", "."]], "clusters": [[[0, 0], [len(text.split())] * 2]]}) + "\n"
    for text in SENTENCES
)
CHOICES = "".join(
    json.dumps({"question": text, "choices": [*SUBJECTS[number % 3 :], "it"], "answer": number % 2, "context": "so ."}) + "\n"
    for number, text in enumerate(SENTENCES)
)
TRANSLATED = "".join(f"{text}\t{text[::-1].title()}\n" for text in SENTENCES)
NEW = ["the cat ran to the bank .", "", "unheard-of words", "dog " * 30, ["Ann", "sat"], []]
NEW_PAIRS = [("the cat", "a dog ran ."), ("", ""), ("", "money"), (["Ann"], ""), ("the dog " * 20, "it")]
NEW_CHOICES = [
    ("who ran ?", ["the cat", "a dog", "it"]),
    ("", ["", ""]),
    ("", ["Ann", "money"]),
    (["Ann", "sat"], ["dog " * 20, ["unheard-of", "words"]], "the river"),
]
NEW_ROLES = [(NEW[0], [2]), ("", []), (NEW[2], [0]), (NEW[3], [3, 17]), (["Ann", "sat"], [1]), ("Ann sat", [])]
NEW_QUESTIONS = [
    ("who ran ?", "“the cat”  ran\tto the bank ."),
    ("", ""),
    ("who ?", ""),
    ("", "money"),
    ("who sat ?", ["", "Ann sat", "dog " * 30, ["unheard-of", "words"]]),
]

CASES = {
    "tagging": Case("tagging", TaggingConfig(hidden_size=7, layers=1), _conll(plain=False), NEW),
    "tagging-plain": Case("tagging", TaggingConfig(hidden_size=7, layers=2, crf=False), _conll(plain=True), NEW),
    "tagging-0": Case("tagging", TaggingConfig(layers=0), _conll(plain=False), NEW),
    "bcn": Case("classification", ClassificationConfig(network="bcn", hidden_size=6), TEXTS, NEW),
    "pooled": Case("classification", ClassificationConfig(network="pooled", hidden_size=6), THREE, NEW),
    "pooled-0": Case(
        "classification", ClassificationConfig(network="pooled", layers=0, hidden_size=6, pooling="max"), TEXTS, NEW
    ),
    "esim": Case("pairs", PairsConfig(network="esim", hidden_size=6), PAIRS, NEW_PAIRS),
    "siamese-score": Case("pairs", PairsConfig(network="siamese", goal="score", hidden_size=6, layers=0), SCORES, NEW_PAIRS),
    "bidaf": Case("reading", ReadingConfig(hidden_size=5), _squad(without=False), NEW_QUESTIONS),
    "bidaf-none": Case("reading", ReadingConfig(hidden_size=5, max_paragraph_length=4), _squad(without=True), NEW_QUESTIONS),
    "direct": Case("classification", ClassificationConfig(network="linear"), THREE, NEW),
    "direct-pairs": Case("pairs", PairsConfig(network="linear", both_orders=True), PAIRS, NEW_PAIRS),
    "direct-score": Case("pairs", PairsConfig(network="linear", goal="score", linear_head=TANH), SCORES, NEW_PAIRS),
    "direct-choices": Case("choices", ChoicesConfig(linear_head=TANH), CHOICES, NEW_CHOICES),
    "roles": Case("roles", RolesConfig(hidden_size=6, layers=3, predicate_dim=4), ROLES, NEW_ROLES),
    "coreference": Case(
        "coreference",
        CoreferenceConfig(
            hidden_size=6,
            scorer_size=5,
            feature_dim=3,
            max_span_width=2,
            max_antecedents=3,
            max_training_sentences=1,
            singletons=True,
        ),
        COREFERENCE,
        NEW,
    ),
    "generation": Case("generation", GenerationConfig(hidden_size=6, target_dim=7, min_count=1), TRANSLATED, NEW),
}
MODES = ["alone", "vectors", "frozen", "finetune"]
BARE = [name for name in CASES if name.startswith("direct")]
"""Networks that are nothing without an encoder."""
COMBINED = [(name, mode) for name in CASES for mode in MODES if mode != "vectors" or name in ("tagging", "bcn", "esim")]
COMBINED = [(name, mode) for name, mode in COMBINED if name not in BARE or mode in ("frozen", "finetune")]
VARIANTS = {"tagging-plain", "tagging-0", "pooled", "pooled-0", "siamese-score", "bidaf-none", "direct-score"}
"""Further forms of tasks that are here already: they are trained among the slow tests."""


def cases(quick: Callable[[str, str], bool], modes: Sequence[str] = MODES) -> Any:
    """All networks in these modes; those that are not quick run among the slow tests."""
    chosen = [case for case in COMBINED if case[1] in modes]
    marked = [pytest.param(*case, marks=[] if quick(*case) else [pytest.mark.slow]) for case in chosen]
    return pytest.mark.parametrize(("name", "mode"), marked)


def trained_quickly(name: str, mode: str) -> bool:
    """One task in every mode, the others fine-tuned."""
    return name not in VARIANTS and (name == "tagging" or mode == "finetune")


built_cases = cases(lambda name, mode: mode == "frozen" or name == "tagging")
fitted = cases(trained_quickly)
resumed = cases(lambda name, mode: mode == "finetune" and name in ("tagging", "generation"))
ONE_OF_A_KIND = ("tagging", "direct-pairs", "generation")
"""Read by words, by pairs, and by a decoder: what holds for these in the training loop is quick to see."""


def names(quick: Callable[[str], bool]) -> Any:
    """All networks; those that are not quick run among the slow tests."""
    return pytest.mark.parametrize("name", [pytest.param(each, marks=[pytest.mark.slow] * (not quick(each))) for each in CASES])


def test_every_task_is_here() -> None:
    assert {case.kind for case in CASES.values()} == set(TASKS)
    for name in TASKS:
        assert task_class(name).kind == name


# ---- doing


def config_of(name: str, mode: str) -> TaskConfig:
    kept = "finetune" if mode == "finetune" else "frozen"
    if name in BARE:
        return CASES[name].config.replace(features=FeaturesConfig(mode=kept, encoder_lr_multiplier=1.0))  # type: ignore[arg-type]
    features = FeaturesConfig(words=WORDS, mode=kept, positions=("input", "output"), encoder_lr_multiplier=1.0)  # type: ignore[arg-type]
    return CASES[name].config.replace(features=features)


def encoders_of(mode: str) -> list[Encoder]:
    if mode == "vectors":
        words = ["the", "cat", "river", "unheard-of"]
        numbers = np.random.default_rng(0).normal(size=(len(words), 5)).astype(np.float32)
        return [WordVectorTable.from_vectors(WordVectors(words, numbers, len(words)))]
    return [] if mode == "alone" else [elmo()]


def examples_of(name: str, folder: Path) -> list[Any]:
    case = CASES[name]
    file = folder / "data.txt"
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(case.file, encoding="utf-8")
    return task_class(case.kind).read(file, case.config, training=True)


def trained(name: str, mode: str, out: Path, kind: type[Task] | None = None, fitting: FitConfig = FITTING) -> FitResult:
    examples, encoders = examples_of(name, out.with_name("data")), encoders_of(mode)
    kind = kind or task_class(CASES[name].kind)
    return fit(
        TaskBuilder(kind, config_of(name, mode), encoders), Splits(examples, examples[:5], examples), out, fitting, Run(seed=3)
    )


def built(name: str, mode: str, folder: Path) -> tuple[Task, list[Any]]:
    """A new network, and its examples."""
    examples = examples_of(name, folder)
    torch.manual_seed(1)
    return task_class(CASES[name].kind).build(config_of(name, mode), examples, encoders_of(mode)), examples


@pytest.fixture(scope="module")
def fits(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Each network trained once for all tests; gives what came of it and its folder."""

    @cache
    def get(name: str, mode: str) -> tuple[FitResult, Path]:
        out = tmp_path_factory.mktemp(f"{name}-{mode}") / "out"
        return trained(name, mode, out), out

    return get


def assert_same_answers(found: Sequence[Any], expected: Sequence[Any], tolerance: float = 1e-5) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        if isinstance(b, LabelPrediction):
            assert a.label == b.label
            assert a.probabilities == pytest.approx(b.probabilities, abs=tolerance)
        elif isinstance(b, ScorePrediction):
            assert a.score == pytest.approx(b.score, abs=tolerance)
        elif isinstance(b, GeneratedText):
            assert (a.text, a.words) == (b.text, b.words)
            assert a.score == pytest.approx(b.score, abs=tolerance)
        elif isinstance(b, ChoicePrediction):
            assert a.text == b.text
            assert a.probabilities == pytest.approx(b.probabilities, abs=tolerance)
        elif isinstance(b, Answer):
            assert (a.text, a.span) == (b.text, b.span)
            assert a.score == pytest.approx(b.score, abs=tolerance)
        else:
            assert a == b


# ---- training, the folder, answers


@fitted
def test_training_writes_a_folder_and_a_result(fits: Any, name: str, mode: str) -> None:
    outcome, out = fits(name, mode)
    assert (outcome.result.steps, outcome.result.ended) == (STEPS, "budget")
    assert outcome.task.main_metric in outcome.scores["dev"]
    told = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert told["scores"] == outcome.scores and told["examples"] == {"train": 10, "dev": 5, "test": 10}
    kept = {path.name for path in out.iterdir() if path.is_dir()} - {"run"}
    assert kept == {"alone": set(), "vectors": {"vectors"}}.get(mode, {"encoder-1"})
    # what was loaded scores as the network in memory did when it was written
    assert {name: outcome.result.scores[name] for name in outcome.scores["dev"]} == pytest.approx(outcome.scores["dev"])


@fitted
def test_the_score_is_made_of_tallies(fits: Any, name: str, mode: str) -> None:
    """What a bootstrap resamples, with every example drawn once, is the score itself."""
    outcome, out = fits(name, mode)
    path, task = out / "test-tallies.npy", outcome.task
    if path.is_file():
        score_counts = np.load(path)
        assert len(score_counts) == 10
        assert float(task.score_from_counts(score_counts.sum(0))) == pytest.approx(outcome.scores["test"][task.main_metric])
    else:
        assert task.main_metric in ("pearson", "macro_f1", "matthews")  # made of no counts


@built_cases
def test_a_folder_gives_back_the_network(name: str, mode: str, tmp_path: Path) -> None:
    task, examples = built(name, mode, tmp_path)
    task.train()
    task.loss(task.prepare(task.data(examples).gather(range(10))))  # running statistics, too, must come back
    task.eval().save(tmp_path / "out")
    again = load(tmp_path / "out")
    assert type(again) is type(task) and again.config == task.config and again.labels == task.labels
    assert again.splitter.name == task.splitter.name
    assert_same_answers(again.predict_data(again.data(examples)), task.predict_data(task.data(examples)), 1e-7)


RIGHT: dict[str, Any] = {
    "tagging": ["O", "B-X", "O", "O", "O", "O", "O"],
    "tagging-plain": ["3", "3", "3", "2", "3", "3", "1"],
    "pooled": "a",
    "direct": "a",
    "classification": "long",
    "siamese-score": 5.8,
    "direct-score": 5.8,
    "pairs": "yes",
    "reading": ["the cat"],
    "choices": "the cat",
    "roles": ["B-A0", "I-A0", "B-V", "B-AM", "I-AM", "I-AM"],
    "coreference": [[[0, 0], [7, 7]]],
    "generation": ". tam eht no tas tac eht".title(),
}
"""The right answer to the first example, by the name of the case or of its task."""
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "tagging": lambda example: example.words,
    "classification": lambda example: example.text,
    "pairs": lambda example: (example.first, example.second),
    "choices": lambda example: (example.question, example.choices, example.context),
    "roles": lambda example: (example.words, [example.predicate]),
    "reading": lambda example: (example.question, example.paragraphs),
    "coreference": lambda example: example.sentences,
    "generation": lambda example: example.source,
}
"""What `predict` is asked about an example."""


@names(lambda name: name not in VARIANTS)
def test_an_example_with_its_prediction_in_json(name: str, tmp_path: Path) -> None:
    task, examples = built(name, "frozen", tmp_path)
    outputs = task.eval().predict_data(task.data(examples))
    rows = [json.loads(json.dumps(task.example_json(*pair, "a.txt"))) for pair in zip(examples, outputs, strict=True)]
    places, gold = [row.pop("where") for row in rows], [row.pop("gold") for row in rows]
    assert len(set(places)) == 10 and all(place.startswith("a.txt") for place in places)
    assert gold[0] == (RIGHT[name] if name in RIGHT else RIGHT[task.kind])
    said = task.predict([QUESTIONS[task.kind](example) for example in examples])
    for row, prediction in zip(rows, said, strict=True):
        expected = json.loads(json.dumps(prediction.to_json(row.get("text", ""))))
        for values in (row, expected):
            numbers = [values.pop(key, None) for key in ("score", "probability", "probabilities")]
            assert any(number is not None for number in numbers) or task.kind in ("tagging", "roles", "coreference")
        assert row == expected


@fitted
def test_new_and_empty_texts_are_answered_alike_in_any_company(fits: Any, name: str, mode: str) -> None:
    task, questions = fits(name, mode)[0].task, CASES[name].questions
    together = task.predict(questions)
    assert len(together) == len(questions)
    assert_same_answers(task.predict(questions[::-1])[::-1], together)
    some = [place for place, question in enumerate(questions) if not is_empty(question)]
    assert 0 < len(some) < len(questions)
    assert_same_answers([task.predict([questions[place]])[0] for place in some], [together[place] for place in some])
    assert task.predict([]) == []
    for nothing_to_answer in ("one string", [None], [float("nan")]):
        with pytest.raises(UsageError):
            task.predict(nothing_to_answer)
    for question, answer in zip(questions, together, strict=True):
        if isinstance(answer, TaggedSentence):
            assert answer.words == task.words(question) and len(answer.tags) == len(answer.words)
        elif isinstance(answer, LabelPrediction):
            assert answer.label in task.labels and set(answer.probabilities) == set(task.labels)
            assert sum(answer.probabilities.values()) == pytest.approx(1.0)
        elif isinstance(answer, Answer):
            paragraphs = [question[1]] if isinstance(question[1], str) else [*question[1][:-1], " ".join(question[1][-1])]
            span = answer.span
            assert answer.text == ("" if span is None else paragraphs[span.paragraph][span.begin : span.end])


def is_empty(question: Any) -> bool:
    return not all(question) if isinstance(question, tuple) else not question


@fitted
def test_empty_texts_need_no_company(fits: Any, name: str, mode: str) -> None:
    task, questions = fits(name, mode)[0].task, CASES[name].questions
    together = task.predict(questions)
    for question, answer in zip(questions, together, strict=True):
        if is_empty(question):
            assert_same_answers(task.predict([question]), [answer])


@built_cases
def test_answers_leave_the_network_as_it_was(name: str, mode: str, tmp_path: Path) -> None:
    task, examples = built(name, mode, tmp_path)
    before = {key: value.clone() for key, value in task.state_dict().items()}
    for training in (True, False):
        task.train(training)
        task.predict_data(task.data(examples))
        assert task.training is training
    assert all(torch.equal(value, before[key]) for key, value in task.state_dict().items())


@cases(trained_quickly, ["frozen", "finetune"])
def test_an_encoder_learns_only_where_it_is_fine_tuned(fits: Any, name: str, mode: str) -> None:
    outcome, out = fits(name, mode)
    same = model_fingerprint(outcome.task.features.contextual[0]) == model_fingerprint(elmo())
    assert same is (mode == "frozen")
    head = json.loads((out / "task.json").read_text(encoding="utf-8"))
    assert (head["encoders"][0]["sha256"] == model_fingerprint(elmo())) is (mode == "frozen")


# ---- going on after a stop


class PowerCut(Exception):
    """Nothing is written any more."""


def stopping(kind: type[Task], step: int, by: int = 0) -> type[Task]:
    """The task with a loss that ends the run at a step: by a signal, or at once."""
    seen = [0]

    def loss(self: Task, batch: Any) -> Loss:
        seen[0] += 1
        if seen[0] == step:
            if not by:
                raise PowerCut
            os.kill(os.getpid(), by)
        return kind.loss(self, batch)

    return type(kind.__name__, (kind,), {"loss": loss})


@resumed
def test_a_run_that_was_stopped_goes_on_as_if_nothing_had_happened(fits: Any, name: str, mode: str, tmp_path: Path) -> None:
    kind, out = task_class(CASES[name].kind), tmp_path / "out"
    outcome = trained(name, mode, out, stopping(kind, 4, signal.SIGTERM))  # in the second epoch: a best network is there
    assert (outcome.result.steps, outcome.result.ended) == (4, None)
    with pytest.raises(PowerCut):
        trained(name, mode, out, stopping(kind, 2))
    again = trained(name, mode, out)
    whole, expected = fits(name, mode)
    assert_same_run(expected, out)
    assert again.scores == whole.scores
    if mode == "finetune":
        assert_same_tensors(out / "encoder-1" / "model.safetensors", expected / "encoder-1" / "model.safetensors")


@pytest.mark.parametrize("name", ["tagging", *(pytest.param(each, marks=pytest.mark.slow) for each in ("bcn", "esim"))])
def test_a_stop_before_the_first_evaluation_is_no_error(fits: Any, name: str, tmp_path: Path) -> None:
    kind, out = task_class(CASES[name].kind), tmp_path / "out"
    outcome = trained(name, "alone", out, stopping(kind, 2, signal.SIGTERM))
    assert (outcome.result.steps, outcome.result.ended) == (2, None)
    trained(name, "alone", out)
    assert_same_run(fits(name, "alone")[1], out)


@names(lambda name: name in ONE_OF_A_KIND)
def test_more_epochs_can_be_added(name: str, tmp_path: Path) -> None:
    mode = "frozen" if name in BARE else "alone"
    trained(name, mode, tmp_path / "out", fitting=replace(FITTING, epochs=1))
    examples, encoders = examples_of(name, tmp_path / "data"), encoders_of(mode)
    run, config = Run(seed=3), config_of(name, mode)
    kind = task_class(CASES[name].kind)
    outcome = fit(
        TaskBuilder(kind, config, encoders), Splits(examples, examples[:5]), tmp_path / "out", FITTING, run, accept_changes=True
    )
    assert (outcome.result.steps, outcome.result.ended) == (STEPS, "budget")


def test_a_trained_task_is_not_written_over(tmp_path: Path) -> None:
    out = tmp_path / "out"
    trained("tagging", "alone", out)
    shutil.rmtree(out / "run")
    with pytest.raises(PolysemeError, match="holds a trained task of another run: choose another folder, or remove it first"):
        trained("bcn", "alone", out)


def test_words_in_another_order_are_not_taken_for_the_old_ones(tmp_path: Path) -> None:
    trained("tagging", "alone", tmp_path / "out", fitting=replace(FITTING, epochs=1))
    examples, kind = examples_of("tagging", tmp_path / "data")[::-1], task_class(CASES["tagging"].kind)
    config, run = config_of("tagging", "alone"), Run(seed=3)
    with pytest.raises(PolysemeError, match="changed since it began"):
        fit(TaskBuilder(kind, config), Splits(examples, examples[:5]), tmp_path / "out", FITTING, run, accept_changes=True)


def test_a_fine_tuned_task_stays_while_a_new_one_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    task = trained("tagging", "finetune", out).task
    before = {path.name: path.read_bytes() for path in out.rglob("*.safetensors") if "run" not in path.parts}

    def full(*_: object) -> None:
        raise PolysemeError("the disk is full")

    monkeypatch.setattr("polyseme.tasks.folder_writer.write_text", full)
    with pytest.raises(PolysemeError, match="the disk is full"):
        task.save(out)
    assert {path.name: path.read_bytes() for path in out.rglob("*.safetensors") if "run" not in path.parts} == before
    load(out)


def test_little_data_is_passed_over_more_often(tmp_path: Path) -> None:
    outcome = trained("tagging", "alone", tmp_path / "out", fitting=replace(FITTING, min_steps=STEPS + 3))
    looks = [line for line in (tmp_path / "out/run/log.jsonl").read_text().splitlines() if '"dev"' in line]
    assert (outcome.result.steps, len(looks)) == (10, FITTING.epochs)  # the next that two looks divide evenly


# ---- frozen layers


def loss_of(task: Task, data: TaskData) -> float:
    with torch.no_grad():
        return float(task.eval().loss(task.prepare(data.gather(range(len(data))))).total)


@names(lambda name: name not in VARIANTS)
@pytest.mark.parametrize(("precision", "tolerance"), [pytest.param("fp16", 1e-2, marks=pytest.mark.slow), ("fp32", 1e-5)])
def test_cached_layers_give_the_loss_of_computed_ones(
    name: str, precision: CachePrecision, tolerance: float, tmp_path: Path
) -> None:
    task, examples = built(name, "frozen", tmp_path)
    computed, cached = task.data(examples), task.data(examples)
    cached.cache(task.features, tmp_path / "layers", precision=precision)
    expected = loss_of(task, computed)
    assert loss_of(task, cached) == pytest.approx(expected, rel=tolerance)
    if name != "generation" or precision == "fp32":  # what an untrained one writes hangs on the last bit of its scores
        assert_same_answers(task.predict_data(cached), task.predict_data(computed), tolerance)
    task.features.encoders[0].embed = None  # type: ignore[method-assign,assignment]
    assert loss_of(task, cached) == pytest.approx(expected, rel=tolerance)  # and nothing is computed again
