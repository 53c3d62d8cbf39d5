"""Drafts of better summaries, and what came of letting models write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orchestra_mem.adapters.database.connection import Database
from orchestra_mem.adapters.database.event_log import SESSION_NUMBER
from orchestra_mem.adapters.database.ledger import SqliteLedger, details_of
from orchestra_mem.adapters.database.rows import Table, matching
from orchestra_mem.job_types import SummaryDraft, Trial
from orchestra_mem.types import Summary

_DRAFTS = Table("summary_drafts", SummaryDraft)
_TRIALS = Table("model_trials", Trial)
# What is older says nothing of the model that is there now.
_TRIALS_KEPT = 5_000


class SqliteDraftStore:
    """Fulfils `job_types.DraftStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ledger = SqliteLedger(database)

    def put(self, draft: SummaryDraft) -> None:
        """Keep a draft; an earlier one of the same summary goes, unless it has just been placed."""
        with self._database.transaction("draft"):
            self._database.write(
                "draft", "DELETE FROM summary_drafts WHERE summary = ? AND placed = 0", (draft.summary,)
            )
            self._database.write("draft", f"{_DRAFTS.insert()} ON CONFLICT (summary) DO NOTHING", _DRAFTS.values(draft))

    def drafts(self, session: str | None = None) -> list[SummaryDraft]:
        """The drafts of a session's summaries, or of all, in the order of the summaries."""
        condition, values = matching(
            {f"summary IN (SELECT id FROM summaries WHERE session = {SESSION_NUMBER})": session}
        )
        return self._database.find("listing drafts", _DRAFTS, f"{condition} ORDER BY summary", values)

    def place(self, draft: SummaryDraft) -> Summary:
        """Let the draft be the summary's text in the ledger, and keep it, as placed, until it is dropped."""
        with self._database.transaction("improve"):
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
            self._database.write(
                "improve",
                "UPDATE summaries SET text = ?, tokens = ?, method = ?, details = ? WHERE id = ?",
                (summary.text, summary.tokens, summary.method, details_of(summary), summary.id),
            )
            self._database.write("improve", "UPDATE summary_drafts SET placed = 1 WHERE summary = ?", (draft.summary,))
        return summary

    def drop(self, summary: int) -> None:
        """Forget a draft."""
        self._database.write("draft", "DELETE FROM summary_drafts WHERE summary = ?", (summary,))


class SqliteTrialLog:
    """Fulfils `job_types.TrialLog`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, trial: Trial) -> None:
        """Keep a trial; of many the oldest go."""
        with self._database.transaction("trial"):
            self._database.write("trial", _TRIALS.insert(), _TRIALS.values(trial))
            self._database.write(
                "trial",
                "DELETE FROM model_trials WHERE id <= (SELECT max(id) FROM model_trials) - ?",
                (_TRIALS_KEPT,),
            )

    def trials(self, *, model: str | None = None, content: str | None = None, limit: int) -> Sequence[Trial]:
        """The newest trials, newest first."""
        condition, values = matching({"model = ?": model, "content = ?": content})
        tail = f"{condition} ORDER BY id DESC LIMIT ?"
        return self._database.find("listing trials", _TRIALS, tail, [*values, max(0, limit)])
