"""Extract facts (must-keeps) from operations, and supersede or complete earlier facts.

A completion ends a person's open item or failure; any other operation only marks what a person wrote as perhaps
superseded.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING

from orchestra_mem.core.identifiers import find_identifiers
from orchestra_mem.core.repetition import as_said
from orchestra_mem.core.search.echoes import without_recalled
from orchestra_mem.core.speakers import Voice, holds_output, is_from_person, voice_of
from orchestra_mem.core.text import squeeze, visible
from orchestra_mem.stores import EventLog, Ledger
from orchestra_mem.types import (
    OWNERS_CHAT,
    REPLACES,
    STATED_FACT,
    Author,
    MustKeep,
    MustKeepKind,
    MustKeepStatus,
    Operation,
    OperationFilter,
    Session,
)

if TYPE_CHECKING:
    from orchestra_mem.tiers.known_facts import KnownFacts

HEAVIEST, SPEECH_WEIGHT, OUTPUT_WEIGHT = 3.0, 2.0, 0.5
"""Weight of what people write into documents and of critical operations, and weight of what a tool printed."""

_STANDING = MustKeepStatus.STANDING
# Number of operations whose facts are extracted and stored together.
_BATCH = 500
RECURRING = (MustKeepKind.COMPLETION, MustKeepKind.FAILURE)


@dataclass(slots=True)
class _Settled:
    """Facts, known and new, as operations leave them; `before` has the known ones as they were, by id."""

    facts: list[MustKeep]
    before: dict[int, MustKeep]

    def add_known(self, facts: Sequence[MustKeep]) -> None:
        """Add facts of the ledger that are not among the known ones."""
        self.facts += [fact for fact in facts if fact.id not in self.before]
        self.before |= {fact.id: fact for fact in facts}


@dataclass(frozen=True, slots=True, eq=False)
class FactExtractor:
    """Extracts facts from operations, each once and in order, and stores them in the ledger.

    Attributes:
        log, ledger: The memory's event log and ledger.
        lasting: Keep superseded facts active, marked with the later fact, and mark no others. For the shared log: only
            people remove facts.
        apart: Let facts of an agent change only facts of the same agent: for strict isolation.
    """

    log: EventLog
    ledger: Ledger
    _: KW_ONLY
    lasting: bool = False
    apart: bool = False
    _agents: dict[int, str | None] = field(default_factory=dict, init=False)

    def extract(self, session: Session, through: int) -> None:
        """Extract facts from a session's operations that were not processed before, up to the id `through`.

        Stops if another process, having taken over a lock considered lost, extracts from the session meanwhile.
        """
        reached = session.judged_through
        waiting = self.log.operations(OperationFilter(session=session.id, after=reached, through=through))
        for first in range(0, len(waiting), _BATCH):
            operations = waiting[first : first + _BATCH]
            found = facts_of(operations)
            with self.ledger.adding_must_keeps():
                if self.log.session(session.id).judged_through != reached:
                    return
                self.ledger.add_must_keeps(session.id, operations[-1].id, *self._settled(operations, found))
            reached = operations[-1].id

    def add_quoted(self, operations: Sequence[Operation], quotes: Sequence[str]) -> int:
        """Store facts that a model quoted in one answer about operations and that are not known; return how many."""
        from orchestra_mem.core.facts.extraction import find_quoted

        added, quoted = 0, find_quoted([_own(operation) for operation in operations], quotes)
        for operation, facts in [each for each in zip(operations, quoted, strict=True) if each[1]]:
            with self.ledger.adding_must_keeps():
                here = self.ledger.must_keeps(first_operation=operation.id, last_operation=operation.id)
                said = [text for fact in here for text in (fact.text, fact.found) if text]
                found = _as_shown(operation, facts)
                found = [fact for fact in found if not any(fact.text in text or text in fact.text for text in said)]
                self.ledger.edit_must_keeps(*self._settled([operation], found))
                added += len(found)
        return added

    def _settled(
        self, operations: Sequence[Operation], found: Sequence[MustKeep]
    ) -> tuple[list[MustKeep], list[tuple[MustKeep, MustKeep]]]:
        """Return the facts found in operations, and pairs (before, after) of the known facts that they change."""
        # Imported here, as NumPy loads slowly and importing the package must stay quick.
        from orchestra_mem.core.facts.superseding import settle
        from orchestra_mem.tiers.known_facts import KnownFacts

        first_id = self.ledger.next_must_keep_id()
        facts = KnownFacts(self.log, self.ledger)
        facts.index()
        found = self._without_quoted(operations, found, facts)
        new = [replace(fact, id=first_id + position) for position, fact in enumerate(found)]
        near = facts.near(new) if new else []
        by_people = [fact for fact in near if fact.author is Author.PERSON]
        known = [fact for fact in near if fact.status is _STANDING]
        replaced = [fact for fact in near if fact.status is MustKeepStatus.SUPERSEDED]
        agents = self._agents_of([*known, *new, *by_people]) if self.apart else None

        said_again = {each.id for each in operations if each.type == STATED_FACT or is_from_person(each)}
        new = _as_edited(new, by_people, agents or {}, said_again)
        new = _ended_by_later(new, known, agents)
        settled = _by_weight(settle([*known, *new], known=len(known), agents=agents, replaced=replaced))
        if self.lasting:
            settled = _left_standing(settled, known)
        result = _Settled(settled, before={fact.id: fact for fact in known})
        self._end_replaced(operations, result)
        self._end_repaired(operations, result, facts)
        pairs = [(result.before.get(fact.id), fact) for fact in result.facts]
        return [fact for old, fact in pairs if old is None], [(old, fact) for old, fact in pairs if old and old != fact]

    def _without_quoted(
        self, operations: Sequence[Operation], found: Sequence[MustKeep], facts: KnownFacts
    ) -> Sequence[MustKeep]:
        """Remove what a model says in the words of a known fact: it quotes the memory, and decides nothing again."""
        from orchestra_mem.core.facts.candidates import QUOTED

        answers = {each.id for each in operations if voice_of(each) is Voice.MODEL}
        quoted = [fact for fact in found if fact.operation in answers and fact.kind in QUOTED]
        if not quoted:
            return found
        known = [*facts.in_words_of(quoted), *found]
        agents = self._agents_of(known) if self.apart else {}
        first: dict[tuple[str | None, str], int] = {}
        for fact in known:
            said = agents.get(fact.operation), as_said(fact.text)
            first[said] = min(fact.operation, first.get(said, fact.operation))
        return [
            fact
            for fact in found
            if fact not in quoted or first[agents.get(fact.operation), as_said(fact.text)] == fact.operation
        ]

    def _agents_of(self, facts: Sequence[MustKeep]) -> dict[int, str | None]:
        """Return the agents of the operations that facts come from, None for the owner's."""
        numbers = {fact.operation for fact in facts} - {0}
        known = self._agents
        agents = {each: known[each] if each in known else self.log.operation(each).agent for each in numbers}
        agents = {each: None if agent in OWNERS_CHAT else agent for each, agent in agents.items()}
        self._agents.clear()
        self._agents.update(agents)
        return agents

    def _end_replaced(self, operations: Sequence[Operation], settled: _Settled) -> None:
        """Supersede the facts of operations that a newer version (of a note or rule file) replaces, except people's."""
        replaced = {number for each in operations if (number := self._replaced_by(each))}
        for number in replaced:
            settled.add_known(self.ledger.must_keeps(first_operation=number, last_operation=number, status=_STANDING))
        settled.facts = [
            replace(fact, status=MustKeepStatus.SUPERSEDED, superseded_by=0)
            if fact.operation in replaced and fact.status is _STANDING and fact.author is not Author.PERSON
            else fact
            for fact in settled.facts
        ]

    def _end_repaired(self, operations: Sequence[Operation], settled: _Settled, facts: KnownFacts) -> None:
        """Close the failures of commands that the same agent has run again since, with the same input and success."""
        from orchestra_mem.core.facts.outcomes import command_of, has_succeeded

        commands = {each.id: command for each in operations if (command := command_of(each))}
        worked = {commands[each.id]: each.id for each in operations if each.id in commands and has_succeeded(each)}
        if not worked:
            return
        for command, failures in facts.failures_of(worked).items():
            commands |= {fact.operation: command for fact in failures}
            settled.add_known(failures)
        settled.facts = [
            replace(fact, status=MustKeepStatus.DONE)
            if fact.kind is MustKeepKind.FAILURE
            and fact.status is _STANDING
            and worked.get(commands.get(fact.operation, ""), 0) > fact.operation
            else fact
            for fact in settled.facts
        ]

    def _replaced_by(self, operation: Operation) -> int:
        """Return the id of the older version, by the same agent, that an operation replaces; 0 if it replaces none."""
        named = operation.data.get(REPLACES) if isinstance(operation.data, dict) else None
        number = str(named).removeprefix("op ")[:18]
        if not number.isdecimal():
            return 0
        for old in self.log.operations(OperationFilter(after=int(number) - 1, through=int(number))):
            was, now = (str(each.idempotency_key).rpartition(":")[0] for each in (old, operation))
            return old.id if was == now != "" and old.id < operation.id and old.agent == operation.agent else 0
        return 0


def load_tables() -> None:
    """Preload the modules and the model table that extraction uses."""
    from orchestra_mem.core.facts import extraction, superseding  # noqa: F401
    from orchestra_mem.core.facts.classifier import load_table

    load_table()


def facts_of(operations: Sequence[Operation]) -> list[MustKeep]:
    """Find the facts in operations; unprintable characters are escaped as in the operations' document entries."""
    from orchestra_mem.core.facts.extraction import find_in_operations

    found = find_in_operations([_own(each) for each in operations])
    pairs = zip(operations, found, strict=True)
    return [fact for each, facts in pairs for fact in _as_shown(each, _of_stated_fact(each) or facts)]


def _of_stated_fact(operation: Operation) -> list[MustKeep]:
    """Return the fact of a `STATED_FACT` operation as a list; empty for other operations."""
    data = operation.data if operation.type == STATED_FACT and isinstance(operation.data, dict) else {}
    text, kind = squeeze(str(data.get("text", ""))), data.get("kind")
    if not text or kind not in list(MustKeepKind):
        return []
    found = MustKeep(
        kind=MustKeepKind(str(kind)), text=text, operation=operation.id, timestamp=operation.timestamp,
        identifiers=find_identifiers(text),
    )  # fmt: skip
    return [found]


def _as_shown(operation: Operation, facts: Sequence[MustKeep]) -> list[MustKeep]:
    weight = weight_of(operation)
    return [
        replace(
            fact, text=visible(fact.text), identifiers=tuple(visible(name) for name in fact.identifiers), weight=weight
        )
        for fact in facts
    ]


def _own(operation: Operation) -> Operation:
    """Return an operation without text recalled from this memory: a recalled decision is not a new decision.

    Three kinds of operations lose all data: commands that an orchestrator carried out (`settled`; the results are work
    items), items that a program stores under a name and updates itself, and stated facts (see `_of_stated_fact`).
    """
    settled = isinstance(operation.data, dict) and operation.data.get("settled") is True
    if settled or operation.is_stored or operation.type == STATED_FACT:
        return replace(operation, data=None)
    data = without_recalled(operation.data)
    return operation if data == operation.data else replace(operation, data=data)


def weight_of(operation: Operation) -> float:
    """Return the weight of an operation's facts: 3 if critical, 2 if a person said it, 0.5 for tool output, else 1."""
    if operation.critical:
        return HEAVIEST
    if is_from_person(operation):
        return SPEECH_WEIGHT
    return OUTPUT_WEIGHT if holds_output(operation) else 1.0


def _as_edited(
    new: Sequence[MustKeep], people: Sequence[MustKeep], agents: Mapping[int, str | None], said_again: Container[int]
) -> list[MustKeep]:
    """Remove or supersede new facts in words that a person has removed or replaced: only people bring these back.

    Facts of the operations in `said_again` stand, as people say them; so do completions and failures, which recur.
    """
    last: dict[tuple[str | None, str], MustKeep] = {}
    for fact in sorted(people, key=lambda fact: fact.status is _STANDING):
        if fact.kind not in RECURRING:
            last |= {(agents.get(fact.operation), as_said(said)): fact for said in fact.wordings}
    edited = []
    for fact in new:
        theirs = last.get((agents.get(fact.operation), as_said(fact.text)))
        if theirs and fact.kind not in RECURRING and fact.operation not in said_again:
            if theirs.status is MustKeepStatus.REMOVED:
                fact = replace(fact, status=theirs.status, author=theirs.author)
            elif theirs.status is _STANDING:
                fact = replace(fact, status=MustKeepStatus.SUPERSEDED, superseded_by=theirs.id)
        edited.append(fact)
    return edited


def _ended_by_later(
    new: list[MustKeep], known: Sequence[MustKeep], agents: Mapping[int, str | None] | None
) -> list[MustKeep]:
    """End the new facts that known facts of later operations end, as facts may be found late."""
    from orchestra_mem.core.facts.superseding import settle

    newest = max((fact.operation for fact in new), default=0)
    later = [fact for fact in known if fact.operation > newest]
    return list(settle([*new, *later], agents=agents))[: len(new)] if later else new


def _left_standing(settled: Sequence[MustKeep], known: Sequence[MustKeep]) -> list[MustKeep]:
    """Let superseded facts stand, marked with the later fact; others keep the mark that they had.

    A person's fact, which is only ever marked, gets its mark as well.
    """
    marks = {fact.id: fact.superseded_by for fact in known}
    return [
        fact
        if not fact.superseded_by
        else replace(fact, status=_STANDING)
        if fact.status is MustKeepStatus.SUPERSEDED or fact.author is Author.PERSON
        else replace(fact, superseded_by=marks.get(fact.id, 0))
        for fact in settled
    ]


def _by_weight(facts: Sequence[MustKeep]) -> list[MustKeep]:
    """Restore facts that a fact of lower weight superseded: a tool's words must not revoke a decision, speech may."""
    weights = {fact.id: fact.weight for fact in facts}
    return [
        replace(fact, status=_STANDING, superseded_by=0)
        if fact.superseded_by and weights.get(fact.superseded_by, fact.weight) < min(fact.weight, SPEECH_WEIGHT)
        else fact
        for fact in facts
    ]
