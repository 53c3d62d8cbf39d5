"""Intents written as commands that the grammar reads back."""

from __future__ import annotations

from orchestra_mem.orchestrator.intents.grammar import ITEM
from orchestra_mem.orchestrator.intents.types import Action, Intent

_LEVELS = {"1": "urgent", "2": "high", "3": "medium", "4": "low", "5": "lowest"}
_PLAIN = {
    Action.DEPEND: "{target} depends on {other}",
    Action.RECENT: "what did we do last?",
    Action.NEXT: "what is next?",
    **{action: str(action) for action in (Action.UNDO, Action.HELP, Action.QUIT)},
}  # others: the action's name and its target


def as_command(intent: Intent) -> str:
    """Write an intent as one would type it."""
    target, other, value = _item(intent.target or "it"), _item(intent.other), intent.value
    match intent.action:
        case Action.CREATE | Action.ADD:
            return _new(intent, other)
        case Action.RENAME:
            return f'rename {target} to "{value}"'
        case Action.BLOCK:
            return f"block {target}" + (f" on {other}" if other else f" because {value}" if value else "")
        case Action.DEFER:
            return f"defer {target}" + (f" until {value.removeprefix('until ')}" if value else "")
        case Action.ASSIGN:
            return f"assign {target} to {value}" if value else f"unassign {target}"
        case Action.PRIORITISE if value in ("higher", "lower"):
            return f"{'raise' if value == 'higher' else 'lower'} the priority of {target}"
        case Action.PRIORITISE:
            return f"set {target} to {_LEVELS.get(value, 'high')} priority"
        case Action.NOTE | Action.REPORT:
            return f"{intent.action} on {target}: {value}" if intent.target else f"{intent.action}: {value}"
        case Action.DECIDE:
            return f"decision: {value}"
        case Action.RESUME | Action.STATUS:
            words = {Action.RESUME: ("continue", "with"), Action.STATUS: ("status", "of")}[intent.action]
            return f"{words[0]} {words[1]} {target}" if intent.target else words[0]
        case Action.WHY:
            return f"why did we choose {value}?" if value else f"why is {target} so?"
        case Action.FIND:
            return f"find {value}"
        case Action.LIST:
            return " ".join(filter(None, ["list", value, intent.kind.plural if intent.kind else "items"]))
        case action:
            return _PLAIN.get(action, f"{action} {{target}}").format(target=target, other=other)


def _item(phrase: str) -> str:
    """Put a phrase in quotes that the grammar takes for an item only so."""
    return phrase if not phrase or ITEM.fullmatch(phrase) else f'"{phrase}"'


def _new(intent: Intent, other: str) -> str:
    kind = intent.kind.value if intent.kind else "task"
    many = max(intent.count, len(intent.titles))
    under = f" to {other}" if other else ""
    if many > 1:
        plural = intent.kind.plural if intent.kind else "tasks"
        return f"add {many} {plural}{under}" + (f": {', '.join(intent.titles)}" if intent.titles else "")
    title = f' "{intent.titles[0]}"' if intent.titles else ""
    article = "an" if kind == "epic" else "a"
    return f"{'add' if other else 'create'} {article} {kind}{title}{under}"
