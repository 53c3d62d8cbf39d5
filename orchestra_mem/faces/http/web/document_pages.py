"""Pages of the documents: read with who wrote what, edit, decide conflicts, compare versions and put one back."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import RedirectResponse, Response

from orchestra_mem.errors import DocumentError, InvalidItemError, StorageError
from orchestra_mem.faces.editing import differing_lines
from orchestra_mem.faces.http.callers import OwnMemory
from orchestra_mem.faces.http.web.forms import Sent, see_other
from orchestra_mem.faces.http.web.pages import Form, render
from orchestra_mem.faces.http.web.rendered_markdown import pieces_of
from orchestra_mem.serialize import from_microseconds

router = APIRouter(include_in_schema=False)

# A form holds a text twice, and of each byte up to three: what is larger goes beyond `server.max_body_bytes`.
_MOST_CHARS = 400_000
_MOST_DIGITS = 10
_DONE = {
    "saved": "Saved. The text before is kept as a version.",
    "merged": "Saved, together with what was written meanwhile. The text before is kept as a version.",
    "restored": "The earlier text stands again. The one before it is kept as a version.",
    "decided": "Decided. The text before is kept as a version.",
}
Number = Annotated[int, Field(ge=1, le=2**31)]


@router.get("/documents")
def list_documents(request: Request, memory: OwnMemory) -> Response:
    """List the documents, first those that wait for a person or have not been read."""
    documents = memory.documents
    conflicts, unread = [name for name, _ in documents.conflicts()], documents.unread()
    rows = [
        (name, conflicts.count(name), name in unread, state and from_microseconds(state.modified_ns // 1000))
        for name, state in documents.states().items()
    ]
    rows.sort(key=lambda row: (-row[1], not row[2]))
    return render(request, "documents.html", rows=rows, faults=documents.faults())


@router.get("/documents/{name:path}")
def show_document(request: Request, memory: OwnMemory, name: str, blame: bool = True, done: str = "") -> Response:
    """Show a document with who wrote what in its margin."""
    text = memory.documents.text(name)
    lines = memory.blame(name) if blame else []
    text = "\n".join(line.text for line in lines) if blame else text
    pieces = pieces_of(text, lines)
    return render(request, "document.html", name=name, pieces=pieces, blame=blame, done=_DONE.get(done, ""))


@router.get("/edit/{name:path}")
def edit_document(request: Request, memory: OwnMemory, name: str) -> Response:
    """Give a document to be edited."""
    text = memory.documents.text(name)
    if len(text) > _MOST_CHARS:
        raise DocumentError(f"{name} is too long for a form: edit {memory.documents.path(name)} with any editor")
    return _editor(request, name, text, text)


@router.post("/edit/{name:path}")
def save_document(request: Request, memory: OwnMemory, name: str, sent: Sent) -> Response:
    """Save an edit, merged with what has come since; where both changed the same lines, show both (412)."""
    if not {"text", "opened"} <= sent.keys():
        raise InvalidItemError(["text, opened: the form was not sent whole"])
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
    return _back("documents", name, "merged" if saved.is_merged else "saved")


@router.post("/conflicts/{conflict}")
def decide_conflict(memory: OwnMemory, conflict: str, sent: Sent) -> Response:
    """Decide a conflict: `keep` says whose lines stand, `mine`, `machine` or `both`."""
    keep = sent.get("keep")
    if keep not in ("mine", "machine", "both"):
        raise InvalidItemError([f"keep: {keep!r} is none of mine, machine, both"])
    name, _ = memory.resolve_conflict(conflict, accept=keep == "machine", both=keep == "both")
    return _back("documents", name, "decided")


class VersionsForm(Form):
    """Which versions are compared: by default the newest with the text as it stands."""

    older: Number | None = Field(None, alias="from")
    newer: Number | None = Field(None, alias="to")


@router.get("/versions/{name:path}")
def list_versions(request: Request, memory: OwnMemory, name: str, form: Annotated[VersionsForm, Query()]) -> Response:
    """List the earlier versions of a document, and what has changed between two of them, or since one."""
    versions, newer = memory.documents.history(name)[::-1], form.newer
    older = form.older or (versions[0].sequence if versions else None)
    changes = memory.documents.diff(name, older, newer).splitlines()[2:] if versions else []
    return render(request, "versions.html", name=name, versions=versions, older=older, newer=newer, changes=changes)


@router.post("/versions/{name:path}")
def restore_version(memory: OwnMemory, name: str, sent: Sent) -> Response:
    """Put an earlier version of a document back."""
    version = sent.get("version", "")
    if not (version.isdecimal() and len(version) < _MOST_DIGITS):
        raise InvalidItemError([f"version: {version[:_MOST_DIGITS]!r} is no number of a version"])
    memory.documents.restore(name, int(version))
    return _back("documents", name, "restored")


def _editor(request: Request, name: str, text: str, opened: str, status: int = 200, **more: Any) -> Response:
    """Show a text to be edited, and the one that it was made of."""
    shown = {"problem": "", "mine": "", "changed": [], "pieces": []} | more
    return render(request, "edit.html", status, name=name, text=text, opened=opened, **shown)


def _back(place: str, name: str, done: str) -> RedirectResponse:
    return see_other(f"/{place}/{quote(name)}?done={done}")
