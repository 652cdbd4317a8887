"""Files of the other readers with bad parts: skipped and counted, or an error that names all of them."""

import json

import pytest

from polyseme.base.errors import FormatError
from polyseme.tasks.reading import Reading
from polyseme.tasks.reading_config import ReadingConfig
from polyseme.text.labelled.choices import read_choices
from polyseme.text.labelled.conll import read_conll
from polyseme.text.labelled.coreference import read_coreference
from polyseme.text.labelled.roles import read_roles
from polyseme.text.labelled.trees import read_trees

QUESTION = '{"question": "Who?", "choices": ["a", "b"], "answer": 0}'
DOCUMENT = '{"sentences": [["Ann", "hurt", "herself"]], "clusters": [[[0, 0], [2, 2]]]}'
TAGGED = '{"tokens": ["Ann"], "tags": ["B-PER"]}'
HALF = TAGGED.replace("Ann", "\\ud800")  # of a surrogate pair
WORD = "d 0 0 Ann NNP * - - - - * (0)\n"
CASES = {
    "choices": (read_choices, f'{QUESTION}\n{{"question": 1}}\n{QUESTION}\nno json\n', 2, [2, 4]),
    "trees": (read_trees, "(3 (2 It) (3 works))\n(3 (2 It)\n(9 (2 It) (3 works))\n", 1, [2, 3]),
    "roles, json": (read_roles, '{"words": ["a"], "predicates": []}\n{"words": 3}\n{}\n', 1, [2, 3]),
    "roles, lines": (read_roles, "1 Ann left ||| B-A0 B-V\n5 Ann left ||| B-A0 B-V\nx\n", 1, [2, 3]),
    "roles, columns": (read_roles, "Ann - (A0*)\nleft leave (V*)\n\nAnn - (A0*\nleft leave (V*)\n\nAnn -\nleft\n", 1, [5, 8]),
    "coreference": (read_coreference, f"{DOCUMENT}\n{{}}\n{DOCUMENT.replace('2, 2', '2, 9')}\n", 1, [2, 3]),
    "coreference, columns": (read_coreference, f"{WORD}\n#\n{WORD.replace('(0)', '(0')}\n#\nAnn\n", 1, [4, 7]),
    "tags, json": (read_conll, f"{TAGGED}\n{HALF}\n{TAGGED}\nno json\n", 2, [2, 4]),
    "conll-u": (
        read_conll,
        "1\ta\ta\tX\t_\t_\t_\t_\t_\t_\n\n1\ta\n2\tb\n\n1\tb\tb\tY\t_\t_\t_\t_\t_\t_\n\nx\n",
        2,
        [3, 4, 8],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_parts_are_skipped_and_counted(tmp_path, caplog, name):
    read, text, kept, lines = CASES[name]
    (tmp_path / "a").write_text(text)
    assert len(read(tmp_path / "a", strict=False)) == kept
    assert len(caplog.messages) == 1 and f"a: skipped 2 of {kept + 2} " in caplog.messages[0]
    assert f"lines {', '.join(map(str, lines))}" in caplog.messages[0]
    others = ", ".join(map(str, lines[1:]))
    with pytest.raises(FormatError, match=rf"a:{lines[0]}: .*\(and {len(lines) - 1} more bad \w+: lines? {others}\)$"):
        read(tmp_path / "a")


def test_roles_that_begin_with_i(tmp_path, caplog):
    (tmp_path / "a").write_text("2 Ann Lee left ||| I-A0 I-A0 B-V\n1 She left ||| B-A0 I-V\n")
    found = read_roles(tmp_path / "a", strict=False)
    assert [each.predicates[0].tags for each in found] == [["B-A0", "I-A0", "B-V"], ["B-A0", "B-V"]]
    assert "repaired 2 tags as the CoNLL scorer reads them" in caplog.text


def test_questions_about_paragraphs(tmp_path, caplog):
    good = {"question": "Who?", "answers": [{"text": "Ann", "answer_start": 6}]}
    qas = [good, {"question": "Who else?"}, {"answers": []}, {"question": "Where?", "answers": [{"text": 3}]}]
    data = [{"paragraphs": [{"context": "It is Ann.", "qas": qas}, {"qas": []}, "text"]}, {"title": "none"}]
    (tmp_path / "a").write_text(json.dumps({"data": data}))
    assert len(Reading.read(tmp_path / "a", ReadingConfig())) == 1
    assert "skipped 5 of 7 questions" in caplog.messages[0] and "in data[0].paragraphs[0].qas[2]" in caplog.messages[0]
    assert "skipped 1 of 2 questions without 'answers', such as 'Who else?'" in caplog.messages[1]
    with pytest.raises(FormatError, match=r"data\[0\]\.paragraphs\[0\]\.qas\[2\] has no 'question'"):
        Reading.read(tmp_path / "a", ReadingConfig(strict=True))
