"""Pages of documents, facts, the catalog, the audit trail, and work items, which are edited only in `work_plan`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import RedirectResponse, Response

from orchestra_mem.catalog_types import AccessOutcome, ItemStatus, ItemType
from orchestra_mem.errors import DocumentError, InvalidItemError, StorageError
from orchestra_mem.faces.editing import differing_lines
from orchestra_mem.faces.http.catalog_routes import CatalogQuery
from orchestra_mem.faces.http.context_routes import AuditQuery, FactQuery
from orchestra_mem.faces.http.document_routes import WorkQuery
from orchestra_mem.faces.http.json_answers import CallerDep, OwnerMemory
from orchestra_mem.faces.http.web.pages import Form, ListForm, Sent, pieces_of, render
from orchestra_mem.faces.records import work_record
from orchestra_mem.serialize import from_microseconds
from orchestra_mem.types import MustKeepKind
from orchestra_mem.work_types import OPEN_STATUSES, WorkFilter, WorkItem, WorkProgress, WorkStatus

router = APIRouter(include_in_schema=False)

# Bytes of the edit form per byte of text: the form has two texts, URL encoding can triple both, and one is for edits.
_FORM_BYTES = 7
_MOST_DIGITS = 10
_DONE = {
    "saved": "Saved. The previous text is kept as a version.",
    "merged": "Saved, and merged with changes made meanwhile. The previous text is kept as a version.",
    "restored": "The version has been restored. The text that it replaced is kept as a version.",
    "decided": "The conflict is resolved. The previous text is kept as a version.",
}
Number = Annotated[int, Field(ge=1, le=2**31)]


@router.get("/documents")
def list_documents(request: Request, memory: OwnerMemory) -> Response:
    """List the documents; first those with conflicts, then those with edits that the memory has not read yet."""
    documents = memory.documents
    conflicts, unread = [name for name, _ in documents.conflicts()], documents.unread()
    rows = [
        (name, conflicts.count(name), name in unread, state and from_microseconds(state.modified_ns // 1000))
        for name, state in documents.states().items()
    ]
    rows.sort(key=lambda row: (-row[1], not row[2]))
    return render(request, "documents.html", rows=rows, faults=documents.faults())


@router.get("/documents/{name:path}")
def show_document(request: Request, memory: OwnerMemory, name: str, blame: bool = True, done: str = "") -> Response:
    """Show a document, by default with the authors of its lines in the margin."""
    text = memory.documents.text(name)
    lines = memory.blame(name) if blame else []
    text = "\n".join(line.text for line in lines) if blame else text
    pieces = pieces_of(text, lines)
    return render(request, "document.html", name=name, pieces=pieces, blame=blame, done=_DONE.get(done, ""))


@router.get("/edit/{name:path}")
def edit_document(request: Request, memory: OwnerMemory, name: str) -> Response:
    """Show the editor of a document."""
    text = memory.documents.text(name)
    if _FORM_BYTES * len(text.encode("utf-8", "surrogatepass")) > request.app.max_body_size:
        raise DocumentError(
            f"{name} is too long to edit in the browser: edit {memory.documents.path(name)} with any editor"
        )
    return _editor(request, name, text, text)


@router.post("/edit/{name:path}")
def save_document(request: Request, memory: OwnerMemory, name: str, sent: Sent) -> Response:
    """Save an edit, merged with changes made since. If the same lines were changed, show both versions (412)."""
    if not {"text", "opened"} <= sent.keys():
        raise InvalidItemError(["text, opened: must both be sent"])
    text, opened = sent["text"], sent["opened"]
    if sent.get("do") == "preview":
        return _editor(request, name, text, opened, pieces=pieces_of(text))
    try:
        saved = memory.documents.save_edit(name, text, opened=opened)
    except StorageError as error:
        return _editor(request, name, text, opened, 503, problem=str(error))
    if saved.collides:
        changed = differing_lines(opened, saved.current)
        return _editor(request, name, saved.text, saved.current, 412, mine=text, changed=changed)
    return _back(name, "merged" if saved.is_merged else "saved")


@router.post("/conflicts/{conflict}")
def decide_conflict(memory: OwnerMemory, conflict: str, sent: Sent) -> Response:
    """Resolve a conflict. The form field `keep` selects the lines to keep: `mine`, `machine` or `both`."""
    keep = sent.get("keep")
    if keep not in ("mine", "machine", "both"):
        raise InvalidItemError([f"keep: must be mine, machine or both, not {keep!r}"])
    name, _ = memory.resolve_conflict(conflict, accept=keep == "machine", both=keep == "both")
    return _back(name, "decided")


class VersionsForm(Form):
    """Versions to compare; by default the newest version with the current text."""

    older: Number | None = Field(None, alias="from")
    newer: Number | None = Field(None, alias="to")


@router.get("/versions/{name:path}")
def list_versions(request: Request, memory: OwnerMemory, name: str, form: Annotated[VersionsForm, Query()]) -> Response:
    """List the earlier versions of a document, and the diff between two versions or to the current text."""
    versions, newer = memory.documents.history(name)[::-1], form.newer
    older = form.older or (versions[0].sequence if versions else None)
    changes = memory.documents.diff(name, older, newer).splitlines()[2:] if versions else []
    return render(request, "versions.html", name=name, versions=versions, older=older, newer=newer, changes=changes)


@router.post("/versions/{name:path}")
def restore_version(memory: OwnerMemory, name: str, sent: Sent) -> Response:
    """Restore an earlier version of a document."""
    version = sent.get("version", "")
    if not (version.isdecimal() and len(version) < _MOST_DIGITS):
        raise InvalidItemError([f"version: {version[:_MOST_DIGITS]!r} is not a version number"])
    memory.documents.restore(name, int(version))
    return _back(name, "restored")


def _editor(request: Request, name: str, text: str, opened: str, status: int = 200, **more: Any) -> Response:
    """Render the editor with a text, and with the text `opened` on which the edit is based."""
    shown = {"problem": "", "mine": "", "changed": [], "pieces": []} | more
    return render(request, "edit.html", status, name=name, text=text, opened=opened, **shown)


def _back(name: str, done: str) -> RedirectResponse:
    return RedirectResponse(f"/documents/{quote(name)}?done={done}", 303)


_MOST_ENTRY_ITEMS = 5  # maximum number of items that an audit entry shows
_SHOWN = [status for status in ItemStatus if status is not ItemStatus.PURGED]


class FactsForm(ListForm, FactQuery):
    """Filter for facts."""


class ItemsForm(ListForm, CatalogQuery):
    """Filter for catalog items. `hidden`: Include hidden items."""

    hidden: bool = False


class AuditForm(ListForm, AuditQuery):
    """Filter for audit entries. `owner`: Show only the owner's accesses."""

    owner: bool = False


@router.get("/facts")
def list_facts(request: Request, caller: CallerDep, form: Annotated[FactsForm, Query()]) -> Response:
    """List facts, newest first; with `every`, also facts that are no longer active."""
    found = caller.view.facts(form.kind, standing=not form.every)[::-1]
    facts = found[form.offset : form.offset + form.limit]
    return render(request, "facts.html", form=form, total=len(found), facts=facts, kinds=[*MustKeepKind])


@router.get("/catalog")
def list_items(request: Request, caller: CallerDep, form: Annotated[ItemsForm, Query()]) -> Response:
    """List the items that the caller may see, newest first."""
    catalog = caller.memory.catalog
    where = replace(form.where, statuses=_SHOWN if form.hidden else (ItemStatus.LIVE,))
    items, total = catalog.items(where, agent=caller.agent), catalog.count(where, agent=caller.agent)
    agents = sorted(catalog.get_stats(agent=caller.agent))
    return render(request, "catalog.html", form=form, total=total, items=items, agents=agents, types=[*ItemType])


@router.get("/catalog/{memory_id}")
def show_item(request: Request, caller: CallerDep, memory_id: str) -> Response:
    """Show all details of an item."""
    return render(request, "catalog_item.html", item=caller.memory.catalog.get(memory_id, agent=caller.agent))


@router.post("/catalog/{memory_id}")
def change_item(caller: CallerDep, memory_id: str, sent: Sent) -> Response:
    """Hide an item from everybody, or with `do=restore` show it again."""
    catalog = caller.memory.catalog
    (catalog.restore if sent.get("do") == "restore" else catalog.delete)(memory_id, agent=caller.agent)
    caller.memory.write_catalog()
    return RedirectResponse(f"/catalog/{quote(memory_id)}", 303)


@router.get("/audit")
def list_audit(request: Request, memory: OwnerMemory, form: Annotated[AuditForm, Query()]) -> Response:
    """List who read or changed the catalog, newest first."""
    found = memory.audit(replace(form.where, agent="") if form.owner else form.where)
    entries = found[form.offset : form.offset + form.limit]
    return render(
        request, "audit.html", form=form, total=len(found), entries=entries, outcomes=[*AccessOutcome],
        most_items=_MOST_ENTRY_ITEMS,
    )  # fmt: skip


_MOST_ITEMS = 500
_MOST_EVENTS = 100


class WorkForm(ListForm, WorkQuery):
    """Filter for work items. Without a `status`, the open items are shown, or all items if `every` is set."""

    every: bool = False


@router.get("/work")
def show_work(request: Request, memory: OwnerMemory, form: Annotated[WorkForm, Query()]) -> Response:
    """Show the tree of the work items that the form selects, by default of the open items."""
    where = form.where if form.status or form.every else replace(form.where, statuses=OPEN_STATUSES)
    items = memory.state.items(replace(where, limit=_MOST_ITEMS + 1))
    tree = _tree(items[:_MOST_ITEMS], memory.state.progress)
    return render(
        request, "work.html", **tree, is_cut=len(items) > _MOST_ITEMS, most=_MOST_ITEMS, statuses=[*WorkStatus],
        form=form,
    )  # fmt: skip


def _tree(items: Sequence[WorkItem], progress: Callable[[int], WorkProgress]) -> dict[str, Any]:
    """Return the variables of a tree of items: the items `below` each, by its id, and what is `done` of each.

    The roots, items whose parent is not among the items, are below 0.
    """
    below: defaultdict[int, list[WorkItem]] = defaultdict(list)
    done = {item.id: progress(item.id) for item in items}
    for item in items:
        below[item.parent if item.parent in done else 0].append(item)
    return {"below": below, "done": done}


@router.get("/work/{item}")
def show_work_item(request: Request, memory: OwnerMemory, item: int) -> Response:
    """Show a work item with its progress, changes, blockers and children."""
    found = work_record(memory, item, _MOST_EVENTS)
    return render(
        request, "work_item.html", **found, **_tree(memory.state.items(WorkFilter(parent=item)), memory.state.progress)
    )
