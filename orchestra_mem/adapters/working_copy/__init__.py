"""The documents of a memory on a server: every machine has a copy in its folder, and all come to say the same."""

from orchestra_mem.adapters.working_copy.local import LocalTexts
from orchestra_mem.adapters.working_copy.store import SharedDocumentStore

__all__ = ["LocalTexts", "SharedDocumentStore"]
