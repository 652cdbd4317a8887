"""What tasks predict: small objects that print well in a terminal and render in a notebook.

Each has three forms besides its fields: `to_lines` (what `polyseme predict` prints), `to_json` (its JSON, with stable keys)
and `_repr_html_`. All text in HTML is escaped by `polyseme.base.display`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from polyseme.base.display import bar, columns, html_bars, html_spans, html_table
from polyseme.metrics.spans import are_span_tags, spans
from polyseme.text.empty_texts import warn_of_empty
from polyseme.text.labelled.conll import TaggedSentence
from polyseme.text.labelled.roles import RoleSentence
from polyseme.text.labelled.squad import ANSWER, NO_ANSWER, AnswerSpan
from polyseme.text.splitting.offsets import offsets_if_same

P = TypeVar("P", bound="Prediction")


class Prediction:
    """The base of predictions."""

    __slots__ = ()

    @abstractmethod
    def to_lines(self, line: str = "") -> list[str]:
        """Return the lines that `polyseme predict` prints; `line` is the input."""

    @abstractmethod
    def to_json(self, line: str = "") -> dict[str, Any]:
        """Return plain JSON values."""

    def __str__(self) -> str:
        return "\n".join(each.rstrip("\t") for each in self.to_lines())

    def _repr_html_(self) -> str:
        values = self.to_json()
        return html_table(list(values), [[str(value) for value in values.values()]])


class Predictions(list[P]):
    """A list of predictions that prints and renders one below the other."""

    def __str__(self) -> str:
        return "\n\n".join(map(str, self))

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in self)


def main_value(values: Mapping[str, Any]) -> str | None:
    """Return which of the JSON values of a prediction is the prediction itself; None: there are several, as for roles.

    >>> main_value({"text": "a cat", "label": "cats", "probability": 0.9}), main_value({"answer": "Ann", "score": 0.5})
    ('label', 'answer')
    """
    return next((name for name in ("label", "tags", "answer", "score") if name in values), None)


def with_lines(outputs: Sequence[Any], lines: Sequence[str]) -> Predictions[Any]:
    """Return predictions that know their inputs, as lines of `polyseme predict`; warn of those without a word."""
    warn_of_empty(lines)
    return Predictions(replace(output, line=line) for output, line in zip(outputs, lines, strict=True))


@dataclass(frozen=True, slots=True)
class TaggedText(TaggedSentence, Prediction):
    """A sentence and its predicted tags."""

    marks_spans: bool = field(default=False, repr=False, compare=False)
    """Whether the tags of the tagger mark spans, even where this sentence has none."""
    text: str | None = field(default=None, repr=False, compare=False)
    """The text as it was given; None for a list of words."""

    def to_lines(self, line: str = "") -> list[str]:
        """A word and its tag on each line."""
        return [f"{word}\t{tag}" for word, tag in zip(self.words, self.tags, strict=True)]

    def to_json(self, line: str = "") -> dict[str, Any]:
        """The words and their tags; of a tagger whose tags mark spans also `spans`, with positions of words.

        Spans of a text, but not of a list of words, have the positions of their characters too.
        """
        values: dict[str, Any] = {"words": self.words, "tags": self.tags}
        if self.marks_spans or are_span_tags(self.tags):
            found = spans(self.tags)
            values["spans"] = [{"begin": a, "end": b, "label": kind, "text": _text_of(self.words[a:b])} for a, b, kind in found]
            for value, (begin, end, _) in zip(values["spans"], self.char_spans or (), strict=False):
                value |= {"text": str(self.text)[begin:end], "start_char": begin, "end_char": end}
        return values

    @property
    def spans(self) -> list[tuple[int, int, str]]:
        """The tagged spans: first word, the word behind the last, type; plain tags are spans of one word."""
        return _spans(self.tags)

    @property
    def char_spans(self) -> list[tuple[int, int, str]] | None:
        """The tagged spans in `text`: first character, the character behind the last, type; None for a list of words."""
        offsets = None if self.text is None else offsets_if_same(self.words, self.text)
        return None if offsets is None else [(offsets[a][0], offsets[b - 1][1], kind) for a, b, kind in self.spans]

    def __str__(self) -> str:
        return columns([*zip(self.words, self.tags, strict=True)], indent=0)

    def _repr_html_(self) -> str:
        return html_spans(_pieces(self.words, self.spans))


@dataclass(frozen=True, slots=True)
class SentenceRoles(RoleSentence, Prediction):
    """A sentence and the predicted roles of its words, for each predicate."""

    def to_lines(self, line: str = "") -> list[str]:
        """A word on each line, with one tag for each predicate."""
        tags = (predicate.tags for predicate in self.predicates)
        return ["\t".join(row) for row in zip(self.words, *tags, strict=True)]

    def to_json(self, line: str = "") -> dict[str, Any]:
        predicates = [{"index": predicate.position, "tags": predicate.tags} for predicate in self.predicates]
        return {"words": self.words, "predicates": predicates}

    def __str__(self) -> str:
        return columns([row.split("\t") for row in self.to_lines()], indent=0)

    def _repr_html_(self) -> str:
        return "".join(html_spans(_pieces(self.words, _spans(predicate.tags))) for predicate in self.predicates)


@dataclass(frozen=True, slots=True)
class LabelPrediction(Prediction):
    """The most probable label, and the probabilities of all labels."""

    label: str
    probability: float
    probabilities: dict[str, float]
    line: str = field(default="", repr=False, compare=False)
    """The input, as a line of `polyseme predict`."""

    def to_lines(self, line: str = "") -> list[str]:
        """The label, with tabs and line ends escaped, its probability and the input."""
        label = self.label.replace("\t", r"\t").replace("\r", r"\r").replace("\n", r"\n")
        return [f"{label}\t{self.probability:.4f}\t{line}"]

    def to_json(self, line: str = "") -> dict[str, Any]:
        values = {"label": self.label, "probability": self.probability, "probabilities": self.probabilities}
        return {"text": line or self.line, **values}

    def __str__(self) -> str:
        return _bars(self.probabilities or {self.label: self.probability})

    def _repr_html_(self) -> str:
        return html_bars(self.probabilities or {self.label: self.probability})


@dataclass(frozen=True, slots=True)
class ScorePrediction(Prediction):
    """A number, in the range of the training data's."""

    score: float
    line: str = field(default="", repr=False, compare=False)
    """The input, as a line of `polyseme predict`."""

    def to_lines(self, line: str = "") -> list[str]:
        """The score and the input."""
        return [f"{self.score:.4f}\t{line}"]

    def to_json(self, line: str = "") -> dict[str, Any]:
        return {"text": line or self.line, "score": self.score}


@dataclass(frozen=True, slots=True)
class ChoicePrediction(Prediction):
    """The most probable choice, and the probabilities of all choices."""

    index: int
    """Of the choice, from 0."""
    text: str
    probability: float
    probabilities: list[float]
    choices: list[str] = field(default_factory=list, repr=False, compare=False)
    line: str = field(default="", repr=False, compare=False)
    """The input, as a line of `polyseme predict`."""

    def to_lines(self, line: str = "") -> list[str]:
        """The choice, its probability and the input."""
        return [f"{self.text}\t{self.probability:.4f}\t{line}"]

    def to_json(self, line: str = "") -> dict[str, Any]:
        values = {"answer": self.text, "place": self.index, "probability": self.probability}
        return {"text": line or self.line, **values, "probabilities": self.probabilities}

    def __str__(self) -> str:
        return _bars(self._named())

    def _repr_html_(self) -> str:
        return html_bars(self._named())

    def _named(self) -> dict[str, float]:
        """Probabilities by choice; of equal texts each has its number."""
        texts = self.choices or [str(number) for number in range(len(self.probabilities))]
        names = [text if texts.count(text) == 1 else f"{text} ({number})" for number, text in enumerate(texts)]
        return dict(zip(names, self.probabilities, strict=True))


@dataclass(frozen=True, slots=True)
class Answer(Prediction):
    """The answer to a question."""

    text: str
    """Copied from the paragraph; empty: there is no answer."""
    span: AnswerSpan | None
    """The paragraph, and the characters of it; None: there is no answer."""
    score: float
    """The probability of its start times that of its end, among all words of all paragraphs."""
    paragraph: str = field(default="", repr=False, compare=False)
    """The paragraph of the answer."""
    line: str = field(default="", repr=False, compare=False)
    """The input, as a line of `polyseme predict`."""

    @property
    def label(self) -> str:
        """Whether there is an answer."""
        return NO_ANSWER if self.span is None else ANSWER

    def to_lines(self, line: str = "") -> list[str]:
        """The answer, its score and the input."""
        return [f"{self.text}\t{self.score:.4f}\t{line}"]

    def to_json(self, line: str = "") -> dict[str, Any]:
        place = None if self.span is None else [self.span.begin, self.span.end]
        return {"text": line or self.line, "answer": self.text, "place": place, "score": self.score}

    def _repr_html_(self) -> str:
        if self.span is None:
            return html_spans([(f"{NO_ANSWER} ({self.score:.3f})", None)])
        before, after = self.paragraph[: self.span.begin], self.paragraph[self.span.end :]
        return html_spans([(before, None), (self.text, f"{self.score:.3f}"), (after, None)], separator="")


@dataclass(frozen=True, slots=True)
class MentionSpan:
    """A mention in its text."""

    text: str
    first: int
    """First word, counted from 0 through the text."""
    last: int
    """Last word, inclusive."""
    begin: int
    """First character."""
    end: int
    """The character behind the last."""


@dataclass(frozen=True, slots=True)
class CoreferencePrediction(Prediction):
    """A text and its clusters of mentions."""

    text: str
    """As it was given; words are joined by spaces."""
    sentences: list[list[str]]
    clusters: list[list[MentionSpan]]

    def to_lines(self, line: str = "") -> list[str]:
        """The text with its mentions in brackets, then each cluster on a line."""
        rows = [[str(number), *(each.text for each in some)] for number, some in enumerate(self.clusters, 1)]
        return [self.marked(), *("\t".join(" ".join(cell.split()) for cell in row) for row in rows)]

    def to_json(self, line: str = "") -> dict[str, Any]:
        """Return sentences and clusters as labelled JSON lines have them, and the mentions as text."""
        return {
            "text": self.text,
            "sentences": self.sentences,
            "clusters": [[[each.first, each.last] for each in cluster] for cluster in self.clusters],
            "mentions": [[{"text": each.text, "place": [each.begin, each.end]} for each in some] for some in self.clusters],
        }

    def marked(self) -> str:
        """Return the text with its mentions in brackets: `[1 Ann] saw [2 Bob]. [1 She] left.`"""
        mentions = [(each, number) for number, some in enumerate(self.clusters, 1) for each in some]
        begins: dict[int, str] = {}
        ends: dict[int, str] = {}
        for each, number in sorted(mentions, key=lambda pair: -pair[0].end):  # the longer of two that begin here comes first
            begins[each.begin] = begins.get(each.begin, "") + f"[{number} "
            ends[each.end] = ends.get(each.end, "") + "]"
        letters = [f"{ends.get(at, '')}{begins.get(at, '')}{letter}" for at, letter in enumerate(self.text)]
        return "".join(letters) + ends.get(len(self.text), "")

    def _repr_html_(self) -> str:
        return html_spans(self._pieces(), separator="")

    def _pieces(self) -> Iterator[tuple[str, str | None]]:
        """The text in pieces, each with the number of its cluster; of nested mentions the outer one is shown."""
        mentions = [(each.begin, -each.end, str(number)) for number, some in enumerate(self.clusters, 1) for each in some]
        done = 0
        for begin, end, number in sorted(mentions):
            if begin >= done:
                yield self.text[done:begin], None
                yield self.text[begin:-end], number
                done = -end
        yield self.text[done:], None


@dataclass(frozen=True, slots=True)
class GeneratedText(Prediction):
    """A generated text."""

    text: str
    words: list[str]
    score: float
    """Log-probability divided by a power of the length; for samples the mean log-probability of a word. -inf: beam search
    found fewer texts than asked for, and this empty one fills the place."""
    others: list[GeneratedText] = field(default_factory=list)
    """Further texts, where several were asked for: the next best, or the next samples."""
    line: str = field(default="", repr=False, compare=False)
    """The input, as a line of `polyseme predict`."""

    def to_lines(self, line: str = "") -> list[str]:
        """The text, and the other ones, a line each."""
        return [self.text, *(other.text for other in self.others)]

    def to_json(self, line: str = "") -> dict[str, Any]:
        others = {"others": [{"answer": each.text, "score": each.finite_score} for each in self.others]} if self.others else {}
        return {"text": line or self.line, "answer": self.text, "score": self.finite_score, **others}

    @property
    def finite_score(self) -> float | None:
        """The score as JSON has it: None for a filled place."""
        return self.score if self.score > float("-inf") else None

    def _repr_html_(self) -> str:
        return html_table(["text", "score"], [(each.text, f"{each.score:.3f}") for each in (self, *self.others)])


@dataclass(frozen=True)
class LayerWeights:
    """How much of each encoder layer a task reads: softmax weights, by position and encoder."""

    weights: dict[str, dict[str, float]]
    """By position and encoder (`input, elmo 1`), the weight of each layer."""

    def __str__(self) -> str:
        return "\n".join(f"{name}\n{_bars(weights)}" for name, weights in self.weights.items()) or "no learned mix of layers"

    def _repr_html_(self) -> str:
        return "".join(html_table([name], []) + html_bars(weights) for name, weights in self.weights.items())


def _bars(values: dict[str, float]) -> str:
    """Named numbers as bars, one on each line."""
    return columns([(name, f"{value:.3f}", bar(value, 1.0)) for name, value in values.items()], indent=0)


def _text_of(words: Sequence[str]) -> str:
    """Words joined by spaces, but not between Chinese ones.

    >>> _text_of(["New", "York"]), _text_of(["北", "京"])
    ('New York', '北京')
    """
    from rich.cells import cell_len

    pairs = zip(["", *words], words, strict=False)
    return "".join(word if not one or cell_len(one[-1:]) == 2 == cell_len(word[:1]) else f" {word}" for one, word in pairs)


def _spans(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    if are_span_tags(tags):
        return spans(tags)
    return [(position, position + 1, tag) for position, tag in enumerate(tags) if tag != "O"]  # O: in no span


def _pieces(words: Sequence[str], found: Sequence[tuple[int, int, str]]) -> Iterator[tuple[str, str | None]]:
    """Words in pieces, those of spans with their types."""
    done = 0
    for begin, end, kind in found:
        yield from ((word, None) for word in words[done:begin])
        yield " ".join(words[begin:end]), kind or "span"
        done = end
    yield from ((word, None) for word in words[done:])
