"""Hooks: where plugins join in what an orchestrator does.

A hook is a method of a plugin, marked by `hookimpl`. It cannot break its caller: one that fails is passed over, logged
and counted.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pluggy

from orchestra_mem.types import Json

logger = logging.getLogger(__name__)

PROJECT = "orchestra_mem"
"""The name of the hooks."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class OrchestratorHooks:
    """What a plugin of an orchestrator may have. Each takes the parameters that it wants, by name."""

    @hookspec
    def before_execution(self, kind: str, subject: Json) -> None:
        """Something is about to be done: `kind` is `nl_command` or `task_execution`, `subject` its line or task."""

    @hookspec
    def after_execution(self, kind: str, subject: Json, result: Mapping[str, Json]) -> None:
        """It has been done and recorded."""

    @hookspec
    def on_error(self, kind: str, subject: Json, error: Exception) -> None:
        """It failed, and that was recorded."""

    @hookspec
    def pre_message(self, text: str) -> str | None:
        """A line has come in. The first plugin that returns a text puts it in the line's place."""

    @hookspec
    def post_message(self, text: str, answer: str) -> None:
        """A line has been answered."""


class Hooks:
    """The plugins of one orchestrator, called one by one, so that one that fails leaves the others alone."""

    def __init__(self) -> None:
        self._plugins = pluggy.PluginManager(PROJECT)
        self._plugins.add_hookspecs(OrchestratorHooks)
        self.failures: Counter[str] = Counter()

    def add(self, plugin: object) -> None:
        """Have a plugin called.

        Raises:
            ValueError: it is there already.
            pluggy.PluginValidationError: a hook of its takes what there is not.
        """
        self._plugins.register(plugin)

    def remove(self, plugin: object) -> None:
        """Call a plugin no longer."""
        self._plugins.unregister(plugin)

    def call(self, hook: str, **what: object) -> list[Any]:
        """Call a hook of every plugin, the last one added first; what they returned, without None."""
        returned = []
        for implementation in reversed(getattr(self._plugins.hook, hook).get_hookimpls()):
            if not self._plugins.is_registered(implementation.plugin):  # another one has just removed it
                continue
            try:
                found = implementation.function(*(what[name] for name in implementation.argnames))
            except Exception:
                name = implementation.plugin_name or type(implementation.plugin).__name__
                self.failures[name] += 1
                logger.exception("the hook %s of the plugin %s failed", hook, name)
                continue
            if found is not None:
                returned.append(found)
        return returned
