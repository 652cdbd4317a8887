"""Bodies of the requests that the explorer page sends, and of their answers."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from polyseme.serve.openapi import Offsets, answers
from polyseme.serve.requests import Body, Text


class SurpriseRequest(Body):
    """A text."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "They sat on the bank of the river."}]})
    text: Text


Bits = Annotated[list[float | None] | None, Field(description="-log2 of the probability of each word; null: not known.")]


class SurpriseResponse(BaseModel):
    model: str
    words: list[str]
    offsets: Offsets
    left: Bits
    right: Bits
    both: Bits


SURPRISE = answers(SurpriseResponse)
