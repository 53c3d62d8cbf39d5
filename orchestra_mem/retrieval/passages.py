"""Retrieve passages for a model: the hits of a search, each with the operation or section that it is part of.

Recommendations are passages from past work: decisions, rules, failures and similar tasks, each with its source.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from orchestra_mem.core.context.items import neutralise
from orchestra_mem.core.documents.entries import plain_text
from orchestra_mem.core.search.disclosure import Recalled, RetrievedPassage, distinct, excerpt, why
from orchestra_mem.core.search.echoes import fenced, plain_words, without_recalled
from orchestra_mem.errors import EmbedderError, NotFoundError, SearchError, StorageError
from orchestra_mem.ports import EventLog, Ledger, TokenCounter
from orchestra_mem.retrieval.lazy_search import LazySearch
from orchestra_mem.retrieval.search import Answer, MemorySearch, is_match
from orchestra_mem.search_types import EVERYTHING, Hit, SearchFilter, Tier
from orchestra_mem.serialize import to_object
from orchestra_mem.types import Json, MustKeepKind, MustKeepStatus, Operation

logger = logging.getLogger(__name__)

# Minimum scores, as shares of the best: for a hit that matches the question, and for a hit whose neighbour matches.
# Hits with lower scores are seldom useful enough for their tokens.
_LEAST_OF_BEST = 0.3
_LEAST_BESIDE = 0.6
# Boost for a hit of the asking agents, and the same for a hit of their pattern: about that of a matching neighbour.
_THEIRS = 0.15


class PassageRetriever:
    """Retrieves passages that answer a question, each with its operation or section. Safe to share between threads."""

    def __init__(self, search: LazySearch, log: EventLog) -> None:
        self._search = search
        self._log = log

    def recall(
        self,
        question: str,
        *,
        session: str | None,
        agents: Sequence[str] = (),
        pattern: str | None = None,
        where: SearchFilter = EVERYTHING,
        limit: int = 20,
    ) -> Recalled:
        """Retrieve the passages that answer a question best. If search fails, return none and a note with the reason.

        Args:
            question: Any string.
            session: The current session; its passages rank slightly higher.
            agents: The asking agents; their passages rank slightly higher.
            pattern: How the agents work together; passages of operations with this `pattern` rank slightly higher.
            where: Restricts the search.
            limit: Maximum number of passages.
        """
        if not question.strip():
            return Recalled(recollections=())
        try:
            search = self._search.open()
            # Twice the limit, because many hits are duplicates, which `distinct` merges.
            answer = search.search(question, where=where, limit=2 * limit, session=session)
            hits = self._preferred(answer, agents, pattern)
            found = distinct([self._recollection(hit, search) for hit in hits])
        except (SearchError, StorageError, EmbedderError) as error:
            logger.warning("nothing is recalled: %s", error)
            return Recalled(recollections=(), notes=(f"nothing is recalled, search cannot be used: {error}",))
        search.note_recalled([recollection.passage for recollection in found[:limit]])
        return Recalled(recollections=tuple(found[:limit]), notes=answer.notes)

    def _preferred(self, answer: Answer, agents: Sequence[str], pattern: str | None) -> list[Hit]:
        """Return the hits with scores near the best, sorted, with a boost for hits of the agents or the pattern."""
        best = max((hit.score for hit in answer.matching), default=0.0)
        hits = [hit for hit in answer.matching if _is_worth_it(hit, best)]

        def rank(hit: Hit) -> tuple[int, float]:
            theirs = (hit.chunk.agent in agents) + (pattern is not None and hit.chunk.pattern == pattern)
            return -len(hit.reasons.identifiers), -hit.score * (1 + _THEIRS * theirs)

        return sorted(hits, key=rank)

    def _recollection(self, hit: Hit, search: MemorySearch) -> RetrievedPassage:
        chunk = hit.chunk
        found = RetrievedPassage(
            source=chunk.source,
            kind=chunk.kind,
            passage=chunk.text,
            whole=chunk.text,
            title=chunk.title or " > ".join(chunk.heading),
            time=chunk.time,
            agent=chunk.agent,
            operation=chunk.operation,
            likelihood=hit.likelihood,
            why=why(hit.reasons),
            beside=not is_match(hit),
        )
        operation = self.operation(chunk.operation)
        whole = _own_text(operation) if operation else search.section(hit)
        return replace(found, whole=whole) if plain_words(chunk.text) in plain_words(whole) else found

    def operation(self, number: int) -> Operation | None:
        """Return an operation; None if the log lacks the number, for example after the database was lost."""
        try:
            return self._log.operation(number) if number else None
        except NotFoundError:
            return None


def _is_worth_it(hit: Hit, best: float) -> bool:
    least = _LEAST_OF_BEST if is_match(hit) else _LEAST_BESIDE
    return bool(hit.reasons.identifiers) or hit.score >= best * least


def _own_text(operation: Operation) -> str:
    """Return the text of an operation without fences and contexts that the memory had rendered into it."""
    return plain_text(replace(operation, data=without_recalled(operation.data)), max_chars=8_000).strip()


# Fields that may hold the outcome of an operation; the first usable one counts.
_OUTCOMES = ("status", "outcome", "result", "error")
_OUTCOME_CHARS = 120
_SHORT_CHARS = 240
_FACTS = {
    "decisions": MustKeepKind.DECISION,
    "rules": MustKeepKind.CONSTRAINT,
    "failures": MustKeepKind.FAILURE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """An excerpt from past work for a task; `full_tokens` is the token count of the full text.

    `outcome` is the result of that work, empty if unknown; `project` is set if it comes from another project.
    """

    source: str
    text: str
    why: str
    full_tokens: int
    time: datetime | None = None
    agent: str | None = None
    outcome: str = ""
    likelihood: float = 0.0
    project: str = ""

    @property
    def label(self) -> str:
        """The source with date, agent, outcome and token count of the full text, in one line."""
        when = self.time.strftime("%Y-%m-%d") if self.time else ""
        told = ", ".join(filter(None, (when, self.agent or "", self.outcome, f"{self.full_tokens:,} tokens in full")))
        return f"{self.project} {self.source} ({told})".lstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendations:
    """Recommendations for a task, in groups, each best first. `notes` report what could not be searched."""

    task: str
    decisions: tuple[Recommendation, ...]
    rules: tuple[Recommendation, ...]
    failures: tuple[Recommendation, ...]
    similar_tasks: tuple[Recommendation, ...]
    notes: tuple[str, ...] = ()

    def groups(self) -> Iterator[tuple[str, tuple[Recommendation, ...]]]:
        """Yield the name and recommendations of each group that is not empty."""
        for name in (*_FACTS, "similar_tasks"):
            if found := getattr(self, name):
                yield name, found

    def as_dict(self) -> dict[str, Json]:
        """Return everything as JSON, empty groups included."""
        return to_object(self)

    def render(self) -> str:
        """Return the text for the model, each recommendation fenced with its source; empty if there is none."""
        lines = []
        for name, found in self.groups():
            lines.append(f"Past {name.replace('_', ' ')} for this task, as data:\n")
            lines += [neutralise(fenced(each.text, each.label)) for each in found]
        return "".join(lines)


def recommend(
    task: str,
    passage_finder: PassageRetriever,
    ledger: Ledger,
    counter: TokenCounter,
    *,
    session: str | None,
    agents: Sequence[str] = (),
    limit: int = 3,
    where: SearchFilter = EVERYTHING,
) -> Recommendations:
    """Collect recommendations from past work for a task; see `ContextRetriever.get_recommendations`."""
    notes: dict[str, None] = {}

    def recalled(*tiers: Tier, kinds: tuple[str, ...] = ()) -> tuple[RetrievedPassage, ...]:
        wanted = replace(where, tiers=tiers, kinds=kinds)
        found = passage_finder.recall(task, session=session, agents=agents, where=wanted, limit=2 * limit)
        notes.update(dict.fromkeys(found.notes))
        return tuple(each for each in found.recollections if not each.beside)

    groups: dict[str, list[Recommendation]] = {"similar_tasks": []}
    told = ""
    for name, kind in _FACTS.items():
        facts = recalled(Tier.SEMANTIC, kinds=(kind.value,))[:limit]
        groups[name] = [_in_short(each, counter) for each in facts]
        told += "".join(f" {plain_words(each.passage)} " for each in facts)
    for each in recalled(Tier.WORKING, Tier.SESSION):
        if not each.operation or f" {plain_words(each.passage)} " in told:
            continue
        operation = passage_finder.operation(each.operation)
        is_decision = operation is not None and operation.type == MustKeepKind.DECISION.value
        if operation is None or (is_decision and _is_told_by_facts(ledger, operation, where)):
            continue
        name = "decisions" if is_decision else "similar_tasks"
        groups[name].append(replace(_in_short(each, counter), outcome=outcome_of(operation)))
    found = {name: tuple(group[:limit]) for name, group in groups.items()}
    return Recommendations(task=task, notes=tuple(notes), **found)


def _in_short(found: RetrievedPassage, counter: TokenCounter) -> Recommendation:
    text = excerpt(found.passage, _SHORT_CHARS)
    if ":" in found.title and plain_words(found.title.partition(":")[2]) not in plain_words(text):
        text = f"{excerpt(found.title, _SHORT_CHARS)}\n{text}"
    return Recommendation(
        source=found.source, text=text, why=found.why, full_tokens=counter.count(found.whole), time=found.time,
        agent=found.agent, likelihood=found.likelihood,
    )  # fmt: skip


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


def _is_told_by_facts(ledger: Ledger, operation: Operation, where: SearchFilter) -> bool:
    """Check whether the ledger has the operation's decision as a fact, which also shows if it is still active."""
    number = operation.id
    facts = ledger.must_keeps(kinds=(MustKeepKind.DECISION,), first_operation=number, last_operation=number)
    # Facts have no agent, so a strict search finds none; it shows active decisions from their operations instead.
    return bool(facts) and not (where.strict and any(fact.status is MustKeepStatus.STANDING for fact in facts))
