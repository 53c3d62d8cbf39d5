"""Entries of operations: any JSON becomes an entry of bounded size with one heading, in milliseconds."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestra_mem.core.context.as_read import entry_as_read
from orchestra_mem.core.documents.entries import Entry, clip, flat, is_critical, label, plain_text
from orchestra_mem.core.facts.prose import fields_of
from orchestra_mem.types import Json, Operation
from tests.builders import cases
from tests.timing import assert_quick

WHEN = datetime(2025, 1, 15, 14, 30, 15, tzinfo=UTC)
TEN_MEGABYTES = "a line of output, ünd more\n" * 380_000
ANY_TEXT = st.text(st.characters(exclude_categories=[])) | st.sampled_from(
    ["\ud800", "\n### x (op 3)\n", "\x00\r\n\u2028"]
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT | st.sampled_from(["title", "text", "status"]), inner),
    max_leaves=25,
)


def operation(data: Json, *, kind: str = "nl_command", number: int = 12, tokens: int = 5, size: int = 5) -> Operation:
    """An operation with these data."""
    return Operation(id=number, session="s", type=kind, data=data, timestamp=WHEN, tokens=tokens, entry_tokens=size)


def text_of(data: Json, *, max_chars: int = 4_000, kind: str = "nl_command") -> str:
    """Return the entry of an operation on the session's first day."""
    return Entry(operation=operation(data, kind=kind), started=date(2025, 1, 15), max_chars=max_chars).text


def test_an_entry_reads_as_the_source_design_shows_it() -> None:
    """The heading has time, type, subject and number; then comes a line per field, and the tokens if reported."""
    data: Json = {"user_input": "Create epic for auth", "intent": "CREATE", "result": "Created Epic #5", "ok": True}
    entry = Entry(operation=operation(data, tokens=512), started=date(2025, 1, 15), max_chars=4_000)
    assert entry.text == (
        '### [14:30:15] NL Command: CREATE (op 12)\n**Input**: "Create epic for auth"\n**Intent**: CREATE\n'
        "**Result**: Created Epic #5\n**Ok**: yes\n**Tokens**: 512\n\n"
    )
    assert entry.short == "- [14:30:15] NL Command: CREATE (op 12): Created Epic #5\n"


@pytest.mark.parametrize(
    ("kind", "data", "short"),
    [
        ("task_execution", {"task": "fix the form", "status": "completed"}, "(op 12): fix the form: completed"),
        ("tool_use", {"tool": "shell", "input": "pytest -q", "output": "1 passed"}, "shell (op 12): pytest -q"),
        ("message", {"speaker": "Ann", "text": "Hello."}, "Ann (op 12): Hello."),
    ],
)
def test_the_short_form_names_the_task_or_the_input(kind: str, data: Json, short: str) -> None:
    """The short form of an entry names what was done and to what end."""
    entry = Entry(operation=operation(data, kind=kind), started=date(2025, 1, 15), max_chars=4_000)
    assert entry.short.endswith(f"{short}\n")


def test_an_entry_of_another_day_has_its_date() -> None:
    """An entry from another day than the session's first, even an earlier one, shows its date."""
    entry = Entry(operation=operation({"text": "x"}), started=date(2025, 1, 14), max_chars=4_000)
    assert entry.text.startswith("### [2025-01-15 14:30:15] NL Command (op 12)\n")
    early = Operation(id=1, session="s", type="x", data=1, timestamp=WHEN - timedelta(days=9), tokens=1, entry_tokens=1)
    entry = Entry(operation=early, started=date(2025, 1, 15), max_chars=4_000)
    assert entry.text == "### [2025-01-06 14:30:15] X (op 1)\n**Data**: 1\n\n"


@given(ANY_JSON, st.integers(100, 5_000))
@example({"x": "\x00" * 20_000}, 4_000)
@example({"x": "\ud800" * 20_000}, 4_000)
@example({"x": "\n" * 20_000 + "y"}, 4_000)
@example({"x": "a\n" * 20_000}, 4_000)
@example(["\n"] * 100, 100)
@example({"k" * 9_999: 1}, 100)
@example({str(i): "" for i in range(5_000)}, 4_000)
def test_any_json_has_an_entry_of_bounded_size_with_one_heading(data: Json, max_chars: int) -> None:
    """Any JSON has an entry and a short form of bounded size, with one heading, that can be encoded as UTF-8."""
    entry = Entry(operation=operation(data), started=date(2025, 1, 15), max_chars=max_chars)
    lines = entry.text.splitlines()
    assert [line for line in lines if line.lstrip(" ").startswith("#")] == lines[:1]
    assert entry.text.endswith("\n\n")
    assert len(entry.text) <= 3 * max_chars + 900
    assert entry.short.count("\n") == 1
    assert len(entry.short.splitlines()) == 1
    assert len(entry.short) <= 400
    assert entry.text.encode("utf-8")
    assert entry.short.encode("utf-8")


@given(ANY_JSON)
def test_any_json_has_a_plain_text_that_can_be_stored(data: Json) -> None:
    """The plain text for summarisers is bounded, has no NUL, and can be encoded as UTF-8."""
    text = plain_text(operation(data), max_chars=2_000)
    text.encode("utf-8")
    assert "\x00" not in text
    assert len(text) <= 3_000


def test_an_imported_note_reads_as_it_was_written() -> None:
    """The lines of an imported note are told without their numbers, to summarisers and in contexts."""
    data: Json = {"line 1": "# Shop\n\nWe sell rye bread.", "line 5": {"decision": "use nginx"}}
    assert plain_text(operation(data)) == "# Shop\n\nWe sell rye bread.\nDecision: use nginx"
    short, full = entry_as_read(text_of(data, kind="note"))
    assert short == "- Note (op 12): Shop; We sell rye bread.; Decision: use nginx\n"
    assert full == "- Note (op 12)\n> # Shop\n>\n> We sell rye bread.\nDecision: use nginx\n"


def test_both_ends_of_a_long_text_are_kept_without_spaces_too() -> None:
    """A long text without spaces, such as Chinese, is clipped in the middle and keeps both ends."""
    text = plain_text(operation({"text": "開" * 5_000 + "終" * 5_000}), max_chars=8_000)
    assert (text.count("開"), text.count("終")) == (5_000, 2_999)


LARGE: list[Json] = [
    TEN_MEGABYTES, [TEN_MEGABYTES], {"output": TEN_MEGABYTES}, {"title": TEN_MEGABYTES, "result": TEN_MEGABYTES},
    {"a": {"b": [TEN_MEGABYTES]}}, {"status": "completed", "out": [TEN_MEGABYTES]}, {TEN_MEGABYTES: 1},
    {"x": {TEN_MEGABYTES: 1}}, "\x00" * 10_000_000, {"output": "\ud800" * 10_000_000},
    {"output": "\n" * 10_000_000}, {"output": " " * 10_000_000 + "x"}, [["word"] * 1_000] * 1_000,
    {str(number): "value" for number in range(300_000)}, {"status": ["x" * 100] * 100_000},
]  # fmt: skip


@pytest.mark.parametrize("data", LARGE, ids=[f"case{number}" for number in range(len(LARGE))])
def test_ten_megabytes_are_rendered_in_milliseconds(data: Json) -> None:
    """Rendering and judging an operation of ten megabytes takes less than 50 ms."""
    value = operation(data)

    def render() -> None:
        entry = Entry(operation=value, started=date(2025, 1, 15), max_chars=4_000)
        assert entry.text
        assert entry.short
        plain_text(value)
        is_critical(value.type, value.data)

    assert_quick(0.05, render)


def test_what_a_program_keeps_for_itself_is_shown_to_nobody() -> None:
    """The `as_given` data of an operation appear neither in its entry nor in its plain text, nor among its fields."""
    said: dict[str, Json] = {"role": "user", "text": "We decided to bake."}
    kept: dict[str, Json] = {**said, "as_given": {"status": "completed", "message": "Never bake."}}
    assert plain_text(operation(kept)) == "We decided to bake."
    assert text_of(kept) == text_of(said)
    assert list(fields_of(operation(kept))) == list(fields_of(operation(said)))


def test_the_digest_of_a_note_is_not_shown() -> None:
    """The digest by which an import recognises a changed note is in no entry."""
    note: dict[str, Json] = {"title": "Kitchen", "text": "We bake on Tuesdays."}
    digest: dict[str, Json] = {"version_sha": "9cf75188ff694122c3fad5a1"}
    assert text_of(note | digest, kind="note") == text_of(note, kind="note")
    assert "9cf75188ff694122c3fad5a1" in text_of(digest, kind="deploy")


def test_what_is_left_out_is_told() -> None:
    """Clipped values and left-out fields name the command that shows them."""
    long = text_of({"output": "x" * 10_000}, max_chars=400)
    assert "characters left out: expand op 12] … " in long
    many = text_of({f"f{number}": "y" * 50 for number in range(100)}, max_chars=400)
    shown = many.count("**F")
    assert many.rstrip().endswith(f"*({100 - shown} more fields: expand op 12)*")


@pytest.mark.parametrize(("kind", "data", "critical"), cases("what_matters_by_its_kind_is_critical"))
def test_what_matters_by_its_kind_is_critical(kind: str, data: Json, critical: bool) -> None:
    """Decisions, failures and completed large work are critical, as in the source design."""
    assert is_critical(kind, data) is critical


@pytest.mark.parametrize(("name", "read"), cases("names_are_read_as_people_write_them"))
def test_names_are_read_as_people_write_them(name: str, read: str) -> None:
    """Field names become labels: underscores turn into spaces, words are capitalised, and acronyms are known."""
    assert label(name).strip() == read.strip()


@given(st.text(max_size=300), st.integers(10, 100))
def test_clipping_keeps_head_and_tail_and_says_how_much_is_gone(text: str, most: int) -> None:
    """Long text keeps two thirds of the limit at its start and one third at its end, with a count between."""
    shown = clip(text, most)
    if len(text) <= most:
        assert shown == text
    else:
        head, tail = most * 2 // 3, most // 3
        left_out = len(text) - head - tail
        assert shown == f"{text[:head]} … [{left_out:,} characters left out] … {text[len(text) - tail :]}"


@pytest.mark.parametrize(("value", "text"), cases("json_reads_as_text_of_few_symbols"))
def test_json_reads_as_text_of_few_symbols(value: Json, text: str) -> None:
    """JSON reads as text: words for truth values, commas in lists, names before values."""
    assert flat(value, 1_000) == text
