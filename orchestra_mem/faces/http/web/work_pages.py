"""Pages of work: the tree of milestones, epics, stories and tasks; one of them. It is changed in the work plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from orchestra_mem.faces.http.callers import OwnMemory
from orchestra_mem.faces.http.web.forms import ListForm
from orchestra_mem.faces.http.web.pages import render
from orchestra_mem.faces.http.work_routes import WorkQuery
from orchestra_mem.faces.records import work_record
from orchestra_mem.work_types import (
    OPEN_STATUSES,
    WorkFilter,
    WorkItem,
    WorkProgress,
    WorkStatus,
)

router = APIRouter(include_in_schema=False)

_MOST_ITEMS = 500
_MOST_EVENTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """An item with what is shown below it, and how much of all that is below it is done."""

    item: WorkItem
    below: list[Branch]
    progress: WorkProgress


class WorkForm(ListForm, WorkQuery):
    """Which items are wanted; without a status the open ones, with `every` all."""

    every: bool = False


@router.get("/work")
def show_work(request: Request, memory: OwnMemory, form: Annotated[WorkForm, Query()]) -> Response:
    """Show the tree of what is open, of a status, or of every item."""
    where = form.where if form.status or form.every else replace(form.where, statuses=OPEN_STATUSES)
    items = memory.state.items(replace(where, limit=_MOST_ITEMS + 1))
    tree = _tree(items[:_MOST_ITEMS], memory.state.progress)
    return render(
        request, "work.html", tree=tree, is_cut=len(items) > _MOST_ITEMS, most=_MOST_ITEMS, statuses=[*WorkStatus],
        form=form,
    )  # fmt: skip


def _tree(items: Sequence[WorkItem], progress: Callable[[int], WorkProgress]) -> list[Branch]:
    """Hang items below their parents; one whose parent is not among them stands at the top."""
    below: defaultdict[int, list[WorkItem]] = defaultdict(list)
    there = {item.id for item in items}
    for item in items:
        below[item.parent if item.parent in there else 0].append(item)

    def branches(parent: int) -> list[Branch]:
        found = below[parent]
        return [Branch(item=each, below=branches(each.id), progress=progress(each.id)) for each in found]

    return branches(0)


@router.get("/work/{item}")
def show_item(request: Request, memory: OwnMemory, item: int) -> Response:
    """Show an item with its progress, its changes, what it waits for and what is below it."""
    found = work_record(memory, item, _MOST_EVENTS)
    below = _tree(memory.state.items(WorkFilter(parent=item)), memory.state.progress)
    return render(request, "work_item.html", **found, below=below)
