"""Choose from the catalog what matters for a message: ranked by relevance, packed into a budget."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeAlias

from orchestra_mem.catalog_types import CatalogStore, Injection, SelectedItem
from orchestra_mem.core.catalog.access import Access
from orchestra_mem.core.catalog.tags import message_keys
from orchestra_mem.ports import Clock, TokenCounter
from orchestra_mem.tiers.audit import AuditTrail

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from orchestra_mem.core.catalog.packing import Figures, TagTable
    from orchestra_mem.settings import CatalogSettings

    _Known: TypeAlias = tuple[int, Figures, TagTable]  # as of a change

# Of so many agents the figures are kept; those of 10,000 items with their tags take a megabyte.
_AGENTS_KEPT = 128
# Of so many of the best is chosen what fits: a budget of 2,000 tokens holds a tenth of them at most.
_CONSIDERED = 1_000
_EXPLAINED = 5


class CatalogSelector:
    """Answers which items an agent should see with a message. Safe to share between threads.

    Args:
        store, access, audit, counter, clock: as for `MemoryCatalog`.
        settings: the budget where none is given, and how relevant an item must be.
    """

    def __init__(
        self,
        store: CatalogStore,
        access: Access,
        audit: AuditTrail,
        *,
        counter: TokenCounter,
        clock: Clock,
        settings: CatalogSettings,
    ) -> None:
        self._store = store
        self._access = access
        self._audit = audit
        self._counter = counter
        self._clock = clock
        self._settings = settings
        self._agents: OrderedDict[str, _Known] = OrderedDict()
        self._lock = threading.Lock()

    def get_relevant(
        self, ci: str, message: str, max_tokens: int | None = None, *, call: str = "get_relevant"
    ) -> Injection:
        """Select what an agent should see with a message, within a budget of tokens that is never exceeded.

        Args:
            ci: the agent; it is given its own items, those of all, and what it is granted.
            message: what it is asked.
            max_tokens: the budget; by default `catalog.max_injection_tokens`, and never more than that.
            call: under which name the audit trail has it.

        Raises:
            ValueError: the budget is negative.
        """
        # Here, as NumPy is heavy: to import the package must stay quick.
        from orchestra_mem.core.catalog.packing import lay_out, pack, relevance_of

        most = self._settings.max_injection_tokens
        budget = most if max_tokens is None else min(max_tokens, most)
        if budget < 0:
            raise ValueError(f"max_tokens is {budget}: a budget cannot be negative")
        figures, parts, candidates = self._ranked(ci, message)
        chosen = pack(zip(figures.tokens.tolist(), figures.summary_tokens.tolist(), strict=True), budget)
        numbers = figures.number.tolist()
        items = {item.number: item for item in self._store.by_number([numbers[place] for place, _ in chosen])}
        selected = [
            SelectedItem(item=items[numbers[place]], relevance=relevance_of(parts[:, place]), whole=whole)
            for place, whole in chosen
            if numbers[place] in items
        ]
        text, tokens, shown = lay_out(selected, ci, self._clock(), budget, self._counter)
        self._audit.read(ci, call, tuple(each.item.id for each in shown), tokens=tokens, detail=_told(shown))
        return Injection(agent=ci, text=text, tokens=tokens, items=shown, candidates=candidates)

    def _ranked(self, agent: str, message: str) -> tuple[Figures, NDArray[np.float64], int]:
        """The figures of what an agent may see, best first, their scores' parts (4, n), and how many all are."""
        import numpy as np

        from orchestra_mem.core.catalog.packing import Figures, microseconds, score

        allowed = self._access.readable(agent)
        agents = self._store.agents() if allowed is None else sorted(allowed)
        keys = message_keys(message)
        known = [self._known(whose) for whose in agents]
        groups = [figures for _, figures, _ in known]
        matched = [tags.matched(keys, figures.number) for _, figures, tags in known]
        own = [np.full(len(figures.number), whose == agent) for whose, figures in zip(agents, groups, strict=True)]
        figures, now = Figures.joined(groups), microseconds(self._clock())
        parts = score(figures, np.concatenate(matched), np.concatenate(own), now)
        total = np.minimum(parts.sum(axis=0), 1.0)
        wanted = np.flatnonzero((total >= self._settings.min_relevance) & (figures.expires > now))
        best = wanted
        if len(wanted) > _CONSIDERED:
            best = wanted[np.argpartition(-total[wanted], _CONSIDERED)[:_CONSIDERED]]
        order = best[np.lexsort((-figures.number[best], -figures.timestamp[best], -total[best]))]
        return figures.at(order), parts[:, order], len(wanted)

    def _known(self, agent: str) -> _Known:
        """The figures and tags of an agent's live items, brought up to its last change."""
        with self._lock:
            known = self._agents.get(agent)
        last = self._store.last_change(agent)
        if known is None or known[0] != last:
            known = self._read(agent, last, known)
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


def _told(shown: tuple[SelectedItem, ...]) -> str:
    return ", ".join(f"{each.item.id} {each.relevance.score:.2f}" for each in shown[:_EXPLAINED])
