"""Search over a complete memory: operations, documents and facts are found at once, in their tier, while they hold."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections import Counter
from contextlib import closing, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestra_mem import (
    AuditFilter,
    InvalidTimeError,
    OperationFilter,
    OrchestratorContextManager,
    StorageError,
    open_memory,
)
from orchestra_mem.adapters.embedders import WordLlamaEmbedder
from orchestra_mem.adapters.search_index.index import DiskSearchIndex
from orchestra_mem.build import HOME
from orchestra_mem.core.search.terms import ANALYSIS_VERSION, index_text
from orchestra_mem.search_types import SearchFilter, SearchMode, Tier
from orchestra_mem.serialize import to_object
from orchestra_mem.types import DocumentName
from orchestra_mem.work_types import WorkKind
from tests.adapters.test_http_embedder import Server
from tests.builders import cases
from tests.conftest import START, Clock
from tests.memories import edit, flushed, say, take_out
from tests.processes import python

CONFIG = {"orchestrator": {"context_window": {"max_tokens": 32_000}, "working_memory": {"max_operations": 4}}}
SUMMARISING = {
    "orchestrator": {**CONFIG["orchestrator"], "session_compression_threshold": 4_000},
    "compaction": {"verbatim_window_s": 0, "verbatim_floor_tokens": 100, "segment_tokens": 100},
}
SAID = (
    "We decided to hash passwords with bcrypt, as the auditors know it.", "Never deploy the shop on a Friday.",
    "TODO: write the migration guide for the warehouse.",
    "The garnet parser was slow because of the regular expressions.", "Tea was had in the long hall.",
    "It rained on the harbour.", "The lamp in the cellar was changed.", "A heron stood on the roof.",
)  # fmt: skip


@pytest.fixture
def memory(memory: OrchestratorContextManager, clock: Clock) -> OrchestratorContextManager:
    """A memory with operations in working memory and in the session's document, and with facts in the documents."""
    say(memory, clock, *SAID, agent="dana")
    return memory


def _sources(memory: OrchestratorContextManager, query: str, **options: object) -> list[str]:
    return [hit.chunk.source for hit in memory.search(query, **options).hits]  # type: ignore[arg-type]


def test_a_line_in_the_middle_of_a_long_output_is_found(memory: OrchestratorContextManager) -> None:
    """A log of 200,000 characters is searched to its middle, and its passage is the one with the line."""
    log = [f"worker {number} processed batch {number * 7}" for number in range(5_000)]
    log[2_500] = "payment gateway rejected voucher QX77"
    memory.record_operation("tool_use", {"tool": "shell", "output": "\n".join(log)})
    assert "voucher QX77" in memory.search("voucher QX77").hits[0].chunk.text


def test_a_summary_tells_its_facts_as_they_are_now(tmp_path: Path, clock: Clock) -> None:
    """A fact that a person has removed is no longer found through a summary, only through its operation."""
    with open_memory(tmp_path, config=SUMMARISING, clock=clock) as memory:
        say(memory, clock, *SAID, *(f"Part {n} of the harbour wall was painted by crew_{n}." for n in range(14)))
        assert any("bcrypt" in summary.text for summary in memory.losses())
        told = {hit.chunk.source for hit in memory.search("hash passwords bcrypt").hits if "bcrypt" in hit.chunk.text}
        assert any(source.startswith("S") for source in told), told
        take_out(memory.episodic_memory.path(DocumentName.DECISION_LOG), "bcrypt")
        told = {hit.chunk.source for hit in memory.search("hash passwords bcrypt").hits if "bcrypt" in hit.chunk.text}
        assert told == {"op 1"}


def test_a_summary_says_which_of_its_facts_are_superseded(tmp_path: Path, clock: Clock) -> None:
    """In what is retrieved and by `expand`, a summary is shown with the states of all its facts.

    This includes the facts next to the passage that answers a question.
    """
    with open_memory(tmp_path, config=SUMMARISING, clock=clock) as memory:
        say(memory, clock, "We use MySQL for the orders database.", "Ben is responsible for the payments.", *SAID)
        say(memory, clock, *(f"Part {n} of the harbour wall was painted by crew_{n}." for n in range(14)))
        _, later = _decided(memory, "We switch the orders database from MySQL to Postgres.")
        asked, where = "Who is responsible for the payments?", SearchFilter(kinds=("summary",))
        expanded = memory.expand("S1").summary
        assert expanded is not None
        for shown in (memory.retriever.retrieve_context(asked, where=where).text, expanded.text):
            assert f"- Decision K1 (superseded by {later}): We use MySQL for the orders database.\n" in shown
            assert "- Role K2: Ben is responsible for the payments.\n" in shown


def test_a_fact_says_what_it_says_now_and_is_gone_where_it_holds_no_more(memory: OrchestratorContextManager) -> None:
    """A reworded fact is found with its new text, a removed one not at all; its operation still is."""
    assert "K2" in _sources(memory, "deploy on Friday")
    path = memory.episodic_memory.path(DocumentName.PROJECT_STATE)
    edit(path, ("Never deploy the shop on a Friday.", "Never open the shop in a storm."))
    told = {hit.chunk.source: hit.chunk.text for hit in memory.search("shop on a Friday").hits}
    assert told["K2"] == "Never open the shop in a storm."
    assert "K2" in _sources(memory, "storm")
    assert "K2" in _sources(memory, "deploy on Friday")
    take_out(path, "(K2)")
    found = _sources(memory, "deploy on Friday")
    assert "K2" not in found
    assert "op 2" in found


def test_what_has_been_superseded_is_marked_and_comes_after_what_replaced_it(
    memory: OrchestratorContextManager,
) -> None:
    """A hit whose decision was replaced names the later fact, and ranks below it; a repeated decision is not marked.

    Contexts, chats and `search_memory` show the mark as well. Other agents' facts mark nothing in a strict search.
    """
    for text in ("We use MySQL for the orders database.", "The team uses tabs.", "The team uses tabs."):
        memory.record_operation("decision", {"text": text}, agent="ann")
    newer = memory.record_operation("decision", {"text": "We switch the orders database from MySQL to Postgres."}).id
    old, fact = newer - 3, next(fact for fact in memory.facts() if fact.operation == newer)
    hits = memory.search("orders database MySQL", limit=30).hits
    found = {hit.chunk.source: place for place, hit in enumerate(hits)}
    assert hits[found[f"op {old}"]].superseded_by == f"K{fact.id}"
    assert min(found[f"K{fact.id}"], found[f"op {newer}"]) < found[f"op {old}"]
    assert to_object(hits[found[f"op {old}"]])["superseded_by"] == f"K{fact.id}"
    assert not hits[found[f"op {newer}"]].superseded_by
    assert [hit.superseded_by for hit in memory.search("tabs", limit=30).hits if "tabs" in hit.chunk.text] == [""] * 3
    mark = f"superseded by K{fact.id}"
    assert any(mark in line and f"op {old}" in line for line in memory.search_memory("orders database MySQL"))
    assert mark in memory.retriever.retrieve_context("orders database MySQL", max_tokens=2_000).text
    strict = memory.search(
        "orders database MySQL", where=SearchFilter(agent="ann", readable=frozenset({"ann"}), strict=True)
    ).hits
    assert {hit.superseded_by for hit in strict} == {""}


def _marks(memory: OrchestratorContextManager, query: str) -> dict[str, str]:
    return {hit.chunk.source: hit.superseded_by for hit in memory.search(query, limit=30).hits if hit.superseded_by}


def test_a_line_of_a_document_is_marked_once_its_fact_is_superseded(tmp_path: Path, clock: Clock) -> None:
    """Until the next refresh rewrites it, the line or entry of a superseded fact names the later one; others do not.

    A recommended operation is marked as well.
    """
    long = "We use MySQL for the orders database, because the operators of the cellar know it well " * 2
    with open_memory(tmp_path, clock=clock) as memory:
        say(memory, clock, long, "Ann is responsible for the invoices.", "Ben is responsible for the vault.")
        for text in (
            "We switch the orders database from MySQL to Postgres.",
            "From now on Carla is responsible for the invoices, not Ann.",
        ):
            memory.record_operation("message", {"role": "user", "text": text})
        assert [fact.id for fact in memory.facts()] == [3, 4, 5]
        found = [*memory.search("orders database", limit=30).hits, *memory.search("who is responsible", limit=30).hits]
        marks = {hit.chunk.text: hit.superseded_by for hit in found if hit.chunk.source.endswith(".md")}
        assert {text: mark for text, mark in marks.items() if mark} == {
            f"> {long.strip()}": "K4",
            "- Ann is responsible for the invoices. (K2)": "K5",
        }
        assert marks["- Ben is responsible for the vault. (K3)"] == ""
        similar = memory.retriever.get_recommendations("the orders database with MySQL").similar_tasks
        (told,) = (each for each in similar if each.source == "op 1")
    assert ", superseded by K4, " in told.label
    assert to_object(told)["fate"] == told.fate == "superseded by K4"


def _decided(memory: OrchestratorContextManager, text: str) -> tuple[str, str]:
    """Record a decision; return the names of its operation and of its last fact."""
    number = memory.record_operation("decision", {"text": text}).id
    return f"op {number}", f"K{memory.facts()[-1].id}"


def test_a_mark_names_the_last_of_several_that_replaced_each_other(memory: OrchestratorContextManager) -> None:
    """Of a decision that was repeated and then replaced twice, each earlier operation names the present one."""
    said = [_decided(memory, "We use MySQL for the orders database.") for _ in range(2)]
    said.append(_decided(memory, "We switch the orders database from MySQL to Postgres."))
    present = _decided(memory, "We switch the orders database from Postgres to SQLite.")
    marks = _marks(memory, "orders database MySQL Postgres SQLite")
    assert marks == {operation: present[1] for operation, _ in said}


@pytest.mark.parametrize(
    "rest", [" The ovens must be cleaned by Ann.", "\n".join(f"column_{at} int," for at in range(30))]
)
def test_an_operation_of_which_a_part_stands_is_not_marked(memory: OrchestratorContextManager, rest: str) -> None:
    """An operation is not marked if one of its facts stands, or if most of its text is no fact."""
    _decided(memory, f"We use MySQL for the orders database.\n{rest}")
    _decided(memory, "We switch the orders database from MySQL to Postgres.")
    assert "superseded" in {fact.status for fact in memory.facts(standing=False)}
    assert _marks(memory, "orders database MySQL") == {}


def test_what_a_person_removed_supersedes_nothing(memory: OrchestratorContextManager) -> None:
    """Once a person has deleted the later decision, the earlier operation is not marked with it."""
    _decided(memory, "We use MySQL for the orders database.")
    text = "We switch the orders database from MySQL to Postgres."
    _, fact = _decided(memory, text)
    assert set(_marks(memory, "orders database MySQL").values()) == {fact}
    memory.refresh()
    take_out(memory.episodic_memory.path(DocumentName.DECISION_LOG), f"({fact})")
    assert _marks(memory, "orders database MySQL") == {}


def test_a_removed_fact_is_superseded_by_none_that_only_put_it_in_doubt(memory: OrchestratorContextManager) -> None:
    """An operation whose fact was perhaps superseded when a person removed it is marked as removed."""
    texts = (
        "The monthly house contribution must be 48 euros per flat.",
        "The guest room must be paid: 15 euros a night.",
    )
    first, _ = [memory.record_operation("message", {"role": "user", "text": text}) for text in texts]
    memory.refresh()
    facts = {fact.text: fact for fact in memory.facts()}
    assert facts[texts[0]].superseded_by == facts[texts[1]].id
    take_out(memory.episodic_memory.path(DocumentName.PROJECT_STATE), "48 euros")
    hits = {hit.chunk.source: hit.fate for hit in memory.search("monthly house contribution", limit=30).hits}
    assert hits[f"op {first.id}"] == "removed by a person"


def test_what_a_person_reworded_or_removed_is_marked(memory: OrchestratorContextManager) -> None:
    """An operation whose decision a person reworded names its fact; one whose decision was removed says so.

    If the removed decision was superseded before, the operation names the later fact.
    """
    reworded, fact = _decided(memory, "We open the harbour museum at nine.")
    removed, _ = _decided(memory, "We paint the harbour museum green.")
    replaced, _ = _decided(memory, "We use MySQL for the museum database.")
    _, later = _decided(memory, "We switch the museum database from MySQL to Postgres.")
    memory.refresh()
    path = memory.episodic_memory.path(DocumentName.DECISION_LOG)
    edit(path, ("at nine", "at ten"))
    take_out(path, "green", "use MySQL")
    hits = {hit.chunk.source: hit for hit in memory.search("harbour museum database", limit=30).hits}
    assert [*hits].index(fact) < [*hits].index(reworded)
    fates = {name: hits[name].fate for name in (fact, reworded, removed, replaced, later)}
    by = {reworded: f"superseded by {fact}", removed: "removed by a person", replaced: f"superseded by {later}"}
    assert fates == {fact: "", later: "", **by}
    assert f"[{removed}, removed by a person] We paint" in "\n".join(memory.search_memory("museum green", 20))


def test_what_a_person_writes_into_an_ended_session_is_found(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note in an archived document is found by the next process, or after ten seconds, until it is taken out."""
    note = "the spare fuse is behind the samovar"

    def found() -> bool:
        with open_memory(tmp_path, clock=clock) as memory:
            return archive.name in _sources(memory, note)

    with open_memory(tmp_path, clock=clock) as memory:
        say(memory, clock, *SAID)
        archive = flushed(memory)
    assert not found()
    archive.write_text(f"{archive.read_text()}\n## Afterwards\n\n{note}\n")
    assert found()
    with open_memory(tmp_path, clock=clock) as memory:
        assert archive.name in _sources(memory, note)
        take_out(archive, "samovar")
        later = time.monotonic() + 10
        monkeypatch.setattr(time, "monotonic", lambda: later)
        assert archive.name not in _sources(memory, note)
    monkeypatch.undo()
    assert not found()


def test_operations_stand_in_the_tier_where_they_are(memory: OrchestratorContextManager, clock: Clock) -> None:
    """An operation is found in the working tier first, and in the session tier after the flush."""
    number = memory.record_operation("note", {"text": "The saffron gateway answers on port 8443."}).id
    assert _sources(memory, "saffron", where=SearchFilter(tiers=(Tier.WORKING,)))[:1] == [f"op {number}"]
    assert f"op {number}" not in _sources(memory, "saffron", where=SearchFilter(tiers=(Tier.SESSION,)))
    memory.flush_session()
    assert _sources(memory, "saffron", where=SearchFilter(tiers=(Tier.SESSION,)))[:1] == [f"op {number}"]
    assert _sources(memory, "saffron", where=SearchFilter(tiers=(Tier.WORKING,))) == []
    clock.now += timedelta(hours=1)
    memory.record_operation("note", {"text": "A new day."})
    assert f"op {number}" in _sources(memory, "saffron")


def test_what_answers_only_perhaps_is_shown_and_told_from_what_is_likely(tmp_path: Path) -> None:
    """Uncertain hits are marked, come after likely ones, and are never recalled into a context."""
    with open_memory(tmp_path) as memory:
        assert memory.search("password hashing").hits == ()
        memory.record_operation("decision", {"text": "We use bcrypt because it is slow on purpose"})
        for text in SAID[1:]:
            memory.record_operation("note", {"text": text})
        found = memory.search("password hashing")
        assert (found.hits[0].chunk.source, found.hits[0].perhaps, found.likely) == ("op 1", True, ())
        assert memory.search_memory("password hashing", 1) == [
            "[op 1, perhaps] We use bcrypt because it is slow on purpose"
        ]
        assert memory.search("weather tomorrow").likely == memory.search("capital of Australia").likely == ()
        assert memory.retriever.retrieve_context("capital of Australia").entries == ()
        for query in ("why is bcrypt slow", "the parser of the shop", "who changed the lamp", "#4"):
            hits = memory.search(query).hits
            flags = [hit.perhaps for hit in hits]
            assert flags == sorted(flags)
            assert not flags[0]
            assert flags[-1]
            assert all(0 <= hit.likelihood <= 1 for hit in hits)


def test_what_stands_in_summaries_is_found_until_they_are_summarised(tmp_path: Path, clock: Clock) -> None:
    """Only summaries that no other summary covers are found."""
    config = {
        "orchestrator": {
            "context_window": {"max_tokens": 8_192}, "working_memory": {"max_operations": 2},
            "session_compression_threshold": 600,
        },
        "compaction": {
            "verbatim_window_s": 0, "verbatim_floor_tokens": 0, "segment_tokens": 100, "fan_in": 2,
            "window_share": 0.05,
        },
    }  # fmt: skip
    with open_memory(tmp_path, config=config, clock=clock) as memory:
        say(memory, clock, *(f"The walnut press made {n} bottles of oil in the old yard." for n in range(120)))
        standing = {f"S{summary.id}" for summary in memory.losses() if not summary.parent}
        merged = {f"S{summary.id}" for summary in memory.losses() if summary.parent}
        assert standing
        assert merged
        found = set(_sources(memory, "walnut press oil", where=SearchFilter(kinds=("summary",)), limit=100))
        assert found
        assert found <= standing


def test_what_cannot_be_meant_is_refused_in_words(memory: OrchestratorContextManager) -> None:
    """An invalid limit or mode is refused; a mode may be given by its name."""
    for options, words in (
        ({"limit": -1}, "limit is -1"), ({"mode": "nearest"}, "'nearest' is not a valid SearchMode"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            memory.search("bcrypt", **options)
    with pytest.raises(ValueError, match="limit is -1"):
        memory.retriever.get_recommendations("bcrypt", limit=-1)
    dense = memory.search("bcrypt", mode="dense")  # type: ignore[arg-type]
    assert dense.hits == memory.search("bcrypt", mode=SearchMode.DENSE).hits
    assert {hit.reasons.keyword_rank for hit in dense.hits} == {None}


def test_a_time_without_a_zone_is_refused_wherever_a_filter_takes_one(memory: OrchestratorContextManager) -> None:
    """Every filter with a time that has no zone raises the same error, which says how to give a zone."""
    naive = datetime(2025, 1, 1)
    for call in (
        lambda: memory.operations(OperationFilter(since=naive)),
        lambda: memory.count_operations(OperationFilter(until=naive)),
        lambda: memory.search("bcrypt", where=SearchFilter(until=naive)),
        lambda: memory.audit(AuditFilter(since=naive)),
        lambda: memory.catalog.audit.injections(None, naive),
    ):
        with pytest.raises(InvalidTimeError, match=r"2025-01-01 00:00:00,? .*has no time zone; give one, as in `time"):
            call()


# The index follows


def _answers(memory: OrchestratorContextManager) -> list[dict[tuple[str, str], Any]]:
    """Return the hits of some queries and filters, by source and text, with their likelihoods."""
    filters = (
        SearchFilter(), SearchFilter(agent="dana"), SearchFilter(tiers=(Tier.EPISODIC, Tier.SEMANTIC)),
        SearchFilter(kinds=("note", "task")), SearchFilter(since=START + timedelta(hours=2)),
    )  # fmt: skip
    queries = ("the garnet lamp of the shop", "harbour", "#3")
    answers = [memory.search(query, where=where, limit=500) for query in queries for where in filters]
    assert "rebuilt" not in " ".join(note for answer in answers for note in answer.notes)
    return [{(hit.chunk.source, hit.chunk.text): hit.likelihood for hit in answer.hits} for answer in answers]


@pytest.mark.parametrize("seed", range(5))
def test_an_index_that_was_kept_up_answers_as_one_that_is_made_anew(
    memory: OrchestratorContextManager, clock: Clock, seed: int
) -> None:
    """After any records, edits, work and sessions, a filtered search finds what a new index does, without a repair."""
    rng = random.Random(seed)
    plan, words = memory.episodic_memory.path(DocumentName.WORK_PLAN), " ".join(SAID).split()
    for number in range(40):
        clock.now += timedelta(minutes=5)
        text = f"{' '.join(rng.choices(words, k=rng.randint(1, 12)))} {number}"
        step = rng.choice(["record", "record", "decide", "edit", "work", "change", "refresh", "flush", "search"])
        if step in ("record", "decide"):
            said = text if step == "record" else f"We decided to paint {text}."
            memory.record_operation(rng.choice(["note", "message"]), {"text": said}, agent=rng.choice([None, "dana"]))
        elif step == "edit":
            rows = [row for row in plan.read_text().split("\n") if not row.startswith("Mine") or rng.random() < 0.7]
            plan.write_text("\n".join([*rows, f"Mine: {text}", ""]))
        elif step in ("work", "change"):
            items = memory.state.items()
            if step == "work" or not items:
                memory.state.create(WorkKind.TASK, text)
            else:
                memory.state.change(rng.choice(items).id, title=text)
        elif step == "search":
            assert "rebuilt" not in " ".join(memory.search(text).notes)
        else:
            {"refresh": memory.refresh, "flush": memory.flush_session}[step]()
    memory.update_index()  # a busy machine may not index all of it within the time of a search
    kept = _answers(memory)
    memory.update_index(anew=True)
    for before, after in zip(kept, _answers(memory), strict=True):
        assert before == pytest.approx(after, abs=1e-4)


def test_an_edit_embeds_what_it_changed_and_no_more(tmp_path: Path, server: Server) -> None:
    """After one line of a long document was changed, at most two of its passages are embedded again."""
    search = {"embedder": "http", "base_url": server.url, "model": "m"}
    with open_memory(tmp_path, config={"search": search}) as memory:
        path = memory.episodic_memory.path(DocumentName.WORK_PLAN)
        rows = (f"- Shelf {number} is of {number * 7_919 % 1_000} boards." for number in range(300))
        path.write_text("\n".join([path.read_text(), "## Shelves", "", *rows, ""]))
        memory.update_index()
        server.seen.clear()
        edit(path, ("Shelf 150 is", "Shelf 150 was"))
        memory.update_index()
        assert 0 < sum(len(body["input"]) for body in server.requests) <= 2


# Any string

# Characters that break query languages, regular expressions, JSON, file names, terminals and text decoders.
ALPHABETS = (
    "\"'*():^-+NEARANDORNOT ", "%_\\;--/*[]{}|&!~", "\x00\x01\x1b\x7f\x85\u2028\ufeff\ufffe",
    "\ud800\udfff\ud83d\ude00",
    "😀🏳️‍🌈👨‍👩‍👧🇩🇪", "数据库服务器再起動배포검토ฐานข้อมูล", "áàǎāａｂｃ①Ⅷﬁ", "\u0301\u0308\u0e31\u0e34\u200d\u200b\u202e",
    "#0123456789.,:-/", "abcXYZ_ .", "ابجد שלום नमस्ते", " \t\r\n\u00a0\u3000",
)  # fmt: skip
WORDS = (
    "NEAR(", "AND", "OR", "NOT", "#12", "#", "src/flow.py", "record_operation", "CamelCase", "yesterday", "last week",
    "2024-13-45", "in 99999 days",
    "10^400 weeks ago", "when", "SELECT * FROM chunk; --", "${PATH}", "\\u0000", "数据库",
)  # fmt: skip


def _queries(count: int) -> list[str]:
    rng = random.Random("any query")
    found = []
    for _ in range(count):
        alphabet = "".join(rng.choices(ALPHABETS, k=rng.randint(1, 3)))
        pieces = ["".join(rng.choices(alphabet, k=rng.randint(0, 12))) for _ in range(rng.randint(0, 4))]
        pieces += rng.choices(WORDS, k=rng.randint(0, 2))
        rng.shuffle(pieces)
        found.append(rng.choice(["", " ", "\x00"]).join(pieces))
    return found


@pytest.mark.parametrize("embedder", ["wordllama", "off"])
def test_any_query_raises_nothing(tmp_path: Path, embedder: str) -> None:
    """Random queries raise nothing in any mode, with and without an embedder; hits are unique and within the limit."""
    rng = random.Random("how")
    modes = [mode for mode in SearchMode if embedder != "off" or mode is not SearchMode.DENSE]
    answered = 0
    with open_memory(tmp_path, config={"search": {"embedder": embedder}}) as memory:
        for _, text in cases("said_in_languages"):
            memory.record_operation("note", {"text": text})
        said = dict(cases("said_in_languages"))
        for language, part in (
            ("chinese", "数据库"), ("japanese", "再起動"), ("korean", "배포"), ("thai", "ฐานข้อมูล"),
            ("russian", "базу данных"), ("arabic", "قاعدة البيانات"),
        ):  # fmt: skip
            assert memory.search(part).hits[0].chunk.text == said[language]
        for query in _queries(250):
            limit = rng.choice([0, 1, 3])
            hits = memory.search(query, mode=rng.choice(modes), limit=limit).hits
            assert len({hit.id for hit in hits}) == len(hits) <= limit, query
            answered += bool(hits)
    assert answered > 25


# An index that is rebuilt

EMBEDDER = WordLlamaEmbedder()
# More than one batch of the index.
OPERATIONS = 650


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory that was never searched."""
    folder = tmp_path_factory.mktemp("recorded")
    with open_memory(folder) as memory:
        for number in range(OPERATIONS):
            memory.record_operation("note", {"text": f"Lamp number{number} was changed."})
    return folder


# Brings an index up to date, and kills itself when it passes a write point for the nth time.
KILLED = """
import os, signal, sys
from orchestra_mem import open_memory
folder, name, left = sys.argv[1], sys.argv[2], int(sys.argv[3])
def reach(point):
    global left
    left -= point == name
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
with open_memory(folder, write_point=reach) as memory:
    memory.search("lamp", limit=1)
    memory.update_index()
"""


def _delete_index(folder: Path, name: str, passes: int) -> None:
    """Bring an index up to date, and delete it when a write point is passed for the nth time."""
    passed: Counter[str] = Counter()

    def delete(point: str) -> None:
        passed[point] += 1
        if point == name and passed[point] == passes:
            shutil.rmtree(folder / HOME / "index")

    with open_memory(folder, write_point=delete) as memory:
        with suppress(StorageError):  # the next update makes up for a failure
            memory.search("lamp", limit=1)
            memory.update_index()
        memory.update_index()
    assert passed[name] >= passes


@pytest.mark.parametrize(("harm", "point", "passes"), cases("an_index_is_lost_in_the_middle"))
def test_an_index_that_is_lost_in_the_middle_has_everything_at_the_end(
    recorded: Path, tmp_path: Path, harm: str, point: str, passes: int
) -> None:
    """An index whose folder is deleted, or whose process is killed, while it is built is complete after an update."""
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    if harm == "deleted":
        _delete_index(tmp_path, f"index.{point}", passes)
    else:
        python(KILLED, tmp_path, f"index.{point}", passes, status=-signal.SIGKILL)
    with open_memory(tmp_path) as memory:
        memory.update_index()
        for number in (0, 1, 499, 500, OPERATIONS - 1):
            for mode in (SearchMode.KEYWORD, SearchMode.HYBRID):
                (hit,) = memory.search(f"number{number}", mode=mode, limit=1).hits
                assert hit.chunk.text == f"Lamp number{number} was changed."
    with closing(DiskSearchIndex(tmp_path / HOME / "index", index_text, analysis_version=ANALYSIS_VERSION)) as index:
        assert index.problems == ()
        ids = np.arange(1, index.count() + 1)
        texts = [chunk.embedded_text if chunk else "" for chunk in index.chunks(ids)]
        assert index.vectors(EMBEDDER.model, ids) == pytest.approx(EMBEDDER.embed(texts), abs=1e-5)


def test_a_kill_within_an_edit_leaves_no_passage_of_the_text_before(tmp_path: Path) -> None:
    """If a process is killed while it indexes an edit, the next update leaves just the passages of a new index."""
    with open_memory(tmp_path) as memory:
        path = memory.episodic_memory.path(DocumentName.WORK_PLAN)
        path.write_text(f"{path.read_text()}\n## Mine\n\n- Paint the shelf.\n")
        memory.update_index()
    edit(path, ("Paint the shelf", "Sand the door"))
    python(KILLED, tmp_path, "index.add.commit.after", 1, status=-signal.SIGKILL)
    with open_memory(tmp_path) as memory:
        memory.update_index()
        kept = {hit.chunk.key for hit in memory.search("the", limit=500).hits}
        assert "Sand the door" in memory.search("sand the door").hits[0].chunk.text
        memory.update_index(anew=True)
        assert {hit.chunk.key for hit in memory.search("the", limit=500).hits} == kept
        assert not any("Paint" in hit.chunk.text for hit in memory.search("paint the shelf", limit=500).hits)
