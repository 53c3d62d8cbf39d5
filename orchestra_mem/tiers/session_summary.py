"""What a session came to, by extraction: accomplishments, decisions, issues, changes of state, next steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orchestra_mem.core.documents.entries import label
from orchestra_mem.core.summaries.kept import squeeze
from orchestra_mem.ports import EventLog, Ledger
from orchestra_mem.types import Json, MustKeep, MustKeepKind, MustKeepStatus, OperationFilter, Session

# How many of the newest operations are read where no accomplishment was found as such, and what is taken from them.
_READ_OPERATIONS = 100
_EXTRACT_CHARS = 700
_MOST = 50


def summarise_session(log: EventLog, ledger: Ledger, session: Session) -> dict[str, Json]:
    """A session's structured summary, under the keys of the source design (section 3.3).

    `total_operations`, `key_accomplishments`, `decisions_made`, `issues_encountered`, `project_state_changes`,
    `recommended_next_steps`; of each list the newest fifty.
    """
    facts = _facts(log, ledger, session)
    counts = log.type_counts(session.id)
    total = sum(count for count, _ in counts.values())
    done = _texts(facts, MustKeepKind.COMPLETION)
    decided = _texts(facts, MustKeepKind.DECISION)
    failed = _texts(facts, MustKeepKind.FAILURE)
    still_open = _texts(facts, MustKeepKind.OPEN_ITEM)
    kinds = ", ".join(f"{count:,} {label(kind)}" for kind, (count, _) in sorted(counts.items(), key=lambda i: -i[1][0]))
    changes = f"{total:,} operations ({kinds or 'none'}): " + ", ".join(
        f"{len(found):,} {name}"
        for found, name in ((done, "completed"), (decided, "decided"), (failed, "failed"), (still_open, "open"))
    )
    return {
        "total_operations": total,
        "key_accomplishments": list(done[-_MOST:]),
        "decisions_made": list(decided[-_MOST:]),
        "issues_encountered": list(failed[-_MOST:]),
        "project_state_changes": changes,
        "recommended_next_steps": list(still_open[-_MOST:]),
    }


def _facts(log: EventLog, ledger: Ledger, session: Session) -> Sequence[MustKeep]:
    """The session's facts, also those of operations that have not been judged yet; nothing is stored."""
    own = log.operations(OperationFilter(session=session.id, limit=1))
    if not own:
        return ()
    # Here, as the tables of cues are heavy and load on first use: to import the package must stay quick.
    from orchestra_mem.core.facts.extraction import find_must_keeps, settle

    first = log.first_operation(session.id)
    known = ledger.must_keeps(first_operation=first, last_operation=own[-1].id)
    new = [
        fact
        for operation in log.operations(OperationFilter(session=session.id, after=session.judged_through))
        for fact in find_must_keeps(operation)
    ]
    number = ledger.next_must_keep_id()
    return settle([*known, *(replace(fact, id=number + i) for i, fact in enumerate(new))]) if new else known


def _texts(facts: Sequence[MustKeep], kind: MustKeepKind) -> list[str]:
    return [squeeze(fact.text) for fact in facts if fact.kind is kind and fact.status is MustKeepStatus.STANDING]


def closing_sections(log: EventLog, ledger: Ledger, session: Session, window_tokens: int) -> str:
    """The sections that a session document ends with."""
    summary = summarise_session(log, ledger, session)
    counts = log.type_counts(session.id)
    tokens = sum(used for _, used in counts.values())
    kinds = ", ".join(f"{count:,} {label(kind)}" for kind, (count, _) in counts.items()) or "none"
    issues = summary["issues_encountered"]
    return (
        f"## Session Summary\n\n**Total Operations**: {summary['total_operations']:,}\n**Commands**: {kinds}\n"
        f"**Tokens Used**: {tokens:,} / {window_tokens:,} ({tokens / window_tokens:.1%})\n"
        f"**Issues**: {len(issues) if isinstance(issues, list) and issues else 'None'}\n\n---\n\n## Current State\n\n"
        f"**Accomplishments**:\n{_bullets(summary['key_accomplishments'])}\n"
        f"**Recent Decisions**:\n{_bullets(summary['decisions_made'])}\n"
        f"**Issues Encountered**:\n{_bullets(issues)}\n"
        f"**Next Steps**:\n{_bullets(summary['recommended_next_steps'])}"
    )


def _bullets(items: Json) -> str:
    return "".join(f"- {squeeze(str(item))}\n" for item in items) if isinstance(items, list) and items else "- None\n"
