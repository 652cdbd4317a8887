"""Taggers: they learn a toy language, give only legal tags, score as CoNLL does, and say what is wrong with data."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch

from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, PolysemeError
from polyseme.base.run import Run
from polyseme.metrics.spans import spans
from polyseme.tasks.config import FeaturesConfig, TaskWordConfig
from polyseme.tasks.features import TextInputs
from polyseme.tasks.fit import Splits, TaskBuilder, fit, sample_fraction
from polyseme.tasks.fit_config import FitConfig
from polyseme.tasks.folder import load
from polyseme.tasks.predictions import TaggedText
from polyseme.tasks.tagging import Tagging
from polyseme.tasks.tagging_config import TaggingConfig
from polyseme.text.labelled.conll import TaggedSentence
from polyseme.text.labelled.text_in_context import document_of
from polyseme.training.optim_config import OptimConfig
from tests.encoders.small import elmo

NAMES, PLACES = ["Anna", "Omar", "Lena", "Igor"], ["Paris", "Rome", "Oslo", "Lima"]
SMALL = TaggingConfig(hidden_size=16, layers=1, dropout=0.0, features=FeaturesConfig(words=TaskWordConfig(dim=12)))
QUICK = FitConfig(batch_size=8, epochs=12, patience=12, optim=OptimConfig(learning_rate=0.02, weight_decay=0.0, warmup=0.0))


def sentences() -> list[TaggedSentence]:
    made = []
    for name in NAMES:
        for place in PLACES:
            made.append(TaggedSentence([name, "Smith", "saw", place, "."], ["B-PER", "I-PER", "O", "B-LOC", "O"]))
            made.append(TaggedSentence(["In", place, name, "slept"], ["O", "B-LOC", "B-PER", "O"]))
    return made


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Tagging:
    out = tmp_path_factory.mktemp("run")
    outcome = fit(TaskBuilder(Tagging, SMALL), Splits(sentences(), sentences()[:8]), out, QUICK, Run(seed=1))
    assert outcome.scores["dev"]["f1"] == 1.0 and (out / "result.json").is_file()
    return outcome.task  # type: ignore[return-value]


def test_it_learns_and_answers(tagger: Tagging) -> None:
    (found,) = tagger.predict(["In Oslo Lena slept"])
    assert found == TaggedText(["In", "Oslo", "Lena", "slept"], ["O", "B-LOC", "B-PER", "O"])
    assert tagger.predict([[], ["Rome"]])[0] == TaggedText([], [])


def test_spans_have_their_offsets_in_a_text_but_not_in_a_list_of_words(tagger: Tagging) -> None:
    text = "In  Oslo\tLena slept"
    in_text, in_words = (each.to_json()["spans"] for each in tagger.predict([text, text.split()]))
    assert [(each["text"], each["start_char"], each["end_char"]) for each in in_text] == [("Oslo", 4, 8), ("Lena", 9, 13)]
    assert in_words == [{key: each[key] for key in ("begin", "end", "label", "text")} for each in in_text]


def test_tags_are_always_legal(tagger: Tagging) -> None:
    strange = [["Smith"] * 7, ["Rome", "Anna", "saw", "Smith"], ["zzz", "."]]
    for tagged in tagger.predict(strange):
        assert len(tagged.tags) == len(tagged.words)
        for begin, end, kind in spans(tagged.tags):
            assert tagged.tags[begin:end] == [f"B-{kind}"] + [f"I-{kind}"] * (end - begin - 1)


def test_words_of_a_text_are_spans_without_types(tmp_path: Path) -> None:
    data = [TaggedSentence(list("他在北京"), list("SSBE")), TaggedSentence(list("北京人好"), list("BMES"))] * 4
    outcome = fit(TaskBuilder(Tagging, SMALL), Splits(data, data), tmp_path, QUICK, Run(seed=1))
    assert (outcome.task.main_metric, outcome.scores["dev"]["f1"]) == ("f1", 1.0)
    assert load(tmp_path).predict([list("他在北京")]) == [TaggedText(data[0].words, data[0].tags)]


def test_asample_fraction_of_the_data_is_tagged_as_all_of_it(tmp_path: Path) -> None:
    slip = TaggedSentence(["to", "Rome"], ["O", "I-LOC"])
    data = [*(TaggedSentence([place], ["B-LOC"]) for place in PLACES * 30), slip]
    seed = next(seed for seed in range(1000) if slip in sample_fraction(data, 0.04, seed))  # one of five, and no slip any more
    outcome = fit(
        TaskBuilder(Tagging, SMALL), Splits(data, data), tmp_path, QUICK.replace(epochs=1, train_fraction=0.04), Run(seed=seed)
    )
    assert isinstance(outcome.task, Tagging) and outcome.task.scheme == "BIO"


def test_plain_tags_without_crf(tmp_path: Path) -> None:
    data = [TaggedSentence(["a", "dog", "runs"], ["DET", "NOUN", "VERB"]), TaggedSentence(["the", "cat"], ["DET", "NOUN"])] * 4
    outcome = fit(TaskBuilder(Tagging, SMALL.replace(crf=False)), Splits(data, data), tmp_path, QUICK, Run())
    assert outcome.task.main_metric == "accuracy" and outcome.scores["dev"]["accuracy"] == 1.0
    assert load(tmp_path).predict_data(outcome.task.data(data)) == [each.tags for each in data]


def test_without_crf_there_are_no_impossible_tags() -> None:
    data = [TaggedSentence(["Ann", "Smith", "ran"], ["B-PER", "I-PER", "O"]), TaggedSentence(["Oslo"], ["B-LOC"])]
    for seed in range(5):
        torch.manual_seed(seed)
        task = Tagging.build(SMALL.replace(crf=False), data).eval()
        assert not any(weight.requires_grad for weight in task.crf.parameters())
        (tagged,) = task.predict([["Ann", "Smith", "ran", "to", "Oslo", "and", "Ann"]])
        for before, tag in itertools.pairwise(["O", *tagged.tags]):
            assert not tag.startswith("I-") or before[2:] == tag[2:]


def test_files_in_iob1_come_back_in_iob1(tmp_path: Path) -> None:
    file = tmp_path / "train.txt"
    file.write_text("-DOCSTART- -X- O O\n\nAnna NNP I-NP I-PER\nsaw VBD I-VP O\nRome NNP I-NP I-LOC\n\nOslo NNP I-NP I-LOC\n")
    data = Tagging.read(file, SMALL)
    made = Tagging.build(SMALL, data)
    assert isinstance(made, Tagging) and made.scheme == "IOB1"
    assert all(tag == "O" or tag[0] in "IB" for tagged in made.predict(["Anna saw Rome"]) for tag in tagged.tags)


@pytest.mark.parametrize(("text", "where"), [
    ("Anna B-PER\nSmith M-PER\n\nRome I-LOC\n", ":4.*'I-LOC'"),
    ("Anna B-PER\nSmith\n", ":2.*one column"),
    ("Anna B-PER\nSmith NNP I-PER\n", ":2.*3 columns"),
    ("", "no sentences"),
])  # fmt: skip
def test_bad_data_is_told_by_its_line(tmp_path: Path, text: str, where: str) -> None:
    file = tmp_path / "bad.txt"
    file.write_text(text)
    with pytest.raises(FormatError, match=where):
        Tagging.read(file, SMALL.replace(strict=True))


@pytest.mark.parametrize(("tag", "told"), [("_", "'_' .*a tagger needs two"), ("O", "'O'; a tagger")])
def test_one_tag_is_nothing_to_learn(tmp_path: Path, tag: str, told: str) -> None:
    data = [TaggedSentence(["In", "Rome"], [tag, tag]), TaggedSentence(["Anna"], [tag])]
    with pytest.raises(PolysemeError, match=rf"all 3 words have the tag {told}.*column"):
        fit(TaskBuilder(Tagging, SMALL), Splits(data, data), tmp_path, QUICK, Run())


# ---- sentences in their documents

ALONE = SMALL.replace(features=FeaturesConfig(words=TaskWordConfig(dim=12), layers="all", dropout=0.0))
PLAIN = TaggingConfig()
IN_DOCUMENTS = ALONE.replace(document_context=True)
SPORT, TRAVEL = ["Football", "tonight", ":"], ["Weather", "today", ":"]


def documents(tmp_path: Path, *, marks: bool = True) -> Path:
    """Towns play in some documents, and are places in others; only the headline tells."""
    lines = []
    for number, (headline, kind) in enumerate([(SPORT, "ORG"), (TRAVEL, "LOC")] * 4):
        lines += ["-DOCSTART- O", ""] if marks else []
        lines += [*(f"{word} O" for word in headline), ""]
        towns = PLACES[number // 2], PLACES[number // 4]  # each of them plays as often as it does not
        lines += [f"{towns[0]} B-{kind}", "good O", "", f"{towns[1]} B-{kind}", "bad O", ""]
    file = tmp_path / "documents.conll"
    file.write_text("\n".join(lines))
    return file


@pytest.mark.parametrize("cached", [False, True])
def test_frozen_encoders_read_sentences_in_their_document(tmp_path: Path, cached: bool) -> None:
    file, encoder = documents(tmp_path), elmo()
    examples = Tagging.read(file, IN_DOCUMENTS)
    assert examples == Tagging.read(file, SMALL)
    task = Tagging.build(IN_DOCUMENTS, examples, [encoder])
    data = task.data(examples)
    if cached:
        data.cache(task.features, tmp_path, precision="fp32")
    read = [[sentence.words for sentence in examples[begin : begin + 3]] for begin in range(0, len(examples), 3)]
    expected = [array for document in encoder.embed_documents(read) for array in document]
    inputs = task.prepare(data.gather(range(len(data)))).inputs[0].frozen[0]
    for row, array in enumerate(expected):
        torch.testing.assert_close(inputs[:, row, : array.shape[1]], torch.from_numpy(array), atol=1e-6, rtol=0)
    assert not torch.allclose(inputs[:, 1, :2], torch.from_numpy(encoder.embed([examples[1].words])[0]), atol=1e-3)


@pytest.mark.slow
def test_what_stands_before_a_sentence_is_learned_from(tmp_path: Path) -> None:
    """Alone, no tagger can tell the town from the club."""
    file = documents(tmp_path)
    slow = QUICK.replace(epochs=40, patience=40, optim=QUICK.optim.replace(learning_rate=0.01))
    encoder, scores = elmo(), {}
    with torch.no_grad():
        for weight in encoder.lstm.parameters():  # random ones are small, and remember little
            weight.mul_(12)
    for config in (ALONE, IN_DOCUMENTS):
        data, out = Tagging.read(file, config), tmp_path / str(config.document_context)
        outcome = fit(TaskBuilder(Tagging, config, [encoder]), Splits(data, data), out, slow, Run(seed=1))
        scores[config.document_context] = outcome.scores["dev"]["f1"]
    assert scores[False] < 0.7 and scores[True] == 1.0
    kept = load(tmp_path / "True")
    assert isinstance(kept, Tagging)
    towns = [["Lima", "good"], ["Rome", "bad"]]  # as in the last two documents
    told = kept.predict([SPORT, *towns, [], TRAVEL, *towns])
    assert [tagged.tags[:1] for tagged in told] == [["O"], ["B-ORG"], ["B-ORG"], [], ["O"], ["B-LOC"], ["B-LOC"]]


def test_a_document_is_read_once_for_all_its_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyseme.tasks.data.DOCUMENT_WORDS", 20)
    examples, encoder, read = Tagging.read(documents(tmp_path), IN_DOCUMENTS), elmo(), []
    task = Tagging.build(IN_DOCUMENTS, examples, [encoder])
    cached = task.data(examples)
    cached.cache(task.features, tmp_path, precision="fp32")
    embed = type(encoder).embed
    monkeypatch.setattr(type(encoder), "embed", lambda self, texts, **more: read.extend(texts) or embed(self, texts, **more))
    assert task.predict_data(cached) == task.predict_data(task.data(examples))
    assert len(read) == len(set(map(tuple, read))) == 8


def test_a_long_sentence_among_short_ones_and_many_blanks_fit_into_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle for equal answers is the sentence's own document, asked alone."""
    task = Tagging.build(IN_DOCUMENTS, sentences(), [elmo()])
    monkeypatch.setattr("polyseme.tasks.data.DOCUMENT_WORDS", 500)
    prepare, sizes = task.features.prepare, []
    monkeypatch.setattr(task.features, "prepare", lambda *given: sizes.append(_size(found := prepare(*given))) or found)
    document = [["Rome"] * 400, *([["Anna", "saw"]] * 60), []]
    found = task.predict([*document * 2, *[[]] * 500])
    assert max(sizes) <= 4096 and len(found) == 2 * 62 + 500
    assert found[62:123] == task.predict(document)[:61] and found[-1] == TaggedText([], [])


def _size(inputs: TextInputs) -> int:
    return inputs.index.numel()


def test_examples_that_come_from_no_file_are_read_in_their_documents_too() -> None:
    examples, encoder = [TaggedSentence(["Rome"], ["B-LOC"], document=n // 2) for n in range(4)], elmo()
    task = Tagging.build(IN_DOCUMENTS, [*sentences(), *examples], [encoder])
    data = task.data(examples)
    expected = encoder.embed_documents([[["Rome"], ["Rome"]]])[0][1]
    inputs = task.prepare(data.gather([3])).inputs[0].frozen[0]
    torch.testing.assert_close(inputs[:, 0], torch.from_numpy(expected), atol=1e-6, rtol=0)


def test_what_is_settled_has_the_same_answers_whatever_follows() -> None:
    task = Tagging.build(IN_DOCUMENTS, sentences(), [elmo()])
    asked = [["Anna"] * 300 for _ in range(8)]  # three of them are read together
    assert [task.num_final(asked[:count]) for count in range(9)] == [0, 0, 0, 0, 3, 3, 3, 6, 6]
    assert task.num_final([["Anna"], [], ["Rome"], ["saw"]]) == 2
    assert Tagging.build(ALONE, sentences(), [elmo()]).num_final(asked) == 8


def test_data_that_is_held_out_reads_nothing_of_what_is_learned(tmp_path: Path) -> None:
    examples = Tagging.read(documents(tmp_path), IN_DOCUMENTS)
    sides = [Tagging.with_context(some, IN_DOCUMENTS) for some in (examples[:-2], examples[-2:])]  # amid the last document
    read = [[sentence for example in side for sentence in document_of(example.words)] for side in sides]
    assert set(read[1]) == {tuple(example.words) for example in examples[-2:]}
    assert {len(document_of(example.words)) for example in sides[0]} == {1, 3}


def test_other_documents_are_other_data(tmp_path: Path) -> None:
    one, each = (tmp_path / name for name in ("one.conll", "each.conll"))
    one.write_text("-DOCSTART- O\n\nRome B-LOC\n\nslept O\n")
    each.write_text("-DOCSTART- O\n\nRome B-LOC\n\n-DOCSTART- O\n\nslept O\n")
    first, second = (Tagging.read(file, IN_DOCUMENTS) for file in (one, each))
    assert first == second
    fit(TaskBuilder(Tagging, IN_DOCUMENTS, [elmo()]), Splits(first, first), tmp_path / "run", QUICK.replace(epochs=1), Run())
    with pytest.raises(PolysemeError, match="the training data changed; the dev data changed"):
        fit(
            TaskBuilder(Tagging, IN_DOCUMENTS, [elmo()]),
            Splits(second, second),
            tmp_path / "run",
            QUICK.replace(epochs=1),
            Run(),
        )


def test_a_file_without_documents_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Tagging.read(documents(tmp_path, marks=False), IN_DOCUMENTS)
    assert "documents.conll does not mark documents" in caplog.text
    caplog.clear()
    one = tmp_path / "one.conll"
    one.write_text("-DOCSTART- O\n\nRome B-LOC\n\nslept O\n")
    Tagging.read(one, IN_DOCUMENTS)
    assert not caplog.text


def test_refusals() -> None:
    for features in (FeaturesConfig(mode="finetune"), FeaturesConfig(word_features=True)):
        with pytest.raises(ConfigError, match="document_context=True needs mode='frozen'"):
            TaggingConfig(document_context=True, features=features)
    with pytest.raises(ConfigError, match="hidden"):
        TaggingConfig(hidden_size=0)
    with pytest.raises(ConfigError, match="between"):
        TaggingConfig(layers=1, features=FeaturesConfig(positions=("between",)))


def test_swapped_columns_are_suspected(tmp_path: Path) -> None:
    (tmp_path / "good.conll").write_text("".join(f"word{number} {'NV'[number % 2]}\n" for number in range(30)))
    (tmp_path / "swapped.conll").write_text("".join(f"{'NV'[number % 2]} word{number}\n" for number in range(30)))
    problems = [Tagging.data_problems(Tagging.read(tmp_path / f"{name}.conll", PLAIN), PLAIN) for name in ("good", "swapped")]
    assert problems[0] == [] and len(problems[1]) == 1
    assert "30 different tags and 2 different words: are the columns swapped?" in problems[1][0]


def test_a_training_file_without_empty_lines_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.conll"
    file.write_text("Ann B-PER\nran O\n. O\n" * 100)
    with pytest.raises(FormatError, match="300 words and no empty line; expected a word and a tag per line"):
        Tagging.read(file, SMALL, training=True)
    assert len(Tagging.read(file, SMALL)[0].words) == 300
