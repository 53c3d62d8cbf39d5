"""Public names and signatures: a change here affects every user, and belongs in the changelog."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import orchestra_mem
from orchestra_mem import errors, open_memory
from orchestra_mem.memory.agents import AgentCalls
from orchestra_mem.memory.queries import HistoryCalls, QueryCalls
from orchestra_mem.memory.recording import RecordingCalls
from tests.builders import cases
from tests.processes import python

# Only there at run time, where the names are in a table of modules.
PUBLIC_NAMES: list[str] = vars(orchestra_mem)["__all__"]


def test_the_public_names_are_those() -> None:
    """`__all__` lists exactly these names, each with a docstring; anything else in the package may move."""
    assert PUBLIC_NAMES == [
        "AICategorizationService", "AccessDeniedError", "AccessOutcome", "AuditFilter", "Author",
        "CategorizationService", "CircularDependencyError", "ClosedError", "ConfigError", "ContextRetriever",
        "ContextWindowTracker", "DatabaseDamagedError", "DocumentConflictError", "DocumentError", "EmbedderError",
        "EpisodicMemoryManager", "HistoryError", "InvalidChangeError", "InvalidItemError", "InvalidOperationError",
        "InvalidTimeError",
        "ItemFilter", "ItemStatus", "ItemType", "LockTimeoutError", "MemoryCatalog", "MemoryCompressor", "MemoryItem",
        "MemoryService", "ModelError", "MustKeepKind", "NewObservation", "NotFoundError", "ObservationFilter",
        "OperationFilter", "OrchestraMemError", "Orchestrator", "OrchestratorContextManager", "Projects",
        "ResponseCache", "ResponseKind", "SchemaTooNewError", "SearchError", "SearchFilter", "SearchMode",
        "ServerAwayError", "ServerError", "SessionMemoryManager", "StateManager", "StorageError", "StorageFullError",
        "StorageReadOnlyError", "Tier", "TokenizerError", "VectorStore", "WorkFilter", "WorkKind", "WorkStatus",
        "WorkingMemory", "open_memory",
    ]  # fmt: skip
    for name in PUBLIC_NAMES:
        assert getattr(orchestra_mem, name).__doc__


def test_what_a_call_takes_can_be_imported() -> None:
    """Every filter and every choice that a documented call takes is public: a user can write the call with its type."""
    makers = (orchestra_mem.OrchestratorContextManager, orchestra_mem.MemoryCatalog, orchestra_mem.ResponseCache,
              orchestra_mem.StateManager, RecordingCalls, HistoryCalls, AgentCalls, QueryCalls)  # fmt: skip
    calls = [each for maker in makers for name, each in vars(maker).items() if not name.startswith("_")]
    filters = [getattr(orchestra_mem, name) for name in PUBLIC_NAMES if name.endswith("Filter")]
    taken = {
        word
        for call in [*filter(inspect.isfunction, calls), *filters]
        for parameter in inspect.signature(call).parameters.values()
        for word in re.findall(r"\w+(?:Filter|Kind|Mode|Status)\b|Author|Tier|\w*Outcome", str(parameter.annotation))
    }
    assert {"SearchFilter", "MustKeepKind", "WorkStatus"} < taken <= set(PUBLIC_NAMES)


def test_every_error_can_be_caught_by_its_public_name() -> None:
    """Every exception class of `errors` is public, under the same name."""
    found = {name: each for name, each in vars(errors).items() if inspect.isclass(each) and issubclass(each, Exception)}
    assert found == {name: getattr(orchestra_mem, name) for name in PUBLIC_NAMES if name.endswith("Error")}


def test_the_managers_methods_are_called_like_this() -> None:
    """The manager's public methods have exactly these signatures, and each has a docstring."""
    makers = (RecordingCalls, HistoryCalls, AgentCalls, QueryCalls, orchestra_mem.OrchestratorContextManager)
    methods = {
        name: method
        for maker in makers
        for name, method in vars(maker).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }
    assert {name: str(inspect.signature(method)) for name, method in methods.items()} == dict(
        cases("manager_signatures")
    )
    assert all(method.__doc__ for method in methods.values())


def test_a_memory_is_opened_like_this() -> None:
    """`open_memory` takes a folder, and by keyword only what replaces a default."""
    parameters = inspect.signature(orchestra_mem.open_memory).parameters
    assert list(parameters) == ["project", "config", "clock", "counter", "write_point", "model"]
    assert parameters["project"].default == "."
    assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in list(parameters)[1:])


# Libraries of the command line, tokenizers, packages for tests, and modules that only opening, locking, compacting or
# reading histories need.
HEAVY = (
    "typer", "rich", "tiktoken", "tiktoken_ext", "regex", "requests", "pydantic", "numpy", "asyncio", "hypothesis",
    "yaml", "filelock", "subprocess", "tempfile", "uuid", "importlib.resources",
    "orchestra_mem.core.facts.extraction", "orchestra_mem.core.facts.classifier",
    "orchestra_mem.core.facts.pairs",
    "orchestra_mem.core.facts.superseding",
    "orchestra_mem.adapters.importers", "orchestra_mem.doctor",
    "orchestra_mem.faces", "orchestra_mem.build.wiring", "orchestra_mem.settings", "sqlite3",
)  # fmt: skip


def _loaded_after(program: str, names: tuple[str, ...], **options: Any) -> str:
    """Return which of these modules a new interpreter has loaded after a program."""
    told = f"{program}; import sys; print([name for name in {names!r} if name in sys.modules])"
    return python(told, **options).stdout


def test_importing_the_public_names_loads_nothing_heavy(tmp_path: Path) -> None:
    """Importing public names loads no heavy module and creates no file."""
    program = "from orchestra_mem import OrchestratorContextManager, open_memory, OperationFilter, StorageError"
    assert _loaded_after(program, HEAVY, cwd=tmp_path) == "[]\n"
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_begins_without_the_memory() -> None:
    """Importing the command line loads neither the memory nor heavy libraries, so that help and version are fast."""
    names = ("orchestra_mem.build.wiring", "orchestra_mem.core.text", "orchestra_mem.settings", "orchestra_mem.tiers",
             "pydantic", "secrets", "tempfile", "sqlite3", "rich", "tiktoken", "regex", "requests")  # fmt: skip
    assert _loaded_after("import orchestra_mem", ("orchestra_mem.errors", "orchestra_mem.types")) == "[]\n"
    assert _loaded_after("import orchestra_mem.faces.cli", names) == "[]\n"


def test_status_loads_nothing_that_it_does_not_ask(tmp_path: Path) -> None:
    """`status` of a memory without new operations loads no module for facts, tokens, search or compaction."""
    with open_memory(tmp_path) as memory:
        for number in range(6):
            memory.record_operation("message", {"role": "user", "text": f"Part {number} of the plan is long."})
        memory.get_orchestrator_context("task_execution")
    names = ("numpy", "tiktoken", "rich", "faiss", "markdown_it", "orchestra_mem.adapters.llama",
             "orchestra_mem.compression.compressor", "orchestra_mem.core.documents.merge",
             "orchestra_mem.core.documents.plan_edits", "orchestra_mem.core.facts",
             "orchestra_mem.core.imported_history", "orchestra_mem.core.search.disclosure",
             "orchestra_mem.core.summaries.drafts", "orchestra_mem.doctor.memory", "orchestra_mem.memory.agent_view",
             "orchestra_mem.memory.recall", "orchestra_mem.model_types", "orchestra_mem.retrieval.search",
             "orchestra_mem.tiers.authorship", "orchestra_mem.tiers.session_archives")  # fmt: skip
    asked = f"['status', '-C', {str(tmp_path)!r}]"
    shown = _loaded_after(f"from orchestra_mem.faces.cli import app; app({asked}, standalone_mode=False)", names)
    assert shown.endswith("no problems\n[]\n")


@pytest.mark.parametrize("command", ["--help", "status", "serve --help", "serve token", "mcp --install cursor"])
def test_no_command_loads_what_another_serves_with(tmp_path: Path, command: str) -> None:
    """Help, status and the commands that only prepare a server load neither FastAPI nor MCP's SDK."""
    open_memory(tmp_path).close()
    program = f"from orchestra_mem.faces.cli import app; app({[*command.split(), '-C', str(tmp_path)]!r}"
    shown = _loaded_after(f"{program}, standalone_mode=False)", ("fastapi", "starlette", "uvicorn", "mcp", "anyio"))
    assert shown.endswith("\n[]\n")


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    """An unknown name of a package that loads its names on first use raises `AttributeError`."""
    with pytest.raises(AttributeError, match="module 'orchestra_mem' has no attribute 'open_memories'"):
        orchestra_mem.open_memories  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'orchestra_mem\.build' has no attribute 'open_memories'"):
        orchestra_mem.build.open_memories  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(("old", "new", "name"), cases("what_has_moved_is_still_found_in_its_old_place"))
def test_what_has_moved_is_still_found_in_its_old_place(old: str, new: str, name: str) -> None:
    """A name that has moved can be imported from its old place, with a warning that names the new one."""
    with pytest.warns(DeprecationWarning, match=f"orchestra_mem.{new}"):
        found = getattr(import_module(f"orchestra_mem.{old}"), name)
    assert found is getattr(import_module(f"orchestra_mem.{new}"), name)
