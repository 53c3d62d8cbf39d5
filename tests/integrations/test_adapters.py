"""All adapters: the memory imports none of their packages, missing ones are named, and the examples run."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage

from orchestra_mem import OrchestratorContextManager
from orchestra_mem.integrations.conversations import in_thread
from orchestra_mem.integrations.llama_index import OrchestraMemChatStore
from orchestra_mem.integrations.openai_agents import OrchestraMemSession
from tests.processes import python

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs/integrations.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
ADAPTERS = {"langgraph": "langgraph", "openai-agents": "agents", "llama-index": "llama_index"}


@pytest.mark.parametrize(("program", "printed"), EXAMPLES, ids=ADAPTERS)
def test_the_examples_run_as_printed(tmp_path: Path, program: str, printed: str) -> None:
    """Each example in the docs runs in an empty folder and prints the output shown below it."""
    assert python(program, cwd=tmp_path).stdout == printed


@pytest.mark.parametrize(("extra", "package"), ADAPTERS.items())
def test_a_missing_package_is_named_with_the_line_that_installs_it(tmp_path: Path, extra: str, package: str) -> None:
    """Without its package, an adapter's import fails with the line that installs the extra."""
    adapter = f"orchestra_mem.integrations.{extra.replace('-', '_')}"
    program = f"import sys; sys.modules[{package!r}] = None\ntry: import {adapter}\nexcept ImportError as e: print(e)"
    assert f"needs `pip install 'orchestra-mem[{extra}]'`" in python(program, cwd=tmp_path).stdout


def test_the_memory_loads_no_adapters_package(tmp_path: Path) -> None:
    """Importing, opening, using and searching a memory loads no adapter's package."""
    program = (
        "import sys, orchestra_mem\n"
        "with orchestra_mem.open_memory('.') as memory:\n"
        "    memory.record_operation('x', {'text': 'y'}); memory.search('y')\n"
        f"print(sorted({{*sys.modules}} & {set(ADAPTERS.values())}))"
    )
    assert python(program, cwd=tmp_path).stdout == "[]\n"


OLD = {
    "SDK": {"role": "user", "content": "hello"},
    "LlamaIndex": {"role": "user", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": "hello"}]},
}


@pytest.mark.parametrize("first", OLD)
@pytest.mark.parametrize("old", [False, True])
def test_two_programs_chats_of_one_name_are_apart(memory: OrchestratorContextManager, first: str, old: bool) -> None:
    """An SDK session and a LlamaIndex chat of one name are apart, also if an older version began one of them.

    Older versions gave both the same address; their chats are found and continued.
    """
    if old:  # the address of "ann", without an agent
        given: Any = {"text": "hello", "as_given": {"conversation": "ann", "message": OLD[first]}}
        key = "integrations.conversation e88c41eefefc66f2f02bb1204f6a28e1 b active 0 1 1"
        memory.record_operation("user_message", given, agent="user", idempotency_key=key)

    async def scenario() -> None:
        session, store = OrchestraMemSession("ann", memory), OrchestraMemChatStore(memory)
        heard, said = [OLD["SDK"]] * (old and first == "SDK"), ["hello"] * (old and first == "LlamaIndex")
        for _ in range(2):
            await session.add_items([OLD["SDK"]])  # type: ignore[list-item]
            await store.add_message("ann", ChatMessage(role="user", content="bye"))
            heard, said = [*heard, OLD["SDK"]], [*said, "bye"]
            assert await OrchestraMemSession("ann", memory).get_items() == heard
            assert [each.content for each in await store.get_messages("ann")] == said
        await OrchestraMemSession("only the SDK's", memory).add_items([OLD["SDK"]])  # type: ignore[list-item]
        assert await store.get_keys() == ["ann"]

    asyncio.run(scenario())


def test_the_loop_goes_on_and_a_cancelled_call_comes_to_its_end() -> None:
    """The event loop runs during a call; a cancelled call finishes before its `CancelledError` is raised."""
    done: list[str] = []

    def slow(name: str, fails: bool = False) -> str:
        time.sleep(0.2)
        done.append(name)
        if fails:
            raise OSError(name)
        return name

    async def scenario() -> int:
        ticks = 0
        waiting = asyncio.ensure_future(in_thread(slow, "first"))
        while not waiting.done():
            await asyncio.sleep(0.01)
            ticks += 1
        assert await waiting == "first"
        for fails in (False, True):
            cancelled = asyncio.ensure_future(in_thread(slow, f"cancelled {fails}", fails))
            await asyncio.sleep(0.05)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
        with pytest.raises(OSError, match="last"):
            await in_thread(slow, "last", True)
        return ticks

    assert asyncio.run(scenario()) >= 5
    assert done == ["first", "cancelled False", "cancelled True", "last"]
