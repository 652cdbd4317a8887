"""Traditional characters are told from simplified ones, and from rare ones in names."""

from polyseme.text.traditional import traditional_characters


def test_traditional_text() -> None:
    found = traditional_characters("臺灣的夜市非常熱鬧，許多人喜歡在晚上吃小吃。")
    assert found == ["臺", "灣", "熱", "鬧", "許", "歡"]
    assert traditional_characters("台湾的夜市非常热闹，许多人喜欢在晚上吃小吃。") == []
    assert traditional_characters("漢字を読む") == ["漢"]  # callers ask for Chinese only
    assert traditional_characters("no Han") == []


def test_rare_and_known_characters_do_not_count() -> None:
    rare = "士兵昨天在山上的瞭望台里看见了远处的烟，马上报告了上级。"
    assert traditional_characters(rare) == []  # 1 of 26
    assert traditional_characters("瞭望") == ["瞭"] and traditional_characters("瞭望", known="瞭") == []
