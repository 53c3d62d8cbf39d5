"""Search terms: text in any script is found, and any string is a valid query."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.core.periods import periods_in, unread_period
from orchestra_mem.core.search.question import read_question
from orchestra_mem.core.search.terms import MAX_QUERY_TERMS, chunk_names, exact_names, index_text, read_query, terms_of
from orchestra_mem.search_types import Chunk, Tier
from tests.builders import cases


def chunk(text: str, *, title: str = "", heading: tuple[str, ...] = (), operation: int = 0) -> Chunk:
    """A chunk with this text."""
    return Chunk(
        key="k", tier=Tier.SESSION, source="op 1", text=text, kind="message", group="s", position=1, title=title,
        heading=heading, operation=operation,
    )  # fmt: skip


def finds(query: str, text: str) -> bool:
    """Check whether keyword search would find a text: query and text share a term."""
    held = index_text(chunk(text))
    return bool(set(read_query(query).terms) & set(f"{held.identifiers} {held.body}".split(" ")))


# Queries


@pytest.mark.parametrize(("query", "terms", "names"), cases("a_query_asks_for_its_words_and_names"))
def test_a_query_asks_for_its_words_and_names(query: str, terms: list[str], names: list[str]) -> None:
    """Terms are stems without stop words, names complete and in parts, and pairs in scripts without spaces."""
    asked = read_query(query)
    assert ([*asked.terms], [*asked.identifiers]) == (terms, names)


@pytest.mark.parametrize(("query", "words"), cases("a_question_is_compared_by_its_telling_words"))
def test_a_question_is_compared_by_its_telling_words(query: str, words: list[str]) -> None:
    """Words without content in a question's language count for nothing; in no other language are they left out."""
    assert [*read_question(query, datetime(2026, 6, 1, tzinfo=UTC)).words] == words


@pytest.mark.parametrize(("query", "text"), cases("what_is_written_is_found"))
def test_what_is_written_is_found(query: str, text: str) -> None:
    """A text is found by other word forms and by parts of words, in any script."""
    assert finds(query, text)


@given(st.text())
def test_any_string_is_a_query_and_a_text(text: str) -> None:
    """Terms are bounded in number, encodable and without white space; a text that has terms finds itself."""
    asked = read_query(text)
    assert len(asked.terms) <= MAX_QUERY_TERMS
    assert set(asked.identifiers) <= set(asked.terms)
    for term in (*asked.terms, *terms_of(text)):
        assert term.encode("utf-8")
        assert not any(character.isspace() for character in term)
    assert finds(text, text) == bool(asked.terms)


# Texts


def test_a_chunk_is_indexed_by_columns() -> None:
    """Title, headings and body are separate columns; exact names and the operation number have their own."""
    held = index_text(chunk("Deployed src/app.py", title="Tool Call: bash", heading=("Work", "Done"), operation=12))
    assert (held.title, held.heading) == ("tool call bash", "work done")
    assert held.identifiers == "#12 src/app.py"
    assert held.body == "deploy src/app.py src app py"


def test_the_time_at_which_an_entry_was_written_is_found_by_its_day_alone() -> None:
    """Only the date of an entry's timestamp is indexed, so that "batch 14" does not match 14:25."""
    held = index_text(chunk("[2026-11-26 14:25:32] Keep batch 25", heading=("Log", "[14:05:09] Note")))
    assert (held.body, held.heading, held.words) == (
        "keep batch 25 2026-11-26",
        "log note",
        ("log", "note", "keep", "batch", "25"),
    )
    assert "14:25:32" in index_text(chunk("[14:25:32] The pump stopped", operation=12)).body, "a log's own time is said"


@pytest.mark.parametrize(("text", "names"), cases("exact_names_are_names_and_no_numbers"))
def test_exact_names_are_names_and_no_numbers(text: str, names: list[str]) -> None:
    """Exact names are what a person would copy and search for literally, and the operation number."""
    assert [*exact_names(text)] == names
    assert chunk_names(chunk(text, operation=5)) == ("#5", *names)


# Periods named in queries

NOW = datetime(2024, 1, 15, 12, tzinfo=UTC)  # a Monday


@pytest.mark.parametrize(("query", "first", "behind"), cases("a_time_named_is_a_period"))
def test_a_time_named_is_a_period(query: str, first: str, behind: str) -> None:
    """Days, months, years and relative times become periods; without a year, the last one that is not in the future."""
    (period,) = periods_in(f"What happened {query}?", NOW)
    assert (f"{period.start:%Y-%m-%d}", f"{period.end:%Y-%m-%d}") == (first, behind)


@pytest.mark.parametrize("query", cases("what_is_no_time_is_no_period"))
def test_what_is_no_time_is_no_period(query: str) -> None:
    """Text that names no time, or a day that does not exist, yields no period."""
    assert periods_in(query, datetime(900, 1, 15, tzinfo=UTC)) == ()


@pytest.mark.parametrize(("question", "told"), cases("a_time_that_is_not_read_is_told"))
def test_a_time_that_is_not_read_is_told(question: str, told: str) -> None:
    """The words for a time that is not read, or only in part, are found, so that nobody takes it for read."""
    assert unread_period(f"What did we decide {question}?", NOW) == told


def test_several_times_come_in_order_each_once_and_the_present_is_in_utc() -> None:
    """Periods come in order without duplicates, and "today" is the current day in UTC."""
    found = periods_in("between 3 May 2023 and 5 May 2023, not 3 May 2023", NOW)
    assert [period.start.day for period in found] == [3, 5]
    evening = datetime(2024, 1, 14, 22, tzinfo=timezone(timedelta(hours=-5)))
    assert periods_in("today", evening) == periods_in("today", NOW)


@given(st.text(), st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31)))
def test_any_query_at_any_time_is_read(query: str, now: datetime) -> None:
    """For any query and time, each period ends after it starts."""
    words = f"{query} last week, 12 years ago, last month, in May, on 29 February, this year, last year, past year"
    assert all(period.start < period.end for period in periods_in(words, now.replace(tzinfo=UTC)))
