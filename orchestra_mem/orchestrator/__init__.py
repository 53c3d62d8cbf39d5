"""A small real orchestrator over a memory: the example of how to embed one, and what `orchestra-mem shell` runs."""

from orchestra_mem.orchestrator.orchestrator import Orchestrator
from orchestra_mem.orchestrator.talk import Effect, Outcome, Reply, reply_record
from orchestra_mem.orchestrator.tasks import Attempt, Decision, TaskResult, task_record

__all__ = [
    "Attempt", "Decision", "Effect", "Orchestrator", "Outcome", "Reply", "TaskResult", "reply_record", "task_record",
]  # fmt: skip
