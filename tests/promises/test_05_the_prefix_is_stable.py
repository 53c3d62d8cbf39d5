"""Promise 5: between two refreshes each context begins with the bytes of the previous one."""

from __future__ import annotations

from pathlib import Path

from orchestra_mem import OrchestratorContextManager
from tests.memories import work
from tests.promises.conftest import documents


def test_within_an_epoch_a_context_only_grows_at_its_end(memory: OrchestratorContextManager) -> None:
    """Within an epoch each context begins with the previous context, and recalled text comes after that prefix."""
    before, epochs = memory.get_orchestrator_context("next prompt"), set[int]()
    for number in range(1, 80):
        work(memory, 1, number)
        context = memory.get_orchestrator_context("next prompt")
        epochs.add(context.epoch)
        if context.epoch == before.epoch:
            assert context.render().startswith(before.render()), number
        before = context
        if number % 5:
            continue
        asked = memory.get_orchestrator_context("next prompt", query="which table has batch 3?")
        if asked.epoch == context.epoch:
            assert asked.render().startswith(context.prefix)
        else:
            before = memory.get_orchestrator_context("next prompt")
    assert 1 < len(epochs) < 80 / 4


def test_a_persons_edit_is_told_at_the_end(memory: OrchestratorContextManager, tmp_path: Path) -> None:
    """A person's edit is appended to the context until the next refresh moves it into the prefix."""
    work(memory, 40)
    memory.refresh()
    before = memory.get_orchestrator_context("next prompt")
    state = documents(tmp_path)[0]
    state.write_text(state.read_text(encoding="utf-8") + "\n## Rules\n\n- Never deploy on Fridays.\n", encoding="utf-8")
    after = memory.get_orchestrator_context("next prompt")
    assert after.epoch == before.epoch
    assert after.render().startswith(before.prefix)
    assert "Never deploy on Fridays." in after.render()
    memory.refresh()
    assert "Never deploy on Fridays." in memory.get_orchestrator_context("next prompt").prefix


def test_reading_twice_gives_the_same_bytes(memory: OrchestratorContextManager) -> None:
    """Contexts requested without a change in between are equal byte for byte, whatever the clock says."""
    work(memory, 30)
    first = memory.get_orchestrator_context("next prompt").render()
    assert {memory.get_orchestrator_context("next prompt").render() for _ in range(5)} == {first}
