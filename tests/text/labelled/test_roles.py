"""Sentences with predicates: four kinds of files, what is wrong with them by the line, and the real data."""

from __future__ import annotations

import gzip
import json
import lzma
import os
from pathlib import Path

import pytest

from polyseme.base.errors import FormatError
from polyseme.text.labelled.roles import Predicate, RoleSentence, read_roles

SAW, LEAVE = ["B-A0", "B-V", "B-A1", "I-A1"], ["O", "O", "B-A0", "B-V"]
SENTENCE = RoleSentence(["Ann", "saw", "Bob", "leave"], [Predicate(1, SAW), Predicate(3, LEAVE)])
NONE = RoleSentence(["Well", "!"], [])


def as_json(sentence: RoleSentence) -> str:
    predicates = [{"index": one.position, "lemma": "x", "tags": one.tags} for one in sentence.predicates]
    return json.dumps({"id": 7, "words": sentence.words, "predicates": predicates})


LINES = "1 Ann saw Bob leave ||| B-A0 B-V B-A1 I-A1\n3 Ann saw Bob leave ||| O O B-A0 B-V\n"
CONLL_2005 = """\
Ann    NNP  (S(NP*)  *   -     (A0*)  *
saw    VBD  (VP*     *   see   (V*)   *
Bob    NNP  (S*      *   -     (A1*   (A0*)
leave  VB   *)))     *   leave *)     (V*)

Well   UH   (S*      *   -
!      .    *)       *   -
"""
CONLL_2012 = """\
#begin document (bn/x); part 000
bn/x 0 0 Ann   NNP (S* -     -  - Ann (PERSON) (ARG0*)  *       (1)
bn/x 0 1 saw   VBD *   see   01 - Ann *        (V*)     *       -
bn/x 0 2 Bob   NNP *   -     -  - Ann (PERSON) (ARG1*   (ARG0*) -
bn/x 0 3 leave VB  *)  leave 01 - Ann *        *)       (V*)    -

bn/x 0 0 Well  UH  (S* -     -  - Ann *        -
bn/x 0 1 !     .   *)  -     -  - Ann *        -

#end document
"""


def reading(tmp_path: Path, text: str) -> list[RoleSentence]:
    file = tmp_path / "data"
    file.write_text(text, encoding="utf-8")
    return read_roles(file)


def long(sentence: RoleSentence) -> RoleSentence:
    """With the names of roles that CoNLL-2012 has."""
    found = [Predicate(p.position, [tag.replace("-A", "-ARG") for tag in p.tags]) for p in sentence.predicates]
    return RoleSentence(sentence.words, found)


def test_json_lines(tmp_path: Path) -> None:
    found = reading(tmp_path, f"{as_json(SENTENCE)}\n{as_json(NONE)}\n")
    assert found == [SENTENCE, NONE] and found[1].lines == [2, 2]


def test_one_predicate_a_line(tmp_path: Path) -> None:
    found = reading(tmp_path, "\n" + LINES)
    assert found == [RoleSentence(SENTENCE.words, [each]) for each in SENTENCE.predicates]
    assert found[1].lines == [3] * 4
    assert reading(tmp_path, "0 so ||| B-V")[0].predicates == [Predicate(0, ["B-V"])]


def test_columns_of_2005(tmp_path: Path) -> None:
    found = reading(tmp_path, CONLL_2005)
    assert found == [SENTENCE, NONE] and found[1].lines == [6, 7]
    assert reading(tmp_path, "He - (A0*A0)\nran run (V*V)\n# - (C-V*C-V)") == [  # as in 2004; # is a word
        RoleSentence(["He", "ran", "#"], [Predicate(1, ["B-A0", "B-V", "B-C-V"])])
    ]
    assert reading(tmp_path, "* * -\n") == [RoleSentence(["*"], [])]


def test_columns_of_2012(tmp_path: Path) -> None:
    found = reading(tmp_path, CONLL_2012)
    assert found == [long(SENTENCE), NONE] and found[0].lines == [2, 3, 4, 5]
    without = CONLL_2012.replace("(V*)", "*   ")
    assert [p.position for p in reading(tmp_path, without)[0].predicates] == [1, 3]  # by their senses
    assert reading(tmp_path, CONLL_2012.partition("\n")[2]) == found  # and without the document's head


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_packed(tmp_path: Path, pack: object) -> None:
    (tmp_path / "data").write_bytes(pack(CONLL_2005.encode()))  # type: ignore[operator]
    assert read_roles(tmp_path / "data") == [SENTENCE, NONE]


GOOD = json.dumps({"words": ["a"], "predicates": []}) + "\n"


def predicate(**values: object) -> str:
    return GOOD + json.dumps({"words": ["Ann", "left"], "predicates": [{"index": 1, "tags": ["B-A0", "B-V"]} | values]})


@pytest.mark.parametrize(("text", "told"), [
    ("", "data: has no sentences"),
    (GOOD + "{", "data:2: is not JSON"),
    (GOOD + "[]", "data:2: is '[]'; expected one sentence {...} per line"),
    (GOOD + '{"words": ["a"]}', "data:2: has no list of objects \"predicates\""),
    (predicate(index="1"), "data:2: has a predicate without a number"),
    (predicate(index=2), "data:2: has a predicate at word 2; the sentence has 2 words"),
    (predicate(index=0), "data:2: has a predicate at word 0, but its V at word 1"),
    (predicate(tags=["B-V"]), "data:2: has 2 words and 1 tags for the predicate 'left'"),
    (predicate(tags=["A0", "B-V"]), "data:2: has the tag 'A0'"),
    (predicate(tags=["I-A0", "B-V"]), "data:2: has the tag 'I-A0' after 'O'"),
    (LINES + "x y ||| O O", "data:3: begins with 'x y"),
    (LINES + "1 Ann left", "data:3: begins with '1 Ann left"),
    (LINES + "1 Ann left ||| O", "data:3: has 2 words and 1 tags"),
    (CONLL_2005.replace("saw    VBD  (VP* ", "saw    VBD"), "data:2: has 6 columns; expected 7 as in line 1"),
    (CONLL_2005.replace("leave *)", "-     *)"), "data:1: begins a sentence with 1 predicates in column 4 (from 0), but 2"),
    (CONLL_2005.replace("(A1*", "(A1("), "data:3: has '(A1(' in a column of arguments"),
    (CONLL_2005.replace("leave *)", "leave *"), "data:4: ends a sentence with an open bracket of A1"),
    (CONLL_2005.replace("leave *)", "leave (A2*)"), "data:4: begins A2 inside A1"),
    (CONLL_2005.replace("-     (A0*)", "-     *A0)"), "data:1: closes a bracket with '*A0)', but none is open"),
    (CONLL_2005.replace("leave *)", "leave *A3)"), "data:4: closes a bracket with '*A3)', but A1 is open"),
    ("Ann (A0*)\nleft (V*)\n", "data:1: has no column that names predicates"),
    (CONLL_2012.replace("(V*)", "*").replace("see   01", "see   -"), "data:2: begins a sentence whose column 11"),
    ("#begin document\na 0 0 b\n", "data:2: has 4 columns; CoNLL-2012 has at least 12"),
])  # fmt: skip
def test_bad_files_are_told_by_their_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(FormatError) as error:
        reading(tmp_path, text)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("split", "sentences", "words", "predicates", "spans"),
    [
        ("dev", 1972, 24964, 4976, 9599),
        pytest.param("test", 2059, 25002, 4799, 9345, marks=pytest.mark.slow),  # another split of the same data
    ],
)
def test_real_data(split: str, sentences: int, words: int, predicates: int, spans: int) -> None:
    """The counts are those of its README."""
    root = os.environ.get("POLYSEME_DATA")
    folder = Path(root or "", "tasks", "srl_propbank_ewt_en")
    if not root or not folder.exists():
        pytest.skip("real data: set POLYSEME_DATA to a folder with tasks/srl_propbank_ewt_en")
    found = read_roles(folder / f"ewt.{split}.jsonl.gz")
    each = [(sentence.words, one) for sentence in found for one in sentence.predicates]
    assert (len(found), sum(len(sentence.words) for sentence in found), len(each)) == (sentences, words, predicates)
    assert sum(tag[0] == "B" and tag != "B-V" for _, one in each for tag in one.tags) == spans
    assert each == [(sentence.words, *sentence.predicates) for sentence in read_roles(folder / f"ewt.{split}.bio.txt.gz")]
