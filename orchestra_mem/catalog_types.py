"""Records and ports of the catalog: what agents have learnt, item by item, and who has looked at it or changed it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from orchestra_mem.design_names import ReadByKey
from orchestra_mem.types import Author

GLOBAL = "global"
"""The pseudo agent whose items all agents see."""

CHUNK_PATTERN = "catalog"
"""The `pattern` of a chunk of search that is an item of the catalog, and of its `agent` alone."""

MAX_PRIORITY = 10
MAX_NAME_CHARS = 200  # of an agent

GIVEN = "given"
"""The `summary_method` of a summary that came with its item: no other takes its place."""

MAX_ATTEMPTS = 3  # to learn from an exchange


class ItemType(StrEnum):
    """What an item tells."""

    DECISION = "decision"
    INSIGHT = "insight"
    ERROR = "error"
    PLAN = "plan"
    OBSERVATION = "observation"


class ItemStatus(StrEnum):
    """Whether an item is shown, and if not, why: none is deleted but by a purge."""

    LIVE = "live"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"
    DISPLACED = "displaced"
    DELETED = "deleted"
    PURGED = "purged"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItem:
    """A piece of what an agent has learnt.

    `ci_source` is the agent that it is of, `GLOBAL` where it is of all. `tokens` are those of `content`,
    `summary_tokens` those of `summary`. `summary_method` is `extractive`, with the name of the model that has bettered
    it where one has, or `GIVEN`. `tags` are called `relevance_tags` in JSON. `priority` is 0 to 10. `timestamp`
    is when it was said last, `said` how often; `expires` is None where it stays. `references` names items, operations
    (`op 12`), facts (`K7`), documents. `superseded_by` is the id of the item that took its place. `number` counts items
    from 1; 0 for one that is not stored. `changed` rises with each change of any item.
    """

    id: str
    timestamp: datetime
    ci_source: str
    type: ItemType
    summary: str
    content: str
    tokens: int = 0
    summary_tokens: int = 0
    tags: tuple[str, ...] = ()
    priority: int = 5
    expires: datetime | None = None
    references: tuple[str, ...] = ()
    author: Author = Author.MACHINE
    status: ItemStatus = ItemStatus.LIVE
    superseded_by: str = ""
    said: int = 1
    number: int = 0
    changed: int = 0
    summary_method: str = ""

    @property
    def operations(self) -> list[int]:
        """The operations that it refers to, as `op 12`."""
        names = (name[3:] for name in self.references if name.startswith("op "))
        return [int(number) for number in names if number.isdecimal() and len(number) < 19]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFilter:
    """Which items are wanted; what is empty or None does not matter.

    An item passes if it has one of `tags`, refers to one of `references`, and all words of `text` stand in it. Newest
    first, or those of the highest priority; of what passes `offset` are left out, and at most `limit` given.
    """

    agents: Sequence[str] | None = None
    types: Sequence[ItemType] = ()
    statuses: Sequence[ItemStatus] = (ItemStatus.LIVE,)
    tags: Sequence[str] = ()
    text: str = ""
    limit: int | None = None
    offset: int = 0
    by_priority: bool = False
    references: Sequence[str] = ()


class ItemFigures(NamedTuple):
    """What an item is ranked and packed by, without its text; times are in microseconds."""

    number: int
    timestamp: int
    priority: int
    tag_count: int
    tokens: int
    summary_tokens: int
    live: int
    expires: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogStatistics:
    """How many live items there are, with how many tokens, of what time; and when was last cleaned up."""

    total_memories: int
    total_tokens: int
    oldest_memory: datetime | None
    last_cleanup: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A message to an agent and its answer, which wait to be learnt from. `attempts` failed with `error`."""

    agent: str
    message: str
    answer: str
    time: datetime
    id: int = 0
    attempts: int = 0
    error: str = ""


class AccessOutcome(StrEnum):
    """What came of an access."""

    GIVEN = "given"
    EMPTY = "empty"
    REFUSED = "refused"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One access to the catalog, or one change.

    `agent` is who asked, "" for the person or program that owns the memory. `call` is what was called; `items` are the
    ids that were given or changed, `tokens` what was given. `detail` says of a change what it was, of a refusal why.
    """

    time: datetime
    agent: str
    call: str
    outcome: AccessOutcome
    items: tuple[str, ...] = ()
    tokens: int = 0
    detail: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which entries are wanted: of an agent, a call, an outcome, an item, from a time on; the newest `limit`."""

    agent: str | None = None
    call: str | None = None
    outcome: AccessOutcome | None = None
    item: str | None = None
    since: datetime | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedItem:
    """How often an item was put into the messages of an agent, of all those that the catalog was asked for.

    `tokens` is what it took, and `token_share` its share, where an injection's are divided among its items by length.
    `unused` counts the injections since the agent last got, changed or said it; `warnings` are thresholds reached.
    """

    agent: str
    item: str
    times: int
    messages: int
    tokens: int
    token_share: float
    unused: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedUp:
    """What a clean-up has hidden, and what has gone: entries of the audit trail, archived session documents by name.

    `archives_kept` are those that the settings would remove and that hold what is not the machine's.
    """

    expired: int
    displaced: int
    audit_entries: int
    archives: tuple[str, ...] = ()
    archives_kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedItem:
    """An item that is ready to be stored for an agent, and the earlier ones that it takes the place of."""

    item: MemoryItem
    agent: str
    replaced: tuple[MemoryItem, ...]


class AuditLog(Protocol):
    """Keeps what was looked at and changed. Nothing in it is ever altered; what is older than its retention goes."""

    def add(self, entries: Sequence[AuditEntry]) -> None: ...

    def entries(self, where: AuditFilter) -> list[AuditEntry]: ...

    def injections(self, agent: str | None, since: datetime | None) -> list[InjectedItem]: ...

    def forget(self, before: datetime) -> int: ...


class CatalogStore(Protocol):
    """Keeps items, and exchanges that wait to be learnt from."""

    def changing(self) -> AbstractContextManager[object]:
        """Make all that is read and written within one transaction."""

    def add(self, item: MemoryItem, digest: str, keys: Sequence[str]) -> MemoryItem:
        """Store a new item; it gets the next number. `keys` are what its tags are compared by."""

    def replace(self, item: MemoryItem, digest: str, keys: Sequence[str]) -> MemoryItem:
        """Store an item as it is now."""

    def item(self, item_id: str) -> MemoryItem: ...

    def same(self, agent: str, digest: str) -> MemoryItem | None:
        """Give the live item of an agent with this digest of its content."""

    def items(self, where: ItemFilter) -> list[MemoryItem]: ...

    def count(self, where: ItemFilter) -> int: ...

    def by_number(self, numbers: Sequence[int]) -> list[MemoryItem]: ...

    def changed_after(self, change: int, limit: int) -> list[MemoryItem]: ...

    def last_change(self, agent: str | None = None) -> int: ...

    def last_move(self) -> int: ...

    def extracts(self, limit: int) -> list[MemoryItem]:
        """Give the newest live items that are longer than their summaries, which extraction made."""

    def figures(self, agent: str, after: int = 0) -> list[ItemFigures]:
        """Give those of an agent's live items; after a change those of all items that have changed since."""

    def tags(self, agent: str, numbers: Sequence[int] | None = None) -> list[tuple[str, int]]:
        """Give the tags' keys of an agent's live items, or of some of them, each with the item's number."""

    def expiring(self, now: datetime) -> list[MemoryItem]:
        """Give the live items whose time is over."""

    def excess(self, agent: str, most: int, permanent_from: int) -> list[MemoryItem]:
        """Give the live items of an agent beyond so many: those of lowest priority first, then the oldest."""

    def agents(self) -> list[str]: ...

    def statistics(self, agent: str | None = None) -> CatalogStatistics: ...

    def last_cleanup(self) -> datetime | None: ...

    def note_cleanup(self, now: datetime) -> None: ...

    def purge(self, items: Sequence[MemoryItem]) -> None:
        """Remove for good what items say; their ids are not used again."""

    def put_exchange(self, exchange: Exchange) -> None: ...

    def exchanges(self, limit: int | None = None) -> list[Exchange]:
        """Give the exchanges that wait, oldest first; -1 for all of them."""

    def exchanges_failed(self) -> list[Exchange]:
        """Give those that have been tried too often."""

    def exchange_done(self, exchange: Exchange) -> bool:
        """Note that all has been learnt from an exchange; False where that was noted before."""

    def exchange_failed(self, exchange: Exchange, error: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """Why an item is where it is: the four parts, whose sum is capped at 1."""

    recency: float
    tags: float
    affinity: float
    priority: float

    @property
    def score(self) -> float:
        """The sum, at most 1."""
        return min(1.0, self.recency + self.tags + self.affinity + self.priority)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedItem:
    """An item that was selected, `whole` or as its summary, with its relevance."""

    item: MemoryItem
    relevance: Relevance
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """What the catalog gives an agent for a message.

    `text` is what is put before the message, of `tokens`, "" where nothing is. `problem` says why nothing could be
    loaded, "" where it could. `candidates` is how many items were weighed.
    """

    agent: str
    text: str = ""
    tokens: int = 0
    items: tuple[SelectedItem, ...] = ()
    candidates: int = 0
    problem: str = ""

    @property
    def loaded(self) -> bool:
        """Whether the catalog could be asked."""
        return not self.problem


RULE_BASED = "rule-based"
"""The `source` of a categorization that rules made."""


class Category(StrEnum):
    """What an orchestration came to, as the source design has it."""

    DECISION = "decision"
    BUGFIX = "bugfix"
    FEATURE = "feature"
    PATTERN_USAGE = "pattern-usage"
    DISCOVERY = "discovery"
    REFACTOR = "refactor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Categorization(ReadByKey):
    """What was learnt from an orchestration.

    `importance` is 1 to 10. `agent_insights` says what each agent contributed. `source` is the model's name, or
    `RULE_BASED`.
    """

    type: Category
    observation: str
    concepts: tuple[str, ...]
    importance: int
    agent_insights: Mapping[str, str]
    recommendations: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CategorizedOrchestration(ReadByKey):
    """What came of one orchestration of a batch: a `result`, or an `error`."""

    orchestration_id: int | str | None
    result: Categorization | None = None
    error: str = ""

    @property
    def success(self) -> bool:
        """Whether there is a result."""
        return self.result is not None
