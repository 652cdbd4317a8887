"""Characters that are followed by their position in their word."""

import pytest

from polyseme.text.labelled.character_positions import without_positions
from polyseme.text.labelled.conll import read_conll

WORDS = [["科0", "技1", "全0", "方0", "位1", "2010", "01", "i2", "P3"], ["#0", "北0", "京1", "10", "月1"]]
PLAIN = [["科", "技", "全", "方", "位", "201", "0", "i", "P"], ["#", "北", "京", "1", "月"]]


def test_positions_are_removed():
    assert without_positions(WORDS * 10) == PLAIN * 10


def test_long_words_count_on():
    words = [f"{letter}{position}" for position, letter in enumerate("abcdefghijklm")]
    assert without_positions([[*words, "北0", "京1"]] * 20)[-1] == [*"abcdefghijklm", "北", "京"]


def test_a_rare_slip_is_removed_too():
    assert without_positions(WORDS * 30 + [["越2"]])[-1] == ["越"]


@pytest.mark.parametrize(
    "sentences",
    [
        [["北", "京", "2", "0", "1", "0", "年"]] * 30,
        [["公元", "2020", "年", "10", "月"]] * 30,
        [["A0", "B1", "C2"]] * 30,  # no Chinese
        [["甲0", "乙0", "丙0"]] * 30,  # a list of labels rather than words
        WORDS,  # too few
        [],
    ],
)
def test_other_words_stay(sentences):
    assert without_positions(sentences) is None


def test_a_file_of_them(tmp_path, caplog):
    path = tmp_path / "weibo.conll"
    path.write_text("\n\n".join("\n".join(f"{word}\tO" for word in words) for words in WORDS * 10), encoding="utf-8")
    sentences = read_conll(path)
    assert [sentence.words for sentence in sentences] == PLAIN * 10
    assert sentences[0].lines == list(range(1, 10)) and set(sentences[0].tags) == {"O"}
    assert "followed by its position in its word (科0 技1 全0)" in caplog.text
