"""Texts with marked spans: the shapes that annotation tools write, and words that agree with the spans."""

import json

import pytest

from polyseme.base.errors import FormatError
from polyseme.text.labelled.conll import read_conll

TEXT = "Ann Lee met Bo in New York."
WORDS = ["Ann", "Lee", "met", "Bo", "in", "New", "York", "."]
TAGS = ["B-PER", "I-PER", "O", "B-PER", "O", "B-LOC", "I-LOC", "O"]
MARKS = [(0, 7, "PER"), (12, 14, "PER"), (18, 26, "LOC")]
BY_KIND: dict[str, dict[str, list[list[int]]]] = {}
for first, last, kind in MARKS:
    BY_KIND.setdefault(kind, {}).setdefault(TEXT[first:last], []).append([first, last - 1])


@pytest.fixture
def read(tmp_path):
    def call(*rows, name="data.jsonl", **options):
        path = tmp_path / name
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        return [(each.words, each.tags) for each in read_conll(path, **{"strict": False, **options})]

    return call


@pytest.mark.parametrize(
    "fields",
    [
        {"entities": [list(mark) for mark in MARKS]},
        {"label": [list(mark) for mark in reversed(MARKS)], "id": 7},
        {"spans": [{"start": b, "end": e, "label": k} for b, e, k in MARKS], "tokens": [{"text": "Ann", "start": 0}]},
        {"entities": [{"id": 1, "label": k, "start_offset": b, "end_offset": e} for b, e, k in MARKS], "relations": []},
        {"label": BY_KIND},
        {"entities": [{"start": b, "end": e - 1, "type": k, "word": TEXT[b:e]} for b, e, k in MARKS]},
        {"label": [{"start": b, "end": e, "text": TEXT[b:e], "labels": [k]} for b, e, k in MARKS]},
        {"entity_list": [{"entity_index": {"begin": b, "end": e}, "entity_type": k, "entity": TEXT[b:e]} for b, e, k in MARKS]},
    ],
    ids=["spacy", "doccano", "prodigy", "doccano-relations", "cluener", "last-character", "label-studio", "nested"],
)
def test_shapes_of_tools(read, fields):
    empty = {"text": "No one.", **{name: type(value)() for name, value in fields.items() if isinstance(value, list | dict)}}
    assert read({"text": TEXT, **fields}, empty) == [(WORDS, TAGS), (["No", "one", "."], ["O", "O", "O"])]


def test_chinese_by_characters(read):
    row = {"text": "王小明在 IBM公司工作", "label": [[0, 3, "人名"], [5, 10, "机构"]]}
    words, tags = read(row)[0]
    assert words == ["王", "小", "明", "在", "IBM", "公", "司", "工", "作"]
    assert tags == ["B-人名", "I-人名", "I-人名", "O", "B-机构", "I-机构", "I-机构", "O", "O"]


def test_words_are_cut_at_the_ends_of_spans(read):
    row = {"text": "about 5km, not 5miles", "entities": [[6, 7, "NUMBER"], [7, 9, "UNIT"], [15, 16, "NUMBER"]]}
    words, tags = read(row)[0]
    assert list(zip(words, tags, strict=True))[1:4] == [("5", "B-NUMBER"), ("km", "B-UNIT"), (",", "O")]
    assert words[-2:] == ["5", "miles"] and tags[-2:] == ["B-NUMBER", "O"]


def test_blanks_around_spans_and_in_their_names(read):
    assert read({"text": "so Ann ran", "entities": [[2, 7, "a name"], [6, 7, "blank"]]})[0][1] == ["O", "B-a_name", "O"]


def test_spans_that_overlap(read, caplog):
    row = {"text": "New York Times", "entities": [[0, 8, "LOC"], [0, 14, "ORG"], [4, 14, "X"]]}
    assert read(row, row)[0][1] == ["B-ORG", "I-ORG", "I-ORG"]
    assert "4 spans that overlap others are left out" in caplog.text


def test_long_texts_become_sentences(read):
    text = "Ann Lee ran. " * 40
    row = {"text": text, "entities": [[13 * number, 13 * number + 7, "PER"] for number in range(40)]}
    assert read(row) == [(["Ann", "Lee", "ran", "."], ["B-PER", "I-PER", "O", "O"])] * 40
    inside = {"text": "a " * 100 + "Yahoo! Inc. is big . So", "entities": [[200, 211, "ORG"]]}
    assert [words[-3:] for words, _ in read(inside)] == [["is", "big", "."], ["So"]]


@pytest.mark.parametrize(
    ("span", "message"),
    [
        ([0, 50, "PER"], "has a span from 0 to 50, but its text has 27 characters"),
        ([3, 3, "PER"], "has a span from 3 to 3"),
        (["0", 3, "PER"], r"has the span \['0', 3, 'PER'\]; expected \[0, 5, \"PER\"\] or the fields start, end and label"),
        (
            {"start": 0, "label": "PER"},
            r"has a span with the fields start \(int\), label \(str\); expected start and end as numbers",
        ),
    ],
)
def test_bad_spans(read, caplog, span, message):
    with pytest.raises(FormatError, match=message):
        read({"text": TEXT, "entities": [span]}, strict=True)
    assert len(read({"text": TEXT, "entities": [span]}, {"text": TEXT, "entities": []})) == 1
    assert "skipped 1 of 2 sentences" in caplog.text


def test_rows_without_spans_are_bad_rows(read, caplog):
    assert len(read({"text": TEXT, "entities": []}, {"text": TEXT})) == 1
    assert "has no text, or no spans in 'entities' (fields: text)" in caplog.text


def test_the_first_row_may_lack_spans(read):
    assert (
        len(read({"text": TEXT, "label": None}, {"text": TEXT}, {"text": TEXT, "label": []}, {"text": TEXT, "label": []})) == 2
    )


def test_the_field_of_the_spans(read):
    row = {"text": "Ann ran", "entities": [[0, 3, "PER"]], "label": [[4, 7, "VERB"]]}
    assert read(row)[0][1] == ["B-PER", "O"] and read(row, column="label")[0][1] == ["O", "B-VERB"]
    assert read({**row, "entities": []})[0][1] == ["O", "B-VERB"]
    with pytest.raises(FormatError, match=r"has no spans in a field 'labels' \(did you mean 'label'\?\)"):
        read(row, column="labels")


def test_spans_of_the_same_characters(read):
    assert read({"text": "Ann ran", "label": [[0, 3, "PER"], [0, 3, "ORG"]]})[0][1] == ["B-PER", "O"]


def test_offsets_that_do_not_count_characters(read, caplog):
    row = {"text": "😀😀 Ann ran", "entities": [{"start": 5, "end": 8, "label": "PER", "text": "Ann"}]}
    assert len(read(row, {"text": TEXT, "entities": []})) == 1
    assert "has the span 'Ann', but characters 5 to 8 are 'n r': offsets must count characters" in caplog.text
    assert read({**row, "entities": [{"start": 3, "end": 6, "label": "PER", "text": "Ann"}]})[0][1][-2:] == ["B-PER", "O"]


def test_rejected_rows(read, caplog):
    rows = [{"text": TEXT, "spans": [], "answer": answer} for answer in ("accept", "reject", "ignore")]
    assert len(read(*rows)) == 1
    assert "2 that were rejected (field answer) (lines 2, 3)" in caplog.text


@pytest.mark.parametrize("whole", [True, False])
def test_examples_of_spacy_2(read, tmp_path, whole):
    rows = [[TEXT, {"entities": [list(mark) for mark in MARKS]}]] * 2
    assert read(*([rows] if whole else rows), name="data.json") == [(WORDS, TAGS)] * 2
    assert read({"classes": ["PER"], "annotations": rows}) == [(WORDS, TAGS)] * 2


@pytest.mark.parametrize("document", [[], [1, 2], ["Ann ran"]])
def test_json_without_sentences(read, document):
    with pytest.raises(FormatError, match="is JSON without sentences; expected"):
        read(document)


def test_many_spans_take_little_time(read):
    text = "Ann ran and " * 20_000
    row = {"text": text, "entities": [[12 * number, 12 * number + 3, "PER"] for number in range(20_000)]}
    assert sum(tags.count("B-PER") for _, tags in read(row)) == 20_000
