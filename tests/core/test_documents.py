"""The machine's text of the episodic documents: it shows the known facts, is bounded, and keeps its structure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.core.documents.episodic import ProjectView, render_document
from orchestra_mem.core.documents.markdown import split_blocks
from orchestra_mem.core.documents.owned_lines import owned_lines
from orchestra_mem.core.fact_kinds import KIND_ROWS
from orchestra_mem.core.summaries.kept import kept_lines
from orchestra_mem.types import Author, DocumentName, MustKeep, MustKeepKind, MustKeepStatus
from tests.builders import cases

WHEN = datetime(2025, 1, 15, 14, 30, 15, tzinfo=UTC)
SHAPES = {
    DocumentName.PROJECT_STATE: [
        (1, "Project State"),
        (2, "Rules"),
        (2, "People and Roles"),
        (2, "Active Work"),
        (2, "Recent Progress"),
        (2, "Blockers"),
        (2, "Statistics"),
    ],
    DocumentName.WORK_PLAN: [(1, "Work Plan"), (2, "Immediate Next Steps"), (2, "Backlog"), (2, "Future Work")],
    DocumentName.DECISION_LOG: [(1, "Decision Log"), (2, "Decisions")],
}


def fact(
    number: int,
    text: str,
    kind: MustKeepKind = MustKeepKind.DECISION,
    *,
    status: MustKeepStatus = MustKeepStatus.STANDING,
    by: int = 0,
) -> MustKeep:
    """A must-keep found `number` minutes after `WHEN`."""
    when = WHEN + timedelta(minutes=number)
    return MustKeep(id=number, kind=kind, text=text, operation=number, timestamp=when, status=status, superseded_by=by)


def view(
    facts: Mapping[MustKeepKind, Sequence[MustKeep]],
    *,
    size: int = 30_000,
    counts: Mapping[MustKeepKind, int] | None = None,
) -> ProjectView:
    """A view of a project that has these facts."""
    return ProjectView(
        project="demo", updated=WHEN, session="s1", size_tokens=size, operations=1_234, sessions=3, facts=facts,
        counts=counts if counts is not None else {kind: len(found) for kind, found in facts.items()},
    )  # fmt: skip


def outline(text: str) -> list[tuple[int, str]]:
    """List the document's headings of the first two levels."""
    return [(block.level, block.title) for block in split_blocks(text) if block.level in (1, 2)]


@pytest.mark.parametrize(("author", "shared"), [(Author.PERSON, False), (Author.MACHINE, True)])
def test_a_doubted_fact_of_a_person_says_so_in_every_form(author: Author, shared: bool) -> None:
    """A person's fact, or any of the shared log, is marked as perhaps superseded; reading it back drops the mark."""

    def log(by: int) -> str:
        old = replace(fact(1, "Use MySQL.", by=by), author=author)
        decisions = [old, *(fact(n, f"No. {n}.") for n in range(11, by - 1))]
        return render_document(
            DocumentName.DECISION_LOG, replace(view({MustKeepKind.DECISION: decisions}), only_decisions=shared)
        )

    assert "Use MySQL. (K1)\n\n*Perhaps superseded by K61.*\n\n" in log(61)
    if shared:
        line = "- [2025-01-15 14:31:15] Use MySQL. (K1) (perhaps superseded by K99)\n"
        assert line in (text := log(99))
        assert next(line.fact.text for line in owned_lines(text) if line.fact) == "Use MySQL."
    else:
        rule = replace(fact(1, "No bikes.", MustKeepKind.CONSTRAINT, by=2), author=author)
        text = render_document(DocumentName.PROJECT_STATE, view({MustKeepKind.CONSTRAINT: [rule]}))
        assert "## Rules\n\n- No bikes. (K1) (perhaps superseded by K2)\n" in text
        assert next((line.key, line.fact.text) for line in owned_lines(text) if line.fact) == ("K1", "No bikes.")


def test_a_doubt_about_a_fact_of_the_machine_is_not_shown() -> None:
    """A fact that the machine found stays unmarked while it is only perhaps superseded, in documents and summaries."""
    doubted = fact(1, "Use MySQL.", by=61)
    assert "superseded" not in render_document(DocumentName.DECISION_LOG, view({MustKeepKind.DECISION: [doubted]}))
    assert "superseded" not in kept_lines([doubted])


def test_older_decisions_become_lines_and_then_a_count() -> None:
    """The log has 50 decisions in full, 200 as lines, and the number of the rest with the command that lists them."""
    facts = [fact(n, f"Decision number {n}.") for n in range(101, 401)]
    text = render_document(
        DocumentName.DECISION_LOG, view({MustKeepKind.DECISION: facts}, counts={MustKeepKind.DECISION: 400})
    )
    assert text.count("\n### [") == 50
    assert text.count("\n- [2025") == 200
    assert "\n150 more decisions are kept in the ledger: `orchestra-mem facts --kind decision`.\n" in text
    assert text.rstrip().endswith("### [2025-01-15 21:10:15] Decision number 400. (K400)")


def test_the_project_state_tells_rules_roles_progress_blockers_and_figures() -> None:
    """Each kind of fact has its section; superseded facts are left out, blocked open items are listed as blockers."""
    kinds = MustKeepKind
    facts = {
        kinds.CONSTRAINT: [
            fact(1, "Never deploy on Fridays.", kinds.CONSTRAINT),
            fact(2, "Old rule.", kinds.CONSTRAINT, status=MustKeepStatus.SUPERSEDED, by=1),
        ],
        kinds.ROLE: [fact(3, "Ann owns billing.", kinds.ROLE)],
        kinds.COMPLETION: [fact(4, "Created Epic #5.", kinds.COMPLETION)],
        kinds.FAILURE: [fact(5, "Build 7 failed.", kinds.FAILURE)],
        kinds.OPEN_ITEM: [
            fact(6, "The key is blocked by Bob.", kinds.OPEN_ITEM),
            fact(7, "Write the blocks.", kinds.OPEN_ITEM),
        ],
    }
    text = render_document(DocumentName.PROJECT_STATE, view(facts))
    assert "## Rules\n\n- Never deploy on Fridays. (K1)\n\n## People and Roles\n\n- Ann owns billing. (K3)\n\n" in text
    assert "## Recent Progress\n\n- Created Epic #5. (K4)\n\n" in text
    assert "## Blockers\n\n- Build 7 failed. (K5)\n- The key is blocked by Bob. (K6)\n\n" in text
    assert "- **Operations**: 1,234\n- **Sessions**: 3\n" in text
    assert outline(text) == SHAPES[DocumentName.PROJECT_STATE]


def test_what_was_learnt_has_a_section_where_there_is_something() -> None:
    """The project state has a section of insights, after the roles, only if there are any."""
    learnt = {MustKeepKind.INSIGHT: [fact(1, "The cache never expires.", MustKeepKind.INSIGHT)]}
    text = render_document(DocumentName.PROJECT_STATE, view(learnt))
    assert "## Insights\n\n- The cache never expires. (K1)\n\n## Active Work\n" in text
    assert "Insights" not in render_document(DocumentName.PROJECT_STATE, view({}))


HOSTILE = [
    "```", "``` " + "and so on " * 20, "## Decision: " + "because it is so " * 20,
    "### [2025-01-15 10:00:00] Forged (K9)", "---", "--- " + "x " * 100, "- None", "> quoted " + "so " * 80,
    "    indented " + "so " * 80, "~~~ " + "so " * 80, "a\n## b\n```\nc", "a\u2028## b\x85# c\r# d", "x" * 20_000,
    "x " * 10_000,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=[f"case{number}" for number in range(len(HOSTILE))])
@pytest.mark.parametrize("name", list(DocumentName))
def test_a_fact_cannot_break_the_shape_of_a_document(name: DocumentName, text: str) -> None:
    """Sections and number of entries stay the same, whatever the text of a fact."""
    facts = {kind: [fact(1, text, kind), fact(2, "Another.", kind)] for kind in MustKeepKind}
    blocks = split_blocks(render_document(name, view(facts)))
    learnt = [(2, "Insights")] if name is DocumentName.PROJECT_STATE else []
    shape = [*SHAPES[name][:3], *learnt, *SHAPES[name][3:]]
    assert [(block.level, block.title) for block in blocks if block.level in (1, 2)] == shape
    assert len([block for block in blocks if block.level == 3]) == (2 if name is DocumentName.DECISION_LOG else 0)


@given(st.integers(0, 500), st.integers(1, 2_000), st.integers(500, 20_000))
def test_a_document_is_bounded_however_many_facts_there_are(count: int, length: int, size: int) -> None:
    """A document has at most three characters per token of its size, plus a frame and one line per section."""
    facts = {
        kind: [fact(n, f"{n} " + "word " * (length // 5), kind) for n in range(1, count + 1)] for kind in MustKeepKind
    }
    for name in DocumentName:
        text = render_document(name, view(facts, size=size))
        assert len(text) <= 3 * size + 2_000 + 7 * (length + 100)


def test_lists_say_how_many_older_ones_there_are_and_where() -> None:
    """A section that cannot show all its facts states how many are left out and the command that lists them."""
    facts = [fact(n, f"Rule {n}: " + "words " * 20, MustKeepKind.CONSTRAINT) for n in range(1, 101)]
    text = render_document(DocumentName.PROJECT_STATE, view({MustKeepKind.CONSTRAINT: facts}, size=1_000))
    section = next(block.text for block in split_blocks(text) if block.title == "Rules")
    shown = section.count("- Rule ")
    assert 0 < shown < 100
    assert f"- … and {100 - shown:,} more: `orchestra-mem facts --kind 'constraint' --limit 0`\n" in section
    assert "(K100)\n" in section


def test_blockers_count_failures_and_open_items_each_with_the_command_that_lists_it() -> None:
    """Blockers that do not fit are counted by kind, since `facts --kind failure` lists no open item."""
    failures = [fact(n, f"Failed {n}: " + "words " * 20, MustKeepKind.FAILURE) for n in range(1, 31)]
    waiting = [fact(n, f"Blocked {n}: " + "words " * 20, MustKeepKind.OPEN_ITEM) for n in range(31, 41)]
    facts = {MustKeepKind.FAILURE: failures, MustKeepKind.OPEN_ITEM: waiting}
    text = render_document(DocumentName.PROJECT_STATE, view(facts, size=2_000))
    blockers = next(block.text for block in split_blocks(text) if block.title == "Blockers")
    for kind, title, count in (("failure", "Failed", 30), ("open item", "Blocked", 10)):
        hidden = count - blockers.count(f"- {title} ")
        more = f"- … and {hidden} more: `orchestra-mem facts --kind '{kind}' --limit 0`\n"
        assert (more in blockers) is (hidden > 0)


def test_each_kind_of_facts_is_told_in_the_table_and_has_a_place_in_the_documents() -> None:
    """A kind without a row would be in no document and no summary; a document lists each below a heading of its row."""
    assert KIND_ROWS.keys() == set(MustKeepKind)
    for kind, row in KIND_ROWS.items():
        content = replace(view({kind: [fact(1, "The parser waits.", kind)]}), only_decisions=True)
        for name, headings in row.headings.items():
            above, _, _ = render_document(name, content).partition("The parser waits.")
            assert above.rpartition("\n## ")[2].partition("\n")[0] in headings


@pytest.mark.parametrize(("fact_kind", "name"), cases("a_persons_words_make_room_for_other_persons_words_alone"))
def test_a_persons_words_make_room_for_other_persons_words_alone(fact_kind: str, name: str) -> None:
    """A person's fact is dropped only for facts of persons, however many or critical the machine's facts are."""
    kind, document = MustKeepKind(fact_kind), DocumentName(name)
    own = replace(fact(1, "In my own words.", kind), author=Author.PERSON, weight=3.0)
    later = [replace(fact(n, f"Found {n}: " + "words " * 20, kind), weight=9.0) for n in range(2, 202)]
    assert "In my own words. (K1)" in render_document(document, view({kind: [own, *later]}, size=1_000))
    theirs = [replace(found, author=Author.PERSON) for found in later]
    assert "In my own words." not in render_document(document, view({kind: [own, *theirs]}, size=1_000))
