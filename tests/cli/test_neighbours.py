"""`polyseme neighbours`."""

import pytest
from rich.cells import cell_len

import polyseme
from polyseme.analysis.concordance import concordance
from polyseme.analysis.index import Index
from polyseme.analysis.neighbours import nearest_words
from polyseme.scale.folder import MANIFEST
from polyseme.text.corpus import Corpus
from tests.cli.running import one_sentence, tiny

SENTENCE = "The bank of the river."


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("A bank of the river. Money to the bank.\nThe river, the bank of the river.\n")
    return path


@pytest.mark.parametrize(
    ("options", "settings", "layer"),
    [
        ([], {"window": 10}, "top"),
        (["--same-word"], {"same_word": True, "window": 10}, "top"),
        (["--other-words", "--layer", "mean"], {"same_word": False}, "mean"),
        (["--layer", "1", "--window", "0"], {}, 1),
    ],
)
def test_answers_are_those_of_the_function(run, model, text, options, settings, layer):
    answer = run("neighbours", SENTENCE, "-w", "bank", "-n", 3, "-m", model, "-c", text, "--json", *options).json[0]
    loaded = polyseme.load(model)
    expected = nearest_words(loaded, Index.build(loaded, Corpus(text), layer=layer), SENTENCE, 1, 3, **settings)
    assert (answer["words"], answer["position"]) == (["The", "bank", "of", "the", "river", "."], 1)
    assert [(each["word"], each["words"], each["position"], each["cosine"]) for each in answer["in_context"]] == [
        (each.word, each.sentence, each.position, pytest.approx(each.cosine)) for each in expected.in_context
    ]
    assert [(each["word"], each["cosine"], each["count"]) for each in answer["by_itself"]] == [
        (each.word, pytest.approx(each.cosine), each.count) for each in expected.static
    ]
    assert answer["layers"] == {"top": [2], "mean": [1, 2], 1: [1]}[layer] and len(answer["by_itself"]) == 3


def test_for_people(run, model, text, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    shown = run("neighbours", SENTENCE, "--position", 1, "-m", model, "-c", text, "--same-word").out.splitlines()
    assert shown[:3] == ["The [bank] of the river .", "", "in context (layer 2, window 10, substitutes; 20 words in 3…"]
    table, rest = shown[3:6], shown[6:]
    assert len({line.index("[bank]") for line in table}) == 1
    assert any(line.endswith(" Money to the [bank] .") for line in table)
    assert rest[:2] == ["", "by its static vector (layer 0)"] and len(rest) == 7
    assert all(line.endswith(("1 time in the text", "times in the text")) for line in rest[2:])
    assert all(cell_len(line) <= 60 for line in shown)


def test_nothing_found(run, model, text):
    shown = run("neighbours", "A tank", "-w", "tank", "-m", model, "-c", text, "--same-word").out
    assert "none: the text has no other occurrences of this word" in shown


def test_several_sources_and_sentences_by_line(run, model, text, tmp_path):
    more = tmp_path / "more.txt"
    more.write_text("To the river. A river.\n")
    call = ("neighbours", SENTENCE, "-w", "bank", "-m", model, "-c", text)
    assert "in 5 sentences" in run(*call, "-c", more).out
    assert "in 2 sentences" in run(*call, "--sentences", "lines").out


def test_an_index_is_kept_and_found(run, model, text, tmp_path):
    call = ("neighbours", SENTENCE, "-w", "bank", "-m", model, "-c", text, "--json")
    kept = tmp_path / "kept"
    first, second = run(*call, "--index", kept), run(*call, "--index", kept)
    assert first.err == second.err == ""
    assert first.json == second.json == run(*call).json and len(list(kept.iterdir())) == 1
    text.write_text("A bank.\n")
    assert f"index: {kept}" in run(*call[:-1], "--index", kept).out and len(list(kept.iterdir())) == 2


def test_our_own_sentences(run, model):
    answer = run("neighbours", SENTENCE, "-w", "bank", "-n", 8, "-m", model, "--same-word", "--json").json[0]
    assert len(answer["in_context"]) == 8 and {each["word"].lower() for each in answer["in_context"]} == {"bank"}
    result = run("neighbours", SENTENCE, "-w", "bank", "-m", model, "--splitter", "whitespace")
    assert "or give text with --corpus" in one_sentence(result, 2)


def test_called_wrongly(run, model, text):
    call = ("neighbours", SENTENCE, "-m", model, "-c", text)
    assert "0: The, 1: bank" in one_sentence(run(*call), 2)
    assert "is not in the sentence" in one_sentence(run(*call, "-w", "money"), 2)
    assert "'ban' is not a word of its own: the model splits the sentence into 0: The, 1: bank" in one_sentence(
        run(*call, "-w", "ban"), 2
    )
    assert "position is 9; the sentence has 6 words" in one_sentence(run(*call, "-p", 9), 2)
    assert "give one of them" in one_sentence(run(*call, "-p", 1, "--same-word", "--other-words"), 2)
    assert "--layer is 'all'; allowed: top" in one_sentence(run(*call, "-p", 1, "--layer", "all"), 2)
    assert "a number from 0 to 2" in one_sentence(run(*call, "-p", 1, "--layer", "3"), 2)
    assert "no such file" in one_sentence(run("neighbours", SENTENCE, "-m", model, "-p", 1, "-c", "none.txt"))


@pytest.mark.parametrize(("word", "spaced"), [("打", "他 打 开灯"), ("开灯", "他打 开灯")])
def test_a_chinese_word_that_is_split_differently(word, spaced, run, tmp_path):
    call = ("-w", word, "-m", tiny(output=False).save_pretrained(tmp_path / "m"), "--splitter", "chinese")
    sentence = one_sentence(run("neighbours", "他打开灯", *call), 2)
    assert "0: 他, 1: 打开, 2: 灯; choose one with --position" in sentence
    assert sentence.endswith(f"or write spaces around the word: {spaced!r}\n")
    assert run("neighbours", spaced, *call).out.partition("\n")[0] == "他打开灯".replace(word, f"[{word}]")


@pytest.mark.parametrize("width", [0, 24, 40, 80, 200])
def test_columns_of_wide_letters(width):
    found = [
        (["他", "在", "银行", "门口"] * 20, 42),
        (["a", "very", "long", "bank", "of", "the", "river"] * 10, 31),
        (["银行"], 0),
        (["tab\tand\nline", "bank", "\x1b[2J"], 1),
    ]
    lines = concordance(found, width)
    assert len({cell_len(line[: line.index(" [") if " [" in line else 0]) for line in lines}) == 1
    assert all(cell_len(line) <= max(width, 24) and line.isprintable() for line in lines)
    assert all(f"[{words[place]}]" in line for line, (words, place) in zip(lines, found, strict=True))


def test_a_dataset_has_no_window(run, model, tmp_path):
    (tmp_path / MANIFEST).write_text("{}")
    refused = run("neighbours", SENTENCE, "-w", "bank", "-m", model, "--index", tmp_path, "--window", 5)
    assert refused.code != 0 and "--window is 5; allowed for a dataset: 0" in refused.err
