"""Tables as people have them: rows that lack something, columns without known names, spreadsheets in other encodings."""

import io
import json
import re
from csv import DictWriter

import pytest

from polyseme.base.errors import FormatError, PolysemeError, UsageError
from polyseme.text.labelled.tables import guessed_columns, read_table, read_usable_rows

ROWS = [("the food was very good, really", "pos"), ("never again in this place", "neg"), ("so so, but cheap enough", "neg")] * 3


@pytest.fixture
def read(tmp_path):
    def call(text: str | bytes, /, name: str = "table.csv", **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        rows = read_usable_rows(path, **{"strict": False, **options})
        return [(row.first, row.label) if row.second is None else (row.first, row.second, row.label) for row in rows]

    return call


def csv(header: str, rows, between: str = ",") -> str:
    return "\r\n".join([header, *(between.join(f'"{cell}"' for cell in row) for row in rows)]) + "\r\n"


def test_bad_rows_are_skipped_and_counted(read, caplog):
    text = "text,label\ngood,pos\n,pos\nbad,\nworse,neg\nnan,neg\nfine,NaN\nalone\nbest,pos\n"
    assert read(text) == [("good", "pos"), ("worse", "neg"), ("best", "pos")]
    assert len(caplog.messages) == 1
    assert caplog.messages[0].endswith(
        "table.csv: skipped 5 of 8 rows: 2 without a text (lines 3, 6), 2 without a label (lines 4, 7), "
        "1 with fewer columns than 2 (line 8)"
    )
    with pytest.raises(FormatError, match=r"csv:3: has no text in column text.*\(and 4 more bad rows: lines 4, 6, 7 \.\.\.\)$"):
        read(text, strict=True)
    with pytest.raises(FormatError, match=r"csv:2: has no text.*\(and 1 more bad row: line 3\); no usable row is left"):
        read("text,label\n,a\nb,\n")


def test_commas_in_texts_without_quotes(read, caplog):
    text = "text,label\nfine,pos\nbad,neg\nso, so,neg\none, two, three,pos\nnot, known,other\n"
    assert read(text) == [("fine", "pos"), ("bad", "neg"), ("so, so", "neg"), ("one, two, three", "pos")]
    assert "1 with more columns than 2 (line 6)" in caplog.text
    joined = "table.csv: joined the text of 2 rows (lines 4, 5), which has ',' without quotes"
    assert sum("joined" in message for message in caplog.messages) == 1
    assert caplog.messages[0].endswith(joined)


def test_full_width_separators_are_named(read, caplog):
    text = "text,label,n\n不错，便宜,pos,1\n好，pos，2\n差，neg\n"
    advice = r"its commas may be full-width (，): replace those between columns by ,"
    assert read(text) == [("不错，便宜", "pos")]
    assert caplog.messages[-1].endswith(
        "skipped 2 of 3 rows: 1 with full-width separators, and fewer columns than 3 (line 3), "
        "1 with fewer columns than 3 (line 4)"
    )
    with pytest.raises(FormatError, match=rf"csv:3: has 1 column and line 1 has 3: {re.escape(advice)} \(and 1 more bad row"):
        read(text, strict=True)
    with pytest.raises(FormatError, match=rf"csv:1: has one column, '用户评价，评价类型'; .*; {re.escape(advice)}$"):
        read("用户评价，评价类型\n不错，好评\n")
    with pytest.raises(FormatError, match=r"are for `predict`; its semicolons may be full-width \(；\)"):
        read("用户评价；评价类型\n不错；好评\n")
    with pytest.raises(FormatError, match=r"are for `predict`$"):
        read("文本\n不错\n")


def test_labels_of_the_training_data_are_known(read, caplog):
    text = "id,text,label,n\n1,fine,pos,1\n2,so, so,neg,1\n3,not, so,other,2\n"
    assert read(text) == [("fine", "pos")]
    caplog.clear()
    assert read(text, known=["pos", "neg"]) == [("fine", "pos"), ("so, so", "neg")]
    assert [message.partition("csv: ")[2] for message in caplog.messages if "columns text" not in message] == [
        "joined the text of 1 row (line 3), which has ',' without quotes",
        "skipped 1 of 3 rows: 1 with more columns than 4 (line 4)",
    ]


@pytest.mark.parametrize(("head", "sign"), [("", ";"), ("", "|"), ("sep=~\n", "~")])
def test_other_signs_in_texts_without_quotes_stay(read, head, sign):
    rows = [("fine", "pos"), (f"so{sign} so", "neg"), ("bad, or not", "neg")]
    assert read(head + "".join(f"{text}{sign}{label}\n" for text, label in [("text", "label"), *rows])) == rows


def test_a_part_of_a_text_is_no_label(read, caplog):
    rows = [("a good one", "pos"), ("a bad one", "neg")] * 10
    text = "text,label\n" + "".join(f"{text},{label}\n" for text, label in rows) + "not bad, but no label here\nlast,rare\n"
    assert read(text) == [*rows, ("last", "rare")]
    assert "1 with a text where others have a label (line 22)" in caplog.text


def test_empty_cells_at_the_end(read):
    assert read("text,label,more\ngood,pos,x,,\nbad,neg\nso,neg,,\n") == [("good", "pos"), ("bad", "neg"), ("so", "neg")]


def test_quotes_that_no_other_closes(read):
    text = 'text,label\n"good",pos\n"a 5" screen,neg\nlast "word,pos\n"fine, too",pos\n'
    assert read(text) == [("good", "pos"), ('"a 5" screen', "neg"), ('last "word', "pos"), ("fine, too", "pos")]
    assert len(read('text,label\n"open,pos\n' + "more,neg\n" * 50)) == 51


def test_json_lines_that_lack_something(read, caplog):
    rows = [
        {"text": "a"},
        {"text": "b", "label": 1},
        {"label": 0},
        {"text": None, "label": 1},
        {"text": "c", "label": float("nan")},
    ]
    text = "\n".join(map(json.dumps, rows)) + '\n{"text"\n[1]\n{"text": ["d"], "label": 0}\n'
    assert read(text, "a.jsonl") == [("b", "1")]
    assert "skipped 7 of 8 rows" in caplog.text and "2 that are not JSON objects (lines 6, 7)" in caplog.text


TEXTS, LABELS = zip(*ROWS, strict=True)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "document",
    [
        {"text": TEXTS, "label": LABELS},
        {"text": dict(enumerate(TEXTS)), "label": dict(enumerate(LABELS))},  # as pandas writes it
        {n: {"text": text, "label": label} for n, (text, label) in enumerate(ROWS)},
        {"text": TEXTS, "label": LABELS, "words": [text.split() for text in TEXTS]},
        {"columns": ["text", "label"], "index": list(range(len(ROWS))), "data": ROWS},
        {"name": "reviews", "version": 1, "data": [{"text": text, "label": label} for text, label in ROWS]},
    ],
    ids=["columns", "pandas", "pandas-index", "lists", "pandas-split", "field"],
)
def test_a_table_in_one_json_object(read, caplog, indent, document):
    text = json.dumps(document, indent=indent)
    assert read(text, "a.json") == ROWS
    assert ("its rows are those of the field 'data'" in caplog.text) == ("version" in document)
    with pytest.raises(PolysemeError):
        read(text, "a.json", strict=True)


@pytest.mark.parametrize("indent", [None, 2])
def test_one_row_of_json_is_a_row(read, indent):
    row = {"text": "good", "label": "pos", "entities": [{"start": 0}]}
    assert read(json.dumps(row, indent=indent), "a.json") == [("good", "pos")]


def test_a_json_object_without_rows(read):
    with pytest.raises(FormatError, match=r"one JSON object with the fields train, val; expected a list of rows, \[\{"):
        read(json.dumps({"train": ROWS, "val": ROWS[:1]}, indent=1), "a.json")


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_array(read, indent):
    rows = [{"id": number, "text": text, "label": label} for number, (text, label) in enumerate(ROWS)]
    assert read(json.dumps([*rows, 3], indent=indent), "a.json") == ROWS
    with pytest.raises(FormatError, match="expected JSON lines"):
        read(json.dumps(rows), "a.json", strict=True)


@pytest.mark.parametrize("encoding", ["gbk", "utf-16", "utf-8-sig", "utf-8"])
def test_a_spreadsheet_in_chinese(read, encoding):
    rows = [("这个饭店的菜很好吃，服务也不错", "好评"), ("房间太小了，不会再来", "差评")] * 4
    assert read(csv("内容,类别", rows).encode(encoding)) == rows


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("Kommentar;Wertung", ROWS),
        ("id;review_body;stars", [(number, *row) for number, row in enumerate(ROWS)]),
        ("body;date;stars", [(text, f"2020-01-0{number % 2}", label) for number, (text, label) in enumerate(ROWS)]),
        ("label;review;date", [(label, text, f"2020-01-0{number}") for number, (text, label) in enumerate(ROWS)]),
    ],
)
def test_columns_by_their_content(read, caplog, header, rows):
    assert read(csv(header, rows, ";")) == ROWS
    assert ("columns by their content" in caplog.text) == ("label" not in header)


def test_no_header(read, caplog, tmp_path):
    text = "".join(f"{label}\t{text}\n" for text, label in ROWS)
    assert read(text, "a.tsv") == ROWS
    assert (
        "no header; columns by their content: text: '1', label: '0' (if that is wrong, give text, label, header=True)"
        in caplog.text
    )
    assert guessed_columns(tmp_path / "a.tsv", strict=False) == {"text": "1", "label": "0", "header": False}
    assert guessed_columns(tmp_path / "a.tsv", strict=False, text=1, label=0) == {}


def test_pairs_by_their_content(read):
    rows = [(f"premise number {number}", f"some other text {number}", str(number / 4)) for number in range(8)]
    text = "\n".join(["\t".join(("one", "other", "points")), *map("\t".join, rows)])
    assert read(text, "a.tsv", pairs=True) == rows
    classes = [(*row[:2], "yn"[number % 2]) for number, row in enumerate(rows)]
    assert read("\n".join(map("\t".join, classes)), "a.tsv", pairs=True) == classes


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("a,b,c", [(text, label, label) for text, label in ROWS]),  # two columns with few values
        ("a,b,c", [(text, text + "!", label) for text, label in ROWS]),  # two texts
        ("a,b", ROWS[:2]),  # too few rows
    ],
)
def test_doubt_is_an_error(read, header, rows):
    with pytest.raises(UsageError, match=r"give columns by number|well-known name"):
        read(csv(header, rows))


@pytest.mark.parametrize(
    ("header", "text", "label"),
    [
        ("工单内容,标题,队列,优先级", "工单内容", "队列"),
        ("Ticket description,Title,Queue,Priority", "Ticket description", "Queue"),
        ("用户评论,评论对象,意图,评论等级", "用户评论", "意图"),
    ],
)
def test_names_decide_where_the_content_does_not(tmp_path, header, text, label):
    rows = [(f"a rather long text {n}", f"a title as long {n}", "xy"[n % 2], ["low", "high"][n // 2 % 2]) for n in range(20)]
    (tmp_path / "a.csv").write_text(csv(header, rows))
    assert guessed_columns(tmp_path / "a.csv", strict=False) == {"text": text, "label": label, "header": True}
    (tmp_path / "a.csv").write_text(csv(header.replace(text, "Summary"), rows))
    with pytest.raises(
        UsageError, match=rf"for the text \(the label is read from '{label}'\); give text .* with one of: Summary,"
    ):
        guessed_columns(tmp_path / "a.csv", strict=False)
    with pytest.raises(UsageError, match="is not a known header"):
        guessed_columns(tmp_path / "a.csv", strict=True)


def test_strict_guesses_nothing(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(csv("Kommentar,Wertung", ROWS))
    with pytest.raises(UsageError, match="is not a known header"):
        read_table(path)


def test_a_source_beside_the_label_is_not_the_label(tmp_path):
    rows = [
        ("gj04" if n < 12 else "bc01", str(n * 7 % 5 % 2), "*" * (n % 2), f"A sentence about number {n}.") for n in range(24)
    ]
    path = tmp_path / "cola.tsv"
    path.write_text("\n".join(map("\t".join, rows)) + "\n")
    assert guessed_columns(path, strict=False) == {"text": "3", "label": "1", "header": False}
    path.write_text("\n".join(map("\t".join, rows[::2] + rows[1::2])) + "\n")  # not in blocks, but 0 and 1 are labels
    assert guessed_columns(path, strict=False)["label"] == "1"
    names = [(*row[:1], "AB"[int(row[1])], *row[2:]) for row in rows]
    path.write_text("\n".join(map("\t".join, names[::2] + names[1::2] + names[::2])) + "\n")
    with pytest.raises(UsageError, match=r"0: 'gj04', 1: '.', 2: '', 3: 'A sentence"):
        read_table(path, strict=False)


def test_scores_beside_sources_and_numbers(tmp_path):
    rows = [
        (
            "captions" if n < 15 else "news",
            f"file-{n // 10}",
            "2012",
            f"{n:04}",
            f"{n % 6}.{n % 3}00",
            "a text of some words",
            "another one of them",
        )
        for n in range(30)
    ]
    rows = [(*row[:5], f"{row[5]} {n}", f"{row[6]} {n}") for n, row in enumerate(rows)]
    path = tmp_path / "sts.csv"
    path.write_text("\n".join(map("\t".join, rows)) + "\n")
    assert guessed_columns(path, strict=False, pairs=True) == {"text": "5", "second": "6", "label": "4", "header": False}


def test_a_table_of_its_header_alone(read):
    with pytest.raises(UsageError, match=r"has no rows but its first, 'message', 'topic': it needs a row for each text"):
        read("message,topic\n")


def test_a_header_above_one_label_is_no_class(read):
    rows = [(f"the soup number {number} was fine, thank you", "food") for number in range(9)]
    problem = r"no column of two classes: column 'topic' has 'food' in its first 9 rows.*give label with one of: message"
    with pytest.raises(UsageError, match=problem):
        read(csv("message,topic", rows))
    assert read(csv("message,topic", rows), label="topic") == rows


@pytest.mark.parametrize(
    ("header", "end"), [("label,text,", ","), ("label,text,", ""), ("v1,v2,,,", ",,,"), ("class,text,,", ",,more")]
)
def test_a_header_with_empty_cells(read, tmp_path, header, end):
    assert read(header + "\n" + "".join(f'{label},"{text}"{end}\n' for text, label in ROWS)) == ROWS
    assert guessed_columns(tmp_path / "table.csv", strict=False).get("header", True)  # else the header is a text in training


def test_a_header_with_an_index_as_pandas_writes_it(read, caplog):
    text = ",text,target\n" + "".join(f'{number},"{text}",{label}\n' for number, (text, label) in enumerate(ROWS))
    assert read(text) == ROWS
    assert "columns text: 'text', label: 'target' (by its content) (not used: 0; if that is wrong" in caplog.text


@pytest.mark.parametrize("name", ["sentiment", "category", "Urteil"])
@pytest.mark.parametrize("score", ["score", "similarity", "label"])
def test_decimals_are_no_label_beside_another_candidate(read, name, score):
    rows = [(text, number % 3 / 4, label) for number, (text, label) in enumerate(ROWS)]
    assert read(csv(f"text,{score},{name}", rows), pairs=False) == ROWS
    alone = read(csv(f"text,{score}", [row[:2] for row in rows]), pairs=False)
    assert [label for _, label in alone] == [str(row[1]) for row in rows]


def test_a_score_of_whole_numbers_comes_last_for_single_texts(read):
    rows = [(text, number % 3, label) for number, (text, label) in enumerate(ROWS)]
    assert read(csv("text,score,sentiment", rows), pairs=False) == ROWS
    pairs = [(text, text[::-1], number % 3, label) for number, (text, label) in enumerate(ROWS)]
    assert {row[2] for row in read(csv("sentence1,sentence2,score,category", pairs), pairs=True)} == {"0", "1", "2"}


def test_columns_that_are_not_used_are_named(read, caplog):
    rows = [(number, text, label, number, "") for number, (text, label) in enumerate(ROWS)]
    assert read(csv("Id,Text,Score,Time,none", rows)) == ROWS
    assert len(caplog.messages) == 1
    assert caplog.messages[0].endswith("table.csv: columns text: 'Text', label: 'Score' (not used: Id, Time)")
    caplog.clear()
    read(csv("Id,Text,Score,Time,none", rows), "given.csv", text="Text", label="Score")
    read(csv("Text,Score", ROWS), "all.csv")
    assert not caplog.messages
    read(csv("Text,Score,a,b,c,d,e,f,g", [(*row, *"1234567") for row in ROWS]), "many.csv")
    assert caplog.messages[0].endswith("(not used: a, b, c, d, e and 2 more)")


def test_several_columns_that_may_be_the_label(read):
    rows = [(f"x{number}", text, number % 2, number % 3 % 2, 0) for number, (text, _) in enumerate(ROWS)]
    with pytest.raises(UsageError, match=r"for the label; give label with one of: toxic, obscene \(by their content"):
        read(csv("id,comment_text,toxic,obscene,threat", rows))


def test_null_is_no_label(read, caplog):
    assert read("text,label\none,a\ntwo,null\nthree,b\n") == [("one", "a"), ("three", "b")]
    assert "1 without a label (line 3)" in caplog.text


@pytest.mark.parametrize("header", ["text,label", "id,text,label", "label,text", "text,label,"])
def test_commas_in_all_texts_without_quotes(read, header):
    rows = [(f"the film, number {number}, was a story", "spam" if number % 3 else "ham") for number in range(9)]
    cells = [{"text": text, "label": label, "id": str(number), "": ""} for number, (text, label) in enumerate(rows)]
    assert read("\n".join([header, *(",".join(row[name] for name in header.split(",")) for row in cells)])) == rows


def test_a_text_with_commas_and_no_label_speaks_of_no_option_that_was_not_given(read):
    text = "text,label\n" + "".join(f"one, two {number}, three {number}\n" for number in range(9))
    with pytest.raises(FormatError, match="fix the line, such as by quotes around the text") as error:
        read(text)
    assert "strict" not in str(error.value)


@pytest.mark.parametrize("order", [("text", "label"), ("label", "text"), ("id", "text", "label")])
def test_cells_of_several_lines_in_tsv(read, order):
    texts = ['She said "so".\n\nThen she left.', "one line", 'A "quoted" word', 'last\n"line"']
    labels = ["pos", "neg", "pos", "neg"]
    rows = [{"id": str(n), "text": text, "label": label} for n, (text, label) in enumerate(zip(texts, labels, strict=True))]
    file = io.StringIO(newline="")
    writer = DictWriter(file, order, delimiter="\t", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    assert read(file.getvalue(), "a.tsv") == list(zip(texts, labels, strict=True))


def test_two_cells_of_several_lines_in_tsv(read):
    text = 'premise\thypothesis\tlabel\n"a\nb"\t"c\nd"\tyes\ne\tf\tno\n'
    assert read(text, "a.tsv", pairs=True) == [("a\nb", "c\nd", "yes"), ("e", "f", "no")]


def test_quotes_over_lines_that_no_csv_writer_makes(read):
    text = 'text\tlabel\ngood\tpos\n"one\ntwo "quoted" three"\tpos\n'
    assert read(text, "a.tsv")[-1] == ('two "quoted" three"', "pos")
    assert len(read("text\tlabel\n" + "good\tpos\n" * 9 + '"' + ("x" * 1000 + "\n") * 200 + '"\tneg\n', "a.tsv")) >= 9


def test_a_quote_that_only_begins_a_cell_of_tsv_is_a_character(read):
    text = 'label\ttext\npos\t"So it goes\nneg\tbad "\npos\t"Well\nand so on\nneg\tbad\n'
    assert read(text, "a.tsv")[:2] == [('"So it goes', "pos"), ('bad "', "neg")]
    assert len(read(text, "a.tsv")) == 4


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        *[
            (f"{text}\t{label}", (0, None, 1))
            for text in ("文本", "内容", "评论", "句子")
            for label in ("标签", "类别", "情感")
        ],
        ("标签\t文本", (1, None, 0)),
        ("句子1\t句子2\t标签", (0, 1, 2)),
        ("文本1\t文本2\t类别", (0, 1, 2)),
    ],
)
def test_chinese_headers_are_known_in_a_file_of_two_rows(tmp_path, header, columns):
    path = tmp_path / "table.tsv"
    path.write_text(f"{header}\n" + "\t".join("abc"[: header.count("\t") + 1]) + "\n", encoding="utf-8")
    found = read_table(path)
    first, second, label = ("abc"[column] if column is not None else None for column in columns)
    assert [(row.first, row.second, row.label, row.where) for row in found.rows] == [(first, second, label, 2)]


@pytest.mark.parametrize("topic", ["情感", "评论"])
def test_a_chinese_topic_in_the_first_row_is_no_header(read, topic):
    rows = [
        (topic, "这首歌太好听了"),
        ("体育", "昨天的比赛很精彩"),
        (topic, "她终于说出了心里话"),
        ("体育", "队员们都很努力"),
    ] * 2
    text = "".join(f"{label}\t{text}\n" for label, text in rows)
    assert read(text, "news.tsv") == [(text, label) for label, text in rows]


@pytest.mark.parametrize(
    ("header", "rows", "column"), [("review,verdict\n", 2, "'verdict'"), ("a,b\n", 6, "'b'"), ("", 6, "1")]
)
def test_a_file_with_one_class_says_so(read, header, rows, column):
    text = header + "".join(f"a text of its own with the number {number} in it,good\n" for number in range(rows))
    problem = (
        rf"has no column of two classes: column {column} .*has 'good' in its first {rows} rows\. A classifier needs two labels"
    )
    with pytest.raises(UsageError, match=problem):
        read(text)


@pytest.mark.parametrize("header", ["text,label", "tweet,target", "id,tweet,target"])
def test_headers_between_rows_are_skipped(read, caplog, header):
    parts = [[(*([f"{part}{row}"] if header.startswith("id") else []), *ROWS[row]) for row in range(9)] for part in range(3)]
    text = "".join(csv(header, rows) for rows in parts)
    assert read(text) == ROWS * 3
    assert "skipped 2 of 29 rows: 2 that repeat the header (lines 11, 21)" in caplog.text


@pytest.mark.parametrize("missing", [r"\N", "N/A", "n/a", "#N/A", "-nan", "NULL", ""])
def test_what_programs_write_for_no_label_is_no_class(read, caplog, missing):
    assert read(csv("text,label", [("good", "pos"), ("so so", missing), ("bad", "neg")])) == [("good", "pos"), ("bad", "neg")]
    assert "1 without a label (line 3)" in caplog.text


def test_a_list_of_one_label_is_the_label(read, caplog):
    rows = [{"text": "good", "label": ["pos"]}, {"text": "so", "label": []}, {"text": "bad", "label": ["neg"]}]
    text = "".join(json.dumps(row) + "\n" for row in [*rows, {"text": "both", "label": ["pos", "neg"]}])
    assert read(text, "table.jsonl") == [("good", "pos"), ("bad", "neg")]
    assert "1 without a label (line 2), 1 with a list or an object for the label (line 4)" in caplog.text
    with pytest.raises(FormatError, match="several labels of a text are not supported"):
        read(text, "table.jsonl", strict=True)


def test_quotes_behind_a_backslash(read):
    rows = [("so, so", "pos"), (r"a \"good\" one, really", "neg"), (r"C:\new \"", "neg")]
    expected = [("so, so", "pos"), ('a "good" one, really', "neg"), ('C:\\new "', "neg")]
    assert read(csv("text,label", rows)) == expected
    assert read(csv("text,label", rows) + 'a "bad" row",neg\r\n')[:3] == expected
    assert read(csv("text,label", [("so, so", "pos"), ("C:\\", "neg")])) == [("so, so", "pos"), ("C:\\", "neg")]


def test_messages_do_not_repeat_long_texts(read):
    with pytest.raises(UsageError) as caught:
        read(",".join(f"a clause of a long text that is in one line {number} " * 5 for number in range(1000)))
    assert len(str(caught.value)) < 1500 and "980 more" in str(caught.value)


def test_a_file_without_labels_is_for_predict(read):
    with pytest.raises(FormatError, match="texts without labels are for `predict`"):
        read("text\ngood\nbad\n")


def test_json_lines_have_keys_and_no_header(read, caplog):
    rows = [{"body": text, "mood": label, "id": number} for number, (text, label) in enumerate(ROWS)]
    assert read("".join(json.dumps(row) + "\n" for row in rows), "table.jsonl") == ROWS
    assert caplog.messages[0].endswith(
        "table.jsonl: keys by their content: text: 'body', label: 'mood' (not used: id; if that is wrong, give text, label)"
    )
