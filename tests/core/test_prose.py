"""Speakers and kinds of text: a person's statement can be a rule, machine output cannot."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.core.facts.extraction import find_in_operations
from orchestra_mem.core.facts.prose import fields_of, masked, without_code
from orchestra_mem.core.speakers import Voice
from orchestra_mem.types import Json
from tests.builders import an_operation, cases


def _facts(text: str) -> list[tuple[str, str]]:
    """Find facts in a message of a model's user."""
    operation = an_operation(1, {"role": "user", "text": text}, type="message")
    return [(fact.kind.value, fact.text) for fact in find_in_operations([operation])[0]]


@pytest.mark.parametrize("rule", cases("rules_of_persons"))
@pytest.mark.parametrize("around", cases("a_rule_of_a_person_is_found"))
def test_a_rule_of_a_person_is_found(rule: str, around: str) -> None:
    """A rule stated by an agent's user is found, whatever text the harness puts around it."""
    facts = _facts(around.format(rule))
    assert [text for kind, text in facts if kind == "constraint"] == [rule]


@pytest.mark.parametrize("text", cases("what_a_machine_wrote_into_a_message_is_no_rule"))
def test_what_a_machine_wrote_into_a_message_is_no_rule(text: str) -> None:
    """Wrappers, patches, compiler messages and listings in a person's message yield no facts but failures."""
    assert [fact for fact in _facts(text) if fact[0] != "failure"] == []


@pytest.mark.parametrize(("kind", "data", "voice"), cases("who_speaks_is_told_by_role_speaker_type_and_key"))
def test_who_speaks_is_told_by_role_speaker_type_and_key(kind: str, data: Json, voice: str) -> None:
    """The speaker follows from role, speaker, type of the operation, or the key of an answer."""
    fields = fields_of(an_operation(1, data, type=kind))
    assert [field.voice for field in fields if field.text == "the loop never ends"] == [Voice[voice]]


@given(text=st.text(alphabet='a `"“”.\n', max_size=80), quotes=st.booleans())
def test_masking_keeps_places(text: str, quotes: bool) -> None:
    """A masked sentence keeps its length, and differs only by the letter x."""
    hidden = masked(text, quotes=quotes)
    assert len(hidden) == len(text)
    assert all(new in (old, "x") for old, new in zip(text, hidden, strict=True))


@given(
    hunk=st.lists(st.sampled_from([" same", "-old", "+new", "", "\\ No newline at end of file"]), max_size=8),
    rest=st.sampled_from(["- never do this", "Always ask first.", "+ one more thing", ""]),
)
def test_a_patch_ends_where_its_head_says(hunk: list[str], rest: str) -> None:
    """Exactly the lines that the hunk header announces are removed, so that a list after the hunk stays."""
    while hunk and hunk[-1].startswith("\\"):
        hunk.pop()
    old = sum(not line.startswith(("+", "\\")) for line in hunk)
    new = sum(not line.startswith(("-", "\\")) for line in hunk)
    text = "\n".join(("Look:", f"@@ -1,{old} +1,{new} @@", *hunk, rest))
    assert without_code(text).split() == ["Look:", *rest.split()]


_TAG = re.compile(r"</?[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*(?:\s[^<>]*)?>")


_PIECES = (
    "<system-note>", "</system-note>", "<user_query>", "</user_query>", "<b>", "</b>", "never x < y ", "\n", "<task-x>",
)  # fmt: skip


@given(pieces=st.lists(st.sampled_from(_PIECES), max_size=12))
def test_every_word_stays_in_some_field(pieces: list[str]) -> None:
    """Splitting a text at wrapper tags loses nothing but the tags."""
    text = "".join(("So ", *pieces))
    told = "".join(field.text for field in fields_of(an_operation(1, {"text": text})))
    bare, kept = (sorted(_TAG.sub("", whole).replace("\n", "")) for whole in (text, told))
    assert bare == kept
