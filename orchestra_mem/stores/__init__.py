"""SQL stores for the event log, ledger, work items, jobs and catalog, on any database that is an `SqlDatabase`."""

from orchestra_mem.stores import catalog_store, event_log, job_store, ledger, shared_files, work_store
from orchestra_mem.stores.catalog_store import AuditLog, CatalogStore
from orchestra_mem.stores.event_log import EventLog
from orchestra_mem.stores.job_store import DraftStore, JobQueue, TrialLog
from orchestra_mem.stores.ledger import Ledger
from orchestra_mem.stores.statements import FreeText, SqlDatabase
from orchestra_mem.stores.work_store import WorkStore

__all__ = [
    "FREE_TEXT", "AuditLog", "CatalogStore", "DraftStore", "EventLog", "JobQueue", "Ledger", "SqlDatabase", "TrialLog",
    "WorkStore",
]  # fmt: skip

FREE_TEXT: tuple[FreeText, ...] = (
    *catalog_store.FREE_TEXT, *event_log.FREE_TEXT, *job_store.FREE_TEXT, *ledger.FREE_TEXT, *shared_files.FREE_TEXT,
    *work_store.FREE_TEXT,
)  # fmt: skip
"""All columns that hold words of people or agents."""
