"""Filters and near-duplicates: what is dropped, and why."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from benchmarks.dedupe import write_documents
from polyseme.api.corpora import dedupe_corpus, filter_corpus
from polyseme.base.errors import InterruptedRun, PolysemeError
from polyseme.text.files.sources import Source
from polyseme.text.filtering.language import language_of
from polyseme.text.filtering.minhash import plain_words, signature, similarity
from tests.scale.contents import contents


def dropped(out: Path) -> list[dict]:
    return [json.loads(line) for path in sorted(out.glob("_dropped-*")) for line in path.read_text().splitlines()]


def test_similarity_is_near_the_jaccard_index() -> None:
    draw = random.Random(0)
    words = [f"w{number}" for number in range(50)]
    for changed in (0, 5, 20, 60):
        one = draw.choices(words, k=100)
        other = list(one)
        for place in draw.sample(range(100), changed):
            other[place] = draw.choice(words)
        sets = [{tuple(text[i : i + 3]) for i in range(98)} for text in (one, other)]
        exact = len(sets[0] & sets[1]) / len(sets[0] | sets[1])
        assert abs(similarity(signature(" ".join(one)), signature(" ".join(other))) - exact) < 0.13
    assert np.array_equal(signature("The bank!"), signature("the  BANK"))


def test_planted_near_duplicates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.dedupe.SOURCE", Path("none"))
    planted = write_documents(tmp_path / "a.txt", 300)
    result = dedupe_corpus([str(tmp_path / "a.txt")], out=tmp_path / "out", workers=0, shard_size=20_000)
    found = {each["line"] - 1: each for each in dropped(tmp_path / "out")}
    pairs = {tuple(sorted((copy, original))): share for copy, (original, share) in planted.items()}
    assert all(later in found for (_, later), share in pairs.items() if share <= 0.1)
    assert set(found) <= {later for _, later in pairs}
    assert all(found[later]["of"] == f"{tmp_path / 'a.txt'}:{earlier + 1}" for earlier, later in pairs if later in found)
    lines = (tmp_path / "a.txt").read_text().splitlines()
    kept = [line for path in sorted((tmp_path / "out").glob("part-*.txt")) for line in path.read_text().splitlines()]
    assert kept == [line for number, line in enumerate(lines) if number not in found]
    assert result.kept == len(kept) and result.reasons == {"near-duplicate": len(found)}
    before = contents(tmp_path / "out")
    (tmp_path / "out" / "_dropped-000001.jsonl").unlink()
    dedupe_corpus([str(tmp_path / "a.txt")], out=tmp_path / "out", workers=0, shard_size=20_000)
    assert contents(tmp_path / "out") == before
    with pytest.raises(PolysemeError, match=r"other settings \(threshold\)"):
        dedupe_corpus([str(tmp_path / "a.txt")], out=tmp_path / "out", workers=0, shard_size=20_000, threshold=0.9)


def test_a_refused_call_releases_the_folder(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two three four\n", encoding="utf-8")
    dedupe_corpus([str(tmp_path / "a.txt")], out=tmp_path / "out", workers=0)
    with pytest.raises(PolysemeError, match=r"other settings \(threshold\)") as refused:
        dedupe_corpus([str(tmp_path / "a.txt")], out=tmp_path / "out", workers=0, threshold=0.9)
    assert refused.value.__traceback__ is not None  # its frames are still there, as in a notebook
    assert dedupe_corpus([str(tmp_path / "a.txt")], out=tmp_path / "out", workers=0).kept == 1


def test_ctrl_c_while_the_input_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("one two three four\n", encoding="utf-8")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("polyseme.scale.cleaning.scan", interrupted)
    with pytest.raises(InterruptedRun, match="run the same command to resume"):
        dedupe_corpus([str(tmp_path / "a.txt")], out=tmp_path / "out", workers=0)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_the_output_is_a_source(tmp_path: Path, name: str) -> None:
    texts = ["one two three four", "five six seven eight", "one two three four"]
    rows = [json.dumps({"text": text}) if name == "a.jsonl" else text for text in texts]
    (tmp_path / name).write_text("\n".join(rows), encoding="utf-8")
    dedupe_corpus([str(tmp_path / name)], out=tmp_path / "out", workers=0)
    for source in (tmp_path / "out", f"{tmp_path}/out/*"):
        chunks = list(Source(source).chunks())
        assert [line for chunk in chunks for line in chunk.text.splitlines()] == texts[:2]
    again = dedupe_corpus([str(tmp_path / "out")], out=tmp_path / "again", workers=0)
    assert again.documents == again.kept == 2


def test_lines_are_counted_from_1(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one two three four\none two three four\n", encoding="utf-8")
    dedupe_corpus([str(path)], out=tmp_path / "out", workers=0)
    where = {"file": str(path), "line": 2, "of": f"{path}:1"}
    assert dropped(tmp_path / "out") == [{**where, "reason": "duplicate", "similarity": 1.0}]


def test_blank_lines_stay(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two three four\n\n\none two three four\n\n", encoding="utf-8")
    dedupe_corpus([str(tmp_path / "a.txt")], out=tmp_path / "out", workers=0)
    assert (tmp_path / "out" / "part-000000.txt").read_text() == "one two three four\n\n\n\n"


def test_filters(tmp_path: Path) -> None:
    texts = {
        "It was late when we left the house on the hill.": None,
        "Home | News | Contact": "too few words",
        "Der Hund ist nicht auf dem Sofa, er ist im Garten.": "language de",
        "zig zag zug zog zeg zyg": "language not known",
        "the #one #two and #three is on it": "too many symbols",
        "the 111 222 333 444 of 555": "too few letters",
        "the bank " * 20: "too repetitive",
        "the antidisestablishmentarianism of incomprehensibilities is counterrevolutionaries": "words too long",
    }
    rows = [json.dumps({"body": text}) for text in texts]
    (tmp_path / "a.jsonl").write_text("\n".join(rows), encoding="utf-8")
    result = filter_corpus([str(tmp_path / "a.jsonl")], out=tmp_path / "out", workers=0, field="body", language=("en",))
    assert {each["line"]: each["reason"] for each in dropped(tmp_path / "out")} == {
        number: reason for number, reason in enumerate(texts.values(), start=1) if reason is not None
    }
    assert json.loads((tmp_path / "out" / "part-000000.jsonl").read_text()) == {"text": next(iter(texts))}
    assert result.kept == 1 and result.documents == len(texts)


def test_languages() -> None:
    texts = {
        "en": "We saw that the man and his dog were in the garden.",
        "fr": "Nous avons vu que le chien est dans le jardin avec les enfants.",
        "es": "El perro está en el jardín con los niños y no quiere salir.",
        "ru": "Мы не знали, что он был в доме и что это было так.",
        "ja": "私は本を読むのが好きです。",
        "zh": "我们在河边看见了他的狗。",
        "ko": "나는 책을 읽는 것을 좋아한다.",
    }
    assert {name: language_of(text) for name, text in texts.items()} == {name: name for name in texts}
    assert plain_words("It's 河岸") == ["it", "s", "河", "岸"]


def test_documents_that_only_resemble_others_are_counted_apart(tmp_path: Path) -> None:
    """As in a log, whose lines differ in a name: all alike, and few are equal."""
    names = ["Ann", "Bob", "Eve", "Dan", "Kim", "Lea", "Max", "Pia"]
    lines = [f"on this day the guard opened the gate of the old city for {name} and closed it again at night" for name in names]
    (tmp_path / "a.txt").write_text("\n".join([*lines, lines[3].upper(), lines[5]]) + "\n", encoding="utf-8")
    near = dedupe_corpus([str(tmp_path / "a.txt")], out=tmp_path / "near", workers=0)
    assert near.reasons == {"duplicate": 2, "near-duplicate": 7}
    assert "7 documents only resemble an earlier one: if your texts follow a pattern, threshold 1 drops" in str(near)
    assert [each["of"].rpartition(":")[2] for each in dropped(tmp_path / "near")[-2:]] == ["4", "6"]
    equal = dedupe_corpus([str(tmp_path / "a.txt")], out=tmp_path / "equal", workers=0, threshold=1.0)
    assert equal.reasons == {"duplicate": 2} and "resemble" not in str(equal)
    assert (tmp_path / "equal" / "part-000000.txt").read_text().splitlines() == lines
