"""Promise 7: each summary is checked; whatever a model answers, facts and identifiers come from the operations."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.testing import FaithfulModel, ScriptedModel
from tests.memories import SMALL, work
from tests.promises.conftest import slow_clock
from tests.timing import until

LIE = "All 99 tasks are done, see src/nowhere_4711.py and release 9.9.9."
# More bad models are in `tests/test_bad_models.py` and `tests/test_fact_reader.py`.
MODELS: dict[str, Callable[[], ScriptedModel]] = {
    "invents": lambda: ScriptedModel(
        json.dumps({"lines": [LIE], "summary": LIE, "facts": [{"kind": "decision", "quote": LIE}]})
    ),
    "is good": FaithfulModel,
}


def _with_model(folder: Path, model: ScriptedModel | None) -> OrchestratorContextManager:
    folder.mkdir()
    return open_memory(folder, config=SMALL, clock=slow_clock(), model=model)


@pytest.mark.parametrize("name", MODELS)
def test_whatever_a_model_says_the_memory_tells_what_was_recorded(tmp_path: Path, name: str) -> None:
    """No summary contains an identifier that its operations lack, and no fact found without a model is missing."""
    with _with_model(tmp_path / "without", None) as memory:
        work(memory, 60)
        memory.refresh()
        expected = {fact.text for fact in memory.facts()}
    model = MODELS[name]()
    with _with_model(tmp_path / "with", model) as memory:
        work(memory, 60)
        memory.refresh()
        until(lambda: model.prompts)
        asked = 0
        while asked < len(model.prompts):  # until the background jobs have no more to ask
            asked = len(model.prompts)
            time.sleep(0.2)
        memory.refresh()
        assert {fact.text for fact in memory.facts()} >= expected
        for summary in memory.losses():
            source = str([op.data for op in memory.expand(f"S{summary.id}").operations])
            assert set(re.findall(r"src/\w+\.py|\bt\d+\b", summary.text)) <= set(
                re.findall(r"src/\w+\.py|\bt\d+\b", source)
            )
        context = memory.get_orchestrator_context("next prompt").render()
    stored = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "with" / ".obra").rglob("*.md"))
    assert "nowhere_4711" not in context + stored
