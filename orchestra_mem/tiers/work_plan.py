"""The work plan in both directions: show the tracker's items in documents, and apply people's edits to the tracker.

Each edit is applied once: the ledger keeps the text that was last read. Reading the same text again, in any process,
therefore finds no edits, and an old edit does not undo later changes by the machine.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

from orchestra_mem.core.documents.episodic import WorkView
from orchestra_mem.core.documents.markdown import Block
from orchestra_mem.core.documents.plan_lines import (
    BACKLOG,
    FUTURE,
    PlanLine,
    item_line,
    parse_row,
    plan_lines,
    reference_now,
    remark_number,
    render_line,
)
from orchestra_mem.core.documents.signature import digest
from orchestra_mem.core.text import squeeze
from orchestra_mem.errors import NotFoundError
from orchestra_mem.ports import Clock
from orchestra_mem.stores import Ledger
from orchestra_mem.tiers.edited_text import EditedText
from orchestra_mem.types import Author, DocumentName, Notice
from orchestra_mem.work_types import WorkFilter, WorkItem, WorkStatus, WorkTracker

logger = logging.getLogger(__name__)

_PLAN_FILE = DocumentName.WORK_PLAN.value
_SUBJECT = "work item #"
_PLAN = "work plan"
# How long a notice about an item is shown.
_TOLD_FOR = timedelta(days=1)
_LOOKED_BACK = 200


@dataclass(slots=True, kw_only=True, eq=False)
class WorkPlan:
    """Shows the tracker's items in the documents, and applies edits of `work_plan.md` to the tracker."""

    tracker: WorkTracker
    ledger: Ledger
    clock: Clock
    _shown: tuple[int, ...] = field(default=(), init=False)
    _seen: tuple[object, WorkView] | None = field(default=None, init=False)
    # Cache of `corrected`: the newest event's id, and corrected texts of blocks by their text in the document.
    _corrected_texts: tuple[int, dict[str, str]] = field(default_factory=lambda: (0, {}), init=False)

    # Showing

    def view(self) -> WorkView | None:
        """Return the work to show, None if there are no work items; cached as long as nothing changes."""
        newest = self.tracker.events(limit=1)
        if not newest:
            return None
        self._settle()
        remarks: dict[int, tuple[str, ...]] = {}
        for notice in self._notices():
            number = _number(notice)
            remarks[number] = (*remarks.get(number, ()), notice.text)
        state = newest[-1].id, self._shown, remarks
        if self._seen is None or self._seen[0] != state:
            from orchestra_mem.tiers.work_plan_sync import Overview

            self._seen = state, Overview(self.tracker, self._shown, remarks).view()
        return self._seen[1]

    def corrected(self, blocks: Sequence[Block]) -> tuple[Block, ...]:
        """Return blocks for a context: plan lines show their item's present state, outdated mentions are left out."""
        newest = self.tracker.events(limit=1)
        if newest and self._corrected_texts[0] != newest[-1].id:
            self._corrected_texts = newest[-1].id, {}
        # A `#` may also be a heading's. Corrected texts are cached, so a closer look would save nothing.
        return tuple(self._corrected(block) if newest and "#" in block.text else block for block in blocks)

    def _corrected(self, block: Block) -> Block:
        if block.text not in self._corrected_texts[1]:
            is_work = block.level == 2 and block.title.strip().lower() in (BACKLOG, FUTURE)
            rows = [self._line_now(row) if is_work else row for row in block.text.split("\n")]
            now = [said for row in rows if (said := reference_now(row, self._status)) is not None]
            self._corrected_texts[1][block.text] = "\n".join(now)
        return replace(block, text=self._corrected_texts[1][block.text])

    def _line_now(self, row: str) -> str:
        """Return a plan line with its item's present box, status and progress; return any other row unchanged."""
        line = parse_row(row.strip())
        item = self._item(line.number) if line and line.number and line.names_kind else None
        if line is None or item is None:
            return row
        blockers = self.tracker.blockers(item.id) if item.status.is_open and item.depends_on else ()
        waits = tuple(each.id for each in blockers)
        progress = self.tracker.progress(item.id).words if line.progress else ""
        shown = item_line(item, waits_for=waits, progress=progress)
        now = replace(
            line, ticked=shown.ticked, struck=shown.struck, status=shown.status, waits_for=waits, progress=progress
        )
        if now == line:
            return row
        return f"{row[: len(row) - len(row.lstrip())]}{render_line(now)}{row[len(row.rstrip()) :]}"

    def _item(self, number: int) -> WorkItem | None:
        with suppress(NotFoundError):
            return self.tracker.item(number)
        return None

    def _status(self, number: int) -> WorkStatus | None:
        item = self._item(number)
        return item.status if item else None

    def _notices(self) -> list[Notice]:
        return [notice for notice in self.ledger.notices() if notice.subject.startswith(_SUBJECT)]

    def _settle(self) -> None:
        """Resolve notices that are outdated."""
        for notice in self._notices():
            item = self._item(_number(notice))
            is_old = item and (item.changed > notice.time or self.clock() - notice.time > _TOLD_FOR)
            if is_old or (item is None and _number(notice) not in self._shown):
                self.ledger.resolve_notices(notice.subject, self.clock())

    # Reading

    def wordings_by_number(self) -> dict[str, list[str]]:
        """Return the title of each item by its number, such as `#5`, below its parent's title."""
        items = self.tracker.items(WorkFilter())
        titles = {item.id: squeeze(item.title) for item in items}
        return {f"#{item.id}": [f"{titles.get(item.parent or 0, '')}\n{titles[item.id]}"] for item in items}

    def numbered(self, text: str) -> str:
        """Return the plan with item numbers added to lines of work; everything else stays byte for byte.

        A new line gets the number of the item created for it; a line whose number was deleted gets it back.
        """
        # `has_work(text)` would be wrong: a text from before the first item lacks the heading that `has_work` needs.
        lines = plan_lines(text) if self.tracker.events(limit=1) else ()
        if all(line.number for line in lines):
            return text
        # Imported here, as few programs read edits of the plan.
        from orchestra_mem.core.documents.plan_edits import with_item_numbers

        taken = {line.number for line in lines}
        known = (self.ledger.last_read(_PLAN_FILE).text, self.ledger.written(_PLAN_FILE).left or "")
        before = [line for each in known for line in plan_lines(each) if line.number]
        created = self._created_last()
        given: dict[int, int] = {}

        def number_of(line: PlanLine) -> int:
            parent = given.get(line.under, -1) if line.parent is None else line.parent
            # Items that no plan has shown yet match only under the same parent: titles may repeat elsewhere.
            known = [*before, *(each for each in created if each.parent == parent)]
            number = given[line.place] = _namesake(replace(line, parent=parent), known, taken) or -1
            taken.add(number)
            return max(number, 0)

        return with_item_numbers(text, number_of)

    def _created_last(self) -> list[PlanLine]:
        """Return the lines of open items that people created lately, to recognise lines that have lost their numbers.

        An item cancelled by deleting its line counts as open: the line may come back from a text without its number.
        """
        events = self.tracker.events(limit=_LOOKED_BACK)
        created = [each.item for each in events if each.field == "created" and each.author is Author.PERSON]
        there = [item for item in map(self.tracker.item, created) if item.status.is_open or self.is_taken_out(item.id)]
        return [item_line(item, depth=int(item.parent is not None)) for item in there]

    def is_taken_out(self, number: int) -> bool:
        """Check whether an item is cancelled because its line was deleted, and nothing has changed its status since."""
        from orchestra_mem.tiers.work_plan_sync import TAKEN_OUT

        events = self.tracker.events(number) if self._status(number) is WorkStatus.CANCELLED else ()
        return [event.reason for event in events if event.field == "status"][-1:] == [TAKEN_OUT]

    def apply_edits(self, text: EditedText) -> int:
        """Apply the edits made to the plan since it was last read, and record that it has been read.

        Returns:
            The number of changed work items.

        Raises:
            StorageError: The tracker or the ledger cannot be written.
        """
        if not text.has_work:
            self.ledger.note_read(_PLAN_FILE, text.as_read)
            return 0
        from orchestra_mem.core.documents.plan_edits import plan_edits, with_item_numbers
        from orchestra_mem.tiers.work_plan_sync import WorkEditor

        edits = plan_edits(text.before, text.said, self._known)
        self._shown = _numbers(text.said)
        self._resolve_deleted_remarks(text.before, text.said)
        editor = WorkEditor(self.tracker, self._tell)
        # One transaction for the changes and the record of the read: a crash in between leaves neither.
        with self.tracker.together() as made:
            editor.apply(edits)
            said = with_item_numbers(text.said, lambda line: editor.created.get(-1 - line.place, 0))
            self.ledger.note_read(_PLAN_FILE, replace(text.as_read, text=said))
        if made:
            logger.info("applied edits of the work plan: %d changes of work items", len(made))
        return len({event.item for event in made})

    def note_shown_items(self, text: str) -> None:
        """Remember which items the plan shows, and resolve the plan's own notices once all lines have numbers."""
        read = self.ledger.last_read(_PLAN_FILE)
        said = read.text if read.file == digest(text) else text
        lines, self._shown = plan_lines(said), _numbers(said)
        are_numbered = lines and all(line.number for line in lines)
        if are_numbered and any(notice.subject == _PLAN for notice in self.ledger.notices()):
            self.ledger.resolve_notices(_PLAN, self.clock())

    def _known(self, number: int) -> PlanLine | None:
        item = self._item(number)
        return item_line(item) if item else None

    def _resolve_deleted_remarks(self, before: str, said: str) -> None:
        """Resolve the notices of items whose remarks people have deleted from the plan."""
        if "<!-- " not in before:
            return
        gone = _remarks(before) - _remarks(said)
        for number in gone.intersection(self._shown):
            self.ledger.resolve_notices(f"{_SUBJECT}{number}", self.clock())

    def _tell(self, number: int, text: str) -> None:
        if self.ledger.add_notice(f"{_SUBJECT}{number}" if number else _PLAN, text, self.clock()):
            logger.warning("%s", text)


def _namesake(line: PlanLine, known: Sequence[PlanLine], taken: set[int]) -> int:
    """Return the untaken number of a known line with the same title, preferably under the same parent; 0 if none."""
    found = [each for each in known if each.title == line.title and each.number not in taken]
    same = [each for each in found if each.parent == line.parent]
    return next((each.number for each in [*same, *found]), 0)


def _number(notice: Notice) -> int:
    return int(notice.subject.removeprefix(_SUBJECT))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(line.number for line in plan_lines(text) if line.number))


def _remarks(text: str) -> set[int]:
    return {number for row in text.split("\n") if (number := remark_number(row))}
