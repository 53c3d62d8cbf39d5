"""Why was this in the prompt? A context part by part, each item with its tokens and its reason."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from orchestra_mem.core.context.items import Placement
from orchestra_mem.faces.http.callers import Asker
from orchestra_mem.faces.http.context_routes import ContextQuery
from orchestra_mem.faces.http.web.pages import Form, render

router = APIRouter(include_in_schema=False)

_REFERENCE = re.compile(r"(op \d+|S\d+|K\d+|M\d+|[\w-]+\.md:\d+)")


class PromptForm(Form, ContextQuery):
    """What the context is for, as the form sends it."""


@router.get("/prompt")
def prompt(request: Request, caller: Asker, form: Annotated[PromptForm, Query()]) -> Response:
    """Build a context, and say of each item why it is there, was shortened or stayed out."""
    build = caller.offered("get_orchestrator_context")
    found = build(form.for_operation, form.max_tokens, query=form.query)
    parts = []
    for room in found.rooms:
        items = [each for each in found.placements if each.part is room.part]
        parts.append((room, items, room.border_tokens + sum(each.tokens for each in items)))
    return render(request, "prompt.html", form=form, found=found, parts_shown=parts, reference=_reference)


def _reference(item: Placement) -> str | None:
    """Name what `expand` follows to the originals of an item."""
    named = _REFERENCE.search(item.key.replace("summary ", "S")) or _REFERENCE.search(item.source)
    return named[1] if named else None
