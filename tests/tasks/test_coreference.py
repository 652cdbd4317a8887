"""Coreference: a toy set is learned, documents are cut and read in pieces, places and prints, what is refused."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import polyseme.tasks.coreference as module
from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, UsageError
from polyseme.base.run import Run
from polyseme.nn.attention import MASKED_SCORE
from polyseme.nn.networks.span_ranking import SpanRanking
from polyseme.tasks.config import FeaturesConfig, TaskWordConfig
from polyseme.tasks.coreference import Coreference
from polyseme.tasks.coreference_config import CoreferenceConfig
from polyseme.tasks.data import ExampleBatch
from polyseme.tasks.fit import FitResult, Splits, TaskBuilder, fit
from polyseme.tasks.fit_config import FitConfig
from polyseme.tasks.folder import load
from polyseme.tasks.predictions import CoreferencePrediction, MentionSpan
from polyseme.text.labelled.coreference import CoreferenceDocument
from polyseme.training.base import Loss
from polyseme.training.optim_config import OptimConfig
from tests.encoders.small import elmo
from tests.training.compare import assert_same_run

FEATURES = FeaturesConfig(words=TaskWordConfig(dim=16, characters=None))
SMALL = {
    "hidden_size": 16,
    "scorer_size": 16,
    "feature_dim": 4,
    "max_span_width": 3,
    "spans_per_word": 0.5,
    "max_antecedents": 8,
    "features": FEATURES,
    "mention_loss": True,
}
QUICK = FitConfig(batch_size=8, epochs=12, patience=12, optim=OptimConfig(learning_rate=0.01, weight_decay=0.0, warmup=0.0))
WOMEN, MEN = ["Ann", "Lena", "Mary Hill"], ["Bob", "Omar", "Tom Hill"]


def small(**changes: Any) -> CoreferenceConfig:
    return CoreferenceConfig(**(SMALL | {"dropout": 0.0, "scorer_dropout": 0.0} | changes))


def told(text: str) -> CoreferenceDocument:
    """From `1:Ann met 2:Tom_Hill . / 1:She left .`: sentences, mentions with the numbers of their clusters."""
    sentences: list[list[str]] = []
    clusters: dict[str, list[tuple[int, int]]] = {}
    count = 0
    for part in text.split(" / "):
        sentences.append([])
        for piece in part.split():
            number, _, mention = piece.rpartition(":")
            words = mention.split("_")
            if number:
                clusters.setdefault(number, []).append((count, count + len(words) - 1))
            sentences[-1] += words
            count += len(words)
    return CoreferenceDocument(sentences, sorted(clusters.values()))


def stories(count: int, seed: int, longest: int = 3) -> list[CoreferenceDocument]:
    """A woman and a man meet; after that she is she, and he is he."""
    source, found = random.Random(seed), []
    for _ in range(count):
        people = source.choice(WOMEN).replace(" ", "_"), source.choice(MEN).replace(" ", "_")
        parts = [f"1:{people[0]} met 2:{people[1]} ."]
        for _ in range(source.randint(1, longest)):
            who = source.choice([("1:She", "2:him"), ("2:He", "1:her")])
            parts.append(f"{who[0]} saw the {source.choice(['sea', 'hill', 'town'])} with {who[1]} .")
        found.append(told(" / ".join(parts)))
    return found


def built(examples: list[CoreferenceDocument], **changes: Any) -> Coreference:
    torch.manual_seed(0)
    return Coreference.build(small(**changes), examples).eval()


# ---- learning


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[FitResult, Path]:
    out = tmp_path_factory.mktemp("run")
    fitting = QUICK.replace(batch_size=4, epochs=5, optim=QUICK.optim.replace(learning_rate=0.02))
    splits = Splits(stories(60, 1), stories(10, 2), stories(10, 3))
    return fit(TaskBuilder(Coreference, small()), splits, out, fitting, Run(seed=1)), out


def test_a_toy_set_is_learned(trained: tuple[FitResult, Path]) -> None:
    outcome, out = trained
    assert list(outcome.scores["test"]) == ["f1", "muc", "b3", "ceaf", "lea", "mentions"]
    assert min(outcome.scores["test"].values()) > 0.95
    text = "Lena met Tom Hill. He saw the town with her. She saw the sea with him."
    for task in (outcome.task, load(out)):
        (found,) = task.predict([text])
        assert [[each.text for each in cluster] for cluster in found.clusters] == [
            ["Lena", "her", "She"],
            ["Tom Hill", "He", "him"],
        ]
        places = [text[each.begin : each.end] for cluster in found.clusters for each in cluster]
        assert places == ["Lena", "her", "She", "Tom Hill", "He", "him"]


def test_a_folder_answers_the_same(trained: tuple[FitResult, Path]) -> None:
    outcome, out = trained
    again, dev = load(out), stories(20, 2)
    assert again.predict_data(again.data(dev)) == outcome.task.predict_data(outcome.task.data(dev))


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    """With documents that are cut at random: the windows of a resumed run are the same."""
    seen = [0]

    class Stopping(Coreference):
        def loss(self, batch: Any) -> Loss:
            seen[0] += 1
            if seen[0] == 4:
                os.kill(os.getpid(), signal.SIGTERM)
            return super().loss(batch)

    fitting, config = QUICK.replace(epochs=2, batch_size=4), small(max_training_sentences=2, scorer_dropout=0.2)
    examples = stories(10, 1, longest=9)

    def run(kind: type[Coreference], out: str) -> FitResult:
        return fit(TaskBuilder(kind, config), Splits(examples, examples[:3]), tmp_path / out, fitting, Run(seed=3))

    whole = run(Coreference, "whole")
    assert run(Stopping, "parts").result.ended is None
    assert run(Coreference, "parts").scores == whole.scores
    assert_same_run(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.slow
def test_singletons_are_learned_where_they_are_asked_for(tmp_path: Path) -> None:
    examples = [told(f"1:{name} saw 2:{thing} . / 1:{name} left .") for name in ("Ann", "Bob") for thing in ("rain", "snow")]
    longer = QUICK.replace(epochs=24)
    kept = fit(
        TaskBuilder(Coreference, small(singletons=True, mention_loss=False)),
        Splits(examples * 8, examples),
        tmp_path / "a",
        longer,
        Run(seed=1),
    )
    assert kept.task.predict_data(kept.task.data(examples[:1])) == [[[(0, 0), (4, 4)], [(2, 2)]]]
    assert kept.scores["dev"]["f1"] == kept.scores["dev"]["mentions"] == 1.0
    left = fit(TaskBuilder(Coreference, small()), Splits(examples * 8, examples), tmp_path / "b", QUICK, Run(seed=1))
    assert left.task.predict_data(left.task.data(examples[:1])) == [[[(0, 0), (4, 4)]]] and left.scores["dev"]["f1"] == 1.0


# ---- windows


def batch_of(task: Coreference, documents: list[CoreferenceDocument]) -> ExampleBatch:
    return task.data(documents).gather(range(len(documents)))


def test_long_documents_are_cut_in_training() -> None:
    documents = [told("1:a b / 1:c d e / 2:f / 1:g 2:h"), told("1:i / 1:j")]
    task = built(documents, max_training_sentences=2, truncation="first")
    prepared = task.prepare(batch_of(task, documents))
    assert prepared.inputs[0].lengths.tolist() == [2, 3, 1, 1]
    assert [dict(each.clusters) for each in prepared.targets] == [{(0, 0): 1, (2, 2): 1}, {(0, 0): 1, (1, 1): 1}]
    assert [each.sentences.tolist() for each in prepared.targets] == [[0, 0, 1, 1, 1], [0, 1]]
    assert float(task.loss(prepared).total.detach()) > 0


def test_random_windows_follow_the_random_state(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [told(" / ".join(f"1:w{number}" for number in range(12)))]
    task, seen = built(documents, max_training_sentences=3), []
    cut = module._window
    monkeypatch.setattr(module, "_window", lambda batch, begins, window: seen.append(begins[0]) or cut(batch, begins, window))
    waiting = task.prepare(batch_of(task, documents))
    assert isinstance(waiting, ExampleBatch)  # nothing is drawn before the step
    for _ in range(2):
        torch.manual_seed(5)
        for _ in range(60):
            task.train().loss(waiting)
    assert seen[:60] == seen[60:] and set(seen) == set(range(10))
    task.eval().loss(waiting)
    assert seen[-1] == 0


def test_cut_layers_are_those_of_the_sentences_that_are_left(tmp_path: Path) -> None:
    documents = [told("1:the cat sat on the mat / 1:a dog / 2:money in the bank / 1:cat 2:dog"), told("1:the / 1:river")]
    torch.manual_seed(0)
    task = Coreference.build(small(max_training_sentences=2), documents, [elmo()])
    data = task.data(documents)
    data.cache(task.features, tmp_path, precision="fp32")
    cut = module._window(data.gather([0, 1]), [1, 0], 2)
    assert cut.texts == [[["a", "dog"], ["money", "in", "the", "bank"], ["the"], ["river"]]] and cut.cached is not None
    for row, array in enumerate(task.features.encoders[0].embed(cut.texts[0])):
        np.testing.assert_allclose(cut.cached[0][0][:, row, : array.shape[1]], array, atol=1e-5)
    assert cut.cached[0][0].shape[2] == 4


# ---- the loss


def fixed(scores: list[list[float]], antecedents: list[list[int]], spans: list[tuple[int, int]], mention: list[float]) -> Any:
    """A network that gives these scores."""
    first, last = torch.tensor(spans).T
    given = SpanRanking(first, last, torch.tensor(mention), torch.tensor(antecedents), torch.tensor(scores))
    return lambda words, wanted=None: given


def test_clusters_follow_the_links() -> None:
    task = built(stories(2, 1))
    spans = [(0, 0), (0, 2), (2, 2), (4, 5), (6, 6)]
    scores = [[MASKED_SCORE, MASKED_SCORE], [-1.0, MASKED_SCORE], [0.5, 2.0], [1.0, 0.5], [-3.0, -1.0]]
    task.ranker.forward = fixed(scores, [[0, 0], [0, 0], [1, 0], [2, 0], [3, 0]], spans, [1.0, -1.0, 1.0, 1.0, 1.0])
    document = told("a b c d e f g")
    assert task.predict_data(task.data([document])) == [[[(0, 0), (2, 2), (4, 5)]]]
    task.config = task.config.replace(singletons=True)  # a likely mention alone counts, an unlikely one does not
    assert task.predict_data(task.data([document])) == [[[(0, 0), (2, 2), (4, 5)], [(6, 6)]]]


def test_right_mentions_are_looked_at_in_training_only() -> None:
    documents, wanted = stories(2, 1), []
    task = built(documents)
    forward = task.ranker.forward
    task.ranker.forward = lambda words, given=None: wanted.append(given) or forward(words, given)  # type: ignore[assignment]
    task.loss(task.prepare(batch_of(task, documents)))
    assert [sorted(map(tuple, each.tolist())) for each in wanted] == [
        sorted(mention for cluster in each.clusters for mention in cluster) for each in documents
    ]
    wanted.clear()
    task.predict_data(task.data(documents))
    task.config = task.config.replace(mention_loss=False)
    task.loss(task.prepare(batch_of(task, documents)))
    assert wanted == [None] * 4


def test_what_is_no_mention_is_looked_at_where_mentions_fill_the_room() -> None:
    document = told("1:Ann 2:met 1:her 2:twice")
    task = built([document], spans_per_word=0.5)
    batch = task.prepare(batch_of(task, [document]))
    _, spans = task.summed_loss(task.vectors(batch.inputs), batch.targets)  # type: ignore[union-attr]
    assert spans == 2 + 4


# ---- answers


def test_documents_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [
        *stories(6, 1),
        CoreferenceDocument([], []),
        CoreferenceDocument([[], ["Ann"], []], []),
        told("a " * 70 + "/ 1:b"),
    ]
    for encoders, positions in (([], ("input",)), ([elmo()], ("input", "output"))):
        torch.manual_seed(0)
        task = Coreference.build(small(features=FEATURES.replace(positions=positions)), documents, encoders).eval()
        with torch.no_grad():
            task.ranker.prior.fill_(0.3)  # or a network that has learned nothing links nothing
        expected = [
            task.decode([task.features(x) for x in task._inputs(batch_of(task, [each]))], [each])[0] for each in documents
        ]
        assert any(expected)
        assert task.predict_data(task.data(documents)) == expected
        monkeypatch.setattr(module, "_TOGETHER", 8)
        assert task.predict_data(task.data(documents)) == expected
        monkeypatch.undo()


def test_what_can_be_asked(trained: tuple[FitResult, Path]) -> None:
    task = trained[0].task
    words = [["Ann", "met", "Bob", "."], ["She", "saw", "him", "."]]
    document = CoreferenceDocument(words, [])
    found = task.predict(["Ann met Bob. She saw him.", words, document, words[0], "", "  ", [], [[]]])
    for each in found[1:3]:
        assert each.text == "Ann met Bob . She saw him ." and each.sentences == words
        assert [[(m.first, m.last) for m in c] for c in each.clusters] == [
            [(m.first, m.last) for m in c] for c in found[0].clusters
        ]
    assert found[0].sentences == words and found[3].sentences == words[:1]
    assert found[4] == CoreferencePrediction("", [], []) and found[5].clusters == found[6].clusters == found[7].clusters == []
    for wrong in ([["a"], "b"], ["a", ["b"]], [3]):
        with pytest.raises(UsageError, match="expected a text, the words of a sentence, or a list of sentences"):
            task.predict([wrong])
    assert task.parse_line("Ann left. She ran.", "x:1", split_on_spaces=True) == [["Ann", "left."], ["She", "ran."]]
    assert task.parse_line("Ann left.", "x:1") == "Ann left."


def test_how_an_answer_is_shown() -> None:
    def placed(text: str, word: int, begin: int) -> MentionSpan:
        return MentionSpan(text, word, word + text.count(" "), begin, begin + len(text))

    text = "The boy of Ann saw her  son."
    found = CoreferencePrediction(
        text,
        [text.split()],
        [[placed("The boy of Ann", 0, 0), placed("her  son", 5, 19)], [placed("Ann", 3, 11), placed("her", 5, 19)]],
    )
    assert found.to_lines(text) == ["[1 The boy of [2 Ann]] saw [1 [2 her]  son].", "1\tThe boy of Ann\ther son", "2\tAnn\ther"]
    values = json.loads(json.dumps(found.to_json(text)))
    assert values["clusters"][1] == [[3, 3], [5, 5]] and values["mentions"][1][0] == {"text": "Ann", "place": [11, 14]}


def test_scores_leave_singletons_out() -> None:
    gold = [told("1:a 2:b 1:c 3:d")]
    task = built(gold)
    assert set(task.score(gold, [[[(0, 0), (2, 2)]]]).values()) == {1.0}
    assert task.score(gold, [[]])["f1"] == 0.0
    some = built(gold, singletons=True).score(gold, [[[(0, 0), (2, 2)]]])
    assert some["muc"] == 1.0 and some["b3"] == pytest.approx(2 / 3) and some["mentions"] == pytest.approx(2 / 3)


def test_scores_are_made_of_tallies() -> None:
    gold, task = stories(4, 1), built(stories(2, 1))
    answers = [gold[0].clusters, [], gold[2].clusters[:1], [[*gold[3].clusters[0], *gold[3].clusters[1]]]]
    score_counts = task.score_counts(gold, answers)
    assert score_counts.shape == (4, 16)
    scores = task.score(gold, answers)
    assert (
        float(task.score_from_counts(score_counts.sum(0)))
        == scores["f1"]
        == pytest.approx((scores["muc"] + scores["b3"] + scores["ceaf"]) / 3)
    )


def test_mistakes_are_told(tmp_path: Path) -> None:
    document = told("1:Ann saw 2:Bob and 1:her 2:son .")
    task = built([document])
    answer = [[[(0, 0), (2, 2), (4, 4)], [(5, 5), (6, 6)]]]
    (found,) = task.example_errors([document], answer, "dev.jsonl")
    told_of = {(each.text, each.gold, each.predicted) for each in found.errors}
    assert told_of == {("Bob", "new", "Ann"), ("her", "Ann", "Bob"), ("son", "Bob", "new"), (".", "none", "son")}
    assert (found.where, found.weight) == ("dev.jsonl", 4)
    assert list(task.example_errors([document], [document.clusters], "dev.jsonl")) == []


# ---- configs and files


def test_configs_are_checked() -> None:
    with pytest.raises(
        ConfigError, match=r"hidden_size is 0; .*; dropout is 1.0; .*; spans_per_word is 0.0; .*; max_training_sentences is 0"
    ):
        small(hidden_size=0, max_training_sentences=0, dropout=1.0, spans_per_word=0.0)
    with pytest.raises(ConfigError, match="only taggers and generation have 'between'"):
        small(features=FEATURES.replace(positions=("between",)))
    config = small(singletons=True, sentence_splitter="lines")
    assert CoreferenceConfig.from_dict(config.to_dict()) == config


def test_sentences_are_cut_by_the_language_of_the_data() -> None:
    assert built(stories(2, 1)).config.sentence_splitter == "english"
    chinese = [told("1:小明 走 了 。 / 1:他 累 了 。")]
    task = built(chinese)
    assert task.config.sentence_splitter == "chinese" and len(task.predict(["小明走了。他累了。"])[0].sentences) == 2
    assert built(chinese, sentence_splitter="lines").config.sentence_splitter == "lines"


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"sentences": [["Ann", "ran"]], "clusters": []}\n')
    assert Coreference.read(file, small()) == [CoreferenceDocument([["Ann", "ran"]], [])]
    with pytest.raises(FormatError, match="1 documents, but no clusters"):
        Coreference.read(file, small(), training=True)
    file.write_text('{"sentences": [["Ann", "ran"]], "clusters": [[[0, 0]]]}\n')
    with pytest.raises(FormatError, match=r"no cluster of two mentions.*give singletons=True"):
        Coreference.read(file, small(), training=True)
    assert len(Coreference.read(file, small(singletons=True), training=True)) == 1


def test_mentions_that_are_too_long_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"sentences": [["Ann", "Hill", "saw", "her"]], "clusters": [[[0, 1], [3, 3]]]}\n')
    Coreference.read(file, small(max_span_width=1))
    Coreference.read(file, small(max_span_width=2), training=True)
    assert not caplog.text
    Coreference.read(file, small(max_span_width=1), training=True)
    assert "1 of 2 mentions have more than 1 words (max_span_width), up to 2: they will not be found" in caplog.text


@pytest.mark.slow
def test_a_book_fits_into_memory() -> None:
    """100,000 words of LitBank, by a network of the usual size with random weights: 4 GB at most above the encoder."""
    root = os.environ.get("POLYSEME_DATA")
    path = Path(root or "", "tasks", "coref_litbank_en", "litbank.test.jsonlines.gz")
    if not root or not path.exists() or not Path("/proc/self/status").exists():
        pytest.skip("real data: set POLYSEME_DATA to a folder with tasks/coref_litbank_en; and memory is told on Linux")
    from benchmarks.coreference import BAR, Peak, joined

    books = Coreference.read(path, CoreferenceConfig())
    torch.manual_seed(0)
    task = Coreference.build(CoreferenceConfig(), books).eval()
    book = joined(books, 100_000)
    with Peak() as peak:
        (clusters,) = task.predict_data(task.data([book]))
    assert clusters and peak.bytes < BAR, f"{peak.bytes / 1e9:.2f} GB"
