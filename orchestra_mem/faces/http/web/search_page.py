"""Search over all tiers, each hit with its reasons."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from orchestra_mem.core.text import STOP_WORDS
from orchestra_mem.faces.http.callers import Asker
from orchestra_mem.faces.http.observation_routes import SearchQuery
from orchestra_mem.faces.http.web.pages import Form, render
from orchestra_mem.faces.recall_views import reasons_lines
from orchestra_mem.search_types import Hit, Tier

router = APIRouter(include_in_schema=False)

_PASSAGE_CHARS = 600
_MOST_WORDS = 30


class SearchForm(Form, SearchQuery):
    """What is looked for, as the form sends it; nothing at first."""

    q: Annotated[str, Query(max_length=100_000)] = ""
    limit: Annotated[int, Query(ge=1, le=200)] = 20


@router.get("/search")
def search(request: Request, caller: Asker, form: Annotated[SearchForm, Query()]) -> Response:
    """Find what answers a question."""
    found = caller.service.search(form.q, where=form.where, limit=form.limit) if form.q.strip() else None
    hits = found.hits if found else ()
    shown = [_shown(hit, line, form.q) for hit, line in zip(hits, caller.memory.hit_lines(hits), strict=True)]
    notes = found.notes if found else ()
    return render(request, "search.html", form=form, hits=shown, notes=notes, tiers=[*Tier], asked=bool(found))


def _shown(hit: Hit, line: int, query: str) -> dict[str, Any]:
    """Give a hit with what people read of it: where it stands, its words in pieces, the reasons line by line."""
    text = hit.chunk.text if len(hit.chunk.text) <= _PASSAGE_CHARS else f"{hit.chunk.text[:_PASSAGE_CHARS]} …"
    source = f"{hit.chunk.source}:{line}" if line else hit.chunk.source
    return {"hit": hit, "source": source, "pieces": _pieces(text, query), "reasons": [*reasons_lines(hit)]}


def _pieces(text: str, query: str) -> list[str]:
    """Cut a text where it says the words of a query: every second piece is one of them."""
    words = [word for word in re.findall(r"\w+", query.lower()) if word not in STOP_WORDS][:_MOST_WORDS]
    return re.split(rf"\b({'|'.join(map(re.escape, words))})", text, flags=re.IGNORECASE) if words else [text]
