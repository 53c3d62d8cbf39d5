"""Records of the catalog: the memory items of agents, and the audit trail of who read or changed them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from orchestra_mem.design_names import MappingAccess
from orchestra_mem.types import Author

GLOBAL = "global"
"""The pseudo-agent that owns the items which all agents see."""

CHUNK_PATTERN = "catalog"
"""The `pattern` of search chunks made from catalog items; such a chunk belongs to its `agent` only."""

MAX_PRIORITY = 10
MAX_NAME_CHARS = 200  # of an agent's name

GIVEN = "given"
"""The `summary_method` of a summary that the caller supplied; a model never replaces it."""

MAX_ATTEMPTS = 3  # attempts to learn from one exchange


class ItemType(StrEnum):
    """The type of a memory item."""

    DECISION = "decision"
    INSIGHT = "insight"
    ERROR = "error"
    PLAN = "plan"
    OBSERVATION = "observation"


class ItemStatus(StrEnum):
    """Whether an item is visible and, if not, why it is hidden. Only a purge erases an item's text."""

    LIVE = "live"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"
    DISPLACED = "displaced"
    DELETED = "deleted"
    PURGED = "purged"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItem:
    """Something that an agent has learnt.

    `ci_source` is the owning agent, or `GLOBAL` for all agents. `tokens` counts `content`, `summary_tokens` counts
    `summary`. `summary_method` is `extractive`, `extractive + MODEL` after a model improved it, or `GIVEN`. `tags` are
    called `relevance_tags` in JSON. `priority` is 0 to 10. `timestamp` is the time of the item's last statement, `said`
    the number of statements; `expires` is None for a permanent item. `references` names items, operations (`op 12`),
    facts (`K7`) and documents. `superseded_by` is the id of the replacing item. `number` counts from 1; 0 means not
    stored. `changed` is the number of the last change, counted over all items.
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
        """The ids of the operations among `references` (`op 12`)."""
        names = (name[3:] for name in self.references if name.startswith("op "))
        return [int(number) for number in names if number.isdecimal() and len(number) < 19]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFilter:
    """A filter for items: all conditions must hold. Empty or None is no condition; only empty `agents` match nothing.

    `tags` and `references` match items that have any of them, `text` items that contain all of its words. Results are
    sorted newest first or, with `by_priority`, highest priority first; `offset` and `limit` apply after sorting.
    `live_at` leaves out what has expired by then, also if no clean-up has hidden it yet.
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
    live_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogStatistics:
    """Number, tokens and oldest time of the live items, and the time of the last clean-up (None if never)."""

    total_memories: int
    total_tokens: int
    oldest_memory: datetime | None
    last_cleanup: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A message to an agent and its answer, queued for learning. `error` is from the last of the failed `attempts`."""

    agent: str
    message: str
    answer: str
    time: datetime
    id: int = 0
    attempts: int = 0
    error: str = ""


class AccessOutcome(StrEnum):
    """The outcome of an access to the catalog."""

    GIVEN = "given"
    EMPTY = "empty"
    REFUSED = "refused"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One access to the catalog, or one change of it.

    `agent` is the caller, "" for the memory's owner. `call` names the method. `items` are the ids that were returned or
    changed, `tokens` is the size of the returned text. `detail` describes the change, or the reason for a refusal.
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
    """A filter for audit entries: all conditions must hold, None is no condition. `limit` keeps the newest."""

    agent: str | None = None
    call: str | None = None
    outcome: AccessOutcome | None = None
    item: str | None = None
    since: datetime | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedItem:
    """How often, and at what cost, an item was injected into an agent's messages.

    `messages` counts the agent's messages, `times` those with the item. An injection's tokens are split among its items
    by length: `tokens` is the item's part, `token_share` its share of the agent's injected tokens, 0 to 1. `unused`
    counts injections since the agent last read or changed the item. `warnings` names the thresholds that were reached.
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
    """The result of a clean-up: counts of hidden items and removed audit entries, names of removed session archives.

    `archives_kept` names archives that were due for removal but contain a person's text or could not be read.
    """

    expired: int
    displaced: int
    audit_entries: int
    archives: tuple[str, ...] = ()
    archives_kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedItem:
    """An item ready to be stored on behalf of an agent, and the earlier items that it supersedes."""

    item: MemoryItem
    agent: str
    replaced: tuple[MemoryItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """The four parts of an item's relevance score."""

    recency: float
    tags: float
    affinity: float
    priority: float

    @property
    def score(self) -> float:
        """The sum of the four parts, at most 1."""
        return min(1.0, self.recency + self.tags + self.affinity + self.priority)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedItem:
    """A selected item with its relevance. `whole` tells whether its full content was used, not its summary."""

    item: MemoryItem
    relevance: Relevance
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """The catalog items to put before a message to an agent.

    `text` is the text to insert ("" if no item is injected), and `tokens` its size. `problem` says why the catalog was
    not read; "" if it was read. `candidates` is the number of items that were relevant enough.
    """

    agent: str
    text: str = ""
    tokens: int = 0
    items: tuple[SelectedItem, ...] = ()
    candidates: int = 0
    problem: str = ""

    @property
    def loaded(self) -> bool:
        """Whether the catalog was read."""
        return not self.problem


RULE_BASED = "rule-based"
"""The `source` of a categorization made by rules."""


class Category(StrEnum):
    """The kind of result of an orchestration; the values are from the source design."""

    DECISION = "decision"
    BUGFIX = "bugfix"
    FEATURE = "feature"
    PATTERN_USAGE = "pattern-usage"
    DISCOVERY = "discovery"
    REFACTOR = "refactor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Categorization(MappingAccess):
    """What was learnt from an orchestration.

    `importance` is 1 to 10. `agent_insights` maps each agent to its contribution. `source` is a model or `RULE_BASED`.
    """

    type: Category
    observation: str
    concepts: tuple[str, ...]
    importance: int
    agent_insights: Mapping[str, str]
    recommendations: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CategorizedOrchestration(MappingAccess):
    """The outcome for one orchestration of a batch: a `result` or an `error`."""

    orchestration_id: int | str | None
    result: Categorization | None = None
    error: str = ""

    @property
    def success(self) -> bool:
        """Whether there is a result."""
        return self.result is not None
