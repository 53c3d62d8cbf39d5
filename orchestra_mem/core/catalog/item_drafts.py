"""Validate items from callers and files; errors list all faults at once, each with the name of its field."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import AliasChoices, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from orchestra_mem.catalog_types import MAX_NAME_CHARS, MAX_PRIORITY, ItemType
from orchestra_mem.errors import InvalidItemError

MAX_CONTENT_CHARS = 200_000

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80, pattern=r"^[^\x00-\x1f]*$")]
_Agent = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_NAME_CHARS)]
_Tag = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]


class ItemDraft(BaseModel):
    """The fields of an item that a caller specifies; the catalog determines the missing ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    content: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_CONTENT_CHARS)]
    type: ItemType = ItemType.OBSERVATION
    ci_source: _Agent | None = Field(default=None, validation_alias=AliasChoices("ci_source", "agent"))
    summary: Annotated[str, StringConstraints(strip_whitespace=True, max_length=2_000)] = ""
    tags: Annotated[tuple[_Tag, ...], Field(max_length=50)] = Field(
        default=(), validation_alias=AliasChoices("relevance_tags", "tags")
    )
    priority: Annotated[int, Field(strict=True, ge=0, le=MAX_PRIORITY)] | None = None
    expires: AwareDatetime | None = None
    timestamp: AwareDatetime | None = None
    references: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    # Exported items have these fields. They are accepted but ignored: the catalog computes new values.
    id: str | None = None
    tokens: int | None = None

    @property
    def stays(self) -> bool:
        """Whether the caller explicitly set the item to never expire."""
        return "expires" in self.model_fields_set and self.expires is None


def read_draft(record: Mapping[str, object], now: datetime) -> ItemDraft:
    """Validate the fields of an item.

    Raises:
        InvalidItemError: Fields are invalid, `expires` has passed, or `timestamp` is in the future.
    """
    faults: list[str] = []
    try:
        draft = ItemDraft.model_validate(dict(record))
    except ValidationError as error:
        raise InvalidItemError(faults_of(error)) from None
    if draft.expires is not None and draft.expires <= now:
        faults.append(f"expires: {draft.expires.isoformat()} is in the past")
    if draft.timestamp is not None and draft.timestamp > now:
        faults.append(f"timestamp: {draft.timestamp.isoformat()} is in the future")
    if faults:
        raise InvalidItemError(faults)
    return draft


def faults_of(error: ValidationError) -> list[str]:
    """Describe every fault that pydantic found in a record, each with the name of its field."""
    faults = []
    for fault in error.errors(include_url=False):
        value = fault["input"]
        shown = "" if isinstance(value, Mapping | bytes) else f", not {_shown(value)}"
        is_time = fault["type"].startswith("datetime_")  # pydantic says only where its parser stopped
        wanted = "must be a time such as 2026-12-01T14:00+01:00" if is_time else _plain(fault["msg"])
        faults.append(f"{'.'.join(map(str, fault['loc'])) or 'item'}: {wanted}{shown}")
    return faults


def _plain(message: str) -> str:
    return (
        message.replace("Input should be ", "must be ").replace("String should ", "must ").replace("Value error, ", "")
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}… ({len(text):,} characters)"


def read_catalog(document: object, now: datetime) -> tuple[str, list[ItemDraft]]:
    """Read a catalog document: return its agent and its items, except for expired items.

    Raises:
        InvalidItemError: The document is invalid; the error lists every fault with the number of its item, from 1.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("memories"), list):
        raise InvalidItemError(["the document has no `memories` list; `orchestra-mem catalog export` shows the format"])
    agent = document.get("ci_name")
    if not isinstance(agent, str) or not agent.strip():
        raise InvalidItemError(["ci_name: must be the name of an agent"])
    drafts: list[ItemDraft] = []
    faults: list[str] = []
    for place, record in enumerate(document["memories"], 1):
        try:
            if not isinstance(record, Mapping):
                raise InvalidItemError(["must be a mapping"])
            if _has_passed(record.get("expires"), now):
                continue  # the catalog would hide the item immediately
            drafts.append(read_draft(record, now))
        except InvalidItemError as error:
            faults += [f"item {place}: {fault}" for fault in error.faults]
    if faults:
        raise InvalidItemError(faults)
    return agent.strip(), drafts


def _has_passed(expires: object, now: datetime) -> bool:
    try:
        return isinstance(expires, str) and datetime.fromisoformat(expires) <= now
    except (ValueError, TypeError):  # invalid, or without a time zone: `read_draft` reports it
        return False
