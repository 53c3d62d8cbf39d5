"""What a context spends few tokens on: what was said, and of it first what binds; with a question, what answers it."""

from __future__ import annotations

import re
from pathlib import Path

from orchestra_mem import open_memory

RULE = "You must never deploy on a Friday."


def test_a_small_context_has_no_times_ids_or_empty_sections(tmp_path: Path) -> None:
    """Who speaks and what they say is all that is shown of talk."""
    with open_memory(tmp_path) as memory:
        for speaker, text in (("Ann", "The oven is hot."), ("Ben", "Which of them?"), ("Ann", "The left one.")):
            memory.record_operation("message", {"speaker": speaker, "text": text})
        shown = memory.get_orchestrator_context("next", 120).render()
    assert shown == (
        '<memory part="working_memory">\n- Ann: The oven is hot.\n- Ben: Which of them?\n- Ann: The left one.\n'
    )


def test_a_small_context_shows_what_binds_before_what_is_newest(tmp_path: Path) -> None:
    """A rule of long ago stands there where chatter has no room, at once and not only after a refresh."""
    with open_memory(tmp_path) as memory:
        memory.record_operation("message", {"speaker": "Ann", "text": RULE})
        for number in range(12):
            text = f"I had porridge with {number} raisins this morning, and it was rather nice."
            memory.record_operation("message", {"speaker": "Ben", "text": text})
        context = memory.get_orchestrator_context("next", 120)
        assert RULE in context.render()
        assert "11 raisins" in context.render()
        assert context.tokens > 0.8 * 120


def test_most_of_a_context_with_a_question_is_what_answers_it(tmp_path: Path) -> None:
    """As it was said, not the beginning of it; and a large budget is not kept free for more than could be recalled."""
    said = [
        f"In week {week} the saffron gateway was down for {week} minutes, because of its {week}th valve; we noted the "
        f"hour, the colour of the sky, who was there, what the dog of the neighbour did, and how it was mended in the "
        f"end: by hammer number {week}."
        for week in range(30)
    ]
    with open_memory(tmp_path) as memory:
        for text in said:
            memory.record_operation("message", {"role": "user", "text": text})
        memory.flush_session()
        asked = memory.get_orchestrator_context("x", 2_000, query="when was the saffron gateway down?")
        assert sum(text in asked.recalled for text in said) >= 15
        assert asked.tokens > 0.9 * 2_000
        for number in range(300):
            memory.record_operation("note", {"text": f"Part {number} of the plan is as it was, with no news. {RULE}"})
        plain = memory.get_orchestrator_context("x", 60_000)
        asked = memory.get_orchestrator_context("x", 60_000, query="when was the saffron gateway down?")
        assert asked.tokens >= plain.tokens > 8_000


def test_a_small_context_of_a_new_session_shows_what_binds(tmp_path: Path) -> None:
    """What nothing is said in yet keeps no room: decisions, rules and roles take it, each with its day alone."""
    said = "I'm Ana and I lead the billing team.", "We decided to host on Hetzner because it is cheap.", RULE
    with open_memory(tmp_path) as memory:
        for text in said:
            memory.record_operation("message", {"role": "user", "text": text})
        memory.flush_session()
    with open_memory(tmp_path) as memory:
        shown = memory.get_orchestrator_context("next", 120).render()
        asked = memory.get_orchestrator_context("next", 200, query="Where do we host?").render()
    for text in said:
        assert text in shown
        assert text in asked  # few memories answer it, and what they leave is not left empty
    assert not re.search(r"\d\d:\d\d:\d\d", shown)
