"""Answers of a model are given again to the same question from the same facts by the same system, and else not."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.build import HOME
from orchestra_mem.core.search.responses import ResponseKind, difference
from tests.builders import cases
from tests.conftest import Clock

QUESTION = "Why did we choose bcrypt for passwords?"
SIMILAR = "Tell me why we chose bcrypt for passwords"
ANSWER = "Because the auditors know it."


@pytest.fixture
def memory(memory: OrchestratorContextManager) -> OrchestratorContextManager:
    """A memory that has something to answer from."""
    memory.record_operation("message", {"text": "We decided on bcrypt for passwords, as the auditors know it."})
    memory.record_operation("message", {"text": "Never deploy the shop on a Friday."})
    return memory


def test_two_calls_are_enough(memory: OrchestratorContextManager) -> None:
    """Nothing before; afterwards the same question and a similar one are answered, with what was asked then."""
    cache = memory.response_cache
    assert cache.get(QUESTION) is None
    assert cache.put(QUESTION, ANSWER)
    same, similar = cache.get(QUESTION), cache.get(SIMILAR)
    assert same is not None
    assert similar is not None
    assert (same.answer, same.similarity, same.kind) == (ANSWER, 1.0, ResponseKind.FACTUAL)
    assert (similar.answer, similar.question) == (ANSWER, QUESTION)
    assert 0.9 < similar.similarity < 1
    assert cache.get("When do we deploy the shop?") is None
    assert cache.get_stats() == {"responses": 1, "max_responses": 1_000, "hits": 2, "misses": 2}


def test_other_facts_are_another_answer(memory: OrchestratorContextManager) -> None:
    """What was recorded since and belongs to the question ends it; what does not, does not."""
    cache = memory.response_cache
    cache.put(QUESTION, ANSWER)
    memory.record_operation("message", {"text": "We switched from bcrypt to argon2 for passwords."})
    assert cache.get(QUESTION) is None
    cache.put(QUESTION, "It was, until argon2.", facts=["K1", "K9"])
    found = cache.get(SIMILAR, facts=["K9", "K1"])
    assert found is not None
    assert found.answer == "It was, until argon2."
    assert cache.get(QUESTION, facts=["K1"]) is None


def test_another_model_or_prompt_is_another_answer(memory: OrchestratorContextManager, tmp_path: Path) -> None:
    """The prompt's file is looked at anew when it has changed, also where size and time stay."""
    prompt = tmp_path / "prompt.md"
    prompt.write_text("Be brief.")
    cache = memory.response_cache
    cache.put(QUESTION, ANSWER, model="qwen", prompt_file=prompt)
    assert cache.get(QUESTION, model="qwen", prompt_file=prompt) is not None
    assert cache.get(QUESTION, model="llama", prompt_file=prompt) is None
    assert cache.get(QUESTION, model="qwen") is None
    before = prompt.stat()
    prompt.write_text("Be witty.")
    os.utime(prompt, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert cache.get(QUESTION, model="qwen", prompt_file=prompt) is None
    prompt.write_text("Be brief.")
    assert cache.get(QUESTION, model="qwen", prompt_file=prompt) is not None
    prompt.unlink()
    assert cache.get(QUESTION, model="qwen", prompt_file=prompt) is None
    assert not cache.put(QUESTION, ANSWER, prompt_file=prompt)


@pytest.mark.parametrize(("kind", "seconds"), [("factual", 86_400), ("tool", 3_600), ("greeting", 300)])
def test_time_ends_an_answer_by_its_kind(
    memory: OrchestratorContextManager, clock: Clock, kind: str, seconds: int
) -> None:
    """A day for facts, an hour for tools, five minutes for greetings."""
    cache = memory.response_cache
    cache.put("hello there", "Hi!", kind=kind, facts=[])
    clock.now += timedelta(seconds=seconds - 1)
    found = cache.get("hello there", facts=[])
    assert found is not None
    assert found.age_s == seconds - 1
    clock.now += timedelta(seconds=1)
    assert cache.get("hello there", facts=[]) is None
    with pytest.raises(ValueError, match="weather"):
        cache.put("hello there", "Hi!", kind="weather")


def test_the_number_of_answers_is_bounded(tmp_path: Path, clock: Clock) -> None:
    """Those not used for longest go first; with none allowed nothing is kept."""
    for most in (3, 0):
        with open_memory(tmp_path, clock=clock, config={"responses": {"max_entries": most}}) as memory:
            cache = memory.response_cache
            cache.clear()
            for number in range(5):
                clock.now += timedelta(seconds=1)
                assert cache.put(f"question {number}", "an answer", facts=[]) is bool(most)
                cache.get("question 0", facts=[])
            kept = [number for number in range(5) if cache.get(f"question {number}", facts=[])]
            assert kept == ([0, 3, 4] if most else [])


def test_answers_outlive_the_process_and_nothing_is_lost_with_them(tmp_path: Path, clock: Clock) -> None:
    """The file may be deleted, damaged, or be another program's: the next answer is kept again."""
    path = tmp_path / HOME / "index" / "search.db"
    with open_memory(tmp_path, clock=clock) as memory:
        memory.response_cache.put(QUESTION, ANSWER, facts=[])
    with open_memory(tmp_path, clock=clock) as memory:
        cache = memory.response_cache
        assert cache.get(QUESTION, facts=[]) is not None
        for harm in ("delete", "damage", "replace", "folder"):
            if harm == "delete":
                path.unlink()
            elif harm == "damage":
                path.write_bytes(b"no database" * 1_000)
            elif harm == "folder":
                shutil.rmtree(path.parent)
            else:
                path.unlink()
                with sqlite3.connect(path) as connection:
                    connection.execute("CREATE TABLE response (x)")
                connection.close()
            # What is damaged beneath a log that holds the answer still gives it.
            assert harm == "damage" or cache.get(QUESTION, facts=[]) is None, harm
            assert cache.put(QUESTION, ANSWER, facts=[]), harm
            assert cache.get(QUESTION, facts=[]) is not None, harm


def test_where_nothing_can_be_written_the_model_answers(
    memory: OrchestratorContextManager, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A folder stands in the file's place: no answer, no error, and a warning with the reason."""
    path = tmp_path / HOME / "index" / "search.db"
    path.mkdir(parents=True)
    cache = memory.response_cache
    with caplog.at_level(logging.WARNING):
        assert not cache.put(QUESTION, ANSWER, facts=[])
        assert cache.get(QUESTION, facts=[]) is None
    assert f"an answer could not be kept: {path} is no file" in caplog.text
    assert f"the response cache cannot be used, the model answers: {path} is no file" in caplog.text
    assert cache.get_stats()["responses"] == -1


def test_without_an_embedder_the_same_words_are_found(
    memory: OrchestratorContextManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no others."""
    monkeypatch.setitem(sys.modules, "wordllama", None)
    cache = memory.response_cache
    cache.put(QUESTION, ANSWER)
    assert cache.get(f"  {QUESTION}\n") is not None
    assert cache.get(SIMILAR) is None


@pytest.mark.parametrize(("asked", "known"), cases("questions_that_turn_on_a_word"))
def test_questions_that_turn_on_a_word_are_not_the_same(
    memory: OrchestratorContextManager, asked: str, known: str
) -> None:
    """However near their vectors lie: some of these have a cosine over 0.9, one of 1."""
    assert difference(asked, known)
    assert difference(known, asked)
    memory.response_cache.put(known, ANSWER, facts=[])
    assert memory.response_cache.get(asked, facts=[]) is None


@pytest.mark.parametrize(("one", "other"), cases("questions_that_ask_the_same_may_be"))
def test_questions_that_ask_the_same_may_be(one: str, other: str) -> None:
    """Case, punctuation and small words make no difference."""
    assert difference(one, other) == ""


@given(st.text(max_size=60), st.text(max_size=60))
def test_difference_takes_any_strings(one: str, other: str) -> None:
    """Either way round it comes to the same, and a text does not differ from itself."""
    assert difference(one, one) == ""
    assert bool(difference(one, other)) == bool(difference(other, one))
