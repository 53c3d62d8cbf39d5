"""A small working orchestrator on top of a memory: an example for embedders, and the core of `orchestra-mem shell`."""

from orchestra_mem.orchestrator.orchestrator import Orchestrator
from orchestra_mem.orchestrator.talk import Effect, Outcome, Reply, reply_record
from orchestra_mem.orchestrator.tasks import Attempt, Decision, TaskResult, task_record

__all__ = [
    "Attempt", "Decision", "Effect", "Orchestrator", "Outcome", "Reply", "TaskResult", "reply_record", "task_record",
]  # fmt: skip
