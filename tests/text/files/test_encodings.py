"""Text that is not UTF-8, as lines of data and as a corpus."""

import gzip
import json
from pathlib import Path

import pytest

from polyseme.base.errors import FormatError
from polyseme.text.files.encodings import narrow_encoding, wide_encoding
from polyseme.text.files.lines import FileLines
from polyseme.text.files.sources import Source
from polyseme.text.labelled.squad import read_squad

CHINESE = ["这家酒店的服务很好，房间也很大。", "plain", "我不喜欢这个地方，因为人太多了", "价格还可以"]
FRENCH = ["Le café était très bon.", "plain", "“Déjà vu” – naïve", "À bientôt ! It’s 5 €"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("texts", "encoding", "title"),
    [
        (CHINESE, "gbk", "GB18030 (GBK)"),
        (CHINESE, "gb18030", "GB18030 (GBK)"),
        (CHINESE, "utf-16", "UTF-16"),
        (CHINESE, "utf-16-le", "UTF-16"),
        (CHINESE, "utf-16-be", "UTF-16"),
        (CHINESE, "utf-8-sig", None),
        (FRENCH, "cp1252", "cp1252 (Latin-1)"),
        (FRENCH[:2], "latin-1", "cp1252 (Latin-1)"),
        (FRENCH, "utf-16-le", "UTF-16"),
        (FRENCH, "utf-16-be", "UTF-16"),
        (FRENCH, "utf-32", "UTF-32"),
        (FRENCH, "utf-8", None),
    ],
)
def test_recognised_by_content(tmp_path: Path, caplog, texts, encoding, title, ends, pack) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(pack((ends.join(texts * 3) + ends).encode(encoding)))
    assert list(FileLines(path)) == texts * 3
    assert [message.split("read as ")[1] for message in caplog.messages] == ([title] if title else [])
    source = Source(path)
    found = "".join(chunk.text for chunk in source.chunks()).replace("\r", "").split("\n")
    assert [line for line in found if line] == texts * 3
    assert len(caplog.messages) == bool(title)  # once


@pytest.mark.parametrize("separator", [" ", "\t", "\u3000"])
def test_a_character_and_its_tag_on_each_line(tmp_path: Path, caplog, separator) -> None:
    path = tmp_path / "a.txt"
    lines = [f"{character}{separator}O" for text in CHINESE for character in text]
    path.write_bytes("\n".join(lines).encode("gbk"))
    assert list(FileLines(path)) == lines
    assert caplog.messages == [f"{path}: not UTF-8; read as GB18030 (GBK)"]


def test_json_lines_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes("\n".join(json.dumps({"text": text}, ensure_ascii=False) for text in CHINESE).encode("gbk"))
    assert "\n".join(chunk.text for chunk in Source(path).chunks()).split("\n") == CHINESE


def test_other_bytes_after_much_ascii(tmp_path: Path, caplog) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"all ascii here\n" * 30_000 + "\n".join(FRENCH * 2).encode("cp1252"))
    assert list(FileLines(path))[-4:] == FRENCH
    assert "".join(chunk.text for chunk in Source(path).chunks()).split("\n")[-4:] == FRENCH


def test_a_few_other_lines_in_utf8(tmp_path: Path, caplog) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\n".join(FRENCH).encode() + b"\nna\xefve\n" + CHINESE[0].encode())
    assert list(FileLines(path)) == [*FRENCH, "naïve", CHINESE[0]]
    assert caplog.messages == [f"{path}: 1 lines are not UTF-8, as the others are; read as cp1252 (Latin-1)"]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Съешь же ещё этих мягких французских булок", "cp1251"),
        ("Съешь же ещё этих мягких французских булок", "koi8-r"),
        ("Zażółć gęślą jaźń", "iso-8859-2"),
        ("吾輩は猫である。名前はまだ無い。", "shift_jis"),
        ("吾輩は猫である。名前はまだ無い。書生の中で一番わるい", "euc-jp"),  # valid Big5, too
        ("안녕하세요 여러분 반갑습니다", "euc-kr"),
        ("안\u3000O\n녕\u3000O\n하\u3000O\n세\u3000O\n요\u3000O", "euc-kr"),
        ("吾\u3000O\n輩\u3000O\nは\u3000O\n猫\u3000O\nで\u3000O\nあ\u3000O\nる\u3000O", "euc-jp"),
    ],
)
def test_what_is_not_known_is_refused(tmp_path: Path, text, encoding) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(f"{text}\n{text}\n".encode(encoding))
    assert narrow_encoding(path.read_bytes().split(b"\n")) is None and wide_encoding(path.read_bytes()) is None
    with pytest.raises(FormatError, match=r"a.txt:1: is not UTF-8.*iconv -f OLD.*CP1251 for Russian, SHIFT_JIS for Japanese"):
        list(FileLines(path))


def test_big5_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("text,label\n這家酒店房間很乾淨，服務也很好,pos\n我不喜歡這個地方，因為人太多了,neg\n".encode("big5"))
    advice = r"looks like Big5: iconv -f BIG5 -t UTF-8 FILE > NEW \(or save it as UTF-8 in an editor\)$"
    with pytest.raises(FormatError, match=rf"a.csv:2: is not UTF-8 \(byte 0xb3\); it {advice}"):
        list(FileLines(path))
    with pytest.raises(FormatError, match=rf"a.csv:2: .* the text has another encoding; it {advice}"):
        list(Source(path).chunks())


def test_squad_in_another_encoding(tmp_path: Path) -> None:
    entry = {"question": "怎么样？", "answers": [{"text": "很好", "answer_start": CHINESE[0].index("很好")}]}
    data = {"data": [{"paragraphs": [{"context": CHINESE[0], "qas": [entry]}]}]}
    for encoding in ("gbk", "utf-16", "utf-8-sig"):
        (tmp_path / "a").write_bytes(json.dumps(data, ensure_ascii=False).encode(encoding))
        assert read_squad(tmp_path / "a").questions[0].paragraphs == (CHINESE[0],)
