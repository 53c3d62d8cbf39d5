"""Routes of work: milestones, epics, stories and tasks."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from orchestra_mem.faces.http.answer_schemas import Shape
from orchestra_mem.faces.http.callers import OwnMemory
from orchestra_mem.faces.http.json_answers import NUMBER, Given, JsonAnswer, Name, Paged, Text, shown, shown_page
from orchestra_mem.faces.records import update_documents, work_record
from orchestra_mem.types import Author
from orchestra_mem.work_types import WorkEvent, WorkFilter, WorkItem, WorkKind, WorkProgress, WorkStatus

router = APIRouter(prefix="/api/memory", tags=["work"])

_ID = Field(ge=1, le=2**31)
_SHOWN_ITEM = Shape("ShownItem", item=WorkItem, progress=WorkProgress, blockers=list[WorkItem], events=list[WorkEvent])


class WorkQuery(Paged):
    """Which items are wanted."""

    kind: list[WorkKind] = Field(default_factory=list, max_length=10)
    status: list[WorkStatus] = Field(default_factory=list, max_length=10)
    parent: Annotated[int | None, Query(ge=0, le=2**31, description="Only right below it; 0: without a parent.")] = None
    text: Annotated[str, Query(max_length=4_000, description="Only with all these words.")] = ""
    assignee: Name | None = None

    @property
    def where(self) -> WorkFilter:
        """The items that pass, as the state of work is asked for them."""
        return WorkFilter(
            kinds=tuple(self.kind), statuses=tuple(self.status), parent=self.parent, text=self.text,
            assignee=self.assignee,
        )  # fmt: skip


class NewItem(Given):
    """An item to be made."""

    kind: WorkKind
    title: Annotated[str, Field(min_length=1, max_length=1_000)]
    description: Annotated[str, Field(max_length=100_000)] = ""
    parent: Annotated[int, _ID, NUMBER] | None = None
    priority: Annotated[int, Field(ge=1, le=5, description="1 is first, 5 last."), NUMBER] = 3
    depends_on: list[Annotated[int, _ID, NUMBER]] = Field(default_factory=list, max_length=1_000)
    assignee: Name | None = None
    acceptance: list[Text] = Field(default_factory=list, max_length=100)


class StatusChange(Given):
    """Where an item moves to."""

    status: WorkStatus
    reason: Annotated[str, Field(max_length=4_000, description="Why, for example what blocks it.")] = ""


@router.get("/work", responses=shown_page(WorkItem))
def list_work(memory: OwnMemory, query: Annotated[WorkQuery, Query()]) -> JsonAnswer:
    """List items in the order of the backlog."""
    return query.answer_of(memory.state.items(query.where))


@router.get("/work/{item}", responses=shown(_SHOWN_ITEM))
def show_work(memory: OwnMemory, item: int, limit: Annotated[int, Query(ge=1, le=1_000)] = 20) -> JsonAnswer:
    """Show an item: its progress, what it waits for, and its newest changes."""
    return JsonAnswer(work_record(memory, item, limit))


@router.post("/work", status_code=201, responses=shown(WorkItem, 201, "The item as it was stored."))
def add_work(memory: OwnMemory, item: NewItem) -> JsonAnswer:
    """Create a milestone, epic, story, task or subtask."""
    made = memory.state.create(**item.model_dump(), author=Author.PERSON)
    update_documents(memory)
    return JsonAnswer(made, 201, {"Location": f"/api/memory/work/{made.id}"})


@router.patch("/work/{item}", responses=shown(WorkItem))
def move_work(memory: OwnMemory, item: int, change: StatusChange) -> JsonAnswer:
    """Move an item to another status. If that is not allowed, the answer says what is."""
    moved = memory.state.set_status(item, change.status, reason=change.reason, author=Author.PERSON)
    update_documents(memory)
    return JsonAnswer(moved)
