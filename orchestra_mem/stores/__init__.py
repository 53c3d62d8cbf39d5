"""SQL stores for the event log, ledger, work items, jobs and catalog, on any database that is an `SqlDatabase`."""

from orchestra_mem.stores.catalog_store import AuditLog, CatalogStore
from orchestra_mem.stores.event_log import EventLog
from orchestra_mem.stores.job_store import DraftStore, JobQueue, TrialLog
from orchestra_mem.stores.ledger import Ledger
from orchestra_mem.stores.statements import SqlDatabase
from orchestra_mem.stores.work_store import WorkStore

__all__ = [
    "AuditLog", "CatalogStore", "DraftStore", "EventLog", "JobQueue", "Ledger", "SqlDatabase", "TrialLog", "WorkStore",
]  # fmt: skip
