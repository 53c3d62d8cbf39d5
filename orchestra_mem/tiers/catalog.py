"""The catalog: memory items that agents have learnt, each owned by one agent or by all, most with an expiry date.

Only a purge removes items. Expired, displaced, superseded and deleted items are not injected, nor listed by default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING

from orchestra_mem.catalog_types import (
    GIVEN,
    GLOBAL,
    MAX_NAME_CHARS,
    MAX_PRIORITY,
    CleanedUp,
    ItemFilter,
    ItemStatus,
    MemoryItem,
    PreparedItem,
)
from orchestra_mem.core.catalog.access import OWNER
from orchestra_mem.core.catalog.item_json import FIRST_PRIORITY, item_id, item_json
from orchestra_mem.core.catalog.tags import content_digest, create_summary, extract_tags, tag_key
from orchestra_mem.design_names import DesignNames
from orchestra_mem.errors import AccessDeniedError, InvalidItemError, NotFoundError
from orchestra_mem.tiers.catalog_reading import CatalogReader, described
from orchestra_mem.types import EXTRACTIVE, Author

if TYPE_CHECKING:
    from orchestra_mem.core.catalog.item_drafts import ItemDraft

_STRENGTHENED = 1  # added to the priority each time an item is stored again


@dataclass(eq=False, repr=False)
class MemoryCatalog(CatalogReader, DesignNames):
    """Stores and lists items. Every call names the requesting agent; `OWNER` may read and change everything.

    Args:
        audit: Records every read and change.
        access: Decides who may read and change which items.
        counter: Counts tokens.
        clock: Returns the present time.
        settings: Limits: items per agent, lifetime of an item, length of a summary, budget of an injection.
        redacted: Removes secrets from a text.

    The callback `purged` gets the items that a purge removed, to remove their text elsewhere. `on_content_changed` gets
    each item that is new or has new content, within the transaction that stores it.
    """

    _: KW_ONLY
    redacted: Callable[[str], str]  # removes secrets
    # Gets the items that a purge removed, to remove their text elsewhere.
    purged: Callable[[Sequence[MemoryItem]], None] = field(default_factory=lambda: lambda items: None, init=False)
    # Gets each item that is new or has new content, within the transaction that stores it.
    on_content_changed: Callable[[MemoryItem], None] = field(default_factory=lambda: lambda item: None, init=False)

    # Writing

    def store(
        self, item: Mapping[str, object] | MemoryItem, *, agent: str = OWNER, author: Author = Author.PERSON
    ) -> MemoryItem:
        """Store an item; if a live item has the same content, strengthen the live item instead.

        Args:
            item: The item's fields, see `ItemDraft`; only `content` is required. `ci_source`, the agent that owns the
                item, defaults to the requesting agent, or to `GLOBAL` for `OWNER`.
            author: Whether a person or the machine wrote the item.

        Raises:
            InvalidItemError: Fields are invalid; the error lists every fault.
            AccessDeniedError: The agent may not write items of `ci_source`.
            StorageError: The item could not be stored.
        """
        from orchestra_mem.core.catalog.item_drafts import read_draft  # imported here, as pydantic loads slowly

        record = item_json(item) if isinstance(item, MemoryItem) else item
        return self.put(read_draft(record, self.clock()), agent=agent, author=author)

    def put(self, draft: ItemDraft, *, agent: str = OWNER, author: Author = Author.MACHINE) -> MemoryItem:
        """Store the item of a draft; see `store`."""
        return self.commit(self.prepare(draft, agent=agent, author=author))

    def prepare(self, draft: ItemDraft, *, agent: str = OWNER, author: Author = Author.MACHINE) -> PreparedItem:
        """Build the item of a draft and find the earlier items that it supersedes, without storing anything.

        Raises:
            AccessDeniedError: The agent may not write items of `ci_source`.
            InvalidItemError: `ci_source` is no valid agent name.
            ValueError: `agent` is blank but not `OWNER`.
        """
        if agent != OWNER and not agent.strip():
            raise ValueError("agent is blank: give the agent's name")
        whose = draft.ci_source or agent.strip() or GLOBAL
        check_name(whose)
        self._check_write(agent, "store", whose)
        item = self._made(draft, whose, author)
        earlier = self._store.items(ItemFilter(agents=[whose], limit=_REACH))
        if not earlier:
            return PreparedItem(item=item, agent=agent, replaced=())
        from orchestra_mem.core.catalog.item_extraction import superseded_items  # imported here, as NumPy loads slowly

        return PreparedItem(item=item, agent=agent, replaced=tuple(superseded_items(item, earlier)))

    def commit(self, prepared: PreparedItem) -> MemoryItem:
        """Store a prepared item; if a live item has the same content by now, strengthen the live item instead."""
        new, agent = prepared.item, prepared.agent
        with self._store.changing():
            if same := self._store.same(new.ci_source, content_digest(new.content)):
                return self._strengthened(same, new, agent)
            stored = self._add(new)
            self.audit.changed(agent, "store", (stored.id,), f"{stored.type}, priority {stored.priority}")
            for old in self._store.by_number([each.number for each in prepared.replaced]):
                if old.status is ItemStatus.LIVE:
                    self._replace(replace(old, status=ItemStatus.SUPERSEDED, superseded_by=stored.id))
                    self.audit.changed(agent, "supersede", (old.id, stored.id), f"{old.type} by {stored.type}")
            self._displace(new.ci_source, agent)
            self.on_content_changed(stored)
        return stored

    def _made(self, draft: ItemDraft, whose: str, author: Author) -> MemoryItem:
        now, content = self.clock(), self.redacted(draft.content)
        priority = FIRST_PRIORITY[draft.type] if draft.priority is None else draft.priority
        given = self.redacted(draft.summary)
        summary = create_summary(given or content, self.settings.summary_max_length)
        tags = tuple(dict.fromkeys(map(self.redacted, draft.tags))) or extract_tags(content)
        return MemoryItem(
            id=item_id(content, whose, now),
            timestamp=draft.timestamp or now,
            ci_source=whose,
            type=draft.type,
            summary=summary,
            content=content,
            tokens=self.counter.count(content),
            summary_tokens=self.counter.count(summary),
            tags=tags,
            priority=priority,
            expires=draft.expires or (None if draft.stays else self._expiry(priority, draft.timestamp or now)),
            references=tuple(map(self.redacted, draft.references)),
            author=author,
            summary_method=GIVEN if given else EXTRACTIVE,
        )

    def _expiry(self, priority: int, said: datetime) -> datetime | None:
        lasting = timedelta(days=self.settings.default_expiration_days)
        return None if priority >= self.settings.min_priority_for_permanent else said + lasting

    def _add(self, item: MemoryItem) -> MemoryItem:
        for salt in count():
            try:
                self._store.item(item.id)
            except NotFoundError:
                break
            item = replace(item, id=item_id(item.content, item.ci_source, self.clock(), salt + 1))
        return self._store.add(item, content_digest(item.content), _keys(item))

    def _strengthened(self, item: MemoryItem, again: MemoryItem, agent: str) -> MemoryItem:
        """Refresh an item that was stored again: it gets a newer timestamp, a later expiry and a higher priority."""
        below = self.settings.min_priority_for_permanent - 1  # repetition alone makes no item permanent
        priority = max(item.priority, again.priority, min(item.priority + _STRENGTHENED, below, MAX_PRIORITY))
        expires = None if None in (item.expires, again.expires) else max(item.expires, again.expires)  # type: ignore[type-var]
        said = replace(
            item,
            timestamp=max(item.timestamp, again.timestamp),
            said=item.said + 1,
            priority=priority,
            expires=None if priority > below else expires,
            references=tuple(dict.fromkeys((*item.references, *again.references))),
        )
        said = self._replace(said)
        self.audit.changed(agent, "store", (said.id,), f"stored again, {said.said} times in total")
        return said

    def _displace(self, whose: str, agent: str) -> int:
        border = self.settings.min_priority_for_permanent
        gone = self._store.excess(whose, self.settings.max_memories_per_ci, border)
        self._hide(gone, ItemStatus.DISPLACED, agent)
        return len(gone)

    def _hide(self, items: Sequence[MemoryItem], status: ItemStatus, agent: str) -> None:
        for item in items:
            self._replace(replace(item, status=status))
            self.audit.changed(agent, status.value, (item.id,), item.type.value)

    def _replace(self, item: MemoryItem) -> MemoryItem:
        return self._store.replace(item, content_digest(item.content), _keys(item))

    @contextmanager
    def _changing(self, item_id: str, agent: str, call: str, *more: str) -> Iterator[MemoryItem]:
        """Yield an item to change, within a transaction; `more` are further agents whose items are written."""
        # Checked before the transaction, which would roll back the audit entry of a refusal.
        with self.audit.checking(agent, call):
            self.access.check_write(agent, (self._seen(item_id, agent).ci_source, *more))
        with self._store.changing():
            yield self._seen(item_id, agent)

    def update(
        self, item_id: str, changes: Mapping[str, object], *, agent: str = OWNER, author: Author = Author.PERSON
    ) -> MemoryItem:
        """Change fields of an item, named as in `store`. An expired item that gets a new time of expiry is live again.

        Raises:
            NotFoundError: There is no such item, or the agent may not see it.
            InvalidItemError: Fields are invalid; the error lists every fault.
            AccessDeniedError: The agent may not change the item.
        """
        with self.audit.checking(agent, "update"):
            seen = self._seen(item_id, agent)
        after = self._changed(seen, changes, author)  # its `ci_source` is needed for the access check
        with self._changing(item_id, agent, "update", after.ci_source) as before:
            if before != seen:
                after = self._changed(before, changes, author)
            if detail := described(before, after):
                same = self._store.same(after.ci_source, content_digest(after.content))
                if same is not None and same.number != after.number:
                    self._hide([same], ItemStatus.DISPLACED, agent)
                after = self._replace(after)
                self.audit.changed(agent, "update", (after.id,), detail)
                if after.content != before.content:
                    self.on_content_changed(after)
        return after

    def better_summary(self, item: MemoryItem, summary: str, method: str) -> bool:
        """Replace an item's extractive summary; return False if content or summary differ from `item` by now."""
        with self._store.changing():
            for now in self._store.by_number([item.number]):
                if (now.content, now.summary, now.summary_method) == (item.content, item.summary, EXTRACTIVE):
                    tokens = self.counter.count(summary)
                    after = replace(now, summary=summary, summary_tokens=tokens, summary_method=method)
                    self.audit.changed(OWNER, "better", (now.id,), f"{described(now, after)} by {method}")
                    self._replace(after)
                    return True
        return False

    def _changed(self, before: MemoryItem, changes: Mapping[str, object], author: Author) -> MemoryItem:
        from orchestra_mem.core.catalog.item_drafts import read_draft

        kept = {name: value for name, value in item_json(before).items() if name in _KEPT}
        if "content" in changes:  # summary and tags are derived again, unless `changes` has them
            kept = {name: value for name, value in kept.items() if name not in ("summary", "relevance_tags")}
        if "tags" in changes:
            kept.pop("relevance_tags", None)
        draft = read_draft({**kept, **changes}, self.clock())
        made = self._made(draft, draft.ci_source or before.ci_source, author)
        border = self.settings.min_priority_for_permanent
        anew = "expires" in changes or (made.priority >= border) is not (before.priority >= border)
        status = ItemStatus.LIVE if anew and before.status is ItemStatus.EXPIRED else before.status
        return replace(
            made, id=before.id, number=before.number, said=before.said, status=status, changed=before.changed,
            superseded_by=before.superseded_by, timestamp=draft.timestamp or before.timestamp,
            expires=made.expires if anew else before.expires,
            summary_method=made.summary_method if {"content", "summary"} & {*changes} else before.summary_method,
        )  # fmt: skip

    def delete(self, item_id: str, *, agent: str = OWNER) -> MemoryItem:
        """Mark an item as deleted, which hides it; only `purge` removes it permanently.

        Raises:
            NotFoundError: There is no such item, or the agent may not see it.
            AccessDeniedError: The agent may not change the item.
        """
        with self._changing(item_id, agent, "delete") as item:
            self._hide([item], ItemStatus.DELETED, agent)
        return replace(item, status=ItemStatus.DELETED)

    def expire_old(self) -> int:
        """Call `clean_up` and return the number of items that expired."""
        return self.clean_up().expired

    def clean_up(self, *, agent: str = OWNER) -> CleanedUp:
        """Hide expired items and items beyond an agent's limit, and delete audit entries past their retention.

        Items that a clock which was ahead let expire are live again.
        """
        now = self.clock()
        with self._store.changing():
            for item in self._store.items(ItemFilter(statuses=[ItemStatus.EXPIRED])):
                if item.expires and item.expires > now:
                    self.restore(item.id, agent=agent)
            expired = self._store.expiring(now)
            self._hide(expired, ItemStatus.EXPIRED, agent)
            displaced = sum(self._displace(whose, agent) for whose in self._store.agents())
            self._store.note_cleanup(now)
        forgotten = self.audit.forget(now - timedelta(days=self.settings.audit_retention_days))
        return CleanedUp(expired=len(expired), displaced=displaced, audit_entries=forgotten)

    @property
    def cleanup_due(self) -> bool:
        """Whether the last clean-up is too long ago, is in the future (the clock was set back), or never happened."""
        last, every = self._store.last_cleanup(), timedelta(hours=self.settings.cleanup_interval_hours)
        return last is None or not last <= self.clock() < last + every

    def purge(self, where: ItemFilter, *, agent: str = OWNER) -> int:
        """Permanently remove the hidden items that match a filter; return their number.

        Raises:
            AccessDeniedError: `agent` is not `OWNER`.
        """
        with self.audit.checking(agent, "purge"):
            if agent != OWNER:
                raise AccessDeniedError("only the owner of the memory may purge items")
        hidden = [status for status in where.statuses if status not in (ItemStatus.LIVE, ItemStatus.PURGED)]
        with self._store.changing():
            items = self._store.items(replace(where, statuses=hidden)) if hidden else []
            self._store.purge(items)
            for item in items:
                self.audit.changed(agent, "purge", (item.id,), f"{item.status.value} {item.type.value}")
        self.purged(items)
        return len(items)

    def restore(self, item_id: str, *, agent: str = OWNER) -> MemoryItem:
        """Make a hidden item live again, with the lifetime of a new item of its priority.

        Raises:
            NotFoundError: There is no such item, or the agent may not see it.
            AccessDeniedError: The agent may not change the item.
        """
        with self._changing(item_id, agent, "restore") as item:
            same = self._store.same(item.ci_source, content_digest(item.content))
            if same is not None:  # the item is live, or the same content was stored again
                return same
            expires = self._expiry(item.priority, self.clock())
            item = self._replace(replace(item, status=ItemStatus.LIVE, superseded_by="", expires=expires))
            self.audit.changed(agent, "restore", (item.id,), item.type.value)
        return item

    # Exchange

    def bring_in(self, document: object, *, agent: str = OWNER) -> int:
        """Store the unexpired items of a catalog document, all or none; return their number.

        Raises:
            AccessDeniedError: The agent may not write items of an agent that the document names.
            InvalidItemError: The document is invalid; the error lists every fault.
        """
        from orchestra_mem.core.catalog.item_drafts import read_catalog

        whose, drafts = read_catalog(document, self.clock())
        self._check_write(agent, "import", *(draft.ci_source or whose for draft in drafts))
        with self._store.changing():
            for draft in drafts:
                own = draft if draft.ci_source else draft.model_copy(update={"ci_source": whose})
                self.put(own, agent=agent, author=Author.PERSON)
        return len(drafts)


_REACH = 400  # a new item can supersede only this many of its agent's newest live items
_KEPT = ("content", "summary", "type", "relevance_tags", "priority", "references")


def check_name(agent: str) -> None:
    """Raise `InvalidItemError` if an agent's name is too long or not printable; operations have the same limits."""
    if len(agent) > MAX_NAME_CHARS or not agent.isprintable():
        raise InvalidItemError([f"agent: a name must have at most {MAX_NAME_CHARS} printable characters, on one line"])


def _keys(item: MemoryItem) -> list[str]:
    return [*dict.fromkeys(map(tag_key, item.tags))]
