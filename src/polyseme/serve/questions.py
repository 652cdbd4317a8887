"""Endpoints that ask a model about words: neighbours, substitutes, scores, masked words, similar words; and trained tasks."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from polyseme.base.errors import FormatError, PolysemeError
from polyseme.encoders.language_model import find_position
from polyseme.encoders.scoring import EMPTY
from polyseme.serve.batching import Item, Operation
from polyseme.serve.errors import unreadable
from polyseme.serve.models import ServedModel
from polyseme.serve.requests import (
    FillRequest,
    NeighboursRequest,
    PredictRequest,
    ScoreRequest,
    SimilarRequest,
    SubstitutesRequest,
)
from polyseme.serve.responses import JsonResponse, while_connected
from polyseme.serve.script_check import task_warned, warned
from polyseme.serve.service import Service
from polyseme.text.empty_texts import caller_names_empty_texts


async def neighbours(service: Service, request: Request, body: NeighboursRequest) -> Response:
    """Find the words of the searched text that are nearest to a word in its sentence."""
    from polyseme.analysis.config import NeighboursConfig
    from polyseme.analysis.neighbours import neighbours as search

    model = service.loaded.model(body.model)
    if model.index is None:
        raise unreadable(model.no_index, "model")
    same, others = body.same_word is True, body.same_word is False
    config = NeighboursConfig(count=body.count, window=body.window, same_word=same, other_words=others)

    def compute(questions: list[tuple[list[str], int]]) -> list[Any]:
        return [answer(words, place) for words, place in questions]

    def answer(words: list[str], place: int) -> Any:
        vectors = service.sentences.vectors(model, words)
        return search(model.encoder, words, position=place, index=model.index, vectors=vectors, config=config).to_json()

    operation = Operation(("neighbours", model.name, config), compute)
    return await _about_a_word(service, request, model, body, operation)


async def substitutes(service: Service, request: Request, body: SubstitutesRequest) -> Response:
    """List the words that fit best at a position of a sentence."""
    model = service.loaded.model(body.model)

    def compute(questions: list[tuple[list[str], int]]) -> list[Any]:
        return [answer(words, place) for words, place in questions]

    def answer(words: list[str], place: int) -> Any:
        read = service.sentences.read(model, words)
        if read is None:  # the encoder says what it lacks
            return model.encoder.substitutes(words, place, count=body.count).to_json()
        return read.substitutes(place, body.count).to_json()

    operation = Operation(("substitutes", model.name, body.count), compute)
    return await _about_a_word(service, request, model, body, operation)


async def _about_a_word(
    service: Service, request: Request, model: ServedModel, body: NeighboursRequest | SubstitutesRequest, operation: Operation
) -> Response:
    text = (await service.split(model, [body.text], "text"))[0]
    try:
        position = find_position(body.text, text.words, body.word, body.position)
    except PolysemeError as error:
        raise unreadable(str(error), "word" if body.position is None else "position") from None
    answer = await service.ask(request, operation, (text.words, position), len(text.words))
    return JsonResponse({"model": model.name, **warned(model, [body.text]), "offsets": text.offsets, **answer})


async def score(service: Service, request: Request, body: ScoreRequest) -> Response:
    """Score texts by a language model."""
    model = service.loaded.model(body.model)
    texts = await service.split(model, body.input)
    operation = Operation(("score", model.name), lambda some: model.encoder.log_probs(some))
    items = [Item(text.words, len(text.words)) for text in texts]
    results = await service.ask_all(request, operation, items)
    data = [
        {"index": number, **result.to_json(words=body.words), **({"offsets": text.offsets} if body.words else {})}
        for number, (result, text) in enumerate(zip(results, texts, strict=True))
    ]
    return JsonResponse({"model": model.name, **warned(model, body.input, empty=EMPTY), "data": data})


async def fill(service: Service, request: Request, body: FillRequest) -> Response:
    """Fill in the masked words of a text."""
    model = service.loaded.model(body.model)
    words = (await service.split(model, [body.text], "text"))[0].words
    operation = Operation(
        ("fill", model.name, body.count),
        lambda texts: [model.encoder.fill(text, count=body.count).to_json() for text in texts],
    )
    answer = await service.ask(request, operation, body.text, len(words))
    return JsonResponse({"model": model.name, **warned(model, [body.text]), **answer})


async def similar(service: Service, request: Request, body: SimilarRequest) -> Response:
    """Find the words nearest to a word out of context."""
    model = service.loaded.model(body.model)
    space = await while_connected(request, service.word_space(model))
    operation = Operation(
        ("similar", model.name, body.count), lambda some: [space.similar(word, body.count).to_json() for word in some]
    )
    answer = await service.ask(request, operation, body.word, 1)
    found = [*warned(model, [body.word]).values(), *filter(None, [space.warning(body.word)])]
    return JsonResponse({"model": model.name, **({"warning": "; ".join(found)} if found else {}), **answer})


async def predict(service: Service, request: Request, name: str, body: PredictRequest) -> Response:
    """Predict with a trained task."""
    task = service.loaded.task(name)
    items = list[Item]()
    service.check_texts(body.input)
    for number, line in enumerate(body.input):
        try:
            given = _given(task, line, f"item {number}")
        except PolysemeError as error:
            raise unreadable(str(error), f"input[{number}]") from None
        words = len(task.words(line))
        service.check_words(words, number)
        items.append(Item([(line, given)], words))
    if getattr(task.config, "document_context", False):  # the texts of a request are one document or several
        items = [Item([pair for item in items for pair in item.content], sum(item.words for item in items))]
    operation = Operation(("predict", name), lambda groups: _predictions(task, groups))
    results = await service.ask_all(request, operation, items)
    data = [{"index": number, **each} for number, each in enumerate(each for group in results for each in group)]
    return JsonResponse({"task": name, "kind": task.kind, **task_warned(task, body.input), "data": data})


def _given(task: Any, line: str | list[str], where: str) -> Any:
    """The input of a task: a line is read, the words of a text stay as they are."""
    if isinstance(line, str):
        return task.parse_line(line, where)
    if task.texts_per_line != 1:
        what = f"is a list of words, and a task for {task.kind} reads more than the words of one text"
        raise FormatError(where, f"{what}: give a text in the form of a line of `polyseme predict`")
    return line


def _predictions(task: Any, groups: list[list[tuple[str | list[str], Any]]]) -> list[list[dict[str, Any]]]:
    """Predict groups of texts that are read together; where each text is alone, all at once."""
    if len(groups) > 1 and getattr(task.config, "document_context", False):
        return [each for group in groups for each in _predictions(task, [group])]
    pairs = [pair for group in groups for pair in group]
    with caller_names_empty_texts():  # in the answer
        found = iter(task.predict([given for _, given in pairs]))
    lines = [[line if isinstance(line, str) else "" for line, _ in group] for group in groups]  # predictions know their words
    return [[task.prediction_json(line, next(found)) for line in some] for some in lines]
