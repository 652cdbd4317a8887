"""Settings that fit the text and the time, those of resumed runs, and counted models beside the perplexity."""

import dataclasses
import json
import math

import numpy as np
import pytest

from polyseme.base.errors import PolysemeError
from polyseme.base.imports import import_object
from polyseme.base.run import Run
from polyseme.pretraining.baselines import Baselines, baselines
from polyseme.pretraining.defaults import fitted_vocabulary
from polyseme.pretraining.methods import configure_method
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards

CPU = Run.from_environment(device="cpu")
OPTIONS = {"size": "tiny", "steps": 2, "batch_words": 64}


@pytest.fixture
def corpus(tmp_path):
    words = ["the", "bank", "of", "a", "river", "is", "wide", "and", "money", "lies"]
    lines = [" ".join(words[start:] + words[:start]) + " ." for start in range(10) for _ in range(12)]
    (tmp_path / "text.txt").write_text("\n".join(lines))
    return Corpus(tmp_path / "text.txt", splitter="whitespace", workers=0)


def test_vocabulary_and_output_fit_the_text_and_the_machine():
    elmo = configure_method("elmo", {"size": "tiny", "minutes": 10})
    found = elmo.resolve_defaults(955_095, CPU, fitted_vocabulary(955_095, 59_991, 21_704))
    assert found.vocabulary_size < 20_000 and found.output == "sampled" and found.negatives <= 2048
    small = elmo.resolve_defaults(20_000, CPU, fitted_vocabulary(20_000, 3000))
    assert (small.vocabulary_size, small.output) == (1003, "full")
    chosen = configure_method("elmo", {"vocabulary_size": 30_000, "output": "full"}).resolve_defaults(955_095, CPU, 19_000)
    assert (chosen.vocabulary_size, chosen.output) == (30_000, "full")


@pytest.mark.parametrize(
    ("words", "expected"),
    [(955_152, 2560), (70_000, 700), (2559, 255), (400, 40), (150, 20), (20, 20)],
)
def test_a_batch_is_a_part_of_an_epoch(words, expected):
    assert configure_method("elmo", {"epochs": 2}).resolve_defaults(words, CPU).batch_words == expected
    sentences = configure_method("elmo", {"epochs": 2, "bptt": 1}).resolve_defaults(words, CPU)
    assert sentences.batch_words == max(8, min(expected, words // 10))


def test_an_epoch_of_little_text_is_an_epoch(corpus, tmp_path):
    result = configure_method("elmo", {"size": "tiny", "epochs": 2}).fit(corpus, CPU, tmp_path / "m")
    words = 120 * 11 - 12 * 11  # a tenth is held out
    assert result.steps > 10 and 2 * words <= result.words < 2.1 * words and result.held_out_words == 12 * 11


@pytest.mark.parametrize(
    ("fixed", "per_word", "divisor"),
    [
        (0.06, 2e-5, 1),  # the step costs the same for a small batch: many words are lost for few more steps
        (0.01, 4e-3, 8),  # most of it is words: a smaller batch is many more steps
        (0.01, 1e-5, 1),  # there is time for all steps
    ],
)
def test_the_batch_keeps_its_words_per_second(corpus, tmp_path, monkeypatch, fixed, per_word, divisor):
    made = configure_method("elmo", {"size": "tiny", "minutes": 0.5})
    job = import_object(made.job)(made, corpus, CPU, tmp_path / "m")
    sizes = []

    def measured(objective, batches, *_, limit):
        sizes.append(next(iter(batches)).words)
        return fixed + per_word * sizes[-1]

    monkeypatch.setattr("polyseme.pretraining.job.time_steps", measured)
    monkeypatch.setattr(type(made), "smallest_batch", 1)
    monkeypatch.setattr(type(made), "resolved", lambda self, words, run, **changes: self.replace(batch_words=640, **changes))
    shards = job.encode_text()
    job.resolve(shards, *job.split(shards))
    assert job.method.batch_words == 640 // divisor


def test_older_runs_keep_their_held_out_text(corpus, tmp_path, monkeypatch):
    """They held out a hundredth, also of little text."""
    made = configure_method("elmo", OPTIONS)
    job = import_object(made.job)(made, corpus, CPU, tmp_path / "m")
    shards = job.encode_text()
    job.resolve(shards, *job.split(shards))
    assert job.method.dev_size == len(job.split(shards)[1]) == 12
    with monkeypatch.context() as patch:
        patch.setattr("polyseme.pretraining.job._FEWEST", 0)
        assert made.fit(corpus, CPU, tmp_path / "old").held_out_words == 11
    assert made.fit(corpus, CPU, tmp_path / "old").held_out_words == 11


def test_resuming_keeps_the_settings_of_the_run(corpus, tmp_path):
    out = tmp_path / "m"
    configure_method("elmo", OPTIONS | {"vocabulary_size": 9, "learning_rate": 1e-3}).fit(corpus, CPU, out)
    again = configure_method("elmo", OPTIONS).fit(corpus, CPU, out)  # as if the defaults had changed since
    assert again.steps == 2 and len((out / "vocabulary.txt").read_text().splitlines()) == 9
    with pytest.raises(PolysemeError, match="vocabulary_size: 9 in the run, 10 now"):
        configure_method("elmo", OPTIONS | {"vocabulary_size": 10}).fit(corpus, CPU, out)


def test_counted_models_beside_the_perplexity(corpus, tmp_path, caplog):
    result = configure_method("elmo", OPTIONS).fit(corpus, CPU, tmp_path / "m")
    counted = result.baselines
    assert "chosen for this text and machine: vocabulary_size=14" in caplog.text
    assert 1 < counted.trigram < counted.unigram < 14 and 1 < counted.trigram_backward < counted.unigram
    assert "usable" in result.lines()[-1] and json.loads(json.dumps(result.to_dict()))["baselines"]["3-gram"] == counted.trigram


def test_unigrams_are_the_frequencies_of_words(tmp_path):
    (tmp_path / "text.txt").write_text("a a b\n" * 50 + "a b\n" * 4)
    shards = Shards.build(Corpus(tmp_path / "text.txt", splitter="whitespace", workers=0), tmp_path / "shards")
    found = baselines(shards, range(50), range(50, 54), np.arange(5, dtype=np.int32))
    expected = math.exp(-(math.log(100 / 200) + 2 * math.log(50 / 200)) / 3)  # of 200 predictions, ends included
    assert found.unigram == pytest.approx(expected, rel=0.05)
    assert found.words == 8 and found.known == 1.0


def test_verdicts():
    counted = Baselines(500.0, 100.0)
    said = [counted.verdict({"perplexity": value}).partition(":")[0] for value in (80, 180, 300, 900)]
    assert said == ["usable", "usable for a first try", "hardly usable", "not usable"]
    repeated = dataclasses.replace(counted, repeats="9 of the 80 held-out sentences are in the training text too")
    assert repeated.verdict({"perplexity": 40}).startswith("no verdict: 9 of the 80 held-out sentences")
    near_unigrams = Baselines(101.0, 51.0).verdict({"perplexity": 100.2})
    assert near_unigrams.startswith("hardly usable: its perplexity is 2 times that of 3-grams (3-gram 51.0, unigram 101.0)")
    few = Baselines(500.0, 100.0, words=12).verdict({"perplexity": 80})
    assert few.startswith("perhaps usable: better") and "only 12 held-out words" in few
    third = dataclasses.replace(counted, known=0.64).verdict({"perplexity": 40})
    assert third.startswith("hardly usable: ") and "; 36 % of the held-out words are outside the vocabulary" in third
    some = dataclasses.replace(counted, known=0.8).verdict({"perplexity": 40})
    assert some.startswith("usable: ") and "; 20 % of the held-out words are outside" in some
    unknown = Baselines(500.0, 100.0, words=4000, known=0.2).verdict({"perplexity": 80})
    assert (
        unknown.startswith("perhaps not usable: only 20 % of the 4,000 held-out words")
        and "splitter that finds its words" in unknown
    )
