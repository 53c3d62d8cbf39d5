"""The source designs' names exist in the package, or an error names the replacement."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import orchestra_mem
from orchestra_mem import ContextWindowTracker, Orchestrator, OrchestratorContextManager, WorkingMemory, open_memory
from orchestra_mem.core.prompts import SESSION_KEYS
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import Finish, Message, Role
from orchestra_mem.testing import FaithfulModel
from tests.builders import cases
from tests.memories import SMALL, work

CLASSES = [
    "ContextRetriever", "ContextWindowTracker", "EpisodicMemoryManager", "MemoryCompressor", "Orchestrator",
    "OrchestratorContextManager", "ResponseCache", "SessionMemoryManager", "StateManager", "VectorStore",
    "WorkingMemory",
]  # fmt: skip
TABLE = Path(orchestra_mem.__file__).parents[1] / "docs" / "names.md"
ASKED = [Message(role=Role.SYSTEM, text="You answer."), Message(role=Role.USER, text="What is it?")]


class Llm:
    """A model as in the design: it only has `send_prompt`."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def send_prompt(self, prompt: str) -> str:
        """Return a fixed answer."""
        self.prompts.append(prompt)
        return "It is blue."


def test_a_tier_that_the_memory_hands_out_is_of_the_class_at_the_top(memory: OrchestratorContextManager) -> None:
    """Every tier of a memory is an instance of the class that the package exports under the design's name."""
    parts = {
        "WorkingMemory": memory.working_memory, "SessionMemoryManager": memory.session_memory,
        "EpisodicMemoryManager": memory.episodic_memory, "StateManager": memory.state,
        "ContextWindowTracker": memory.context_tracker, "MemoryCompressor": memory.compressor,
        "ResponseCache": memory.response_cache,
    }  # fmt: skip
    assert {name: type(part) for name, part in parts.items()} == {name: getattr(orchestra_mem, name) for name in parts}


def test_a_tracker_is_made_as_in_the_design() -> None:
    """A tracker is constructed with the design's four parameters."""
    tracker = ContextWindowTracker(
        max_tokens=1_000, warning_threshold=0.70, refresh_threshold=0.80, critical_threshold=0.95
    )
    tracker.add_usage(800)
    assert (tracker.should_refresh(), tracker.available_tokens()) == (True, 200)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((object(), object(), Llm(), {}), {}),
        ((), {"state_manager": None, "context_builder": None, "llm_interface": Llm(), "config": {}}),
    ],
)
def test_the_managers_four_arguments_are_answered_with_what_to_use(
    arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    """The manager's four arguments in the design, by position or name, raise an error that names `open_memory`."""
    with pytest.raises(TypeError, match=r"use open_memory\(project, config=config, model=llm_interface\)"):
        OrchestratorContextManager(*arguments, **named)


@pytest.mark.parametrize(("name", "arguments", "use"), cases("a_designs_constructor_is_answered_with_what_to_use"))
def test_a_designs_constructor_is_answered_with_what_to_use(name: str, arguments: list[Any], use: str) -> None:
    """A constructor called as in the design raises an error with the class and the call to use."""
    with pytest.raises(TypeError, match=rf"^wrong arguments for {name} \(.+\): use {re.escape(use)}$"):
        getattr(orchestra_mem, name)(*arguments)


@pytest.mark.parametrize(("call", "use"), cases("a_name_of_a_design_is_answered_with_what_to_use"))
def test_a_name_of_a_design_is_answered(memory: OrchestratorContextManager, call: str, use: str) -> None:
    """A name of a design that is elsewhere here, in either spelling, raises an error that says what to use."""
    with pytest.raises((AttributeError, ImportError, TypeError), match=re.escape(f": {use}")):
        eval(call, {"memory": memory, "orchestra_mem": orchestra_mem, "shell": Orchestrator(memory)})
    assert Orchestrator(memory).orch_context is memory


def test_what_is_derived_from_a_class_takes_its_own_arguments(memory: OrchestratorContextManager) -> None:
    """A subclass may define its own constructor arguments, such as a configuration."""

    class Mine(Orchestrator):
        def __init__(self, config: dict[str, str]) -> None:
            super().__init__(memory, agent=config["agent"])

    assert Mine({"agent": "dana"}).memory is memory


def test_an_operation_is_read_by_its_keys(memory: OrchestratorContextManager) -> None:
    """An operation can be read like the design's dictionary: type, data, timestamp, tokens."""
    recorded = memory.record_operation("nl_command", {"result": "Created Story #12"}, 387)
    (operation,) = memory.query_recent_operations(limit=1)
    assert operation["type"] == "nl_command"
    assert operation["data"]["result"] == "Created Story #12"
    assert (operation["tokens"], operation.get("tokens", 0), operation.get("mood", "none")) == (387, 387, "none")
    assert operation["timestamp"] == recorded.timestamp
    assert "type" in operation
    assert dict(operation)["id"] == recorded.id
    with pytest.raises(KeyError, match="Operation has no 'mood'; it has id, session, type, data"):
        operation["mood"]


def test_a_context_is_read_by_its_keys(memory: OrchestratorContextManager) -> None:
    """A context can be read by the design's keys, with operations as dictionaries, newest first."""
    memory.record_operation("step", {"text": "heated the oven"})
    memory.record_operation("decision", {"text": "We decided to bake rye bread."})
    memory.refresh()
    context = memory.get_orchestrator_context("nl_command")
    assert [operation["type"] for operation in context["working_memory"]] == ["decision", "step"]
    assert "rye bread" in "".join(context["recent_decisions"])
    assert set(context) == {
        "working_memory", "session_summary", "project_state", "work_plan", "recent_decisions", "decision_history",
    }  # fmt: skip
    assert {key: context[key] for key in context} == dict(context) == context.as_dict()


def test_add_operation_takes_what_is_recorded_and_says_so(memory: OrchestratorContextManager) -> None:
    """`add_operation` keeps a recorded operation once; a dictionary raises an error that names `record_operation`."""
    recorded = memory.record_operation("step", {"text": "heated the oven"}, 5)
    memory.working_memory.add_operation(recorded)
    assert memory.working_memory.get_all_operations() == [recorded]
    alone = WorkingMemory(max_operations=3)
    alone.add_operation(recorded)
    assert alone.get_recent_operations() == [recorded]
    unrecorded: Any = {"type": "step", "data": {}, "tokens": 5}
    with pytest.raises(TypeError, match=r"use memory\.record_operation\(type, data, tokens\)"):
        memory.working_memory.add_operation(unrecorded)


def test_compress_spills_and_brings_the_session_within_its_size(memory: OrchestratorContextManager) -> None:
    """`compress` runs one refresh, which spills operations from working memory."""
    work(memory, 60)
    spilled, refreshes = memory.working_memory.get_stats()["operation_count"], memory.context_tracker.refresh_count
    memory.session_memory.compress()
    assert memory.context_tracker.refresh_count == refreshes + 1
    assert memory.working_memory.get_stats()["operation_count"] < spilled  # type: ignore[operator]
    assert memory.get_stats()["problems"] == []


def test_archive_ends_the_session(memory: OrchestratorContextManager) -> None:
    """`archive` ends the session and returns its document's path in the archive, named as in the design."""
    first = memory.record_operation("step", {"text": "one"}).session
    path = memory.session_memory.archive()
    assert path is not None
    assert path.is_file()
    assert re.fullmatch(rf"session_\d{{8}}_\d{{6}}_{first[:8]}\.md", path.name)
    assert path.parent.name == "archive"
    assert memory.flush_session() is None
    assert memory.record_operation("step", {"text": "two"}).session != first


def test_update_project_state_writes_what_is_recorded(memory: OrchestratorContextManager) -> None:
    """`update_project_state`, called as in the design, makes a recorded decision a recent decision."""
    memory.record_operation("decision", {"text": "We decided to keep batches in table t1."})
    assert "t1" not in memory.episodic_memory.path(orchestra_mem.types.DocumentName.DECISION_LOG).read_text("utf-8")
    memory.episodic_memory.update_project_state(memory.session_memory.get_current_state())
    assert any("t1" in line for line in memory.episodic_memory.get_recent_decisions(500))


def test_layers_are_loaded_one_after_the_other(memory: OrchestratorContextManager) -> None:
    """`load_layer1` returns an index, and `load_layer2` the texts of its best entries within a token budget."""
    for place in ("parser", "scheduler", "gateway", "importer"):
        memory.record_operation("message", {"text": f"The garnet {place} was slow because of its regular expressions."})
    index = memory.retriever.load_layer1("why was the garnet slow?")
    assert len(index) == 3
    assert all("garnet" in entry.title and entry.source and entry.full_tokens for entry in index)
    whole = memory.retriever.load_layer2(index, 2_000)
    assert whole == index
    assert "regular expressions" in whole[0].text
    assert memory.retriever.load_layer2(index, index[0].tokens) == index[:1]
    assert memory.retriever.load_layer2(index, 0) == []
    names: Any = [entry.source for entry in index]
    with pytest.raises(TypeError, match=r"takes entries of load_layer1, not their names; use memory\.expand"):
        memory.retriever.load_layer2(names, 500)


def test_clear_cache_forgets_what_a_pattern_names(memory: OrchestratorContextManager) -> None:
    """`clear_cache` removes results whose task or pattern matches; without an argument it removes all."""
    work(memory, 5)

    def cached() -> Any:
        return memory.retriever.get_stats()["cached"]

    for _ in range(50):  # results are not cached while the documents' mtimes are very recent
        memory.retriever.retrieve_context("mend the Parser")
        if cached():
            break
    memory.retriever.retrieve_context("paint the fence", agents=["lin"], pattern="parallel")
    memory.retriever.retrieve_context("paint the door")
    assert cached() == 3
    memory.retriever.clear_cache("parser")
    assert cached() == 2
    memory.retriever.clear_cache("parallel")
    assert cached() == 1
    memory.retriever.clear_cache("nothing that is there")
    assert cached() == 1
    memory.retriever.clear_cache()
    assert cached() == 0


@pytest.mark.parametrize("kind", ["send_prompt", "callable"])
def test_a_model_may_only_take_prompts(tmp_path: Path, kind: str) -> None:
    """An object with `send_prompt`, or a callable, can be used as a model."""
    llm = Llm()
    with open_memory(tmp_path, config=SMALL, model=llm if kind == "send_prompt" else llm.send_prompt) as memory:
        model = memory.model
        assert model is not None
        done = model.generate(ASKED, max_tokens=20, schema={"type": "object"})
        assert (done.text, done.finish) == ("It is blue.", Finish.STOP)
        (prompt,) = llm.prompts
        assert prompt.startswith("You answer.\n\nUser: What is it?\n\nAnswer with JSON alone")
        assert prompt.endswith("\n\nAssistant:")
        assert 0 < model.count_prompt(ASKED) < model.count_prompt(ASKED, tools=[{"type": "function"}])
        assert model.generate(ASKED, max_tokens=1).finish is Finish.LENGTH
        assert model.generate(ASKED, max_tokens=20, cancelled=lambda: True).finish is Finish.CANCELLED


def test_what_such_a_model_says_is_checked(tmp_path: Path) -> None:
    """A callable's answer is checked: invented lines are dropped, and its exceptions become `ModelError`."""
    said = "Mended the cursor in src/rows.py because it was opened too early"

    def answer(prompt: str) -> str:
        return json.dumps(dict.fromkeys(SESSION_KEYS, ()) | {"key_accomplishments": [said, "Bought a boat, table_9"]})

    def broken(prompt: str) -> str:
        raise OSError("the host's model is gone")

    with open_memory(tmp_path, config=SMALL, model=answer) as memory:
        operation = memory.record_operation("agent_message", {"text": f"{said}. Then there was tea."})
        assert memory.compressor.summarize_session({}, [operation])["key_accomplishments"] == [said]
    with open_memory(tmp_path, config=SMALL, model=broken) as memory:
        assert (
            memory.compressor.summarize_session({"key_accomplishments": []}, [operation])["key_accomplishments"] == []
        )
        assert memory.model is not None
        with pytest.raises(ModelError, match="broken failed: OSError: the host's model is gone"):
            memory.model.generate(ASKED, max_tokens=5)


def test_what_is_no_model_is_told(tmp_path: Path) -> None:
    """An object that is no model raises an error with the accepted kinds; a `LanguageModel` is used unchanged."""
    nothing: Any = object()
    with pytest.raises(TypeError, match=r"object is not a model: pass a LanguageModel .*send_prompt.*callable"):
        open_memory(tmp_path, model=nothing)
    model = FaithfulModel()
    with open_memory(tmp_path, model=model) as memory:
        assert memory.model is model
        Orchestrator(memory, model=Llm()).execute("what did we just do?")


def test_work_is_done_without_memory_where_that_is_asked(memory: OrchestratorContextManager) -> None:
    """With `use_memory=False` a task gets an empty context and is recorded all the same."""
    orchestrator = Orchestrator(memory)
    given: list[str] = []
    for number, use_memory in enumerate((True, False), 1):
        reply = orchestrator.execute(f'create task "bake bread {number}"', use_memory=use_memory)
        item = reply.effects[0].items[0]
        result = orchestrator.execute_task(
            item, lambda attempt: given.append(attempt.context.render()), use_memory=use_memory
        )
        assert memory.expand(f"op {result.operation}").operations[0]["data"]["task_id"] == item
    assert "bake bread 1" in given[0]
    assert given[1] == ""


def test_the_table_of_names_has_each_of_them() -> None:
    """The reference page of names contains every class and call tested in this module."""
    table = TABLE.read_text("utf-8")
    called = (
        'op["type"]', 'context["working_memory"]', "manager.compressor", "add_operation", "compress()", "archive()",
        "update_project_state", "loadLayer1", "loadLayer2", "clearCache(pattern)", "send_prompt", "useMemory: false",
        "project.id",
    )  # fmt: skip
    assert [name for name in (*CLASSES, *called) if name not in table] == []
