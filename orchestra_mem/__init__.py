"""The memory that an orchestrator keeps beside its local model: four tiers, on disk, readable, never lost."""

from orchestra_mem.build import open_memory
from orchestra_mem.manager import OrchestratorContextManager

__all__ = ["OrchestratorContextManager", "open_memory"]
