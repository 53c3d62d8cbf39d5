"""What an orchestrator answers with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestra_mem.orchestrator.intents.types import Intent
from orchestra_mem.orchestrator.talk import Happening
from orchestra_mem.types import Json
from orchestra_mem.work_types import WorkItem


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
    that were offered, each a row of intents, the first for a yes.
    """

    line: str
    outcome: Outcome
    text: str
    intents: tuple[Intent, ...] = ()
    effects: tuple[Effect, ...] = ()
    operation: int = 0
    options: tuple[tuple[Intent, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer to a question and the items that it speaks of."""

    text: str
    effects: tuple[Effect, ...] = ()


def shown(items: Sequence[int]) -> tuple[Effect, ...]:
    """Give the effect of having spoken of items without changing them."""
    happening = Happening.MENTIONED if len(items) == 1 else Happening.LISTED
    return (Effect(happening=happening, items=tuple(items), text=""),) if items else ()


def answer_of(items: Sequence[WorkItem], text: str) -> Answer:
    """Answer with a text that speaks of items."""
    return Answer(text=text, effects=shown([item.id for item in items]))


def reply_record(reply: Reply) -> dict[str, Json]:
    """Give a reply as JSON: what was read, what was done to which items, and the answer."""
    return {
        "line": reply.line,
        "outcome": reply.outcome.value,
        "answer": reply.text,
        "intents": [intent_record(intent) for intent in reply.intents],
        "effects": [
            {"did": effect.happening.value, "items": list(effect.items), "text": effect.text}
            for effect in reply.effects
        ],
        "operation": reply.operation or None,
    }


def intent_record(intent: Intent) -> dict[str, Json]:
    """Give an intent as JSON, without what it does not say."""
    said: dict[str, Json] = {
        "kind": intent.kind.value if intent.kind else None,
        "count": intent.count,
        "titles": list(intent.titles),
        "target": intent.target,
        "other": intent.other,
        "value": intent.value,
    }
    told = {name: value for name, value in said.items() if value}
    return {"action": intent.action.value, **told, "sure": intent.sure}
