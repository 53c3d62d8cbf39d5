"""obra.db: the event log and the ledger, over SQLite."""

from orchestra_mem.adapters.database.connection import Database
from orchestra_mem.adapters.database.event_log import SqliteEventLog
from orchestra_mem.adapters.database.ledger import SqliteLedger
from orchestra_mem.adapters.database.read_only import ReadOnlyDatabase, ReadOnlyEventLog

__all__ = ["Database", "ReadOnlyDatabase", "ReadOnlyEventLog", "SqliteEventLog", "SqliteLedger"]
