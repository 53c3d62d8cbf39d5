"""The response cache: an answer is reused only for the same question, the same facts, model and prompt."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem import OrchestratorContextManager, open_memory
from orchestra_mem.adapters.embedders import load_table
from orchestra_mem.build import HOME
from orchestra_mem.core.search.responses import ResponseKind, difference
from tests.builders import cases
from tests.conftest import Clock

QUESTION = "Why did we choose bcrypt for passwords?"
SIMILAR = "Tell me why we chose bcrypt for passwords"
ANSWER = "Because the auditors know it."


@pytest.fixture
def memory(memory: OrchestratorContextManager) -> OrchestratorContextManager:
    """A memory with something to answer from."""
    memory.record_operation("message", {"text": "We decided on bcrypt for passwords, as the auditors know it."})
    memory.record_operation("message", {"text": "Never deploy the shop on a Friday."})
    return memory


def test_two_calls_are_enough(memory: OrchestratorContextManager) -> None:
    """After `put`, the same and a similar question get the answer, with its similarity; another one does not."""
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


@pytest.mark.parametrize(("similarity", "is_same"), [(0.6, True), (0.7, False)])
def test_the_setting_decides_how_alike_questions_are(tmp_path: Path, similarity: float, is_same: bool) -> None:
    """A question gets an earlier answer if their cosine, here 0.68, is above `responses.similarity`, however low."""
    with open_memory(tmp_path, config={"responses.similarity": similarity}) as memory:
        memory.response_cache.put("When do we bake?", "On Tuesdays.", facts=["K1"])
        found = memory.response_cache.get("Please remind me again: when do we bake?", facts=["K1"])
        assert (found is not None) is is_same


def test_other_facts_are_another_answer(memory: OrchestratorContextManager) -> None:
    """A relevant new operation, or a different list of facts, invalidates an answer; the order of facts does not."""
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
    """Another model or prompt file misses; a changed prompt file is detected even with the same size and time."""
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
    """Answers expire by kind: facts after a day, tools after an hour, greetings after five minutes."""
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
    """The least recently used answers are evicted first; with a limit of 0 nothing is cached."""
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
    """Answers survive a restart; if their file is deleted, damaged or replaced, the next answer is cached again."""
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
                with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                    connection.execute("CREATE TABLE response (x)")
                connection.close()
            # A damaged file still answers if SQLite's log holds the answer.
            assert harm == "damage" or cache.get(QUESTION, facts=[]) is None, harm
            assert cache.put(QUESTION, ANSWER, facts=[]), harm
            assert cache.get(QUESTION, facts=[]) is not None, harm


def test_where_nothing_can_be_written_the_model_answers(
    memory: OrchestratorContextManager, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """If a folder is in the file's place, nothing is cached, nothing raises, and a warning gives the reason."""
    path = tmp_path / HOME / "index" / "search.db"
    path.mkdir(parents=True)
    cache = memory.response_cache
    with caplog.at_level(logging.WARNING):
        assert not cache.put(QUESTION, ANSWER, facts=[])
        assert cache.get(QUESTION, facts=[]) is None
    assert f"an answer could not be cached: {path} is not a file" in caplog.text
    assert f"the response cache cannot be used, so the model has to answer: {path} is not a file" in caplog.text
    assert cache.get_stats()["responses"] == -1


def test_without_an_embedder_the_same_words_are_found(
    memory: OrchestratorContextManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an embedder only the same words match."""
    monkeypatch.setitem(sys.modules, "wordllama", None)
    load_table.cache_clear()
    cache = memory.response_cache
    cache.put(QUESTION, ANSWER)
    assert cache.get(f"  {QUESTION}\n") is not None
    assert cache.get(SIMILAR) is None


@pytest.mark.parametrize(("asked", "known"), cases("questions_that_turn_on_a_word"))
def test_questions_that_turn_on_a_word_are_not_the_same(
    memory: OrchestratorContextManager, asked: str, known: str
) -> None:
    """Questions that differ in a decisive word never match, even if their vectors are equal."""
    assert difference(asked, known)
    assert difference(known, asked)
    memory.response_cache.put(known, ANSWER, facts=[])
    assert memory.response_cache.get(asked, facts=[]) is None


@pytest.mark.parametrize(("one", "other"), cases("questions_that_ask_the_same_may_be"))
def test_questions_that_ask_the_same_may_be(one: str, other: str) -> None:
    """Case, punctuation and small words make no difference between questions."""
    assert difference(one, other) == ""


@given(st.text(max_size=60), st.text(max_size=60))
def test_difference_takes_any_strings(one: str, other: str) -> None:
    """`difference` accepts any strings, is symmetric, and finds none between a text and itself."""
    assert difference(one, one) == ""
    assert bool(difference(one, other)) == bool(difference(other, one))
