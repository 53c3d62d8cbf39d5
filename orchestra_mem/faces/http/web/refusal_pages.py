"""Refusals as browsers show them: a small page in words in the place of a problem body, with the same status."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders

from orchestra_mem.faces.http.web.pages import page_text, static_file

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_PROBLEM = "application/problem+json"


class RefusalPages:
    """Stands before the guard, and shows what is refused to a browser that asks for a page as one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or "text/html" not in Headers(scope=scope).get("accept", ""):
            await self._app(scope, receive, send)
            return
        refusal: Message | None = None
        body = b""

        async def answer(message: Message) -> None:
            nonlocal refusal, body
            if message["type"] == "http.response.start" and _is_problem(message):
                refusal = message
            elif refusal is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body"):
                    page = _page_of(refusal, body, scope)
                    await send(refusal)
                    await send({"type": "http.response.body", "body": page})

        await self._app(scope, receive, answer)


def _is_problem(start: Message) -> bool:
    return Headers(raw=start["headers"]).get("content-type") == _PROBLEM


def _page_of(refusal: Message, body: bytes, scope: Scope) -> bytes:
    """Write the page of a refusal, and change its headers to go with it."""
    problem = json.loads(body)
    style = (static_file("page.css") or b"").decode()
    tried = b"token=" in scope["query_string"]
    sent = scope["method"] == "POST"
    page = page_text("refusal.html", scope.get("caller"), problem=problem, style=style, tried=tried, was_sent=sent)
    headers = MutableHeaders(scope=refusal)
    headers["content-type"], headers["content-length"] = "text/html; charset=utf-8", str(len(page))
    # Whoever has no token gets no other file, so the page brings its style along: this one style and no other.
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = headers["content-security-policy"].replace("style-src 'self'", f"style-src 'sha256-{digest}'")
    headers["content-security-policy"] = policy
    return page
