"""The corpus: the same sentences whatever the number of workers, a fingerprint of all that matters, and an honest report."""

from __future__ import annotations

import hashlib
import lzma
import os
import random
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from polyseme.base.errors import FormatError, MissingExtraError, PolysemeError, UsageError
from polyseme.text.corpus import RULES, Corpus
from polyseme.text.counting.distinct_count import DistinctCount, hashes_of
from polyseme.text.files import decompression
from polyseme.text.sentences import SentenceSplitter
from polyseme.text.words import get_splitter, normalise_quotes
from tests.text.splitting.test_english import EXAMPLES
from tests.text.test_sentences import CHINESE, ENGLISH


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files of a hundred kilobytes in all: several blocks of `small_blocks`."""
    folder = tmp_path_factory.mktemp("corpus")
    chance = random.Random(1)
    examples = [text for text, _ in EXAMPLES] + [text.replace("|", "") for text in ENGLISH]
    for number in range(3):
        paragraphs = (" ".join(chance.choices(examples, k=6)).replace("\n", " ") for _ in range(150))
        (folder / f"{number}.txt").write_text("\n".join(paragraphs), encoding="utf-8")
    return folder


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 8 KB instead of 256, so that small files have several."""
    monkeypatch.setattr(decompression, "BLOCK", 1 << 13)


def slowly(folder: Path) -> list[list[str]]:
    """The sentences of English files, by the plain parts and one after another."""
    split, cut = get_splitter("english"), SentenceSplitter("english")
    paragraphs = [line for path in sorted(folder.iterdir()) for line in path.read_text(encoding="utf-8").split("\n")]
    return [split(sentence) for line in paragraphs for sentence in cut(normalise_quotes(line))]


def test_any_number_of_workers_gives_the_same_sentences(folder: Path, small_blocks: None) -> None:
    expected = slowly(folder)
    assert len(expected) > 1000
    here, beside = Corpus(folder, workers=0), Corpus(folder, workers=2)
    assert list(here) == list(here) == list(beside) == expected
    blocks = [list(block.ids) for block in here.blocks()]
    assert len(blocks) > 10 and blocks == [list(block.ids) for block in beside.blocks()]
    assert here.check() == beside.check()


def test_what_is_left_of_a_pass_stops_its_workers(folder: Path, small_blocks: None) -> None:
    sentences = iter(Corpus(folder, workers=1))
    assert next(sentences)
    sentences.close()


def test_ways_to_split(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("“It’s late. Go.”\r\n\nB, c\n", encoding="utf-8")
    assert next(iter(Corpus(path))) == ['"', "It", "'s", "late", "."]
    assert next(iter(Corpus(path, normalise_quotes=False))) == ["“", "It", "’s", "late", "."]
    spaces = Corpus(path, splitter="whitespace", sentences="lines")
    assert list(spaces) == [["“It’s", "late.", "Go.”"], ["B,", "c"]]
    path.write_text("我走。你来！", encoding="utf-8")
    assert list(Corpus(path, splitter="characters", sentences="chinese")) == [["我", "走", "。"], ["你", "来", "！"]]


def test_some_sentences_as_characters(tmp_path: Path) -> None:
    lines = [f"银行 在 河边 {number}" for number in range(200)]
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    words, mixed, characters = (
        list(Corpus(tmp_path / "text.txt", splitter="whitespace", character_fraction=part, workers=0))
        for part in (0, 0.3, 0.999)
    )
    assert words == [line.split() for line in lines]
    split = [sentence[:5] == ["银", "行", "在", "河", "边"] for sentence in mixed]
    assert 30 < sum(split) < 90
    assert all(each == word for each, word, is_split in zip(mixed, words, split, strict=True) if not is_split)
    assert len(characters[0]) == 6 and mixed == list(
        Corpus(tmp_path / "text.txt", splitter="whitespace", character_fraction=0.3)
    )
    prints = {Corpus(tmp_path / "text.txt", character_fraction=part).fingerprint() for part in (0, 0.3, 0.4)}
    assert len(prints) == 3


def test_wrong_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("x")
    with pytest.raises(UsageError, match="workers=-1 is negative"):
        Corpus(tmp_path, workers=-1)
    with pytest.raises(UsageError, match="unknown splitter 'englich'"):
        Corpus(tmp_path, splitter="englich")
    monkeypatch.setitem(__import__("sys").modules, "rjieba", None)
    with pytest.raises(MissingExtraError):
        Corpus(tmp_path, splitter="chinese", workers=2)


def test_errors_come_through_workers(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"fine\n\xff\n")
    with pytest.raises(FormatError, match=r"a.txt:2: is not UTF-8"):
        list(Corpus(tmp_path, workers=1))
    assert list(Corpus(tmp_path, errors="skip", workers=0)) == [["fine"]]


def test_fingerprint(tmp_path: Path) -> None:
    first, second = tmp_path / "a.txt", tmp_path / "copy" / "b.txt"
    second.parent.mkdir()
    first.write_text("One. Two.")
    second.write_text("One. Two.")
    known = Corpus(first).fingerprint()
    assert known == Corpus(second, workers=3).fingerprint()
    changes = [
        {"splitter": "whitespace"},
        {"sentences": "lines"},
        {"normalise_quotes": False},
        {"errors": "skip"},
        {"field": "x"},
    ]
    others = [Corpus(first, **change).fingerprint() for change in changes]
    others += [Corpus([first, second]).fingerprint()]
    second.write_text("One. Two!")
    others += [Corpus(second).fingerprint()]
    others += [Corpus([first, second]).fingerprint(), Corpus([second, first]).fingerprint()]
    assert len({known, *others}) == len(others) + 1
    second.unlink()
    corpus = Corpus(first)
    first.unlink()
    with pytest.raises(PolysemeError, match="cannot read"):
        corpus.fingerprint()


def test_rules_have_a_number() -> None:
    """If this fails, the rules have changed: raise RULES, so that nobody's old shards are taken for new ones.

    (A new example changes the digest only.)
    """
    split = [get_splitter("english")(text) for text, _ in EXAMPLES]
    split += [SentenceSplitter("english")(text.replace("|", "")) for text in ENGLISH]
    split += [SentenceSplitter("chinese")(text.replace("|", "")) for text in CHINESE]
    digest = hashlib.sha256(repr(split).encode()).hexdigest()[:16]
    assert (RULES, digest) == (2, "6e9477066d52625a")


def test_report(tmp_path: Path) -> None:
    long = "x" * 49
    body = ["One two three.", "Repeated line.", "Repeated line.", "", f"{long} {'y' * 48} {long}", "Ä" * 25, "Repeated line."]
    data = "\n".join(body).encode() + b"\nbad \xff line\n"
    (tmp_path / "a.txt").write_bytes(data)
    (tmp_path / "b.txt").write_text("")
    (tmp_path / "c.txt").write_text(" \n\n")
    report = Corpus(tmp_path, workers=0).check()
    words = [word for line in body for word in get_splitter("english")(line)]
    assert (report.files, report.bytes, report.lines) == (3, len(data) + 3, 10)
    assert (report.sentences, report.words, report.distinct_words) == (6, len(words), len(set(words)))
    assert (report.longest_sentence, report.duplicate_lines, report.bad_lines) == (4, 2, 1)
    assert (report.long_words, report.long_word_examples) == (3, (long, "Ä" * 25))
    assert report.empty_files == (str(tmp_path / "b.txt"), str(tmp_path / "c.txt"))
    assert report.exact and not report.usable
    problems = report.problems()
    assert problems[0].startswith("1 line is bad") and problems[1].startswith("2 files have no text")
    assert problems[2].startswith(f"{len(words)} words are few")
    assert problems[3].startswith("2 lines (20 %) repeat an earlier one")
    assert "`polyseme corpus dedupe 'my texts' --out deduplicated --threshold 1`" in report.problems("'my texts'")[3]
    assert "(a line is a document, and case and punctuation do not count)" in report.problems("'my texts'")[3]
    assert problems[4].startswith("3 words are longer than 48 bytes, and models crop them: xxxxxxxxxxxxxxxxxxxx…, Ä")


def test_lines_in_traditional_characters_are_counted(tmp_path: Path) -> None:
    lines = ["台湾的夜市非常热闹，许多人喜欢小吃。"] * 3 + ["臺灣的夜市非常熱鬧，許多人喜歡小吃。"]
    (tmp_path / "a.txt").write_text("\n".join(lines), encoding="utf-8")
    report = Corpus(tmp_path / "a.txt", splitter="characters", workers=0).check()
    assert report.traditional_lines == 1
    assert any(each.startswith("1 line has traditional characters (25 %), others have") for each in report.problems())
    (tmp_path / "a.txt").write_text(lines[3], encoding="utf-8")
    report = Corpus(tmp_path / "a.txt", splitter="characters", workers=0).check()
    assert report.traditional_lines == 1 and not any("traditional" in each for each in report.problems())


def test_many_bad_lines_are_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"fine\n" + 19 * "Привет всем\n".encode("cp1251"))
    problem = Corpus(path).check().problems()[0]
    assert problem.startswith(
        "19 lines are bad (not UTF-8, or without text in the field), 95 % of all, which is too many to skip"
    )
    assert "iconv -f OLD -t UTF-8" in problem and "or skip" not in problem
    path.write_bytes(19 * b"fine\n" + b"na\xefve\n")
    assert Corpus(path).check().problems()[0].endswith(": fix the text, or skip bad lines.")


def test_one_word_in_two_spellings(tmp_path: Path) -> None:
    """Composed, with marks, and with two marks of which one is composed; in files, so that no block holds both."""
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    (tmp_path / "a.txt").write_text("caf\u00e9 r\u00e9sum\u00e9 \u1ebf na\u00efve \u6f22 bank caf\u00e9", encoding="utf-8")
    old.write_text(
        "cafe\u0301 re\u0301sume\u0301 e\u0302\u0301 \u00ea\u0301 u\u0308ber \u6f22 bank cafe\u0301\n", encoding="utf-8"
    )
    report = Corpus([tmp_path / "a.txt", old], workers=0).check()
    assert report.unicode_variants == 4 and report.usable  # café, résumé, ế and ế; über has one spelling here, naïve too
    assert Corpus(old).check().unicode_variants == 1
    (problem,) = [problem for problem in report.problems() if "NFC" in problem]
    assert problem.startswith("4 words have another form in other code points")
    command = problem[problem.index("(python") + len("(python") : problem.index(" < OLD > NEW")]
    with old.open("rb") as given, new.open("wb") as made:
        subprocess.run([sys.executable, *shlex.split(command)], stdin=given, stdout=made, check=True)
    after = Corpus([tmp_path / "a.txt", new], workers=0).check()
    assert after.unicode_variants == 0 and after.words == report.words and not any("NFC" in each for each in after.problems())


def test_report_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n")
    report = Corpus(tmp_path).check()
    assert report.words == 0 and not report.usable and len(report.problems()) == 1


def test_distinct_in_bounded_memory() -> None:
    chance = random.Random(2)
    things = [str(chance.randrange(20_000)) for _ in range(50_000)]
    exact, sampled = DistinctCount(), DistinctCount(limit=2000)
    for start in range(0, len(things), 777):
        for seen in (exact, sampled):
            seen.add(hashes_of(things[start : start + 777]))
    true = len(Counter(things))
    assert exact.exact and (exact.distinct, exact.repeats) == (true, len(things) - true)
    assert not sampled.exact and len(sampled._seen) <= 2000
    assert abs(sampled.distinct / true - 1) < 0.1 and abs(sampled.repeats / (len(things) - true) - 1) < 0.1


@pytest.mark.parametrize("share", [0.1, pytest.param(1.0, marks=pytest.mark.slow)])  # slow: the same on all of the text
@pytest.mark.parametrize(
    ("name", "words", "sentences", "count"),
    [("en/en-heldout.txt.xz", "english", "english", 350_000), ("zh/zh-heldout.txt.xz", "characters", "chinese", 440_000)],
)
def test_real_text(tmp_path: Path, name: str, words: str, sentences: str, count: int, share: float) -> None:
    root = os.environ.get("POLYSEME_DATA")
    path = Path(root or "", "corpora", name)
    if not root or not path.exists():
        pytest.skip(f"real text: set POLYSEME_DATA to a folder with corpora/{name}")
    text = lzma.decompress(path.read_bytes()).decode()
    text = text[: text.index("\n", round(share * len(text)) - 1) + 1]
    path, count = tmp_path / path.name, round(share * count)
    path.write_bytes(lzma.compress(text.encode(), preset=0))
    corpus = Corpus(path, splitter=words, sentences=sentences, normalise_quotes=False, workers=0)
    found = list(corpus)
    assert "".join(word for sentence in found for word in sentence) == "".join(text.split())
    report = corpus.check()
    assert report.lines == text.count("\n") and report.sentences == len(found) and report.bad_lines == 0
    assert report.words == sum(map(len, found)) and 0.7 * count < report.words < 1.3 * count
    assert 15 < report.words / report.sentences < 60
    assert report.usable and report.duplicate_lines < 0.01 * report.lines
