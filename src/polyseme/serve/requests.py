"""Bodies of requests. FastAPI checks them, and the OpenAPI document has their fields, limits and examples."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)

from polyseme.analysis.config import WINDOW

_TEXT = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_NAMES = {str: "a text", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object"}
MAX_COUNT = 1000


def _named(value: Any) -> str:
    return "null" if value is None else _NAMES.get(type(value), "something else")


def checked_text(value: Any, where: str = "the text") -> str | list[str]:
    """A text, or a list of words."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise ValueError(f"{where} is {_named(value)}; allowed: a text, or a list of words")
    for position, word in enumerate(value):
        if not isinstance(word, str):
            raise ValueError(f"word {position} of {where} is {_named(word)}; allowed: text")
    return value


def checked_texts(value: Any) -> list[str | list[str]]:
    """Texts or lists of words; one text alone counts as a list of one."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise ValueError(f"it is {_named(value)}; allowed: a text, or a list of texts and lists of words")
    if not value:
        raise ValueError("it is empty: give at least one text")
    return [checked_text(each, f"item {number}") for number, each in enumerate(value)]


def checked_strings(value: Any) -> list[str]:
    """Texts as OpenAI's clients send them."""
    if isinstance(value, str):
        return [value]
    _check_items(value, "a text, or a list of texts")
    return value


def checked_inputs(value: Any) -> list[str | list[str]]:
    """Texts of a trained task; tasks that read one text take its words, too."""
    if isinstance(value, str):
        return [value]
    _check_items(value, "a text, or a list of texts and lists of words", words=True)
    return value


def _check_items(value: Any, allowed: str, *, words: bool = False) -> None:
    """Raise an error unless a value is a list of texts; `words`: or of lists of words."""
    if not isinstance(value, list) or not value:
        raise ValueError(f"it is {'empty' if value == [] else _named(value)}; allowed: {allowed}")
    for number, each in enumerate(value):
        if words and isinstance(each, list) and not (each and isinstance(each[0], int)):
            checked_text(each, f"item {number}")
        elif not isinstance(each, str):
            numbers = ": token numbers of another model mean nothing here" if isinstance(each, int | list) else ""
            raise ValueError(f"item {number} is {_named(each)}{numbers}; allowed: {allowed}")


def _plain(value: str) -> str:
    if not value:
        raise ValueError("it is empty")
    return value


_TEXTS = {"anyOf": [{"type": "string"}, {"type": "array", "items": _TEXT, "minItems": 1}]}
Texts = Annotated[list[Any], PlainValidator(checked_texts), WithJsonSchema(_TEXTS)]
Inputs = Annotated[list[Any], PlainValidator(checked_inputs), WithJsonSchema(_TEXTS)]
Text = Annotated[Any, PlainValidator(checked_text), WithJsonSchema(_TEXT)]
Strings = Annotated[
    list[str],
    PlainValidator(checked_strings),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
ModelName = Annotated[str | None, Field(description="Name of a loaded model (`/v1/models`); by default the first one.")]
Layer = Annotated[int, Field(strict=True, ge=0, le=1000)]


def _layers(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    """One message in place of one for each form that layers may have."""
    try:
        return check(value)
    except ValidationError:
        raise ValueError("allowed: all, top, mean, the number of a layer, or a list of numbers") from None


LayersChoice = Annotated[
    Literal["all", "top", "mean"] | Layer | Annotated[list[Layer], Field(fail_fast=True)],
    WrapValidator(_layers),
    Field(description="`top`, `mean` or a number: one vector per word. `all` or a list of numbers: a stack of layers."),
]
Count = Annotated[int, Field(strict=True, ge=1, le=MAX_COUNT, description="Number of results.")]
Word = Annotated[str, AfterValidator(_plain)]
ChosenWord = Annotated[str | None, Field(description="The word to look at; it must occur once in the text.")]
Position = Annotated[Annotated[int, Field(strict=True, ge=0)] | None, Field(description="Or its position in the text, from 0.")]
Encoding = Annotated[
    Literal["float", "base64"],
    Field(description="Numbers as JSON, or base64 of little-endian float32 in the order of the shape."),
]


class Body(BaseModel):
    """What all requests share: fields that are not known are refused."""

    model_config = ConfigDict(extra="forbid")
    model: ModelName = None


class WordsRequest(Body):
    """Texts whose words get vectors."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"input": ["The bank of the river.", ["Money", "in", "the", "bank"]], "layers": "top"},
                {"input": "The bank of the river.", "layers": "all", "encoding_format": "base64"},
            ]
        }
    )
    input: Texts
    layers: LayersChoice = "top"
    encoding_format: Encoding = "float"


class TokenizeRequest(Body):
    """Texts to split into words."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"input": ["It's so."]}]})
    input: Texts


class EmbeddingsRequest(BaseModel):
    """OpenAI's request for embeddings: one vector per text, the mean of its words and of all layers."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"examples": [{"input": ["The bank of the river."]}]})
    input: Strings
    model: ModelName = None
    encoding_format: Encoding = "float"
    dimensions: Annotated[
        Annotated[int, Field(strict=True, ge=1)] | None,
        Field(description="Only the size that the vectors have: they cannot be shortened."),
    ] = None
    user: Annotated[str | None, Field(description="Ignored.")] = None


class NeighboursRequest(Body):
    """A word in its text."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "They sat on the bank of the river.", "word": "bank", "count": 3}]}
    )
    text: Text
    word: ChosenWord = None
    position: Position = None
    count: Count = 5
    same_word: Annotated[
        bool | None, Field(description="true: other occurrences of the same word only; false: other words only.")
    ] = None
    window: Annotated[
        Annotated[int, Field(strict=True, ge=0)] | None,
        Field(description=f"Words on each side that count as much as the word itself; default {WINDOW}, for other words 0."),
    ] = None


class SubstitutesRequest(Body):
    """A position of a text."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "They sat on the bank of the river.", "word": "bank", "count": 3}]}
    )
    text: Text
    word: ChosenWord = None
    position: Position = None
    count: Count = 10


class ScoreRequest(Body):
    """Texts to score by a language model."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"input": ["The bank of the river."], "words": True}]})
    input: Texts
    words: Annotated[bool, Field(description="Give the log-probability of each word, too.")] = False


class FillRequest(Body):
    """A text with masks, for a BERT or the like."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"model": "bert", "text": "The [MASK] of the river.", "count": 3}]}
    )
    text: Annotated[str, Field(description="A text with [MASK] where a word is hidden.")]
    count: Count = 10


class SimilarRequest(Body):
    """A word out of context."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"word": "river", "count": 3}]})
    word: Word
    count: Count = 10


class PredictRequest(BaseModel):
    """Texts for a trained task, as lines of `polyseme predict`."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"input": ["Ann lives in Paris."]}]})
    input: Annotated[
        Inputs,
        Field(
            description="For tagging, classification, coreference and generation a text each, or the list of its words. For "
            "reading, pairs and choices the texts of an example, separated by tabs. For roles the positions of the "
            "predicates, a space and the text."
        ),
    ]
