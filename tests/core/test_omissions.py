"""What a line may leave out of the sentence that it repeats, and what it may not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.core.summaries.omissions import Sentence, turning


@pytest.mark.parametrize(
    ("sentence", "line"),
    [
        ("The parser finally reads its window twice.", "parser reads its window twice"),
        ("So I raised it to 4096 and now all 12 tests pass.", "raised it to 4096 and now all 12 tests pass"),
        ("So I raised it to 4096 and then all 12 tests pass.", "raised it to 4096, all 12 tests pass"),
        ("We chose Redis because latency matters.", "We chose Redis"),
        ("I looked at rows.py and moved the cursor.", "looked at rows.py"),
        ("The deploy was blocked by the migration task.", "The deploy was blocked"),
        ("The parser (src/parse.py) reads twice.", "The parser reads twice"),
        ("The parser, which Bob wrote, reads twice.", "The parser reads twice"),
        ("Output: tests/test_3.py::test_row PASSED 33 ms", "tests/test_3.py::test_row PASSED 33 ms"),
        ("It doesn't report this.", "It does not report this"),
        ("Is the index rebuilt?", "Is the index rebuilt?"),
        ("Die Tests sind nicht bestanden.", "Die Tests sind nicht bestanden"),
    ],
)
def test_what_turns_nothing_may_be_missing(sentence: str, line: str) -> None:
    """Fillers, who speaks, an aside, a label, a cause, and what came then."""
    assert Sentence(sentence).allows(Sentence(line))


@pytest.mark.parametrize(
    ("sentence", "line"),
    [
        ("Deploy the build to production, if all the tests pass.", "Deploy the build to production"),
        ("ship_wheel runs on bucket_7, if test_redis ran before", "ship_wheel runs on bucket_7"),
        ("Delete the old bucket once the audit is finished.", "Delete the old bucket"),
        ("Delete the old bucket - unless legal objects.", "Delete the old bucket"),
        ("When the audit is finished, delete the bucket.", "delete the bucket"),
        ("All tests pass, except the login ones, which failed.", "All tests pass"),
        ("The build passed on Linux and failed on Windows.", "The build passed on Linux"),
        ("Alice broke the build, Bob repaired the parser.", "Alice repaired the parser"),
        ("Alice watched Bob break the build.", "Alice break the build"),
        ("redis ran warm, varnish not", "redis not ran warm, varnish"),
        ("redis ran warm, varnish not", "redis ran warm"),
        ("The login passed, the signup was not green.", "The login not passed, the signup was green."),
        ("Redis is not used here and Postgres is not used there.", "Redis is used here and Postgres is not used there"),
        ("test_a ran for 40 ms, test_b ran for 90 ms", "test_a ran for 90 ms"),
        ("12 of 30 tests pass on Windows.", "30 tests pass on Windows"),
        ("All tests pass on Windows.", "All tests pass"),
        ("On Windows, all tests pass.", "all tests pass"),
        ("All tests pass with a mocked gateway.", "All tests pass"),
        ("The deploy was blocked by the migration.", "The deploy blocked the migration"),
        ("The pool was changed from 10 to 50.", "The pool was changed to 10 from 50"),
        ("Run it before the backup finishes.", "Run it after the backup finishes"),
        ("Turn the retry loop off in production.", "Turn the retry loop in production"),
        ("That all tests pass is false.", "all tests pass"),
        ("Reverted the switch of billing to Postgres.", "the switch of billing to Postgres"),
        ("Billing uses Postgres rather than MySQL.", "Billing uses MySQL"),
        ("Delete the old bucket.", "Delete the bucket"),
        ("No, delete the bucket.", "No delete the bucket"),
        ("TODO: fix the parser", "fix the parser"),
        ("It works for numbers between 3 and 5.", "It works for numbers between 3"),
        ("The parser (which does not read) is fast.", "The parser is fast"),
        ("Der Test ist nicht bestanden.", "Der Test ist bestanden"),
        ("Is the index rebuilt?", "the index is rebuilt"),
        ("Is it rebuilt?", "Is it rebuilt"),
        ("We went on.", ""),
    ],
)
def test_what_may_turn_a_meaning_may_not_be_missing(sentence: str, line: str) -> None:
    """Conditions, exceptions, negations, numbers, places, who did it, and the order of it all."""
    assert not Sentence(sentence).allows(Sentence(line))


WORDS = st.lists(st.sampled_from("Redis runs, not on (warm) 40 ms; and so the which If by never 12. fast".split()))


@given(WORDS.filter(lambda words: any(word not in ("the",) for word in words)))
def test_a_sentence_is_allowed_as_it_is(words: list[str]) -> None:
    """Whatever stands in it."""
    sentence = " ".join(words)
    assert Sentence(sentence).allows(Sentence(sentence))


@given(WORDS, WORDS)
def test_no_word_that_turns_is_ever_missing(said: list[str], line: list[str]) -> None:
    """A line that is allowed has each of them as often as the sentence."""
    if Sentence(" ".join(said)).allows(Sentence(" ".join(line))):
        assert turning(" ".join(line)) == turning(" ".join(said))


@given(st.text(), st.text())
def test_any_text_can_be_held_against_any_other(sentence: str, line: str) -> None:
    """Whatever a model says gets an answer."""
    assert Sentence(sentence).allows(Sentence(line)) in (True, False)
