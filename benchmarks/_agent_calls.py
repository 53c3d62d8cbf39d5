"""Random calls of everything open to an agent: each public method of its view, and each command that takes an agent.

Methods, commands and their parameters are found by inspection, so that none is forgotten; a parameter without known
values is an error.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from orchestra_mem import ItemFilter, OperationFilter, OrchestratorContextManager
from orchestra_mem.catalog_types import CHUNK_PATTERN, ItemStatus, ItemType
from orchestra_mem.core.catalog.item_drafts import read_draft
from orchestra_mem.errors import OrchestraMemError
from orchestra_mem.faces.cli import app
from orchestra_mem.memory.agent_view import AgentMemory
from orchestra_mem.retrieval.retriever import ContextRetriever
from orchestra_mem.search_types import SearchFilter, SearchMode, Tier
from orchestra_mem.tiers.catalog import MemoryCatalog
from orchestra_mem.types import Author, MustKeepKind

MARK = "SECRET"
"""Part of everything that others have learnt, and with strict isolation also of everything that they recorded."""

_OTHERS = ("ada", "bob")
_WORDS = "parser lexer cache queue gateway index schema deploy backup mirror token session worker budget".split()
_COMMON = {"project", "as_json", "debug", "agent", "agents"}
# In the first three, `agent` names who did something and the owner is the caller; the last one has its own tests.
_NO_CALLS = {"orchestra-mem record", "orchestra-mem import from", "orchestra-mem import git", "orchestra-mem mcp"}
_NEVER = {"out", "token_file"}  # without a file, the same content is printed
# Methods of the view that pass their other parameters on to these callables.
_HANDED_ON: dict[str, Callable[..., Any]] = {
    "record_operation": OrchestratorContextManager.record_operation,
    "retrieve_context": ContextRetriever.retrieve_context,
    "get_recommendations": ContextRetriever.get_recommendations,
}


def fill(memory: OrchestratorContextManager, items: int, operations: int) -> set[object]:
    """Let other agents learn items, and record operations from which facts, summaries and documents are made.

    Returns:
        The present result of `others_items`.
    """
    rng = random.Random(7)
    for number in range(items):
        agent = _OTHERS[number % 2]
        text = f"{agent} decided on {MARK}{number}: {' '.join(rng.sample(_WORDS, 5))}."
        memory.catalog.store({"content": text, "agent": agent, "type": rng.choice([*ItemType]), "priority": 9})
    for number in range(operations):
        text = f"We decided to keep the {' '.join(rng.sample(_WORDS, 3))} of {MARK}{number} in cellar {number}."
        data = {"role": "user", "text": text}
        by = (*_OTHERS, None)[number % 3]
        memory.record_operation("message", data, agent=by, idempotency_key=f"key {number}")
    memory.catalog.delete("M1")
    if operations:
        memory.refresh()
    return others_items(memory)


def others_items(memory: OrchestratorContextManager) -> set[object]:
    """Return other agents' items of any status, with the fields that a call could have changed."""
    found = memory.catalog.items(ItemFilter(agents=_OTHERS, statuses=[]))
    return {(item.number, item.content, item.status, item.priority, item.said) for item in found}


class AgentCalls:
    """Random calls as one agent. `names` lists all calls; `tell` makes one and returns its complete answer.

    Args:
        memory: The memory in `project`.
        project: Folder where commands run.
        agent: The caller.
        rng: Chooses the arguments.
    """

    def __init__(self, memory: OrchestratorContextManager, project: Path, agent: str, rng: random.Random) -> None:
        self._view = memory.as_agent(agent)
        self._project = project
        self._rng = rng
        self._methods = dict(_methods())
        self._commands = dict(_commands(typer.main.get_command(app), "orchestra-mem"))
        self.names = [*self._methods, *self._commands]
        self.methods = [*self._methods]

    def tell(self, name: str) -> str:
        """Make a call with random arguments; return everything that it returns or raises."""
        return self._method(name) if name in self._methods else self._command(name)

    def _method(self, name: str) -> str:
        named: dict[str, object] = {}
        for each in self._methods[name]:
            if each.kind is inspect.Parameter.VAR_KEYWORD or (
                each.default is not inspect.Parameter.empty and self._rng.random() < 0.6
            ):
                continue
            named[each.name] = self._value(each.name, str(each.annotation))
        where, _, call = name.rpartition(".")
        try:
            return told(getattr(getattr(self._view, where) if where else self._view, call)(**named))
        except (OrchestraMemError, ValueError) as error:
            return str(error)

    def _command(self, name: str) -> str:
        _, *words = name.split()
        flags = []
        for each in self._commands[name].params:
            if each.name in _COMMON | _NEVER or not (each.required or self._rng.random() < 0.4):
                continue
            if getattr(each, "is_flag", False):
                flags.append(each.opts[0])
                continue
            value = self._value(str(each.name))
            shown = str(value[0] if isinstance(value, list | tuple) else value)
            words += [shown] if each.param_type_name == "argument" else [each.opts[0], shown]
        as_json = ["--json"] * self._rng.randint(0, 1)
        arguments = [*words, *flags, *as_json, "--agent", self._view.agent, "-C", str(self._project)]
        home = {"ORCHESTRA_MEM_HOME": str(self._project / "home")}  # for `--all-projects`
        done = CliRunner().invoke(app, arguments, env=home)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.output

    def _value(self, name: str, annotation: str = "") -> object:
        rng = self._rng
        for kind, value in self._by_type().items():
            if kind in annotation:
                return value
        if name not in (made := self._values()):
            raise KeyError(f"unknown parameter {name!r}: add values for it in benchmarks/_agent_calls.py")
        value = made[name]
        return rng.choice(value) if isinstance(value, list) else value()

    def _values(self) -> Mapping[str, list[Any] | Callable[[], object]]:
        rng, whose = self._rng, [*_OTHERS, "global", self._view.agent]
        texts = "message answer query question task content for_operation operation_type pattern text summary".split()
        lists = {name: lambda: [rng.choice(_WORDS)] for name in ("tags", "references")}
        return {
            **dict.fromkeys(texts, self._text), **lists,
            "item_id": self._item, "reference": self._reference, "whose": whose, "call": ["list"],
            "agents": lambda: [rng.choice(whose)], "author": [*Author], "mode": [*SearchMode], "kind": [*MustKeepKind],
            "standing": [True, False], "critical": [True, False], "max_tokens": [0, 50, 2_000], "tokens_used": [1, 50],
            "limit": [0, 1, 20], "offset": [0, 2], "timestamp": [datetime(2025, 1, 1, tzinfo=UTC)],
            "idempotency_key": lambda: f"key {rng.randrange(40)}", "operation_data": lambda: {"text": self._text()},
            "draft": lambda: read_draft(self._record(), datetime.now(UTC)),
            "changes": lambda: rng.choice([{"priority": 1}, {"content": self._text()}, {"agent": rng.choice(whose)}]),
            "document": lambda: {"ci_name": rng.choice(whose), "memories": [{"content": self._text()}]},
            # Only commands have these.
            "of": whose, "types": [*ItemType], "item_type": [*ItemType], "statuses": [*ItemStatus],
            "priority": ["1", "9"], "expires": ["3d", "never"], "file": self._file, "since": ["2h"], "until": ["1h"],
            "outcome": ["given", "refused"], "session": ["0"], "session_id": ["0"], "tiers": [*Tier],
            "kinds": [*ItemType], "item": ["M1", "1"], "unused": ["2"], "share": ["0.5"],
        }  # fmt: skip

    def _by_type(self) -> Mapping[str, object]:
        other, rng = self._rng.choice(_OTHERS), self._rng
        return {
            "MemoryItem": self._record(),
            "SearchFilter": rng.choice([
                SearchFilter(), SearchFilter(agent=other), SearchFilter(pattern=CHUNK_PATTERN, readable=None),
                SearchFilter(readable=frozenset({other})), SearchFilter(tiers=(Tier.SEMANTIC,), agent=other),
            ]),
            "OperationFilter": rng.choice([
                OperationFilter(), OperationFilter(agent=other), OperationFilter(agents=_OTHERS),
                OperationFilter(limit=3), OperationFilter(idempotency_key="key 1"),
            ]),
            "ItemFilter": rng.choice([
                ItemFilter(), ItemFilter(agents=[other]), ItemFilter(statuses=[], text=MARK), ItemFilter(agents=[]),
                ItemFilter(statuses=[*ItemStatus]),
            ]),
        }  # fmt: skip

    def _text(self) -> str:
        return " ".join(self._rng.sample(_WORDS, 3))

    def _record(self) -> dict[str, object]:
        owner = {"agent": self._rng.choice([*_OTHERS, "global"])} if self._rng.random() < 0.5 else {}
        return {"content": self._text(), **owner}

    def _item(self) -> str:
        return f"M{self._rng.randint(1, self._rng.choice((8, 60)))}"  # low numbers belong to others

    def _reference(self) -> str:
        places = ["decision_log.md:5", "project_state.md", "work_plan.md:3", "story 1", "ada.md:3"]
        kinds = [f"{kind}{self._rng.randint(1, 40)}" for kind in "SK#"]
        return self._rng.choice([self._item(), *kinds, self._rng.choice(places)])

    def _file(self) -> str:
        path = self._project / "catalog.json"
        path.write_text('{"ci_name": "ada", "memories": [{"content": "parser"}]}', encoding="utf-8")
        return str(path)


def _methods() -> Iterator[tuple[str, list[inspect.Parameter]]]:
    for name, method in inspect.getmembers(AgentMemory, inspect.isfunction):
        if not name.startswith("_"):
            parameters = dict(inspect.signature(method).parameters)
            more = inspect.signature(_HANDED_ON[name]).parameters if name in _HANDED_ON else {}
            yield name, [each for at, each in {**more, **parameters}.items() if at not in ("self", "agent")]
    for name, method in inspect.getmembers(MemoryCatalog, inspect.isfunction):
        parameters = dict(inspect.signature(method).parameters)
        if not name.startswith("_") and "agent" in parameters:
            yield f"catalog.{name}", [each for at, each in parameters.items() if at not in ("self", "agent")]


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Find the commands that take an agent: as the actor, as the assignee of a task, or as a filter."""
    for sub in getattr(command, "commands", {}).values():
        yield from _commands(sub, f"{name} {sub.name}")
    if name not in _NO_CALLS and any("--agent" in each.opts for each in command.params):
        yield name, command


def told(value: object) -> str:
    """Return the full text of an answer, including what its `repr` omits."""
    if is_dataclass(value) and not isinstance(value, type):
        return " ".join(told(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, Mapping):
        return " ".join(f"{told(key)} {told(each)}" for key, each in value.items())
    if isinstance(value, Sequence | frozenset) and not isinstance(value, str | bytes):
        return " ".join(map(told, value))
    return f"{value!s} {told(vars(value)) if isinstance(value, str) and hasattr(value, '__dict__') else ''}"
