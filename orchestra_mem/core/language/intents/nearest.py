"""What is said where a line was not understood: why, and which commands come nearest."""

from __future__ import annotations

import re

from orchestra_mem.core.language.intents.courtesies import strip
from orchestra_mem.core.language.intents.likeness import likely_actions
from orchestra_mem.core.language.intents.mending import nearest_word
from orchestra_mem.core.language.intents.normalising import Clause
from orchestra_mem.core.language.intents.rules import destructive_words
from orchestra_mem.core.language.intents.types import Action

# How each command is typed.
_USAGE: dict[Action, str] = {
    Action.CREATE: "create an epic for user authentication",
    Action.ADD: "add 3 stories to it: login, signup and MFA",
    Action.RENAME: "rename #12 to Login page",
    Action.START: "start #12",
    Action.FINISH: "finish #12",
    Action.BLOCK: "block #12 on #10",
    Action.UNBLOCK: "unblock #12",
    Action.DEFER: "defer #12 until next week",
    Action.CANCEL: "cancel #12",
    Action.ASSIGN: "assign #12 to Anna",
    Action.PRIORITISE: "set #12 to high priority",
    Action.DEPEND: "#12 depends on #10",
    Action.NOTE: "note on #12: what to remember",
    Action.DECIDE: "we decided to use bcrypt",
    Action.REPORT: "report on #12: all tests pass",
    Action.UNDO: "undo",
    Action.RESUME: "continue with the epic",
    Action.RECENT: "what did we just do?",
    Action.STATUS: "what is the status of epic 5?",
    Action.WHY: "why did we choose bcrypt?",
    Action.NEXT: "what is next?",
    Action.FIND: "find bcrypt",
    Action.LIST: "list the blocked tasks",
    Action.HELP: "help",
    Action.QUIT: "quit",
}
_CONDITION = re.compile(r"\b(?:if|unless|in case|as soon as|once|when|whenever|until|provided|assuming|suppose)\b")
_NEGATION = re.compile(r"\b(?:not|never|no|without|stop|avoid|nobody)\b")
_NUMBER = re.compile(r"(?<!\w)#?(\d+)\b")
_MOST = 3


def nearest_commands(clause: Clause) -> tuple[str, ...]:
    """Give up to three commands, the likeliest first, as one would type them."""
    stripped = strip(clause).clause
    if mistyped := _mistyped(stripped):
        return mistyped
    numbers = _NUMBER.findall(clause.said)
    usages = [_USAGE[action] for action in likely_actions(clause.said)[:_MOST]]
    return tuple([usage.replace("#12", f"#{numbers[0]}") if numbers else usage for usage in usages])


def why_not(clause: Clause) -> str:
    """Say in a sentence why nothing is done."""
    stripped = strip(clause)
    text = stripped.clause.text
    said = clause.said if len(clause.said) <= 80 else f"{clause.said[:79]}…"
    for word in text.split()[:3]:
        near = nearest_word(word, destructive_words()) if word.isalpha() else None
        if near and near[1]:
            return f'"{word}" may stand for "{near[0]}"; that is only done where it is spelt out'
    if _CONDITION.search(text):
        return f'"{said}" hangs on a condition; only what is to be done now can be done'
    if _NEGATION.search(text):
        return f'"{said}" says what not to do'
    if stripped.question:
        return f'"{said}" is a question that is not known here; nothing was changed'
    return f'"{said}" was not understood'


def _mistyped(clause: Clause) -> tuple[str, ...]:
    """The command as it would be with a destructive word spelt right."""
    words = clause.text.split()
    for place, word in enumerate(words[:2]):
        near = nearest_word(word, destructive_words()) if word.isalpha() and len(word) > 3 else None
        if near and near[1]:
            rest = clause.between(place + 1).said
            return (f"{near[0]} {rest}".strip(),)
    return ()
