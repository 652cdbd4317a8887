"""Documents with clusters: two kinds of files, what is wrong with them by the line, and the real data."""

from __future__ import annotations

import gzip
import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from polyseme.base.errors import FormatError
from polyseme.text.labelled.coreference import CoreferenceDocument, read_coreference

SENTENCES = [["Ann", "'s", "cat", "ran"], ["She", "likes", "it"]]
ANN = CoreferenceDocument(SENTENCES, [[(0, 0), (4, 4)], [(0, 2), (6, 6)]], ["A"] * 4 + ["B", "B", ""], "x_0")
CONLL = """\
#begin document (x); part 000
x 0 0 Ann   NNP (S* - - - A (PERSON) (ARG0*  (0|(12)
x 0 1 's    POS *   - - - A *        *       -
x 0 2 cat   NN  *   - - - A *        *)      0)
x 0 3 ran   VBD *)  - - - A *        (V*)    -

x 0 0 She   PRP (S* - - - B *        (12)
x 0 1 likes VBZ *   - - - B *        -
x 0 2 it    PRP *)  - - - - *        (0)

#end document
#begin document (x); part 001
x 1 0 Well  UH  *   - - - - *        -

#end document
"""


def as_json(document: CoreferenceDocument, **changes: Any) -> str:
    speakers = iter(document.speakers)
    by_sentence = [[next(speakers, "-") for _ in sentence] for sentence in document.sentences]
    values = {"doc_key": document.key, "sentences": document.sentences, "speakers": by_sentence, "clusters": document.clusters}
    return json.dumps({name: value for name, value in (values | changes).items() if value is not None})


def reading(tmp_path: Path, text: str) -> list[CoreferenceDocument]:
    file = tmp_path / "data"
    file.write_text(text, encoding="utf-8")
    return read_coreference(file)


def test_both_kinds(tmp_path: Path) -> None:
    well = CoreferenceDocument([["Well"]], [], [], "x_1")
    assert reading(tmp_path, CONLL) == [ANN, well]
    assert reading(tmp_path, as_json(ANN) + "\n\n" + as_json(well) + "\n") == [ANN, well]
    assert [each.where for each in read_coreference(tmp_path / "data")] == [1, 3]
    file = tmp_path / "a.gz"
    file.write_bytes(gzip.compress(CONLL.encode()))
    assert read_coreference(file) == [ANN, well] and [each.where for each in read_coreference(file)] == [2, 13]


def test_columns_without_marks(tmp_path: Path) -> None:
    """Other makers leave out the lines that begin with #; another part is another document."""
    lines = [line for line in CONLL.splitlines(keepends=True) if not line.startswith("#")]
    assert [each.key for each in reading(tmp_path, "".join(lines))] == ["x_0", "x_1"]


def test_what_may_be_missing(tmp_path: Path) -> None:
    (found,) = reading(tmp_path, as_json(ANN, doc_key=None, speakers=None))
    assert (found.key, found.speakers, found.words) == ("", [], ["Ann", "'s", "cat", "ran", "She", "likes", "it"])
    (found,) = reading(tmp_path, as_json(ANN, speakers=[["-"] * 4, ["-", "", "-"]], clusters=[]))
    assert (found.speakers, found.clusters) == ([], [])


def test_brackets_inside_one_another(tmp_path: Path) -> None:
    cells = ["(1|(1", "1)|(2", "1)|(3)", "2)|(1"]
    rows = [f"x 0 {number} w * * * * * - * {cell}\n" for number, cell in enumerate(cells)]
    (found,) = reading(tmp_path, "".join(rows) + "\nx 0 0 w * * * * * - * 1)\n")  # a sentence may end in between
    assert found.clusters == [[(0, 1), (0, 2), (3, 4)], [(1, 3)], [(2, 2)]]


def test_a_mention_beyond_its_sentence_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        reading(tmp_path, '{"sentences": [["Ann", "ran"], ["She", "fell"]], "clusters": [[[0, 0], [1, 2]], [[2, 3]]]}')
    assert "1 of 3 mentions cross the end of a sentence and cannot be predicted; the first: line 1, words 1 to 2" in caplog.text


def test_a_mention_of_two_clusters_stays_in_the_first(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        (found,) = reading(tmp_path, as_json(ANN, clusters=[[[4, 4], [0, 0]], [[0, 0], [6, 6]], [[4, 4]], []]))
    assert found.clusters == [[(0, 0), (4, 4)], [(6, 6)]]
    assert "2 of 5 mentions are in two clusters; each stays in the first" in caplog.text
    assert "named twice" not in caplog.text


def test_a_mention_that_its_cluster_names_twice_is_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        (found,) = reading(tmp_path, as_json(ANN, clusters=[[[4, 4], [0, 0], [4, 4]]]))
    assert found.clusters == [[(0, 0), (4, 4)]]
    assert "1 of 3 mentions occur twice in their cluster and count once; the first: line 1, words 4 to 4" in caplog.text
    assert "two clusters" not in caplog.text


def test_parts() -> None:
    assert ANN.sentence_slice(0, 9) == ANN
    assert ANN.sentence_slice(1, 1) == CoreferenceDocument([SENTENCES[1]], [[(0, 0)], [(2, 2)]], ["B", "B", ""], "x_0")
    assert ANN.sentence_slice(2, 1) == CoreferenceDocument([], [], [], "x_0")


@pytest.mark.parametrize(("text", "told"), [
    ("", "data: has no documents; expected JSON lines"),
    ("# nothing\n", "data: has no documents"),
    ("{", "data:1: is not JSON"),
    ('{"sentences": ["Ann"], "clusters": []}', 'data:1: has no "sentences"'),
    ('{"clusters": []}', 'data:1: has no "sentences"'),
    ('{"sentences": [[]], "clusters": []}', 'data:1: has no words in its "sentences"'),
    ('{"sentences": [["a"]]}', 'data:1: has no "clusters"'),
    ('{"sentences": [["a"]], "clusters": [0]}', 'data:1: has no "clusters"'),
    ('{"sentences": [["a"]], "clusters": [[[0]]]}', "data:1: has the mention [0]; expected its first and last word"),
    ('{"sentences": [["a"]], "clusters": [[[0, true]]]}', "data:1: has the mention [0, true]"),
    ('\n{"sentences": [["a"]], "clusters": [[[0, 1]]]}', "data:2: has the mention [0, 1]; the document has 1 words, counted"),
    ('{"sentences": [["a"]], "clusters": [[[0, -1]]]}', "data:1: has the mention [0, -1]; the document has 1 words"),
    ('{"sentences": [["a"]], "clusters": [], "speakers": [["A", "B"]]}', 'data:1: has "speakers" that do not fit'),
    ('{"sentences": [["a"]], "clusters": [], "doc_key": 3}', 'data:1: has 3 for "doc_key"; expected a string'),
    ("a b c\n", "data:1: has 3 columns"),
    ("x 0 0 w * * * * * - * 1\n", 'data:1: has "1" in its last column; expected brackets'),
    ("x 0 0 w * * * * * - * (1)(2)\n", 'data:1: has "(1)(2)" in its last column'),
    ("x 0 0 w * * * * * - * 1)\n", "data:1: ends a mention of cluster 1, but none is open"),
    ("#\nx 0 0 w * * * * * - * (1\n\n", "data:2: begins a mention of cluster 1 that does not end in its document"),
])  # fmt: skip
def test_what_is_wrong_is_told_by_the_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(FormatError) as error:
        reading(tmp_path, text)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("file", "documents", "words", "clusters", "mentions", "twice"),
    [
        ("coref_ontogum_en/ontogum.dev", 30, 28119, 857, 3818, 1),
        pytest.param("coref_ontogum_en/ontogum.test", 30, 28397, 858, 3581, 0, marks=pytest.mark.slow),  # another split
        ("coref_litbank_en/litbank.test", 10, 22139, 788, 3105, 0),
        ("coref_gum_en/gum.dev", 30, 28119, 3932, 7897, 0),
    ],
)
def test_real_data(file: str, documents: int, words: int, clusters: int, mentions: int, twice: int) -> None:
    """The counts are those of its README, less the mentions that stand in two clusters."""
    root = os.environ.get("POLYSEME_DATA")
    path = Path(root or "", "tasks", f"{file}.jsonlines.gz")
    if not root or not path.exists():
        pytest.skip(f"real data: set POLYSEME_DATA to a folder with tasks/{file}.jsonlines.gz")
    found = read_coreference(path)
    assert (len(found), sum(len(each.words) for each in found)) == (documents, words)
    assert sum(len(each.clusters) for each in found) == clusters
    assert sum(len(cluster) for each in found for cluster in each.clusters) == mentions - twice
