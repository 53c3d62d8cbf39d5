"""A memory shared by all examples of a property."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OrchestratorContextManager]:
    """A memory that redacts nothing."""
    with open_memory(tmp_path_factory.mktemp("exact"), config={"redaction.mode": "off"}) as memory:
        yield memory
