"""Types for commands and questions in a line of text: actions, intents, and the result of reading a line."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orchestra_mem.work_types import WorkKind


class Action(StrEnum):
    """A kind of command or question."""

    CREATE = "create"
    ADD = "add"
    RENAME = "rename"
    START = "start"
    FINISH = "finish"
    BLOCK = "block"
    UNBLOCK = "unblock"
    STOP = "stop"
    DEFER = "defer"
    CANCEL = "cancel"
    ASSIGN = "assign"
    PRIORITISE = "prioritise"
    DEPEND = "depend"
    NOTE = "note"
    DECIDE = "decide"
    REPORT = "report"
    UNDO = "undo"
    RESUME = "resume"
    RECENT = "recent"
    STATUS = "status"
    WHY = "why"
    NEXT = "next"
    FIND = "find"
    LIST = "list"
    HELP = "help"
    QUIT = "quit"


DESTRUCTIVE = frozenset({Action.CANCEL, Action.UNDO})
NEW = frozenset({Action.CREATE, Action.ADD})
TELLING = frozenset({Action.NOTE, Action.DECIDE, Action.REPORT})  # keep a text, and change only items that they name
ASKS = frozenset(
    {Action.RECENT, Action.STATUS, Action.WHY, Action.NEXT, Action.FIND, Action.LIST, Action.HELP, Action.QUIT}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One command or question in a line.

    `kind` is the kind of the new items or of the items to list, None if not given. `count` is the number of new items,
    0 if not given. `target` and `other` are referring phrases as typed, "" if absent: `target` is the item to change
    or to ask about; `other` is the blocker, the dependency, or the parent of new items. An `add` with a target moves
    the target under `other`. `value` is the assignee ("me" for the speaker, "" for nobody), the priority ("1" to "5",
    "higher", "lower"; for new items only a number), the new title, the time, the reason, the search query, or the text
    of a note, decision or report. `sure` is the confidence, 0 to 1: 1 for an intent read by the grammar, else the
    action's probability for the classifier.
    """

    action: Action
    kind: WorkKind | None = None
    count: int = 0
    titles: tuple[str, ...] = ()
    target: str = ""
    other: str = ""
    value: str = ""
    sure: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The result of reading a line.

    `understood` is True if the grammar read the entire line. Otherwise `intents` is only the best suggestion, empty if
    the line seems to ask for nothing, and `nearest` holds commands as a user would type them, likeliest first.
    """

    intents: tuple[Intent, ...]
    understood: bool
    nearest: tuple[str, ...] = ()
