"""Render the machine's text of the episodic documents from the facts in the ledger. No I/O.

Each list is bounded: it shows the most important items, then the number of other items and the command to list them.
Documents stay small and nothing is lost: given a fact's number (`K12`), `expand` returns the operation it comes from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain
from typing import TypeVar

from orchestra_mem.core.documents.markdown import front_matter
from orchestra_mem.core.documents.plan_lines import PlanLine, remark_row, render_line, shown_title
from orchestra_mem.core.documents.signature import NEVER
from orchestra_mem.core.fact_kinds import KIND_ROWS
from orchestra_mem.core.repetition import as_said
from orchestra_mem.core.summaries.kept import state_suffix
from orchestra_mem.core.text import squeeze
from orchestra_mem.types import CUT, Author, DocumentName, MustKeep, MustKeepKind, MustKeepStatus
from orchestra_mem.work_types import WorkItem, WorkKind, WorkStatus

T = TypeVar("T")

FORMAT = "1"
_BRIEF_CHARS = 120
# Estimated characters per token for bounding lists. English prose has about four, code three.
_CHARS_PER_TOKEN = 3
NONE = "- None\n"
# Headings of the project state's sections by the kind of their facts.
_TITLES = {kind: title for kind, row in KIND_ROWS.items() for title in row.headings.get(DocumentName.PROJECT_STATE, ())}
# Shares of the work plan's size for open and for deferred work items.
_WORK_SHARE = 0.45
_FUTURE_SHARE = 0.1
_TO_DO = (WorkStatus.PENDING, WorkStatus.IN_PROGRESS, WorkStatus.BLOCKED, WorkStatus.FAILED)
_BLOCKED = re.compile(r"\bblock(?:ed|ers?|i\w+)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """A line of the work plan, with the machine's remarks to show below it."""

    line: PlanLine
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A work item to mention in a list, and the words that follow its title."""

    item: WorkItem
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkView:
    """Work items for the documents.

    `active`, `blocked` and `next` are in backlog order, `done` is oldest first. `backlog`: Tree of the work to do, line
    by line. `future`: Deferred items. `counts`: Numbers of all items, including those not shown.
    """

    counts: Mapping[WorkKind, Mapping[WorkStatus, int]]
    active: Sequence[Mention] = ()
    done: Sequence[Mention] = ()
    blocked: Sequence[Mention] = ()
    next: Sequence[Mention] = ()
    backlog: Sequence[PlanRow] = field(default=())
    future: Sequence[PlanRow] = field(default=())

    def count(self, *statuses: WorkStatus) -> int:
        """Count the items that have one of these statuses."""
        return sum(by_status.get(status, 0) for by_status in self.counts.values() for status in statuses)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectView:
    """Content for the documents.

    `facts`: Heaviest must-keeps by kind, oldest first, without those in lines that people wrote. Of decisions all, also
    removed ones: a superseded decision in the words of its successor is not listed.
    `counts`, `standing_counts`, `by_hand`: Numbers of all must-keeps by kind, of the active ones, and of those that
    people wrote. `stale`: Numbers of facts too old to be blockers. `recent`: Newest operations, one line each.
    `size_tokens`: Size limit of a document. `work`: None if there is no work. `only_decisions`: Whether the decision
    log is the only document and so contains the rules too. `origins`: Line that says who shared a fact, by fact number.
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
    stale: Container[int] = ()
    recent: Sequence[str] = ()
    decisions_in_full: int = 50
    decisions_in_brief: int = 200
    progress_items: int = 30
    work: WorkView | None = None
    only_decisions: bool = False
    origins: Mapping[int, str] = field(default_factory=dict)

    def standing(self, kind: MustKeepKind) -> list[MustKeep]:
        """Return the active facts of a kind, oldest first."""
        return [fact for fact in self.facts.get(kind, ()) if fact.status is MustKeepStatus.STANDING]

    def found(self, kind: MustKeepKind) -> int:
        """Return the number of all active facts of a kind that the machine found."""
        return self.standing_counts.get(kind, 0) - self.by_hand.get(kind, 0)


def render_document(name: DocumentName, view: ProjectView) -> str:
    """Render the machine's text of a document."""
    body = {
        DocumentName.PROJECT_STATE: _project_state,
        DocumentName.WORK_PLAN: _work_plan,
        DocumentName.DECISION_LOG: _decision_log,
    }[name](view)
    time = view.updated.isoformat(timespec="milliseconds") if view.updated else NEVER
    known = {"format": FORMAT, "document": name.value, "project": view.project, "written": time, "updated": time}
    front = front_matter(known)
    return f"{front}\n{body}"


def _head(title: str, view: ProjectView) -> str:
    updated = f"{view.updated:%Y-%m-%d %H:%M:%S} UTC" if view.updated else "Never"
    return f"# {title}\n\n**Last Updated**: {updated}\n"


def _project_state(view: ProjectView) -> str:
    failures = [fact for fact in view.standing(MustKeepKind.FAILURE) if fact.id not in view.stale]
    blocked = [fact for fact in view.standing(MustKeepKind.OPEN_ITEM) if _BLOCKED.search(fact.text)]
    blocked = [fact for fact in blocked if fact.id not in view.stale]  # the work plan lists the others, too
    blockers = sorted([*failures, *blocked], key=lambda fact: fact.id)
    all_failures = {MustKeepKind.FAILURE: view.found(MustKeepKind.FAILURE)}
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
        + _kind(MustKeepKind.CONSTRAINT, view, 0.35)
        + _kind(MustKeepKind.ROLE, view, 0.10)
        + (_kind(MustKeepKind.INSIGHT, view, 0.10) if view.standing(MustKeepKind.INSIGHT) else "")
        + _section("Active Work", active + "".join(view.recent))
        + _section(_TITLES[MustKeepKind.COMPLETION], done + _listed(progress, view, 0.20))
        + _section(_TITLES[MustKeepKind.FAILURE], stuck + _listed(blockers, view, 0.15, all_failures))
        + _statistics(view)
    )


def _kind(kind: MustKeepKind, view: ProjectView, share: float) -> str:
    """Render a section with the facts of a kind, and the number of those that the machine found and omits."""
    return _section(_TITLES[kind], _listed(view.standing(kind), view, share, {kind: view.found(kind)}))


def _statistics(view: ProjectView) -> str:
    rows = [
        ("Operations", view.operations),
        ("Sessions", view.sessions),
        ("Decisions", view.standing_counts.get(MustKeepKind.DECISION, 0)),
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
    work, room = view.work, view.size_tokens * _CHARS_PER_TOKEN
    # Work items come first and need most of the room; open items found in operations follow them.
    next_share, backlog_share, title = (0.15, 0.15, "Prioritized Backlog") if work else (0.35, 0.45, "Backlog")
    upcoming = _mentions(work.next) if work else ""
    backlog = _rows(work.backlog, int(room * _WORK_SHARE), work.count(*_TO_DO)) if work else ""
    future = _rows(work.future, int(room * _FUTURE_SHARE), work.count(WorkStatus.DEFERRED)) if work else ""
    return (
        _head("Work Plan", view)
        + _section("Immediate Next Steps", upcoming + _listed(items[-10:], view, next_share))
        + _section(title, backlog + _listed(items[:-10], view, backlog_share))
        + _section("Future Work", future)
    )


def _decision_log(view: ProjectView) -> str:
    doubted = view.only_decisions
    line = partial(_decision_line, doubted=doubted)

    def entry(fact: MustKeep) -> str:
        return _decision_entry(fact, doubted=doubted) + view.origins.get(fact.id, "")

    found = view.facts.get(MustKeepKind.DECISION, ())
    texts = {fact.id: {*map(as_said, fact.wordings)} for fact in found}
    known = [fact for fact in found if fact.operation and fact.status is not MustKeepStatus.REMOVED]
    repeated = {fact.id for fact in known if as_said(fact.text) in texts.get(fact.superseded_by, ())}
    decisions = [fact for fact in known if fact.id not in repeated]
    total = max(view.counts.get(MustKeepKind.DECISION, 0), len(known)) - (len(known) - len(decisions))
    full = _best(_weightiest_and_newest(decisions), entry, view.decisions_in_full, view, 0.7)
    shown = {fact.id for fact in full}
    rest = [fact for fact in decisions if fact.id not in shown]
    brief = _best(_weightiest_and_newest(rest), line, view.decisions_in_brief, view, 0.25)
    hidden = total - view.by_hand.get(MustKeepKind.DECISION, 0) - len(full) - len(brief)
    text = _head("Decision Log", view)
    if hidden > 0:
        said = "1 more decision is" if hidden == 1 else f"{hidden:,} more decisions are"
        text += f"\n{said} kept in the ledger: `orchestra-mem facts --kind decision`.\n"
    if brief:
        text += "\n## Older Decisions\n\n" + "".join(map(line, brief))
    if view.only_decisions:
        text += "\n## Rules\n\n" + ("".join(map(entry, view.standing(MustKeepKind.CONSTRAINT))) or NONE)
    return text + "\n## Decisions\n\n" + ("".join(map(entry, full)) or NONE)


def _decision_entry(fact: MustKeep, *, doubted: bool) -> str:
    text = squeeze(fact.text)
    heading, more = (text, "") if len(text) <= _BRIEF_CHARS else (brief(text), f"> {text}\n\n")
    if state := state_suffix(fact, doubted=doubted).strip(" ()"):
        more += f"*{state[0].upper()}{state[1:]}.*\n\n"
    return f"### [{fact.timestamp:%Y-%m-%d %H:%M:%S}] {heading} (K{fact.id})\n\n{more}"


def _decision_line(fact: MustKeep, *, doubted: bool) -> str:
    state = state_suffix(fact, doubted=doubted)
    return f"- [{fact.timestamp:%Y-%m-%d %H:%M:%S}] {brief(squeeze(fact.text))} (K{fact.id}){state}\n"


def brief(text: str, most_chars: int = _BRIEF_CHARS) -> str:
    """Cut a text between words if it is too long for its line. A decision's entry quotes the full text below."""
    return text if len(text) <= most_chars else text[:most_chars].rsplit(" ", 1)[0] + CUT


def _section(title: str, lines: str) -> str:
    return f"\n## {title}\n\n{lines or NONE}"


def _listed(
    facts: Sequence[MustKeep], view: ProjectView, share: float, totals: Mapping[MustKeepKind, int] | None = None
) -> str:
    """Render the heaviest facts that fit into a share of the document, below the numbers of facts omitted.

    `totals`: Numbers of all facts by kind, if there are more than `facts`.
    """
    shown = _best(_weightiest(facts), _fact_line, len(facts), view, share)
    hidden = (Counter(fact.kind for fact in facts) | Counter(totals)) - Counter(fact.kind for fact in shown)
    more = (
        f"- … and {hidden[kind]:,} more: `orchestra-mem facts --kind '{kind}' --limit 0`\n"
        for kind in MustKeepKind
        if kind in hidden
    )
    return "".join([*more, *map(_fact_line, shown)])


def render_facts(facts: Sequence[MustKeep]) -> str:
    """Render the sections of facts that no document lists."""
    sections: dict[str, str] = {}
    for fact in facts:
        title = next(iter(KIND_ROWS[fact.kind].headings.values()))[0]
        sections[title] = sections.get(title, "") + _fact_line(fact)
    return "".join(_section(*section) for section in sections.items())


def _fact_line(fact: MustKeep) -> str:
    return f"- {squeeze(fact.text)} (K{fact.id}){state_suffix(fact)}\n"


def _weightiest(facts: Iterable[MustKeep]) -> list[MustKeep]:
    """Sort facts: those in a person's words, then by weight, and those of equal weight from the newest to the oldest.

    So even a heavier fact of the machine never displaces a person's words.
    """
    return sorted(facts, key=lambda fact: fact.rank, reverse=True)


def _weightiest_and_newest(facts: Iterable[MustKeep]) -> list[MustKeep]:
    """Sort facts so that any number of the first ones are half the weightiest and half the newest."""
    return in_turns(ranked := _weightiest(facts), sorted(ranked, key=lambda fact: -fact.id))


def in_turns(first: Iterable[T], second: Iterable[T]) -> list[T]:
    """Merge two orders of the same items: take one item from each in turn."""
    return list(dict.fromkeys(chain.from_iterable(zip(first, second, strict=True))))


def _best(
    facts: Sequence[MustKeep], line: Callable[[MustKeep], str], most: int, view: ProjectView, share: float
) -> list[MustKeep]:
    """Choose the first facts, up to `most` that fit into a share of the document, and return them oldest first."""
    room = int(view.size_tokens * _CHARS_PER_TOKEN * share)
    chosen: list[MustKeep] = []
    for fact in facts:
        room -= len(line(fact))
        if len(chosen) == most or (room < 0 and chosen):
            break
        chosen.append(fact)
    return sorted(chosen, key=lambda fact: fact.id)


def _mentions(told: Iterable[Mention]) -> str:
    """Render mentions as list items without checkboxes."""
    return "".join(
        f'- {each.item.kind.capitalize()} #{each.item.id} "{shown_title(each.item.title)}"'
        f"{f': {each.words}' if each.words else ''}\n"
        for each in told
    )


def _rows(rows: Sequence[PlanRow], room: int, total: int) -> str:
    """Render the first rows that fit into `room` characters, and how many of the `total` open items are omitted."""
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
