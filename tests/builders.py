"""Records that several tests make up, with defaults for all that a test does not care about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orchestra_mem.types import Json, Operation, Summary
from tests.conftest import START


def an_operation(number: int, data: Json = None, **given: Any) -> Operation:
    """Make an operation of session `s`, with any of its fields as given."""
    made = Operation(id=number, session="s", type="note", data=data, timestamp=START, tokens=1, entry_tokens=1)
    return replace(made, **given)


def a_summary(number: int, first: int, last: int, **given: Any) -> Summary:
    """Make a summary of a run of operations of session `s`, with any of its fields as given."""
    made = Summary(
        id=number, session="s", level=1, first_operation=first, last_operation=last, operation_count=last - first + 1,
        children=(), text="- Text.\n", method="extractive", tokens=9, source_tokens=90, must_keeps=(), dropped=(),
        put_back=(), since=START, until=START, created=START,
    )  # fmt: skip
    return replace(made, **given)
