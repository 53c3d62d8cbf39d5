"""Retrieve context for a task, in layers within a token budget, and cache it until the memory changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from threading import Lock

from cachetools import TTLCache

from orchestra_mem.core.catalog.access import Access
from orchestra_mem.core.search.disclosure import DisclosedEntry, Recalled, RetrievedPassage, disclose, excerpt
from orchestra_mem.core.search.echoes import plain_words
from orchestra_mem.design_names import RejectsDesignArguments
from orchestra_mem.ports import TokenCounter
from orchestra_mem.retrieval.lazy_search import LazySearch
from orchestra_mem.retrieval.passages import FACT_GROUPS, Recommendation, Recommendations, find_operation, recall
from orchestra_mem.retrieval.search import is_match
from orchestra_mem.search_types import EVERYTHING, SearchFilter, Tier
from orchestra_mem.serialize import to_object
from orchestra_mem.settings import RetrievalSettings
from orchestra_mem.stores import EventLog, Ledger
from orchestra_mem.types import Json, MustKeepKind, MustKeepStatus, Operation

# Typical size of an entry with its index line; the budget divided by it, within bounds, is the number of entries.
_ENTRY_TOKENS = 100
_FEWEST_ENTRIES, _MOST_ENTRIES = 6, 40
# Fields that may hold the outcome of an operation; the first usable one counts.
_OUTCOMES = ("status", "outcome", "result", "error")
_OUTCOME_CHARS = 120
_SHORT_CHARS = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedContext:
    """Context retrieved for a task: `text` for the model, never over `budget_tokens`.

    `tokens` is the size of `text` by the token counter named `counter`, which is the model's own tokenizer if `exact`.
    `entries` come best first; `notes` are messages about what could not be searched or done.
    """

    task: str
    budget_tokens: int
    tokens: int
    counter: str
    exact: bool
    text: str = field(repr=False)
    entries: tuple[DisclosedEntry, ...]
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Json]:
        """Return everything as JSON."""
        return to_object(self)

    def explain(self) -> str:
        """Explain why each entry was retrieved and how it is shown: `+` with text, `-` by at most an index line."""
        lines = [f"Retrieved for {self.task!r}: {self.tokens:,} of {self.budget_tokens:,} tokens by {self.counter}"]
        for entry in self.entries:
            mark = "+" if entry.text else "-"
            lines.append(
                f"  {mark} {entry.source}: {entry.tokens:,} of {entry.full_tokens:,} tokens; {entry.explanation}"
            )
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)]) + "\n"


_Key = tuple[Hashable, str | None, SearchFilter, int, str, str | None, tuple[str, ...]]


class ContextRetriever(RejectsDesignArguments, use="open_memory(project, config=config).retriever"):
    """Retrieves context and recommendations for a task. Safe to share between threads.

    Retrieved contexts are cached. Any change of the memory invalidates them.

    Args:
        search, log, ledger: The sources.
        counter: Counts tokens.
        settings: Maximum number and lifetime of cache entries.
        access: Defines what agents may see.
        now: Returns the memory's version, which differs after every change (None if it is currently unknown), and the
            id of the session under way.
    """

    def __init__(
        self,
        search: LazySearch,
        log: EventLog,
        ledger: Ledger,
        counter: TokenCounter,
        settings: RetrievalSettings,
        *,
        access: Access,
        now: Callable[[], tuple[Hashable, str | None]],
    ) -> None:
        self._search = search
        self._log = log
        self._ledger = ledger
        self._counter = counter
        self._access = access
        self._now = now
        # The key holds the memory's version from before the search, so no entry is older than the version in its key.
        self._cache: TTLCache[_Key, RetrievedContext] = TTLCache(settings.cache_entries, settings.cache_ttl_s)
        self._lock = Lock()
        self._hits = self._misses = 0

    def retrieve_context(
        self, task: str, *, agents: Sequence[str] = (), pattern: str | None = None, max_tokens: int = 2_000,
        where: SearchFilter = EVERYTHING,
    ) -> RetrievedContext:  # fmt: skip
        """Retrieve context for a task: an index of entries with their token costs, then the best entries themselves.

        Each entry gets its shortest form before any gets more; none takes more than twice an equal share of the budget.
        Guesses come last and are marked `perhaps`. If search fails, the result is empty and its notes give the reason.

        Args:
            task: Description of the task; any string.
            agents: Agents for the task. Only entries that all of them may see are used; their own rank slightly higher.
            pattern: How the agents cooperate, such as `parallel`: only operations with this `pattern` in their data.
            max_tokens: The budget.
            where: Restricts the search.

        Raises:
            ValueError: The budget is negative, or `where` has another pattern.
            AccessDeniedError: `where` names an agent that one of `agents` may not see.
            ClosedError: The memory has been closed.
        """
        where, (version, session) = self._access.within(where, *agents), self._now()
        if pattern is not None and where.pattern not in (None, pattern):
            raise ValueError(f"pattern is {pattern!r}, but where.pattern is {where.pattern!r}: give one")
        where = replace(where, pattern=where.pattern if pattern is None else pattern)
        who = tuple(sorted(set(agents)))
        key = (version, session, where, max_tokens, task, pattern, who)
        with self._lock:
            found = self._cache.get(key)
            self._hits += found is not None
            self._misses += found is None
        if found is not None:
            return found
        recalled = recall(
            self._search, task, session=session, agents=who, where=where,
            limit=min(_MOST_ENTRIES, max(_FEWEST_ENTRIES, max_tokens // _ENTRY_TOKENS)),
        )  # fmt: skip
        disclosed = disclose(_guesses_last(recalled.recollections), budget_tokens=max_tokens, counter=self._counter)
        found = RetrievedContext(
            task=task,
            budget_tokens=max_tokens,
            tokens=disclosed.tokens,
            counter=self._counter.name,
            exact=self._counter.exact,
            text=disclosed.text,
            entries=disclosed.entries,
            notes=recalled.notes,
        )
        # A note means that something is missing, so the next call has to search again.
        if not found.notes and version is not None and self._cache.maxsize:
            with self._lock:
                self._cache[key] = found
        return found

    def passages(
        self, question: str, *, agents: Sequence[str] = (), limit: int = 10, where: SearchFilter = EVERYTHING
    ) -> Recalled:
        """Return the passages that answer a question, best first and guesses last; see `retrieve_context`.

        Raises:
            AccessDeniedError: `where` names an agent that one of `agents` may not see.
            ClosedError: The memory has been closed.
        """
        where, (_, session) = self._access.within(where, *agents), self._now()
        found = recall(self._search, question, session=session, agents=agents, where=where, limit=limit)
        return replace(found, recollections=tuple(_guesses_last(found.recollections)))

    def get_recommendations(
        self, task: str, *, agents: Sequence[str] = (), limit: int = 3, where: SearchFilter = EVERYTHING
    ) -> Recommendations:
        """Return past decisions, rules, failures and similar tasks that are relevant to a task, each with its source.

        Guesses come last in their group and are marked `perhaps`.

        Args:
            task: Description of the task; any string.
            agents: Agents for the task. Only entries that all of them may see are used; their own rank slightly higher.
            limit: Maximum number of entries in each group.
            where: Restricts the search; its tiers and kinds are ignored.

        Raises:
            ValueError: The limit is negative.
            AccessDeniedError: `where` names an agent that one of `agents` may not see.
            ClosedError: The memory has been closed.
        """
        where, (_, session) = self._access.within(where, *agents), self._now()
        if limit < 0:
            raise ValueError(f"limit is {limit}: must be at least 0")
        notes: dict[str, None] = {}

        def recalled(*tiers: Tier, kinds: tuple[str, ...] = ()) -> list[RetrievedPassage]:
            wanted = replace(where, tiers=tiers, kinds=kinds)
            found = recall(self._search, task, session=session, agents=agents, where=wanted, limit=2 * limit)
            notes.update(dict.fromkeys(found.notes))
            return _guesses_last([each for each in found.recollections if is_match(each.hit)])

        groups: dict[str, list[Recommendation]] = {"similar_tasks": []}
        shown_words = ""
        for name, kinds in FACT_GROUPS.items():
            facts = recalled(Tier.SEMANTIC, kinds=kinds)[:limit]
            groups[name] = [self._in_short(each) for each in facts]
            shown_words += "".join(f" {plain_words(each.passage)} " for each in facts)
        for each in recalled(Tier.WORKING, Tier.SESSION):
            is_told = f" {plain_words(each.passage)} " in shown_words
            operation = None if is_told else find_operation(self._log, each.hit.chunk.operation)
            if operation is None:
                continue
            is_decision = operation.type == MustKeepKind.DECISION.value
            if is_decision and self._is_told_by_facts(operation, where):
                continue
            name = "decisions" if is_decision else "similar_tasks"
            groups[name].append(replace(self._in_short(each), outcome=outcome_of(operation)))
        return Recommendations(
            task=task, notes=tuple(notes), **{name: tuple(group[:limit]) for name, group in groups.items()}
        )

    def _in_short(self, found: RetrievedPassage) -> Recommendation:
        text = excerpt(found.passage, _SHORT_CHARS)
        if ":" in found.title and plain_words(found.title.partition(":")[2]) not in plain_words(text):
            text = f"{excerpt(found.title, _SHORT_CHARS)}\n{text}"
        return Recommendation(
            source=found.source, text=text, why=found.why, full_tokens=self._counter.count(found.whole),
            time=found.hit.chunk.time, agent=found.hit.chunk.agent, likelihood=found.hit.likelihood,
            perhaps=found.hit.perhaps, fate=found.hit.fate,
        )  # fmt: skip

    def _is_told_by_facts(self, operation: Operation, where: SearchFilter) -> bool:
        """Check whether the ledger has the operation's decision as a fact, which also shows if it is still active."""
        number = operation.id
        facts = self._ledger.must_keeps(kinds=(MustKeepKind.DECISION,), first_operation=number, last_operation=number)
        # Facts have no agent, so a strict search finds none; it shows active decisions from their operations instead.
        return bool(facts) and not (where.strict and any(fact.status is MustKeepStatus.STANDING for fact in facts))

    def load_layer1(
        self, query: str, *, agents: Sequence[str] = (), pattern: str | None = None, limit: int = 3
    ) -> list[DisclosedEntry]:
        """Return the best entries that `retrieve_context` finds, each with its source, title and token cost."""
        return [*self.retrieve_context(query, agents=agents, pattern=pattern).entries[: max(0, limit)]]

    def load_layer2(self, entries: Sequence[DisclosedEntry], token_budget: int) -> list[DisclosedEntry]:
        """Return the first entries of `load_layer1` that fit a budget together, without those that have no text."""
        if any(isinstance(entry, str) for entry in entries):
            raise TypeError("load_layer2 takes entries of load_layer1, not their names; use memory.expand for a name")
        sizes = accumulate(entry.tokens for entry in entries)
        return [entry for entry, size in zip(entries, sizes, strict=True) if size <= token_budget and entry.text]

    def clear_cache(self, pattern: str = "") -> None:
        """Clear the cache, or only contexts with `pattern` in task, pattern or an agent's name; case is ignored."""
        wanted = pattern.casefold()
        with self._lock:
            for key in list(self._cache):
                *_, task, cooperation, who = key
                if any(wanted in each.casefold() for each in (task, cooperation or "", *who)):
                    self._cache.pop(key, None)

    def get_stats(self) -> dict[str, Json]:
        """Return the cache's size and its `hits` and `misses` since the start."""
        with self._lock:
            return {
                "cached": len(self._cache),
                "max_cached": int(self._cache.maxsize),
                "hits": self._hits,
                "misses": self._misses,
            }


def _guesses_last(found: Sequence[RetrievedPassage]) -> list[RetrievedPassage]:
    return sorted(found, key=lambda each: each.hit.perhaps)


def outcome_of(operation: Operation) -> str:
    """Return the outcome that an operation's data report, in one line; empty if they report none."""
    data = operation.data if isinstance(operation.data, dict) else {}
    for name in _OUTCOMES:
        value = data.get(name)
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())[:_OUTCOME_CHARS]
        if isinstance(value, bool) or (isinstance(value, int | float) and name == "status"):
            return str(value).lower()
    return ""
