"""Concurrent recording on each storage: numbers in commit order, each key once, clear errors."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from filelock import FileLock

from orchestra_mem import LockTimeoutError, StorageError, open_memory
from orchestra_mem.adapters.database.database_copy import copy_database
from orchestra_mem.adapters.files.store import FileDocumentStore
from orchestra_mem.build.storage import open_database
from orchestra_mem.catalog_types import ItemFilter
from orchestra_mem.errors import StorageFullError
from orchestra_mem.memory.parts import DocumentsLock
from orchestra_mem.settings import Settings
from orchestra_mem.stores import EventLog, SqlDatabase
from orchestra_mem.types import Operation, Session, SessionStatus
from tests.conftest import START
from tests.memories import SMALL, problems_of
from tests.processes import python, start
from tests.timing import until

NOTICE = "INSERT INTO notices (time, subject, text) VALUES (1, ?, '')"


def draft(text: str, key: str | None = None) -> Operation:
    """Return an operation with this text."""
    return Operation(
        id=0, session="", type="note", data={"text": text}, timestamp=START, tokens=5, entry_tokens=5,
        idempotency_key=key,
    )  # fmt: skip


def new_session(name: str = "one") -> Session:
    """Return a new active session."""
    return Session(id=name, started=START, status=SessionStatus.ACTIVE)


def opened(folder: Path, storage: dict[str, Any]) -> Any:
    """Open the database once more."""
    return closing(open_database(folder, Settings.model_validate({"storage": storage})))


def test_a_reader_who_asks_for_what_is_new_misses_no_number(tmp_path: Path, storage: dict[str, Any]) -> None:
    """While eight connections record, a reader that asks for new operations sees every number in order."""
    seen: list[int] = []
    ended = Event()
    with ExitStack() as stack, ThreadPoolExecutor(9) as pool:
        logs = [EventLog(stack.enter_context(opened(tmp_path, storage))) for _ in range(8)]
        reader: SqlDatabase = stack.enter_context(opened(tmp_path, storage))

        def read() -> None:
            while True:
                last_look = ended.is_set()
                query = "SELECT id FROM operations WHERE id > ? ORDER BY id"
                seen.extend(number for (number,) in reader.rows(query, [max(seen, default=0)]))
                if last_look:
                    return

        def record(log: EventLog) -> list[int]:
            return [log.append(draft(str(number)), new_session)[0].id for number in range(100)]

        reading = pool.submit(read)
        try:
            given = [number for numbers in pool.map(record, logs) for number in numbers]
        finally:
            ended.set()
        reading.result()
    assert seen == sorted(given) == [*range(1, 801)]


def test_a_key_is_recorded_once_and_takes_no_number(database: SqlDatabase) -> None:
    """A repeated key returns the first operation and uses no number."""
    log = EventLog(database)
    first, created = log.append(draft("first", "key"), new_session)
    assert created
    assert log.append(draft("second", "key"), new_session) == (first, False)
    assert log.append(draft("third"), new_session)[0].id == first.id + 1 == 2


def test_who_waits_too_long_for_others_is_told_so(tmp_path: Path, storage: dict[str, Any]) -> None:
    """Waiting too long for another transaction is an error and changes nothing; the next write succeeds."""
    with opened(tmp_path, storage) as one, opened(tmp_path, {**storage, "busy_timeout_s": 0.2}) as other:
        with one.transaction("long"):
            one.write("long", NOTICE, ["one"])
            with pytest.raises(LockTimeoutError, match=r"storage\.busy_timeout_s"):
                other.write("short", NOTICE, ["other"])
            with pytest.raises(LockTimeoutError, match=r"storage\.busy_timeout_s"), other.transaction("short"):
                pass
        other.write("short", NOTICE, ["other"])
        assert one.rows("SELECT subject FROM notices ORDER BY id") == [("one",), ("other",)]


@pytest.mark.parametrize("reading", ["working_memory", "query_recent_operations(limit=30)", "facts()"])
def test_every_reading_shows_what_others_recorded_meanwhile(
    tmp_path: Path, storage: dict[str, Any], reading: str
) -> None:
    """Two memories record by turns without reading; then one reads, and has all operations, once and in order."""
    with open_memory(tmp_path, config={"storage": storage}) as memory, ExitStack() as stack:
        other = stack.enter_context(open_memory(tmp_path, config={"storage": storage}))
        memory.get_orchestrator_context("start")
        for number in range(1, 31):
            text = f"We decided to keep part {number} in table t{number}."
            (other if number % 3 else memory).record_operation("decision", {"text": text})
        eval(f"memory.{reading}")  # a parameter of this test
        assert [each.id for each in memory.working_memory.get_all_operations()] == [*range(1, 31)]
        assert len(memory.facts()) == 30
        told = memory.get_orchestrator_context("next").timeline
        assert re.findall(r"\(op (\d+)\)", told) == [str(number) for number in range(1, 31)]


def test_the_prefix_stays_although_others_have_spilled_what_it_lacks(tmp_path: Path, storage: dict[str, Any]) -> None:
    """A context continues with what other processes recorded and spilled since: its earlier bytes stay."""
    config = {"storage": storage, "orchestrator": {"working_memory": {"max_operations": 6}}}
    with open_memory(tmp_path, config=config) as memory, open_memory(tmp_path, config=config) as other:
        memory.record_operation("note", {"text": "first"})
        before = memory.get_orchestrator_context("start")
        for number in range(2, 18):
            other.record_operation("note", {"text": f"part {number}"})
        memory.record_operation("note", {"text": "last"})
        after = memory.get_orchestrator_context("next")
    assert after.prefix == before.prefix
    assert after.timeline.startswith(before.timeline)
    assert re.findall(r"\(op (\d+)\)", after.timeline) == [str(number) for number in range(1, 19)]


def test_who_waits_for_a_process_that_hangs_is_told_which(tmp_path: Path, storage: dict[str, Any]) -> None:
    """A process that hangs while it writes is named in the error; once killed, recording succeeds."""
    config = {**SMALL, "storage": {**storage, "busy_timeout_s": 2}}
    stopping = (
        "import json, os, signal, sys; from orchestra_mem import open_memory\n"
        "stop = lambda point: point == 'record.commit.before' and os.kill(os.getpid(), signal.SIGSTOP)\n"
        "memory = open_memory(sys.argv[1], config=json.loads(sys.argv[2]), write_point=stop)\n"
        "memory.record_operation('note', {'text': 'never'})\n"
    )
    with open_memory(tmp_path, config=config) as memory:
        hanging = start("-c", stopping, tmp_path, json.dumps(config))
        os.waitpid(hanging.pid, os.WUNTRACED)
        told = rf"locked by .*process {hanging.pid}( on \S+)?: end that process if it hangs"
        with pytest.raises(LockTimeoutError, match=told):
            memory.record_operation("note", {"text": "one"})
        assert memory.search("note").hits == ()
        hanging.kill()
        hanging.communicate()
        assert memory.record_operation("note", {"text": "two"}).id == 1


def test_a_move_is_refused_where_something_else_arrives(tmp_path: Path) -> None:
    """Copying fails and leaves the target empty if arrived rows differ from those sent."""
    (tmp_path / "to").mkdir()
    with opened(tmp_path, {}) as source, opened(tmp_path / "to", {}) as target:
        source.write("note", NOTICE, ["one"])
        target.write("spoil", "CREATE TRIGGER spoil AFTER INSERT ON notices BEGIN UPDATE notices SET text = 'x'; END")
        with pytest.raises(
            StorageError, match="rows of table notices differ from the source after copying; nothing was copied"
        ):
            copy_database(source, target, on_table=lambda table, rows: None)
        assert target.rows("SELECT * FROM notices") == []
        target.write("spoil", "DROP TRIGGER spoil")
        assert copy_database(source, target, on_table=lambda table, rows: None).rows == 1


@pytest.mark.parametrize("row", ["notices (time, subject, text) SELECT 1, n, ''", "catalog_state SELECT char(n), 1"])
def test_a_copy_reads_each_row_a_fixed_number_of_times(tmp_path: Path, storage: dict[str, Any], row: str) -> None:
    """The work of a copy is proportional to its rows, in tables with and without numbers, and every row arrives."""
    steps: list[int] = []

    def count() -> None:
        steps[-1] += 1

    for most in (1_000, 10_000):
        numbers = f"WITH r AS (SELECT 128 n UNION ALL SELECT n + 1 FROM r LIMIT {most})"
        (tmp_path / f"{most}" / "to").mkdir(parents=True)
        with opened(tmp_path / f"{most}", {}) as source, opened(tmp_path / f"{most}/to", storage) as target:
            source.write("fill", f"{numbers} INSERT INTO {row} FROM r")
            steps.append(0)
            with source.snapshot(), source.reading() as connection:
                connection.set_progress_handler(count, 100)
                assert copy_database(source, target, on_table=lambda table, rows: None).rows == most
        storage = {}
    assert steps[1] < 14 * steps[0]


def test_a_read_waits_for_nobody_who_writes(tmp_path: Path, storage: dict[str, Any]) -> None:
    """Reads succeed while another process writes for long, and report no problem; pending work follows later."""
    config = {**SMALL, "storage": {**storage, "busy_timeout_s": 60}}
    edits = ("We close at noon.", "We close at nine.")
    with open_memory(tmp_path, config=config) as memory, opened(tmp_path / ".obra", storage) as other:
        memory.catalog.store({"content": edits[0], "type": "decision"}, agent="coder")
        for text in (edits[0], *(f"We bake {loaf} on day {loaf}." for loaf in range(5))):
            memory.record_operation("decision", {"text": text})
        memory.refresh()
        memory.write_catalog()
        for loaf in range(5, 12):
            memory.record_operation("decision", {"text": f"We bake {loaf} on day {loaf}."})
        memory.learn("What did you decide?", "We decided to buy rye from the mill.", agent="coder")
        for name in ("decision_log", "catalog/coder"):
            path = memory.documents.path(name)
            path.write_text(path.read_text("utf-8").replace(*edits), "utf-8")
        begun = time.monotonic()
        with other.transaction("long"):
            assert "We bake 11 on day 11." in memory.get_orchestrator_context("x", query="noon").render()
            assert edits[0] in [fact.text for fact in memory.facts()]
            assert len(memory.search("bake").hits) == 10
            assert memory.get_stats()["problems"] == []
            assert memory.state.items() == []
            assert memory.catalog.get("M1", agent="coder").content in edits
            assert memory.shared_decisions() == []
            assert memory.blame("decision_log")
            assert "get" not in [entry.call for entry in memory.audit()]
        assert time.monotonic() - begun < 60
        assert edits[1] in [fact.text for fact in memory.facts()]
        assert len([fact for fact in memory.facts(standing=False) if "We bake" in fact.text]) == 12
        items = {item.content for item in memory.catalog.items(ItemFilter())}
        assert items == {edits[1], "We decided to buy rye from the mill."}
        calls = [entry.call for entry in memory.audit()]
        assert (calls[0], "get" in calls) == ("list", True)


_OPEN = """
import json, os, signal, sys
from orchestra_mem import open_memory
memory = open_memory(sys.argv[1], config=json.loads(sys.argv[2]))
"""
_STOPPED = f"""{_OPEN}
memory.record_operation("decision", {{"text": "We bake rye bread on Tuesdays."}})
memory.refresh()
memory.record_operation("decision", {{"text": "We close at noon."}})
with memory._parts.store.lock():
    print(os.getpid(), flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_a_stopped_process_that_holds_the_documents_keeps_nobody_out(tmp_path: Path, storage: dict[str, Any]) -> None:
    """Opening, recording and reading wait briefly for a stopped writer, tell who it is, and go on without it."""
    config = {**SMALL, "storage": {**storage, "busy_timeout_s": 20}}
    theirs, mine = tmp_path / "theirs" / "bakery", tmp_path / "mine" / "bakery"
    for folder in (theirs, mine):
        folder.mkdir(parents=True)
    if "url" not in storage:
        mine = theirs
    stopped = start("-c", _STOPPED, theirs, json.dumps(config))
    try:
        assert stopped.stdout is not None
        stopped.stdout.readline()
        until(lambda: Path(f"/proc/{stopped.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        begun = time.monotonic()
        with open_memory(mine, config=config) as memory:
            memory.record_operation("decision", {"text": "We sell rolls by the dozen."})
            said = memory.get_orchestrator_context("next prompt").render()
            assert all(text in said for text in ("We close at noon", "by the dozen"))
            (problem,) = problems_of(memory)
            what = r" on \S+ has locked the documents" if "url" in storage else r" has locked \S+obra\.lock"
            held = f"process {stopped.pid}{what}"
            assert re.match(f"{held}.*; until then, documents are not updated", problem["problem"])
            assert time.monotonic() - begun < 12
            os.kill(stopped.pid, signal.SIGKILL)
            stopped.wait()
            memory.refresh()
            assert problems_of(memory) == []
            log = (mine / ".obra" / "memory" / "decision_log.md").read_text("utf-8")
            assert all(text in log for text in ("rye bread", "at noon", "by the dozen"))
    finally:
        stopped.kill()
        stopped.communicate()


def test_the_first_record_of_a_session_waits_for_no_documents(tmp_path: Path) -> None:
    """The first record while others hold the documents returns at once; its session document is written later."""
    with open_memory(tmp_path, config=SMALL) as memory, FileLock(tmp_path / ".obra" / "obra.lock") as held:
        begun = time.monotonic()
        memory.record_operation("decision", {"text": "We bake rye bread on Tuesdays."})
        assert time.monotonic() - begun < 1
        held.release()
        memory.refresh()
        assert "rye bread" in (tmp_path / ".obra" / "memory" / "decision_log.md").read_text("utf-8")
        assert len([*(tmp_path / ".obra" / "sessions").glob("*.md")]) == 1


def test_a_flush_that_was_killed_is_finished_although_the_documents_were_held(tmp_path: Path) -> None:
    """What opening leaves to do because others hold the documents is done by the next call that gets them."""
    with open_memory(tmp_path, config=SMALL) as memory:
        memory.record_operation("decision", {"text": "We bake rye bread on Tuesdays."})
    kill = "stop = lambda point: point.startswith('archive') and os.kill(os.getpid(), 9)"
    opened_so = _OPEN.replace("[2]))", "[2]), write_point=stop)")
    python(f"import os\n{kill}\n{opened_so}\nmemory.flush_session()", tmp_path, json.dumps(SMALL), status=-9)
    (document,) = (tmp_path / ".obra" / "sessions").glob("*.md")
    with FileLock(tmp_path / ".obra" / "obra.lock") as held, open_memory(tmp_path, config=SMALL) as memory:
        memory.record_operation("note", {"text": "The oven is cold."})
        assert document.exists()
        held.release()
        memory.refresh()
        assert not document.exists()
        assert len(memory.sessions()) == 2


def test_a_flush_first_mends_the_document_that_an_opening_could_not(tmp_path: Path) -> None:
    """If others hold the documents at opening, a flush first mends the entry that a killed process left torn."""
    with open_memory(tmp_path, config=SMALL) as memory:
        for number in range(1, 30):
            memory.record_operation("note", {"text": f"We baked batch {number}."})
        memory.refresh()
    (document,) = (tmp_path / ".obra" / "sessions").glob("*.md")
    whole = document.read_text("utf-8")
    document.write_text(whole + "\n##", "utf-8")
    with FileLock(tmp_path / ".obra" / "obra.lock") as held, open_memory(tmp_path, config=SMALL) as memory:
        held.release()
        archived = memory.flush_session()
        assert archived is not None
        assert "\n##\n" not in archived.read_text("utf-8")


def test_a_step_that_failed_once_the_documents_were_free_is_tried_again(tmp_path: Path) -> None:
    """A step that was left at opening and then fails is run by the next call that holds the documents."""
    store = FileDocumentStore(lock_file=tmp_path / "lock", versions=tmp_path / "versions", lock_timeout_s=0.2)
    lock = DocumentsLock(store)
    done: list[str] = []

    def step(name: str) -> None:
        done.append(name)
        if done == ["one"]:
            raise StorageFullError("no space")

    with FileLock(tmp_path / "lock"):
        lock.run(step, "one")
        lock.run(step, "two")
    assert done == []
    with pytest.raises(StorageFullError):
        lock.run(step, "three")
    with lock.held() as free:
        assert free
    assert done == ["one", "one", "two", "three"]
