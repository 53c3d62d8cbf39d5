"""Run the work of a task, a callable or a shell command, until its result is good enough."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from orchestra_mem.catalog_types import Injection
from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.errors import InvalidChangeError
from orchestra_mem.hooks import Hooks
from orchestra_mem.memory.agent_view import first_injection
from orchestra_mem.orchestrator.journal import TASK, Journal
from orchestra_mem.types import Json
from orchestra_mem.work_types import WorkEvent, WorkItem, WorkStatus

_GRACE_S, _LOOK_S = 2.0, 0.02


class Decision(StrEnum):
    """What happens after an attempt."""

    PROCEED = "proceed"
    RETRY = "retry"
    ESCALATE = "escalate"


_STATUS_AFTER = {
    Decision.PROCEED: WorkStatus.DONE, Decision.RETRY: WorkStatus.IN_PROGRESS, Decision.ESCALATE: WorkStatus.FAILED,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The argument of a `Work` callable. `iteration` counts from 1; `previous` is None in the first attempt.

    `injection` holds the catalog items relevant to the task, None if the catalog was not queried.
    """

    task: WorkItem
    context: OrchestratorContext
    iteration: int
    previous: TaskResult | None
    injection: Injection | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """The result of one attempt. `quality` is 0 to 1, None if unknown; `error` is empty after a success.

    `operation` is the id under which the attempt is recorded. `injection` is the same as in `Attempt`.
    """

    result: str
    quality: float | None = None
    error: str = ""
    duration_s: float = 0.0
    iteration: int = 1
    decision: Decision = Decision.PROCEED
    operation: int = 0
    injection: Injection | None = None

    @property
    def context_loaded(self) -> bool:
        """Whether the catalog was queried, without an error."""
        return self.injection is not None and self.injection.loaded


Work = Callable[[Attempt], "TaskResult | str | None"]
"""Callable that does a task: returns its result as text or as a `TaskResult`, or raises an exception if it fails."""


def shell_work(command: str, *, folder: Path | None = None, timeout_s: float | None = None) -> Work:
    """Return work that runs a shell command. Its output is the result; an exit code other than 0 is a failure.

    The command receives the item in `ORCHESTRA_MEM_TASK_ID` and `ORCHESTRA_MEM_TASK_TITLE`, and the injected catalog
    items followed by the context on standard input. On timeout or Ctrl-C its entire process group is terminated.
    """

    def work(attempt: Attempt) -> TaskResult:
        given = attempt.injection.text if attempt.injection else ""
        prompt = given + attempt.context.render()
        task = {"ORCHESTRA_MEM_TASK_ID": str(attempt.task.id), "ORCHESTRA_MEM_TASK_TITLE": attempt.task.title}
        with subprocess.Popen(
            command, shell=True, cwd=folder, env={**os.environ, **task}, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            try:
                output, _ = process.communicate(prompt.encode(errors="replace"), timeout=timeout_s)
            except subprocess.TimeoutExpired as expired:
                _end(process)
                return TaskResult(result=_text(expired.output), error=f"timed out after {timeout_s:g} s")
            except BaseException:
                _end(process)
                raise
        code = process.returncode
        return TaskResult(result=_text(output), error=f"exit code {code}" if code else "")

    return work


def _end(process: subprocess.Popen[bytes]) -> None:
    """Terminate a process and its process group: first with SIGTERM, after `_GRACE_S` seconds with SIGKILL."""
    try:
        until = time.monotonic() + _GRACE_S
        there = _signalled(process, signal.SIGTERM)
        while there and time.monotonic() < until:
            time.sleep(_LOOK_S)
            process.poll()
            there = _signalled(process, 0)  # processes that the shell started may outlive it
    finally:  # a second Ctrl-C skips the waiting
        _signalled(process, signal.SIGKILL)
        process.kill()
        process.wait()


def _signalled(process: subprocess.Popen[bytes], kind: int) -> bool:
    """Send a signal to a process group; return whether the group still exists."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, kind)
        return True
    return False


def _text(output: bytes | None) -> str:
    return (output or b"").decode(errors="replace").strip()


def _tried(work: Work, attempt: Attempt) -> TaskResult:
    """Do the work once. An exception becomes the result's error; KeyboardInterrupt and SystemExit propagate."""
    start = time.perf_counter()
    try:
        given = work(attempt)
        result = given if isinstance(given, TaskResult) else TaskResult(result=_words(given))
        result = replace(result, result=_words(result.result), error=_words(result.error))
        quality: object = result.quality
        if not (quality is None or (isinstance(quality, int | float) and 0 <= quality <= 1)):
            fault = result.error or f"quality is {quality!r}: must be 0 to 1"
            result = replace(result, quality=None, error=fault)
    except Exception as error:
        result = TaskResult(result="", error=_failure(error))
    return replace(result, duration_s=time.perf_counter() - start, iteration=attempt.iteration)


def _words(value: object) -> str:
    return "" if value is None else str(value)


def _failure(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # a custom exception may fail to format itself
        return type(error).__name__


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunner:
    """Runs tasks, updates their status, records attempts, and retries results below `least_quality`, 0 to 1."""

    journal: Journal
    hooks: Hooks
    least_quality: float

    def run(
        self, task: int, work: Work, *, max_iterations: int, tokens_used: int | None, use_memory: bool
    ) -> TaskResult:
        """Run a task until its result is good enough or `max_iterations` is reached."""
        changes: list[WorkEvent]
        with self.journal.tracker.together() as changes:
            item = self.journal.tracker.set_status(task, WorkStatus.IN_PROGRESS)
        started = {event.id for event in changes}
        self.journal.running.update(started)
        asked = {"kind": TASK, "subject": item.id, "agent": self.journal.agent, "use_memory": use_memory}
        result, iteration = None, 0
        try:
            while True:
                iteration += 1
                injection = first_injection(self.hooks.call("before_execution", **asked))
                context = self.journal.memory.get_orchestrator_context(TASK, None if use_memory else 0)
                attempt = Attempt(task=item, context=context, iteration=iteration, previous=result, injection=injection)
                try:
                    result = replace(_tried(work, attempt), injection=injection)
                except BaseException as error:  # Ctrl-C: record the attempt and put the item back
                    failed = TaskResult(result="", error=f"interrupted by {type(error).__name__}", iteration=iteration)
                    self._recorded(item, failed, changes, tokens_used, WorkStatus.PENDING)
                    raise
                if result.error or (result.quality is not None and result.quality < self.least_quality):
                    tries_left = iteration < max_iterations
                    result = replace(result, decision=Decision.RETRY if tries_left else Decision.ESCALATE)
                result = self._recorded(item, result, changes, tokens_used, _STATUS_AFTER[result.decision])
                if result.decision is not Decision.RETRY:
                    return result
                changes = []
        finally:
            self.journal.running.difference_update(started)

    def _recorded(
        self, item: WorkItem, result: TaskResult, changes: Sequence[WorkEvent], tokens: int | None, status: WorkStatus
    ) -> TaskResult:
        with self.journal.tracker.together() as last:
            try:
                if status is not WorkStatus.IN_PROGRESS:
                    self.journal.tracker.set_status(item.id, status, reason=result.error)
            except InvalidChangeError as error:  # the item has open dependencies, or was closed meanwhile
                result = replace(result, error=result.error or str(error), decision=Decision.ESCALATE)
        data = task_record(item, result)
        operation = self.journal.record_changes(TASK, data, [*changes, *last], tokens)
        if result.error:
            self.hooks.call("on_error", kind=TASK, subject=item.id, error=RuntimeError(result.error))
        self.hooks.call("after_execution", kind=TASK, subject=item.id, result=data)
        return replace(result, operation=operation.id)


def task_record(item: WorkItem, result: TaskResult) -> dict[str, Json]:
    """Return the data of the operation that records an attempt."""
    is_done = not result.error and result.decision is Decision.PROCEED
    fields: dict[str, Json] = {"quality_score": result.quality, "error": result.error or None}
    return {
        "task_id": item.id, "task_title": item.title, "iteration": result.iteration, "result": result.result,
        "decision": result.decision.value, "duration_s": round(result.duration_s, 3),
        "status": "completed" if is_done else "failed",
        "changed": {"finished" if is_done else "failed": [item.id]},
        **{name: value for name, value in fields.items() if value is not None},
    }  # fmt: skip
