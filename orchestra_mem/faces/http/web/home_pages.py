"""Where people arrive: the token is taken out of the address, the home page, the table of routes, static files."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from orchestra_mem.faces.http.callers import Asker
from orchestra_mem.faces.http.tokens import cookie_name
from orchestra_mem.faces.http.web.pages import render, static_file
from orchestra_mem.faces.http.web.window_chart import window_chart
from orchestra_mem.faces.records import conflict_records, status_record
from orchestra_mem.types import OperationFilter

router = APIRouter(include_in_schema=False)

_NEWEST = 5
_CHARTED = 1_000
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@router.get("/")
def home(request: Request, caller: Asker, token: str | None = None) -> Response:
    """Show the memory as a whole, and first what needs a person."""
    if token is not None:
        answer = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        answer.set_cookie(cookie_name(request.scope), token, httponly=True, samesite="strict", secure=secure)
        return answer
    if not caller.is_owner:
        newest = caller.view.operations(OperationFilter(limit=_NEWEST))[::-1]
        return render(request, "agent_home.html", operations=newest)
    memory, status = caller.memory, status_record(caller.memory, request.app.state.project)
    told = memory.documents.problems()  # as conflicts
    window = status["context_window"]
    chart = window_chart(memory.window_history(_CHARTED), window["max_tokens"])
    level = sum(window["usage_percentage"] >= share for share in status["thresholds"].values())
    return render(
        request, "home.html", state=status, window=window, level=level, chart=chart, conflicts=conflict_records(memory),
        problems=[each for each in status["problems"] if each not in told],
        newest=memory.operations(OperationFilter(limit=_NEWEST))[::-1],
    )  # fmt: skip


@router.get("/api")
def api(request: Request, caller: Asker) -> Response:
    """List the routes of the API."""
    routes = [
        (method.upper(), path, told["description"])
        for path, methods in request.app.openapi()["paths"].items()
        for method, told in methods.items()
    ]
    return render(request, "api.html", routes=routes)


@router.get("/static/{name}")
def static(caller: Asker, name: str) -> Response:
    """Give a file that pages load; its address changes with its content."""
    content = static_file(name)
    if content is None:
        raise HTTPException(404, f"there is no file {name!r}")
    kept = {"Cache-Control": "private, max-age=31536000, immutable"}
    return Response(content, media_type=_TYPES[name.rpartition(".")[2]], headers=kept)
