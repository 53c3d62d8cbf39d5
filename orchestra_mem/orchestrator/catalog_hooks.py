"""The catalog around an orchestrator's lines: a plugin that gives of it before each, and learns from each after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestra_mem.hooks import hookimpl
from orchestra_mem.memory.agents import InjectedMessage
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.orchestrator.intents import Action
from orchestra_mem.orchestrator.talk import Outcome

_UNREAD = (Outcome.ASKED, Outcome.NOT_UNDERSTOOD)
_TELLING = frozenset((Action.NOTE, Action.DECIDE, Action.REPORT))


class CatalogHooks:
    """Gives an orchestrator what its agent has learnt, and learns from what is said to it.

    An `Orchestrator` adds it by itself where the setting `catalog.hooks` is on.
    """

    def __init__(self, memory: OrchestratorContextManager) -> None:
        self._memory = memory

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
