"""Paths of session documents, and the structured summary and closing sections of a session, made by extraction."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from pathlib import Path

from orchestra_mem.core.documents.entries import label
from orchestra_mem.core.documents.episodic import NONE, Mention, WorkView
from orchestra_mem.core.fact_kinds import CLOSING_ROWS, KIND_ROWS
from orchestra_mem.core.repetition import as_said
from orchestra_mem.core.text import squeeze
from orchestra_mem.ports import DocumentStore, TokenCounter
from orchestra_mem.stores import EventLog, Ledger
from orchestra_mem.types import Json, MustKeepStatus, OperationFilter, Session, SessionStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPaths:
    """Paths of session documents in `folder`, the project's name, and the maximum length of an entry."""

    folder: Path
    project: str
    entry_chars: int

    def document(self, session: Session) -> Path:
        """Return the path of a running session's document."""
        return self.folder / f"session_{session.id}.md"

    def archive(self, session: Session) -> Path:
        """Return the path of an ended session's document, or the path it will get."""
        if session.archive:
            return self.folder / session.archive
        return self.folder / "archive" / f"session_{session.started:%Y%m%d_%H%M%S}_{session.id[:8]}.md"

    def present(self, session: Session) -> Path:
        """Return the present path of a session's document."""
        return self.archive(session) if session.status is SessionStatus.ARCHIVED else self.document(session)

    def in_archive(self, session: Session, store: DocumentStore) -> tuple[Path, bool]:
        """Return the archive path of a flushed session's document, and whether the document has been moved there.

        A number is added to a name that is taken. If an older database was restored, the archive may already hold a
        later document of the same session.
        """
        waits = store.state(self.document(session)) is not None
        target = first = self.archive(session)
        taken: Path | None = None
        number = 1
        while store.state(target) is not None:
            taken, number = target, number + 1
            target = first.with_stem(f"{first.stem}_{number}")
        return (target, False) if waits or taken is None else (taken, True)


_MOST = 50
# Key for a model's lines that the fact classifier did not confirm as belonging to one of the lists.
NOTED = "also_noted"
_ISSUES = re.compile(r"^\*\*Issues\*\*: .*$", re.MULTILINE)


def summarise_session(log: EventLog, ledger: Ledger, session: Session, work: WorkView | None = None) -> dict[str, Json]:
    """Return a session's structured summary, with the keys of the source design (section 3.3).

    Each list has at most the fifty newest entries. `work` is the state of work at the session's end, None without work
    items: finished items count as accomplishments, upcoming items as next steps. The facts of the session's operations
    must have been extracted before.
    """
    counts = log.type_counts(session.id)
    total = sum(count for count, _ in counts.values())
    standing = _standing(log, ledger, session)
    lists = {row.closing_key: standing[row.closing_title] for row in CLOSING_ROWS.values()}
    if work:
        finished = [each for each in work.done if (each.item.finished or session.started) >= session.started]
        lists["key_accomplishments"] += _told(finished)
        lists["recommended_next_steps"] += _told(work.next)
    kinds = ", ".join(f"{count:,} {label(kind)}" for kind, (count, _) in sorted(counts.items(), key=lambda i: -i[1][0]))
    changes = f"{total:,} operations ({kinds or 'none'}): " + ", ".join(
        f"{len(lists[row.closing_key]):,} {row.counted_as}" for row in CLOSING_ROWS.values()
    )
    shown: dict[str, Json] = {key: [*found[-_MOST:]] for key, found in lists.items()}
    steps = shown.pop("recommended_next_steps")  # the last key of the source design
    return {"total_operations": total, **shown, "project_state_changes": changes, "recommended_next_steps": steps}


def _standing(log: EventLog, ledger: Ledger, session: Session) -> dict[str, list[str]]:
    """Return the facts of a session's operations that hold, the newest last, by the titles of their lists."""
    newest = log.operations(OperationFilter(session=session.id, limit=1))
    first = log.first_operation(session.id)
    facts = ledger.must_keeps(first_operation=first, last_operation=newest[-1].id) if newest else []
    standing = [fact for fact in facts if fact.status is MustKeepStatus.STANDING]
    told = {(fact.kind, as_said(fact.text)): fact for fact in standing}.values()  # once what was said again
    return {
        row.closing_title: [squeeze(fact.text) for fact in told if fact.kind is kind] for kind, row in KIND_ROWS.items()
    }


def _told(mentions: Sequence[Mention]) -> list[str]:
    return [f"{each.item.name}: {each.words}" if each.words else each.item.name for each in mentions]


def closing_sections(
    log: EventLog, ledger: Ledger, session: Session, window_tokens: int, work: WorkView | None = None
) -> str:
    """Return the sections that are appended to the document when its session ends.

    Besides the lists of `summarise_session` they have those of rules, roles and insights, unless there are none.
    """
    summary = summarise_session(log, ledger, session, work)
    counts = log.type_counts(session.id)
    tokens = sum(used for _, used in counts.values())
    kinds = ", ".join(f"{count:,} {label(kind)}" for kind, (count, _) in counts.items()) or "none"
    issues = summary["issues_encountered"]
    lists = [f"**{row.closing_title}**:\n{_bullets(summary[row.closing_key])}" for row in CLOSING_ROWS.values()]
    if work:
        state = (("Active Work", work.active), ("Blockers", work.blocked))
        lists = [*(f"**{title}**:\n{_bullets([*_told(told)])}" for title, told in state), *lists]
    standing = _standing(log, ledger, session)
    others = [row.closing_title for row in KIND_ROWS.values() if not row.closing_key and standing[row.closing_title]]
    lists += [f"**{title}**:\n{_bullets([*standing[title][-_MOST:]])}" for title in others]
    return (
        f"## Session Summary\n\n**Total Operations**: {summary['total_operations']:,}\n**Commands**: {kinds}\n"
        f"**Tokens Used**: {tokens:,} in all; the window holds {window_tokens:,}\n"
        f"**Issues**: {len(issues) if isinstance(issues, list) and issues else 'None'}\n\n---\n\n"
        "## Current State\n\n" + "\n".join(lists)
    )


def note_closing(
    log: EventLog, ledger: Ledger, counter: TokenCounter, session: Session, closing: str, now: datetime
) -> None:
    """Store the closing sections in the ledger as the session's summary, unless the session has one already.

    Closing sections with more tokens than the session's operations are no summary and are not stored.
    """
    if not session.spilled_through or any(not each.document for each in ledger.level_zero_summaries(session.id)):
        return
    first, last = log.first_operation(session.id), session.spilled_through
    counts = log.type_counts(session.id).values()
    tokens, source_tokens = counter.count(closing), sum(used for _, used in counts)
    if tokens > source_tokens:
        return
    from orchestra_mem.core.summaries.drafts import Draft

    made = Draft(text=closing, tokens=tokens, source_tokens=source_tokens).summary(
        id=ledger.next_summary_id(), session=session.id, level=0, first_operation=first, last_operation=last,
        operation_count=sum(count for count, _ in counts), since=log.operation(first).timestamp,
        until=log.operation(last).timestamp, created=now,
    )  # fmt: skip
    ledger.add_summaries([made])


def with_lines(closing: str, new: Mapping[str, Sequence[str]]) -> str:
    """Append lines to the lists of the closing sections. `new` has the keys of `summarise_session` and `NOTED`."""
    titles = {row.closing_key: row.closing_title for row in CLOSING_ROWS.values()}
    for key, lines in new.items():
        if key == NOTED:
            before, heading, after = closing, "\n**Also Noted**:\n", ""
        else:
            before, heading, after = closing.partition(f"**{titles[key]}**:\n")
        if not heading or not lines:
            continue
        rest = after.splitlines(keepends=True)
        there = list(takewhile(lambda line: line.startswith("- "), rest))
        items = [*(line for line in there if line != NONE), *(f"- {squeeze(line)}\n" for line in lines)]
        closing = f"{before}{heading}{''.join([*items, *rest[len(there) :]])}"
        if key == "issues_encountered":
            closing = _ISSUES.sub(f"**Issues**: {len(items)}", closing, count=1)
    return closing


def _bullets(items: Json) -> str:
    return "".join(f"- {squeeze(str(item))}\n" for item in items) if isinstance(items, list) and items else NONE
