"""Static word vectors: which vector a word gets, whatever its batch, and a folder that gives them back."""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import polyseme
from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, PolysemeError, UsageError
from polyseme.encoders.config import WordVectorConfig
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.word_vectors import WordVectors
from polyseme.text.words import get_splitter
from tests.encoders.small import elmo

WORDS = ["the", "bank", "river", "naïve", "漢字"]
NUMBERS = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)


def table(words: list[str] | None = None, numbers: np.ndarray = NUMBERS, **settings: str) -> WordVectorTable:
    words = WORDS if words is None else words
    numbers = numbers.copy() if numbers is NUMBERS else numbers  # training would write into them
    return WordVectorTable.from_vectors(WordVectors(words, numbers, len(words)), **settings)  # type: ignore[arg-type]


def of(word: str) -> list[float]:
    return NUMBERS[WORDS.index(word)].tolist()


def test_lookup() -> None:
    model = table()
    vectors, known = model.lookup(["river", "tree", "漢字", "river"])
    assert vectors.dtype == np.float32 and known.tolist() == [True, False, True, True]
    assert vectors[[0, 2, 3]].tolist() == [of("river"), of("漢字"), of("river")]
    assert model.known(["river", "tree"]).tolist() == [True, False]
    empty = model.lookup([])
    assert empty.vectors.shape == (0, 4) and empty.known.shape == (0,)
    assert (model.layers, model.dim, model.kind) == (1, 4, "word2vec")
    for call in (model.lookup, model.known):
        with pytest.raises(UsageError, match="got one string: put it into a list"):
            call("bank")


def test_the_vectors_are_taken_over_without_a_copy() -> None:
    numbers = NUMBERS.copy()
    model = table(numbers=numbers)
    assert model.table.weight.data_ptr() == numbers.ctypes.data


# ---- unknown words


@pytest.mark.parametrize("mark", ["<unk>", "UNK", "<UNK>"])
def test_the_tables_own_unknown_vector(mark: str) -> None:
    model = table(["the", "bank", mark, "naïve", "漢字"])
    assert model.lookup(["tree", "oak", mark]).vectors.tolist() == [of("river")] * 3
    assert model.known(["tree", mark]).tolist() == [False, True]
    assert model.info()["unknown_words"] == f"vector of {mark}"
    assert model.known(["The"]).tolist() == [True]  # a mark is no word with capitals


def test_without_one_it_is_the_mean() -> None:
    found = table().lookup(["tree", "oak"]).vectors
    np.testing.assert_allclose(found, np.tile(NUMBERS.astype(np.float64).mean(0), (2, 1)), rtol=1e-6)
    assert table().info()["unknown_words"] == "mean of all"


def test_zeros() -> None:
    model = table(["<unk>", *WORDS[1:]], unknown="zero")
    assert model.lookup(["tree", "bank"]).vectors.tolist() == [[0.0] * 4, of("bank")]


def expected_random(word: str) -> list[float]:
    """Numbers by the word's hash, computed one by one."""
    data, dim = hashlib.shake_256(word.encode()).digest(32), 4
    uniform = [(int.from_bytes(data[4 * i : 4 * i + 4], "little") + 0.5) / 2**32 for i in range(2 * dim)]
    normal = [math.sqrt(-2 * math.log(uniform[i])) * math.cos(2 * math.pi * uniform[dim + i]) for i in range(dim)]
    columns = NUMBERS.astype(np.float64).T.tolist()
    means = [sum(column) / 5 for column in columns]
    deviations = [math.sqrt(sum((x - mean) ** 2 for x in column) / 5) for column, mean in zip(columns, means, strict=True)]
    return [mean + deviation * z for mean, deviation, z in zip(means, deviations, normal, strict=True)]


def test_random_vectors_belong_to_their_words() -> None:
    model = table(unknown="random")
    found = model.lookup(["oak", "bank", "tree", "oak", "Oak"]).vectors
    np.testing.assert_allclose(found[[0, 2]], [expected_random("oak"), expected_random("tree")], atol=1e-6)
    assert found[1].tolist() == of("bank")
    assert found[3].tolist() == found[4].tolist() == found[0].tolist()  # a table in lower case knows no capitals
    kept = table(unknown="random", lowercase="never").lookup(["oak", "Oak", "lone \udc80"]).vectors
    assert kept[0].tolist() == found[0].tolist() != kept[1].tolist()
    many = model.lookup([f"w{number}" for number in range(3000)]).vectors
    np.testing.assert_allclose(many.mean(0), NUMBERS.mean(0), atol=0.1)
    np.testing.assert_allclose(many.std(0), NUMBERS.std(0), atol=0.1)


@pytest.mark.slow  # two processes that import torch; the test above computes the same numbers independently
def test_random_vectors_are_the_same_in_every_process() -> None:
    code = (
        "from tests.encoders.test_word2vec import table; import json;"
        "print(json.dumps(table(unknown='random').lookup(['oak', '木']).vectors.tolist()))"
    )
    call = [sys.executable, "-c", code]
    root = Path(__file__).parents[2]
    told = [json.loads(subprocess.run(call, capture_output=True, check=True, cwd=root).stdout) for _ in range(2)]
    assert told[0] == told[1] == table(unknown="random").lookup(["oak", "木"]).vectors.tolist()


# ---- capitals


def test_lower_case() -> None:
    assert table().known(["The", "BANK", "Naïve", "Tree"]).tolist() == [True, True, True, False]
    assert table().lookup(["BANK"]).vectors.tolist() == [of("bank")]
    assert table(lowercase="never").known(["The", "the"]).tolist() == [False, True]
    cased = ["the", "Bank", "river", "naïve", "漢字"]
    assert table(cased).known(["The", "Bank", "bank"]).tolist() == [False, True, False]
    assert table(cased, lowercase="fallback").known(["The", "Bank", "bank", "BANK"]).tolist() == [True, True, False, False]
    both = table(["bank", "Bank", "a", "b", "c"], lowercase="fallback")
    assert both.lookup(["bank", "Bank", "BANK"]).vectors.tolist() == NUMBERS[[0, 1, 0]].tolist()


# ---- as an encoder


def test_layers_of_a_batch() -> None:
    model = table(unknown="zero")
    layers = model(model.prepare([["the", "tree", "bank"], "river", []]))
    assert layers.states.shape == (1, 3, 3, 4)
    assert layers.mask.tolist() == [[True] * 3, [True, False, False], [False] * 3]
    nothing = [0.0] * 4
    assert layers.states[0].tolist() == [[of("the"), nothing, of("bank")], [of("river"), nothing, nothing], [nothing] * 3]
    assert model(model.prepare([[], []])).states.shape == (1, 2, 0, 4)
    with pytest.raises(UsageError, match="at least one sentence"):
        model.prepare([])


@pytest.mark.parametrize("unknown", ["vector", "random", "zero"])
def test_embed_is_lookup_in_any_batch(unknown: str) -> None:
    model = table(unknown=unknown)
    texts = [["the", "oak", "bank"], [], ["elm"], ["oak", "River", "oak"], ["漢字"] * 9]
    for settings in ({}, {"batch_words": 1}, {"batch_size": 1}, {"layers": "mean"}, {"layers": 0}):
        for words, found in zip(texts, model.embed(texts, **settings), strict=True):  # type: ignore[arg-type]
            assert found.shape == ((len(words), 4) if "layers" in settings else (1, len(words), 4))
            np.testing.assert_array_equal(found.reshape(-1, 4), model.lookup(words).vectors)
    backwards = model.embed(texts[::-1])[::-1]
    for one, other in zip(model.embed(texts), backwards, strict=True):
        np.testing.assert_array_equal(one, other)


def test_text_is_split_as_the_splitter_says() -> None:
    model = table()
    assert model.words("the bank's river") == ["the", "bank's", "river"]
    model.splitter = get_splitter("english")
    assert model.embed(["the bank's river"])[0].shape == (1, 4, 4)
    with pytest.raises(UsageError, match="start does not apply to embed for models of kind word2vec"):
        model.embed(["a"], start="warm")
    with pytest.raises(UsageError, match="from 0 to 0"):
        model.embed(["a"], layers=1)


def test_gradients_where_it_is_not_frozen() -> None:
    model = table(unknown="random")
    assert not any(parameter.requires_grad for parameter in model.parameters())
    batch = model.prepare([["bank", "oak", "bank"], ["the"]])
    assert not model(batch).states.requires_grad
    model.unfreeze("table")
    weights = torch.arange(24.0).reshape(1, 2, 3, 4)
    (model(batch).states * weights).sum().backward()
    expected = torch.zeros(5, 4)
    expected[1] = weights[0, 0, 0] + weights[0, 0, 2]
    expected[0] = weights[0, 1, 0]
    assert torch.equal(model.table.weight.grad, expected)
    model.freeze()
    assert not model.table.weight.requires_grad


def test_the_unknown_row_learns_and_the_mean_stays() -> None:
    marked, plain = table(["<unk>", *WORDS[1:]]), table()
    for model, moved in ((marked, True), (plain, False)):
        model.unfreeze()
        before = model.lookup(["oak"]).vectors
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(model.prepare([["oak", "bank"]])).states.sum().backward()
        optimizer.step()
        assert np.allclose(model.lookup(["oak"]).vectors, before - 0.1 * moved)
        np.testing.assert_allclose(model.lookup(["bank"]).vectors[0], NUMBERS[1] - 0.1, atol=1e-6)


def test_most_similar() -> None:
    numbers = np.array([[1, 0], [2, 0.1], [0, 1], [-1, 0], [0, 0]], dtype=np.float32)
    model = table(["a", "b", "c", "d", "e"], numbers)
    found = model.most_similar("A", 3)
    assert [each.word for each in found] == ["b", "c", "e"] or [each.word for each in found] == ["b", "e", "c"]
    assert found[0].cosine == pytest.approx(2 / math.hypot(2, 0.1)) and found[1].cosine == found[2].cosine == 0
    everything = model.most_similar("a", 99)
    assert len(everything) == 4 and everything[-1] == ("d", -1.0)
    with pytest.raises(UsageError, match="'oak' is not among the 5 words of the table"):
        model.most_similar("oak")
    with pytest.raises(UsageError, match="count is 0"):
        model.most_similar("a", 0)


# ---- folders


@pytest.mark.parametrize("unknown", ["vector", "random", "zero"])
def test_round_trip(tmp_path: Path, unknown: str) -> None:
    model = table(unknown=unknown, lowercase="fallback")
    with torch.no_grad():  # as training would; random vectors and the mean stay what they were
        model.table.weight[1] += 1
    model.splitter = get_splitter("english")
    model.save_pretrained(tmp_path / "m")
    assert sorted(file.name for file in (tmp_path / "m").iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
        "vocabulary.txt",
    ]
    for again in (WordVectorTable.from_pretrained(tmp_path / "m"), polyseme.load(tmp_path / "m")):
        assert isinstance(again, WordVectorTable) and again.config == model.config and again.splitter.name == "english"
        assert not again.training and not any(parameter.requires_grad for parameter in again.parameters())
        np.testing.assert_array_equal(again.embed(["The bank oak"])[0], model.embed(["The bank oak"])[0])


def test_fp16_and_cards(tmp_path: Path) -> None:
    model = table(unknown="random")
    model.save_pretrained(tmp_path / "m", precision="fp16")
    kept = load_file(tmp_path / "m" / "model.safetensors")
    assert kept["table.weight"].dtype == torch.float16 and kept["mean"].dtype == torch.float32
    again = WordVectorTable.from_pretrained(tmp_path / "m")
    np.testing.assert_allclose(again.lookup(WORDS).vectors, NUMBERS, atol=2e-3)
    np.testing.assert_array_equal(again.lookup(["oak"]).vectors, model.lookup(["oak"]).vectors)
    assert "| encoder | word2vec |" in (tmp_path / "m" / "README.md").read_text()


def test_one_kind_in_the_place_of_another(tmp_path: Path) -> None:
    elmo(form="both", output=True).save_pretrained(tmp_path / "m")
    table().save_pretrained(tmp_path / "m")
    assert not (tmp_path / "m" / "output.safetensors").exists()
    assert isinstance(polyseme.load(tmp_path / "m"), WordVectorTable)
    with pytest.raises(PolysemeError, match=r"m holds a model of kind word2vec, not Elmo: polyseme.load reads every kind"):
        Elmo.from_pretrained(tmp_path / "m")


def test_bad_folders(tmp_path: Path) -> None:
    folder = table().save_pretrained(tmp_path / "m")
    good = (folder / "config.json").read_text()

    def said(kind: type[Exception], text: str) -> None:
        with pytest.raises(kind, match=text):
            WordVectorTable.from_pretrained(folder)

    (folder / "config.json").write_text(good.replace('"vector"', '"vektor"'))
    said(ConfigError, r"config.unknown is 'vektor'; allowed: vector, random, zero")
    (folder / "config.json").write_text(good.replace('"word2vec"', '"word2vek"'))
    said(FormatError, r"names the encoder 'word2vek'; known: elmo, .*word2vec")
    (folder / "config.json").write_text(good.replace('"dim": 4', '"dim": 3'))
    said(FormatError, r"model.safetensors: .*table.weight has shape \(5, 4\), expected \(5, 3\)")
    (folder / "config.json").write_text(good)
    (folder / "vocabulary.txt").write_text("a\nb\n")
    said(FormatError, r"vocabulary.txt: has 2 words; the table has 5 rows")
    (folder / "vocabulary.txt").unlink()
    said(FormatError, "lacks vocabulary.txt, the words of its table")


def test_bad_configs() -> None:
    with pytest.raises(ConfigError, match="dim is 0; allowed: 1 or more"):
        WordVectorConfig(size=3, dim=0)
    with pytest.raises(ConfigError, match="size is 3, but there are 2 words"):
        WordVectorTable(WordVectorConfig(size=3, dim=2), vocabulary=Vocabulary(["a", "b"]))
