"""Reading the catalog: items that an agent may see, items relevant to a message, and the audit trail."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from orchestra_mem.catalog_types import (
    AccessOutcome,
    AuditEntry,
    AuditFilter,
    CatalogStatistics,
    InjectedItem,
    Injection,
    ItemFilter,
    ItemStatus,
    MemoryItem,
    SelectedItem,
)
from orchestra_mem.core.catalog.access import OWNER, Access
from orchestra_mem.core.catalog.item_json import catalog_json
from orchestra_mem.core.catalog.tags import message_keys, tag_key
from orchestra_mem.errors import AccessDeniedError, NotFoundError, StorageError, StorageReadOnlyError
from orchestra_mem.ports import Clock, TokenCounter
from orchestra_mem.serialize import to_microseconds
from orchestra_mem.stores import AuditLog, CatalogStore
from orchestra_mem.types import Json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from orchestra_mem.core.catalog.packing import Figures, TagTable
    from orchestra_mem.settings import CatalogSettings

    _Known: TypeAlias = tuple[int, Figures, TagTable]  # number of the last change included, figures, tags

logger = logging.getLogger(__name__)

# Audit entries of reads are buffered and written in batches of this size, so that most reads do not write to disk.
_BATCH = 64
_MOST_WAITING = 10_000
_MAX_DETAIL_CHARS = 500
_TOLD_FIELDS = ("content", "summary", "type", "ci_source", "tags", "priority", "expires", "references")


@dataclass(eq=False)
class AuditTrail:
    """Records changes and reads of items: a change within the change's transaction, reads later in batches.

    Attributes:
        redacted: Removes secrets from a text.
        can_write_now: Checks whether the database could write without a long wait.
        problem: Why entries wait to be written since an attempt failed, "" if none do.
    """

    log: AuditLog
    clock: Clock
    redacted: Callable[[str], str]
    can_write_now: Callable[[], bool]
    problem: str = field(default="", init=False)
    _waiting: list[AuditEntry] = field(default_factory=list, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def read(self, agent: str, call: str, items: tuple[str, ...] = (), *, tokens: int = 0, detail: str = "") -> None:
        """Record which items an agent got, or that it got none."""
        outcome = AccessOutcome.GIVEN if items else AccessOutcome.EMPTY
        entry = self._entry(agent, call, outcome, items, tokens, detail)
        with self._lock:
            self._waiting.append(entry)
            del self._waiting[:-_MOST_WAITING]  # drops the oldest if the disk has refused writes for long
            due = len(self._waiting) >= _BATCH
        if due:
            self._flush_now()

    def recalled(self, agents: Iterable[str], call: str, sources: Iterable[str]) -> None:
        """Record which items among the sources of what was recalled agents got; nothing if there are none."""
        if items := tuple(dict.fromkeys(source for source in sources if source.startswith("mem_"))):
            for agent in agents:
                self.read(agent, call, items)

    @contextmanager
    def checking(self, agent: str, call: str) -> Iterator[None]:
        """Record a refusal at once if the block raises `AccessDeniedError`, or `NotFoundError` for what is hidden."""
        try:
            yield
        except (AccessDeniedError, NotFoundError) as error:
            with self._lock:
                self._waiting.append(self._entry(agent, call, AccessOutcome.REFUSED, (), 0, str(error)))
            self.flush()
            raise

    def changed(self, agent: str, call: str, items: tuple[str, ...], detail: str) -> None:
        """Record a change; call this within the transaction that makes it."""
        self.log.add([self._entry(agent, call, AccessOutcome.CHANGED, items, 0, detail)])

    def _entry(
        self, agent: str, call: str, outcome: AccessOutcome, items: tuple[str, ...], tokens: int, detail: str
    ) -> AuditEntry:
        detail = self.redacted(detail)[:_MAX_DETAIL_CHARS]
        return AuditEntry(
            time=self.clock(), agent=agent, call=call, outcome=outcome, items=items, tokens=tokens, detail=detail
        )

    def flush(self) -> None:
        """Write the buffered entries; keep them buffered if the write fails."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        try:
            if waiting:
                self.log.add(waiting)
                self.problem = ""
        except StorageError as error:
            if not isinstance(error, StorageReadOnlyError):  # else the memory reports why it is read-only
                told, self.problem = self.problem, f"the audit trail cannot be written and waits: {error}"
                logger.log(logging.DEBUG if told else logging.WARNING, "%s", self.problem)
            with self._lock:
                self._waiting[:0] = waiting

    def _flush_now(self) -> None:
        if self._waiting and self.can_write_now():
            self.flush()

    def entries(self, where: AuditFilter) -> list[AuditEntry]:
        """Return the matching entries, newest first; buffered ones only if they can be written now."""
        self._flush_now()
        return self.log.entries(where)

    def injections(
        self, agent: str | None = None, since: datetime | None = None, *, unused: int = 10, share: float = 0.25
    ) -> list[InjectedItem]:
        """Count the injections of each item, sorted by agent, then by count, highest first.

        Args:
            unused: An item injected at least this often since its last use gets the warning `unused`.
            share: An item injected `unused` times gets `share` if it has at least this share of the agent's tokens.
        """
        self._flush_now()

        def warnings(each: InjectedItem) -> Iterator[str]:
            if each.unused >= unused:
                yield "unused"
            if each.token_share >= share and each.times >= unused:
                yield "share"

        found = self.log.injections(agent, since)
        return [replace(each, warnings=tuple(warnings(each))) for each in found]

    def forget(self, before: datetime) -> int:
        """Delete entries older than a time; return their number."""
        self.flush()
        return self.log.forget(before)


def described(before: MemoryItem, after: MemoryItem) -> str:
    """Describe a change of an item, field by field, for the audit trail."""
    values = [(field, getattr(before, field), getattr(after, field)) for field in _TOLD_FIELDS]
    return "; ".join(f"{field}: {_short(was)} -> {_short(now)}" for field, was, now in values if was != now)


def _short(value: object) -> str:
    """Format a value without its text: texts become a digest, as the audit trail must not keep words after a purge."""
    if value in (None, "", (), []):
        return "none"
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    plain = isinstance(value, int | StrEnum)
    return str(value) if plain else f"digest {hashlib.sha256(repr(value).encode()).hexdigest()[:8]}"


# Number of agents whose figures are cached; 10,000 items with their tags take a megabyte.
_AGENTS_KEPT = 128
# Only this many of the best items are considered for a budget: 2,000 tokens hold at most a tenth of this number.
_CONSIDERED = 1_000
_EXPLAINED = 5


@dataclass(eq=False, repr=False)
class CatalogReader:
    """The read access of `MemoryCatalog`: returns only items that the agent may see, and records each read."""

    _store: CatalogStore
    audit: AuditTrail
    access: Access
    _: KW_ONLY
    counter: TokenCounter
    clock: Clock
    settings: CatalogSettings
    _agents: OrderedDict[str, _Known] = field(default_factory=OrderedDict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def get(self, item_id: str, *, agent: str = OWNER) -> MemoryItem:
        """Return an item by its id or its number (`M12`), whatever its status unless it is purged.

        Raises:
            NotFoundError: There is no such item, or the agent may not see it.
        """
        try:
            item = self._seen(item_id, agent)
        except NotFoundError:
            self.audit.read(agent, "get", detail=item_id[:80])
            raise
        self.audit.read(agent, "get", (item.id,), tokens=item.tokens)
        return item

    def _seen(self, item_id: str, agent: str) -> MemoryItem:
        with suppress(NotFoundError):
            item = self._store.item(item_id)
            if item.status is not ItemStatus.PURGED and self.access.may_read(agent, item.ci_source):
                return item
        # The same message whether the item is hidden from the agent or does not exist.
        where = f"that agent {agent!r} may see" if agent else "; `orchestra-mem catalog list` shows them"
        raise NotFoundError(f"there is no item {item_id!r} in the catalog{' ' * bool(agent)}{where}")

    def items(self, where: ItemFilter, *, agent: str = OWNER) -> list[MemoryItem]:
        """Return the items that match a filter and that the agent may see, in the order that the filter sets.

        Raises:
            AccessDeniedError: The filter names an agent whose items the requesting agent may not see.
        """
        found = self._store.items(self._allowed(where, agent))
        self.audit.read(agent, "list", tuple(item.id for item in found), tokens=sum(item.tokens for item in found))
        return found

    def count(self, where: ItemFilter, *, agent: str = OWNER) -> int:
        """Count the items that `items` would return without `limit` and `offset`."""
        return self._store.count(self._allowed(where, agent))

    def _allowed(self, where: ItemFilter, agent: str) -> ItemFilter:
        allowed = self.access.readable(agent)
        if where.tags:
            where = replace(where, tags=[tag_key(tag) for tag in where.tags])
        if list(where.statuses) == [ItemStatus.LIVE]:
            where = replace(where, live_at=self.clock())
        with self.audit.checking(agent, "list"):
            self.access.check_read(agent, where.agents or ())
        return where if allowed is None or where.agents is not None else replace(where, agents=sorted(allowed))

    def get_stats(self, whose: str | None = None, *, agent: str = OWNER) -> dict[str, CatalogStatistics]:
        """Return statistics by agent, for all agents whose items the agent may see, or only for `whose`."""
        shown = [each for each in self._store.agents() if self.access.may_read(agent, each) and whose in (None, each)]
        return {each: self._store.statistics(each) for each in shown}

    def search(self, query: str, filters: ItemFilter | None = None, *, agent: str = OWNER) -> list[MemoryItem]:
        """Return the items with all words of a query; `OrchestratorContextManager.search` searches by meaning."""
        return self.items(replace(filters or ItemFilter(), text=query), agent=agent)

    def export(self, whose: str, *, agent: str = OWNER) -> dict[str, Json]:
        """Return the live items of an agent as a catalog document for `bring_in`, oldest first."""
        items = self.items(ItemFilter(agents=[whose]), agent=agent)[::-1]
        return catalog_json(whose, items, self.clock(), self._store.last_cleanup())

    def _check_write(self, agent: str, call: str, *whose: str) -> None:
        with self.audit.checking(agent, call):
            self.access.check_write(agent, whose)

    # Selecting

    def get_relevant(
        self, ci: str, context: Mapping[str, object] | str, max_tokens: int | None = None, *, call: str = "get_relevant"
    ) -> Injection:
        """Select the items that an agent should see with a message; their text never exceeds the budget.

        Args:
            ci: The agent; its own items, global items and those it is granted are considered.
            context: The message to the agent, or a mapping with the key `message`.
            max_tokens: Budget in tokens; by default, and at most, `catalog.max_injection_tokens`.
            call: Name of the call in the audit trail.

        Raises:
            ValueError: The budget is negative.
        """
        # Imported here, as NumPy loads slowly and importing the package must stay quick.
        from orchestra_mem.core.catalog.packing import lay_out, pack, relevance_of

        message = context if isinstance(context, str) else str(context.get("message", ""))
        most = self.settings.max_injection_tokens
        budget = most if max_tokens is None else min(max_tokens, most)
        if budget < 0:
            raise ValueError(f"max_tokens is {budget}: a budget cannot be negative")
        figures, parts, candidates = self._ranked(ci, message)
        chosen = pack(zip(figures.tokens.tolist(), figures.summary_tokens.tolist(), strict=True), budget)
        numbers = figures.number.tolist()
        found = self._store.by_number([numbers[place] for place, _ in chosen])
        items = {item.number: item for item in found if self.access.may_read(ci, item.ci_source)}
        selected = [
            SelectedItem(item=items[numbers[place]], relevance=relevance_of(parts[:, place]), whole=whole)
            for place, whole in chosen
            if numbers[place] in items
        ]
        text, tokens, shown = lay_out(selected, ci, self.clock(), budget, self.counter)
        detail = ", ".join(f"{each.item.id} {each.relevance.score:.2f}" for each in shown[:_EXPLAINED])
        self.audit.read(ci, call, tuple(each.item.id for each in shown), tokens=tokens, detail=detail)
        return Injection(agent=ci, text=text, tokens=tokens, items=shown, candidates=candidates)

    def _ranked(self, agent: str, message: str) -> tuple[Figures, NDArray[np.float64], int]:
        """Return the best items' figures (best first) and score parts (shape (4, n)), and the number of candidates."""
        import numpy as np

        from orchestra_mem.core.catalog.packing import Figures, score

        allowed = self.access.readable(agent)
        agents = (self._store.agents() or [agent]) if allowed is None else sorted(allowed)
        keys = message_keys(message)
        known = [self._known(whose) for whose in agents]
        groups = [figures for _, figures, _ in known]
        matched = [tags.matched(keys, figures.number) for _, figures, tags in known]
        own = [np.full(len(figures.number), whose == agent) for whose, figures in zip(agents, groups, strict=True)]
        figures, now = Figures.joined(groups), to_microseconds(self.clock())
        parts = score(figures, np.concatenate(matched), np.concatenate(own), now)
        total = np.minimum(parts.sum(axis=0), 1.0)
        wanted = np.flatnonzero((total >= self.settings.min_relevance) & (figures.expires > now))
        best = wanted
        if len(wanted) > _CONSIDERED:
            best = wanted[np.argpartition(-total[wanted], _CONSIDERED)[:_CONSIDERED]]
        order = best[np.lexsort((-figures.number[best], -figures.timestamp[best], -total[best]))]
        return figures.at(order), parts[:, order], len(wanted)

    def _known(self, agent: str) -> _Known:
        """Return the figures and tags of an agent's live items, cached and updated to the agent's last change."""
        with self._lock:
            known = self._agents.get(agent)
        last = self._store.last_change(agent)
        if known is None or known[0] != last:
            has_lost = known is not None and known[0] < self._store.last_move()
            known = self._read(agent, last, None if has_lost else known)
        with self._lock:
            self._agents[agent] = known
            self._agents.move_to_end(agent)
            while len(self._agents) > _AGENTS_KEPT:
                self._agents.popitem(last=False)
        return known

    def _read(self, agent: str, last: int, known: _Known | None) -> _Known:
        import numpy as np

        from orchestra_mem.core.catalog.packing import Figures, TagTable

        columns = np.array(self._store.figures(agent, known[0] if known else 0), np.int64).reshape(-1, 8)
        changed = columns[:, 0]
        new = Figures(*columns[columns[:, 6] == 1].T[[0, 1, 2, 3, 4, 5, 7]])
        tags = TagTable.of(self._store.tags(agent, changed.tolist() if known else None))
        if known is not None:
            _, before, tags_before = known
            kept = before.at(np.flatnonzero(~np.isin(before.number, changed)))
            joined = Figures.joined([kept, new])
            new, tags = joined.at(np.argsort(joined.number)), tags_before.changed(changed, tags)
        return last, new, tags
