"""The catalog: what agents have learnt, kept apart by agent, found again, and given up in time.

Nothing is deleted but by a purge: what has expired, was displaced, superseded or deleted is hidden from everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING

from orchestra_mem.catalog_types import (
    GIVEN,
    GLOBAL,
    MAX_NAME_CHARS,
    MAX_PRIORITY,
    CatalogStore,
    CleanedUp,
    ItemFilter,
    ItemStatus,
    MemoryItem,
    PreparedItem,
)
from orchestra_mem.core.catalog.access import OWNER, Access
from orchestra_mem.core.catalog.item_json import first_priority, item_id, item_json
from orchestra_mem.core.catalog.tags import content_digest, create_summary, extract_tags, tag_key
from orchestra_mem.errors import AccessDeniedError, InvalidItemError, NotFoundError
from orchestra_mem.ports import Clock, TokenCounter
from orchestra_mem.tiers.audit import AuditTrail, described
from orchestra_mem.tiers.catalog_reading import CatalogReader, Select
from orchestra_mem.types import EXTRACTIVE, Author

if TYPE_CHECKING:
    from orchestra_mem.core.catalog.item_drafts import ItemDraft
    from orchestra_mem.settings import CatalogSettings

_STRENGTHENED = 1  # by each second saying


class MemoryCatalog(CatalogReader):
    """Stores and lists items. Every call names the agent that asks; `OWNER` sees and changes all.

    Args:
        store: keeps the items.
        audit: keeps account of all that is read and changed.
        access: says who may see and change what.
        counter: counts tokens.
        clock: gives the present time.
        settings: how many items an agent may have, how long one is kept, and how long a summary is.
        redacted: takes secrets out of a text.
        superseded: names the earlier items that a new one takes the place of.
        select: chooses what matters for a message; see `CatalogSelector.get_relevant`.

    `purged` is told which items have been removed for good, so that no text of theirs stays elsewhere; `said_anew` of
    each that is new or has another text, in the transaction that stores it.
    """

    def __init__(
        self,
        store: CatalogStore,
        audit: AuditTrail,
        access: Access,
        *,
        counter: TokenCounter,
        clock: Clock,
        settings: CatalogSettings,
        redacted: Callable[[str], str],
        superseded: Callable[[MemoryItem, Sequence[MemoryItem]], Sequence[MemoryItem]],
        select: Select,
    ) -> None:
        super().__init__(store, audit, access, clock=clock, select=select)
        self._counter = counter
        self._settings = settings
        self.purged: Callable[[Sequence[MemoryItem]], None] = lambda items: None
        self.said_anew: Callable[[MemoryItem], None] = lambda item: None
        self._redacted = redacted
        self._superseded = superseded

    # Writing

    def store(
        self, item: Mapping[str, object] | MemoryItem, *, agent: str = OWNER, author: Author = Author.PERSON
    ) -> MemoryItem:
        """Store an item; what says the same as one that is there strengthens that one.

        Args:
            item: the fields of the source design: `content` alone must be there. `ci_source` is the asking agent's
                where it is left out, all agents' where nobody asks.
            agent: who asks.
            author: who says it.

        Raises:
            InvalidItemError: with every fault.
            AccessDeniedError: this agent may not write there.
            StorageError: it could not be stored.
        """
        from orchestra_mem.core.catalog.item_drafts import read_draft  # here, as pydantic is heavy

        record = item_json(item) if isinstance(item, MemoryItem) else item
        return self.put(read_draft(record, self._clock()), agent=agent, author=author)

    def put(self, draft: ItemDraft, *, agent: str = OWNER, author: Author = Author.MACHINE) -> MemoryItem:
        """Store what a draft says; see `store`."""
        return self.commit(self.prepare(draft, agent=agent, author=author))

    def prepare(self, draft: ItemDraft, *, agent: str = OWNER, author: Author = Author.MACHINE) -> PreparedItem:
        """Make the item of a draft, and find which earlier ones it takes the place of; nothing is stored.

        Raises:
            AccessDeniedError: this agent may not write there.
            InvalidItemError: no agent can have this name.
        """
        if agent != OWNER and not agent.strip():
            raise ValueError("an agent needs a name")
        whose = draft.ci_source or agent.strip() or GLOBAL
        check_name(whose)
        self._check_write(agent, "store", whose)
        item = self._made(draft, whose, author)
        earlier = self._store.items(ItemFilter(agents=[whose], limit=_REACH))
        return PreparedItem(item=item, agent=agent, replaced=tuple(self._superseded(item, earlier)))

    def commit(self, prepared: PreparedItem) -> MemoryItem:
        """Store a prepared item; what says the same as one that is there by now strengthens that one."""
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
            self.said_anew(stored)
        return stored

    def _made(self, draft: ItemDraft, whose: str, author: Author) -> MemoryItem:
        now, content = self._clock(), self._redacted(draft.content)
        priority = first_priority(draft.type) if draft.priority is None else draft.priority
        given = self._redacted(draft.summary)
        summary = create_summary(given or content, self._settings.summary_max_length)
        tags = tuple(dict.fromkeys(map(self._redacted, draft.tags))) or extract_tags(content)
        return MemoryItem(
            id=item_id(content, whose, now),
            timestamp=draft.timestamp or now,
            ci_source=whose,
            type=draft.type,
            summary=summary,
            content=content,
            tokens=self._counter.count(content),
            summary_tokens=self._counter.count(summary),
            tags=tags,
            priority=priority,
            expires=draft.expires or (None if draft.stays else self._expiry(priority, draft.timestamp or now)),
            references=draft.references,
            author=author,
            summary_method=GIVEN if given else EXTRACTIVE,
        )

    def _expiry(self, priority: int, said: datetime) -> datetime | None:
        lasting = timedelta(days=self._settings.default_expiration_days)
        return None if priority >= self._settings.min_priority_for_permanent else said + lasting

    def _add(self, item: MemoryItem) -> MemoryItem:
        for salt in count():
            try:
                self._store.item(item.id)
            except NotFoundError:
                break
            item = replace(item, id=item_id(item.content, item.ci_source, self._clock(), salt + 1))
        return self._store.add(item, content_digest(item.content), _keys(item))

    def _strengthened(self, item: MemoryItem, again: MemoryItem, agent: str) -> MemoryItem:
        """Note that an item was said again: it is newer, lasts longer, and weighs a little more."""
        below = self._settings.min_priority_for_permanent - 1  # what is permanent somebody has said to be
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
        self.audit.changed(agent, "store", (said.id,), f"said again, {said.said} times by now")
        return said

    def _displace(self, whose: str, agent: str) -> int:
        border = self._settings.min_priority_for_permanent
        gone = self._store.excess(whose, self._settings.max_memories_per_ci, border)
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
        """Give an item to be changed, within a transaction; `more` are agents that it is to be written to."""
        # Before the transaction: a refusal would take back its own trace.
        self._check_write(agent, call, self._seen(item_id, agent).ci_source, *more)
        with self._store.changing():
            yield self._seen(item_id, agent)

    def update(
        self, item_id: str, changes: Mapping[str, object], *, agent: str = OWNER, author: Author = Author.PERSON
    ) -> MemoryItem:
        """Change some fields of an item, under their names in `store`.

        Raises:
            NotFoundError: there is no such item that this agent may see.
            InvalidItemError: with every fault.
            AccessDeniedError: this agent may not change it.
        """
        seen = self._seen(item_id, agent)
        after = self._changed(seen, changes, author)  # which tells whose it will be, given under whichever name
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
                    self.said_anew(after)
        return after

    def better_summary(self, item: MemoryItem, summary: str, method: str) -> bool:
        """Put a better summary in the place of an extract; False where the item has another text or summary by now."""
        with self._store.changing():
            for now in self._store.by_number([item.number]):
                if (now.content, now.summary, now.summary_method) == (item.content, item.summary, EXTRACTIVE):
                    tokens = self._counter.count(summary)
                    after = replace(now, summary=summary, summary_tokens=tokens, summary_method=method)
                    self.audit.changed(OWNER, "better", (now.id,), f"{described(now, after)} by {method}")
                    self._replace(after)
                    return True
        return False

    def _changed(self, before: MemoryItem, changes: Mapping[str, object], author: Author) -> MemoryItem:
        from orchestra_mem.core.catalog.item_drafts import read_draft

        kept = {name: value for name, value in item_json(before).items() if name in _KEPT}
        if "content" in changes:  # they are made anew, unless they are given
            kept = {name: value for name, value in kept.items() if name not in ("summary", "relevance_tags")}
        if "tags" in changes:
            kept.pop("relevance_tags", None)
        draft = read_draft({**kept, **changes}, self._clock())
        made = self._made(draft, draft.ci_source or before.ci_source, author)
        border = self._settings.min_priority_for_permanent
        anew = "expires" in changes or (made.priority >= border) is not (before.priority >= border)
        return replace(
            made, id=before.id, number=before.number, said=before.said, status=before.status, changed=before.changed,
            superseded_by=before.superseded_by, timestamp=draft.timestamp or before.timestamp,
            expires=made.expires if anew else before.expires,
            summary_method=made.summary_method if {"content", "summary"} & {*changes} else before.summary_method,
        )  # fmt: skip

    def delete(self, item_id: str, *, agent: str = OWNER) -> MemoryItem:
        """Hide an item from everybody; `purge` removes it for good.

        Raises:
            NotFoundError: there is no such item that this agent may see.
            AccessDeniedError: this agent may not change it.
        """
        with self._changing(item_id, agent, "delete") as item:
            self._hide([item], ItemStatus.DELETED, agent)
        return replace(item, status=ItemStatus.DELETED)

    def expire_old(self) -> int:
        """Hide what has expired; how many items that is."""
        return self.clean_up().expired

    def clean_up(self, *, agent: str = OWNER) -> CleanedUp:
        """Hide what has expired and what is too many, and forget what is too old in the audit trail."""
        now = self._clock()
        with self._store.changing():
            expired = self._store.expiring(now)
            self._hide(expired, ItemStatus.EXPIRED, agent)
            displaced = sum(self._displace(whose, agent) for whose in self._store.agents())
            self._store.note_cleanup(now)
        forgotten = self.audit.forget(now - timedelta(days=self._settings.audit_retention_days))
        return CleanedUp(expired=len(expired), displaced=displaced, audit_entries=forgotten)

    @property
    def cleanup_due(self) -> bool:
        """Whether the last clean-up is longer ago than it should be, or, as the clock was put back, yet to come."""
        last, every = self._store.last_cleanup(), timedelta(hours=self._settings.cleanup_interval_hours)
        return last is None or not last <= self._clock() < last + every

    def purge(self, where: ItemFilter, *, agent: str = OWNER) -> int:
        """Remove for good what is hidden already and passes a filter; how many items that is.

        Raises:
            AccessDeniedError: only who owns the memory may.
        """
        with self.audit.checking(agent, "purge"):
            if agent != OWNER:
                raise AccessDeniedError("only who owns the memory removes items for good")
        hidden = [status for status in where.statuses if status not in (ItemStatus.LIVE, ItemStatus.PURGED)]
        with self._store.changing():
            items = self._store.items(replace(where, statuses=hidden)) if hidden else []
            self._store.purge(items)
            for item in items:
                self.audit.changed(agent, "purge", (item.id,), f"{item.status.value} {item.type.value}")
        self.purged(items)
        return len(items)

    def restore(self, item_id: str, *, agent: str = OWNER) -> MemoryItem:
        """Show a hidden item again, for as long as a new one of its priority would be.

        Raises:
            NotFoundError: there is no such item that this agent may see.
            AccessDeniedError: this agent may not change it.
        """
        with self._changing(item_id, agent, "restore") as item:
            same = self._store.same(item.ci_source, content_digest(item.content))
            if same is not None:  # it is live, or has been said again since
                return same
            expires = self._expiry(item.priority, self._clock())
            item = self._replace(replace(item, status=ItemStatus.LIVE, superseded_by="", expires=expires))
            self.audit.changed(agent, "restore", (item.id,), item.type.value)
        return item

    # Exchange

    def bring_in(self, document: object, *, agent: str = OWNER) -> int:
        """Store the items of a catalog document, all or none; those that have expired by now are passed over.

        Returns:
            How many it held that still hold.

        Raises:
            InvalidItemError: with every fault.
        """
        from orchestra_mem.core.catalog.item_drafts import read_catalog

        whose, drafts = read_catalog(document, self._clock())
        self._check_write(agent, "import", *(draft.ci_source or whose for draft in drafts))
        with self._store.changing():
            for draft in drafts:
                own = draft if draft.ci_source else draft.model_copy(update={"ci_source": whose})
                self.put(own, agent=agent, author=Author.PERSON)
        return len(drafts)


_REACH = 400  # earlier items that a new one may take the place of
_KEPT = ("content", "summary", "type", "relevance_tags", "priority", "references")


def check_name(agent: str) -> None:
    """Raise `InvalidItemError` for a name that no operation's agent can have either."""
    if len(agent) > MAX_NAME_CHARS or not agent.isprintable():
        raise InvalidItemError([f"agent: a name has up to {MAX_NAME_CHARS} printable characters, in one line"])


def _keys(item: MemoryItem) -> list[str]:
    return [*dict.fromkeys(map(tag_key, item.tags))]
