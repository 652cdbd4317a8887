"""`train` on Chinese data: encoder, splitter and word features that nobody chose."""

import pytest

import polyseme
from polyseme.base.errors import UsageError
from polyseme.base.run import Run
from polyseme.formats.load import load
from polyseme.studies.script import DataScript
from polyseme.studies.train import DataFiles, TaskJob
from polyseme.tasks.registry import configure_task, task_class
from polyseme.text.labelled.conll import TaggedSentence
from polyseme.text.words import get_splitter
from tests.cli.labelled import TINY
from tests.oracle.make import write_bilm

FROZEN = configure_task("classification", {})[0]
CHINESE = "我们昨天在北京的大学里看见了他的老师，他很高兴。"


def of_rows(tmp_path, text, task="classification"):
    path = tmp_path / "data.tsv"
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for label in ("good", "bad") * 20))
    config, _ = configure_task(task, {})
    return DataScript.of(task_class(task), task_class(task).read(path, config))


def by_characters(tmp_path):
    path = tmp_path / "train.bio"
    rows = "".join(f"{character} {'B-LOC' if character == '北' else 'O'}\n" for character in CHINESE)
    path.write_text((rows + "\n") * 12)
    return path


def test_chinese_texts_get_the_chinese_model(tmp_path):
    told = []
    script = of_rows(tmp_path, CHINESE)
    assert script.default_encoder(FROZEN, told.append) == "zh" and "mostly Chinese" in told[0]
    assert (
        of_rows(tmp_path, "We saw 王老师 in Beijing yesterday .").default_encoder(FROZEN, told.append) == "en"
        and len(told) == 1
    )
    assert script.splitter(None, [], told.append)(CHINESE)[:4] == ["我们", "昨天", "在", "北京"]
    with pytest.raises(UsageError, match="mostly Chinese"):
        script.check_splitter(get_splitter("english"))
    with pytest.raises(UsageError, match="English model: give"):
        script.check_encoders([load("en")])
    script.check_encoders([load("zh")])


@pytest.mark.parametrize(
    ("text", "name", "splitter"),
    [
        ("Вчера мы видели его учителя в университете .", "Cyrillic", None),
        ("昨日、私たちは大学で彼の先生に会いました。", "Japanese", "characters"),
        ("เมื่อวานเราเห็นครูของเขาที่มหาวิทยาลัย", "Thai", "characters"),
        ("நேற்று அவரைப் பார்த்தோம்", "another script", None),
    ],
)
def test_scripts_that_no_model_has_read_get_no_encoder(tmp_path, text, name, splitter):
    told, script = [], of_rows(tmp_path, text)
    assert script.default_encoder(FROZEN, told.append) == "none" and f"mostly in {name}" in told[0]
    found = script.splitter(None, [], told.append)
    assert (found and found.name) == splitter
    for options in ({"mode": "finetune"}, {"network": "linear"}):  # an encoder that learns the script
        assert script.default_encoder(configure_task("classification", options)[0], pytest.fail) == "en"


def test_latin_letters_and_none_at_all_get_the_english_model(tmp_path):
    for text in ("Gestern sahen wir seinen Lehrer in der Universität .", "Hôm qua chúng tôi gặp thầy", "😀 😀 !", "ATGCCG"):
        assert of_rows(tmp_path, text).default_encoder(FROZEN, pytest.fail) == "en"


def test_texts_that_are_split_keep_any_splitter(tmp_path):
    script = of_rows(tmp_path, "我们 昨天 在 北京 的 大学 里 看见 了 他 的 老师 。")
    script.check_splitter(get_splitter("english"))
    assert script.splitter(None, [], print) is None and script.default_encoder(FROZEN, print) == "zh"


def test_texts_of_which_some_are_split_are_split_as_for_zh(tmp_path):
    path, told = tmp_path / "data.tsv", []
    path.write_text("text\tlabel\n" + f"{CHINESE}\tgood\n{' '.join(CHINESE)}\tbad\n" * 20)
    script = DataScript.of(task_class("classification"), task_class("classification").read(path, FROZEN))
    assert script.splitter(None, [], told.append)(CHINESE)[:4] == ["我们", "昨天", "在", "北京"]
    assert told == [
        "20 of 40 Chinese texts have no spaces between words, and the others have: "
        "better remove these spaces, or split all texts alike"
    ]
    assert script.splitter(None, [load("zh")], told.append) is None and len(told) == 2
    assert script.splitter(get_splitter("characters"), [], pytest.fail).name == "characters"


def test_english_for_chinese_is_refused_before_training(tmp_path):
    job = {"task": "ner", "files": DataFiles(by_characters(tmp_path)), "out": tmp_path / "run"}
    with pytest.raises(UsageError, match="en is an English model"):
        TaskJob(**job, encoders="en").train(Run.from_environment(device="cpu"))


def test_single_characters_set_splitter_and_word_features(tmp_path):
    told, config = [], configure_task("ner", {})[0]
    tagging = task_class("ner")
    script = DataScript.of(tagging, tagging.read(by_characters(tmp_path), config))
    zh = load("zh")
    assert script.splitter(None, [zh], told.append).name == "characters"
    assert script.options(config, {}, [zh], told.append) == {"word_features": True} and len(told) == 2
    assert script.options(config, {"word_features": False}, [zh], told.append) == {}
    write_bilm(tmp_path / "published")  # splits at spaces, so it has no words that contain characters
    assert script.options(config, {}, [load(tmp_path / "published")], told.append) == {}
    assert script.splitter(get_splitter("whitespace"), [zh], told.append).name == "whitespace"


def test_a_tagger_of_characters_predicts_characters(tmp_path):
    tagger = polyseme.train("ner", by_characters(tmp_path), out=tmp_path / "run", encoder="none", **TINY)
    assert len(tagger.predict(["他在北京。"])[0].words) == 5


@pytest.mark.parametrize(("name", "splitter"), [(list("QQ9"), "each-character"), (["QQ9"], "characters")])
def test_new_texts_of_a_tagger_have_latin_letters_split_as_in_its_data(tmp_path, caplog, name, splitter):
    words = ["他", "在", *name, "工", "作"]
    sentence = "".join(f"{word} {'O' if word in '他在工作' else 'I-ORG' if word in name[1:] else 'B-ORG'}\n" for word in words)
    (tmp_path / "train.bio").write_text((sentence + "\n") * 12)
    with caplog.at_level("INFO"):
        polyseme.train("ner", tmp_path / "train.bio", out=tmp_path / "run", encoder="none", **TINY)
    assert f"--splitter {splitter}" in caplog.text or f"splitter='{splitter}'" in caplog.text
    tagger = polyseme.load_task(tmp_path / "run")
    assert tagger.predict(["他 在QQ9工作"])[0].words == words
    assert f"{splitter}\n" in str(polyseme.info(tmp_path / "run"))


def test_new_texts_of_a_tagger_of_words_are_split_into_words(tmp_path):
    """Also where the encoder has no splitter for Chinese, as published ones."""
    path, words = tmp_path / "train.bio", ["他", "在", "北京", "工作", "。"]
    path.write_text(("".join(f"{word} {'B-LOC' if word == '北京' else 'O'}\n" for word in words) + "\n") * 12)
    published = load(write_bilm(tmp_path / "published"))
    tagging = task_class("ner")
    script = DataScript.of(tagging, tagging.read(path, configure_task("ner", {})[0]))
    for encoders in ([], [published]):
        splitter = script.splitter(None, encoders, print)
        assert splitter("他在北京工作。") == splitter("他 在 北京 工作 。") == words
    assert script.splitter(None, [load("zh")], print) is None
    tagger = polyseme.train("ner", path, out=tmp_path / "run", encoder="none", **TINY)
    assert tagger.predict(["他在北京工作。"])[0].words == words


def told_of_words(sentences, splitter="english"):
    examples, told = [TaggedSentence(words, ["O"] * len(words)) for words in sentences], []
    DataScript.of(task_class("ner"), examples).report_words(sentences, get_splitter(splitter), told.append)
    return told


def test_words_that_raw_text_would_not_have_are_reported():
    sentences = [["My", "PumpMaster", "shows", "F:9", "again"]] * 20 + [["Order", "#5531", "is", "late"]] * 10
    assert told_of_words(sentences) == [
        "30 of 140 words are split otherwise in raw text ('F:9' becomes F : 9, '#5531' becomes # 5531): predict text that is "
        "split like the data, with split_on_spaces=True, or train with splitter='whitespace'"
    ]
    assert told_of_words(sentences, "whitespace") == []
    assert told_of_words([*sentences[:4], ["It", "is", "late"]]) == []  # four words are no pattern
    assert told_of_words([*sentences[:8], *[["It", "is", "late"]] * 130]) == []  # 8 of 430 words
    assert told_of_words([["東京", "に", "行き", "ます"]] * 9)[0].startswith("36 of 36 words")


@pytest.mark.parametrize(
    ("words", "splitter"),
    [
        (["I", "do", "n't", "``", "know", "''", "-LRB-", "well-known", "“", "that", "”", "\u200fב"], "english"),
        (["저는", "어제", "서울에", "갔어요"], "english"),
        (["一", "个", "在", "北京", "的", "位", "于"], "english"),
        (list("他在QQ9工作"), "characters"),
    ],
)
def test_conventions_of_treebanks_and_chinese_words_are_not_reported(words, splitter):
    assert told_of_words([words] * 20, splitter) == []


def test_a_new_tagger_is_told_of_its_words_once(tmp_path, caplog):
    (tmp_path / "train.bio").write_text("It O\nshows O\nF:9 B-CODE\n\n" * 20)
    for _ in range(2):
        with caplog.at_level("INFO"):
            polyseme.train("ner", tmp_path / "train.bio", out=tmp_path / "run", encoder="none", **TINY)
        assert caplog.text.count("words are split otherwise in raw text ('F:9' becomes F : 9)") == 1


def test_a_shipped_model_for_a_script_that_it_has_not_read_is_reported(tmp_path):
    told, script = [], of_rows(tmp_path, "Вчера мы видели его учителя в университете .")
    script.report_encoders([load("en")], told.append)
    assert "mostly in Cyrillic, and the model en has read none: its vectors say little; give encoder='none'" in told[0]
    script.report_encoders([], told.append)
    of_rows(tmp_path, "We saw his teacher yesterday .").report_encoders([load("en")], told.append)
    assert len(told) == 1
    german = of_rows(tmp_path, "Gestern liefen wir durch den alten Wald und suchten den Bach .")
    german.report_encoders([load("en")], told.append)
    assert "of the words of the data are not in the vocabulary of en, as in a language other than English" in told[1]
