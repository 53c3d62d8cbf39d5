"""What an orchestrator answers with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestra_mem.core.language.intents.parsing import Action, Intent
from orchestra_mem.core.language.mentions import Happening
from orchestra_mem.types import Json


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
    line is none. An outcome of `ASKED` waits for the next line: a choice, or a yes.
    """

    line: str
    outcome: Outcome
    text: str
    intents: tuple[Intent, ...] = ()
    effects: tuple[Effect, ...] = ()
    operation: int = 0


def shown(items: Sequence[int]) -> tuple[Effect, ...]:
    """The effect of having spoken of items without changing them."""
    happening = Happening.MENTIONED if len(items) == 1 else Happening.LISTED
    return (Effect(happening=happening, items=tuple(items), text=""),) if items else ()


def put(intent: Intent) -> str:
    """What an intent does, as a question has it."""
    return _PUT.get(intent.action, intent.action.value)


def command_of(intent: Intent) -> str:
    """An intent as one would type it."""
    titles = ", ".join(intent.titles)
    one, several = (intent.kind.value, intent.kind.plural) if intent.kind else ("item", "items")
    new = f"{intent.count} {several}" if intent.count > 1 else one
    target = intent.target or "it"
    match intent.action:
        case Action.CREATE | Action.ADD:
            told = f"{new}: {titles}" if titles else new
            return f"{intent.action.value} {told}, under {intent.other}" if intent.other else f"create {told}"
        case Action.NOTE | Action.DECIDE | Action.REPORT:
            return f"{intent.action.value}{f' on {intent.target}' if intent.target else ''}: {intent.value}"
        case Action.RENAME | Action.ASSIGN | Action.PRIORITISE:
            return f"{intent.action.value} {target} to {intent.value or intent.other}"
        case Action.DEPEND:
            return f"{target} waits for {intent.other}"
        case _:
            more = " ".join(word for word in (intent.other, intent.value) if word)
            return f"{put(intent)} {target}{f' ({more})' if more else ''}"


_PUT = {Action.UNBLOCK: "put back", Action.RESUME: "go on with", Action.PRIORITISE: "prioritise"}


def reply_record(reply: Reply) -> dict[str, Json]:
    """A reply as JSON: what was read, what was done to which items, and the answer."""
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
    """An intent as JSON, without what it does not say."""
    said: dict[str, Json] = {
        "action": intent.action.value,
        "kind": intent.kind.value if intent.kind else None,
        "count": intent.count,
        "titles": list(intent.titles),
        "target": intent.target,
        "other": intent.other,
        "value": intent.value,
    }
    return {
        "action": intent.action.value,
        **{name: value for name, value in said.items() if value},
        "sure": intent.sure,
    }
