"""The memory that an orchestrator keeps beside its local model: four tiers, on disk, readable, never lost."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestra_mem.build import open_memory
    from orchestra_mem.manager import OrchestratorContextManager
else:
    # Loaded when they are asked for: every module of the package runs this one first, and the help of the command
    # line needs no memory.
    _WHERE = {"OrchestratorContextManager": "orchestra_mem.manager", "open_memory": "orchestra_mem.build"}

    def __getattr__(name: str) -> object:
        if name not in _WHERE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_WHERE[name]), name)


__all__ = ["OrchestratorContextManager", "open_memory"]
