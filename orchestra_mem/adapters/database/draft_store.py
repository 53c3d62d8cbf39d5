"""Drafts of better summaries, and what came of letting models write them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from orchestra_mem.adapters.database.connection import Database
from orchestra_mem.adapters.database.ledger import SqliteLedger, details_of
from orchestra_mem.job_types import SummaryDraft, Trial, TrialVerdict
from orchestra_mem.serialize import from_microseconds, to_microseconds
from orchestra_mem.types import Summary

_DRAFT = (
    "SELECT d.summary, d.base, d.text, d.tokens, d.method, d.must_keeps, d.put_back, d.verdict, d.seconds, d.created, "
    "d.placed FROM summary_drafts d"
)
# What is older says nothing of the model that is there now.
_TRIALS_KEPT = 5_000


class SqliteDraftStore:
    """Fulfils `job_types.DraftStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ledger = SqliteLedger(database)

    def put(self, draft: SummaryDraft) -> None:
        """Keep a draft; an earlier one of the same summary goes, unless it has just been placed."""
        with self._database.transaction("draft") as connection:
            connection.execute(
                "INSERT INTO summary_drafts (summary, base, text, tokens, method, must_keeps, put_back, verdict, "
                "seconds, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (summary) DO UPDATE SET "
                "base = excluded.base, text = excluded.text, tokens = excluded.tokens, method = excluded.method, "
                "must_keeps = excluded.must_keeps, put_back = excluded.put_back, verdict = excluded.verdict, "
                "seconds = excluded.seconds, created = excluded.created WHERE placed = 0",
                (
                    draft.summary,
                    draft.base,
                    draft.text,
                    draft.tokens,
                    draft.method,
                    json.dumps(draft.must_keeps),
                    json.dumps(draft.put_back),
                    draft.verdict,
                    draft.seconds,
                    to_microseconds(draft.created),
                ),
            )

    def drafts(self, session: str | None = None) -> list[SummaryDraft]:
        """The drafts of a session's summaries, or of all, in the order of the summaries."""
        where, values = "", []
        if session is not None:
            where = " JOIN summaries m ON m.id = d.summary WHERE m.session = (SELECT number FROM sessions WHERE id = ?)"
            values.append(session)
        with self._database.reading("listing drafts") as connection:
            rows = connection.execute(f"{_DRAFT}{where} ORDER BY d.summary", values).fetchall()
        return [_draft(row) for row in rows]

    def place(self, draft: SummaryDraft) -> Summary:
        """Let the draft be the summary's text in the ledger, and keep it, as placed, until it is dropped."""
        with self._database.transaction("improve") as connection:
            summary = replace(
                self._ledger.summary(draft.summary),
                text=draft.text,
                tokens=draft.tokens,
                method=draft.method,
                must_keeps=draft.must_keeps,
                put_back=draft.put_back,
                verdict=draft.verdict,
                seconds=draft.seconds,
            )
            connection.execute(
                "UPDATE summaries SET text = ?, tokens = ?, method = ?, details = ? WHERE id = ?",
                (summary.text, summary.tokens, summary.method, details_of(summary), summary.id),
            )
            connection.execute("UPDATE summary_drafts SET placed = 1 WHERE summary = ?", (draft.summary,))
        return summary

    def drop(self, summary: int) -> None:
        """Forget a draft."""
        with self._database.transaction("draft") as connection:
            connection.execute("DELETE FROM summary_drafts WHERE summary = ?", (summary,))


class SqliteTrialLog:
    """Fulfils `job_types.TrialLog`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, trial: Trial) -> None:
        """Keep a trial; of many the oldest go."""
        with self._database.transaction("trial") as connection:
            connection.execute(
                "INSERT INTO model_trials (time, model, content, summary, verdict, fault, seconds, prompt_tokens, "
                "answer_tokens) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    to_microseconds(trial.time),
                    trial.model,
                    trial.content,
                    trial.summary,
                    trial.verdict.value,
                    trial.fault,
                    trial.seconds,
                    trial.prompt_tokens,
                    trial.answer_tokens,
                ),
            )
            connection.execute(
                "DELETE FROM model_trials WHERE id <= (SELECT max(id) FROM model_trials) - ?", (_TRIALS_KEPT,)
            )

    def trials(self, *, model: str | None = None, content: str | None = None, limit: int) -> Sequence[Trial]:
        """The newest trials, newest first."""
        given = [(name, value) for name, value in (("model", model), ("content", content)) if value is not None]
        where = " AND ".join(["1", *(f"{name} = ?" for name, _ in given)])
        with self._database.reading("listing trials") as connection:
            rows = connection.execute(
                "SELECT time, model, content, summary, verdict, fault, seconds, prompt_tokens, answer_tokens "
                f"FROM model_trials WHERE {where} ORDER BY id DESC LIMIT ?",
                [*(value for _, value in given), max(0, limit)],
            ).fetchall()
        return [
            Trial(
                time=from_microseconds(time),
                model=name,
                content=kind,
                summary=summary,
                verdict=TrialVerdict(verdict),
                fault=fault,
                seconds=seconds,
                prompt_tokens=read,
                answer_tokens=said,
            )
            for time, name, kind, summary, verdict, fault, seconds, read, said in rows
        ]


def _draft(row: Any) -> SummaryDraft:
    summary, base, text, tokens, method, must_keeps, put_back, verdict, seconds, created, placed = row
    return SummaryDraft(
        summary=summary,
        base=base,
        text=text,
        tokens=tokens,
        method=method,
        must_keeps=tuple(json.loads(must_keeps)),
        put_back=tuple(json.loads(put_back)),
        verdict=verdict,
        seconds=seconds,
        created=from_microseconds(created),
        placed=bool(placed),
    )
