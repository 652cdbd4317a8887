"""The OpenAPI document: what responses look like, and the errors that every endpoint may give.

`docs/en/reference/openapi.json` is a copy, written by `python -m scripts.write_openapi`; a test compares the two.
"""

from __future__ import annotations

from typing import Any, Literal

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict, Field

from polyseme.serve.responses import RAW_TYPE

DESCRIPTION = """Vectors of words in context, and answers about words, from the models that `polyseme serve` has loaded.

Vectors are those of `model.embed` in Python, whatever other requests are computed at the same time.
"""
Offsets = list[tuple[int, int]] | None


class ErrorBody(BaseModel):
    """What is wrong."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorResponse(BaseModel):
    """An error in OpenAI's shape."""

    error: ErrorBody


class Warned(BaseModel):
    """What every answer of a model may have."""

    warning: str | None = Field(
        None, description="Texts that the model cannot read well, or that have no word; missing if there are none."
    )


class WordVectors(BaseModel):
    """The words of one text and their vectors."""

    index: int
    words: list[str]
    offsets: Offsets = Field(description="Begin and end of each word in the text, in characters; null for a list of words.")
    shape: list[int] | None = Field(None, description="(words, dim), or (layers, words, dim).")
    vectors: list[Any] | str | None = Field(description="Nested lists, or base64; null if this text failed.")
    error: ErrorBody | None = None


class WordsResponse(Warned):
    model: str
    layers: str | int | list[int]
    dim: int
    data: list[WordVectors]


class TextWords(BaseModel):
    index: int
    words: list[str]
    offsets: Offsets


class TokenizeResponse(Warned):
    model: str
    data: list[TextWords]


class Embedding(BaseModel):
    object: str
    index: int
    embedding: list[float] | str


class Usage(BaseModel):
    prompt_tokens: int
    total_tokens: int


class EmbeddingsResponse(Warned):
    object: str
    data: list[Embedding]
    model: str
    usage: Usage


class ContextNeighbour(BaseModel):
    word: str
    cosine: float
    words: list[str]
    position: int


class StaticNeighbour(BaseModel):
    word: str
    cosine: float
    count: int


class WordAnswer(Warned):
    model: str
    offsets: Offsets
    words: list[str]
    position: int


class NeighboursResponse(WordAnswer):
    layers: list[int]
    in_context: list[ContextNeighbour]
    by_itself: list[StaticNeighbour] = Field(description="By the static vector, which does not depend on the sentence.")


class Substitute(BaseModel):
    word: str
    probability: float
    log_prob: float


class SubstitutesResponse(WordAnswer):
    substitutes: list[Substitute]


class TextScore(BaseModel):
    model_config = ConfigDict(extra="allow")
    index: int
    forward: float
    backward: float | None
    mean: float
    perplexity: float


class ScoreResponse(Warned):
    model: str
    data: list[TextScore]


class Filling(BaseModel):
    piece: str
    probability: float
    log_prob: float


class FillResponse(Warned):
    model: str
    text: str
    fillings: list[list[Filling]]


class SimilarWord(BaseModel):
    word: str
    cosine: float


class SimilarResponse(Warned):
    model: str
    word: str
    similar: list[SimilarWord]


class PredictedSpan(BaseModel):
    """A span that a tagger found."""

    begin: int = Field(description="Its first word.")
    end: int = Field(description="The word behind its last.")
    label: str
    text: str = Field(description="As it stands in the text.")
    start_char: int = Field(description="Its first character in the text.")
    end_char: int = Field(description="The character behind its last.")


class Prediction(BaseModel):
    model_config = ConfigDict(extra="allow")
    index: int
    spans: list[PredictedSpan] | None = Field(None, description="Of a tagger whose tags mark spans; missing for other tasks.")


class PredictResponse(Warned):
    task: str
    kind: str
    data: list[Prediction]


class ModelEntry(BaseModel):
    id: str
    object: str
    created: int
    owned_by: str
    kind: str
    layers: int
    dim: int
    static: bool = Field(description="Whether a word has the same vector in every sentence.")
    splitter: str
    language: str | None = Field(description="`en`, `zh`, or null if the splitter does not tell.")
    searches: Literal["samples", "corpus"] | None = Field(description="The text of `neighbours`; null: there is none.")
    endpoints: list[str]


class TaskEntry(BaseModel):
    id: str
    object: str
    kind: str
    language: str | None = Field(description="`en`, `zh`, or null if the splitter does not tell.")
    labels: list[str]
    layer_weights: dict[str, list[float]] = Field(description="What its mixes of layers have learned.")


class ModelsResponse(BaseModel):
    object: str
    data: list[ModelEntry]
    tasks: list[TaskEntry]


_REASONS = {
    401: "The key is missing or wrong.",
    404: "No model or task of this name is loaded.",
    406: "Accept names no type that is known.",
    408: "The body arrived too slowly.",
    413: "The body is too large (--max-body-bytes).",
    415: "The body is not application/json.",
    421: "The Host header names another host.",
    422: "The request cannot be read; the message says which item, and why.",
    429: "The queue is full; Retry-After says when to try again.",
    503: "The models are loading, or there is not enough memory.",
}


def ERRORS(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Responses for some statuses."""
    return {status: {"model": ErrorResponse, "description": _REASONS[status]} for status in statuses}


def answers(model: type[BaseModel], *more: int) -> dict[int | str, dict[str, Any]]:
    return {200: {"model": model}, **ERRORS(*sorted({401, 404, 408, 413, 415, 421, 422, 429, 503, *more}))}


MODELS: dict[int | str, dict[str, Any]] = {200: {"model": ModelsResponse}, **ERRORS(401, 421, 503)}
WORDS = answers(WordsResponse, 406)
WORDS[200] |= {"content": {RAW_TYPE: {"schema": {"type": "string", "format": "binary"}}}}
TOKENIZE = answers(TokenizeResponse)
EMBEDDINGS = answers(EmbeddingsResponse)
NEIGHBOURS = answers(NeighboursResponse)
SUBSTITUTES = answers(SubstitutesResponse)
SCORE = answers(ScoreResponse)
FILL = answers(FillResponse)
SIMILAR = answers(SimilarResponse)
PREDICT = answers(PredictResponse)


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document; made once."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=DESCRIPTION, routes=app.routes)
        made["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        made["security"] = [{"key": []}, {}]
        app.openapi_schema = made
    return app.openapi_schema
