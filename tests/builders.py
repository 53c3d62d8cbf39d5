"""Builders of records and counters that several tests share, with a default for every field."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem.core.context import assembly
from orchestra_mem.core.context.items import Part
from orchestra_mem.types import Json, Operation, Summary
from tests.conftest import START

# The shares of `config/default_config.yaml`.
SHARES = {
    Part.PROJECT_STATE: 0.25, Part.WORK_PLAN: 0.15, Part.DECISIONS: 0.10, Part.SESSION: 0.20, Part.OPERATIONS: 0.30,
}  # fmt: skip
begin_epoch = partial(assembly.begin_epoch, shares=SHARES, sources={}, fill_at_start=0.5, lends=True)


def cases(name: str) -> list[Any]:
    """Read a table of cases from `tests/data`: one JSON value per line."""
    lines = (Path(__file__).parent / "data" / f"{name}.jsonl").read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def promised(name: str) -> list[Any]:
    """Read a table of cases whose first column is the promise that the case shows; pytest uses it as the case's id."""
    return [pytest.param(*given, id=promise) for promise, *given in cases(name)]


class Counter:
    """Token counter over any function of the text, which also counts its calls in `asked`."""

    def __init__(self, name: str, count: Callable[[str], int], *, additive: bool = False, exact: bool = False) -> None:
        self.name, self.additive, self.exact = name, additive, exact
        self.asked = 0
        self._count = count

    def count(self, text: str) -> int:
        """Count the tokens of a text."""
        self.asked += 1
        return self._count(text)

    def __repr__(self) -> str:
        return self.name


def letters(surplus: int = 0) -> Counter:
    """Return a counter of one token per character; with a surplus for each text it is no longer additive."""
    return Counter("letters", lambda text: len(text) + surplus if text else 0, additive=not surplus, exact=True)


def an_operation(number: int, data: Json = None, **given: Any) -> Operation:
    """Make an operation of session `s`; keyword arguments replace its fields."""
    made = Operation(id=number, session="s", type="note", data=data, timestamp=START, tokens=1, entry_tokens=1)
    return replace(made, **given)


def a_summary(number: int, first: int, last: int, **given: Any) -> Summary:
    """Make a summary of consecutive operations of session `s`; keyword arguments replace its fields."""
    made = Summary(
        id=number, session="s", level=1, first_operation=first, last_operation=last, operation_count=last - first + 1,
        children=(), text="- Text.\n", method="extractive", tokens=9, source_tokens=90, must_keeps=(), dropped=(),
        put_back=(), since=START, until=START, created=START,
    )  # fmt: skip
    return replace(made, **given)
