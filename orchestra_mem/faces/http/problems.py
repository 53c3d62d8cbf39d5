"""Refusals: each is a problem body (RFC 9457) with a plain sentence, and tells all faults of a request at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from orchestra_mem import errors
from orchestra_mem.faces.records import counted
from orchestra_mem.serialize import dump_json

_METHODS = ("GET", "PUT", "POST", "PATCH", "DELETE")
_NO_TEXT = "the request holds characters that are no text: half of a surrogate pair"
# By class, the nearest in its tree.
_STATUS: dict[type[Exception], int] = {
    errors.NotFoundError: 404,
    errors.AccessDeniedError: 403,
    errors.InvalidOperationError: 422,
    errors.InvalidItemError: 422,
    errors.InvalidChangeError: 409,
    errors.DocumentConflictError: 412,
    errors.DocumentError: 409,
    errors.StorageReadOnlyError: 403,
    errors.StorageFullError: 507,
    errors.StorageError: 503,
    errors.ClosedError: 503,
    errors.SearchError: 503,
    errors.EmbedderError: 503,
    errors.ModelError: 503,
    errors.OrchestraMemError: 500,
}


class Problem(JSONResponse):
    """A refusal. `faults` lists what is wrong with a request, each with the name of its field."""

    media_type = "application/problem+json"

    def __init__(
        self, status: int, detail: str, faults: Sequence[str] = (), headers: Mapping[str, str] | None = None
    ) -> None:
        body: dict[str, Any] = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
        body["detail"] = detail
        if faults:
            body["faults"] = [*faults]
        super().__init__(body, status, headers)
        self._told = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; to a browser as a page, and where chats are answered also as OpenAI's clients read it."""
        if "text/html" in Headers(scope=scope).get("accept", ""):
            from orchestra_mem.faces.http.web.pages import refusal_page

            self.body, self.headers["content-security-policy"] = refusal_page(self._told, scope)
            self.headers["content-type"] = "text/html; charset=utf-8"
        elif scope["path"].startswith("/v1/"):  # they would show the status alone
            error = {"message": self._told["detail"], "type": "invalid_request_error"}
            self.body = self.render({**self._told, "error": error})
        self.headers["content-length"] = str(len(self.body))
        await super().__call__(scope, receive, send)

    def render(self, content: Any) -> bytes:
        """Write the body as ASCII, whatever characters a sentence quotes."""
        return dump_json(content).encode("ascii")


_BODY = {
    "schema": {
        "type": "object", "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"},
            "detail": {"type": "string"}, "faults": {"type": "array", "items": {"type": "string"}},
        },
    },
    "example": {"type": "about:blank", "title": "Not Found", "status": 404, "detail": "there is no operation 7"},
}  # fmt: skip
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"description": words, "content": {"application/problem+json": _BODY}}
    for status, words in (("4XX", "The request is refused, and why."), ("5XX", "It cannot be answered, and why."))
}
"""What the description of each route says of refusals."""


async def _told(request: Request, error: Exception) -> Problem:
    status = next(_STATUS[each] for each in type(error).__mro__ if each in _STATUS)
    faults: Sequence[str] = getattr(error, "faults", (str(error),)) if status == 422 else ()
    headers = {"Retry-After": "1"} if isinstance(error, errors.LockTimeoutError) else {}
    return Problem(status, str(error), faults, headers)


async def _refused(request: Request, error: Exception) -> Problem:
    assert isinstance(error, HTTPException)
    headers = error.headers
    if error.status_code == 405:  # the route that said so knows its own method alone
        headers = {"Allow": ", ".join(each for each in _METHODS if _answers(request, each))}
    return Problem(error.status_code, error.detail, headers=headers)


def _answers(request: Request, method: str) -> bool:
    scope = {"type": "http", "method": method, "path": request.scope["path"], "headers": []}
    return any(route.matches(scope)[0] is Match.FULL for route in request.app.router.routes)


async def _invalid(request: Request, error: Exception) -> Problem:
    assert isinstance(error, RequestValidationError)
    faults = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
    kind = request.headers.get("content-type")
    if kind and any(each["loc"] == ("body",) for each in error.errors()):  # a body of another kind was not read
        faults.append(f"header.content-type: {kind} was sent; send application/json, or text/markdown of a document")
    return Problem(422, f"the request has {counted(len(faults), 'fault')}: {'; '.join(faults)}", faults)


def failed() -> Problem:
    """Answer what should not have happened."""
    words = "this should not have happened: it is a fault of the server's, not of the request; its log says which"
    return Problem(500, words)


HANDLERS: dict[int | type[Exception], Any] = {
    errors.OrchestraMemError: _told,
    HTTPException: _refused,
    RequestValidationError: _invalid,
    UnicodeEncodeError: lambda request, error: Problem(422, _NO_TEXT),
    Exception: lambda request, error: failed(),
}
