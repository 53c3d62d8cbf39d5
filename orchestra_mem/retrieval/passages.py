"""Retrieve passages for a model: the hits of a search, each with the operation or section that it is part of.

Recommendations are passages from past work: decisions, rules, failures and similar tasks, each with its source.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from orchestra_mem.catalog_types import ItemType
from orchestra_mem.core.control_tokens import neutralise
from orchestra_mem.core.documents.entries import NAME_FIELDS, first_field, plain_text
from orchestra_mem.core.search.disclosure import Recalled, RetrievedPassage, distinct
from orchestra_mem.core.search.echoes import fenced, plain_words, without_recalled
from orchestra_mem.core.text import squeeze
from orchestra_mem.errors import EmbedderError, NotFoundError, SearchError, StorageError
from orchestra_mem.retrieval.lazy_search import LazySearch
from orchestra_mem.retrieval.search import Answer, MemorySearch, check_request, is_match
from orchestra_mem.search_types import EVERYTHING, Hit, SearchFilter, named_in_short
from orchestra_mem.serialize import local_day, to_object
from orchestra_mem.stores import EventLog
from orchestra_mem.types import Json, MustKeepKind, Operation
from orchestra_mem.work_types import WorkKind

logger = logging.getLogger(__name__)

# Minimum scores, as shares of the best: for a hit that matches the question, and for a hit whose neighbour matches.
# Hits with lower scores are seldom useful enough for their tokens.
_LEAST_OF_BEST = 0.3
_LEAST_BESIDE = 0.6
# Boost for a hit of the asking agents: about that of a matching neighbour.
_THEIRS = 0.15


def recall(
    lazy_search: LazySearch,
    question: str,
    *,
    session: str | None,
    limit: int,
    agents: Sequence[str] = (),
    where: SearchFilter = EVERYTHING,
) -> Recalled:
    """Retrieve the passages that answer a question best. If search fails, return none and a note with the reason.

    Args:
        question: Any string.
        session: The current session; its passages rank slightly higher.
        limit: Maximum number of passages.
        agents: The asking agents; their passages rank slightly higher.
        where: Restricts the search.

    Raises:
        ValueError: The question is not a string, or the limit is no number or negative.
        InvalidTimeError: A time of the filter has no time zone.
    """
    check_request(where, limit, question)
    if not question.strip():
        return Recalled(recollections=())
    try:
        search = lazy_search.open()
        # Twice the limit, because many hits are duplicates, which `distinct` merges.
        answer = search.search(question, where=where, limit=2 * limit, session=session)
        hits = _preferred(answer, agents)
        found = distinct([*_recollections(hits, search)])
    except (SearchError, StorageError, EmbedderError) as error:
        logger.warning("nothing is recalled: %s", error)
        return Recalled(recollections=(), notes=(f"nothing is recalled because search cannot be used: {error}",))
    search.indexer.note_recalled([text for each in found[:limit] for text in (each.passage, each.newer)])
    return Recalled(recollections=tuple(found[:limit]), notes=answer.notes)


def _preferred(answer: Answer, agents: Sequence[str]) -> list[Hit]:
    """Return the hits with scores near the best, sorted, with a boost for hits of the agents."""
    best = max((hit.score for hit in answer.matching), default=0.0)

    def is_worth_it(hit: Hit) -> bool:
        least = _LEAST_OF_BEST if is_match(hit) else _LEAST_BESIDE
        return bool(hit.reasons.identifiers) or hit.score >= best * least

    def rank(hit: Hit) -> tuple[int, float]:
        return -len(hit.reasons.identifiers), -hit.score * (1 + _THEIRS * (hit.chunk.agent in agents))

    return sorted(filter(is_worth_it, answer.matching), key=rank)


def _recollections(hits: Sequence[Hit], search: MemorySearch) -> Iterator[RetrievedPassage]:
    """Yield the passages of the hits; a superseded one has the newer fact unless a hit before it tells that."""
    numbers = {int(hit.superseded_by[1:]) for hit in hits if hit.superseded_by}
    facts = search.indexer.ledger.must_keeps_by_id(sorted(numbers)) if numbers else ()
    newer, before = {f"K{fact.id}": fact for fact in facts}, set[str]()
    for hit in hits:
        fact = newer.get(hit.superseded_by)
        is_known = fact is None or not before.isdisjoint((hit.superseded_by, f"op {fact.operation}"))
        yield replace(_recollection(hit, search), newer="" if fact is None or is_known else squeeze(fact.text))
        before.add(hit.chunk.source)


def _recollection(hit: Hit, search: MemorySearch) -> RetrievedPassage:
    text, speaker = hit.chunk.text, ""
    if operation := find_operation(search.indexer.log, hit.chunk.operation):
        data = without_recalled(operation.data)  # without fences and contexts that the memory had rendered into it
        whole = plain_text(replace(operation, data=data), max_chars=8_000).strip()
        speaker = first_field(data, NAME_FIELDS) or hit.chunk.agent or operation.agent or first_field(data, ("role",))
    elif hit.chunk.kind in set(WorkKind):
        text = whole = f"{hit.chunk.title}: {text}"
    else:
        whole = search.section(hit)
    whole = whole if text in whole or plain_words(text) in plain_words(whole) else text
    return RetrievedPassage(hit=hit, passage=text, whole=whole, speaker=speaker)


def find_operation(log: EventLog, number: int) -> Operation | None:
    """Return an operation; None if the log lacks the number, for example after the database was lost."""
    try:
        return log.operation(number) if number else None
    except NotFoundError:
        return None


# Kinds of the passages in each group: those of facts, and those of catalog items, which call a decision the same.
FACT_GROUPS: dict[str, tuple[str, ...]] = {
    "decisions": (MustKeepKind.DECISION,),
    "rules": (MustKeepKind.CONSTRAINT,),
    "failures": (MustKeepKind.FAILURE, ItemType.ERROR),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """An excerpt from past work for a task; `full_tokens` is the token count of the full text.

    `likelihood`, `perhaps` and `fate` are as in `Hit`: a guess is marked `perhaps`, what no longer holds by its fate.
    `outcome` is the result of that work, empty if unknown; `project` is set if it comes from another project, and
    `projects` then names all that have an equal one.
    """

    source: str
    text: str
    why: str
    full_tokens: int
    time: datetime | None = None
    agent: str | None = None
    outcome: str = ""
    likelihood: float = 0.0
    perhaps: bool = False
    fate: str = ""
    project: str = ""
    projects: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The source with date, agent, outcome, doubt and token count of the full text, in one line."""
        when = local_day(self.time) if self.time else ""
        doubt, size = "perhaps" * self.perhaps, f"{self.full_tokens:,} tokens in full"
        parts = ", ".join(filter(None, (when, self.agent or "", self.outcome, doubt, self.fate, size)))
        also = f", also in {named_in_short(self.projects[1:])}" if self.projects[1:] else ""
        return f"{self.project} {self.source} ({parts}){also}".lstrip()


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
        for name in (*FACT_GROUPS, "similar_tasks"):
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
