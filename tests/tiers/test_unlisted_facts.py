"""Facts that stand in no document: one that must not be written now, or one with a conflict block, lacks them."""

from __future__ import annotations

import pytest

from tests.memories import problems_of
from tests.tiers.conftest import Desk

CONFIG = {"orchestrator": {"context_window": {"max_tokens": 32_000}, "working_memory": {"max_operations": 2}}}
RULE, MORE, DECISION = "Never deploy on a Friday.", "Never push at night.", "We decided to log in JSON."


@pytest.fixture
def desk(empty: Desk) -> Desk:
    """A memory with a rule in its documents."""
    empty.go_on(RULE)
    return empty


def context(desk: Desk) -> str:
    """Return what a context shows of the documents after the running session has been archived."""
    desk.memory.flush_session()
    return desk.memory.get_orchestrator_context("go on", max_tokens=900).render()


def marked(desk: Desk) -> str:
    """Return the project state with a git conflict between two branches of one's own."""
    return desk.state.text.replace(f"- {RULE} (K1)\n", f"<<<<<<< HEAD\n- {RULE} (K1)\n=======\n>>>>>>> venue\n")


def test_a_context_has_them_still_when_a_person_has_resolved_the_markers(desk: Desk) -> None:
    """Until the machine writes the document again, which has other lines than before, its new facts are in contexts."""
    before = desk.state.text
    desk.state.save(marked(desk))
    desk.go_on(MORE)
    desk.memory.flush_session()
    desk.state.save(before.replace("## Blockers", "Ask Joan.\n\n## Blockers"))
    assert f"## Rules\n\n- {MORE} (K2)\n" in context(desk)


@pytest.mark.parametrize("way", ["git's markers", "NUL", "read-only"])
def test_a_context_has_the_facts_for_which_a_document_is_not_written(desk: Desk, way: str) -> None:
    """What is found while a document must not be written is in contexts, once, and then in the document."""
    before = desk.state.text
    text = {"git's markers": marked(desk), "NUL": before + "\0"}.get(way, before)
    desk.state.save(text)
    desk.state.path.chmod(0o444 if way == "read-only" else 0o644)
    desk.go_on(MORE, DECISION)
    shown = context(desk)
    assert [shown.count(said) for said in (f"{RULE} (K1)", f"## Rules\n\n- {MORE} (K2)\n", "(K3)")] == [1, 1, 1], shown
    assert desk.state.text == text
    desk.state.path.chmod(0o644)
    desk.state.save(before)
    desk.go_on()
    assert f"- {RULE} (K1)\n- {MORE} (K2)\n" in context(desk)
    desk.state.has_once(f"- {RULE} (K1)\n- {MORE} (K2)\n")


def test_a_document_with_git_markers_is_said_not_to_be_written(desk: Desk) -> None:
    """The problems say what becomes of the document, and of new facts, until the markers are resolved."""
    desk.state.save(marked(desk))
    line = desk.state.text.split("\n").index("<<<<<<< HEAD") + 1
    assert [problem["problem"] for problem in problems_of(desk.memory)] == [
        f"{desk.state.path}:{line}: a git conflict marker (<<<<<<<): keep one of the two texts and delete the markers: "
        "it is served as plain text, and the file is not changed until then: new facts are only in contexts and in "
        "`orchestra-mem facts`"
    ]


def test_a_context_has_what_is_recorded_for_a_section_that_a_person_deleted(desk: Desk) -> None:
    """A rule that a conflict block offers for a deleted section is in contexts; a rule that was deleted is not."""
    rules = f"## Rules\n\n- {RULE} (K1)\n\n"
    desk.state.edit((rules, ""))
    desk.go_on(MORE)
    assert "> ## Rules\n>\n> - Never push at night. (K2)\n" in desk.state.text
    shown = context(desk)
    assert shown.count(f"## Rules\n\n- {MORE} (K2)\n") == 1, shown
    assert RULE not in shown
    desk.memory.documents.resolve(desk.memory.documents.conflicts()[0][1].id, accepted=True)
    assert context(desk).count(f"{MORE} (K2)") == 1
