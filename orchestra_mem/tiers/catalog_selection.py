"""Choose from the catalog what matters for a message: ranked by relevance, packed into a budget."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from orchestra_mem.catalog_types import CatalogStore, Injection, SelectedItem
from orchestra_mem.core.catalog.access import Access
from orchestra_mem.core.catalog.tags import message_keys
from orchestra_mem.ports import Clock, TokenCounter
from orchestra_mem.tiers.audit import AuditTrail

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from orchestra_mem.core.catalog.scoring import Figures

# Of so many agents the figures are kept; those of 10,000 items take half a megabyte.
_AGENTS_KEPT = 128
_EXPLAINED = 5


class CatalogSelector:
    """Answers which items an agent should see with a message. Safe to share between threads.

    Args:
        store, access, audit, counter, clock: as for `MemoryCatalog`.
        max_tokens: the budget where none is given.
        min_relevance: items below it are left out, 0 to 1.
    """

    def __init__(
        self,
        store: CatalogStore,
        access: Access,
        audit: AuditTrail,
        *,
        counter: TokenCounter,
        clock: Clock,
        max_tokens: int,
        min_relevance: float,
    ) -> None:
        self._store = store
        self._access = access
        self._audit = audit
        self._counter = counter
        self._clock = clock
        self._max_tokens = max_tokens
        self._min_relevance = min_relevance
        self._figures: OrderedDict[str, tuple[int, Figures]] = OrderedDict()
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
        from orchestra_mem.core.catalog.packing import lay_out, pack
        from orchestra_mem.core.catalog.scoring import relevance_of

        budget = self._max_tokens if max_tokens is None else min(max_tokens, self._max_tokens)
        if budget < 0:
            raise ValueError(f"max_tokens is {budget}: a budget cannot be negative")
        figures, parts = self._ranked(ci, message)
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
        return Injection(agent=ci, text=text, tokens=tokens, items=shown, candidates=len(numbers))

    def _ranked(self, agent: str, message: str) -> tuple[Figures, NDArray[np.float64]]:
        """The figures of the items that an agent may see, best first, and the parts of their scores, shape (4, n)."""
        import numpy as np

        from orchestra_mem.core.catalog.scoring import Figures, microseconds, score

        allowed = self._access.readable(agent)
        agents = self._store.agents() if allowed is None else sorted(allowed)
        keys = sorted(message_keys(message))
        groups = [self._figures_of(whose) for whose in agents]
        matched = [
            _matched(figures, self._store.tagged(whose, keys)) for whose, figures in zip(agents, groups, strict=True)
        ]
        own = [np.full(len(figures.number), whose == agent) for whose, figures in zip(agents, groups, strict=True)]
        figures, now = Figures.joined(groups), microseconds(self._clock())
        parts = score(figures, np.concatenate(matched), np.concatenate(own), now)
        total = np.minimum(parts.sum(axis=0), 1.0)
        order = np.lexsort((-figures.number, -figures.timestamp, -total))
        order = order[(total[order] >= self._min_relevance) & (figures.expires[order] > now)]
        return figures.at(order), parts[:, order]

    def _figures_of(self, agent: str) -> Figures:
        """The figures of an agent's live items, brought up to its last change."""
        import numpy as np

        from orchestra_mem.core.catalog.scoring import Figures

        with self._lock:
            change, figures = self._figures.get(agent, (0, None))
        last = self._store.last_change(agent)
        if figures is None or change != last:
            rows = self._store.figures(agent, change if figures is not None else 0)
            columns = np.array(rows, dtype=np.int64).reshape(-1, 8)
            live = columns[columns[:, 6] == 1]
            new = Figures(*live.T[[0, 1, 2, 3, 4, 5, 7]])
            if figures is not None:
                kept = figures.at(np.flatnonzero(~np.isin(figures.number, columns[:, 0])))
                new = Figures.joined([kept, new])
                new = new.at(np.argsort(new.number))
            figures = new
            with self._lock:
                self._figures[agent] = last, figures
                while len(self._figures) > _AGENTS_KEPT:
                    self._figures.popitem(last=False)
        with self._lock:
            if agent in self._figures:
                self._figures.move_to_end(agent)
        return figures


def _matched(figures: Figures, found: Mapping[int, int]) -> NDArray[np.int64]:
    """How many tags of each item a message has, from those that have one."""
    import numpy as np

    hits = np.zeros(len(figures.number), np.int64)
    numbers = np.fromiter(found.keys(), np.int64, len(found))
    counts = np.fromiter(found.values(), np.int64, len(found))
    places = np.searchsorted(figures.number, numbers)
    known = np.isin(numbers, figures.number)  # one may have been stored this instant
    hits[places[known]] = counts[known]
    return hits


def _told(shown: tuple[SelectedItem, ...]) -> str:
    return ", ".join(f"{each.item.id} {each.relevance.score:.2f}" for each in shown[:_EXPLAINED])
