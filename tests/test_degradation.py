"""The degradation matrix of the source design: for each part that fails, what still answers and what is reported.

| part | failure | what remains |
|---|---|---|
| vector store | it cannot be reached | keyword search |
| vector store | embedding fails | keyword search; after some failures the embedder is not called for a while |
| vector store | a write of vectors fails | existing vectors answer, the rest is tried again |
| retriever | retrieval fails | an empty context |
| retriever | the cache is full | the least recently used entry is evicted |
| retriever | the budget is exceeded | less is shown |
| categorisation | there is no model | rules find the facts |

Also tested: FAISS missing; an index that is damaged, locked, or a file instead of a folder. For the cache see
`test_retriever.py`, for budgets `core/test_disclosure.py`, for rules without a model the tests of facts.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from orchestra_mem import EmbedderError, OrchestratorContextManager, open_memory
from orchestra_mem.adapters.embedders import load_table
from orchestra_mem.adapters.search_index import vectors
from orchestra_mem.adapters.search_index.index import DiskSearchIndex
from orchestra_mem.build import HOME
from orchestra_mem.core.search.terms import ANALYSIS_VERSION, index_text
from orchestra_mem.search_types import SearchMode
from tests.adapters.test_http_embedder import Server
from tests.memories import problems_of
from tests.timing import until

SAID = (
    "We decided to hash passwords with bcrypt, as the auditors know it.",
    "Never deploy the shop on a Friday.",
    "The physician advised more sleep.",
)
OFF = "search by meaning is off, so only keywords are searched: "


def fill(memory: OrchestratorContextManager) -> None:
    """Record operations to search for."""
    for text in SAID:
        memory.record_operation("message", {"text": text})


def sources(memory: OrchestratorContextManager, query: str, mode: SearchMode = SearchMode.HYBRID) -> list[str]:
    """The sources of a search's hits, best first."""
    return [hit.chunk.source for hit in memory.search(query, mode=mode).hits]


def notes(memory: OrchestratorContextManager, query: str = "bcrypt") -> tuple[str, ...]:
    """The notes of a search."""
    return memory.search(query).notes


def served(server: Server, *, reset_s: float = 60.0) -> dict[str, object]:
    """Settings that use this embedding server."""
    search = {"embedder": "http", "base_url": server.url, "model": "m", "breaker_reset_s": reset_s}
    return {"search": search}


# The vector store


def test_where_the_embedder_cannot_be_reached_words_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without WordLlama only keyword search answers; search, retrieval and context carry a note with the remedy."""
    monkeypatch.setitem(sys.modules, "wordllama", None)
    load_table.cache_clear()
    with open_memory(tmp_path) as memory:
        fill(memory)
        assert sources(memory, "bcrypt")[0] == "op 1"
        assert sources(memory, "doctor") == []
        (note,) = notes(memory)
        assert note.startswith(f"{OFF}WordLlama is not installed")
        assert "pip install wordllama" in note
        found = memory.retriever.retrieve_context("bcrypt")
        assert SAID[0] in found.text
        assert found.notes == (note,)
        assert memory.get_orchestrator_context("x", query="bcrypt").notes == (note,)


@pytest.mark.parametrize("kind", ["onnx", "gguf"])
def test_an_embedders_path_begins_at_the_project_or_the_users_home(tmp_path: Path, kind: str) -> None:
    """An embedder's relative path starts at the project, `~` at the user's home; the note names the full path."""
    for given, path in (("models/gone", tmp_path / "models/gone"), ("~/gone", Path.home() / "gone")):
        with open_memory(tmp_path, config={"search": {"embedder": kind, "model_path": given}}) as memory:
            fill(memory)
            assert f" {path}" in notes(memory)[0]


def test_without_faiss_words_answer_and_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without FAISS keyword search answers with a note on what to install; dense search raises `EmbedderError`."""
    monkeypatch.setattr(vectors, "load_faiss", vectors.load_faiss.__wrapped__)  # bypasses the cached import
    monkeypatch.setitem(sys.modules, "faiss", None)
    with open_memory(tmp_path) as memory:
        fill(memory)
        assert sources(memory, "bcrypt")[0] == "op 1"
        (note,) = notes(memory)
        assert note.startswith(f"{OFF}faiss cannot be imported")
        assert note.endswith("; pip install faiss-cpu")
        with pytest.raises(EmbedderError, match="faiss cannot be imported"):
            memory.search("doctor", mode=SearchMode.DENSE)


def test_an_embedder_that_fails_is_left_alone_and_is_back_by_itself(tmp_path: Path, server: Server) -> None:
    """After one failure no search calls the embedder; background checks do, and once it answers it is used again."""
    with open_memory(tmp_path, config=served(server, reset_s=2.0)) as memory:
        fill(memory)
        memory.update_index()
        assert sources(memory, "doctor")[0] == "op 3"
        assert problems_of(memory) == []
        server.broken = True
        assert any("no embeddings from 'm'" in note and "answered with 400" in note for note in notes(memory))
        asked = len(server.requests)
        told = {notes(memory) for _ in range(10)}
        ((note,),) = told
        assert note.startswith(f"{OFF}no embeddings from 'm'")
        assert note.endswith("busy now")
        assert sources(memory, "bcrypt")[0] == "op 1"
        assert note in [problem["problem"] for problem in problems_of(memory)]
        assert memory.get_stats()["search"]["problem"] == note  # type: ignore[index, call-overload]
        with pytest.raises(EmbedderError, match="answered with 400"):
            memory.search("doctor", mode=SearchMode.DENSE)
        assert len(server.requests) == asked
        server.broken = False
        until(lambda: problems_of(memory) == [], 10)
        assert sources(memory, "doctor")[0] == "op 3"
        assert notes(memory) == ()


def test_while_a_new_embedder_fails_the_vectors_of_the_former_one_answer(tmp_path: Path, server: Server) -> None:
    """After a switch to an embedding server that fails, the built-in word vectors still answer, and a note says so.

    Once the server's vectors have replaced them, they are deleted.
    """
    with open_memory(tmp_path) as memory:
        fill(memory)
        memory.update_index()
    server.broken = True
    with open_memory(tmp_path, config=served(server, reset_s=2.0)) as memory:
        for _ in range(2):
            assert sources(memory, "doctor")[0] == "op 3"
            assert sources(memory, "doctor", SearchMode.DENSE)[0] == "op 3"
        (note,) = notes(memory)
        assert note.startswith("search by meaning still uses the built-in word vectors: no embeddings from 'm'")
        assert note in [problem["problem"] for problem in problems_of(memory)]
        server.broken = False
        until(lambda: problems_of(memory) == [], 10)
        assert sources(memory, "doctor")[0] == "op 3"
        memory.update_index()
    with closing(DiskSearchIndex(tmp_path / HOME / "index", index_text, analysis_version=ANALYSIS_VERSION)) as index:
        assert [model.name for model in index.models()] == ["http m"]


def test_while_a_new_embedder_embeds_the_vectors_of_the_former_one_answer(tmp_path: Path, server: Server) -> None:
    """After a switch to a server slow with passages, the built-in word vectors answer until all are embedded."""
    with open_memory(tmp_path) as memory:
        fill(memory)
        memory.update_index()
    embed, go_on = server.questions, Event()

    def slowly(path: str, body: Any) -> Any:
        if len(body["input"]) > 1:  # passages; a question comes alone
            go_on.wait(20)
        return embed(path, body)

    server.questions = slowly  # type: ignore[method-assign]
    with open_memory(tmp_path, config=served(server)) as memory:
        for _ in range(2):
            assert sources(memory, "doctor", SearchMode.DENSE)[0] == "op 3"
        go_on.set()
        until(lambda: notes(memory) == (), 10)
        assert sources(memory, "doctor", SearchMode.DENSE)[0] == "op 3"


def test_where_vectors_cannot_be_written_what_is_there_answers(tmp_path: Path) -> None:
    """While another process locks the index, indexed operations are found with a note; new ones once it is unlocked."""
    with open_memory(tmp_path, config={"storage": {"busy_timeout_s": 0.1}}) as memory:
        fill(memory)
        memory.update_index()
        memory.record_operation("note", {"text": "The lawyer has the amber key."})
        with closing(sqlite3.connect(tmp_path / HOME / "index" / "search.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert sources(memory, "bcrypt")[0] == "op 1"
            assert memory.search("amber key").likely == ()
            (note,) = notes(memory)
            other.execute("ROLLBACK")
        other.close()
        assert note.startswith("the newest content may be missing because the index could not be updated: ")
        assert "another process has locked it for too long" in note
        assert sources(memory, "amber key")[0] == "op 4"


# The retriever


def test_where_retrieval_fails_the_context_is_empty(tmp_path: Path) -> None:
    """If the index folder is a file, nothing is retrieved, the context is as without a query, and a note says why."""
    with open_memory(tmp_path) as memory:
        (tmp_path / HOME / "index").write_text("no folder")
        fill(memory)
        found = memory.retriever.retrieve_context("bcrypt")
        assert (found.text, found.tokens, found.entries) == ("", 0, ())
        (note,) = found.notes
        assert note.startswith("nothing is recalled because search cannot be used: ")
        assert str(tmp_path / HOME / "index") in note
        said = memory.retriever.get_recommendations("bcrypt")
        assert (list(said.groups()), said.notes) == ([], (note,))
        context = memory.get_orchestrator_context("x", query="bcrypt")
        assert context.render() == memory.get_orchestrator_context("x").render()
        assert context.notes == (note,)
        assert "bcrypt" in memory.search_memory("bcrypt")[0]
        (tmp_path / HOME / "index").unlink()
        assert SAID[0] in memory.retriever.retrieve_context("bcrypt").text


# The index


@pytest.mark.parametrize("column", ["chunk record", "words_data block"])
def test_an_index_that_is_found_damaged_while_it_is_open_is_made_anew(tmp_path: Path, column: str) -> None:
    """The search that finds a damaged index rebuilds it and answers with a note; the next search has no note."""
    table, name = column.split(" ")
    with open_memory(tmp_path) as memory:
        fill(memory)
        before = sources(memory, "bcrypt")
        for _ in range(2):
            connection = sqlite3.connect(tmp_path / HOME / "index" / "search.db", isolation_level=None)
            connection.execute(f"UPDATE {table} SET {name} = x'ff'")
            connection.execute("UPDATE page SET changed = 1000000")
            connection.execute("UPDATE state SET sequence = sequence + 1")
            connection.close()
            answer = memory.search("bcrypt")
            assert [hit.chunk.source for hit in answer.hits] == before
            assert "rebuilt" in " ".join(answer.notes)
            assert notes(memory) == ()
