"""Finding the facts that may not be lost, and keeping them true: what was decided, taken back, opened, done."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace

from orchestra_mem.core.documents.entries import visible
from orchestra_mem.core.search.echoes import without_recalled
from orchestra_mem.core.steps import finished
from orchestra_mem.ports import EventLog, Ledger
from orchestra_mem.types import MustKeep, MustKeepKind, MustKeepStatus, Operation, OperationFilter, Session

# Facts that a new one may take back or complete. Older ones stay as they are: the search is for what is contradicted,
# and a contradiction over a distance of thousands of facts names its object too vaguely to be believed.
_REACH = 400
_MOST_AHEAD = 1_000  # operations
# What was done stays done: of completions nothing can be taken back.
_CHANGEABLE = tuple(kind for kind in MustKeepKind if kind is not MustKeepKind.COMPLETION)


class Judge:
    """Looks through operations once, in their order, and stores what a summary may not lose."""

    def __init__(self, log: EventLog, ledger: Ledger) -> None:
        self._log = log
        self._ledger = ledger
        self._found: dict[int, list[MustKeep]] = {}
        self.through = 0  # the last operation that this process has judged

    def look(self, operation: Operation) -> Generator[None, None, Sequence[MustKeep]]:
        """Find ahead, in small steps, what `judge` will find in an operation; it has no number yet."""
        from orchestra_mem.core.facts.finds import without_tentative
        from orchestra_mem.core.facts.topics import profile_of

        found = yield from _find(operation)
        for fact in found:
            yield
            profile_of(fact.text)
        if len(self._found) < _MOST_AHEAD:
            self._found[operation.id] = found
        return without_tentative(found)

    def judge(self, session: Session, through: int) -> None:
        """Look through a session's operations up to an id, those that were not yet."""
        operations = self._log.operations(
            OperationFilter(session=session.id, after=session.judged_through, through=through)
        )
        if not operations:
            return
        known, settled = self._settled([fact for operation in operations for fact in self._taken(operation)])
        changed = [fact for fact in settled if fact.id in known and fact != known[fact.id]]
        fresh = [fact for fact in settled if fact.id not in known]
        self._ledger.add_must_keeps(session.id, fresh, changed, judged_through=operations[-1].id)
        self.through = operations[-1].id
        self._found = {number: found for number, found in list(self._found.items()) if number > self.through}

    def foresee(self, through: int) -> Mapping[int, MustKeep] | None:
        """The facts as they would be by their numbers, were operations up to an id judged now; changes nothing.

        None where not all of them have been looked at.
        """
        numbers = range(self.through + 1, through + 1)
        if any(number not in self._found for number in numbers):
            return None
        _, settled = self._settled([fact for number in numbers for fact in self._found[number]])
        return {fact.id: fact for fact in settled}

    def _settled(self, found: Sequence[MustKeep]) -> tuple[dict[int, MustKeep], list[MustKeep]]:
        """The facts that new ones may change, and with the new ones how all of them stand then."""
        # Here, as the tables of cues are heavy and load on first use: to import the package must stay quick.
        from orchestra_mem.core.facts.finds import without_tentative
        from orchestra_mem.core.facts.settlement import settle

        number = self._ledger.next_must_keep_id()
        new = [replace(fact, id=number + position) for position, fact in enumerate(found)]
        known = self._ledger.must_keeps(kinds=_CHANGEABLE, status=MustKeepStatus.STANDING, limit=_REACH) if new else []
        settled = without_tentative(_by_weight(settle([*known, *new], known=len(known))))
        return {fact.id: fact for fact in known}, settled

    def _taken(self, operation: Operation) -> Sequence[MustKeep]:
        found = self._found.pop(operation.id, None)
        return finished(_find(operation)) if found is None else found

    def facts(self, first_operation: int, last_operation: int) -> list[MustKeep]:
        """The facts found in a range of operations, in their present state."""
        return self._ledger.must_keeps(first_operation=first_operation, last_operation=last_operation)


def _own(operation: Operation) -> Operation:
    """An operation without what this memory has rendered: a decision that is recalled is no new one.

    Of a line that an orchestrator has read and done (`settled`) nothing is left: the state of work has it.
    """
    if isinstance(operation.data, dict) and operation.data.get("settled") is True:
        return replace(operation, data=None)
    data = without_recalled(operation.data)
    return operation if data == operation.data else replace(operation, data=data)


def weight_of(operation: Operation) -> float:
    """How much is to be made of what an operation says: what was decided or asked for counts over a tool's output."""
    if operation.critical:
        return 3.0
    data = operation.data
    if not isinstance(data, dict):
        return 1.0
    if data.get("role") in ("user", "human", "system") or operation.type in ("nl_command", "user_message"):
        return 2.0
    if any(name in data for name in ("output", "stdout", "stderr")):
        return 0.5
    return 2.0 if "speaker" in data else 1.0


def _by_weight(facts: Sequence[MustKeep]) -> list[MustKeep]:
    """The facts, without what a lighter one would have taken back: a remark in passing revokes no decision."""
    weights = {fact.id: fact.weight for fact in facts}
    return [
        replace(fact, status=MustKeepStatus.STANDING, superseded_by=0)
        if fact.superseded_by and weights.get(fact.superseded_by, fact.weight) < fact.weight
        else fact
        for fact in facts
    ]


def _find(operation: Operation) -> Generator[None, None, list[MustKeep]]:
    """The facts in an operation, in characters that a document can hold, as its entry has them."""
    from orchestra_mem.core.facts.extraction import find_steps

    weight = weight_of(operation)
    found = yield from find_steps(_own(operation), tentative=True)
    return [
        replace(
            fact,
            text=visible(fact.text),
            identifiers=tuple(visible(name) for name in fact.identifiers),
            weight=weight,
        )
        for fact in found
    ]
