"""The machine's own text of the episodic documents, made from what the ledger knows. Pure.

Each list is bounded: the newest in full, of older ones the number and where they are. So the documents stay small,
and nothing is gone: every fact bears a number (`K12`) that `expand` follows to the operation it came from.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from orchestra_mem.core.documents.markdown import front_matter
from orchestra_mem.core.documents.plan_lines import PlanLine, remark_row, render_line, shown_title
from orchestra_mem.core.summaries.kept import state_of
from orchestra_mem.core.text import squeeze
from orchestra_mem.types import Author, DocumentName, MustKeep, MustKeepKind, MustKeepStatus
from orchestra_mem.work_types import WorkItem, WorkKind, WorkStatus

FORMAT = "1"
_BRIEF_CHARS = 120
# What an entry ends with where it is too long for its line; the whole of it stands quoted below.
CUT = " …"
# Characters a token is reckoned at when lists are bounded; English prose has about four, code three.
_CHARS_PER_TOKEN = 3
_NONE = "- None\n"
# How much of the work plan lines of work may take.
_WORK_SHARE = 0.45
_FUTURE_SHARE = 0.1
_TO_DO = (WorkStatus.PENDING, WorkStatus.IN_PROGRESS, WorkStatus.BLOCKED, WorkStatus.FAILED)
# Editors put times of their own into `updated`; texts of earlier releases have nothing else.
_WRITTEN = re.compile(r"^(?:written|updated): (?P<time>[^\r\n]*)", re.MULTILINE)
_HEAD_CHARS = 2_000
# The least by which two dates differ as they are written.
_MOMENT = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """A line of the plan with the machine's remarks below it."""

    line: PlanLine
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """An item that is told of, and what is told."""

    item: WorkItem
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkView:
    """What is known of work when the documents are written.

    `active`, `blocked` and `next` come in the order of the backlog, `done` oldest first. `backlog` is the tree of what
    is to be done, line by line, `future` what is deferred. `counts` are those of all items.
    """

    counts: Mapping[WorkKind, Mapping[WorkStatus, int]]
    active: Sequence[Mention] = ()
    done: Sequence[Mention] = ()
    blocked: Sequence[Mention] = ()
    next: Sequence[Mention] = ()
    backlog: Sequence[PlanRow] = field(default=())
    future: Sequence[PlanRow] = field(default=())

    def count(self, *statuses: WorkStatus) -> int:
        """How many items have one of these statuses."""
        return sum(by_status.get(status, 0) for by_status in self.counts.values() for status in statuses)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectView:
    """What is known when the documents are written.

    `facts` holds the newest must-keeps by kind, oldest first; `counts` how many there are of each kind in all, and
    `standing_counts` how many of those hold now, and `by_hand` how many people have written, whose lines stand anyway.
    `recent` are the newest operations, one line each. `size_tokens` is what a document may hold. `work` is None where
    there is none. Where the decision log is the only document, it has the rules as well, and `origins` says of facts by
    their numbers who has shared them.
    """

    project: str
    updated: datetime | None
    session: str
    size_tokens: int
    operations: int
    sessions: int
    facts: Mapping[MustKeepKind, Sequence[MustKeep]] = field(default_factory=dict)
    counts: Mapping[MustKeepKind, int] = field(default_factory=dict)
    standing_counts: Mapping[MustKeepKind, int] = field(default_factory=dict)
    by_hand: Mapping[MustKeepKind, int] = field(default_factory=dict)
    recent: Sequence[str] = ()
    decisions_in_full: int = 50
    decisions_in_brief: int = 200
    progress_items: int = 30
    work: WorkView | None = None
    only_decisions: bool = False
    origins: Mapping[int, str] = field(default_factory=dict)

    def standing(self, kind: MustKeepKind) -> list[MustKeep]:
        """The facts of a kind that hold now, oldest first."""
        return [fact for fact in self.facts.get(kind, ()) if fact.status is MustKeepStatus.STANDING]


def render_document(name: DocumentName, view: ProjectView) -> str:
    """The machine's text of a document."""
    body = {
        DocumentName.PROJECT_STATE: _project_state,
        DocumentName.WORK_PLAN: _work_plan,
        DocumentName.DECISION_LOG: _decision_log,
    }[name](view)
    time = view.updated.isoformat(timespec="milliseconds") if view.updated else "never"
    known = {"format": FORMAT, "document": name.value, "project": view.project, "written": time, "updated": time}
    front = front_matter(known)
    return f"{front}\n{body}"


def digest(text: str) -> str:
    """The SHA-256 of a document's bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def written_at(text: str) -> str:
    """When the machine wrote a document, as its front matter says; empty where it does not."""
    found = _WRITTEN.search(text, 0, _HEAD_CHARS)
    return found["time"] if found else ""


def timeless(text: str) -> list[str]:
    """The lines that say something: not when the document was last written."""
    return [line for line in text.splitlines() if not line.startswith(("written: ", "updated: ", "**Last Updated**: "))]


def with_later_time(text: str, before: str) -> str:
    """A text that the machine is about to write, dated later than the one before: by the date it is known again.

    Where the clock stood still or was put back, it is dated a moment after that one.
    """
    now = written_at(text)
    try:
        earliest = datetime.fromisoformat(written_at(before)) + _MOMENT
        if datetime.fromisoformat(now) >= earliest:
            return text
    except (ValueError, OverflowError):  # one of them bears no date
        return text
    later = earliest.isoformat(timespec="milliseconds")
    head, _, body = text.partition(f"updated: {now}")
    return f"{head.replace(now, later)}updated: {later}{body}"


def _head(title: str, view: ProjectView) -> str:
    updated = f"{view.updated:%Y-%m-%d %H:%M:%S} UTC" if view.updated else "Never"
    return f"# {title}\n\n**Last Updated**: {updated}\n"


def _project_state(view: ProjectView) -> str:
    failures = view.standing(MustKeepKind.FAILURE)
    blocked = [fact for fact in view.standing(MustKeepKind.OPEN_ITEM) if "block" in fact.text.lower()]
    blockers = sorted([*failures, *blocked], key=lambda fact: fact.id)
    completed = view.standing(MustKeepKind.COMPLETION)
    older, newest = completed[: -view.progress_items], completed[-view.progress_items :]
    progress = [*(fact for fact in older if fact.author is Author.PERSON), *newest]
    active = done = stuck = ""
    if work := view.work:
        active = _mentions(work.active) + _more(work.count(WorkStatus.IN_PROGRESS) - len(work.active))
        done = _mentions(work.done)
        stopped = WorkStatus.BLOCKED, WorkStatus.FAILED
        hidden = work.count(*stopped) - sum(each.item.status in stopped for each in work.blocked)
        stuck = _mentions(work.blocked) + _more(hidden)
    return (
        _head("Project State", view)
        + f"**Session**: {view.session or 'none'}\n"
        + _kind("Rules", MustKeepKind.CONSTRAINT, view, 0.35)
        + _kind("People and Roles", MustKeepKind.ROLE, view, 0.10)
        + (_kind("Insights", MustKeepKind.INSIGHT, view, 0.10) if view.standing(MustKeepKind.INSIGHT) else "")
        + "\n## Active Work\n\n"
        + (active + "".join(view.recent) or _NONE)
        + _section("Recent Progress", progress, view, 0.20, above=done)
        + _section("Blockers", blockers, view, 0.15, above=stuck)
        + _statistics(view)
    )


def _kind(title: str, kind: MustKeepKind, view: ProjectView, share: float) -> str:
    """A section with the facts of a kind, and how many more of it the machine has found."""
    found = view.standing_counts.get(kind, 0) - view.by_hand.get(kind, 0)
    return _section(title, view.standing(kind), view, share, found)


def _statistics(view: ProjectView) -> str:
    rows = [
        ("Operations", view.operations),
        ("Sessions", view.sessions),
        ("Decisions", view.counts.get(MustKeepKind.DECISION, 0)),
        ("Completed", view.counts.get(MustKeepKind.COMPLETION, 0)),
        ("Open Items", view.standing_counts.get(MustKeepKind.OPEN_ITEM, 0)),
        ("Failures Standing", view.standing_counts.get(MustKeepKind.FAILURE, 0)),
    ]
    if work := view.work:
        totals = [(f"Total {kind.plural.capitalize()}", sum(work.counts.get(kind, {}).values())) for kind in WorkKind]
        rows += [total for total in totals if total[1]]
        rows.append(("Work Done", work.count(WorkStatus.DONE)))
        rows.append(("Work In Progress", work.count(WorkStatus.IN_PROGRESS)))
        rows.append(("Work Blocked", work.count(WorkStatus.BLOCKED)))
    return "\n## Statistics\n\n" + "".join(f"- **{name}**: {count:,}\n" for name, count in rows)


def _work_plan(view: ProjectView) -> str:
    items = view.standing(MustKeepKind.OPEN_ITEM)
    deferred = [
        fact
        for fact in view.standing(MustKeepKind.DECISION)
        if re.search(r"\b(?:defer(?:red|ring|s)?|postpone[ds]?|postponing)\b", fact.text, re.IGNORECASE)
    ]
    work, room = view.work, view.size_tokens * _CHARS_PER_TOKEN
    # Where there is work its items stand first, and what was found in operations below them.
    next_share, backlog_share, future_share = (0.15, 0.15, 0.10) if work else (0.35, 0.45, 0.15)
    upcoming = _mentions(work.next) if work else ""
    backlog = _rows(work.backlog, int(room * _WORK_SHARE), work.count(*_TO_DO)) if work else ""
    future = _rows(work.future, int(room * _FUTURE_SHARE), work.count(WorkStatus.DEFERRED)) if work else ""
    return (
        _head("Work Plan", view)
        + _section("Immediate Next Steps", items[-10:], view, next_share, above=upcoming)
        + _section("Prioritized Backlog" if work else "Backlog", items[:-10], view, backlog_share, above=backlog)
        + _section("Future Work", deferred, view, future_share, above=future)
    )


def _decision_log(view: ProjectView) -> str:
    def entry(fact: MustKeep) -> str:
        return _decision_entry(fact) + view.origins.get(fact.id, "")

    decisions = list(view.facts.get(MustKeepKind.DECISION, ()))
    total = max(view.counts.get(MustKeepKind.DECISION, 0), len(decisions))
    full = _best(decisions, entry, view.decisions_in_full, view, 0.7)
    shown = {fact.id for fact in full}
    rest = [fact for fact in decisions if fact.id not in shown]
    brief = _best(rest, _decision_line, view.decisions_in_brief, view, 0.25)
    hidden = total - view.by_hand.get(MustKeepKind.DECISION, 0) - len(full) - len(brief)
    text = _head("Decision Log", view)
    if hidden > 0:
        said = "1 more decision is" if hidden == 1 else f"{hidden:,} more decisions are"
        text += f"\n{said} kept in the ledger: `orchestra-mem facts --kind decision`.\n"
    if brief:
        text += "\n## Older Decisions\n\n" + "".join(map(_decision_line, brief))
    if view.only_decisions:
        text += "\n## Rules\n\n" + ("".join(map(entry, view.standing(MustKeepKind.CONSTRAINT))) or _NONE)
    return text + "\n## Decisions\n\n" + ("".join(map(entry, full)) or _NONE)


def _decision_entry(fact: MustKeep) -> str:
    text = squeeze(fact.text)
    heading, more = (text, "") if len(text) <= _BRIEF_CHARS else (brief(text), f"> {text}\n\n")
    if state := state_of(fact).strip(" ()"):
        more += f"*{state[0].upper()}{state[1:]}.*\n\n"
    return f"### [{fact.timestamp:%Y-%m-%d %H:%M:%S}] {heading} (K{fact.id})\n\n{more}"


def _decision_line(fact: MustKeep) -> str:
    return f"- [{fact.timestamp:%Y-%m-%d}] {brief(squeeze(fact.text))} (K{fact.id}){state_of(fact)}\n"


def brief(text: str, most_chars: int = _BRIEF_CHARS) -> str:
    """Cut a text that is too long for its line between words."""
    return text if len(text) <= most_chars else text[:most_chars].rsplit(" ", 1)[0] + CUT


def _section(
    title: str, facts: Sequence[MustKeep], view: ProjectView, share: float, total: int = 0, above: str = ""
) -> str:
    """A section with the weightiest facts of a list, as many as its share of the document holds, below other lines."""
    shown = _best(facts, _fact_line, len(facts), view, share)
    more = max(total, len(facts)) - len(shown)
    kinds = "".join(dict.fromkeys(f" --kind '{fact.kind.value}'" for fact in facts[:1]))
    note = f"- … and {more:,} more: `orchestra-mem facts{kinds}`\n" if more > 0 else ""
    return f"\n## {title}\n\n" + (above + note + "".join(map(_fact_line, shown)) or _NONE)


def _fact_line(fact: MustKeep) -> str:
    return f"- {squeeze(fact.text)} (K{fact.id}){state_of(fact)}\n"


def _best(
    facts: Sequence[MustKeep], line: Callable[[MustKeep], str], most: int, view: ProjectView, share: float
) -> list[MustKeep]:
    """The facts that a person has reworded, then the weightiest, of equal ones the newest; as many as fit into a share.

    Those of the result stand oldest first. What the machine finds takes no place from a person's words, whatever it
    weighs.
    """
    room = int(view.size_tokens * _CHARS_PER_TOKEN * share)
    chosen: list[MustKeep] = []
    for fact in sorted(facts, key=lambda fact: (fact.author is not Author.PERSON, -fact.weight, -fact.id)):
        room -= len(line(fact))
        if len(chosen) == most or (room < 0 and chosen):
            break
        chosen.append(fact)
    return sorted(chosen, key=lambda fact: fact.id)


def _mentions(told: Iterable[Mention]) -> str:
    """Items in a list, without a box."""
    return "".join(
        f'- {each.item.kind.capitalize()} #{each.item.id} "{shown_title(each.item.title)}"'
        f"{f': {each.words}' if each.words else ''}\n"
        for each in told
    )


def _rows(rows: Sequence[PlanRow], room: int, total: int) -> str:
    """The first of some lines of work, in so many characters, and how many more there are of a total that is open."""
    shown: list[str] = []
    for row in rows:
        lines = [render_line(row.line), *(remark_row(text, row.line.indent + 2) for text in row.remarks)]
        text = "".join(f"{line}\n" for line in lines)
        room -= len(text)
        if room < 0 and shown:
            break
        shown.append(text)
        total -= not (row.line.ticked or row.line.struck)
    return "".join(shown) + _more(total)


def _more(count: int) -> str:
    return f"- … and {count:,} more: `orchestra-mem work`\n" if count > 0 else ""
