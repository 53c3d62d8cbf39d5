"""Compaction: what is due, where segments are cut, checks of summaries, and the growth of levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestra_mem.adapters.tokenizers import open_counter
from orchestra_mem.core.identifiers import quoted_names
from orchestra_mem.core.summaries.compaction import Limits, cut_segments, due, merges
from orchestra_mem.core.summaries.drafts import Draft, Material, Source, check, checked, draft_of
from orchestra_mem.core.summaries.kept import KEPT, body_of, kept_lines, kept_part, name_facts, with_states
from orchestra_mem.types import Author, MustKeep, MustKeepKind, MustKeepStatus, Summary
from tests.builders import a_summary, cases

START = datetime(2025, 1, 15, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)
COUNTER = open_counter("tiktoken")
LIMITS = Limits.for_threshold(40_000, ratio=0.7, floor=2_000, segment=2_000, summary_ratio=0.2, fan_in=8)


def limits(threshold: int) -> Limits:
    """Return the default sizes, scaled to a threshold."""
    return Limits.for_threshold(threshold, ratio=0.7, floor=2_000, segment=2_000, summary_ratio=0.2, fan_in=8)


def source(
    number: int, *, tokens: int = 100, task: str = "", kind: str = "x", text: str = "", minutes: int = 0
) -> Source:
    """An operation as compaction sees it."""
    when = START + timedelta(minutes=minutes or number)
    return Source(operation=number, time=when, type=kind, text=text, tokens=tokens, task=task)


def summarised(sources: Sequence[Source], facts: Sequence[MustKeep], target_tokens: int) -> Draft:
    """Draft the summary of a segment."""
    return draft_of(Material.of_operations(sources, facts), target_tokens=target_tokens, counter=COUNTER)


def material(text: str, tokens: int, facts: Sequence[MustKeep] = ()) -> Material:
    """Material that consists of one source text."""
    return Material(passages=(), source_text=text, source_tokens=tokens, facts=tuple(facts))


def fact(number: int, text: str, *, status: MustKeepStatus = MustKeepStatus.STANDING, by: int = 0) -> MustKeep:
    """A decision found in the operation of the same number."""
    return MustKeep(
        id=number, kind=MustKeepKind.DECISION, text=text, operation=number, timestamp=START, status=status,
        superseded_by=by,
    )  # fmt: skip


def summary(number: int, first: int, last: int, *, tokens: int = 400, **given: Any) -> Summary:
    """A summary of a run of operations."""
    return a_summary(number, first, last, tokens=tokens, source_tokens=tokens * 5, must_keeps=(number,), **given)


# Due operations

ENTRIES = st.lists(st.tuples(st.integers(1, 3_000), st.integers(0, 600)), max_size=40).map(
    lambda pairs: [(i + 1, tokens, START + timedelta(minutes=minute)) for i, (tokens, minute) in enumerate(pairs)]
)


def _minutes(*minutes: int) -> list[tuple[int, int, datetime]]:
    """Entries of 500 tokens each, at these minutes."""
    return [(n, 500, START + timedelta(minutes=minute)) for n, minute in enumerate(minutes, 1)]


@pytest.mark.parametrize(
    ("entries", "document_tokens", "count"),
    [
        # The last hour is not compacted.
        (_minutes(*range(1, 60)), 29_500, 0),
        ([], 99_000, 0),
        # The window is counted back from the newest time, and includes its border.
        (_minutes(*range(10, 201, 10)), 10_000, 13),
        # Less than a segment is due only if the document exceeds its threshold.
        ([(0, 1_900, START), *_minutes(*[180] * 10)], 7_000, 0),
        ([(0, 1_900, START), *_minutes(*[180] * 10)], 40_001, 7),
        # One operation with a time in the future does not keep operations that are hours old.
        (_minutes(540, *range(0, 400, 10)), 20_500, 34),
    ],
)
def test_what_is_older_than_the_window_is_due_where_it_is_enough(
    entries: list[tuple[int, int, datetime]], document_tokens: int, count: int
) -> None:
    """Entries older than the window are due if they fill a segment; a clock that jumped back blocks nothing."""
    assert due(entries, document_tokens=document_tokens, window=HOUR, limits=LIMITS) == count


@given(ENTRIES, st.integers(0, 200_000))
def test_the_floor_holds_and_the_excess_goes(entries: list[tuple[int, int, datetime]], other: int) -> None:
    """The newest `floor` tokens stay; above the threshold, enough is due to reach the target after summarising."""
    tokens = sum(size for _, size, _ in entries) + other
    count = due(entries, document_tokens=tokens, window=HOUR, limits=LIMITS)
    assert 0 <= count <= len(entries)
    left = sum(size for _, size, _ in entries[count:])
    if count:
        assert left >= LIMITS.floor
    if tokens > LIMITS.threshold and count < len(entries):
        saved = 0.8 * (sum(size for _, size, _ in entries) - left)
        blocked = sum(size for _, size, _ in entries[count + 1 :]) < LIMITS.floor
        assert blocked or tokens - saved <= LIMITS.target


# Where segments are cut

RUNS = st.lists(
    st.tuples(st.sampled_from(["", "", "a", "b", "c"]), st.integers(1, 900), st.sampled_from(["x", "request"])),
    max_size=60,
).map(lambda rows: [source(i + 1, tokens=tokens, task=task, kind=kind) for i, (task, tokens, kind) in enumerate(rows)])


def run_tokens(sources: Sequence[Source], position: int) -> int:
    """Count the tokens of the run of same-task neighbours that contains `position`."""
    task = sources[position].task
    first = last = position
    while first > 0 and sources[first - 1].task == task:
        first -= 1
    while last + 1 < len(sources) and sources[last + 1].task == task:
        last += 1
    return sum(s.tokens for s in sources[first : last + 1])


# 0.7 of a segment without a task, then a task of 1.4 segments, and another task.
BEHIND_OTHER_WORK = [source(n, tokens=100, task="" if n < 8 else "a" if n < 22 else "b") for n in range(1, 40)]


@given(RUNS, st.integers(200, 2_000))
@example(BEHIND_OTHER_WORK, 1_000)
def test_a_task_is_cut_only_where_it_alone_is_over_twice_the_size(sources: list[Source], size: int) -> None:
    """A border between segments lies inside a task only if the task exceeds twice the segment size."""
    segments = cut_segments(sources, size)
    position = 0
    for segment in segments[:-1]:
        position += len(segment)
        before, after = sources[position - 1], sources[position]
        if before.task and before.task == after.task:
            assert run_tokens(sources, position) > 2 * size


@given(RUNS.filter(bool), st.integers(200, 2_000))
def test_segments_are_about_the_size_asked_for(sources: list[Source], size: int) -> None:
    """All segments but the last have at least 0.3 of the size; without tasks, none exceeds about twice the size.

    Every operation is in exactly one segment, in the order given.
    """
    segments = cut_segments(sources, size)
    assert [s for segment in segments for s in segment] == sources
    assert all(segments)
    for segment in segments[:-1]:
        assert sum(s.tokens for s in segment) >= size * 0.3
    for segment in segments:
        tasks = {s.task for s in segment}
        if tasks == {""}:
            assert sum(s.tokens for s in segment) <= 2 * size + max(s.tokens for s in segment) + size // 3


# Checks of summaries


def talk(count: int, *, start: int = 1) -> list[Source]:
    """Operations with a different text each."""
    nouns = ["parser", "cache", "router", "index", "queue", "session", "ledger", "window", "budget", "merge"]
    verbs = ["reads", "writes", "drops", "keeps", "counts", "sorts", "skips", "locks", "splits", "joins"]
    texts = [
        f"The {nouns[n % 10]} of module_{n} {verbs[n * 7 % 10]} its {nouns[n * 3 % 10]} after {n + 3} ms, which took "
        f"{verbs[n * 3 % 10]} and a second look at src/part_{n}.py before it passed. Nothing else was touched there."
        for n in range(start, start + count)
    ]
    return [
        source(start + i, text=text, tokens=COUNTER.count(text) + 12, task=str((start + i) // 4))
        for i, text in enumerate(texts)
    ]


def test_what_a_person_removed_leaves_the_lines_of_other_facts_whole() -> None:
    """A removed fact's line goes, and its words in the body; other facts with the same words keep theirs."""
    stood, stands = fact(1, "Call Ben."), fact(2, "Call Ben. Then Ana.")
    gone = replace(stood, status=MustKeepStatus.REMOVED)
    text = f"- user: Call Ben.\n{kept_lines([stood, stands])}"
    assert with_states(text, {1: gone, 2: stands}, [gone]) == f"- user: \n{kept_lines([stands])}"


def test_a_rule_of_somebody_that_was_removed_leaves_among_their_other_words() -> None:
    """The name before a rule in the first person is no part of the words that a removed fact takes along."""
    gone = replace(fact(1, "Ann: I never bake on Sundays."), status=MustKeepStatus.REMOVED)
    text = f"- Ann: Good morning. I never bake on Sundays.\n{kept_lines([fact(1, gone.text)])}"
    assert with_states(text, {1: gone}, [gone]).strip().removesuffix(KEPT) == "- Ann: Good morning. \n\n"


def test_every_must_keep_stands_word_for_word_with_its_number_and_state() -> None:
    """All must-keeps are listed below the summary, in order, even if there is no room for anything else."""
    sources = talk(20)
    facts = [
        fact(1, "Use MySQL.", status=MustKeepStatus.SUPERSEDED, by=3),
        fact(2, "Ship  it\n on   Monday.", status=MustKeepStatus.DONE),
        fact(3, "Use SQLite."),
        fact(4, "Gone.", status=MustKeepStatus.SUPERSEDED),
        replace(fact(5, "Ship it by boat.", by=3), author=Author.PERSON),
    ]
    draft = summarised(sources, facts, 1)
    assert draft.text == (
        "Kept:\n\n- Decision K1 (superseded by K3): Use MySQL.\n- Decision K2 (done): Ship it on Monday.\n"
        "- Decision K3: Use SQLite.\n- Decision K4 (superseded): Gone.\n"
        "- Decision K5 (perhaps superseded by K3): Ship it by boat.\n"
    )
    assert draft.must_keeps == (1, 2, 3, 4, 5)
    assert draft.put_back == tuple(f.text for f in facts)
    assert draft.passed


def test_a_fact_of_a_body_that_is_dropped_counts_as_put_back() -> None:
    """A body longer than its source is dropped, and its must-keeps remain and count as put back."""
    said = Material.of_operations([source(3, text="Use SQLite.")], [fact(3, "Use SQLite.")])
    draft = checked(said, "Use SQLite. " * 99, COUNTER)
    assert (draft.text, draft.put_back) == ("Kept:\n\n- Decision K3: Use SQLite.\n", ("Use SQLite.",))


def test_the_check_finds_what_is_invented_and_what_is_missing() -> None:
    """The check reports invented identifiers and missing must-keeps; white space makes no difference."""
    facts = [fact(1, "Use  SQLite\nhere."), fact(2, "Never on Fridays.")]
    text = "Epic #12 uses SQLite. Use SQLite here. See src/a.py and src/b.py."
    verdict = check(material("Epic #11 is in src/a.py", 100, facts), text, COUNTER)
    assert set(verdict.invented) >= {"#12", "src/b.py"}
    assert "src/a.py" not in verdict.invented
    assert verdict.missing == (facts[1],)
    assert not verdict.passed


@pytest.mark.parametrize(("tokens", "passed"), [(5, False), (6, True)])
def test_a_summary_must_be_shorter_than_its_source(tokens: int, passed: bool) -> None:
    """A summary with as many tokens as its source does not pass."""
    text = "one two three four five"
    assert COUNTER.count(text) == 5
    assert check(material(text, tokens), text, COUNTER).passed is passed


@pytest.mark.parametrize("said", cases("a_higher_summary_quotes_nothing_but_what_the_lower_ones_quote"))
def test_a_higher_summary_quotes_nothing_but_what_the_lower_ones_quote(said: str) -> None:
    """A cut inside quotation marks never makes unquoted text appear quoted, or joins two passages."""
    children = [
        summary(number, number * 20 + 1, number * 20 + 20, text=f"2025-01-15:\n- It was {word}.\n{said}", tokens=90)
        for number, word in enumerate(["rebuilt after the outage in Lisbon", "moved into the cellar of the archive"])
    ]
    for target in range(10, 130, 5):
        merged = draft_of(Material.of_summaries(children), target_tokens=target, counter=COUNTER)
        assert quoted_names(merged.text) <= quoted_names(said)


def test_a_higher_summary_joins_no_lines_and_says_which_of_them_are_facts() -> None:
    """Each line of a lower summary stays by itself: fields of two orders never become one, nor a fact and an order."""
    done = fact(3, "Order 320 gift boxes for the fair.", status=MustKeepStatus.DONE)
    body = "2025-01-15:\n- Order: 1013; Customer: the fire brigade\n- Lines: rolls, Quantity: 737\n"
    child = summary(1, 1, 9, text=f"{body}{kept_lines([done, fact(4, 'Deliver before seven.')])}", tokens=90)
    merged = draft_of(Material.of_summaries([child]), target_tokens=80, counter=COUNTER)
    assert body_of(merged.text).splitlines()[:4] == [
        "- Order: 1013; Customer: the fire brigade",
        "- Lines: rolls, Quantity: 737",
        "- Decision K3 (done): Order 320 gift boxes for the fair.",
        "- Decision K4: Deliver before seven.",
    ]  # fmt: skip
    again = draft_of(Material.of_summaries([summary(2, 1, 9, text=merged.text)]), target_tokens=80, counter=COUNTER)
    assert body_of(again.text) == body_of(merged.text)
    removed = replace(done, status=MustKeepStatus.REMOVED)
    assert "boxes" not in with_states(merged.text, {3: removed}, [removed])


@pytest.mark.parametrize(
    ("numbers", "names"),
    [
        ([], ""), ([3], "Kept: K3.\n"), ([4, 3], "Kept: K3–K4.\n"), ([9, 3, 5, 4], "Kept: K3–K5, K9.\n"),
        (list(range(1, 25, 2)), "Kept: K1, K3, K5, K7, K9, K11, K13, K15, K17, K19, K21, K23.\n"),
        (list(range(1, 2_002, 2)), "Kept: 1,001 facts between K1 and K2001.\n"),
    ],
)  # fmt: skip
def test_facts_are_named_by_ranges(numbers: list[int], names: str) -> None:
    """Consecutive numbers become a range; of very many facts only the count and both ends are named."""
    assert name_facts(numbers) == names


@given(st.lists(st.text(max_size=30), max_size=4), st.text(max_size=80))
def test_body_and_kept_part_are_the_two_halves_of_a_summary(texts: list[str], body: str) -> None:
    """A summary is split into the body and the list of must-keeps from which it was built."""
    body = body.replace(KEPT, "").strip("\n")
    kept = kept_lines([fact(n + 1, text) for n, text in enumerate(texts)])
    text = f"{body}\n{kept}" if body else kept.lstrip("\n")
    assert body_of(text).strip("\n") == body
    assert kept_part(text) == kept.lstrip("\n")
    assert kept_part(text).count("\n- Decision K") == len(texts)


# Growth of levels


def grown(count: int, threshold: int) -> list[Summary]:
    """Return the summaries that remain after `count` segments."""
    bounds = limits(threshold)
    standing: list[Summary] = []
    number = 0
    for segment in range(count):
        number += 1
        standing.append(summary(number, segment * 10 + 1, segment * 10 + 10, tokens=bounds.summary))
        while taken := merges(standing, bounds):
            number += 1
            assert len(taken) >= 2
            assert [t.level for t in taken] == [taken[0].level] * len(taken)
            assert all(a.last_operation + 1 == b.first_operation for a, b in pairwise(taken))
            standing = [s for s in standing if s not in taken]
            first, last, level = taken[0].first_operation, taken[-1].last_operation, taken[0].level + 1
            standing.append(summary(number, first, last, level=level, tokens=bounds.summary))
            standing.sort(key=lambda s: s.first_operation)
    return standing


@pytest.mark.parametrize("threshold", [800, 2_560, 40_000])
def test_levels_grow_with_the_logarithm_of_the_work(threshold: int) -> None:
    """Summaries grow logarithmically with the number of segments, and cover all operations in order."""
    sizes = {}
    for count in (20, 200, 2_000):
        standing = grown(count, threshold)
        sizes[count] = sum(s.tokens for s in standing)
        covered = [(s.first_operation, s.last_operation) for s in standing]
        assert covered[0][0] == 1
        assert covered[-1][1] == count * 10
        assert all(a[1] + 1 == b[0] for a, b in pairwise(covered))
    steps = limits(threshold).level * 1.5
    assert sizes[2_000] - sizes[200] <= steps * 2
    assert sizes[2_000] <= limits(threshold).level * 2 * math.log2(2_000)


def test_what_stands_between_two_summaries_is_not_swallowed_by_their_merging() -> None:
    """Two summaries with unsummarised operations between them are not merged."""
    standing = [summary(1, 1, 10, tokens=9_000), summary(2, 21, 30, tokens=9_000), summary(3, 31, 40, tokens=9_000)]
    taken = merges(standing, LIMITS)
    assert taken is not None
    assert [s.id for s in taken] == [2, 3]
