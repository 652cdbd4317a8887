"""SQuAD's JSON: what is read, what is mended, and what is refused."""

from __future__ import annotations

import gzip
import json
import lzma
import os
from pathlib import Path
from typing import Any

import pytest

from polyseme.base.errors import FormatError, UsageError
from polyseme.text.labelled.squad import AnswerSpan, ReadingQuestion, SquadData, locate, read_squad

TEXT = "Ann lives in Paris. “Paris” is old."


def whole(*qas: dict[str, Any], context: Any = TEXT) -> dict[str, Any]:
    return {"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": context, "qas": list(qas)}]}]}


def asked(*answers: tuple[str, int], **more: Any) -> dict[str, Any]:
    return {"id": "1", "question": "Where?", "answers": [{"text": a, "answer_start": b} for a, b in answers], **more}


def read(folder: Path, content: Any) -> SquadData:
    (folder / "a.json").write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return read_squad(folder / "a.json")


def test_both_versions_and_all_packings(tmp_path: Path) -> None:
    data = whole(asked(("Paris", 13), ("in Paris", 10), ("Paris", 13)), asked(id=7, is_impossible=True), {"question": "Who?"})
    found = read(tmp_path, data)
    spans = (AnswerSpan(0, 13, 18), AnswerSpan(0, 10, 18))
    assert found.questions == [
        ReadingQuestion("Where?", (TEXT,), ("Paris", "in Paris", "Paris"), spans, "1"),
        ReadingQuestion("Where?", (TEXT,), (), (), "7"),
        ReadingQuestion("Who?", (TEXT,), None, (), None),
    ]
    assert [question.label for question in found.questions] == ["answer", "no answer", None]
    assert (found.answers, found.repaired, found.unplaced) == (3, [], [])
    raw = b"\xef\xbb\xbf" + json.dumps(data).encode()
    for name, content in (("a.gz", gzip.compress(raw)), ("a.xz", lzma.compress(raw)), ("plain", raw)):
        (tmp_path / name).write_bytes(content)
        assert read_squad(tmp_path / name) == found
    v2 = {**asked(), "is_impossible": True, "plausible_answers": [{"text": "Paris", "answer_start": 13}]}
    assert read(tmp_path, whole(v2)).questions[0].answers == ()
    v2.pop("answers")
    assert read(tmp_path, whole(v2)).questions[0].answers == ()


def test_wrong_places_are_mended_or_told(tmp_path: Path) -> None:
    right = asked(("Paris", 14), ("lives", 99), (" in Paris ", 9), ("Rome", 3), ('"Paris"', 20), ("Ann", -1), ("", 0))
    found = read(tmp_path, whole(right))
    (question,) = found.questions
    assert question.answers == ("Paris", "lives", " in Paris ", "Rome", '"Paris"', "Ann", "")
    cut = [TEXT[span.begin : span.end] for span in question.spans]
    assert cut == ["Paris", "lives", "in Paris", "“Paris”", "Ann"] and question.spans[0].begin == 13
    assert [each.text for each in found.unplaced] == ["Rome", ""]
    assert found.unplaced[0].where == "data[0].paragraphs[0].qas[0].answers[3]"
    assert [each.text for each in found.repaired] == ["Paris", "lives", " in Paris ", '"Paris"', "Ann"]


def test_only_what_is_near_or_alone_is_meant() -> None:
    text = "x" + " " * 300 + "x"
    assert locate(text, "x", 290) == (301, 302) and locate(text, "x", 20) == (0, 1)
    assert locate(text, "x", 150) is None and locate(text, "x", -1) is None
    assert locate(text[1:], "x", 5) == (300, 301)  # there is no other
    assert locate("北京 北京", "北京", 2) == (3, 5)
    assert locate("aaa", "aa", 1) == (1, 3)


def test_several_paragraphs(tmp_path: Path) -> None:
    entry = asked(("old", 3), ("Ann", 0))
    entry["answers"][0]["paragraph"] = 1
    (question,) = read(tmp_path, whole(entry, context=[TEXT, "An old town"])).questions
    assert question.paragraphs == (TEXT, "An old town")
    assert question.spans == (AnswerSpan(1, 3, 6), AnswerSpan(0, 0, 3))
    entry["answers"][0]["paragraph"] = 2
    with pytest.raises(FormatError, match=r"answers\[0\] has 'paragraph' 2; allowed: from 0 to 1"):
        read(tmp_path, whole(entry, context=[TEXT, "An old town"]))
    with pytest.raises(UsageError, match=r"the question 'Who\?' has no paragraph"):
        ReadingQuestion("Who?", ())


BAD = {
    '{"data": [\n,]}': r"a.json:2: is not JSON \(Expecting value at column 1\)",
    '{"data": 1}\n{"data": 2}': r"a.json:2: is not JSON \(Extra data at column 1\).*, not JSON lines",
    "[1]": r"a.json: the file is \[1\]; expected an object",
    '{"rows": []}': r"the file has no 'data', only 'rows'",
    "{}": r"the file has no 'data', only nothing",
    '{"data": []}': r"has no questions",
    '{"data": [{"paragraphs": {}}]}': r"data\[0\] has \{\} for 'paragraphs'; expected a list",
    '{"data": [{"paragraphs": [{"context": [], "qas": []}]}]}': r"paragraphs\[0\] has \[\] for 'context'; expected a string",
    json.dumps(whole({"id": 1})): r"data\[0\].paragraphs\[0\].qas\[0\] has no 'question', only 'id'",
    json.dumps(whole(asked(("a", True)))): r"qas\[0\].answers\[0\] has true for 'answer_start'; expected a whole number",
    json.dumps(whole(asked(("Ann", 0), is_impossible=True))): r"has is_impossible true and 1 answers; remove one of the two",
}


@pytest.mark.parametrize("content", BAD)
def test_bad_files_are_told(content: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=BAD[content]):
        read(tmp_path, content)


def test_bad_bytes_are_told(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b'{\n"\xe9": 1}')
    with pytest.raises(FormatError, match=r"a:2: is not UTF-8 \(byte 0xe9\)"):
        read_squad(tmp_path / "a")
    (tmp_path / "a").write_bytes(gzip.compress(os.urandom(1000))[:500])
    with pytest.raises(FormatError, match="damaged gzip"):
        read_squad(tmp_path / "a")


PUBLIC = {  # what their READMEs count: questions, answers, and answers with a wrong offset
    "rc_squad1.1_subset_en/squad_subset.dev.json.gz": (500, 500, 0, 0),
    "rc_cmrc2018_zh/cmrc2018_trial.json.gz": (1002, 1002, 5, 0),
    "rc_cmrc2018_zh/cmrc2018_dev.json.gz": (3219, 9657, 7, 193),
    "rc_drcd_zh/DRCD_train_subset.json.gz": (1960, 1960, 0, 0),
}


# slow: another file of the same data set
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if "cmrc2018_dev" in name else ()) for name in PUBLIC]
)
def test_public_data(name: str) -> None:
    path = Path(os.environ.get("POLYSEME_DATA", "/nowhere"), "tasks", name)
    if not path.is_file():
        pytest.skip("POLYSEME_DATA does not hold it")
    found = read_squad(path)
    assert (len(found.questions), found.answers, len(found.repaired), len(found.unplaced)) == PUBLIC[name]
