"""Scripts of texts, from samples."""

import pytest

from polyseme.text.script import ScriptProfile

CHINESE = "我们昨天在北京的大学里看见了他的老师，他很高兴。"
TRADITIONAL = "臺灣的夜市非常熱鬧，許多人喜歡在晚上吃小吃。"
JAPANESE = "日本語の文章は漢字とかなで書かれています。単語の間に空白はありません。"


@pytest.mark.parametrize("text", [CHINESE, TRADITIONAL, f"{CHINESE} Python 3.11 API", "床前明月光 疑是地上霜 舉頭望明月"])
def test_chinese_that_is_not_split(text):
    profile = ScriptProfile.of(text)
    assert profile.is_chinese and profile.needs_chinese_splitter and profile.warning() is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12:30 !!",
        "We saw 王老师 in Beijing.",
        JAPANESE,
        "한국어는 띄어쓰기를 합니다.",
        "def f(x):  # 返回\n    return x + some_value",
    ],
)
def test_other_text(text):
    assert not ScriptProfile.of(text).is_chinese


def test_chinese_that_is_split():
    words, characters = ScriptProfile.of("我们 昨天 在 北京 的 大学 里 看见 了 老师 。"), ScriptProfile.of(" ".join(CHINESE))
    assert words.is_chinese and words.is_split and not words.needs_chinese_splitter
    assert characters.is_split and characters.mean_run == 1


def test_what_is_poor_at_spaces_is_reported():
    assert "Japanese" in ScriptProfile.of(JAPANESE).warning()
    assert "Thai" in ScriptProfile.of("ภาษาไทยเป็นภาษาที่มีการเขียนโดยไม่เว้นวรรค").warning()
    assert "% of the letters are Chinese" in ScriptProfile.of("He said 我们昨天在北京 and left the house." * 20).warning()
    assert ScriptProfile.of("Он живёт в Москве, and she in 北京.").warning() is None


def test_only_the_needed_lines_are_read():
    lines = iter([CHINESE * 5000, CHINESE * 5000, "last"])
    assert ScriptProfile.of_lines(lines).is_chinese and list(lines) == ["last"]
