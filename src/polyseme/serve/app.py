"""The application: endpoints, limits, errors. `create_app` makes it; `polyseme.serve.server` runs it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response

from polyseme import __version__
from polyseme.base.errors import PolysemeError
from polyseme.serve import explorer, questions, sense_maps, vectors
from polyseme.serve.access import AccessLog
from polyseme.serve.config import ServeConfig
from polyseme.serve.errors import ApiError, api_error, not_ready, unreadable
from polyseme.serve.limits import MAX_NAME, PARSED, Gate, HostCheck
from polyseme.serve.logs import error_without_texts
from polyseme.serve.openapi import (
    EMBEDDINGS,
    ERRORS,
    FILL,
    MODELS,
    NEIGHBOURS,
    PREDICT,
    SCORE,
    SIMILAR,
    SUBSTITUTES,
    TOKENIZE,
    WORDS,
    document,
)
from polyseme.serve.page_files import page_router
from polyseme.serve.requests import (
    EmbeddingsRequest,
    FillRequest,
    NeighboursRequest,
    PredictRequest,
    ScoreRequest,
    SimilarRequest,
    SubstitutesRequest,
    TokenizeRequest,
    WordsRequest,
)
from polyseme.serve.responses import JsonResponse
from polyseme.serve.service import Loader, Service

_MESSAGES = {"missing": "it is missing", "extra_forbidden": "no field has this name; /openapi.json lists them"}
_HTTP_MESSAGES = {
    404: "there is nothing at this address: /openapi.json lists the endpoints",
    405: "this address does not take this method; allowed: {allowed}",
}
_log = logging.getLogger(__name__)


def create_app(
    config: ServeConfig, load: Loader, on_failure: Callable[[Exception], None] | None = None, threads: int | None = None
) -> FastAPI:
    """Make the application; `load` runs in a thread when it starts, and `on_failure` hears if that fails.

    `threads` compute; None: as many as PyTorch chooses.
    """
    service = Service(config, load, threads)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        loading = asyncio.create_task(service.load())
        loading.add_done_callback(lambda task: _loaded(task, on_failure))
        yield
        loading.cancel()
        await service.stop()

    app = FastAPI(title="polyseme", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.router.redirect_slashes = False  # behind a proxy the address would lose its https
    app.state.service = service
    app.include_router(_health(service))
    app.include_router(_v1(service))
    app.include_router(page_router())
    app.openapi = lambda: document(app)  # type: ignore[method-assign]
    _add_errors(app)
    app.add_middleware(Gate, config=config, refusal=service.refusal)
    if config.allow_origin:
        exposed = ["x-dtype", "x-dim", "x-words", "x-layers", "x-word-counts", "x-warning", "x-request-id", "retry-after"]
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(config.allow_origin),
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
            expose_headers=exposed,
        )
    app.add_middleware(HostCheck, config=config)
    app.add_middleware(AccessLog, metrics=service.metrics)
    return app


def _loaded(task: asyncio.Task[None], on_failure: Callable[[Exception], None] | None) -> None:
    error = None if task.cancelled() else task.exception()
    if isinstance(error, Exception) and on_failure is not None:
        on_failure(error)


class JsonRoute(APIRoute):
    """Takes the JSON that `Gate` has parsed."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            return await handle(_ParsedRequest(request.scope, request.receive))

        return handler


class _ParsedRequest(Request):
    async def json(self) -> Any:
        return self.scope[PARSED]


def _health(service: Service) -> APIRouter:
    router = APIRouter()

    @router.get("/livez", tags=["health"], summary="Whether the process answers, also while it loads.")
    async def livez() -> dict[str, str]:
        return {"status": "alive"}

    router.head("/livez", include_in_schema=False)(livez)

    @router.get("/readyz", tags=["health"], summary="Whether the models are loaded.", responses=ERRORS(503))
    async def readyz() -> dict[str, str]:
        if not service.ready:
            raise not_ready()
        return {"status": "ready"}

    router.head("/readyz", include_in_schema=False)(readyz)

    @router.get(
        "/metrics",
        tags=["health"],
        summary="Numbers for Prometheus.",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router


def _v1(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1", route_class=JsonRoute)

    @router.get("/models", tags=["models"], summary="The loaded models and tasks.", responses=MODELS)
    async def models() -> Response:
        return JsonResponse(service.loaded.to_json())

    @router.post("/words", tags=["vectors"], summary="Vectors of words in context.", responses=WORDS)
    async def words(request: Request, body: WordsRequest) -> Response:
        return await vectors.words(service, request, body)

    @router.post("/tokenize", tags=["vectors"], summary="Words, as the model splits them.", responses=TOKENIZE)
    async def tokenize(body: TokenizeRequest) -> Response:
        return await vectors.tokenize(service, body)

    @router.post("/embeddings", tags=["vectors"], summary="One vector per text (OpenAI's API).", responses=EMBEDDINGS)
    async def embeddings(request: Request, body: EmbeddingsRequest) -> Response:
        return await vectors.embeddings(service, request, body)

    @router.post("/neighbours", tags=["words"], summary="Nearest words in context.", responses=NEIGHBOURS)
    async def neighbours(request: Request, body: NeighboursRequest) -> Response:
        return await questions.neighbours(service, request, body)

    @router.post("/substitutes", tags=["words"], summary="Words that fit at a position.", responses=SUBSTITUTES)
    async def substitutes(request: Request, body: SubstitutesRequest) -> Response:
        return await questions.substitutes(service, request, body)

    @router.post("/score", tags=["words"], summary="Log-probabilities and perplexity.", responses=SCORE)
    async def score(request: Request, body: ScoreRequest) -> Response:
        return await questions.score(service, request, body)

    @router.post("/fill", tags=["words"], summary="Words for the masks of a text.", responses=FILL)
    async def fill(request: Request, body: FillRequest) -> Response:
        return await questions.fill(service, request, body)

    @router.post("/similar", tags=["words"], summary="Nearest words out of context.", responses=SIMILAR)
    async def similar(request: Request, body: SimilarRequest) -> Response:
        return await questions.similar(service, request, body)

    @router.post("/predict/{task}", tags=["tasks"], summary="Predictions of a trained task.", responses=PREDICT)
    async def predict(request: Request, task: str, body: PredictRequest) -> Response:
        return await questions.predict(service, request, task, body)

    explorer.add_routes(router, service)
    sense_maps.add_routes(router, service)
    return router


def _add_errors(app: FastAPI) -> None:
    async def known(_: Request, error: Exception) -> Response:
        return api_error(error).response()

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return _invalid(error).response()

    async def http(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        message = _HTTP_MESSAGES.get(error.status_code, str(error.detail))
        allowed = (error.headers or {}).get("Allow", "")
        return ApiError(error.status_code, message.format(allowed=allowed), headers=error.headers).response()

    async def bug(_: Request, error: Exception) -> Response:
        _log.error("internal error, please report this line: %s", error_without_texts(error))
        return api_error(RuntimeError()).response()

    for kind in (ApiError, PolysemeError):
        app.add_exception_handler(kind, known)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, bug)


def _invalid(error: RequestValidationError) -> ApiError:
    """The first fields that are wrong, and why; never their content."""
    lines = dict[str, str]()
    for each in error.errors():
        if isinstance(cause := each.get("ctx", {}).get("error"), Exception):
            cause.__traceback__ = None  # its frames lead back to it, and would keep the body until a full garbage collection
        where = ".".join(str(part)[:MAX_NAME] for part in each["loc"][1:2]) or "the body"
        message = _MESSAGES.get(each["type"]) or str(each["msg"]).removeprefix("Value error, ")
        lines[where] = f"{lines[where]}, or {message}" if where in lines and message not in lines[where] else message
    text = "; ".join(f"{where}: {message}" for where, message in list(lines.items())[:5])
    return unreadable(text, next(iter(lines), None))
