"""How predictions print, render and become JSON; all text in HTML is escaped."""

from __future__ import annotations

import pytest

from polyseme.tasks.predictions import (
    Answer,
    ChoicePrediction,
    CoreferencePrediction,
    GeneratedText,
    LabelPrediction,
    LayerWeights,
    MentionSpan,
    Prediction,
    Predictions,
    ScorePrediction,
    SentenceRoles,
    TaggedText,
)
from polyseme.text.labelled.roles import Predicate
from polyseme.text.labelled.squad import AnswerSpan

TAGGED = TaggedText(["<Ann>", "saw", "New", "York"], ["B-PER", "O", "B-LOC", "I-LOC"])
ALL: list[Prediction] = [
    TAGGED,
    SentenceRoles(["<Ann>", "left"], [Predicate(1, ["B-A0", "B-V"])]),
    LabelPrediction("<pos>", 0.75, {"<neg>": 0.25, "<pos>": 0.75}),
    ScorePrediction(1.5),
    ChoicePrediction(1, "<b>", 0.75, [0.25, 0.75], ["<a>", "<b>"]),
    Answer("<Ann>", AnswerSpan(0, 0, 5), 0.5, "<Ann> left."),
    Answer("", None, 0.5),
    CoreferencePrediction(
        "<Ann> left. She ran.",
        [["<Ann>", "left", "."], ["She", "ran", "."]],
        [[MentionSpan("<Ann>", 0, 0, 0, 5), MentionSpan("She", 3, 3, 12, 15)]],
    ),
    GeneratedText("<Hund>", ["<Hund>"], -0.5, [GeneratedText("", [], float("-inf"))]),
]


@pytest.mark.parametrize("prediction", ALL, ids=lambda each: type(each).__name__)
def test_every_form(prediction: Prediction) -> None:
    html = prediction._repr_html_()
    assert not any(raw in html for raw in ("<Ann>", "<pos>", "<neg>", "<a>", "<b>x", "<Hund>"))
    assert prediction.to_lines("the line") and prediction.to_json("the line")
    assert "\t" not in str(prediction) or not isinstance(prediction, TaggedText)


def test_a_tagged_sentence() -> None:
    assert str(TAGGED) == "<Ann>  B-PER\nsaw    O\nNew    B-LOC\nYork   I-LOC"
    assert TAGGED.spans == [(0, 1, "PER"), (2, 4, "LOC")]
    assert "New York <small><b>LOC</b></small>" in TAGGED._repr_html_()
    assert TaggedText(["a", "b"], ["DET", "NOUN"]).spans == [(0, 1, "DET"), (1, 2, "NOUN")]


def test_labels_are_bars() -> None:
    first, second = str(ALL[2]).splitlines()
    assert first.startswith("<neg>  0.250  █████") and second.count("█") == 15
    twice = ChoicePrediction(0, "a", 0.6, [0.6, 0.4], ["a", "a"])
    assert [line.split("  ")[0] for line in str(twice).splitlines()] == ["a (0)", "a (1)"]


def test_lists_of_predictions_render() -> None:
    both = Predictions([TAGGED, TAGGED])
    assert both == [TAGGED, TAGGED] and str(both) == f"{TAGGED}\n\n{TAGGED}"
    assert both._repr_html_() == 2 * TAGGED._repr_html_()


def test_layer_weights_are_bars() -> None:
    weights = LayerWeights({"input, elmo 1": {"layer 0": 0.25, "layer 1": 0.75}})
    assert str(weights).splitlines()[0] == "input, elmo 1" and str(weights).count("█") == 20
    assert "layer 1" in weights._repr_html_() and str(LayerWeights({})) == "no learned mix of layers"


def test_tabs_and_line_ends_in_a_label_are_escaped():
    assert LabelPrediction("a\tb\r\nc", 0.5, {}).to_lines("in") == ["a\\tb\\r\\nc\t0.5000\tin"]


def test_spans_of_a_text_have_offsets_of_characters():
    given = "他 在 Google中国 工作"
    tagged = TaggedText(["他", "在", "Google", "中国", "工作"], ["O", "O", "B-ORG", "I-ORG", "O"], text=given)
    found = {"begin": 2, "end": 4, "label": "ORG", "text": "Google中国", "start_char": 4, "end_char": 12}
    assert tagged.to_json()["spans"] == [found] and tagged.char_spans == [(4, 12, "ORG")]
    quoted = TaggedText(["“", "New", "York", "”"], ["O", "B-LOC", "I-LOC", "O"], text=" “New\u00a0 York” ")
    assert quoted.to_json()["spans"][0] == {**{"begin": 1, "end": 3, "label": "LOC"}, **_place("New\u00a0 York", 2)}
    assert TAGGED.char_spans is None and TaggedText(["a"], ["NOUN"], text=" a").char_spans == [(1, 2, "NOUN")]
    changed = TaggedText(["b"], ["B-LOC"], text="a")  # by a splitter of the caller's
    assert changed.char_spans is None and "start_char" not in changed.to_json()["spans"][0]


def _place(text: str, begin: int) -> dict[str, object]:
    return {"text": text, "start_char": begin, "end_char": begin + len(text)}


def test_the_json_of_tags_has_their_spans():
    found = [
        {"begin": 0, "end": 1, "label": "PER", "text": "<Ann>"},
        {"begin": 2, "end": 4, "label": "LOC", "text": "New York"},
    ]
    assert TAGGED.to_json() == {"words": TAGGED.words, "tags": TAGGED.tags, "spans": found}
    assert TaggedText(["在", "北", "京"], ["O", "B-LOC", "I-LOC"]).to_json()["spans"][0]["text"] == "北京"
    assert TaggedText(["a"], ["O"], marks_spans=True).to_json()["spans"] == []
    assert TaggedText([], [], marks_spans=True).to_json()["spans"] == [] and "spans" not in TaggedText([], []).to_json()
    assert "spans" not in TaggedText(["a"], ["O"]).to_json()
    assert TaggedText(["a", "b"], ["DET", "NOUN"]).to_json() == {"words": ["a", "b"], "tags": ["DET", "NOUN"]}
