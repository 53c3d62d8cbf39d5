"""The known facts that new facts may end or repeat, found by words in the ledger, however many facts there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestra_mem.core.facts.candidates import (
    UNFINISHED,
    command_key,
    keys_near,
    keys_of,
    nearest,
    text_key,
)
from orchestra_mem.core.facts.outcomes import command_of
from orchestra_mem.stores import EventLog, Ledger
from orchestra_mem.types import Author, MustKeep, MustKeepKind, MustKeepStatus

# Most facts that are read by one key: of a word of more facts, only the newest count; of a command, all failures.
_A_KEY, _A_COMMAND = 100, 100_000
_STANDING = MustKeepStatus.STANDING


def alike(ledger: Ledger, facts: Sequence[MustKeep], *, late: bool = False) -> list[MustKeep]:
    """Return the indexed facts that facts may end or repeat, by ascending id.

    `late`: With those that may end facts which were found late.
    """
    asked = [keys_near(fact, late=late) for fact in facts]
    words = [told for near, _ in asked for told in near]
    others = {key for _, keys in asked for key in keys}
    listed = ledger.words.newest({*others, *(key for keys, _ in words for key in keys)}, _A_KEY)
    numbers = {number for key in others for number in listed.get(key, ())}
    for keys, most in words:
        numbers.update(nearest((listed[key] for key in keys if key in listed), most))
    return _by_id(ledger, numbers)


def _by_id(ledger: Ledger, numbers: Iterable[int]) -> list[MustKeep]:
    return sorted(ledger.must_keeps_by_id(sorted(numbers)), key=lambda fact: fact.id)


@dataclass(frozen=True, slots=True)
class KnownFacts:
    """Finds facts in the ledger."""

    log: EventLog
    ledger: Ledger

    def index(self) -> None:
        """Index the facts that were added or changed since; to be called in a transaction, before the other methods."""
        facts = self.ledger.must_keeps_by_id(self.ledger.words.unindexed())
        if facts:
            self.ledger.words.index({fact.id: keys_of(fact, self._command_of(fact)) for fact in facts})

    def _command_of(self, fact: MustKeep) -> str:
        failed = fact.kind is MustKeepKind.FAILURE and fact.status is _STANDING and fact.operation
        return command_of(self.log.operation(fact.operation)) if failed else ""

    def near(self, facts: Sequence[MustKeep]) -> list[MustKeep]:
        """Return the facts that facts may end or repeat, or that may end facts found late, by ascending id.

        Some are no longer active: those of people in the words of the facts, and outcomes that were replaced.
        """
        last = max(fact.operation for fact in facts)
        late = last < self.ledger.last_operation()
        found = alike(self.ledger, facts, late=late)
        # The unfinished facts of an operation may concern the same task.
        operations = {fact.operation for fact in found if fact.kind in UNFINISHED} - {0}
        beside = self.ledger.must_keeps_of(sorted(operations)) if operations else []
        found += [fact for fact in beside if fact.kind in UNFINISHED]
        replaced = {fact.id for fact in found if fact.kind in UNFINISHED and fact.status is MustKeepStatus.SUPERSEDED}
        known = {
            fact.id: fact
            for fact in found
            if fact.status is _STANDING or fact.author is Author.PERSON or fact.id in replaced
        }
        return [known[number] for number in sorted(known)]

    def in_words_of(self, facts: Iterable[MustKeep]) -> list[MustKeep]:
        """Return the facts with the texts of these, whatever became of them, by ascending id."""
        listed = self.ledger.words.newest({text_key(fact.text) for fact in facts}, _A_KEY)
        return _by_id(self.ledger, {number for numbers in listed.values() for number in numbers})

    def failures_of(self, commands: Iterable[str]) -> dict[str, list[MustKeep]]:
        """Return the active failures of each command."""
        keys = {command_key(command): command for command in commands}
        listed = self.ledger.words.newest(keys, _A_COMMAND)
        return {
            keys[key]: [fact for fact in _by_id(self.ledger, numbers) if fact.status is _STANDING]
            for key, numbers in listed.items()
        }
