"""Parallel text: two files or two columns, packed or plain, and what is told of those that do not match."""

from __future__ import annotations

import gzip
import lzma
import os
from pathlib import Path

import pytest

from polyseme.base.errors import FormatError, UsageError
from polyseme.text.labelled.parallel import TextPair, read_parallel, side
from polyseme.text.splitting.joiners import detokenize, tokenize_with_joiners
from polyseme.text.words import get_splitter

ENGLISH, GERMAN = "A dog runs.\nTwo men sit\u2028there .\n", "Ein Hund läuft.\r\n  Zwei Männer sitzen da .\n"


def write(folder: Path, **sides: str) -> Path:
    for ending, text in sides.items():
        (folder / f"train.{ending}").write_text(text, encoding="utf-8", newline="")
    return folder / "train"


def test_two_files(tmp_path: Path) -> None:
    prefix = write(tmp_path, en=ENGLISH, de=GERMAN)
    found = read_parallel(prefix, source="en", target="de")
    assert found.pairs == [
        TextPair("A dog runs.", "Ein Hund läuft."),
        TextPair("Two men sit\u2028there .", "Zwei Männer sitzen da ."),
    ]
    assert [pair.where for pair in found.pairs] == [1, 2] and found.skipped == []
    turned = read_parallel(str(prefix), source="de", target="en")
    assert turned.pairs[0] == TextPair("Ein Hund läuft.", "A dog runs.")


def test_packed_files(tmp_path: Path) -> None:
    (tmp_path / "a.b.en.gz").write_bytes(gzip.compress(ENGLISH.encode()))
    (tmp_path / "a.b.de.xz").write_bytes(lzma.compress(GERMAN.encode()))
    assert len(read_parallel(tmp_path / "a.b", source="en", target="de").pairs) == 2
    (tmp_path / "a.b.en").write_text(ENGLISH)  # plain goes first
    assert side(tmp_path / "a.b", "en").name == "a.b.en"


@pytest.mark.parametrize("kind", ["tsv", "named", "jsonl"])
def test_two_columns(tmp_path: Path, kind: str) -> None:
    file, lines = tmp_path / "data", ["one\teins", 'the "two"\tdie zwei']
    if kind == "jsonl":
        lines = ['{"en": "one", "de": "eins"}', '{"de": "die zwei", "en": "the \\"two\\""}']
    file.write_text("\n".join(['number\ten\tde\n0\tone\teins\n1\tthe "two"\tdie zwei'] if kind == "named" else lines) + "\n")
    names = {} if kind == "tsv" else {"source": "en", "target": "de"}
    assert read_parallel(file, **names).pairs == [TextPair("one", "eins"), TextPair('the "two"', "die zwei")]
    if kind == "tsv":
        assert read_parallel(file, source="1", target="0").pairs[0] == TextPair("eins", "one")


def test_files_that_do_not_match(tmp_path: Path) -> None:
    prefix = write(tmp_path, en="a\nb\nc\n", de="a\nb\n")
    with pytest.raises(FormatError, match=r"train\.en:3: has no counterpart: .*train\.de ends with line 2"):
        read_parallel(prefix, source="en", target="de")
    with pytest.raises(FormatError, match=r"train\.en:3: has no counterpart"):
        read_parallel(prefix, source="de", target="en")
    (tmp_path / "train.de").write_bytes(b"a\nb\n\xff\n")
    with pytest.raises(FormatError, match=r"train\.de:3: is not UTF-8"):
        read_parallel(prefix, source="en", target="de")


def test_blank_lines(tmp_path: Path) -> None:
    prefix = write(tmp_path, en="a\n\nc\n\n", de="a\nb\n \n\n")
    with pytest.raises(FormatError, match=r"train\.en:2: is blank; add a text, or remove the line from both files"):
        read_parallel(prefix, source="en", target="de")
    found = read_parallel(prefix, source="en", target="de", strict=False)
    assert found.pairs == [TextPair("a", "a")] and [pair.where for pair in found.skipped] == [2, 3, 4]
    (tmp_path / "train.en").write_text("a\n")
    (tmp_path / "train.de").write_text("\n")
    with pytest.raises(FormatError, match=r"train\.de:1: is blank"):
        read_parallel(prefix, source="en", target="de")
    with pytest.raises(FormatError, match=r"train\.en: has only blank lines"):
        read_parallel(prefix, source="en", target="de", strict=False)


def test_names_that_lead_nowhere(tmp_path: Path) -> None:
    prefix = write(tmp_path, en="a\n", de="a\n")
    with pytest.raises(
        UsageError, match=r"there is no file .*train; .* train with source=.en. and target=.de. reads train\.en"
    ):
        read_parallel(prefix)
    with pytest.raises(UsageError, match="source='en' needs target"):
        read_parallel(prefix, source="en")
    with pytest.raises(FormatError, match=r"train\.fr: no such file, plain or compressed .*; there are train\.de, train\.en"):
        read_parallel(prefix, source="en", target="fr")
    with pytest.raises(FormatError, match=r"other\.en: no such file.*no file there begins with other\."):
        read_parallel(tmp_path / "other", source="en", target="de")


@pytest.mark.parametrize("name", ["one", "one.tsv", "one.txt", "train.en"])
@pytest.mark.parametrize("text", ["a dog runs .\n" * 9, "Ann, too, came .\nIt rains .\n", "a,b\n" * 3])
def test_a_plain_text_is_no_table(tmp_path: Path, name: str, text: str) -> None:
    """Neither a label and a text on each line, nor CSV by its commas."""
    (tmp_path / name).write_text(text)
    for names in ({}, {"source": "en", "target": "de"}):
        told = rf"{name}: is not a table: its first line has no tab; .* train with source=.en. and target=.de. reads train\.en"
        with pytest.raises(FormatError, match=told) as caught:
            read_parallel(tmp_path / name, **names)
        assert "kind" not in str(caught.value)


def test_csv_goes_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.CSV.gz").write_bytes(gzip.compress(b'one,"eins, zwei"\n'))
    assert read_parallel(tmp_path / "a.CSV.gz").pairs == [TextPair("one", "eins, zwei")]


DOG = TextPair("a dog", "ein Hund")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "source\ttarget\na dog\tein Hund\n"),
        ("a.csv", "source,target\na dog,ein Hund\n"),
        ("a.csv", "Target;Source\nein Hund;a dog\n"),
        ("a.tsv", "id\tsource\ttarget\n17\ta dog\tein Hund\n"),
        ("a.tsv", "tgt\tlabel\tsrc \nein Hund\tx\ta dog\n"),
        ("a.tsv", "summary\ttext\nein Hund\ta dog\n"),
        ("a.tsv", "en\tde\na dog\tein Hund\n"),
        ("a.csv", "en,de\na dog,ein Hund\n"),
        ("a.tsv", "id\ten\tde\n17\ta dog\tein Hund\n"),
        ("a.jsonl", '{"target": "ein Hund", "source": "a dog"}\n'),
        ("a.jsonl", '{"id": 17, "source": "a dog", "target": "ein Hund"}\n'),
        ("a.jsonl", '{"output": "ein Hund", "label": "x", "input": "a dog"}\n'),
    ],
)
def test_columns_with_well_known_names(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_parallel(tmp_path / name).pairs == [DOG]


@pytest.mark.parametrize("names", [{}, {"source": "0", "target": "1"}])
@pytest.mark.parametrize("first", ["question\tFrage", "label\tEtikett", "source\tQuelle", "text\tText", "EN\tDE", "en\ten"])
def test_a_first_row_of_words_is_a_pair(tmp_path: Path, first: str, names: dict[str, str]) -> None:
    """Names that other tasks know, one of two names, and what only looks like codes of languages."""
    (tmp_path / "a.tsv").write_text(f"{first}\na dog\tein Hund\n")
    assert read_parallel(tmp_path / "a.tsv", **names).pairs == [TextPair(*first.split("\t")), DOG]


def test_columns_by_number_below_a_header(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("source\ttarget\na dog\tein Hund\n")
    assert read_parallel(tmp_path / "a.tsv", source="1", target="0").pairs == [TextPair("ein Hund", "a dog")]
    (tmp_path / "a.tsv").write_text("it\tes\na dog\tein Hund\n")
    assert len(read_parallel(tmp_path / "a.tsv", source="0", target="1").pairs) == 2


def test_codes_of_languages_in_a_list_of_words(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("it\tes\ndog\tHund\nto be\tsein\n")
    told = r"a\.tsv:1: may be a header or a pair: 'it' and 'es' are language codes.*; give header=True or header=False"
    with pytest.raises(FormatError, match=told):
        read_parallel(tmp_path / "a.tsv")
    assert len(read_parallel(tmp_path / "a.tsv", header=False).pairs) == 3
    assert read_parallel(tmp_path / "a.tsv", header=True).pairs[0] == TextPair("dog", "Hund")


def test_a_header_that_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("source\ttarget\na dog\tein Hund\n")
    assert len(read_parallel(tmp_path / "a.tsv", header=False).pairs) == 2
    (tmp_path / "a.tsv").write_text("English\tGerman\na dog\tein Hund\n")
    assert read_parallel(tmp_path / "a.tsv", source="0", target="1", header=True).pairs == [DOG]
    with pytest.raises(
        UsageError, match=r"a\.tsv:1: has no two well-known names .* cells 'English', 'German'; give source and target"
    ):
        read_parallel(tmp_path / "a.tsv", header=True)
    with pytest.raises(UsageError, match=r"has no header, so source='English' must be a number from 0"):
        read_parallel(tmp_path / "a.tsv", source="English", target="German", header=False)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ('{"en": "a dog", "de": "ein Hund"}', r"no two well-known names .*source/target.* among its keys 'en', 'de'"),
        (
            '{"text": "a", "article": "b", "summary": "c"}',
            r"several pairs of well-known names .* keys 'text', 'article', 'summ",
        ),
    ],
)
def test_keys_that_do_not_tell(tmp_path: Path, row: str, told: str) -> None:
    """Keys have no order."""
    (tmp_path / "a.jsonl").write_text(row + "\n")
    with pytest.raises(UsageError, match=rf"a\.jsonl:1: has {told}.*; give source and target"):
        read_parallel(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ({}, r"no two well-known names .* keys 'en'; give source and target"),
        ({"source": "en", "target": "fr"}, r"no column 'fr' for target among 'en'; give a name, or a number"),
        ({"source": "en", "target": "EN"}, r"source and target are the same column, 'en'; give two"),
        ({"source": "0", "target": "1"}, r"has 1 column, so target=1 does not exist; give a number from 0 to 0"),
    ],
)
def test_columns_that_are_not_there(tmp_path: Path, names: dict[str, str], told: str) -> None:
    (tmp_path / "a.jsonl").write_text('{"en": "a dog"}\n')
    with pytest.raises(UsageError, match=told):
        read_parallel(tmp_path / "a.jsonl", **names)


def test_names_where_there_is_no_header(tmp_path: Path) -> None:
    """A row of data is not called columns."""
    (tmp_path / "a.tsv").write_text("a dog\tein Hund\n")
    message = r"a\.tsv:1 has no column 'en' for source among 'a dog', 'ein Hund'; give a name, or a number from 0 if"
    with pytest.raises(UsageError, match=message) as caught:
        read_parallel(tmp_path / "a.tsv", source="en", target="de")
    assert "its columns" not in str(caught.value)
    (tmp_path / "a.csv").write_text("a dog\n")
    with pytest.raises(FormatError, match=r"a\.csv:1: has one column, 'a dog'; expected a source and a target, separated by"):
        read_parallel(tmp_path / "a.csv")


@pytest.mark.parametrize(("data", "told"), [(b"", "is empty"), ("я\tя\n".encode("cp1251"), "save it as UTF-8")])
def test_what_is_wrong_with_a_table_is_told_by_its_reader(tmp_path: Path, data: bytes, told: str) -> None:
    (tmp_path / "a.tsv").write_bytes(data)
    with pytest.raises(FormatError, match=told):
        read_parallel(tmp_path / "a.tsv")


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("Wait (a bit): it's 3.5 km - or 2,000 - “no”!", "english"),
        ("Ein Mann-Frau-Team läuft… z. B. hier.", "english"),
        ("我在iPhone 6上，看了20.5元的2 本书。", "characters"),
        ("a b  c", "whitespace"),
        ("", "english"),
    ],
)
def test_glued_words_are_the_text_again(text: str, cut: str) -> None:
    assert detokenize(tokenize_with_joiners(text, get_splitter(cut))) == " ".join(text.split())


def test_glue() -> None:
    assert tokenize_with_joiners("He can't.", get_splitter("english")) == ["He", "ca", "￭n't", "￭."]
    assert tokenize_with_joiners(["He", "ca", "n't"], get_splitter("english")) == ["He", "ca", "n't"]


@pytest.mark.parametrize(
    ("name", "count"),
    [
        pytest.param("train", 29_000, marks=pytest.mark.slow),
        ("val", 1_014),
        pytest.param("test_2016_flickr", 1_000, marks=pytest.mark.slow),
    ],
)
def test_multi30k(name: str, count: int) -> None:
    """Slow: other splits of the same data."""
    root = os.environ.get("POLYSEME_DATA")
    if not root or not Path(root, "tasks", "mt_multi30k").is_dir():
        pytest.skip("real data: set POLYSEME_DATA to a folder with tasks/mt_multi30k")
    found = read_parallel(Path(root, "tasks", "mt_multi30k", name), source="en", target="de")
    assert len(found.pairs) == count and found.skipped == []
    for pair in found.pairs[:1000]:
        assert isinstance(pair.target, str) and detokenize(
            tokenize_with_joiners(pair.target, get_splitter("english"))
        ) == " ".join(pair.target.split())
