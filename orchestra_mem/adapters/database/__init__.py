"""obra.db: the event log and the ledger, over SQLite."""

from orchestra_mem.adapters.database.connection import Database
from orchestra_mem.adapters.database.event_log import SqliteEventLog
from orchestra_mem.adapters.database.ledger import SqliteLedger

__all__ = ["Database", "SqliteEventLog", "SqliteLedger"]
