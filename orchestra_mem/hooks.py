"""Hooks: methods of plugins that an orchestrator calls around its work, marked by `hookimpl`.

A hook cannot break its caller: an exception in one is logged and counted, and the others are called.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pluggy

from orchestra_mem.types import Json

logger = logging.getLogger(__name__)

PROJECT = "orchestra_mem"
"""The name of the hooks."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class OrchestratorHooks:
    """The hooks that a plugin may implement. Each takes the parameters that it wants, by name."""

    @hookspec
    def before_execution(self, kind: str, subject: Json, agent: str, use_memory: bool) -> str | None:
        """Called before work is done: `kind` is `nl_command` or `task_execution`, `subject` its line or task.

        What an `InjectedMessage` that comes back puts before a task, the task's work is given.
        """

    @hookspec
    def after_execution(self, kind: str, subject: Json, result: Mapping[str, Json]) -> None:
        """Called when it has been done and recorded."""

    @hookspec
    def on_error(self, kind: str, subject: Json, error: Exception) -> None:
        """Called when it has failed and that has been recorded."""

    @hookspec
    def pre_message(self, text: str, agent: str, use_memory: bool) -> str | None:
        """Called for each line that comes in. The first plugin that returns a text replaces the line by it.

        An `InjectedMessage` (see `OrchestratorContextManager.inject`) replaces nothing: what it puts before the line is
        given to the model alone. `agent` is who is spoken to.
        """

    @hookspec
    def post_message(self, text: str, answer: str, agent: str, use_memory: bool, result: Mapping[str, Json]) -> None:
        """Called when a line has been answered; `result` as in `after_execution`."""


class Hooks:
    """The plugins of one orchestrator, called one by one, so that one that fails leaves the others alone.

    Args:
        note_failure: hears the name of each hook that fails, as in `audit.Plugin.on_error`.
    """

    def __init__(self, note_failure: Callable[[str], object] = lambda name: None) -> None:
        self._note_failure = note_failure
        self._plugins = pluggy.PluginManager(PROJECT)
        self._plugins.add_hookspecs(OrchestratorHooks)
        self.failures: Counter[str] = Counter()

    def add(self, plugin: object) -> None:
        """Add a plugin.

        Raises:
            ValueError: it has been added already.
            pluggy.PluginValidationError: one of its hooks takes an unknown parameter.
        """
        self._plugins.register(plugin)

    def remove(self, plugin: object) -> None:
        """Remove a plugin."""
        self._plugins.unregister(plugin)

    def call(self, hook: str, **what: object) -> list[Any]:
        """Call a hook of every plugin, the last one added first; return their results without None."""
        returned = []
        for implementation in reversed(getattr(self._plugins.hook, hook).get_hookimpls()):
            if not self._plugins.is_registered(implementation.plugin):  # another one has just removed it
                continue
            try:
                found = implementation.function(*(what[name] for name in implementation.argnames))
            except Exception:
                plugin = implementation.plugin
                whose = getattr(plugin, "__name__", f"{type(plugin).__module__}.{type(plugin).__qualname__}")
                name = f"{whose}.{hook}"
                self.failures[name] += 1
                self._note_failure(name)
                logger.exception("the hook %s failed", name)
                continue
            if found is not None:
                returned.append(found)
        return returned
