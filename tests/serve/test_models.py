"""Which text is searched for which model."""

from __future__ import annotations

from pathlib import Path

import pytest

import polyseme
from polyseme.serve.models import ServedModel, ServedModels, add_index, reads_script
from polyseme.tasks.tag_scheme import scheme_labels
from polyseme.tasks.tagging import Tagging
from polyseme.tasks.tagging_config import Scheme, TaggingConfig
from polyseme.text.labelled.conll import TaggedSentence
from polyseme.text.words import get_splitter
from tests.encoders.small import elmo


@pytest.mark.parametrize(
    ("text", "readers"), [("We sat on the bank.\n小米。\n", {"english"}), ("小米发布了新手机。\nOK\n", {"chinese"})]
)
def test_a_text_is_searched_for_models_that_read_its_script(tmp_path: Path, text: str, readers: set[str]) -> None:
    path = tmp_path / "text.txt"
    path.write_text(text, encoding="utf-8")
    found = set()
    for name in ("english", "chinese"):
        encoder = elmo()
        encoder.splitter = get_splitter(name)
        if reads_script(ServedModel(name, encoder), [path]):
            found.add(name)
    assert found == readers


def test_a_model_without_cosines_is_served_and_says_why_it_has_no_neighbours(tmp_path: Path) -> None:
    folder = Path(__file__).parents[1] / "old_folders" / "encoders" / "ngram-kneser-ney"
    model = ServedModel("ngrams", polyseme.load(folder))
    (tmp_path / "text.txt").write_text("the bank of the river\n")
    add_index(model, [tmp_path / "text.txt"])
    assert model.index is None and "kind ngram have a few probabilities as vectors" in model.no_index


@pytest.mark.parametrize(
    ("scheme", "labels"),
    [
        ("BIO", "O B-X I-X"),
        ("IOB1", "O I-X B-X"),
        ("BMES", "O S-X B-X M-X E-X"),
        ("BIOES", "O S-X B-X I-X E-X"),
        ("plain", "O X"),
    ],
)
def test_labels_of_a_tagger_are_those_that_it_predicts(scheme: Scheme, labels: str) -> None:
    examples = [TaggedSentence(["a", "b"], ["O", "X" if scheme == "plain" else "B-X"])]
    task = Tagging.build(TaggingConfig(scheme=scheme), examples)
    assert task.labels == scheme_labels([each.tags for each in examples], scheme)
    assert ServedModels({}, {"tagger": task}).to_json()["tasks"][0]["labels"] == labels.split()
