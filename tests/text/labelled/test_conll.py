"""TaggedSentence sentences: columns, BMES and CoNLL-U."""

import gzip
import json
import lzma

import pytest

from polyseme.base.errors import FormatError, UsageError
from polyseme.metrics.spans import spans
from polyseme.text.labelled.conll import TaggedSentence, read_conll
from tests.analysis.real import real

COLUMNS = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\n# NN O O\n\n \n-DOCSTART- -X- O O\nPeter\tNNP\tI-NP\tI-PER\n"
UNIVERSAL = (
    "# text = Vámonos al mar\n"
    "1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tVamos\tir\tVERB\tV\tMood=Imp\t0\troot\t_\t_\n"
    "2\tnos\tnosotros\tPRON\tP\t_\t1\tobj\t_\t_\n"
    "2.1\tgone\tgo\tVERB\tV\t_\t_\t_\t1:conj\t_\n"
    "3\tpor fin\tpor fin\tADV\tR\t_\t1\tadvmod\t_\tSpaceAfter=No\n"
    "\n"
    "# a comment\n"
    "1\t#\t#\tSYM\tS\t_\t0\troot\t_\t_\n"
)


@pytest.fixture
def write(tmp_path):
    def call(text: str, name: str = "file.txt"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return call


def test_ideographic_spaces_separate_where_nothing_else_does(write):
    expected = [TaggedSentence(["患", "者", "\u3000", "\u3000"], ["O", "B-X", "O", "O"])]
    assert read_conll(write("患\u3000O\n者\u3000\u3000B-X\n\u3000 O\n\u3000\tO\n")) == expected
    assert read_conll(write("a\u3000b O\nc B-X\n")) == [TaggedSentence(["a\u3000b", "c"], ["O", "B-X"])]


def test_a_line_of_any_white_space_ends_a_sentence(write):
    expected = [TaggedSentence(["患", "者"], ["O", "B-X"]), TaggedSentence(["好"], ["O"])]
    for separator in (" ", "\t", "\u3000"):
        lines = [f"患{separator}O", f"者{separator}B-X", "\u3000", f"好{separator}O", " \u3000\u3000", "\u00a0"]
        assert read_conll(write("\n".join(lines))) == expected
    first, second = UNIVERSAL.split("\n\n")
    assert read_conll(write(f"\u3000\n{first}\n\u3000\n{second}")) == read_conll(write(UNIVERSAL))


def test_columns(write):
    path = write(COLUMNS)
    assert read_conll(path) == [TaggedSentence(["EU", "#"], ["I-ORG", "O"]), TaggedSentence(["Peter"], ["I-PER"])]
    assert [sentence.tags for sentence in read_conll(path, column=1)] == [["NNP", "NN"], ["NNP"]]


def test_documents(write):
    path = write(COLUMNS + "\nran VBD O O\n\n-DOCSTART- -X- O O\n\nTo TO O O\n")
    assert [sentence.document for sentence in read_conll(path)] == [1, 2, 2, 3]
    path = write(
        "# newdoc id = a\n" + UNIVERSAL + "\n#newdoc\n# newdocument is another word\n1\t.\t.\tPUNCT\t.\t_\t0\troot\t_\t_\n"
    )
    assert [sentence.document for sentence in read_conll(path)] == [1, 1, 2]
    assert [sentence.document for sentence in read_conll(write("a A\n\nb B\n"))] == [0, 0]
    lines = UNIVERSAL.splitlines()
    inside = read_conll(write("\n".join([*lines[:3], "# newdoc", *lines[3:]])))  # where it should not stand
    assert [(len(sentence.words), sentence.document) for sentence in inside] == [(3, 0), (1, 1)]


def test_characters(write):
    path = write("\ufeff吴 B-NAME\r\n重 E-NAME\r\n\r\n， O\r\n")
    assert read_conll(path) == [TaggedSentence(["吴", "重"], ["B-NAME", "E-NAME"]), TaggedSentence(["，"], ["O"])]


def test_universal_dependencies_by_content(write):
    path = write(UNIVERSAL, "no-matter.what")
    assert read_conll(path) == [
        TaggedSentence(["Vamos", "nos", "por fin"], ["VERB", "PRON", "ADV"]),
        TaggedSentence(["#"], ["SYM"]),
    ]
    assert read_conll(path, column="deprel")[0].tags == ["root", "obj", "advmod"]
    assert read_conll(path, column="XPOS")[0].tags == ["V", "P", "R"]
    assert read_conll(path, column=6)[0].tags == ["0", "1", "1"]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_packed(tmp_path, pack):
    path = tmp_path / "plain.conll"
    path.write_bytes(pack(COLUMNS.encode()))
    assert len(read_conll(path)) == 2


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a O\nb\n", 2, "has one column, 'b'; expected a word and at least one tag"),
        ("a X O\n\nb O\n", 3, "has 2 columns; expected 3 as in line 1"),
        (UNIVERSAL + "2\tshort\n", 10, "has 2 columns, the first '2'; expected 10 separated by tabs"),
        (UNIVERSAL.replace("2\tnos", "two\tnos"), 4, "the first 'two'"),
    ],
)
def test_bad_lines(write, text, line, what):
    with pytest.raises(FormatError, match=rf"file\.txt:{line}: .*{what}"):
        read_conll(write(text))


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"a O\n\xff O\n")
    with pytest.raises(FormatError, match="a:2: is not UTF-8"):
        read_conll(path)


def test_nothing_to_read(write):
    with pytest.raises(FormatError, match="has no sentences"):
        read_conll(write("\n-DOCSTART- O\n"))


def test_columns_that_are_not_there(write):
    with pytest.raises(FormatError, match=r":3: has 4 columns; column=4 does not exist"):
        read_conll(write(COLUMNS), column=4)
    with pytest.raises(UsageError, match="columns have no names"):
        read_conll(write(COLUMNS), column="upos")
    with pytest.raises(UsageError, match="did you mean 'upos'"):
        read_conll(write(UNIVERSAL), column="upso")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sentences", "words", "names"),
    [  # as published with the data
        ("pos_ud_english_ewt/en_ewt-ud-test.conllu.gz", 2077, 25094, None),
        ("ner_conll2003_en/eng.testb", 3453, 46435, 5648),
        ("ner_resume_zh/test.char.bmes", 477, 15100, 1630),
        pytest.param("ner_msra_zh/msra.test.bio.gz", 4631, 172601, 6192, marks=pytest.mark.slow),  # large, read like eng.testb
    ],
)
def test_real_data(name, sentences, words, names):
    found = read_conll(real(name))
    assert (len(found), sum(len(sentence.words) for sentence in found)) == (sentences, words)
    if names is not None:
        assert sum(len(spans(sentence.tags)) for sentence in found) == names


@pytest.mark.parametrize("start", [0, 1])
def test_column_of_word_numbers(write, caplog, start):
    rows = [["Ann\tB-PER", "saw\tO", "Bo\tB-PER"], ["Go\tO"], ["It\tO", "is\tO"]]
    text = "\n\n".join("\n".join(f"{number}\t{row}" for number, row in enumerate(each, start)) for each in rows)
    path = write(text)
    assert [sentence.words for sentence in read_conll(path)] == [["Ann", "saw", "Bo"], ["Go"], ["It", "is"]]
    assert [sentence.tags for sentence in read_conll(path)] == [["B-PER", "O", "B-PER"], ["O"], ["O", "O"]]
    assert "the second is read as the words" in caplog.text
    assert read_conll(path, column=1)[0] == TaggedSentence([str(start + n) for n in range(3)], ["Ann", "saw", "Bo"])


@pytest.mark.parametrize("text", ["1 CD O\n2 CD O\n4 CD O\n", "1 O\n2 O\n", "1 CD O\n\n1 CD O\n"])
def test_numbers_as_words(write, text):
    assert read_conll(write(text))[0].words[0] == "1"


@pytest.mark.parametrize("names", [("tokens", "tags"), ("words", "ner_tags"), ("tokens", "labels")])
def test_json_lines(write, names):
    rows = [(["Ann", "ran"], ["B-PER", "O"]), ([], []), (["Go"], ["O"])]
    lines = [dict(zip(names, row, strict=True)) for row in rows]
    expected = [TaggedSentence(["Ann", "ran"], ["B-PER", "O"]), TaggedSentence(["Go"], ["O"])]
    path = write("\n".join(map(json.dumps, lines)) + "\n")
    assert read_conll(path) == expected == read_conll(path, column=names[1])
    assert [sentence.lines for sentence in read_conll(path)] == [[1, 1], [3]]
    assert read_conll(write(json.dumps(lines, indent=1), "array.json")) == expected


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("shape", ["columns", "field", "one"])
def test_a_json_document(write, indent, shape):
    rows = [{"tokens": ["Ann", "ran"], "tags": ["B-PER", "O"]}, {"tokens": ["Go", "on"], "tags": ["O", "O"]}]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    document = {"columns": columns, "field": {"source": "ours", "sentences": rows}, "one": rows[0]}[shape]
    expected = [TaggedSentence(row["tokens"], row["tags"]) for row in (rows[:1] if shape == "one" else rows)]
    assert read_conll(write(json.dumps(document, indent=indent))) == expected


def test_comments_before_sentences(write, caplog):
    text = "#\tour own text\t[1]\n1\tAnn\tB-PER\tO\n2\tran\tO\tB-OTH\n\n# two\n# more\n1\t#\tO\tO\n2\tx\tO\tO\n"
    sentences = read_conll(write(text), strict=False)
    assert sentences == [TaggedSentence(["Ann", "ran"], ["O", "B-OTH"]), TaggedSentence(["#", "x"], ["O", "O"])]
    assert sentences[1].lines == [7, 8] and "3 lines that begin with # are comments" in caplog.text
    with pytest.raises(FormatError, match="has 4 columns; expected 5 as in line 1"):
        read_conll(write(text), strict=True)


def test_documents_of_plain_columns(write, caplog):
    text = "# newdoc id = a\nAnn B-PER\nran O\n\n# sent_id = 2\nBob B-PER\nran O\n\n#newdoc\nGo O\non O\n"
    sentences = read_conll(write(text), strict=False)
    assert [(each.words[0], each.document) for each in sentences] == [("Ann", 1), ("Bob", 1), ("Go", 2)]
    assert "3 lines that begin with # are comments, 2 of them the beginning of a document" in caplog.text


@pytest.mark.parametrize("comment", ["# id 6bff\tdomain=en", "# a longer comment on this sentence", "#"])
def test_comments_as_wide_as_the_words(write, comment):
    text = "".join(f"{comment}\n{word} _ _ {tag}\nran _ _ O\n\n" for word, tag in [("Ann", "B-PER"), ("#1", "O")])
    assert [each.words for each in read_conll(write(text), strict=False)] == [["Ann", "ran"], ["#1", "ran"]]


def test_a_hash_may_be_a_word(write, caplog):
    text = "# O\nwin O\n\n#win B-TAG\nnow O\n"
    assert [each.words for each in read_conll(write(text), strict=False)] == [["#", "win"], ["#win", "now"]]
    assert not caplog.messages


def test_several_columns_of_span_tags(write, caplog):
    text = "Ann NNP B-NP B-PER\nran VBD B-VP O\n"
    assert read_conll(write(text))[0].tags == ["B-PER", "O"]
    assert "columns 2 and 3 have tags of spans; the last is read, column=2 reads another" in caplog.text
    caplog.clear()
    assert read_conll(write(text), column=2)[0].tags == ["B-NP", "B-VP"]
    assert read_conll(write("Ann NNP B-PER\nran VBD O\n")) and not caplog.messages


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"tokens": ["Ann", "ran"], "ner_tags": [1, 0]}', "the tag 1, which is not a name; write names"),
        ('{"tokens": ["Ann", "ran"], "tags": ["O"]}', "2 tokens and 1 tags"),
        ('{"text": "Ann ran", "names": []}', r"no list of words \(fields: text, names\); expected"),
        ('{"tokens": ["Ann"], "pps": ["O"]}', "no list of tags"),
    ],
)
def test_json_lines_without_tags(write, line, message):
    for strict in (True, False):
        with pytest.raises(FormatError, match=message):
            read_conll(write(line), strict=strict)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Ann/B-PER saw/O Bo/B-PER\nGo/O on/O ./O\n", "'Ann/B-PER', on each line: separate them at '/'; expected a word"),
        ("Ann_NNP saw_VBD\nGo_VB on_RP\n", "separate them at '_'"),
        ("Sentence #,Word,POS,Tag\nSentence: 1,Ann,NN,B-PER\n,saw,VB,O\n", "seems to be CSV .*an empty line between sentences"),
        ("Ann,B-PER\nsaw,O\n\nGo,O\n", "seems to be CSV"),
    ],
)
def test_other_shapes(write, text, message):
    with pytest.raises(FormatError, match=message):
        read_conll(write(text), strict=False)


def test_a_table_of_texts_is_named_by_its_suffix(tmp_path):
    rows = 'Ticket;Review Text;Label\n1;"The router drops\nthe line";network\n2;My invoice is wrong;billing\n'
    for name in ("a.csv", "a.csv.txt"):
        (tmp_path / name).write_text(rows)
        with pytest.raises(FormatError, match=r"seems to be CSV \(it begins with 'Ticket;Review Text;Label'\)"):
            read_conll(tmp_path / name, strict=False)
    (tmp_path / "b.csv").write_text(", O\nAnn B-PER\n\nran O\n".replace(" ", "\t"))
    assert len(read_conll(tmp_path / "b.csv", strict=False)) == 2


@pytest.mark.parametrize("header", ["token\tlabel", "Word\tTag"])
def test_a_header_of_columns_is_no_sentence(tmp_path, caplog, header):
    path = tmp_path / "a.tsv"
    path.write_text(f"{header}\nAnn\tB-PER\nran\tO\n\nBob\tB-PER\n")
    assert [each.words for each in read_conll(path, strict=False)] == [["Ann", "ran"], ["Bob"]]
    assert f"the first line names the columns ({', '.join(header.split())})" in caplog.text
    path.write_text("Word\tO\nof\tO\nGod\tB-X\n")
    assert read_conll(path, strict=False)[0].words == ["Word", "of", "God"]


def test_one_long_line_is_refused_at_once(tmp_path):
    (tmp_path / "a.txt").write_text("A long text . " * 100_000)
    with pytest.raises(FormatError, match=r"seems to be plain text \(line 1 has more than 20,000 characters\)"):
        read_conll(tmp_path / "a.txt", strict=False)


NAMED = "sent\tpos\tword\tlemma\n1\tNOUN\tdogs\tdog\n1\tVERB\tran\trun\n\n2\tNOUN\tcats\tcat\n2\tVERB\tsat\tsit\n"


@pytest.mark.parametrize(
    "options", [{"column": "pos"}, {"column": "POS", "word_column": "word", "strict": True}, {"column": 1, "word_column": 2}]
)
def test_columns_of_words_and_tags_by_name_and_number(tmp_path, options):
    (tmp_path / "a.tsv").write_text(NAMED)
    sentences = read_conll(tmp_path / "a.tsv", **{"strict": False, **options})
    assert [(each.words, each.tags) for each in sentences] == [
        (["dogs", "ran"], ["NOUN", "VERB"]),
        (["cats", "sat"], ["NOUN", "VERB"]),
    ]


def test_one_column_for_words_and_tags_is_refused(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("NOUN\tdogs\nVERB\tran\n")
    with pytest.raises(UsageError, match=r"column 0 is read as the words and as their tags: column names that of the tags"):
        read_conll(path, column=0)
    assert read_conll(path, column=0, word_column=1)[0].words == ["dogs", "ran"]
    with pytest.raises(UsageError, match=r"its columns have no names: word_column='word' must be a number"):
        read_conll(path, word_column="word")
    with pytest.raises(FormatError, match=r"has 2 columns; word_column=5 does not exist"):
        read_conll(path, word_column=5)


def test_a_short_row_without_a_word_spoils_its_sentence_only(tmp_path, caplog):
    path = tmp_path / "a.conll"
    path.write_text("1 Ann B-PER\n2 ran O\n\n" * 10 + "1 Cy B-PER\nran O\n")
    assert [each.words for each in read_conll(path, strict=False)] == [["Ann", "ran"]] * 10
    assert "1 with other than 3 columns (line 32)" in caplog.text
    path.write_text("x NN Ann B-PER\ny VB ran O\n\nran O\n")
    assert [each.words for each in read_conll(path, word_column=2, strict=False)] == [["Ann", "ran"]]


def test_rows_with_more_columns_than_others_are_read_and_reported_once(tmp_path, caplog):
    path = tmp_path / "a.conll"
    path.write_text("the O\nAnn B-PER\n\n" * 5 + "the quick O\nfox O\n\nin New York O\n")
    assert [each.words for each in read_conll(path, strict=False)][-2:] == [["the", "fox"], ["in"]]
    told = (
        "2 lines with other than 2 columns; the first is line 16, 'the quick O', and is read as the word 'the' with the tag 'O'"
    )
    assert caplog.messages == [f"{path}: {told}: correct it if that is wrong"]
    with pytest.raises(FormatError, match=r"a\.conll:16: has 3 columns; expected 2 as in line 1"):
        read_conll(path)


def test_a_column_of_words_counted_from_the_end(tmp_path, caplog):
    (tmp_path / "a.conll").write_text("B-PER Ann B-PER\nO ran O\n")
    assert read_conll(tmp_path / "a.conll", word_column=-2)[0].words == ["Ann", "ran"]
    assert not caplog.records  # no other column behind the words has tags


@pytest.mark.parametrize("options", [{}, {"column": "tag"}, {"column": "tag", "strict": True}])
def test_joined_files_repeat_their_header(tmp_path, options):
    path = tmp_path / "a.tsv"
    path.write_text("word\ttag\nAnn\tB-PER\nran\tO\nword\ttag\nBob\tB-PER\n")
    sentences = read_conll(path, **{"strict": False, **options})
    assert [each.words for each in sentences] == [["Ann", "ran"], ["Bob"]]


@pytest.mark.parametrize("first", ["Token\tS-MISC", "Form\tCase=Nom"])
def test_a_tag_that_no_other_word_has_makes_no_header(tmp_path, first):
    (tmp_path / "a.tsv").write_text(f"{first}\nand\tO\nfunction\tO\n")
    assert read_conll(tmp_path / "a.tsv", strict=False)[0].words == [first.split()[0], "and", "function"]


def test_strict_takes_names_from_the_first_line_only(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("# text\nword\ttag\nAnn\tB-PER\n")
    assert read_conll(path, column="tag", strict=False)[0].words == ["Ann"]
    with pytest.raises(UsageError, match="its first line names no column of words"):
        read_conll(path, column="tag", strict=True)


def test_numbers_of_columns_are_no_fields_of_json(tmp_path, caplog):
    (tmp_path / "a.json").write_text('{"tokens": ["Ann", "ran"], "tags": ["B-PER", "O"]}\n')
    assert read_conll(tmp_path / "a.json", column=1)[0].tags == ["B-PER", "O"]
    assert "column=1 is not used" in caplog.text


@pytest.mark.parametrize("name", ["lemmas", "mine"])
def test_a_field_of_words_in_json_by_name(tmp_path, name):
    path = tmp_path / "a.json"
    others = '"tokens": ["Ann", "ran"], ' if name == "lemmas" else ""
    path.write_text(f'{{{others}"{name}": ["ann", "run"], "tags": ["B-PER", "O"]}}\n')
    (sentence,) = read_conll(path, word_column=name)
    assert (sentence.words, sentence.tags) == (["ann", "run"], ["B-PER", "O"])
    with pytest.raises(FormatError, match=r"has no list 'tokenz'.*word_column names the field of the words"):
        read_conll(path, word_column="tokenz")


@pytest.mark.parametrize(
    ("header", "options"), [("字\t标签", {}), ("surface\ttag", {"word_column": "surface"}), ("surface\ttag", {"column": "Tag"})]
)
def test_other_names_of_columns(tmp_path, header, options):
    (tmp_path / "a.tsv").write_text(f"{header}\n吴\tB-PER\n说\tO\n", encoding="utf-8")
    (sentence,) = read_conll(tmp_path / "a.tsv", strict=False, **options)
    assert (sentence.words, sentence.tags) == (["吴", "说"], ["B-PER", "O"])
