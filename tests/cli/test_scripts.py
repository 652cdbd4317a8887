"""Chinese text where nobody chose a splitter or a model, and where English was chosen."""

import json
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

import polyseme
from polyseme.api.corpora import check_corpus
from polyseme.api.embedding import embed, encode
from polyseme.base.errors import UsageError
from polyseme.encoders import static_vectors
from polyseme.encoders.script_check import adaptation_warning, task_warnings
from polyseme.text.corpus import Corpus
from polyseme.text.script import ScriptProfile
from tests.oracle.make import write_bilm

LINES, BANKS = 3, ["商业银行", "中国人民银行", "中央银行", "中国银行", "世界银行", "汇丰银行"]
"""Lines of the texts, and words beyond the most frequent ones."""
CHINESE = "我们昨天在北京的大学里看见了他的老师。他很高兴。\n" * LINES
SPLIT = "我们 昨天 在 北京 的 大学 里 看见 了 老师 。 他 很 高兴 。\n" * LINES


@pytest.fixture
def chinese(tmp_path):
    path = tmp_path / "zh.txt"
    path.write_text(CHINESE)
    return path


def test_pretraining_splits_chinese(chinese, tmp_path, caplog):
    model = polyseme.pretrain("ngram", chinese, out=tmp_path / "model", order=2)
    assert model.splitter("他在北京的大学里。") == ["他", "在", "北京", "的", "大学", "里", "。"]
    assert "mostly Chinese" in caplog.text
    assert model.perplexity([["他", "很", "高兴", "。"]]) != model.perplexity([["高兴", "。", "很", "他"]])


def test_adaptation_to_another_language_is_named():
    english, chinese = ScriptProfile.of("We sat on the bank of the river."), ScriptProfile.of(CHINESE)
    models = {name: SimpleNamespace(source=name, vocabulary=None) for name in ("en", "zh", "mine")}
    for name, profile in (("zh", english), ("en", chinese)):
        warning = adaptation_warning(models[name], profile, "")
        assert f"{name} is a" in warning and "adapt a model of that language, or train one" in warning
    for name, profile in (("en", english), ("zh", chinese), ("mine", english), ("mine", chinese)):
        assert adaptation_warning(models[name], profile, "") is None


def test_english_for_chinese_is_refused(chinese, tmp_path):
    for corpus, options in ((chinese, {"splitter": "english"}), (Corpus(chinese), {})):
        with pytest.raises(UsageError, match="splitter='english' cannot split: leave it out, or give splitter"):
            polyseme.pretrain("ngram", corpus, out=tmp_path / "model", **options)
    with pytest.raises(UsageError, match="mostly Chinese"):
        check_corpus(chinese, splitter="english")
    with pytest.raises(UsageError, match="en is an English model: give model='zh'"):
        polyseme.embed_file(chinese, tmp_path / "v.npz", model="en")


def test_words_that_are_split_stay(tmp_path, caplog):
    (tmp_path / "split.txt").write_text(SPLIT)
    report = check_corpus(tmp_path / "split.txt").report
    assert (report.words, report.sentences) == (15 * LINES, 2 * LINES) and "whitespace" in caplog.text
    assert check_corpus(tmp_path / "split.txt", splitter="english").report.words == 15 * LINES


def test_files_without_letters_and_of_other_scripts(tmp_path, caplog):
    (tmp_path / "empty.txt").write_text("")
    assert check_corpus(tmp_path / "empty.txt").report.words == 0 and not caplog.text
    (tmp_path / "th.txt").write_text("ภาษาไทยเป็นภาษาที่มีการเขียนโดยไม่เว้นวรรค\n" * 5)
    assert check_corpus(tmp_path / "th.txt").report.words and "mostly Thai" in caplog.text


def test_embedding_takes_the_chinese_model(chinese, tmp_path, caplog):
    lines = iter(CHINESE.splitlines())  # can be read only once
    made = polyseme.embed_file(lines, tmp_path / "v.npz", layers="top")
    assert (made.lines, made.words) == (LINES, LINES * 17) and "model='zh'" in caplog.text


def test_questions_in_chinese_are_answered_by_the_chinese_model(monkeypatch, caplog):
    words = static_vectors.vocabulary_words  # vectors of all words of zh take seconds
    monkeypatch.setattr(static_vectors, "vocabulary_words", lambda encoder: words(encoder)[:2000] + BANKS)
    assert next(iter(polyseme.score(["他很高兴。"]))).log_probs.words == ["他", "很", "高兴", "。"]
    assert polyseme.similar("银行", count=1)[0].word.endswith("银行") and caplog.text.count("model='zh'") == 2
    with pytest.raises(UsageError, match="en is an English model: give model='zh'"):
        polyseme.substitutes("他很高兴。", word="高兴", model="en")


def test_a_model_is_said_to_know_nothing_of_another_script(caplog):
    assert len(list(embed(["Вчера мы видели его учителя"]))) == 1
    assert "mostly in Cyrillic, and the model en has read none" in caplog.text


GERMAN = """Gestern liefen wir durch den alten Wald und suchten den Bach, an dem mein Vater als Kind geangelt hatte. Das Wasser
war kalt, aber die Sonne schien, und nach einer Stunde saßen wir am Ufer und packten unser Brot aus."""
TWEETS = """omg @anna_k this new phone is sooo laggy lol, cant even open insta anymore :( brb gonna try n fix it. thx 4 the tip
tho!! u guys r the best, cu 2nite at mikes place, dont 4get the chips n salsa haha"""


def test_a_model_is_said_to_know_nothing_of_another_language(caplog):
    embed([GERMAN])
    assert "of the words of the text are not in the vocabulary of en, as in a language other than English" in caplog.text
    assert "a model of your own text knows them" in caplog.text
    caplog.clear()
    embed([TWEETS, "Wir saßen am Ufer."])
    assert caplog.text == ""


def test_traditional_characters_and_english_are_named_to_the_chinese_model(tmp_path, caplog):
    traditional, simplified = ["臺灣的夜市非常熱鬧，許多人喜歡小吃。"], ["台湾的夜市非常热闹，许多人喜欢小吃。"]
    for ask in (embed, encode):
        caplog.clear()
        assert len(list(ask(traditional))) == 1
        assert "traditional characters (臺灣熱 ...), and no word that zh knows has them: convert it" in caplog.text
        caplog.clear()
        assert len(list(ask(simplified))) == 1 and "traditional" not in caplog.text
        assert len(list(ask(["We sat on the bank of the river."], model="zh"))) == 1
        assert "zh is a Chinese model: consider model='en'" in caplog.text
        caplog.clear()
        assert len(list(ask(["The river bank is here."], model="zh"))) == 1
        assert "zh is a Chinese model: consider model='en'" in caplog.text
    caplog.clear()
    polyseme.embed_file(iter(traditional), tmp_path / "v.npz", layers="top")
    assert "traditional characters" in caplog.text


def test_lines_in_traditional_characters_are_counted(tmp_path, caplog):
    """The sample at the beginning of the text shows none of them."""
    traditional, simplified = "臺灣的夜市非常熱鬧，許多人喜歡小吃。", "台湾的夜市非常热闹，许多人喜欢小吃。"
    path = tmp_path / "a.txt"
    said = "3 lines have traditional characters, of 143, and no word that zh knows has them: convert them to simplified"
    for ask in (lambda: list(embed(input=[str(path)], layers="top")), lambda: embed(input=[str(path)], out=tmp_path / "v.npz")):
        path.write_text("\n".join([simplified] * 140 + [traditional] * 3), encoding="utf-8")
        caplog.clear()
        ask()
        assert [message for message in caplog.messages if said in message] and caplog.text.count("traditional") == 1
        path.write_text("\n".join([simplified] * 150 + [traditional] * 3), encoding="utf-8")
        caplog.clear()
        (tmp_path / "v.npz").unlink(missing_ok=True)
        ask()
        assert "traditional" not in caplog.text
    caplog.clear()
    assert len(list(encode([*[simplified] * 140, *[traditional] * 3]))) == 143
    assert caplog.text.count(said) == 1


def test_an_old_model_that_splits_at_spaces_is_told_of_chinese(chinese, tmp_path, caplog):
    old = write_bilm(tmp_path / "old")
    (tmp_path / "split.txt").write_text(SPLIT)
    for options in ({"splitter": "chinese"}, {}):
        made = polyseme.embed_file(chinese, tmp_path / f"{len(options)}.npz", model=polyseme.load(old, **options))
        assert made.words == (17 if options else 1) * LINES
        assert ("takes words separated by spaces: load it with splitter='chinese'" in caplog.text) is not bool(options)
    caplog.clear()
    polyseme.embed_file(tmp_path / "split.txt", tmp_path / "split.npz", model=old)
    assert caplog.text == ""


def test_models_that_are_called_with_text_they_cannot_read_warn():
    model = polyseme.load()
    with pytest.warns(UserWarning, match="en is an English model: give model='zh'"):
        model.embed(["我吃了一个苹果。"], layers=0)
    with warnings.catch_warnings(action="error"):
        model.embed(["a sentence of words", ["苹果", "树"]], layers=0)  # words that are given stay


def test_text_that_is_split_already_is_named(tmp_path, caplog):
    (tmp_path / "split.txt").write_text(SPLIT, encoding="utf-8")
    for keeps in (False, True):
        caplog.clear()
        polyseme.embed_file(tmp_path / "split.txt", tmp_path / f"{keeps}.npz", model="zh", layers=0, split_on_spaces=keeps)
        assert ("to keep yours, give split_on_spaces=True" in caplog.text) != keeps


@pytest.mark.parametrize(("comma", "warns"), [(",", True), (" ,", False)])
def test_words_with_punctuation_at_their_end_are_named(tmp_path, caplog, comma, warns):
    model = polyseme.load(write_bilm(tmp_path))
    embed([f"we said{comma} and then, indeed, left"], model=model)
    assert ("words of the text end with punctuation ('said,')" in caplog.text) == warns


@pytest.mark.parametrize(
    ("source", "text", "what"),
    [
        ("en", "我吃了一个苹果。", "en is an English model: predictions mean little"),
        ("zh", "a long sentence of English words", "zh is a Chinese model: predictions mean little"),
        ("zh", "The river bank is here.", "zh is a Chinese model: predictions mean little"),
        ("zh", "hello world", "zh is a Chinese model: predictions mean little"),
        ("zh", "Banco de Chile", None),
        ("zh", "我用 iPhone 拍了 river bank 的照片", None),
        ("my-zh-en", "The river bank is here.", None),
        ("en", "Ann saw 苹果.", None),
    ],
)
def test_what_a_trained_task_cannot_read(source, text, what):
    encoder = SimpleNamespace(source=source, vocabulary=None)
    found = task_warnings(encoder, ScriptProfile.of(text), text)
    assert [each.partition("and ")[2].partition(";")[0] for each in found] == ([] if what is None else [what])


@pytest.mark.parametrize("given", [str, Path, lambda path: [path], lambda path: Corpus(path, splitter="characters")])
def test_the_perplexity_of_chinese_text_is_that_of_the_chinese_model(chinese, caplog, given):
    found = polyseme.perplexity(given(chinese))
    assert caplog.text.count("so this uses model='zh'") == 1
    assert found == polyseme.perplexity(given(chinese), model="zh") and found.unknown < 0.1
    with pytest.raises(UsageError, match="en is an English model: give model='zh'"):
        polyseme.perplexity(given(chinese), model="en")


def test_senses_in_chinese_text_are_found_by_the_chinese_model(chinese, tmp_path, caplog):
    for options in ({"corpus": chinese}, {"corpus": [["他", "很", "高兴"], ["她", "很", "高兴"]]}):
        caplog.clear()
        assert polyseme.senses(["高兴"], groups=1, **options).senses[0].name == "高兴#1"
        assert caplog.text.count("so this uses model='zh'") == 1
    assert polyseme.senses(["地道"]).senses and caplog.text.count("so this uses model='zh'") == 2
    with pytest.raises(UsageError, match="en is an English model: give model='zh'"):
        polyseme.senses(["高兴"], corpus=chinese, model="en")


def test_standard_input_in_chinese_is_read_once(run):
    result = run("perplexity", "-", "--json", stdin=CHINESE.encode())
    assert "so this uses --model zh" in result.err and json.loads(result.out)["sentences"] == 2 * LINES


def test_split_text_is_named_where_it_cannot_be_kept(tmp_path, caplog):
    (tmp_path / "split.txt").write_text(SPLIT, encoding="utf-8")
    polyseme.perplexity(tmp_path / "split.txt")
    assert "to keep yours, load it with splitter='whitespace'" in caplog.text
