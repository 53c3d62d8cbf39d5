"""Retrieve what the memory has for a task, in layers within a token budget, and cache it until the memory changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from threading import Lock

from cachetools import TTLCache

from orchestra_mem.core.catalog.access import Access
from orchestra_mem.core.search.disclosure import DisclosedEntry, disclose
from orchestra_mem.design_names import MadeOtherwise
from orchestra_mem.ports import EventLog, Ledger, TokenCounter
from orchestra_mem.retrieval.lazy_search import LazySearch
from orchestra_mem.retrieval.passages import PassageRetriever, Recommendations, recommend
from orchestra_mem.search_types import EVERYTHING, SearchFilter
from orchestra_mem.serialize import to_object
from orchestra_mem.settings import RetrievalSettings
from orchestra_mem.types import Json

# An entry takes about so much with its line in the index; more than so many are not looked at one by one.
_ENTRY_TOKENS = 100
_FEWEST_ENTRIES, _MOST_ENTRIES = 6, 40


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedContext:
    """What the memory has for a task: `text` for the model, never over `budget_tokens`.

    `tokens` is the count of `text` by the counter called `counter`. `entries` come best first; `notes` tell in words
    what could not be looked at or not be done.
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
        """Give all of it as JSON."""
        return to_object(self)

    def explain(self) -> str:
        """Tell of each entry why it was recalled, and why it is shown as it is (`+` with text, `-` in the index)."""
        lines = [f"Retrieved for {self.task!r}: {self.tokens:,} of {self.budget_tokens:,} tokens by {self.counter}"]
        for entry in self.entries:
            mark = "+" if entry.text else "-"
            lines.append(
                f"  {mark} {entry.source}: {entry.tokens:,} of {entry.full_tokens:,} tokens; {entry.explanation}"
            )
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)]) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The memory at one moment: `version` differs after every change, None where that cannot be told for now."""

    version: Hashable
    session: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    task: str
    agents: tuple[str, ...]
    pattern: str | None
    max_tokens: int
    where: SearchFilter


class ContextRetriever(MadeOtherwise, use="open_memory(project, config=config).retriever"):
    """Retrieves what past work says for a task. Safe to share between threads.

    An answer is kept until the memory changes in anything, and is never given after that.

    Args:
        search, log, ledger: what is retrieved from.
        counter: counts tokens.
        settings: how many answers are kept, and for how long.
        access: says what agents may see.
        now: gives the memory as it is now.
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
        now: Callable[[], Moment],
    ) -> None:
        self._passages = PassageRetriever(search, log)
        self._ledger = ledger
        self._counter = counter
        self._access = access
        self._now = now
        # An answer is kept under the version that the memory had before it was looked for, so none is older than its
        # version.
        self._cache: TTLCache[tuple[Moment, _Request], RetrievedContext] = TTLCache(
            settings.cache_entries, settings.cache_ttl_s
        )
        self._lock = Lock()
        self._hits = self._misses = 0

    def retrieve_context(
        self, task: str, *, agents: Sequence[str] = (), pattern: str | None = None, max_tokens: int = 2_000,
        where: SearchFilter = EVERYTHING,
    ) -> RetrievedContext:  # fmt: skip
        """Retrieve what the memory has for a task: an index with costs, then the best entries themselves.

        Entries are filled breadth first, and none takes more than twice an equal share. Where search cannot be used the
        answer is empty, and its notes say why.

        Args:
            task: what is to be done; any string.
            agents: who will do it; what not all of them may see is left out, and their own goes a little before.
            pattern: how they work together, as in `parallel`: operations with this `pattern` in their data likewise.
            max_tokens: the budget.
            where: what alone is looked at.

        Raises:
            ValueError: the budget is negative.
            ClosedError: the memory has been closed.
        """
        where, moment = self._access.within(where, *agents), self._now()
        if max_tokens < 0:
            raise ValueError(f"max_tokens is {max_tokens}: a budget cannot be negative")
        who = tuple(sorted(set(agents)))
        request = _Request(task=task, agents=who, pattern=pattern, max_tokens=max_tokens, where=where)
        with self._lock:
            found = self._cache.get((moment, request))
            self._hits += found is not None
            self._misses += found is None
        return self._retrieve(request, moment) if found is None else found

    def _retrieve(self, request: _Request, moment: Moment) -> RetrievedContext:
        recalled = self._passages.recall(
            request.task,
            session=moment.session,
            agents=request.agents,
            pattern=request.pattern,
            where=request.where,
            limit=min(_MOST_ENTRIES, max(_FEWEST_ENTRIES, request.max_tokens // _ENTRY_TOKENS)),
        )
        disclosed = disclose(recalled.recollections, budget_tokens=request.max_tokens, counter=self._counter)
        found = RetrievedContext(
            task=request.task,
            budget_tokens=request.max_tokens,
            tokens=disclosed.tokens,
            counter=self._counter.name,
            exact=self._counter.exact,
            text=disclosed.text,
            entries=disclosed.entries,
            notes=recalled.notes,
        )
        # What lacks something now is complete the next time.
        if not found.notes and moment.version is not None and self._cache.maxsize:
            with self._lock:
                self._cache[moment, request] = found
        return found

    def get_recommendations(
        self, task: str, *, agents: Sequence[str] = (), limit: int = 3, where: SearchFilter = EVERYTHING
    ) -> Recommendations:
        """Say what past decisions, rules, failures and similar tasks mean for a task, each with its source.

        Args:
            task: what is to be done; any string.
            agents: who will do it; what not all of them may see is left out, and their own goes a little before.
            limit: how many of each at most.
            where: what alone is looked at, of all tiers and kinds.

        Raises:
            ValueError: the limit is negative.
            ClosedError: the memory has been closed.
        """
        where, moment = self._access.within(where, *agents), self._now()
        if limit < 0:
            raise ValueError(f"limit is {limit}: so many there cannot be")
        return recommend(
            task, self._passages, self._ledger, self._counter, session=moment.session, agents=agents, limit=limit,
            where=where,
        )  # fmt: skip

    def load_layer1(
        self, query: str, *, agents: Sequence[str] = (), pattern: str | None = None, limit: int = 3
    ) -> list[DisclosedEntry]:
        """Give the best entries that `retrieve_context` finds, each with its source, title and what it costs."""
        return [*self.retrieve_context(query, agents=agents, pattern=pattern).entries[: max(0, limit)]]

    def load_layer2(self, entries: Sequence[DisclosedEntry], token_budget: int) -> list[DisclosedEntry]:
        """Give those entries of `load_layer1`, in their order, whose texts fit a budget together."""
        if any(isinstance(entry, str) for entry in entries):
            raise TypeError("load_layer2 takes entries of load_layer1, not their names; use memory.expand for a name")
        sizes = accumulate(entry.tokens for entry in entries)
        return [entry for entry, size in zip(entries, sizes, strict=True) if size <= token_budget and entry.text]

    def clear_cache(self, pattern: str = "") -> None:
        """Forget what was retrieved; the next time it is looked for.

        Args:
            pattern: only what was retrieved for this pattern, or for a task or an agent with these letters.
        """
        wanted = pattern.casefold()
        with self._lock:
            for moment, request in list(self._cache):
                said = (request.task, request.pattern or "", *request.agents)
                if any(wanted in each.casefold() for each in said):
                    self._cache.pop((moment, request), None)

    def get_stats(self) -> dict[str, Json]:
        """Return figures of the cache: `hits` and `misses` since the start."""
        with self._lock:
            return {
                "cached": len(self._cache),
                "max_cached": int(self._cache.maxsize),
                "hits": self._hits,
                "misses": self._misses,
            }
