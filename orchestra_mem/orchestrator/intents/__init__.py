"""What a line can ask for: actions, intents, and how well a line was understood."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orchestra_mem.work_types import WorkKind


class Action(StrEnum):
    """What is to be done or told."""

    CREATE = "create"
    ADD = "add"
    RENAME = "rename"
    START = "start"
    FINISH = "finish"
    BLOCK = "block"
    UNBLOCK = "unblock"
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
ASKS = frozenset(
    {Action.RECENT, Action.STATUS, Action.WHY, Action.NEXT, Action.FIND, Action.LIST, Action.HELP, Action.QUIT}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One thing that a line asks for.

    `kind` is that of what is new, else the one that the target names. `count` is how many are new, 0 where none is
    said. `target` and `other` are referring phrases as they were said, "" where there is none: the target is what is
    changed or asked about; the other is the blocker, the dependency, or the parent of what is new. An `add` with a
    target moves that under the other. `value` is the
    assignee ("me" for the speaker, "" for nobody), the priority ("1" to "5", "higher", "lower"; of something new as
    well), the new title, the time or the reason, the text of a note, decision or report, or the words of a query.
    `sure` is 0 to 1: 1 where every word was read as it stands, less where words were mended, a phrase without
    article, number or kind was taken for a title, or a question was told by single words of it.
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
    """What a line was read as.

    `understood` is whether all of the line was; where it is not, `intents` are those of the part that was, and
    `nearest` are commands as one would type them, the likeliest first.
    """

    intents: tuple[Intent, ...]
    understood: bool
    nearest: tuple[str, ...] = ()
