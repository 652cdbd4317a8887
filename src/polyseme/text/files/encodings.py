"""Text that is not UTF-8: UTF-16, GB18030 (which includes GBK and GB2312) and cp1252 (which includes Latin-1), by content.

UTF-8 is tried first, so that it costs nothing. UTF-16 has a byte-order mark or many zero bytes. GB18030 is recognised by
characters that every Chinese text has: bytes of other encodings, cp1251 for example, are often valid GB18030 too, but decode to
rare characters. What remains is cp1252 if most of its letters are ASCII, as in every Western European language. Anything else
is refused: a wrong guess would be read as nonsense. Big5 is refused too, but the message names it.
"""

from __future__ import annotations

import codecs
import functools
import logging
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal

from polyseme.text.files.decompression import ENCODING_ADVICE

_log = logging.getLogger(__name__)
Wide = Literal["utf-16", "utf-16-le", "utf-16-be", "utf-32"]
Narrow = Literal["gb18030", "cp1252"]
_TITLES = {"gb18030": "GB18030 (GBK)", "cp1252": "cp1252 (Latin-1)"}
_COMMON = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同"
    "现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很"
)
"""The most frequent characters of Chinese: at least four of ten in running text."""
_WIDE_BLANK = "\u3000"  # between each character and its tag it says nothing of the language
_MIN_COMMON = 0.1  # of the Chinese characters; random ones have 0.02
_MAX_HIGH = 0.3  # of the letters, in a Western European text
_MAX_SIGNS = 0.2  # of the characters beyond ASCII may be signs inside words
_SIGN_IN_WORD = re.compile(r"(?<=[a-zA-Z])[\x80-\xbf\ufffd](?=[a-zA-Z])")
_MIN_ZEROS = 0.2  # of the bytes, in UTF-16 of any Western text


def wide_encoding(head: bytes) -> Wide | None:
    """Return the encoding of text that begins with these bytes if its characters have two bytes or four; else None.

    >>> wide_encoding("text\\tlabel".encode("utf-16")), wide_encoding(b"text")
    ('utf-16', None)
    """
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    zeros = head.count(0)
    if not zeros or (zeros < _MIN_ZEROS * len(head) and is_utf8(head)):
        return None
    odd = head[1::2].count(0)
    return "utf-16-le" if odd >= 0.9 * zeros else "utf-16-be" if odd <= 0.1 * zeros else None


def is_utf8(head: bytes) -> bool:
    """Whether bytes, whose last character may be cut, are UTF-8."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def narrow_encoding(lines: Iterable[bytes], *, good: int = 0) -> Narrow | None:
    """Return the encoding of lines, some of which are not UTF-8; None: they are damaged UTF-8, or it is not known.

    `good`: as many lines before these are UTF-8 and not ASCII.
    """
    bad: list[bytes] = []
    for line in lines:
        try:
            good += not line.decode("utf-8").isascii()
        except UnicodeDecodeError:
            bad.append(line)
    if len(bad) <= good:
        return None
    data = b"\n".join(bad)
    return "gb18030" if _is_chinese(data) else "cp1252" if is_western(data) else None


def encoding_advice(lines: Iterable[bytes]) -> str:
    """Return what to do with lines in an encoding that is not read; Big5 is named where the lines look like it."""
    if _is_big5(b"\n".join(lines)):
        return "it looks like Big5: iconv -f BIG5 -t UTF-8 FILE > NEW (or save it as UTF-8 in an editor)"
    return ENCODING_ADVICE


def _is_big5(data: bytes) -> bool:
    """Whether all bytes are Big5 of Chinese; Japanese in EUC-JP is valid Big5 too, whose second bytes may be smaller."""
    return _decodes(data, "cp950") and not _decodes(data, "euc_jp") and _is_chinese(data, "cp950")


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _is_chinese(data: bytes, encoding: str = "gb18030") -> bool:
    text = data.decode(encoding, "ignore").replace(_WIDE_BLANK, "")
    chinese = [letter for letter in text if "\u4e00" <= letter <= "\u9fff"]
    beyond = sum(not letter.isascii() for letter in text)
    common = sum(letter in _COMMON for letter in chinese)
    return len(chinese) > 0.5 * beyond and common >= _MIN_COMMON * len(chinese) and common > 0


def is_western(data: bytes) -> bool:
    """Whether text may be cp1252: few letters are beyond ASCII, and few signs inside words (Polish, in Latin-2, has many)."""
    text = data.decode("cp1252", "replace")
    high = sum(letter > "\x7f" for letter in text)
    letters = sum(letter.isalpha() for letter in text if letter <= "\x7f")
    inside = len(_SIGN_IN_WORD.findall(text))
    return high <= _MAX_HIGH * (high + letters) and inside <= _MAX_SIGNS * high


def decode_narrow(line: bytes, encoding: Narrow) -> str | None:
    """Return a line as text; None: it has bytes that the encoding does not have."""
    if encoding == "gb18030":
        try:
            return line.decode("gb18030")
        except UnicodeDecodeError:
            return None
    try:
        return line.decode("cp1252")
    except UnicodeDecodeError:
        return line.decode("latin-1")  # five bytes are not in cp1252


def decode_whole(data: bytes, name: str) -> str:
    """Return the content of a file as text; a `UnicodeDecodeError` where its encoding is not known."""
    if wide := wide_encoding(data[: 1 << 16]):
        report_encoding(name, wide)
        return data.decode(wide).removeprefix("\ufeff")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        encoding = narrow_encoding(data.split(b"\n"))
        text = None if encoding is None else decode_narrow(data, encoding)
        if encoding is None or text is None:
            raise
        report_encoding(name, encoding)
        return text


def as_utf8(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield blocks of bytes, those of UTF-16 and UTF-32 as UTF-8; damaged characters are replaced."""
    first = next(blocks, b"")
    wide = wide_encoding(first)
    blocks = chain([first], blocks)
    if wide is None:
        yield from blocks
        return
    report_encoding(name, wide)
    for text in codecs.iterdecode(blocks, wide, "replace"):
        yield text.encode("utf-8")


@functools.lru_cache(maxsize=256)
def report_encoding(name: str, encoding: str) -> None:
    """Report once that a file is not UTF-8: a corpus is read several times."""
    _log.warning("%s: not UTF-8; read as %s", name, _TITLES.get(encoding, encoding.upper()[:6]))
