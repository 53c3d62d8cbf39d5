"""Extract facts (must-keeps) from operations, and supersede or complete earlier facts.

A completion ends a person's open item or failure; any other operation only marks what a person wrote as perhaps
superseded.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING

from orchestra_mem.core.identifiers import find_identifiers
from orchestra_mem.core.search.echoes import without_recalled
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

        number = self.ledger.next_must_keep_id()
        facts = KnownFacts(self.log, self.ledger)
        facts.index()
        found = self._without_quoted(operations, found, facts)
        new = [replace(fact, id=number + position) for position, fact in enumerate(found)]
        near = facts.near(new) if new else []
        edited = [fact for fact in near if fact.author is Author.PERSON]
        known = [fact for fact in near if fact.status is _STANDING]
        replaced = [fact for fact in near if fact.status is MustKeepStatus.SUPERSEDED]
        # A fact that is found late may be superseded by a known fact of a later operation.
        newest = max((fact.operation for fact in new), default=0)
        later = [fact for fact in known if fact.operation > newest]
        agents = self._agents_of([*known, *new, *edited]) if self.apart else None
        stated = {each.id for each in operations if each.type == STATED_FACT or _is_speech(each)}
        new = _as_edited(new, edited, agents or {}, stated)
        new = list(settle([*new, *later], agents=agents))[: len(new)] if later else new
        settled = _by_weight(settle([*known, *new], known=len(known), agents=agents, replaced=replaced))
        if self.lasting:
            marked = {fact.id: fact.superseded_by for fact in known}
            for place, fact in enumerate(settled):
                if fact.superseded_by:
                    doubted = fact.status is _STANDING and fact.author is not Author.PERSON
                    by = marked.get(fact.id, 0) if doubted else fact.superseded_by
                    settled[place] = replace(fact, status=_STANDING, superseded_by=by)
        before = {fact.id: fact for fact in known}
        settled = self._without_replaced(operations, before, settled)
        settled = self._without_repaired(operations, before, settled, facts)
        changed = [(before[fact.id], fact) for fact in settled if fact.id in before and fact != before[fact.id]]
        return [fact for fact in settled if fact.id not in before], changed

    def _without_quoted(
        self, operations: Sequence[Operation], found: Sequence[MustKeep], facts: KnownFacts
    ) -> Sequence[MustKeep]:
        """Remove what a model says in the words of a known fact: it quotes the memory, and decides nothing again."""
        from orchestra_mem.core.facts.candidates import QUOTED, text_key

        answers = {
            each.id for each in operations if isinstance(each.data, dict) and each.data.get("role") == "assistant"
        }
        quoted = [fact for fact in found if fact.operation in answers and fact.kind in QUOTED]
        if not quoted:
            return found
        known = [*facts.in_words_of(quoted), *found]
        agents = self._agents_of(known) if self.apart else {}
        first: dict[tuple[str | None, str], int] = {}
        for fact in known:
            said = agents.get(fact.operation), text_key(fact.text)
            first[said] = min(fact.operation, first.get(said, fact.operation))
        return [
            fact
            for fact in found
            if fact not in quoted or first[agents.get(fact.operation), text_key(fact.text)] == fact.operation
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

    def _without_replaced(
        self, operations: Sequence[Operation], known: dict[int, MustKeep], settled: list[MustKeep]
    ) -> list[MustKeep]:
        """Supersede the facts of operations that a newer version (of a note or rule file) replaces, except people's."""
        replaced = {number for each in operations if (number := self._replaced_by(each))}
        for number in replaced:
            old = self.ledger.must_keeps(first_operation=number, last_operation=number, status=_STANDING)
            settled = [*settled, *(fact for fact in old if fact.id not in known)]
            known |= {fact.id: fact for fact in old}
        return [
            replace(fact, status=MustKeepStatus.SUPERSEDED, superseded_by=0)
            if fact.operation in replaced and fact.status is _STANDING and fact.author is not Author.PERSON
            else fact
            for fact in settled
        ]

    def _without_repaired(
        self, operations: Sequence[Operation], known: dict[int, MustKeep], settled: list[MustKeep], facts: KnownFacts
    ) -> list[MustKeep]:
        """Close the failures of commands that the same agent has run again since, with the same input and success."""
        from orchestra_mem.core.facts.states import command_of, has_succeeded

        commands = {each.id: command for each in operations if (command := command_of(each))}
        worked = {commands[each.id]: each.id for each in operations if each.id in commands and has_succeeded(each)}
        if not worked:
            return settled
        for command, failures in facts.failures_of(worked).items():
            commands |= {fact.operation: command for fact in failures}
            settled = [*settled, *(fact for fact in failures if fact.id not in known)]
            known |= {fact.id: fact for fact in failures}
        return [
            replace(fact, status=MustKeepStatus.DONE)
            if fact.kind is MustKeepKind.FAILURE
            and fact.status is _STANDING
            and worked.get(commands.get(fact.operation, ""), 0) > fact.operation
            else fact
            for fact in settled
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
    stated = [_stated(each) or facts for each, facts in zip(operations, found, strict=True)]
    return [fact for each, facts in zip(operations, stated, strict=True) for fact in _as_shown(each, facts)]


def _stated(operation: Operation) -> list[MustKeep]:
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
    items), items that a program stores under a name and updates itself, and stated facts (see `_stated`).
    """
    settled = isinstance(operation.data, dict) and operation.data.get("settled") is True
    if settled or operation.is_stored or operation.type == STATED_FACT:
        return replace(operation, data=None)
    data = without_recalled(operation.data)
    return operation if data == operation.data else replace(operation, data=data)


def weight_of(operation: Operation) -> float:
    """Return the weight of an operation's facts: 3 if critical, 2 for speech, 0.5 for a tool's output, else 1."""
    if operation.critical:
        return HEAVIEST
    if _is_speech(operation):
        return SPEECH_WEIGHT
    return OUTPUT_WEIGHT if _holds_output(operation) else 1.0


def _is_speech(operation: Operation) -> bool:
    data = operation.data if isinstance(operation.data, dict) else {}
    if data.get("role") in ("user", "human", "system") or operation.type in ("nl_command", "user_message"):
        return bool(data)
    return "speaker" in data and not _holds_output(operation)


def _holds_output(operation: Operation) -> bool:
    return isinstance(operation.data, dict) and not operation.data.keys().isdisjoint(("output", "stdout", "stderr"))


def _as_edited(
    new: Sequence[MustKeep], people: Sequence[MustKeep], agents: Mapping[int, str | None], stated: Container[int]
) -> list[MustKeep]:
    """Remove or supersede new facts in words that a person has removed or replaced: only people bring these back.

    Facts of the operations in `stated`, which people say again, stand; so do completions and failures, which recur.
    """
    last: dict[tuple[str | None, str], MustKeep] = {}
    for fact in sorted(people, key=lambda fact: fact.status is _STANDING):
        if fact.kind not in RECURRING:
            last |= {(agents.get(fact.operation), squeeze(said).casefold()): fact for said in (fact.found, fact.text)}
    edited = []
    for fact in new:
        theirs = last.get((agents.get(fact.operation), squeeze(fact.text).casefold()))
        if theirs and fact.kind not in RECURRING and fact.operation not in stated:
            if theirs.status is MustKeepStatus.REMOVED:
                fact = replace(fact, status=theirs.status, author=theirs.author)
            elif theirs.status is _STANDING:
                fact = replace(fact, status=MustKeepStatus.SUPERSEDED, superseded_by=theirs.id)
        edited.append(fact)
    return edited


def _by_weight(facts: Sequence[MustKeep]) -> list[MustKeep]:
    """Restore facts that a fact of lower weight superseded: a tool's words must not revoke a decision, speech may."""
    weights = {fact.id: fact.weight for fact in facts}
    return [
        replace(fact, status=_STANDING, superseded_by=0)
        if fact.superseded_by and weights.get(fact.superseded_by, fact.weight) < min(fact.weight, SPEECH_WEIGHT)
        else fact
        for fact in facts
    ]
