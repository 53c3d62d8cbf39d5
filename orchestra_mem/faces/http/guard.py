"""Middleware in front of every route: checks host, origin, token, rate, size and time, and sets security headers.

A refusal is a problem response (RFC 9457) that reports all faults of a request at once.

A web page of another site can make a browser send requests to this machine, and the site's host name can resolve to
this machine (DNS rebinding). So each request needs a known host and a token, and must not come from a foreign page.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cachetools import LRUCache
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestra_mem import errors
from orchestra_mem.faces.http.json_answers import JsonResponse
from orchestra_mem.faces.http.tokens import LOCAL_HOSTS, AccessTokens, cookie_name
from orchestra_mem.faces.records import counted
from orchestra_mem.settings import ServerSettings

logger = logging.getLogger(__name__)

_METHODS = ("GET", "PUT", "POST", "PATCH", "DELETE")
_NO_TEXT = "the request contains invalid text: half of a surrogate pair"
# An error gets the status of the first class in its MRO that is a key.
_STATUS: dict[type[Exception], int] = {
    errors.NotFoundError: 404,
    errors.AccessDeniedError: 403, errors.StorageReadOnlyError: 403,
    errors.InvalidOperationError: 422, errors.InvalidItemError: 422,
    errors.InvalidChangeError: 409, errors.DocumentError: 409, errors.DocumentConflictError: 412,
    errors.StorageError: 503, errors.ClosedError: 503, errors.SearchError: 503, errors.EmbedderError: 503,
    errors.ModelError: 503, errors.StorageFullError: 507, errors.OrchestraMemError: 500,
}  # fmt: skip


class Problem(JsonResponse):
    """A refused or failed request. `faults` lists the invalid fields, each by name with its problem."""

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
        """Send the response, to browsers as a page. On chat routes, add the `error` object of OpenAI's API."""
        if "text/html" in Headers(scope=scope).get("accept", ""):
            from orchestra_mem.faces.http.web.pages import refusal_page

            self.body, self.headers["content-security-policy"] = refusal_page(self._told, scope)
            self.headers["content-type"] = "text/html; charset=utf-8"
        elif scope["path"].startswith("/v1/"):  # OpenAI's clients show only the message in `error`
            self.body = self.render({**self._told, "error": chat_error(self.status_code, self._told["detail"])})
        self.headers["content-length"] = str(len(self.body))
        await super().__call__(scope, receive, send)


def chat_error(status: int, words: str) -> dict[str, Any]:
    """Return the `error` object of OpenAI's API."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"message": words, "type": kind, "param": None, "code": None}


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
    for status, words in (
        ("4XX", "The request was refused; `detail` says why."),
        ("5XX", "The server could not answer; `detail` says why."),
    )
}
"""The error responses in the OpenAPI description of each route."""


async def _told(request: Request, error: Exception) -> Problem:
    status = next(_STATUS[each] for each in type(error).__mro__ if each in _STATUS)
    faults: Sequence[str] = getattr(error, "faults", (str(error),)) if status == 422 else ()
    headers = {"Retry-After": "1"} if isinstance(error, errors.LockTimeoutError) else {}
    return Problem(status, str(error), faults, headers)


async def _refused(request: Request, error: Exception) -> Problem:
    assert isinstance(error, HTTPException)
    detail, headers = error.detail, error.headers
    if error.status_code == 405:  # each route knows only its own method
        headers = {"Allow": ", ".join(each for each in _METHODS if _answers(request, each))}
    elif error.status_code == 404 and detail == HTTPStatus.NOT_FOUND.phrase:
        detail = "there is no such address: `/openapi.json` lists the routes, chats go to `/v1/chat/completions`"
    elif error.status_code == 413:
        detail = "the body is larger than `server.max_body_bytes` allows"
    elif error.__cause__:  # FastAPI does not say why
        detail = f"the body cannot be read: {error.__cause__}"
    return Problem(error.status_code, detail, headers=headers)


def _answers(request: Request, method: str) -> bool:
    scope = {"type": "http", "method": method, "path": request.scope["path"], "headers": []}
    return any(route.matches(scope)[0] is Match.FULL for route in request.app.router.routes)


async def _invalid(request: Request, error: Exception) -> Problem:
    assert isinstance(error, RequestValidationError)
    faults = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
    if (first := error.errors()[0])["type"] == "json_invalid":  # the only fault; say which, and in which line
        faults = [f"the body is not JSON: {json.JSONDecodeError(first['ctx']['error'], error.body, first['loc'][1])}"]
    kind = request.headers.get("content-type", "nothing")
    is_json = kind.lower().startswith("application/") and kind.partition(";")[0].lower().endswith(("/json", "+json"))
    # JSON of another type is not parsed, but a document is, if its type is JSON.
    unread = any(each["loc"] == ("body",) or (is_json and each["loc"][0] == "body") for each in error.errors())
    if unread and is_json == (request.method == "PUT"):
        faults.append(f"header.content-type: {kind} was sent; send application/json, or text/markdown for a document")
    return Problem(422, f"the request has {counted(len(faults), 'fault')}: {'; '.join(faults)}", faults)


def failed() -> Problem:
    """Return the response for an unexpected error."""
    words = "internal error: the fault is in the server, not in the request; see the server's log"
    return Problem(500, words)


HANDLERS: dict[int | type[Exception], Any] = {
    errors.OrchestraMemError: _told,
    HTTPException: _refused,
    RequestValidationError: _invalid,
    UnicodeEncodeError: lambda request, error: Problem(422, _NO_TEXT),
    Exception: lambda request, error: failed(),
}


_MOST_BUCKETS = 10_000
_BURST = 2.0
_READING = ("GET", "HEAD", "OPTIONS")
_FOREIGN_SITES = ("cross-site", "same-site")
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff", "x-frame-options": "DENY", "cache-control": "no-store",
    # With `no-referrer` browsers send the forms of the server's own pages with `Origin: null`.
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin", "cross-origin-opener-policy": "same-origin",
}  # fmt: skip
# Response headers that pages of allowed origins may read.
_CORS_READ = (
    "ETag", "Location", "Retry-After", "X-Memory", "X-Memory-Tokens", "X-Memory-Sources", "X-Memory-Problem"
)  # fmt: skip


class Rates:
    """A token bucket for each sender: `per_s` requests a second, in bursts of up to twice as many."""

    def __init__(self, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._most = max(1.0, per_s * _BURST)
        self._clock = clock
        self._left: LRUCache[str, tuple[float, float]] = LRUCache(_MOST_BUCKETS)

    def wait_s(self, sender: str) -> float:
        """Count a request. Return the seconds until its sender may retry, 0 if the request is allowed."""
        now = self._clock()
        left, last = self._left.get(sender, (self._most, now))
        left = min(self._most, left + (now - last) * self._per_s)
        allowed = left >= 1
        self._left[sender] = (left - allowed, now)
        return 0.0 if allowed else (1 - left) / self._per_s


class RequestGuard:
    """ASGI middleware: forwards allowed requests with `caller` and `time_limit` in their scope, refuses the others."""

    def __init__(self, app: ASGIApp, tokens: AccessTokens, settings: ServerSettings) -> None:
        self._app = app
        self._tokens = tokens
        self._hosts = {each.lower() for each in (*LOCAL_HOSTS, settings.host, *settings.allowed_hosts)}
        self._origins = [each.lower().rstrip("/") for each in settings.allowed_origins]
        self._cors = CORSMiddleware(
            app, allow_origins=self._origins, allow_methods=["*"], allow_headers=["*"], expose_headers=_CORS_READ
        )
        self._max_body_bytes = settings.max_body_bytes
        self._timeout_s = settings.timeout_s
        self._rates = Rates(settings.requests_per_s)
        self._limits: set[asyncio.Timeout] = set()
        self._is_ending = False

    def end(self) -> None:
        """Cancel the requests that are still running."""
        self._is_ending = True
        if self._limits:
            logger.warning("requests cancelled because the server is shutting down: %d", len(self._limits))
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward or refuse a request; pass lifespan events on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun, status, asked = time.perf_counter(), 0, Headers(scope=scope)

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await (self._cors.send(message, send, asked) if self._origins else send(message))

        refusal = self._refusal(scope, asked)
        if refusal is None:
            limit = scope["time_limit"] = asyncio.timeout(self._timeout_s)

            async def answer_in_time(message: Message) -> None:
                if not (self._is_ending or limit.expired()):
                    limit.reschedule(None)  # the limit is for the first byte: a stream may take any time
                await answer(message)

            try:
                async with limit:
                    self._limits.add(limit)
                    await self._app(scope, receive, answer_in_time)
            except ClientDisconnect:
                logger.debug("a client disconnected before its request was complete")
            except Exception as error:
                if isinstance(error, TimeoutError) and limit.expired():
                    refusal = self._late()
                else:  # log only the type: the message may quote the memory
                    refusal = failed()
                    logger.error("a request failed: %s; start the server with --debug to log where", _kind(error))
                    logger.debug("where it failed", exc_info=error)
            finally:
                self._limits.discard(limit)
        if refusal is not None and not status:
            await refusal(scope, receive, answer)
        route = getattr(scope.get("route"), "path", "-")  # not the URL, which may quote the memory
        took = (time.perf_counter() - begun) * 1000
        logger.info("%s %s: %d, %.1f ms", scope["method"], route, status, took)

    def _late(self) -> Problem:
        begun = "the request may still take effect"
        if self._is_ending:
            return Problem(503, f"the server is shutting down; {begun}")
        return Problem(504, f"no answer within {self._timeout_s:g} s, see `server.timeout_s`; {begun}")

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the response if the request is refused or is a CORS preflight; else set `caller`, and return None."""
        problem = self._foreign(headers)
        if problem:
            return Problem(403, problem)
        if scope["method"] == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers:
            if headers["origin"].lower() in self._origins:
                return self._cors.preflight_response(headers)
            words = "requests from this origin are not allowed; add it to `server.allowed_origins` to allow them"
            return Problem(403, words)
        caller = self._caller(scope, headers)
        address = scope["client"][0] if scope.get("client") else ""
        wait_s = self._rates.wait_s(f"address {address}" if caller is None else f"agent {caller}")
        if wait_s:
            words = "too many requests; `server.requests_per_s` sets the limit"
            return Problem(429, words, headers={"Retry-After": str(int(wait_s) + 1)})
        if caller is None:
            words = "a valid token is required: send it as `Authorization: Bearer …`; `orchestra-mem serve` printed it"
            return Problem(401, words, headers={"WWW-Authenticate": 'Bearer realm="orchestra-mem"'})
        if int(headers.get("content-length", "0")) > self._max_body_bytes:
            return Problem(413, f"the body is larger than {self._max_body_bytes:,} bytes, see `server.max_body_bytes`")
        tells_its_page = "origin" in headers or headers.get("sec-fetch-site") == "same-origin"
        if scope["method"] not in _READING and "authorization" not in headers and not tells_its_page:
            return Problem(403, "a request that changes something and uses a cookie must have an `Origin` header")
        scope["caller"] = caller
        return None

    def _foreign(self, headers: Headers) -> str:
        """Return why the host or the origin of a request is not allowed; "" if both are allowed."""
        host = headers.getlist("host")
        if len(host) != 1 or _host_name(host[0]) not in self._hosts:
            return "the name in `Host` is not allowed; add it to `server.allowed_hosts` to allow it"
        origin = headers.get("origin")
        if origin is None:
            if headers.get("sec-fetch-site") in _FOREIGN_SITES:
                return "the request comes from a page of another site"
        elif origin.lower() not in self._origins and _netloc(origin) != host[0].lower():
            return (
                "the request comes from a page of another site; add its origin to `server.allowed_origins` to allow it"
            )
        return ""

    def _caller(self, scope: Scope, headers: Headers) -> str | None:
        """Return the holder of the request's token: an agent's name, or `OWNER`; None without a valid token."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._tokens.holder(token.strip())
        if scope["path"] == "/" and scope["method"] == "GET":  # the URL that `serve` prints; `home` sets the cookie
            found = parse_qs(scope["query_string"].decode("latin-1")).get("token")
            if found:
                return self._tokens.holder(found[0])
        # Lenient, because browsers also send the cookies of other servers on this machine, which may be malformed.
        return self._tokens.holder(cookie_parser(headers.get("cookie", "")).get(cookie_name(scope), ""))


def _kind(error: Exception) -> str:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return type(error).__name__


def _host_name(host: str) -> str | None:
    with suppress(ValueError):
        return urlsplit(f"//{host}").hostname
    return None


def _netloc(origin: str) -> str | None:
    with suppress(ValueError):
        parts = urlsplit(origin.lower())
        return parts.netloc if parts.scheme in ("http", "https") else None
    return None
