"""Misbehaving hosts: work that returns odd values, commands that do not end, faulty plugins and clocks."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem import open_memory
from orchestra_mem.hooks import hookimpl
from orchestra_mem.orchestrator import Attempt, Orchestrator, Outcome, TaskResult
from orchestra_mem.work_types import WorkKind, WorkStatus
from tests.processes import runs
from tests.timing import until


@pytest.fixture
def orchestrator(tmp_path: Path) -> Iterator[Orchestrator]:
    """An orchestrator with one task, #1."""
    with open_memory(tmp_path) as memory:
        memory.state.create(WorkKind.TASK, "Bake")
        yield Orchestrator(memory)


@pytest.mark.parametrize(
    ("given", "told"), [({1}, "{1}"), ({"a": 1}, "{'a': 1}"), (b"\xff", "b'\\xff'"), (0, "0"), (None, "")]
)
def test_a_result_is_recorded_in_words(orchestrator: Orchestrator, given: Any, told: str) -> None:
    """Whatever value work returns, its task is done, the result is the value as text, and an operation is recorded."""
    returned: list[Any] = [given, TaskResult(result=given)]
    while returned:
        result = orchestrator.execute_task(1, lambda attempt: returned.pop())
        assert (result.result, result.error) == (told, "")
        assert orchestrator.tracker.item(1).status is WorkStatus.DONE
        (operation,) = orchestrator.memory.query_recent_operations(limit=1)
        assert operation.id == result.operation


@pytest.mark.parametrize("quality", [math.nan, -1, 5, "0.9"])
def test_a_quality_that_is_none_fails_the_try(orchestrator: Orchestrator, quality: Any) -> None:
    """A quality that is not a number from 0 to 1 fails the task with an error that names it."""
    result = orchestrator.execute_task(1, lambda attempt: TaskResult(result="made", quality=quality))
    assert result.error == f"quality is {quality!r}: must be 0 to 1"
    assert orchestrator.tracker.item(1).status is WorkStatus.FAILED


def test_an_error_that_cannot_be_said_is_named(orchestrator: Orchestrator) -> None:
    """An exception fails the task with its text, or with its class name if its text cannot be read."""

    class SilentError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    def work(attempt: Attempt) -> str:
        raise SilentError

    assert orchestrator.execute_task(1, work).error == "SilentError"
    handed: Any = ValueError("too hot")
    assert orchestrator.execute_task(1, lambda attempt: TaskResult(result="", error=handed)).error == "too hot"
    assert orchestrator.tracker.item(1).status is WorkStatus.FAILED


def test_a_command_that_is_late_leaves_nothing_running(orchestrator: Orchestrator, tmp_path: Path) -> None:
    """A command that times out is killed with its children, even if they ignore SIGTERM; its output is the result."""
    command = "(trap '' TERM; echo $BASHPID $(sh -c 'echo $PPID') > child; exec sleep 60) & echo half; sleep 60"
    result = orchestrator.execute_task(1, command, timeout_s=1, folder=tmp_path)
    assert (result.result, result.error) == ("half", "timed out after 1 s")
    assert result.duration_s < 20  # less than the child's 60 s
    child = int((tmp_path / "child").read_text().split()[-1])
    until(lambda: not runs(child), 5)


def test_ctrl_c_twice_leaves_nothing_running(orchestrator: Orchestrator, tmp_path: Path) -> None:
    """A second Ctrl-C kills a command that ignores the first, and its task is pending again."""
    command = "trap '' TERM INT; echo $$ > child; while :; do sleep 0.2; done"

    def press() -> None:
        until((tmp_path / "child").exists)
        for _ in range(2):
            if not ended.wait(0.3):  # a late signal would end the test run
                signal.pthread_kill(main, signal.SIGINT)

    main, ended = threading.get_ident(), threading.Event()
    thread = threading.Thread(target=press)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            orchestrator.execute_task(1, command, folder=tmp_path)
    finally:
        ended.set()
        thread.join()
    child = int((tmp_path / "child").read_text())
    until(lambda: not runs(child), 5)
    assert orchestrator.tracker.item(1).status is WorkStatus.PENDING


@pytest.mark.parametrize("said", [42, b"x", ["what next?"], True])
def test_a_line_is_only_replaced_by_a_text(orchestrator: Orchestrator, said: Any) -> None:
    """A plugin that returns anything but a text leaves the line unchanged."""

    class Plugin:
        @hookimpl
        def pre_message(self, text: str) -> Any:
            return said

    orchestrator.hooks.add(Plugin())
    reply = orchestrator.execute("start #1")
    assert (reply.line, reply.outcome) == ("start #1", Outcome.DONE)


def test_a_clock_without_a_time_zone_is_refused_at_once(tmp_path: Path) -> None:
    """A clock without a time zone is refused when the memory is opened, and no file is created."""
    with pytest.raises(ValueError, match="no time zone"):
        open_memory(tmp_path, clock=datetime.now)
    assert not any(tmp_path.iterdir())
