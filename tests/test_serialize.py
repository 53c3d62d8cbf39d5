"""Records as JSON: any JSON value that is recorded is returned equal, anything else is refused with its path."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem import open_memory
from orchestra_mem.errors import InvalidOperationError
from orchestra_mem.serialize import (
    MAX_DEPTH,
    checked_json,
    dump_json,
    from_microseconds,
    to_json,
    to_microseconds,
    to_object,
)
from orchestra_mem.types import Json
from orchestra_mem.work_types import WorkKind
from tests.builders import cases
from tests.timing import assert_quick

WHEN = datetime(2025, 1, 15, 14, 30, 15, 123456, tzinfo=UTC)


def nested(depth: int, *, mapping: bool = False) -> Json:
    """A value nested in this many lists or mappings."""
    value: Json = "x"
    for _ in range(depth):
        value = {"k": value} if mapping else [value]
    return value


@pytest.mark.parametrize("mapping", [False, True])
def test_nesting_up_to_the_limit_is_recorded_and_beyond_it_refused(tmp_path: Path, mapping: bool) -> None:
    """The deepest allowed nesting is stored and read back; deeper and self-containing values are refused."""
    deepest = nested(MAX_DEPTH, mapping=mapping)
    with open_memory(tmp_path) as memory:
        operation = memory.record_operation("x", deepest)
        assert dump_json(memory.expand(f"op {operation.id}").operations[0].data) == dump_json(deepest)
        for depth in (MAX_DEPTH + 1, 5_000, 100_000):
            with pytest.raises(InvalidOperationError) as caught:
                memory.record_operation("x", nested(depth, mapping=mapping))
            assert caught.value.problem == f"nested deeper than {MAX_DEPTH} levels, or contains itself"
        loop: list[object] = []
        loop.append({"again": loop})
        with pytest.raises(InvalidOperationError, match="nested deeper than 500 levels, or contains itself"):
            memory.record_operation("x", loop)
        assert len(memory.operations()) == 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            {"files": [1, {"size": {1}}]},
            "data.files[1].size: a value of type set is not JSON; give a string, number, list or dict",
        ),
        (float("nan"), "data: nan is not a JSON number; record it as a string or as null"),
        ([float("-inf")], "data[0]: -inf is not a JSON number; record it as a string or as null"),
        ({"a": {3: 1}}, "data.a[3]: a key of type int is not a JSON key; make it a string"),
        ({"a b": object}, 'data["a b"]: a value of type type is not JSON; give a string, number, list or dict'),
        (b"x", "data: a value of type bytes is not JSON; give a string, number, list or dict"),
        ([2**14_000], "data[0]: an integer of over 4,300 digits; record it as a string"),
        ({"when": WHEN}, "data.when: a value of type datetime is not JSON; give a string, number, list or dict"),
    ],
)
def test_what_is_no_json_is_refused_with_the_path_to_it(value: object, message: str) -> None:
    """A value that is not JSON is refused with its path, its type and the remedy."""
    with pytest.raises(InvalidOperationError) as caught:
        checked_json(value)
    assert str(caught.value) == message


def test_ten_megabytes_are_copied_in_a_moment() -> None:
    """10 MB in one string take about 0.5 s to check and dump, and 100,000 small values about 2 s."""
    assert_quick(0.5, lambda: dump_json(checked_json("ü" * 10_000_000)))
    assert_quick(2.0, lambda: dump_json(checked_json([{"a": number} for number in range(100_000)])))


@given(
    st.datetimes(
        min_value=datetime(1, 1, 2),
        max_value=datetime(9999, 12, 30),
        timezones=st.just(UTC) | st.just(timezone(timedelta(hours=5))),
    )
)
def test_times_are_stored_to_the_microsecond(when: datetime) -> None:
    """Times from the year 1 to 9999 are stored to the microsecond, and are returned in UTC."""
    back = from_microseconds(to_microseconds(when))
    assert back == when
    assert back.utcoffset() == timedelta(0)


SHAPES: dict[str, str] = dict(cases("fields_of_what_a_memory_gives"))


def test_what_a_memory_gives_is_told_as_json_in_fixed_shapes(tmp_path: Path) -> None:
    """Each kind of result has fixed JSON fields in a fixed order, ISO 8601 times and enums as their values."""
    config = {
        "orchestrator": {"context_window": {"max_tokens": 2048}},
        "compaction": {"verbatim_window_s": 0, "verbatim_floor_tokens": 0, "segment_tokens": 300},
    }
    with open_memory(tmp_path, config=config) as memory:
        item = memory.state.create(WorkKind.EPIC, "Bake rye")
        first = memory.record_operation(
            "decision", {"text": "We decided to bake rye bread."}, agent="ann", critical=True, timestamp=WHEN
        )
        for number in range(80):
            memory.record_operation("note", {"text": f"Oven {number} was heated."}, timestamp=WHEN)
        memory.refresh()
        found: dict[str, Any] = {
            "operations": memory.operations()[0], "summary": memory.losses()[0], "fact": memory.facts()[0],
            "item": item, "events": memory.state.events(item.id)[0], "sessions": memory.sessions()[0],
            "versions": memory.episodic_memory.history("project_state")[0], "hits": memory.search("rye bread").hits[0],
        }  # fmt: skip
    told = {name: to_object(each) for name, each in found.items()}
    assert {name: " ".join(each) for name, each in told.items()} == SHAPES
    assert told["operations"] | {"session": "", "tokens": 0} == {
        "id": first.id, "session": "", "type": "decision", "data": {"text": "We decided to bake rye bread."},
        "timestamp": "2025-01-15T14:30:15.123456+00:00", "tokens": 0, "agent": "ann", "critical": True,
        "idempotency_key": None,
    }  # fmt: skip
    assert (told["fact"]["kind"], told["fact"]["superseded_by"]) == ("decision", None)
    assert (told["item"]["kind"], told["item"]["depends_on"], told["item"]["started"]) == ("epic", [], None)
    summary = told["summary"]
    assert summary["operations"] == [found["summary"].first_operation, found["summary"].last_operation]
    assert summary["ratio"] == round(found["summary"].ratio, 4)
    assert to_json(list(found.values())) == list(told.values()) == json.loads(json.dumps(list(told.values())))
