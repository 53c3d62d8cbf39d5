"""The catalog around an orchestrator: a plugin that gives of it before each line and task, and learns from lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestra_mem.hooks import hookimpl
from orchestra_mem.memory.agent_view import InjectedMessage
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.orchestrator.intents import Action
from orchestra_mem.orchestrator.journal import TASK
from orchestra_mem.orchestrator.talk import Outcome
from orchestra_mem.types import Json
from orchestra_mem.work_types import WorkTracker

_UNREAD = (Outcome.ASKED, Outcome.NOT_UNDERSTOOD)
_TELLING = frozenset((Action.NOTE, Action.DECIDE, Action.REPORT))


class CatalogHooks:
    """Gives an orchestrator what its agent has learnt, and learns from what is said to it; from tasks nothing.

    An `Orchestrator` adds it by itself where the setting `catalog.hooks` is on.
    """

    def __init__(self, memory: OrchestratorContextManager, tracker: WorkTracker) -> None:
        self._memory = memory
        self._tracker = tracker

    @hookimpl
    def before_execution(self, kind: str, subject: Json, agent: str, use_memory: bool) -> InjectedMessage | None:
        """Give a task's work the relevant items."""
        if kind != TASK or not use_memory or not isinstance(subject, int):
            return None
        item = self._tracker.item(subject)
        return self._memory.inject(f"{item.title}\n{item.description}", agent=agent)

    @hookimpl
    def pre_message(self, text: str, agent: str, use_memory: bool) -> InjectedMessage | None:
        """Give the line with relevant items before it."""
        return self._memory.inject(text, agent=agent) if use_memory and text.strip() else None

    @hookimpl
    def post_message(self, text: str, agent: str, use_memory: bool, result: Mapping[str, Any]) -> None:
        """Learn from a line, unless it was a command: what came of that stands in the state of work.

        The answer is not learnt from: it says what was done, or what the memory holds already.
        """
        actions = {intent["action"] for intent in result["intents"]}
        is_command = result["outcome"] not in _UNREAD and actions and not actions & _TELLING
        if use_memory and not is_command:
            self._memory.learn(text, "", agent=agent)
