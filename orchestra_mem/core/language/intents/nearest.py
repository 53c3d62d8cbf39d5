"""What is said where a line was not understood: why, and which commands come nearest."""

from __future__ import annotations

import re

from orchestra_mem.core.language.intents.courtesies import strip
from orchestra_mem.core.language.intents.mending import nearest_word
from orchestra_mem.core.language.intents.normalising import Clause
from orchestra_mem.core.language.intents.rules import destructive_words
from orchestra_mem.core.language.intents.words import KINDS

# How each command is typed, and the words by which somebody may have looked for it.
_USAGE = {
    "create an epic for user authentication": "create new make epic story task milestone open build",
    "add 3 stories to it: login, signup and MFA": "add stories tasks subtasks under append",
    "rename #12 to Login page": "rename title name call retitle",
    "start #12": "start begin work pick kick open",
    "finish #12": "finish done complete close ship ready mark",
    "block #12 on #10": "block blocked stuck blocker waiting",
    "unblock #12": "unblock unblocked free",
    "defer #12 until next week": "defer postpone later hold park delay push",
    "cancel #12": "cancel drop delete remove scrap abandon kill",
    "assign #12 to Anna": "assign give hand owner take assignee",
    "set #12 to high priority": "priority prioritise urgent important bump raise lower high low",
    "#12 depends on #10": "depend depends needs after before requires",
    "note on #12: what to remember": "note remember write comment remind",
    "we decided to use bcrypt": "decide decided decision choose use agreed",
    "report on #12: all tests pass": "report result took tests outcome",
    "undo": "undo revert back reverse wrong mistake",
    "continue with the epic": "continue resume carry",
    "what did we just do?": "recent last happened did history yesterday changed log",
    "what is the status of epic 5?": "status progress going far state how",
    "why did we choose bcrypt?": "why reason because rationale",
    "what is next?": "next todo left now",
    "find bcrypt": "find search look where about",
    "list the blocked tasks": "list show all which open",
    "help": "help commands",
}
_CONDITION = re.compile(r"\b(?:if|unless|in case|as soon as|once|when|whenever|until|provided|assuming|suppose)\b")
_NEGATION = re.compile(r"\b(?:not|never|no|without|stop|avoid|nobody)\b")
_MOST = 3


def nearest_commands(clause: Clause) -> tuple[str, ...]:
    """Give up to three commands, the likeliest first, as one would type them."""
    stripped = strip(clause).clause
    if mistyped := _mistyped(stripped):
        return mistyped
    words = set(stripped.text.split())
    scored = [(-len(words & set(keys.split())), place, usage) for place, (usage, keys) in enumerate(_USAGE.items())]
    near = [usage for score, _, usage in sorted(scored) if score][:_MOST]
    if not near and words & set(KINDS):
        near = ["list the blocked tasks", "what is the status of epic 5?"]
    return tuple(near) or ("what is next?", "help")


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
