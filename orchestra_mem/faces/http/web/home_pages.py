"""Pages for home, sessions, originals, search, the prompt and the API's routes; also the static files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from orchestra_mem.build.memory_service import MemoryService
from orchestra_mem.core.context.items import Placement
from orchestra_mem.core.context.window import UsageEvent, UsagePoint
from orchestra_mem.core.documents.markdown import without_front_matter
from orchestra_mem.core.text import STOP_WORDS
from orchestra_mem.faces.http.catalog_routes import SearchQuery
from orchestra_mem.faces.http.context_routes import ContextQuery
from orchestra_mem.faces.http.json_answers import CallerDep, OwnerMemory
from orchestra_mem.faces.http.tokens import cookie_name
from orchestra_mem.faces.http.web.pages import Form, ListForm, render, static_files
from orchestra_mem.faces.recall_views import reasons_lines
from orchestra_mem.faces.records import conflict_records, status_record
from orchestra_mem.search_types import Hit, Tier
from orchestra_mem.types import OperationFilter

router = APIRouter(include_in_schema=False)

_NEWEST = 5
_CHARTED = 500
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@router.get("/")
def home(request: Request, caller: CallerDep, token: str = "") -> Response:
    """Show an overview of the memory, beginning with problems; with a `token`, store it in a cookie and redirect."""
    if token:
        answer = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        answer.set_cookie(cookie_name(request.scope), token, httponly=True, samesite="strict", secure=secure)
        return answer
    if not caller.is_owner:
        newest = caller.view.operations(OperationFilter(limit=_NEWEST))[::-1]
        return render(request, "agent_home.html", operations=newest)
    memory, status = caller.memory, status_record(caller.memory, request.app.state.project)
    shown_as_conflicts = memory.documents.problems()
    window = status["context_window"]
    chart = _chart(memory.window_history(_CHARTED), window["max_tokens"])
    level = sum(window["usage_percentage"] >= share for share in status["thresholds"].values())
    return render(
        request, "home.html", state=status, window=window, level=level, chart=chart, conflicts=conflict_records(memory),
        problems=[each for each in status["problems"] if each not in shown_as_conflicts],
        newest=memory.operations(OperationFilter(limit=_NEWEST))[::-1],
    )  # fmt: skip


@router.get("/api")
def api(request: Request, caller: CallerDep) -> Response:
    """List the routes of the API."""
    routes = [
        (method.upper(), path, told["description"])
        for path, methods in request.app.openapi()["paths"].items()
        for method, told in methods.items()
    ]
    return render(request, "api.html", routes=routes)


@router.get("/static/{name}")
def static(caller: CallerDep, name: str) -> Response:
    """Return a static file. It may be cached for ever, because its URL changes with its content."""
    content = static_files().get(name)
    if content is None:
        raise HTTPException(404, f"there is no file {name!r}")
    kept = {"Cache-Control": "private, max-age=31536000, immutable"}
    return Response(content, media_type=_TYPES[name.rpartition(".")[2]], headers=kept)


def _chart(points: Sequence[UsagePoint], max_tokens: int) -> dict[str, Any]:
    """Draw the window's usage: its `line` as an SVG path in a 100 x 100 box, and (x, y, point) of each refresh."""

    def at(place: int, tokens: int) -> tuple[float, float]:
        return round(100 * place / len(points), 2), round(max(0.0, 100 - 100 * tokens / max_tokens), 2)

    line, refreshes = [at(0, points[0].before_tokens)] if points else [], []
    for place, point in enumerate(points, 1):
        if point.event is UsageEvent.RESET:
            line.append(at(place, point.before_tokens))
            refreshes.append((*line[-1], point))
        line.append(at(place, point.used_tokens))
    return {"line": f"M{' L'.join(f'{x:g} {y:g}' for x, y in line)}", "refreshes": refreshes, "points": points}


class SessionForm(ListForm):
    """The page of the list of sessions, or of a session's operations."""

    limit: Annotated[int, Query(ge=1, le=200)] = 20


@router.get("/sessions")
def sessions(request: Request, memory: OwnerMemory, form: Annotated[SessionForm, Query()]) -> Response:
    """List sessions, newest first, with a timeline."""
    found, spans, counts = MemoryService(memory).sessions(form.limit, form.offset), {}, {}
    for each in found:
        where = OperationFilter(session=each.id, limit=1)
        newest = [operation.timestamp for operation in memory.operations(where)]
        spans[each.id] = each.started_at, each.ended_at or max(newest, default=each.started_at)
        counts[each.id] = memory.count_operations(where)
    times = sorted(time for span in spans.values() for time in span)
    length = max(times[-1] - times[0], timedelta(seconds=1)) if times else timedelta(seconds=1)
    bars = {name: [100 * (time - times[0]) / length for time in span] for name, span in spans.items()}
    return render(
        request, "sessions.html", sessions=found, counts=counts, bars=bars, times=times, form=form,
        total=len(memory.sessions()),
    )  # fmt: skip


@router.get("/sessions/{session_id}")
def session(request: Request, memory: OwnerMemory, session_id: str, form: Annotated[SessionForm, Query()]) -> Response:
    """Show a session: its result, the tree of its summaries down to the operations, and all operations."""
    found = MemoryService(memory).session(session_id)
    where = OperationFilter(session=session_id, limit=form.limit, offset=form.offset)
    return render(
        request, "session.html", session=found, agents=memory.session_agents(session_id),
        operations=memory.operations(where)[::-1], total=memory.count_operations(where), form=form,
        summaries={each.id: each for each in memory.summaries(session_id)},
    )  # fmt: skip


@router.get("/sessions/{session_id}/document")
def session_document(request: Request, memory: OwnerMemory, session_id: str) -> Response:
    """Show the document of a session as it is on disk, without front matter."""
    found = MemoryService(memory).session(session_id)
    document = without_front_matter(memory.session_document(session_id))
    return render(request, "session_document.html", session=found, document=document)


@router.get("/original")
def original(request: Request, caller: CallerDep, of: Annotated[str, Query(min_length=1, max_length=200)]) -> Response:
    """Show the originals of a reference, as `orchestra-mem expand` does."""
    return render(request, "originals.html", found=caller.view.expand(of))


_PASSAGE_CHARS = 600
_MOST_WORDS = 30


class SearchForm(Form, SearchQuery):
    """The search form, which is empty at first."""

    q: Annotated[str, Query(max_length=100_000)] = ""
    limit: Annotated[int, Query(ge=1, le=200)] = 20


@router.get("/search")
def search(request: Request, caller: CallerDep, form: Annotated[SearchForm, Query()]) -> Response:
    """Search all tiers."""
    find = caller.view.search
    found = find(form.q, where=form.where, mode=form.mode, limit=form.limit) if form.q.strip() else None
    hits = found.hits if found else ()
    shown = [_shown(hit, line, form.q) for hit, line in zip(hits, caller.memory.hit_lines(hits), strict=True)]
    notes = found.notes if found else ()
    return render(request, "search.html", form=form, hits=shown, notes=notes, tiers=[*Tier], asked=bool(found))


def _shown(hit: Hit, line: int, query: str) -> dict[str, Any]:
    """Return a hit with its displayed source, its text split at the words of the query, and its reasons."""
    text = hit.chunk.text if len(hit.chunk.text) <= _PASSAGE_CHARS else f"{hit.chunk.text[:_PASSAGE_CHARS]} …"
    source = f"{hit.chunk.source}:{line}" if line else hit.chunk.source
    return {"hit": hit, "source": source, "pieces": _pieces(text, query), "reasons": [*reasons_lines(hit)]}


def _pieces(text: str, query: str) -> list[str]:
    """Split a text at the words of a query; every second piece is a word of the query."""
    words = [word for word in re.findall(r"\w+", query.lower()) if word not in STOP_WORDS][:_MOST_WORDS]
    return re.split(rf"\b({'|'.join(map(re.escape, words))})", text, flags=re.IGNORECASE) if words else [text]


_REFERENCE = re.compile(r"(op \d+|S\d+|K\d+|M\d+|[\w-]+\.md:\d+)")


class PromptForm(Form, ContextQuery):
    """The form for building a context."""


@router.get("/prompt")
def prompt(request: Request, caller: CallerDep, form: Annotated[PromptForm, Query()]) -> Response:
    """Build a context, and show why each item was included, shortened or left out."""
    found = caller.view.get_orchestrator_context(form.for_operation, form.max_tokens, query=form.query)
    parts = []
    for room in found.rooms:
        items = [each for each in found.placements if each.part is room.part]
        parts.append((room, items, room.border_tokens + sum(each.tokens for each in items)))
    return render(request, "prompt.html", form=form, found=found, parts_shown=parts, reference=_reference)


def _reference(item: Placement) -> str | None:
    """Return the reference by which `expand` finds the originals of an item; None for an item without originals."""
    named = _REFERENCE.search(item.key.replace("summary ", "S")) or _REFERENCE.search(item.source)
    return named[1] if named else None
