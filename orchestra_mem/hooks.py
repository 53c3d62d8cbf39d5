"""Plugin hooks that an orchestrator calls around its work. Plugins mark their methods with `hookimpl`.

A hook cannot break its caller: an exception is logged and counted, and the remaining hooks still run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import pluggy

from orchestra_mem.types import Json

logger = logging.getLogger(__name__)

PROJECT = "orchestra_mem"
"""The pluggy project name that hook specifications and implementations share."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class OrchestratorHooks:
    """The hooks that a plugin may implement. An implementation may leave out parameters that it does not need."""

    @hookspec
    def before_execution(self, kind: str, subject: Json, agent: str, use_memory: bool) -> str | None:
        """Called before each line (kind `nl_command`, subject its text) or task attempt (`task_execution`, task id).

        If a plugin returns an `InjectedMessage`, the work of the task receives its injection.
        """

    @hookspec
    def after_execution(self, kind: str, subject: Json, result: Mapping[str, Json]) -> None:
        """Called after the work has been done and recorded; for a failed task, after `on_error`."""

    @hookspec
    def on_error(self, kind: str, subject: Json, error: Exception) -> None:
        """Called after a failure. The failure of a task has been recorded by then."""

    @hookspec
    def pre_message(self, text: str, agent: str, use_memory: bool) -> str | None:
        """Called for each incoming line. The first plain string that a plugin returns replaces the line.

        An `InjectedMessage` (see `OrchestratorContextManager.inject`) does not replace the line: its injection is only
        shown to the model. `agent` is the agent that the line is addressed to.
        """

    @hookspec
    def post_message(self, text: str, answer: str, agent: str, use_memory: bool, result: Mapping[str, Json]) -> None:
        """Called after a line has been answered, with the same `result` as `after_execution`."""


class Hooks:
    """The plugins of one orchestrator. Each hook is called separately, so that a failure does not stop the others.

    Args:
        note_failure: Called with the name of each hook that fails, such as `audit.Plugin.on_error`.
    """

    def __init__(self, note_failure: Callable[[str], object] = lambda name: None) -> None:
        self._note_failure = note_failure
        self._plugins = pluggy.PluginManager(PROJECT)
        self._plugins.add_hookspecs(OrchestratorHooks)

    def add(self, plugin: object) -> None:
        """Add a plugin.

        Raises:
            ValueError: The plugin has been added already.
            pluggy.PluginValidationError: One of its hooks has an unknown parameter.
        """
        self._plugins.register(plugin)

    def call(self, hook: str, **what: object) -> list[Any]:
        """Call a hook of every plugin, the most recently added first; return the results that are not None."""
        returned = []
        for implementation in reversed(getattr(self._plugins.hook, hook).get_hookimpls()):
            try:
                found = implementation.function(*(what[name] for name in implementation.argnames))
            except Exception:
                plugin = implementation.plugin
                whose = getattr(plugin, "__name__", f"{type(plugin).__module__}.{type(plugin).__qualname__}")
                name = f"{whose}.{hook}"
                self._note_failure(name)
                logger.exception("the hook %s failed", name)
                continue
            if found is not None:
                returned.append(found)
        return returned
