"""Routes of the documents: read and save them, who wrote which line, their versions, and conflicts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Header, HTTPException, Query
from pydantic import StrictBool
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.responses import Response

from orchestra_mem.core.documents.episodic import digest
from orchestra_mem.errors import DocumentConflictError, InvalidItemError, NotFoundError
from orchestra_mem.faces.http.answer_schemas import Shape
from orchestra_mem.faces.http.callers import OwnMemory
from orchestra_mem.faces.http.json_answers import Given, JsonAnswer, Paged, shown, shown_page
from orchestra_mem.faces.records import conflict_records, resolved_record
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.tiers.authorship import BlamedLine
from orchestra_mem.types import Version


class _DocumentName(StringConvertor):
    """The name of a document in an address: `decision_log`, or `catalog/NAME` for an agent's."""

    regex = "(?:catalog/)?[^/]+"


register_url_convertor("document", _DocumentName())
router = APIRouter(prefix="/api/memory", tags=["documents"])

_SESSION = "session"
_MARKDOWN = "text/markdown; charset=utf-8"
_TEXT: dict[int | str, dict[str, object]] = {
    200: {
        "description": "The document, byte for byte; `ETag` names this text.",
        "content": {"text/markdown": {"schema": {"type": "string"}, "example": "# Decision Log\n"}},
    },
    304: {"description": "It is the text that `If-None-Match` names."},
}
_LISTED = Shape("ListedDocument", name=str, path=str, etag=str, chars=int)
_DIFFERENCE = Shape("Difference", document=str, version=int, diff=str)
_CONFLICTING = Shape(
    "Conflict", id=str, document=str, path=str, line=int, yours=str, machine=str, changed_meanwhile=bool
)
_DECIDED = Shape("Decided", id=str, document=str, path=str, line=int, replaced=int, note=str)
IfMatch = Annotated[str | None, Header(description="The `ETag` of the text that was changed.")]


class ConflictDecision(Given):
    """What becomes of a conflict."""

    accept: StrictBool
    both: StrictBool = False


def _text(memory: OrchestratorContextManager, name: str) -> str:
    if name == _SESSION:
        session = memory.session_memory.session
        if session is None:
            raise NotFoundError("no session is under way, so it has no document")
        return memory.session_memory.text(session)
    return memory.documents.text(name)


def _etag(text: str) -> str:
    return f'"{digest(text)}"'


def _names(header: str, text: str) -> bool:
    """Tell whether a header of a condition names a text."""
    return header.strip() == "*" or _etag(text) in [each.strip() for each in header.split(",")]


@router.get("/documents", responses=shown([_LISTED]))
def list_documents(memory: OwnMemory) -> JsonAnswer:
    """List the documents; `session` is the one of the session under way."""
    running = memory.session_memory.path
    paths = {name: memory.documents.path(name) for name in memory.documents.names()}
    found = []
    for name, path in (paths | ({_SESSION: running} if running else {})).items():
        text = _text(memory, name)
        found.append({"name": name, "path": str(path), "etag": _etag(text), "chars": len(text)})
    return JsonAnswer(found)


@router.get("/documents/{name:document}/blame", responses=shown([BlamedLine]))
def blame(memory: OwnMemory, name: str) -> JsonAnswer:
    """Say for each line who wrote it, person or machine, and from which operations."""
    return JsonAnswer(memory.blame(name))


@router.get("/documents/{name:document}/history", responses=shown_page(Version))
def history(memory: OwnMemory, name: str, query: Annotated[Paged, Query()]) -> JsonAnswer:
    """List the earlier versions of a document, newest first: when, by whom it was written, why it was replaced."""
    return query.answer_of(memory.documents.history(name)[::-1])


@router.get("/documents/{name:document}/history/{version}", responses=shown(_DIFFERENCE))
def difference(memory: OwnMemory, name: str, version: int) -> JsonAnswer:
    """Tell what has changed in a document since one of its versions, as a unified difference."""
    return JsonAnswer({"document": name, "version": version, "diff": memory.documents.diff(name, version)})


@router.get("/conflicts", responses=shown([_CONFLICTING]))
def conflicts(memory: OwnMemory) -> JsonAnswer:
    """List the lines that a person and the machine both changed: the person's, which stand, and the machine's."""
    return JsonAnswer(conflict_records(memory))


@router.post("/conflicts/{conflict}", responses=shown(_DECIDED))
def decide(memory: OwnMemory, conflict: str, decision: ConflictDecision) -> JsonAnswer:
    """Decide a conflict: `accept` takes the machine's lines, with `both` behind the person's; else these stay alone."""
    return JsonAnswer(resolved_record(memory, conflict, accept=decision.accept, both=decision.both))


# Last, as a name may have a slash.
@router.get("/documents/{name:document}", response_class=Response, responses=_TEXT)
def read_document(memory: OwnMemory, name: str, if_none_match: Annotated[str | None, Header()] = None) -> Response:
    """Read a document as it stands; `session` for that of the session under way."""
    text = _text(memory, name)
    headers = {"ETag": _etag(text)}
    if if_none_match is not None and _names(if_none_match, text):
        return Response(status_code=304, headers=headers)
    return Response(text.encode("utf-8", "surrogateescape"), media_type=_MARKDOWN, headers=headers)


@router.put("/documents/{name:document}", status_code=204, response_class=Response)
def save_document(
    memory: OwnMemory,
    name: str,
    text: Annotated[bytes, Body(media_type="text/markdown")] = b"",
    if_match: IfMatch = None,
) -> Response:
    """Save a document, if it still is the text that `If-Match` names: the text before becomes a version.

    Refused with 428 without `If-Match`, and with 412 and the present `ETag` where somebody has saved meanwhile.
    """
    current = memory.documents.text(name)
    if if_match is None:
        raise HTTPException(428, "say which text was changed: send its `ETag` as `If-Match`")
    try:
        new = text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidItemError([f"body: no text in UTF-8, at byte {error.start}"]) from None
    if "\0" in new:
        raise InvalidItemError([f"body: a NUL byte, at character {new.index(chr(0))}"])
    try:
        if not _names(if_match, current):
            raise DocumentConflictError(f"{name} has been changed since: read it again, and put both together")
        if new != current:
            memory.documents.save(name, new, expected=current)
    except DocumentConflictError as error:
        raise HTTPException(412, str(error), headers={"ETag": _etag(memory.documents.text(name))}) from None
    return Response(status_code=204, headers={"ETag": _etag(new)})
