"""Bodies of the requests that the explorer page sends, and of their answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from polyseme.serve.openapi import ERRORS, ContextNeighbour, Offsets, Warned, WordAnswer, answers
from polyseme.serve.requests import Body, ChosenWord, Count, Position, Text, Word


class SurpriseRequest(Body):
    """A text."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "They sat on the bank of the river."}]})
    text: Text


Bits = Annotated[list[float | None] | None, Field(description="-log2 of the probability of each word; null: not known.")]


class SurpriseResponse(Warned):
    model: str
    words: list[str]
    offsets: Offsets
    left: Bits
    right: Bits
    both: Bits


SURPRISE = answers(SurpriseResponse)

GivenText = Annotated[
    str | None, Field(description="A text to look into; without it, the one that the service searches (--corpus, or samples).")
]
Weight = Annotated[float, Field(ge=-10, le=10, allow_inf_nan=False)]
Weights = Annotated[list[Weight], Field(fail_fast=True)]
Source = Annotated[Literal["samples", "corpus", "given"], Field(description="Which text it is.")]


class TextWordsRequest(Body):
    """The searched text, or a given one."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "The bank of the river. Money in the bank."}]})
    text: GivenText = None


class WordUses(BaseModel):
    word: str
    uses: int


class TextWordsResponse(BaseModel):
    model: str
    source: Source
    sentences: int
    words: int
    frequent: list[WordUses] = Field(description="Words that have several uses and are not in most sentences.")


class MapRequest(Body):
    """A word."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"word": "bank", "text": "The bank of the river. Money in the bank. A bank account."}]}
    )
    word: Word
    text: GivenText = None
    count: Annotated[int, Field(strict=True, ge=1, le=10_000, description="Most uses; of more, evenly chosen ones.")] = 2000
    groups: Annotated[int | None, Field(strict=True, ge=1, le=8, description="How many; null: as many as are clear.")] = None
    weights: Annotated[
        Weights | None, Field(description="One for each layer: points of the weighted sum, instead of all layers.")
    ] = None


class Use(BaseModel):
    words: list[str]
    position: int


class Group(BaseModel):
    number: int
    uses: int
    label: list[str] = Field(description="Words that stand around uses of this group, and not around others.")


class MapResponse(BaseModel):
    model: str
    word: str
    source: Source
    total: int = Field(description="Uses in the text.")
    uses: list[Use]
    points: list[list[tuple[float, float]]] = Field(description="Of each layer, a point for each use.")
    clusters: list[int] = Field(description="The group of each use.")
    groups: list[Group]


class MixRequest(Body):
    """A word in its text, and a weight for each layer."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"text": "They sat on the bank of the river.", "word": "bank", "weights": [0.2, 0.3, 0.5], "count": 3}]
        }
    )
    text: Text
    weights: Annotated[Weights, Field(min_length=1)]
    word: ChosenWord = None
    position: Position = None
    count: Count = 8
    same_word: Annotated[bool | None, Field(description="As in `neighbours`.")] = None


class MixResponse(WordAnswer):
    searched: int = Field(description="Words that were compared.")
    in_context: list[ContextNeighbour]


TEXT_WORDS = answers(TextWordsResponse)
MAP = answers(MapResponse)
MIX = answers(MixResponse)


class NextRequest(Body):
    """The beginning of a sentence."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "They sat on the", "count": 3}]})
    text: Text
    count: Count = 10


class NextWord(BaseModel):
    word: str
    probability: float


class NextResponse(Warned):
    model: str
    words: list[str]
    next: list[NextWord]


class Curve(BaseModel):
    name: str | None
    points: list[tuple[int, float]] = Field(description="Steps and values.")


class ScoreCurve(Curve):
    best: tuple[int, float] | None = Field(description="The evaluation whose network is kept.")


class Run(BaseModel):
    name: str
    live: bool = Field(description="Whether it goes on: its log has grown lately.")
    state: Literal["training", "finished", "stopped"]
    step: int
    loss: Curve
    dev: ScoreCurve
    speed: Curve


class RunsResponse(BaseModel):
    folder: str | None = Field(description="The last part of its name; null: the service has none.")
    runs: list[Run]


NEXT = answers(NextResponse)
RUNS: dict[int | str, dict[str, Any]] = {200: {"model": RunsResponse}, **ERRORS(401, 421, 422, 503)}
