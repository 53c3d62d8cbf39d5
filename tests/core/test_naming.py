"""Lines that name items by their titles, and nothing else shows that they do."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.language.intents.parsing import Action, Intent, parse
from orchestra_mem.core.language.naming import namings, read_with_titles
from orchestra_mem.work_types import WorkItem, WorkKind, WorkStatus
from tests.conftest import Clock

TITLES = ("Soups", "Stews", "Query parser", "Index builder", "Write the tokenizer", "Ranking", "Ranking", "Search")


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OrchestratorContextManager]:
    """Stories #1 to #8, of which #6 and #7 bear one title."""
    with open_memory(tmp_path_factory.mktemp("naming"), clock=Clock()) as opened:
        for title in TITLES:
            opened.state.create(WorkKind.STORY, title)
        yield opened


def _read(memory: OrchestratorContextManager, line: str) -> tuple[Intent, ...]:
    read = read_with_titles(line, parse(line), memory.state, parse)
    assert read.understood, (line, read)
    return read.intents


@pytest.mark.parametrize(
    ("line", "action", "target", "other", "value", "titles"),
    [
        ("soups is mine", Action.ASSIGN, "#1", "", "me", ()),
        ("query parser depends on the index builder", Action.DEPEND, "#3", "#4", "", ()),
        ("note on stews: use less salt", Action.NOTE, "stews", "", "use less salt", ()),
        ("add tasks to search: crawl, rank", Action.ADD, "", "#8", "", ("crawl", "rank")),
        # A part of a title, and a title that two bear, stay words: which item they mean is asked where it is open.
        ("tokenizer failed because of unicode", Action.REPORT, "tokenizer", "", "failed because of unicode", ()),
        ("ranking has to wait for stews", Action.DEPEND, "ranking", "#2", "", ()),
        # Words of a text are no references, even where they are a title.
        ("note on soups: ask the query parser", Action.NOTE, "soups", "", "ask the query parser", ()),
    ],
)
def test_a_title_is_read_like_a_number(
    memory: OrchestratorContextManager,
    line: str,
    action: Action,
    target: str,
    other: str,
    value: str,
    titles: tuple[str, ...],
) -> None:
    """Where the words alone are not understood, or say less."""
    (intent,) = _read(memory, line)
    assert (intent.action, intent.target, intent.other, intent.value, intent.titles) == (
        action, target, other, value, titles,
    )  # fmt: skip


@pytest.mark.parametrize(
    "line", ["create an epic called Search engine", "search for bcrypt", "start soups", "what's next?"]
)
def test_what_is_understood_stays_as_it_is(memory: OrchestratorContextManager, line: str) -> None:
    """A title that is also a word of a command does not turn it into another."""
    assert _read(memory, line) == parse(line).intents


WORDS = "Soups query parser ranking tokenizer the #1 is , and finish cancel depends on 900000001 é".split()


@given(st.lists(st.sampled_from([*WORDS, "\x00"])).map(" ".join) | st.text())
def test_any_line_may_come(memory: OrchestratorContextManager, line: str) -> None:
    """Nothing raises, no place lies outside the line or in another, and no number is left that stands for words."""
    places = namings(line, memory.state)
    assert all(before.end <= after.start for before, after in pairwise(places))
    assert all(0 <= place.start < place.end <= len(line) for place in places)
    read = read_with_titles(line, parse(line), memory.state, parse)
    for intent in read.intents:
        for text in (intent.target, intent.other, intent.value, *intent.titles):
            assert "#9000000" not in text


def test_closed_work_is_named_where_no_open_one_is(tmp_path: Path, clock: Clock) -> None:
    """What is reopened is named, too; of several that bear a title the open ones are meant."""
    with open_memory(tmp_path, clock=clock) as memory:
        old: list[WorkItem] = [memory.state.create(WorkKind.TASK, "Bake bread") for _ in range(2)]
        memory.state.set_status(old[0].id, WorkStatus.DONE)
        assert [place.items for place in namings("bake bread is mine", memory.state)] == [(2,)]
        memory.state.set_status(old[1].id, WorkStatus.DONE)
        assert [place.items for place in namings("bake bread is mine", memory.state)] == [(1, 2)]
