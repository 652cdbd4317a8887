"""Endpoints that the explorer page asks besides those that other clients use: what is surprising in a sentence, which word
comes next, and the runs of a folder."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import numpy as np
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from polyseme.analysis.next_words import next_words
from polyseme.serve.batching import Operation
from polyseme.serve.errors import unreadable
from polyseme.serve.explorer_schemas import NEXT, RUNS, SURPRISE, NextRequest, SurpriseRequest
from polyseme.serve.models import ServedModel
from polyseme.serve.read_sentences import ReadSentences
from polyseme.serve.responses import JsonResponse
from polyseme.serve.runs import runs_in
from polyseme.serve.script_check import warned
from polyseme.serve.service import Service

MAX_WORDS = 1000
"""Of a text whose words are looked at one by one."""


def add_routes(router: APIRouter, service: Service) -> None:
    """Add the endpoints of the explorer to those under /v1."""

    @router.post("/surprise", tags=["explorer"], summary="How surprising each word is.", responses=SURPRISE)
    async def surprise(request: Request, body: SurpriseRequest) -> Response:
        return await _surprise(service, request, body)

    @router.post("/next", tags=["explorer"], summary="Words that may come next.", responses=NEXT)
    async def following(request: Request, body: NextRequest) -> Response:
        return await _next(service, request, body)

    @router.get("/runs", tags=["explorer"], summary="Curves of the training runs in a folder (--runs).", responses=RUNS)
    async def runs() -> Response:
        return JsonResponse(await asyncio.to_thread(runs_in, service.config.runs))


async def _next(service: Service, request: Request, body: NextRequest) -> Response:
    model = service.loaded.model(body.model)
    text = (await service.split(model, [body.text], "text"))[0]
    operation = Operation(
        ("next", model.name, body.count), lambda some: [next_words(model.encoder, words, body.count) for words in some]
    )
    found = await service.ask(request, operation, text.words, len(text.words) + 1)
    following = [{"word": word, "probability": probability} for word, probability in found]
    return JsonResponse({"model": model.name, **warned(model, [body.text]), "words": text.words, "next": following})


async def _surprise(service: Service, request: Request, body: SurpriseRequest) -> Response:
    model = service.loaded.model(body.model)
    text = (await service.split(model, [body.text], "text"))[0]
    if len(text.words) > MAX_WORDS:
        raise unreadable(f"the text has {len(text.words):,} words; the limit is {MAX_WORDS:,}: send a part of it", "text")
    operation = Operation(
        ("surprise", model.name), lambda some: [surprise_of(service.sentences, model, words) for words in some]
    )
    found = await service.ask(request, operation, text.words, len(text.words))
    told = warned(model, [body.text])
    return JsonResponse({"model": model.name, **told, "words": text.words, "offsets": text.offsets, **found})


def surprise_of(sentences: ReadSentences, model: ServedModel, words: list[str]) -> dict[str, Any]:
    """The surprise of each word in bits, -log2 of its probability: read from the left, from the right, and from both sides.

    A side that the model cannot read is None, and so is a word that is not in its vocabulary.
    """
    sides = sentences.log_probs(model, words)
    if sides is not None:
        return {name: _bits(getattr(sides, name), sides.known) for name in ("left", "right", "both")}
    encoder = model.encoder
    (scores,) = encoder.log_probs([words])
    read_from = "right" if getattr(encoder.config, "backward", False) else "left"
    return {"left": None, "right": None, "both": None, read_from: _bits(scores.forward[: len(words)], scores.known)}


def _bits(log_probs: np.ndarray, known: np.ndarray) -> list[float | None]:
    bits = (-log_probs / math.log(2)).tolist()
    return [value if known[place] and math.isfinite(value) else None for place, value in enumerate(bits)]
