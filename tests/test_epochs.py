"""Epochs: between two refreshes each context begins with the bytes of the previous one."""

from __future__ import annotations

from datetime import timedelta
from itertools import cycle
from pathlib import Path

import pytest

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.core.context.items import Part
from orchestra_mem.core.documents.markdown import split_blocks
from orchestra_mem.memory.context_items import document_items
from orchestra_mem.types import DocumentName
from tests.conftest import Clock
from tests.conftest import record as record_steps
from tests.memories import edit, live, session_of
from tests.timing import assert_quick

CONFIG = {"orchestrator": {"context_window": {"max_tokens": 8_192}, "working_memory": {"max_operations": 10}}}


@pytest.fixture
def clock() -> Clock:
    """A clock that advances by 20 seconds at each call."""
    return Clock(step_s=20)


def record(memory: OrchestratorContextManager, count: int, first: int = 1) -> None:
    """Record operations of some length."""
    record_steps(memory, count, first, say="Step {n}: the parser of part {n} reads its window and keeps a ledger.")


def test_each_budget_has_its_own_epoch(memory: OrchestratorContextManager) -> None:
    """Each budget has its own epoch: contexts of other budgets do not change the prefix of one."""
    record(memory, 15)
    first = {budget: memory.get_orchestrator_context("x", budget) for budget in (900, 2_000, 4_000)}
    record(memory, 2, 16)
    contexts = {budget: memory.get_orchestrator_context("x", budget) for budget in first}
    assert all(context.tokens <= budget for budget, context in contexts.items())
    for budget, before in first.items():
        assert contexts[budget].epoch == before.epoch
        assert contexts[budget].render().startswith(before.render())
        assert "Step 17" in contexts[budget].render()


@pytest.mark.parametrize("budget", range(1_300, 2_000, 100))
def test_a_context_with_room_for_all_decisions_shows_each_once(tmp_path: Path, budget: int) -> None:
    """What takes the room of a repeat is not a repeat, however many decisions stand in documents and operations."""
    with open_memory(tmp_path) as memory:
        for number in range(40):
            memory.record_operation("decision", {"text": f"We decided to store report {number} in box {number + 50}."})
        memory.refresh()
        shown = memory.get_orchestrator_context("next", budget).render()
    assert {number: shown.count(f"report {number} in") for number in range(40)} == dict.fromkeys(range(40), 1)


@pytest.mark.parametrize("budget", range(150, 500, 25))
def test_insights_get_what_decisions_leave_of_a_small_context(tmp_path: Path, budget: int) -> None:
    """A context that lacks a decision has no list of insights, which stands before the decisions."""
    texts = {
        "insight": "We found out that plank {n} dries in {n} weeks if the window is open at night.",
        "decision": "We decided to cut plank {n} to 2{n} centimetres.", "rule": "Never store plank {n} in the cellar.",
        "role": "Ann {n} is responsible for plank {n}.", "todo": "Order the glue for plank {n}.",
    }  # fmt: skip
    with open_memory(tmp_path) as memory:
        for number in range(3):
            for kind, text in texts.items():
                memory.record_operation(kind, {"text": text.format(n=number)})
        memory.refresh()
        shown = memory.get_orchestrator_context("next", budget).render()
    lacks = [number for number in range(3) if texts["decision"].format(n=number) not in shown]
    assert not (lacks and "## Insights" in shown)


def test_a_context_shows_a_text_once(tmp_path: Path, clock: Clock) -> None:
    """A rule recorded as a decision, or a fact beside its operation or in a summary, is in a context once, in any."""
    said = {
        "decision": "Never deploy on Fridays.", "note": "Maya owns the storage layer.",
        "plan": "We still need to order new labels for the jars.", "report": "The oven door is broken since noon.",
    }  # fmt: skip
    shown = []
    with open_memory(tmp_path, config=CONFIG, clock=clock) as memory:
        for kind, text in said.items():
            memory.record_operation(kind, {"text": text})
        for step in range(0, 80, 20):
            shown.append(memory.get_orchestrator_context("next", 6_000))
            shown.append(memory.get_orchestrator_context("next", 6_000, query="oven, labels, storage, deploys?"))
            record(memory, 20, step)
            memory.refresh()
            clock.now += timedelta(hours=2)
        memory.record_operation("decision", {"text": said["decision"]})
        shown.append(memory.get_orchestrator_context("next", 100_000))
        assert "deploy" not in shown[-1].prefix.lower()
        explained = memory.explain("next", 100_000)
        memory.flush_session()
        shown.append(memory.get_orchestrator_context("next", 400))
    for context in shown:
        assert [context.render().lower().count(text.lower().rstrip(".")) for text in said.values()] == [1, 1, 1, 1]
    assert "project_state/Rules (project_state.md" in explained
    assert "left out: the context has its text elsewhere" in explained


def test_lines_of_people_stay_where_they_are(memory: OrchestratorContextManager) -> None:
    """The same words below two headings of a person may mean two things: both are in the context."""
    record(memory, 2)
    memory.flush_session()
    mine = "\n\n## To Buy\n\n- milk and eggs\n\n## Allergies\n\n- milk and eggs\n"
    edit(memory.episodic_memory.path(DocumentName.PROJECT_STATE), ("# Project State", f"# Project State{mine}"))
    assert memory.get_orchestrator_context("x").render().count("- milk and eggs") == 2


def test_a_decision_does_not_give_way_to_an_answer_with_it(memory: OrchestratorContextManager) -> None:
    """A person's decision stays in the context when a model has answered in its words."""
    text = "The bakery is closed on Mondays."
    record(memory, 2)
    memory.flush_session()
    edit(memory.episodic_memory.path(DocumentName.DECISION_LOG), ("## Decisions", f"## Decisions\n\n### {text}\n"))
    memory.record_operation("message", {"role": "user", "text": "When is the bakery closed?"})
    memory.record_operation("assistant_message", {"role": "assistant", "text": text})
    memory.refresh()
    assert text in memory.get_orchestrator_context("x").text(Part.DECISIONS)
    assert memory.get_orchestrator_context("x").render().count(text) == 2


def test_an_epoch_goes_on_between_two_sessions(memory: OrchestratorContextManager, tmp_path: Path) -> None:
    """After a flush, contexts continue one epoch until a person edits a document or another process records."""
    record(memory, 15)
    memory.flush_session()
    first, second = memory.get_orchestrator_context("x"), memory.get_orchestrator_context("x")
    assert (first.epoch, first.render()) == (second.epoch, second.render())
    edit(
        memory.episodic_memory.path(DocumentName.PROJECT_STATE), ("# Project State", "# Project State\n\nAda was here.")
    )
    assert "\nAda was here." in memory.get_orchestrator_context("x").prefix
    with open_memory(tmp_path, config=CONFIG) as other:
        other.record_operation("decision", {"text": "We decided to keep bees on the roof."})
        other.flush_session()
    context = memory.get_orchestrator_context("x")
    assert context.epoch > first.epoch
    assert "bees on the roof" in context.prefix


def test_a_persons_edit_of_the_session_document_is_told_though_a_spill_follows(
    memory: OrchestratorContextManager,
) -> None:
    """A person's edit of the session document is shown in the timeline even if a spill follows it."""
    record(memory, 15)
    before = memory.get_orchestrator_context("x")
    edit(live(memory), ("## Operations Log", "A PERSONAL REMARK\n\n## Operations Log"))
    session = session_of(memory)
    number = 16
    while (now := memory.session_memory.session) is not None and now.spilled_through == session.spilled_through:
        record(memory, 1, number)
        number += 1
    context = memory.get_orchestrator_context("x")
    assert context.epoch == before.epoch
    assert context.prefix == before.prefix
    assert "> +A PERSONAL REMARK" in context.timeline


def test_pinned_sections_go_before_what_is_not(memory: OrchestratorContextManager) -> None:
    """A small context includes a pinned section before other text; one that does not fit is reported as left out."""
    pinned = "## Future Work\n<!-- pin -->\n" + "".join(f"- pinned {n}\n" for n in range(12))
    edit(memory.episodic_memory.path(DocumentName.WORK_PLAN), ("## Future Work\n", pinned))
    record(memory, 15)
    context = memory.get_orchestrator_context("x", 400)
    assert "- pinned 11" in context.prefix
    tiny = memory.get_orchestrator_context("x", 30)
    assert tiny.tokens <= 30
    assert any(p.pinned and p.key == "work_plan/Future Work" for p in tiny.left_out)
    assert "work_plan/Future Work" in tiny.explain()


def test_a_shortened_section_keeps_what_a_person_wrote() -> None:
    """A shortened section keeps as many lines as fit, a person's before newer ones of the machine, in order."""
    text = "## Rules\n\n" + "".join(f"- Rule {number} holds. (K{number})\n" for number in range(1, 41))
    weights = {"2": 3.0, "5": 3.0}
    (item,) = document_items(DocumentName.PROJECT_STATE, Part.PROJECT_STATE, split_blocks(text), weights)
    shown = [line for line in item.forms[7].splitlines() if line.startswith("- ")]
    assert shown == [f"- Rule {number} holds. (K{number})" for number in (2, 5, *range(35, 41))]
    assert "*(32 other lines are left out here)*" in item.forms[7]


def test_finished_and_superseded_lines_come_after_what_holds() -> None:
    """Done work, progress, statistics and superseded decisions are told apart from what still holds."""
    plan = "## Prioritized Backlog\n\n- [x] #1 Sow\n- [ ] #2 Water\n- [ ] ~~#3 Spray~~ (cancelled)\n- [ ] #4 Reap\n"
    (item,) = document_items(DocumentName.WORK_PLAN, Part.WORK_PLAN, split_blocks(plan), {})
    assert item.valid == 2
    assert "- [ ] #2 Water\n- [ ] #4 Reap\n" in item.forms[1]
    state = "## Recent Progress\n\n- Sown (K1)\n\n## Statistics\n\n- **Total Tasks**: 4\n\n## Blockers\n\n- Hail (K2)\n"
    items = document_items(DocumentName.PROJECT_STATE, Part.PROJECT_STATE, split_blocks(state), {})
    assert [each.valid for each in items] == [0, 0, None]
    log = "### Sow rye. (K3)\n\n*Superseded by K4.*\n\n### Sow oats, not rye. (K4)\n"
    items = document_items(DocumentName.DECISION_LOG, Part.DECISIONS, split_blocks(log), {"3": -1.0, "4": 1.0})
    assert [each.valid for each in items] == [0, None]


SUBJECTS = (
    "billing code", "search index", "customer addresses", "release branch", "staging database", "price tables",
    "mail templates", "audit log", "payment keys", "test fixtures", "docker images", "old importer", "tax rules",
)  # fmt: skip


@pytest.mark.parametrize("query", [None, "how do I cook pasta?", "What does function 7 do?"])
def test_rules_come_before_all_but_the_newest_messages(memory: OrchestratorContextManager, query: str | None) -> None:
    """A larger budget shows no fewer rules, and until all are shown, messages have at most a third of it."""
    forms = "Never change the {} without asking Ann first.", "Never publish the {} without telling Ben."
    told = [form.format(subject) for subject in SUBJECTS for form in forms]
    for rule in told:
        memory.record_operation("user_message", {"role": "user", "text": rule}, agent="user")
    memory.refresh()
    links = "".join(f"- https://wiki.example/pages/{number}\n" for number in range(1, 8))
    path = memory.episodic_memory.path(DocumentName.PROJECT_STATE)
    edit(path, ("## Rules\n", f"## Links\n\n{links}\n## Rules\n"))
    memory.flush_session()
    for number in range(40):
        memory.record_operation("user_message", {"role": "user", "text": f"What does function {number} do?"})
        memory.record_operation("agent_message", {"role": "assistant", "text": f"Function {number} sums the rows."})
    shown = []
    for budget in range(200, 2_000, 60):
        context = memory.get_orchestrator_context("x", budget, query=query)
        assert context.tokens <= budget
        shown.append(sum(f"- {rule}" in context.text(Part.PROJECT_STATE) for rule in told))
        if shown[-1] < len(told):
            assert shown[-1] > 0
            messages = [p for p in context.placements if p.part in (Part.SESSION, Part.OPERATIONS) and p.text]
            assert sum(p.tokens for p in messages) <= budget / 3
            assert query or "Function 39 sums" in messages[-1].text
            assert budget > 500 or "wiki.example" not in context.prefix
    assert shown == sorted(shown)
    assert shown[-1] == len(told)


@pytest.mark.parametrize("by_hand", [100, 300])
@pytest.mark.parametrize("type_", ["message", "decision"])
def test_the_newest_decisions_are_shown_beside_any_number_by_hand(
    tmp_path: Path, clock: Clock, type_: str, by_hand: int
) -> None:
    """The newest decisions are in the log and in a small context; so are the last ones that a person wrote there."""
    with open_memory(tmp_path, clock=clock) as memory:
        path = memory.episodic_memory.path(DocumentName.DECISION_LOG)
        entries = "".join(f"\n### Zoe decided to paint house {number} green.\n" for number in range(1, by_hand + 1))
        path.write_text(path.read_text() + entries)
        memory.refresh()
        said = [f"We decided to ship {thing}." for thing in ("invoices", "kettles", "lanterns", "saddles", "walnuts")]
        for text in said:
            memory.record_operation(type_, {"role": "user", "text": text})
        memory.flush_session()
    log = path.read_text()
    assert [text for text in said if text not in log] == []
    with open_memory(tmp_path, clock=clock) as memory:
        context = memory.get_orchestrator_context("x", 2_000).text(Part.DECISIONS)
    assert [text for text in said if text not in context] == []
    assert context.count("Zoe decided") > 20
    assert f"house {by_hand} green" in context


def test_explain_names_the_line_where_an_item_stands(memory: OrchestratorContextManager) -> None:
    """`explain` names the line of a section in its file, with the front matter counted."""
    record(memory, 60)
    memory.refresh()
    lines = memory.episodic_memory.path(DocumentName.PROJECT_STATE).read_text(encoding="utf-8").splitlines()
    number = lines.index("## Active Work") + 1
    assert f"project_state/Active Work (project_state.md:{number}): " in memory.explain()


@pytest.mark.parametrize("edit", ["every second line goes", "all lines are turned round"])
def test_context_does_not_wait_for_a_long_documents_comparison(tmp_path: Path, edit: str) -> None:
    """After a large edit of 20,000 lines a context takes about 0.5 s, starts a new epoch and shows the new text."""
    with open_memory(tmp_path, config={"tokens": {"counter": "estimate"}}) as memory:
        memory.record_operation("note", {"text": "first"})
        path = memory.episodic_memory.path(DocumentName.PROJECT_STATE)
        lines = [f"- Line {number} of a list that somebody keeps here.\n" for number in range(20_000)]
        path.write_text(path.read_text() + "\n## Mine\n\n" + "".join(lines))
        before = memory.get_orchestrator_context("test")
        changed = lines[::2] if edit == "every second line goes" else lines[::-1]
        text, after = path.read_text(), []
        texts = cycle([text.replace("".join(lines), "".join(changed)), text])

        def edit_and_ask() -> None:
            path.write_text(next(texts))
            after.append(memory.get_orchestrator_context("test"))

        assert_quick(0.5, edit_and_ask)
        assert after[-1].epoch == before.epoch + len(after)
        assert (changed if len(after) % 2 else lines)[-1] in after[-1].render()
