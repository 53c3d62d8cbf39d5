"""The work plan both ways: what it shows of the tracker's items, and what people say by editing it.

Edits are taken in once: what was read last is kept beside the machine's own text, so that reading it again, here or in
another process, says nothing new, and what the machine does afterwards is not undone by an edit from before.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

from orchestra_mem.core.documents.episodic import WorkView, digest
from orchestra_mem.core.documents.markdown import Block
from orchestra_mem.core.documents.plan_lines import (
    BACKLOG,
    FUTURE,
    PlanLine,
    has_work,
    item_line,
    parse_row,
    plan_lines,
    reference_now,
    remark_number,
    render_line,
)
from orchestra_mem.errors import NotFoundError
from orchestra_mem.ports import Clock, Ledger
from orchestra_mem.tiers.document_writer import PersonText
from orchestra_mem.types import Author, DocumentName, Notice
from orchestra_mem.work_types import WorkStatus, WorkTracker

logger = logging.getLogger(__name__)

_PLAN_FILE = DocumentName.WORK_PLAN.value
_SUBJECT = "work item #"
_PLAN = "work plan"
_WAITS = "before what it waits for"
_FREE = "was ticked while it waited for others; these are closed now, so it can be ticked again"
# What only informs is told for so long.
_TOLD_FOR = timedelta(days=1)
_LOOKED_BACK = 200


@dataclass(slots=True, kw_only=True, eq=False)
class WorkPlan:
    """Shows the tracker's work in the documents, and does to it what people say in `work_plan.md`."""

    tracker: WorkTracker
    ledger: Ledger
    clock: Clock
    _shown: tuple[int, ...] = field(default=(), init=False)
    _seen: tuple[object, WorkView] | None = field(default=None, init=False)
    # What blocks say after the newest event, by what they say in the document.
    _told: tuple[int, dict[str, str]] = field(default_factory=lambda: (0, {}), init=False)

    # Showing

    def view(self) -> WorkView | None:
        """What there is to show; None where there is no work.

        Asks again only where something has changed since the last time.
        """
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
        """Blocks as a context shows them: what they say of items is how those stand now, whoever has changed them."""
        newest = self.tracker.events(limit=1)
        if newest and self._told[0] != newest[-1].id:
            self._told = newest[-1].id, {}
        return tuple(self._corrected(block) if newest and "#" in block.text else block for block in blocks)

    def _corrected(self, block: Block) -> Block:
        if block.text not in self._told[1]:
            is_work = block.level == 2 and block.title.strip().lower() in (BACKLOG, FUTURE)
            rows = [self._line_now(row) if is_work else row for row in block.text.split("\n")]
            now = [said for row in rows if (said := reference_now(row, self._status)) is not None]
            self._told[1][block.text] = "\n".join(now)
        return replace(block, text=self._told[1][block.text])

    def _line_now(self, row: str) -> str:
        """A line of work with the box and the words that its item has by now; any other row as it is."""
        line = parse_row(row.strip())
        if line is None or not (line.number and line.told):
            return row
        with suppress(NotFoundError):
            item, progress = self.tracker.item(line.number), self.tracker.progress(line.number)
            waits = tuple(each.id for each in self.tracker.blockers(item.id)) if item.status.is_open else ()
            told = f"{progress.done} of {progress.total} done" if line.progress and progress.total else ""
            shown = item_line(item, waits_for=waits, progress=told)
            now = replace(
                line, ticked=shown.ticked, struck=shown.struck, status=shown.status, waits_for=waits, progress=told
            )
            if now != line:
                return f"{row[: len(row) - len(row.lstrip())]}{render_line(now)}{row[len(row.rstrip()) :]}"
        return row

    def _status(self, number: int) -> WorkStatus | None:
        with suppress(NotFoundError):
            return self.tracker.item(number).status
        return None

    def _notices(self) -> list[Notice]:
        return [notice for notice in self.ledger.notices() if notice.subject.startswith(_SUBJECT)]

    def _settle(self) -> None:
        """Take back what has been told and holds no longer, as the item has changed since or time has passed."""
        for notice in self._notices():
            try:
                item = self.tracker.item(_number(notice))
            except NotFoundError:
                if _number(notice) not in self._shown:
                    self.ledger.resolve_notices(notice.subject, self.clock())
                continue
            waited = _WAITS in notice.text
            if waited and item.status.is_open and not self.tracker.blockers(item.id):
                self.ledger.resolve_notices(notice.subject, self.clock())
                self._tell(item.id, f"{item.name} {_FREE}")
            elif item.changed > notice.time or (not waited and self.clock() - notice.time > _TOLD_FOR):
                self.ledger.resolve_notices(notice.subject, self.clock())

    # Reading

    def numbered(self, text: str) -> str:
        """A plan in which new lines of work bear the numbers that they got; all else stays byte for byte.

        A line whose number somebody has taken away gets it back.
        """
        # A text may lack the heading of work, as one does that was written before there was any.
        lines = plan_lines(text) if self.tracker.events(limit=1) else ()
        if all(line.number for line in lines):
            return text
        # Here, as few programs read work that people have put into the plan.
        from orchestra_mem.core.documents.plan_edits import with_item_numbers

        taken = {line.number for line in lines}
        known = (self.ledger.last_read(_PLAN_FILE).text, self.ledger.written(_PLAN_FILE).left or "")
        before = [line for each in known for line in plan_lines(each) if line.number]
        created = self._created_last()
        given: dict[int, int] = {}

        def number_of(line: PlanLine) -> int:
            parent = given.get(line.under, -1) if line.parent is None else line.parent
            # Of what no plan has shown only what stands in the same place: others may well be called the same.
            known = [*before, *(each for each in created if each.parent == parent)]
            number = given[line.place] = _namesake(replace(line, parent=parent), known, taken) or -1
            taken.add(number)
            return max(number, 0)

        return with_item_numbers(text, number_of)

    def _created_last(self) -> list[PlanLine]:
        """Lines of what people have made last, but for what is closed: a line put back is no new item.

        One whose line was taken out counts as open: the line may come back from a text that never had its number.
        """
        from orchestra_mem.tiers.work_plan_sync import TAKEN_OUT

        events = self.tracker.events(limit=_LOOKED_BACK)
        taken_out = {event.item: event.reason == TAKEN_OUT for event in events if event.field == "status"}
        created = [
            self.tracker.item(event.item)
            for event in events
            if event.field == "created" and event.author is Author.PERSON
        ]
        return [
            item_line(item, depth=int(item.parent is not None))
            for item in created
            if item.status.is_open or taken_out.get(item.id)
        ]

    def take_in(self, text: PersonText) -> None:
        """Do to the tracker what was said in the plan since it was last read, and note that it was read.

        Raises:
            StorageError: the tracker or the ledger cannot be written.
        """
        if not has_work(text.base):
            self.ledger.note_read(_PLAN_FILE, text.as_read)
            return
        from orchestra_mem.core.documents.plan_edits import plan_edits, with_item_numbers
        from orchestra_mem.tiers.work_plan_sync import WorkEditor

        edits = plan_edits(text.before, text.said, self._known)
        self._shown = _numbers(text.said)
        self._hear(text.before, text.said)
        editor = WorkEditor(self.tracker, self._tell)
        # What was done and that it was read are one: whoever dies in between has done nothing.
        with self.tracker.together() as made:
            editor.apply(edits)
            said = with_item_numbers(text.said, lambda line: editor.created.get(-1 - line.place, 0))
            self.ledger.note_read(_PLAN_FILE, replace(text.as_read, text=said))
        if made:
            logger.info("took in from the work plan: %d changes of work", len(made))

    def look(self, text: str) -> None:
        """Take note of which items the plan shows, and that people need no more be told of lines without a number."""
        read = self.ledger.last_read(_PLAN_FILE)
        said = read.text if read.file == digest(text) else text
        lines, self._shown = plan_lines(said), _numbers(said)
        are_numbered = lines and all(line.number for line in lines)
        if are_numbered and any(notice.subject == _PLAN for notice in self.ledger.notices()):
            self.ledger.resolve_notices(_PLAN, self.clock())

    def _known(self, number: int) -> PlanLine | None:
        try:
            return item_line(self.tracker.item(number))
        except NotFoundError as error:
            self._tell(number, f"work_plan.md: {error}")
            return None

    def _hear(self, before: str, said: str) -> None:
        """Hold people for informed who have taken a remark out."""
        if "<!-- " not in before:
            return
        gone = _remarks(before) - _remarks(said)
        for number in gone.intersection(self._shown):
            self.ledger.resolve_notices(f"{_SUBJECT}{number}", self.clock())

    def _tell(self, number: int, text: str) -> None:
        if self.ledger.add_notice(f"{_SUBJECT}{number}" if number else _PLAN, text, self.clock()):
            logger.warning("%s", text)


def _namesake(line: PlanLine, known: Sequence[PlanLine], taken: set[int]) -> int:
    """The number of the line that says the same and stands nowhere else, under the same item if there is one."""
    found = [each for each in known if each.title == line.title and each.number not in taken]
    same = [each for each in found if each.parent == line.parent]
    return next((each.number for each in [*same, *found]), 0)


def _number(notice: Notice) -> int:
    return int(notice.subject.removeprefix(_SUBJECT))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(line.number for line in plan_lines(text) if line.number))


def _remarks(text: str) -> set[int]:
    return {number for row in text.split("\n") if (number := remark_number(row))}
