"""Retrieve passages for a model: the hits of a search, each with the operation or section that it stands in.

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

# What comes less near the best than this is seldom worth its tokens; nor is what neither has a word of the question nor
# lies near it, unless it stands beside what does and comes near the best by that.
_LEAST_OF_BEST = 0.3
_LEAST_BESIDE = 0.6
# How much goes before what is not theirs: about what a neighbour that answers too is worth.
_THEIRS = 0.15


class PassageRetriever:
    """Recalls what answers a question, with what belongs to it. Safe to share between threads."""

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
        """Recall what answers a question best; where search cannot be used, nothing, and a note says why.

        Args:
            question: any string.
            session: who asks: what is theirs goes a little before what is not.
            agents: likewise, by agent.
            pattern: how agents work together, as operations name it under `pattern`; likewise.
            where: what alone is looked at.
            limit: how many at most.
        """
        if not question.strip():
            return Recalled(recollections=())
        try:
            search = self._search.open()
            # What says the same is counted once, and a good deal of what is found does.
            answer = search.search(question, where=where, limit=2 * limit, session=session)
            hits = self._preferred(answer, agents, pattern)
            found = distinct([self._recollection(hit, search) for hit in hits])
        except (SearchError, StorageError, EmbedderError) as error:
            logger.warning("nothing is recalled: %s", error)
            return Recalled(recollections=(), notes=(f"nothing is recalled, search cannot be used: {error}",))
        search.note_recalled([recollection.passage for recollection in found[:limit]])
        return Recalled(recollections=tuple(found[:limit]), notes=answer.notes)

    def _preferred(self, answer: Answer, agents: Sequence[str], pattern: str | None) -> list[Hit]:
        """The hits that come near the best, by score; what is theirs a little before what is not."""
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
        """Give an operation; None where there is none of this number, as of a database that was lost."""
        try:
            return self._log.operation(number) if number else None
        except NotFoundError:
            return None


def _is_worth_it(hit: Hit, best: float) -> bool:
    least = _LEAST_OF_BEST if is_match(hit) else _LEAST_BESIDE
    return bool(hit.reasons.identifiers) or hit.score >= best * least


def _own_text(operation: Operation) -> str:
    """What an operation says for itself, without what this memory had rendered into it."""
    return plain_text(replace(operation, data=without_recalled(operation.data)), max_chars=8_000).strip()


# The first of these fields that an operation has tells what came of it.
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
    """What something past says for a task, in short; `full_tokens` is what all of it would take.

    `outcome` is what came of it, empty where that is not known; `project` is another project that it comes from.
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
        """The source with time, agent, outcome and what all of it would take, in one line."""
        when = self.time.strftime("%Y-%m-%d") if self.time else ""
        told = ", ".join(filter(None, (when, self.agent or "", self.outcome, f"{self.full_tokens:,} tokens in full")))
        return f"{self.project} {self.source} ({told})".lstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendations:
    """What the memory says for a task, in groups, each best first. `notes` tell what could not be looked at."""

    task: str
    decisions: tuple[Recommendation, ...]
    rules: tuple[Recommendation, ...]
    failures: tuple[Recommendation, ...]
    similar_tasks: tuple[Recommendation, ...]
    notes: tuple[str, ...] = ()

    def groups(self) -> Iterator[tuple[str, tuple[Recommendation, ...]]]:
        """Return the groups that have something, each with its name."""
        for name in (*_FACTS, "similar_tasks"):
            if found := getattr(self, name):
                yield name, found

    def as_dict(self) -> dict[str, Json]:
        """Give all of it as JSON, groups that have nothing too."""
        return to_object(self)

    def render(self) -> str:
        """Give all of it for the model, each fenced with its source; empty where there is nothing."""
        lines = []
        for name, found in self.groups():
            lines.append(f"Past {name.replace('_', ' ')} for this task, as data:\n")
            lines += [neutralise(fenced(each.text, each.label)) for each in found]
        return "".join(lines)


def recommend(
    task: str,
    recollector: PassageRetriever,
    ledger: Ledger,
    counter: TokenCounter,
    *,
    session: str | None,
    agents: Sequence[str] = (),
    limit: int = 3,
    where: SearchFilter = EVERYTHING,
) -> Recommendations:
    """Look for what past work says for a task; see `ContextRetriever.get_recommendations`."""
    notes: dict[str, None] = {}

    def recalled(*tiers: Tier, kinds: tuple[str, ...] = ()) -> tuple[RetrievedPassage, ...]:
        wanted = replace(where, tiers=tiers, kinds=kinds)
        found = recollector.recall(task, session=session, agents=agents, where=wanted, limit=2 * limit)
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
        operation = recollector.operation(each.operation)
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
    """Return what came of an operation, as its data tell it, in one line; empty where they do not."""
    data = operation.data if isinstance(operation.data, dict) else {}
    for name in _OUTCOMES:
        value = data.get(name)
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())[:_OUTCOME_CHARS]
        if isinstance(value, bool) or (isinstance(value, int | float) and name == "status"):
            return str(value).lower()
    return ""


def _is_told_by_facts(ledger: Ledger, operation: Operation, where: SearchFilter) -> bool:
    """Whether the decision of an operation was found already: then the facts tell whether it holds."""
    number = operation.id
    facts = ledger.must_keeps(kinds=(MustKeepKind.DECISION,), first_operation=number, last_operation=number)
    # A strict search finds no facts: there the operation tells the decision for as long as that holds.
    return bool(facts) and not (where.strict and any(fact.status is MustKeepStatus.STANDING for fact in facts))
