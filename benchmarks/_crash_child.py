"""The process that `crash.py` kills: it works on a memory by a plan, and reports each call that has returned.

If a person is to save at a certain instant, before a step or in the middle of a write, the process waits for the save.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NoReturn

from benchmarks._survival import ENTRY_CHARS, NOTE, WORK, draft_for
from orchestra_mem.adapters.tokenizers import open_counter
from orchestra_mem.build import open_memory
from orchestra_mem.core.prompts import SESSION_KEYS
from orchestra_mem.errors import DocumentConflictError
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.model_types import Message
from orchestra_mem.ports import WritePoint
from orchestra_mem.testing import ScriptedModel
from orchestra_mem.work_types import WorkKind, WorkStatus
from tests.memories import Clock

# Small limits, so that spills, refreshes, compactions and merges of summaries happen within dozens of operations.
CONFIG = {
    "orchestrator": {
        "context_window": {"max_tokens": 16_384},
        "working_memory": {"max_operations": 6, "max_tokens": 600},
        "session_compression_threshold": 900,
        "keep_versions": 3,
    },
    "compaction": {
        "verbatim_window_s": 60,
        "verbatim_floor_tokens": 100,
        "segment_tokens": 100,
        "fan_in": 2,
        "window_share": 1.0,
    },
    "entries": {"max_chars": ENTRY_CHARS},
    "storage": {"lock_timeout_s": 10, "busy_timeout_s": 10},
    # The plan decides when summaries are improved; a thread would be at another place in each life.
    "compression": {"auto": False},
}
# Steps that damage the end of the live document, which must then be repaired.
SPOILING = ("tear", "section", "line")
START, STEP_S = datetime(2025, 3, 1, 9, 0, tzinfo=UTC), 3
_COUNTER = open_counter("estimate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Doom:
    """When a child dies: at the `nth` passing of a write point (any point if `point` is empty), or after a time.

    `torn`: Share of the bytes that the current write still puts on disk; 1 ends the child at the point itself.
    `saving`: Write point at whose first, third and fifth passing a person saves.
    """

    point: str = ""
    nth: int = 0
    torn: float = 1.0
    after_s: float | None = None
    saving: str = ""

    def __str__(self) -> str:
        """Format like `version.rename.after #2`."""
        saving = f", a person saves at {self.saving}" if self.saving else ""
        if self.after_s is not None:
            return f"after {self.after_s * 1000:.0f} ms{saving}"
        torn = f", {self.torn:.0%} written" if self.torn < 1 else ""
        return (f"{self.point or 'any point'} #{self.nth}{torn}" if self.nth else "not killed") + saving


class Wire:
    """The child's connection to its parent: reports, and requests with an answer."""

    def __init__(self, telling: int, answers: int) -> None:
        self._telling = telling
        self._answers = answers
        self._write = os.write  # keep the original: only the memory's writes may be torn

    def tell(self, text: str) -> None:
        """Send a line."""
        self._write(self._telling, text.replace("\n", " ").encode() + b"\n")

    def ask(self, text: str) -> None:
        """Send a line, and wait until the parent has done what the line requests."""
        self.tell(text)
        os.read(self._answers, 1)


class Reaper:
    """Write point callback that kills the process. `ask` requests a save by the person."""

    def __init__(self, doom: Doom, ask: Callable[[str], None]) -> None:
        self._doom = doom
        self._ask = ask
        self._passed = 0
        self._saving_passed = 0

    def __call__(self, point: str) -> None:
        """Kill the process if this passing is the one that `doom` names."""
        if point == self._doom.saving:
            self._saving_passed += 1
            if self._saving_passed in (1, 3, 5):
                self._ask(f"save {point}")
        if self._doom.point in ("", point) and self._doom.nth:
            self._passed += 1
            if self._passed == self._doom.nth:
                self._strike()

    def _strike(self) -> None:
        if self._doom.torn == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        write = os.write

        def torn(descriptor: int, data: bytes) -> int:
            write(descriptor, bytes(data)[: int(len(data) * self._doom.torn)])
            os.kill(os.getpid(), signal.SIGKILL)
            return 0

        os.write = torn  # type: ignore[assignment]


def open_here(project: Path, clock: Clock, *, write_point: WritePoint | None = None) -> OrchestratorContextManager:
    """Open the memory of a project with small limits."""
    model = ScriptedModel(partial(_last_words, write_point), name="model")
    return open_memory(project, config=CONFIG, clock=clock, counter=_COUNTER, write_point=write_point, model=model)


def _last_words(write_point: WritePoint | None, messages: Sequence[Message]) -> str:
    """Stand in for a model that summarises a record, operations or a session: return the ends of the last lines."""
    if write_point is not None:
        write_point("draft.generating")
    record = next(each.text for each in reversed(messages) if each.text.startswith("<record>"))
    lines = [" ".join(line.split()[-6:]) for line in record.splitlines()[1:-1][-3:]]
    return json.dumps({"lines": lines, **dict.fromkeys(SESSION_KEYS, lines)})


def live(project: Path, life: str, plan: Sequence[str], doom: Doom, start: datetime, wire: Wire) -> NoReturn:
    """Run the child: do the steps and report each that has returned, until the process dies."""
    try:
        Worker(project, life, start, Reaper(doom, wire.ask), wire.tell, wire.ask).work(plan)
    except BaseException as error:
        wire.tell(f"error {type(error).__name__}: {error}")
    os._exit(0)


@dataclass(slots=True)
class Worker:
    """Works on a project by a plan. `tell` receives what has returned; `ask` requests actions of the person."""

    project: Path
    life: str
    start: datetime
    point: WritePoint
    tell: Callable[[str], object]
    ask: Callable[[str], object]

    def work(self, plan: Sequence[str]) -> None:
        """Do the steps in order."""
        clock = Clock(self.start, step_s=STEP_S)
        memory = open_here(self.project, clock, write_point=self.point)
        self.tell("opened")
        for number, step in enumerate(plan):
            if step == "reopen":
                memory.close()
                memory = open_here(self.project, clock, write_point=self.point)
            elif step == "edit":
                # Like the command: the memory is closed while the editor is open, and the edit is read afterwards.
                memory.close()
                self.ask("edit")
                memory = open_here(self.project, clock, write_point=self.point)
                memory.facts(standing=False)
            elif step in ("item", "collide"):
                self.ask(step)
            elif step in ("accept", "reject", "restore"):
                self._command(memory, step)
            else:
                self.tell(f"{step} {take(memory, step, f'{self.life}-{number}')}")
        memory.close()

    def _command(self, memory: OrchestratorContextManager, step: str) -> None:
        """Run a command that writes a complete document; a save of the document at that instant makes it fail."""
        try:
            if step == "restore":
                name = ("project_state", "work_plan")[len(self.life) % 2]
                versions = memory.episodic_memory.history(name)
                if not versions:
                    return
                self.ask(f"restore {name} {versions[-1].path}")
                memory.episodic_memory.restore(name, versions[-1].sequence)
            else:
                waiting = memory.conflicts()
                if not waiting:
                    return
                document, block = waiting[0]
                self.ask(f"{step} {document} {block.id}")
                memory.resolve_conflict(block.id, accept=step == "accept")
        except DocumentConflictError:
            self.tell("refused")
        else:
            self.tell("done")


def take(memory: OrchestratorContextManager, step: str, marker: str) -> str:
    """Do one step; return what is acknowledged by it, `-` for nothing."""
    if step == "record":
        kind, data = draft_for(marker)
        return f"{marker} {memory.record_operation(kind, data).id}"
    if step == "work":
        return f"{marker} {_work(memory, marker)}"
    if step == "refresh":
        memory.refresh()
    elif step == "context":
        memory.get_orchestrator_context("test")
    elif step == "flush":
        memory.flush_session()
    elif step == "better":
        while memory.compression.work():
            pass
    elif step in SPOILING:
        return _spoil(memory, step, marker)
    return "-"


def _work(memory: OrchestratorContextManager, marker: str) -> int:
    """Start a task as an orchestrator does: all changes in one transaction, then the operation that describes them."""
    with memory.state.together() as changes:
        item = memory.state.create(WorkKind.TASK, marker)
        memory.state.set_status(item.id, WorkStatus.IN_PROGRESS)
    operation = memory.record_operation(WORK, {"result": f"started #{item.id}", "settled": True})
    memory.state.attribute([event.id for event in changes], operation.id)
    return item.id


def _spoil(memory: OrchestratorContextManager, step: str, marker: str) -> str:
    """Damage the end of the live document, so that the next writer must repair it; return the note a person wrote."""
    path = memory.session_memory.path
    if path is None or not path.is_file():
        return "-"
    note = f"{NOTE} {marker}"
    if step == "tear":
        # Like a process that is killed while it appends.
        waiting = memory.working_memory.entries()
        text = waiting[0].text[: len(waiting[0].text) // 2] if waiting else ""
    elif step == "section":
        text = f"\n## By Hand\n\n- {note}.\n"
    else:
        text = f"{note}."
    with path.open("ab") as file:
        file.write(text.encode("utf-8", "surrogateescape"))
    return "-" if step == "tear" else note
