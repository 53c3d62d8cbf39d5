"""The page at the server's address: takes the token out of the address into a cookie, and lists the routes."""

from __future__ import annotations

from html import escape

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from orchestra_mem.faces.http.guard import cookie_name

router = APIRouter()


@router.get("/", include_in_schema=False)
async def start_page(request: Request, token: str | None = None) -> Response:
    """Show what can be asked here."""
    if token is not None:
        answer = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        answer.set_cookie(cookie_name(request.scope), token, httponly=True, samesite="strict", secure=secure)
        return answer
    rows = [
        f"<tr><td>{escape(method.upper())}<td><code>{escape(path)}</code><td>{escape(told['description'])}"
        for path, methods in request.app.openapi()["paths"].items()
        for method, told in methods.items()
    ]
    return HTMLResponse(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>orchestra-mem</title><h1>orchestra-mem</h1>'
        '<p>The API of this memory, described in <a href="/openapi.json">/openapi.json</a>.</p>'
        f"<table><thead><tr><th>method<th>path<th>what it does<tbody>{''.join(rows)}</table></html>"
    )
