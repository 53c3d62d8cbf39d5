"""Records that several tests make up, with defaults for all that a test does not care about."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem.types import Json, Operation, Summary
from tests.conftest import START


def cases(name: str) -> list[Any]:
    """Read a table of cases, a JSON value a line, from `tests/data`."""
    lines = (Path(__file__).parent / "data" / f"{name}.jsonl").read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def promised(name: str) -> list[Any]:
    """Read a table of cases that each begin with the promise that they show, by which pytest names them."""
    return [pytest.param(*given, id=promise) for promise, *given in cases(name)]


class Counter:
    """Counts tokens by any function of the text, and how often it was asked."""

    def __init__(self, name: str, count: Callable[[str], int], *, additive: bool = False, exact: bool = False) -> None:
        self.name, self.additive, self.exact = name, additive, exact
        self.asked = 0
        self._count = count

    def count(self, text: str) -> int:
        """Count."""
        self.asked += 1
        return self._count(text)

    def __repr__(self) -> str:
        return self.name


def letters(surplus: int = 0) -> Counter:
    """One token a character; a surplus for any text breaks the law of addition."""
    return Counter("letters", lambda text: len(text) + surplus if text else 0, additive=not surplus, exact=True)


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
