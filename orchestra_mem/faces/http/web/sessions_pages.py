"""Sessions: a time line, and of each its document, its tree of summaries and the operations behind them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from orchestra_mem.build.memory_service import MemoryService
from orchestra_mem.core.documents.markdown import without_front_matter
from orchestra_mem.faces.http.callers import Asker, OwnMemory
from orchestra_mem.faces.http.web.pages import PageNumber, Pager, render
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.types import OperationFilter

router = APIRouter(include_in_schema=False)


@router.get("/sessions")
def sessions(request: Request, memory: OwnMemory, page: PageNumber = 1) -> Response:
    """List sessions, newest first, on a line of time."""
    pager = Pager(page, len(memory.sessions()))
    found = MemoryService(memory).sessions(pager.size, pager.offset)
    counts = {each.id: memory.count_operations(OperationFilter(session=each.id)) for each in found}
    ends = {each.id: each.ended_at or _newest(memory, each.id) or each.started_at for each in found}
    begin, end = min((each.started_at for each in found), default=None), max(ends.values(), default=None)

    def percent(time: datetime) -> float:
        assert begin is not None
        assert end is not None
        return 100 * (time - begin) / max(end - begin, timedelta(seconds=1))

    bars = {each.id: (percent(each.started_at), percent(ends[each.id])) for each in found}
    return render(
        request, "sessions.html", sessions=found, counts=counts, bars=bars, pager=pager, begin=begin, end=end
    )  # fmt: skip


@router.get("/sessions/{session_id}")
def session(request: Request, memory: OwnMemory, session_id: str, page: PageNumber = 1) -> Response:
    """Show a session: what came of it, its summaries down to the original words, its document, its operations."""
    found = MemoryService(memory).session(session_id)
    where = OperationFilter(session=session_id)
    pager = Pager(page, memory.count_operations(where))
    operations = memory.operations(OperationFilter(session=session_id, limit=pager.size, offset=pager.offset))[::-1]
    return render(
        request, "session.html", session=found, agents=memory.session_agents(session_id), operations=operations,
        summaries={each.id: each for each in memory.summaries(session_id)}, pager=pager,
    )  # fmt: skip


@router.get("/sessions/{session_id}/document")
def session_document(request: Request, memory: OwnMemory, session_id: str) -> Response:
    """Show the document of a session as it lies in its folder."""
    found = MemoryService(memory).session(session_id)
    document = without_front_matter(memory.session_document(session_id))
    return render(request, "session_document.html", session=found, document=document)


def _newest(memory: OrchestratorContextManager, session_id: str) -> datetime | None:
    newest = memory.operations(OperationFilter(session=session_id, limit=1))
    return newest[0].timestamp if newest else None


@router.get("/original")
def original(request: Request, caller: Asker, of: Annotated[str, Query(min_length=1, max_length=200)]) -> Response:
    """Show what is behind a reference, as `orchestra-mem expand` does."""
    return render(request, "originals.html", found=caller.view.expand(of))
