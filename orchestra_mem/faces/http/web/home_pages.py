"""Where people arrive: the token is taken from the address, the home page with its chart, the routes, static files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from orchestra_mem.core.context.window import UsageEvent, UsagePoint
from orchestra_mem.faces.http.callers import Asker
from orchestra_mem.faces.http.tokens import cookie_name
from orchestra_mem.faces.http.web.pages import render, static_file
from orchestra_mem.faces.records import conflict_records, status_record
from orchestra_mem.types import OperationFilter

router = APIRouter(include_in_schema=False)

_NEWEST = 5
_CHARTED = 1_000
_MOST_STEPS = 500
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowChart:
    """A line over the operations in their order; `refreshes` are where it fell: place, height, and what happened."""

    line: str
    refreshes: tuple[tuple[float, float, UsagePoint], ...]
    first: datetime | None
    last: datetime | None


def window_chart(points: Sequence[UsagePoint], max_tokens: int) -> WindowChart:
    """Draw usage. Of many points each step shows the fullest, and every refresh is there."""
    step = max(1, -(-len(points) // _MOST_STEPS))
    pieces, refreshes = [], []

    def at(place: int, tokens: int) -> tuple[float, float]:
        return round(100 * place / max(1, len(points)), 2), round(max(0.0, 100 - 100 * tokens / max_tokens), 2)

    for begin in range(0, len(points), step):
        fullest = max(points[begin : begin + step], key=lambda point: point.used_tokens)
        place = begin + min(step, len(points) - begin)
        falls = [point for point in points[begin:place] if point.event is UsageEvent.RESET]
        for point in falls:
            x, y = at(place, point.before_tokens)
            refreshes.append((x, y, point))
            pieces += [(x, y), at(place, point.used_tokens)]
        pieces += [] if falls else [at(place, fullest.used_tokens)]
    start = at(0, points[0].before_tokens) if points else (0.0, 100.0)
    line = " L".join(f"{x:g} {y:g}" for x, y in (start, *pieces))
    first, last = (points[0].time, points[-1].time) if points else (None, None)
    return WindowChart(line=f"M{line}", refreshes=tuple(refreshes), first=first, last=last)
