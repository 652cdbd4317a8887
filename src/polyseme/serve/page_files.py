"""The files of the explorer page: `/` and what is below `/page/`, from the package, under a strict Content-Security-Policy.

The page needs no key, since it holds nothing of the user's; what it asks below `/v1` does. Nothing outside the package is
served: the names are those that are there when the service starts.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from polyseme.serve.errors import ApiError

PREFIX = "/page/"
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob: data:",  # pictures that the page draws for export
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


def is_page(path: str) -> bool:
    """Whether an address is that of the page or of one of its files."""
    return path == "/" or path.startswith(PREFIX)


def page_router() -> APIRouter:
    """The page and its files; they are in memory (some 100 kB)."""
    router, found = APIRouter(), dict(_files(files("polyseme.serve") / "page"))

    @router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def page(request: Request) -> Response:
        return _response(request, found, "index.html")

    @router.get("/page/{name:path}", include_in_schema=False)
    async def file(request: Request, name: str) -> Response:
        return _response(request, found, name)

    return router


def _files(folder: Traversable, before: str = "") -> list[tuple[str, bytes]]:
    names = list[tuple[str, bytes]]()
    for each in folder.iterdir():
        if each.is_dir():
            names += _files(each, f"{before}{each.name}/")
        elif _type(each.name):
            names.append((before + each.name, each.read_bytes()))
    return names


def _type(name: str) -> str | None:
    return next((kind for ending, kind in _TYPES.items() if name.endswith(ending)), None)


def _response(request: Request, found: dict[str, bytes], name: str) -> Response:
    if name not in found:
        raise ApiError(404, "the page has no file of this name")
    tag = f'"{hashlib.sha256(found[name]).hexdigest()[:32]}"'
    headers = {
        "content-security-policy": POLICY,
        "cache-control": "no-cache",  # asks whether it has changed
        "cross-origin-opener-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "etag": tag,
    }
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(found[name], headers=headers, media_type=_type(name))
