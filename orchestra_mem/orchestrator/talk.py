"""What is said and answered: mentions of items, what a command wants of its items, replies and their effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestra_mem.catalog_types import Injection
from orchestra_mem.orchestrator.intents import Action, Intent
from orchestra_mem.types import Json
from orchestra_mem.work_types import OPEN_STATUSES, PARENT_KINDS, WorkKind, WorkStatus


class Happening(StrEnum):
    """What was done to the items that a mention speaks of."""

    CREATED = "created"
    CHANGED = "changed"
    STARTED = "started"
    FINISHED = "finished"
    FAILED = "failed"
    BLOCKED = "blocked"
    DEFERRED = "deferred"
    CANCELLED = "cancelled"
    ASSIGNED = "assigned"
    MENTIONED = "mentioned"
    LISTED = "listed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """One thing said or done lately; `items` stand in the order in which they were named, created or shown."""

    items: tuple[int, ...]
    happening: Happening


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a command wants of its items.

    Other kinds than `kinds` cannot be meant; empty allows all. Other statuses than `statuses` are unlikely; empty
    makes all alike.
    """

    kinds: tuple[WorkKind, ...] = ()
    statuses: tuple[WorkStatus, ...] = ()


ANYTHING = Need()
_PENDING, _ACTIVE, _BLOCKED = WorkStatus.PENDING, WorkStatus.IN_PROGRESS, WorkStatus.BLOCKED
_DEFERRED, _FAILED = WorkStatus.DEFERRED, WorkStatus.FAILED
_STATUSES: Mapping[Action, tuple[WorkStatus, ...]] = {
    Action.START: (_PENDING, _DEFERRED, _FAILED, _BLOCKED),
    Action.FINISH: (_ACTIVE, _PENDING, _BLOCKED, _FAILED),
    Action.BLOCK: (_PENDING, _ACTIVE, _DEFERRED, _FAILED),
    Action.UNBLOCK: (_BLOCKED,),
    Action.DEFER: (_PENDING, _ACTIVE, _BLOCKED, _FAILED),
    Action.CANCEL: OPEN_STATUSES,
    Action.RESUME: (_DEFERRED, _BLOCKED, _ACTIVE, _PENDING, _FAILED),
}


def need_of(intent: Intent) -> Need:
    """Say what an intent wants of its target; of something new, what that can be put under."""
    if intent.action in (Action.CREATE, Action.ADD):
        return container_need(intent.kind)
    return Need(statuses=_STATUSES.get(intent.action, ()))


def container_need(kind: WorkKind | None) -> Need:
    """Say what something new of a kind can be put under."""
    return Need(kinds=PARENT_KINDS[kind] if kind else ())


class Outcome(StrEnum):
    """What became of a line."""

    DONE = "done"
    ANSWERED = "answered"
    ASKED = "asked"
    REFUSED = "refused"
    NOT_UNDERSTOOD = "not understood"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a line did to items, or which it spoke of, in their order. `text` says it in words."""

    happening: Happening
    items: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answer to a line.

    `text` is for people. `operation` is the id of the operation that it was recorded as, 0 where it was not: an empty
    line is none. An outcome of `ASKED` waits for the next line: a choice, or a yes. `options` are then the readings
    that were offered, each a row of intents, the first for a yes. `injection` is what the catalog gave with the line;
    None where it was not asked.
    """

    line: str
    outcome: Outcome
    text: str
    intents: tuple[Intent, ...] = ()
    effects: tuple[Effect, ...] = ()
    operation: int = 0
    options: tuple[tuple[Intent, ...], ...] = ()
    injection: Injection | None = None

    @property
    def context_loaded(self) -> bool:
        """Whether the catalog was asked, and could be."""
        return self.injection is not None and self.injection.loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What came of an intent, in words; `kind` and `data` of its operation where that is not a line like any other."""

    text: str
    effects: tuple[Effect, ...] = ()
    kind: str = ""
    data: Mapping[str, Json] | None = None


def shown(items: Sequence[int]) -> tuple[Effect, ...]:
    """Give the effect of having spoken of items without changing them."""
    happening = Happening.MENTIONED if len(items) == 1 else Happening.LISTED
    return (Effect(happening=happening, items=tuple(items), text=""),) if items else ()


def reply_record(reply: Reply) -> dict[str, Json]:
    """Give a reply as JSON: what was read, what was done to which items, and the answer."""
    effects: list[Json] = [
        {"did": effect.happening.value, "items": list(effect.items), "text": effect.text} for effect in reply.effects
    ]
    return {
        "line": reply.line, "outcome": reply.outcome.value, "answer": reply.text,
        "intents": [*map(intent_record, reply.intents)], "effects": effects, "operation": reply.operation or None,
        "context_loaded": reply.context_loaded,
        "injected": [each.item.id for each in reply.injection.items] if reply.injection else [],
        "injected_tokens": reply.injection.tokens if reply.injection else 0,
    }  # fmt: skip


def intent_record(intent: Intent) -> dict[str, Json]:
    """Give an intent as JSON, without what it does not say."""
    said = ((name, getattr(intent, name)) for name in intent.__slots__)
    return {name: list(value) if name == "titles" else value for name, value in said if value}
