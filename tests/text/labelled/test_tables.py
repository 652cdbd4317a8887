"""Labelled texts and pairs from TSV, CSV, JSON lines and lines of a label and a text."""

import csv
import gzip
import json
import lzma
from collections import Counter

import pytest

from polyseme.base.errors import FormatError, PolysemeError, UsageError
from polyseme.text.labelled.tables import Table, TableRow, first_labels, read_table
from tests.analysis.real import real


@pytest.fixture
def write(tmp_path):
    def call(text: str | bytes, name: str = "table.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return call


def short(found: Table) -> list[tuple]:
    return [(row.first, row.second, row.label) for row in found.rows]


def test_tsv_takes_quotes_as_they_are(write):
    path = write('\ufeffsentence\tlabel\r\n"So good\t1\r\n\r\nso "bad"\t 0 \r\n')
    assert read_table(path) == Table([TableRow('"So good', None, "1", 2), TableRow('so "bad"', None, "0", 4)], [])


def test_csv_over_several_lines(write):
    path = write('text,label\n"one, ""two""\nthree",a\n\nfour "4",b\n', "t.csv")
    assert read_table(path).rows == [TableRow('one, "two"\nthree', None, "a", 2), TableRow('four "4"', None, "b", 5)]


@pytest.mark.parametrize(("name", "separator", "strict"), [("t.csv", ",", True), ("t.csv", ";", False), ("t.tsv", "\t", False)])
def test_a_cell_may_be_a_long_document(write, name, separator, strict):
    document = 'A line, with a "quote"; and more.\n' * 6000 + "end"
    assert len(document) > 200_000
    quoted = document.replace('"', '""')
    path = write(f'label{separator}text\na{separator}short one\nb{separator}"{quoted}"\na{separator}short too\n', name)
    before = csv.field_size_limit(1 << 17)  # Python's own
    try:
        rows = read_table(path, strict=strict).rows
    finally:
        csv.field_size_limit(before)
    assert [(row.first, row.label) for row in rows] == [("short one", "a"), (document, "b"), ("short too", "a")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("semicolons.csv", 'text;label\n"one; ""two"", too";a\nfour, 4;b\n'),
        ("quoted.csv", '"text";"label"\n"one; ""two"", too";"a"\n"four, 4";"b"\n'),
        ("declared.csv", 'sep=;\r\ntext;label\r\n"one; ""two"", too";a\r\nfour, 4;b\r\n'),
        ("declared.txt", 'sep=|\ntext|label\n"one; ""two"", too"|a\nfour, 4|b\n'),
        ("declared-tabs.csv", 'sep=\t\ntext\tlabel\n"one; ""two"", too"\ta\nfour, 4\tb\n'),
        ("commas-in-a-name.csv", 'text;label;"more, if any"\n"one; ""two"", too";a;\nfour, 4;b;\n'),
        ("bars.csv", 'text|label\n"one; ""two"", too"|a\nfour, 4|b\n'),
        ("bars.txt", 'text|label\n"one; ""two"", too"|a\nfour, 4|b\n'),
        ("no-header.csv", '"one; ""two"", too"|a\nfour, 4|b\n'),
        ("commas.tsv", 'text,label\n"one; ""two"", too",a\n"four, 4",b\n'),
        ("semicolons.tsv", 'text;label\n"one; ""two"", too";a\nfour, 4;b\n'),
        ("commas.txt", 'text,label\n"one; ""two"", too",a\n"four, 4",b\n'),
    ],
)
def test_csv_that_other_signs_divide(write, name, text):
    columns = {"text": 0, "label": 1} if name.startswith("no-header") else {}
    assert short(read_table(write(text, name), **columns)) == [('one; "two", too', None, "a"), ("four, 4", None, "b")]


def test_one_column_of_texts_with_commas_stays_one(write):
    found = read_table(write("Yes, so\nNo, not\n", "t.tsv"), text=0, labelled=False)
    assert short(found) == [("Yes, so", None, None), ("No, not", None, None)]


def test_commas_go_before_semicolons(write):
    assert short(read_table(write("text,label;old\nyes; no,a\n", "t.csv"), label=1, text=0, header=True)) == [
        ("yes; no", None, "a")
    ]


def test_lines_are_counted_behind_what_says_the_sign(write):
    assert [row.where for row in read_table(write("\nsep=;\ntext;label\na;x\n\nb;y\n", "t.csv")).rows] == [4, 6]
    with pytest.raises(FormatError, match=r":3: begins a row that is not CSV .* quote texts with ';' or quotes"):
        read_table(write('sep=;\ntext;label\n"b"c;y\n', "t.csv"))


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ('"He said ""hi"""', 'He said "hi"'),
        ('"""Hi,"" he said."', '"Hi," he said.'),
        ('He said "hi"', 'He said "hi"'),
        ('"So good', '"So good'),
        ('"A whole quotation."', '"A whole quotation."'),
        ('"Hi," he said, "you."', '"Hi," he said, "you."'),
        ('""twice""', '""twice""'),
        ('a ""b"" c', 'a ""b"" c'),
    ],
)
def test_tsv_cells_that_a_writer_quoted(write, cell, expected):
    assert short(read_table(write(f"text\tlabel\n{cell}\t1\n"))) == [(expected, None, "1")]


def test_tsv_with_line_ends_in_quotes_is_read_as_csv(write):
    path = write('text\tlabel\n"one\n""two""\tthree"\ta\nfour "4"\tb\n', "t.tsv")
    with pytest.raises(FormatError, match=r":2: has 1 column and line 1 has 2.*use format='csv'"):
        read_table(path)
    assert short(read_table(path, format="csv")) == [('one\n"two"\tthree', None, "a"), ('four "4"', None, "b")]
    path = write('"text"\t"label"\n"a"\t"x"\n')
    with pytest.raises(UsageError, match=r"for quoted cells add format='csv'"):
        read_table(path)
    assert short(read_table(path, format="csv")) == [("a", None, "x")]


def test_jsonl_sets_pairs_without_agreement_aside(write):
    rows = [
        {"gold_label": "neutral", "sentence1": "A", "sentence2": "B", "sentence1_binary_parse": "( A )", "labels": ["x"]},
        {"sentence2": "D", "sentence1": "C", "gold_label": "-"},
        {"gold_label": 1, "sentence1": "E", "sentence2": "F"},
    ]
    found = read_table(write("\n".join(map(json.dumps, rows))))
    assert short(found) == [("A", "B", "neutral"), ("E", "F", "1")]
    assert found.skipped == [TableRow("C", "D", "-", 2)]


def test_minus_is_a_class_of_single_texts(write):
    found = read_table(write("text\tlabel\ngood\t+\nbad\t-\n"))
    assert (len(found.rows), found.skipped) == (2, [])


def test_lines_of_a_label_and_a_text(write):
    assert short(read_table(write("0 so , so\n1 fine\n"))) == [("so , so", None, "0"), ("fine", None, "1")]
    assert read_table(write("KIND:fine Why so ?\nOTHER And ?\n"), format="lines").rows[1] == TableRow("And ?", None, "OTHER", 2)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
@pytest.mark.parametrize(("name", "text"), [("a.tsv.gz", "text\tlabel\na\tb\n"), ("a.csv.xz", "text,label\na,b\n")])
def test_packed(write, pack, name, text):
    assert short(read_table(write(pack(text.encode()), name))) == [("a", None, "b")]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("sentence1\tsentence2\tlabel", ("0", "1", "2")),
        ("label\ttext_a\ttext_b", ("1", "2", "0")),
        ("label\ttext_a\tsource", ("1", None, "0")),
        ("premise\thypothesis\tscore", ("0", "1", "2")),
        ("index\tquestion\tsentence\tlabel", ("1", "2", "3")),
        ("pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment", ("1", "2", "4")),
        ("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", ("3", "4", "0")),
        ("similarity\tscore\tsentence1\tsentence2", ("2", "3", "0")),
        ("Label\tText", ("1", None, "0")),
    ],
)
def test_well_known_headers(write, header, expected):
    row = "\t".join(str(number) for number in range(header.count("\t") + 1))
    assert short(read_table(write(f"{header}\n{row}\n"))) == [expected]


def test_columns_by_name_and_number(write):
    path = write("id\tquery\ttitle\tgold\n1\ta\tb\tx\n2\tc\td\ty\n")
    expected = [("a", "b", "x"), ("c", "d", "y")]
    assert short(read_table(path, text="query", second="TITLE", label="gold")) == expected
    assert short(read_table(path, text="query", second=2, label=-1)) == expected
    assert short(read_table(path, text=1, second=2, label=3, header=True)) == expected
    assert short(read_table(path, text="title", labelled=False)) == [("b", None, None), ("d", None, None)]
    assert len(read_table(path, text=1, second=2, label=3, header=False).rows) == 3


def test_without_header(write):
    path = write("src1\t1\t\tThey sang.\nsrc1\t0\t*\tSang they it.\n")
    assert short(read_table(path, text=3, label=1)) == [("They sang.", None, "1"), ("Sang they it.", None, "0")]


def test_rows_without_a_text(write):
    path = write("0 a\n1 \n1 b\n")
    with pytest.raises(
        FormatError, match=r":2: has no text in column text; fill it, or drop the row, or leave out strict to skip it"
    ):
        read_table(path, format="lines")
    assert read_table(path, strict=False, format="lines") == Table(
        [TableRow("a", None, "0", 1), TableRow("b", None, "1", 3)], [TableRow("", None, "1", 2)]
    )


def test_one_column_of_texts(write):
    found = read_table(write("one\ntwo words\n"), format="tsv", text=0, labelled=False)
    assert short(found) == [("one", None, None), ("two words", None, None)]


@pytest.mark.parametrize(
    ("name", "text", "label"),
    [
        ("tabs.csv", "A, b\tx\nC, d\ty\n", 1),
        ("a-tab-in-a-text.csv", "A\tb,x\nC,y\n", 1),
        ("commas.txt", "Good,x\nBad,y\n", 1),
        ("commas.tsv", "Good, so\tx\n", 1),
        ("braces.tsv", "{a}\tx\n{b}\ty\n", 1),
        ("one-blank.dat", "Good and,x\nGood or,y\nGood not,x\nBest so,y\n", 1),
    ],
)
def test_kind_by_content(write, name, text, label):
    rows = read_table(write(text, name), text=0, label=label).rows
    assert {row.label for row in rows} <= {"x", "y"}


def test_rows_may_differ_where_nothing_is_read(write):
    path = write("a\tb\t1\na\tb\t2\textra\textra\n")
    assert short(read_table(path, text=0, second=1, label=-1, strict=False)) == [("a", "b", "1"), ("a", "b", "2")]
    with pytest.raises(FormatError, match=r":2: has 5 columns and line 1 has 3.*leave out strict"):
        read_table(path, text=0, second=1, label=2)
    found = read_table(write("a\tb\t1\na\tb\n"), text=0, second=1, label=2, strict=False)
    assert short(found) == [("a", "b", "1")] and found.bad.kinds == {"with fewer columns than 3": [2]}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("text\tlabel\na\tx\nb\n", r":3: has 1 column and line 1 has 2"),
        (
            "text\tlabel\na\tx\n \ty\n",
            r":3: has no text in column text; fill it, or drop the row, or leave out strict to skip it",
        ),
        ("text\tlabel\na\tx\nb\t\n", r":3: has no label in column label; fill it"),
        ("sentence1\tsentence2\tlabel\na\t\tx\n", r":2: has no second text in column sentence2"),
        ('{"text": "a", "label": 1}\n{"text": "b"}\n', r":2: has no label in column label"),
        ('{"text": "a", "label": null}\n', r":1: has no label in column label"),
        ('{"text": ["a"], "label": 1}\n', r":1: has a list or an object in column text"),
        ('{"text": "a", "label": 1}\n[1]\n', r":2: is '\[1\]'; expected one object"),
        ('{"text": "a", "label": 1}\n{"text"\n', r":2: is not JSON \(.*expected one object"),
        ('{"text": "\\ud83d", "label": 1}\n', r":1: has half of a surrogate pair"),
        ('text,label\na,x\n"b,y\n', r":3: begins a row that is not CSV"),
        ('text,label\n"b"c,y\n', r":2: begins a row that is not CSV"),
        ("text,label\na, b,x\n", r":2: has 3 columns and line 1 has 2"),
        ("0 a\n1\n", "has no known table format"),
        ("sep=~\ntext;label\na;x\n", r":2: has one column, 'text;label'; expected a text and a label, separated by tabs"),
        ("text\tlabel\n", "has a header and no rows"),
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("Good , so\nGood , no\nGood , or\nGood , at\n", "may be CSV or lines.*give format: tsv, csv, jsonl, lines"),
        ("A plain text\nof two lines\n", "has no known table format; give format"),
        ("-DOCSTART- -X-\n\nEU B-ORG\nis O\n", r"like words with their tags, one on each line \('EU B-ORG'\): train `tagging`"),
        ("患\tO\n者\tO\n\n肺\tB-身体\n", "like words with their tags.*; if it is a table, give format"),
        ("中 B\n国 E\n人 S\n", "like words with their tags"),
    ],
)
def test_what_is_wrong_is_told(write, text, says):
    with pytest.raises(FormatError, match=says):
        read_table(write(text))


def test_a_table_of_words_with_tags_is_read_if_its_format_is_given(write):
    path = write("Ann\tB-PER\nruns\tO\nBob\tB-PER\n")
    assert short(read_table(path, text=0, label=1, format="tsv"))[0] == ("Ann", None, "B-PER")
    sizes = write("a shirt\tM\nshirt\tS\ncoat\tL\nhat\tM\n")
    assert short(read_table(sizes, text=0, label=1, header=False))[2] == ("coat", None, "L")


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16", "utf-16-le", "utf-8-sig"])
def test_other_encodings(write, encoding):
    assert short(read_table(write("text\tlabel\r\n很好\t1\r\n".encode(encoding)))) == [("很好", None, "1")]


@pytest.mark.parametrize("name", ["a.json", "a.jsonl.gz"])
def test_an_array_is_no_json_lines(write, name):
    with pytest.raises(FormatError, match=r":1: begins with '\['; expected JSON lines"):
        read_table(write('[\n{"text": "a"}]', name))


def test_a_header_that_is_not_known_is_not_taken_for_a_text(write):
    path = write("query\tgold\na\tx\nb\ty\nc\tx\n")
    with pytest.raises(
        FormatError, match=r":1: may be a header: the label 'gold' occurs nowhere else; give header=True or header=False"
    ):
        read_table(path, text=0, label=1)
    assert len(read_table(path, text=0, label=1, header=True).rows) == 3
    with pytest.raises(FormatError, match="may be a header"):
        read_table(write("query\tgrade\na\t1.5\nb\t2\n"), text=0, label=1)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "no column with a well-known name for the text; give text .for pairs text and second. with one of: query, gold"),
        ({"text": "query"}, "no column with a well-known name for the label; give label with one of: query, gold"),
        ({"text": "queri", "label": "gold"}, "has no column 'queri' for text among 'query', 'gold'"),
        ({"text": "query", "label": "gold", "header": False}, "has no header, so text='query' must be a number.*header=False"),
        ({"text": 2, "label": 1}, "has 2 columns, so text=2 does not exist; give a number from 0 to 1"),
        ({"text": 1, "label": -1}, "must be different columns, not gold, gold"),
        ({"second": 1}, "second=1 needs text; give both or neither"),
        ({"text": 0, "label": 1, "labelled": False}, "and labelled=False exclude each other"),
        ({"format": "tvs"}, "unknown table format 'tvs' .did you mean 'tsv'"),
    ],
)
def test_wrong_questions(write, asked, says):
    with pytest.raises(UsageError, match=says):
        read_table(write("query\tgold\na\tx\n"), **{"header": True, **asked})


def test_columns_in_doubt(write):
    with pytest.raises(UsageError, match="several columns that may be the text"):
        read_table(write("text\treview\tlabel\na\tb\tc\n"))
    known = r":1: is not a known header \(0: 'a b', 1: 'x'\); give columns by number"
    with pytest.raises(UsageError, match=rf"{known}, or by name if it is a header: text=0 label=1"):
        read_table(write("a b\tx\nc\ty\n"))
    with pytest.raises(UsageError, match="text=0 label=1, for pairs text=0 second=1 label=2"):
        read_table(write("a b\tc\tx\nc\td\ty\n"))
    told = "the text or the label: give text and label, by name or number from 0; its first row: 'a b', 'x'$"
    with pytest.raises(UsageError, match=told):
        read_table(write("a b\tx\nc\ty\n"), pairs=False)
    with pytest.raises(UsageError, match="give text and second and label, by name or number"):
        read_table(write("a b\tc\tx\nc\td\ty\n"), pairs=True)
    with pytest.raises(UsageError, match="several columns 'a'"):
        read_table(write("a\ta\tlabel\nb\tc\td\n"), text="a")


@pytest.mark.parametrize(("header", "asked", "says"), [
    ("when,body\n", {}, r"'when' has dates, 'body' has long values .* the text \(text='body'\)\. .*add a column of labels"),
    ("when,body\n", {"text": "body"}, r"like a label: 'when' has dates\. "),
    ("", {}, r"column 0 \('2024-01-01'\) has dates, column 1 \('This is a message of'\) has .* the text \(text=1\)"),
])  # fmt: skip
def test_dates_and_messages_have_no_label(write, header, asked, says):
    rows = "".join(f"2024-01-0{day},This is a message of day {day} to all\n" for day in range(1, 8))
    with pytest.raises(UsageError, match=says) as error:
        read_table(write(header + rows, "a.csv"), strict=False, **asked)
    assert "label=1" not in str(error.value)


def test_no_such_file(tmp_path):
    with pytest.raises(PolysemeError, match="cannot read"):
        read_table(tmp_path / "none.tsv")


STS = {"text": 5, "second": 6, "label": 4, "strict": False}
COLA = {"text": 3, "label": 1}
NONE = {"labelled": False}
LOOSE = {"strict": False}
REAL = [  # folder, file, rows, skipped, distinct labels and how many the rarest has, columns
    ("sst_en", "sst2.train.tsv", 6920, 0, (2, 3310), {}),
    ("sst_en", "sst2.dev.tsv", 872, 0, (2, 428), {}),
    ("sst_en", "sst2.test.tsv", 1821, 0, (2, 909), {}),
    ("sst_en", "sst5.train.tsv", 8544, 0, (5, 1092), {}),
    ("sst_en", "sst5.dev.tsv", 1101, 0, (5, 139), {}),
    ("sst_en", "sst5.test.tsv", 2210, 0, (5, 279), {}),
    ("sst_en", "sst5.train.phrases.tsv.gz", 159274, 0, None, {}),
    ("glue_sst2_en", "train.tsv.gz", 67349, 0, (2, 29780), {}),
    ("glue_sst2_en", "dev.tsv", 872, 0, (2, 428), {}),
    ("agnews_en_subset", "train_subset.tsv.gz", 10001, 0, (4, 2458), {}),
    ("agnews_en_subset", "test.tsv.gz", 7600, 0, (4, 1900), {}),
    ("sentence_classification_en", "TREC.train.all", 5452, 0, (6, 86), {}),
    ("sentence_classification_en", "TREC.test.all", 500, 0, (6, 9), {}),
    ("sentence_classification_en", "TREC_train.txt", 5452, 0, None, {}),
    ("sentence_classification_en", "TREC_test.txt", 500, 0, None, {}),
    ("sentence_classification_en", "rt-polarity.all", 10662, 0, (2, 5331), {}),
    ("sentence_classification_en", "subj.all", 10000, 0, (2, 5000), {}),
    ("sentence_classification_en", "custrev.all", 3775 - 4, 4, (2, 1368), LOOSE),
    ("sentence_classification_en", "mpqa.all", 10606 - 3, 3, (2, 3312), LOOSE),
    ("glue_cola_en", "train.tsv", 8551, 0, (2, 2528), COLA),
    ("glue_cola_en", "dev.tsv", 1043, 0, (2, 322), COLA),
    ("glue_cola_en", "test_nolabel.tsv", 1063, 0, None, NONE),
    ("chnsenticorp_zh", "train.tsv.gz", 9600, 0, (2, 4798), {}),
    ("chnsenticorp_zh", "dev.tsv.gz", 1200, 0, (2, 590), {}),
    ("chnsenticorp_zh", "test.tsv.gz", 1200, 0, (2, 598), {}),
    ("smp2020_ewect_zh", "train.tsv.gz", 27766, 0, (6, 1220), {}),
    ("smp2020_ewect_zh", "dev.tsv.gz", 2000, 0, (6, 87), {}),
    ("smp2020_ewect_zh", "test.tsv.gz", 5000, 0, (6, 210), {}),
    ("nli_sick_en", "SICK_train.txt", 4500, 0, (3, 665), {}),
    ("nli_sick_en", "SICK_trial.txt", 500, 0, (3, 74), {}),
    ("nli_sick_en", "SICK_test_annotated.txt", 4927, 0, (3, 720), {}),
    ("nli_snli_subset_en", "snli_subset.train.tsv", 4634, 0, (3, 1539), {}),
    ("nli_snli_subset_en", "snli_subset.dev.tsv", 200, 0, (3, 51), {}),
    ("nli_snli_subset_en", "snli_subset.test.tsv", 400, 0, (3, 123), {}),
    ("nli_ocnli_zh", "train.50k.json.gz", 50437, 49, (3, 16476), {}),
    ("nli_ocnli_zh", "train.10k.json.gz", 9985, 15, (3, 3242), {}),
    ("nli_ocnli_zh", "train.3k.json.gz", 2994, 6, (3, 966), {}),
    ("nli_ocnli_zh", "dev.json.gz", 2950, 50, (3, 900), {}),
    ("nli_ocnli_zh", "test.json.gz", 3000, 0, None, NONE),
    ("mrpc_en", "msr-para-train.tsv", 3576, 0, (2, 1169), {}),
    ("mrpc_en", "msr-para-val.tsv", 500, 0, (2, 154), {}),
    ("mrpc_en", "msr-para-test.tsv", 1725, 0, (2, 578), {}),
    ("sts_benchmark_en", "sts-train.csv", 5749, 0, None, STS),
    ("sts_benchmark_en", "sts-dev.csv", 1500, 0, None, STS),
    ("sts_benchmark_en", "sts-test.csv", 1379, 0, None, STS),
    ("glue_rte_en", "train.tsv", 2490, 0, (2, 1241), {}),
    ("glue_rte_en", "dev.tsv", 277, 0, (2, 131), {}),
    ("glue_rte_en", "test_nolabel.tsv", 3000, 0, None, NONE),
    ("pairs_zh", "atec.train_part1.tsv.gz", 39346, 0, (2, 8549), {}),
    ("pairs_zh", "lcqmc.dev.tsv.gz", 8802, 0, (2, 4400), {}),
    ("pairs_zh", "lcqmc.test.tsv.gz", 12500, 0, (2, 6250), {}),
    ("pairs_zh", "bq.dev.csv.gz", 10000, 0, (2, 5000), {}),
    ("pairs_zh", "bq.test.csv.gz", 10000, 0, (2, 5000), {}),
    ("pairs_zh", "afqmc.dev.jsonl.gz", 4316, 0, (2, 1338), {}),
]
SINGLE = ("sst", "agnews", "sentence_", "glue_sst2", "glue_cola", "chnsenticorp", "smp2020")


SLOW = (
    "train.",
    "train.phrases",
    "train.50k",
    "train.10k",
    "train.3k",
    "train_",
    "atec",
    "bq.test",
    "lcqmc.test",
)  # of data whose dev or test file is quick
SLOW_REAL = [pytest.param(*each, marks=pytest.mark.slow if any(name in each[1] for name in SLOW) else ()) for each in REAL]


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "file", "rows", "skipped", "labels", "columns"), SLOW_REAL, ids=lambda each: str(each)[:24])
def test_real(folder, file, rows, skipped, labels, columns):
    found = read_table(real(folder) / file, **columns)
    assert (len(found.rows), len(found.skipped)) == (rows, skipped)
    assert all((row.second is None) == folder.startswith(SINGLE) for row in found.rows)
    counts = Counter(row.label for row in found.rows + found.skipped if row.label != "-")
    if labels is not None:
        assert (len(counts), min(counts.values())) == labels
    if columns is STS:
        assert all(0 <= float(row.label) <= 5 for row in found.rows)
    if file.startswith("TREC_t"):
        coarse = Counter((row.label or "").split(":")[0] for row in found.rows)
        assert len(coarse) == 6 and coarse["ABBR"] == (86 if "train" in file else 9)


def test_lines_may_end_in_cr(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"text,label\rgood film,pos\rbad one,neg\r")
    found = [(row.first, row.label, row.where) for row in read_table(path).rows]
    assert found == [("good film", "pos", 2), ("bad one", "neg", 3)]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.parquet", b"PAR1\x15\x04", "is a Parquet file; save labelled data as CSV, TSV or JSON lines"),
        ("a.xlsx", b"PK\x03\x04rest", "is an Excel file; save labelled data as CSV"),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1", "is an Excel or Word file"),
        ("a.zip", b"PK\x03\x04rest", "is a zip file; use gzip"),
    ],
)
def test_files_that_are_no_text(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(FormatError, match=message):
        read_table(tmp_path / name, strict=False)


def test_a_folder_of_classes(tmp_path):
    (tmp_path / "pos").mkdir()
    with pytest.raises(FormatError, match="is a folder; expected one file with all examples and their labels"):
        read_table(tmp_path)


def test_the_first_labels_of_lists_of_one_are_those_of_the_rows(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"text": "row {score}", "label": ["{score}"]}}\n' for score in ("0.5", "3.5")))
    assert [row.label for row in read_table(path, strict=False).rows] == ["0.5", "3.5"]
    assert first_labels(path, strict=False) == ("label", ["0.5", "3.5"])
