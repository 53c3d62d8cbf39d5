"""A memory on a PostgreSQL server answers like one in a file, and survives the server's crash."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from orchestra_mem import (
    OperationFilter,
    ServerAwayError,
    StorageError,
    StorageReadOnlyError,
    open_memory,
)
from orchestra_mem.adapters.database.migrations import MIGRATIONS
from orchestra_mem.adapters.database.postgres_dialect import told_name
from orchestra_mem.build import load_settings
from orchestra_mem.build.storage import open_database
from orchestra_mem.doctor.memory import diagnose
from orchestra_mem.search_types import EVERYTHING, SearchFilter
from tests.conftest import Clock
from tests.faces.conftest import Program
from tests.memories import SMALL, problems_of, work
from tests.postgres_server import PostgresServer
from tests.processes import start
from tests.storage.conftest import Machine
from tests.timing import until

# Records until so many operations are acknowledged; prints each failure and tries the next one.
WORKER = """
import json, sys
from orchestra_mem import StorageError, open_memory
project, config, name, count = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3], int(sys.argv[4])
with open_memory(project, config=config) as memory:
    done = tried = 0
    while done < count:
        tried += 1
        try:
            operation = memory.record_operation("note", {"text": f"{name} {tried}"})
        except StorageError as error:
            print("refused", " ".join(str(error).split()), flush=True)
        else:
            done += 1
            print("kept", operation.id, tried, flush=True)
"""


@pytest.fixture
def server(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """The server, which is started again after the test."""
    yield postgres
    postgres.start()


@pytest.fixture
def config(on_server: dict[str, Any]) -> dict[str, Any]:
    """The settings of a memory in a new schema."""
    return {**SMALL, "storage": on_server}


def recording(project: Path, config: dict[str, Any], name: str, count: int) -> subprocess.Popen[str]:
    """Start a process that records operations."""
    return start("-c", WORKER, project, json.dumps(config), name, count)


def test_it_answers_as_a_memory_in_a_file(tmp_path: Path, config: dict[str, Any]) -> None:
    """The same operations give the same facts, operations and decision log in a file and on a server."""
    said = []
    for folder, settings in (("file", SMALL), ("server", config)):
        project = tmp_path / folder / "project"
        project.mkdir(parents=True)
        with open_memory(project, config=settings, clock=Clock()) as memory:
            work(memory, 60)
            memory.refresh()
            assert "table t14" in memory.search("where do we keep batch 14?").hits[0].chunk.text
            assert "table t14" in memory.get_orchestrator_context("answer", query="batch 14").render()
            facts = [(fact.id, fact.kind, fact.text, fact.status) for fact in memory.facts(standing=False)]
            log = memory.documents.path("decision_log").read_text(encoding="utf-8")
        with open_memory(project, config=settings, clock=Clock()) as memory:
            again = [(each.id, each.data) for each in memory.operations(OperationFilter())]
            said.append([facts, again, [line for line in log.splitlines() if line.startswith("### ")]])
    for file, postgres in zip(*said, strict=True):
        assert file == postgres


def test_a_user_who_may_only_read_searches_and_is_told_why_nothing_is_recorded(
    laptop: Machine, reader: Machine, postgres: PostgresServer
) -> None:
    """A user who may not delete gets facts, hits and a context; writes are refused, `status` and `doctor` say why."""
    storage = reader.config["storage"]
    user = psycopg.conninfo.conninfo_to_dict(storage["url"])["user"]
    with postgres.connect() as connection:
        connection.execute(f"GRANT INSERT, UPDATE ON ALL TABLES IN SCHEMA {storage['schema_name']} TO {user}")
    with reader.open() as memory:
        assert "We bake rye bread on Tuesdays." in [fact.text for fact in memory.facts()]
        assert "rye bread" in memory.search("which bread on Tuesdays?").hits[0].chunk.text
        assert "rye bread" in memory.get_orchestrator_context("answer", query="bread").render()
        with pytest.raises(StorageReadOnlyError, match="is read-only; this user cannot write"):
            memory.record_operation("note", {"text": "Not here."})
        told = problems_of(memory)[0]["problem"]
    reader.write_settings()
    (found,) = (each for each in diagnose(reader.project) if each.part == "database")
    words = (
        f"this user cannot write to all tables of schema {storage['schema_name']} of {told_name(postgres.url)}, and "
        "documents are read from there"
    )
    assert told == f"the memory can be read, but {found.words}; {found.advice}"
    assert found.words.startswith(f"nothing can be recorded: {words}")
    assert found.advice.startswith("grant INSERT, UPDATE and DELETE on its tables to this user, or name a server that")


def test_what_was_acknowledged_outlives_the_server(
    tmp_path: Path, config: dict[str, Any], server: PostgresServer
) -> None:
    """Acknowledged records survive three server crashes and a cut of all connections; recording goes on by itself."""
    kept: dict[int, str] = {}
    refused: list[str] = []
    with recording(tmp_path, config, "w", 200) as worker:
        assert worker.stdout is not None
        for number, line in enumerate(worker.stdout):
            kind, *rest = line.split(maxsplit=2)
            if kind == "kept":
                kept[int(rest[0])] = f"w {rest[1].strip()}"
            else:
                refused.append(line)
            if number in (30, 70, 110, 150):
                if number == 70:
                    server.cut_connections()
                else:
                    server.kill()
                    server.start()
    assert worker.returncode == 0
    assert len(kept) == 200
    assert all("postgresql:///" in each for each in refused)
    with open_memory(tmp_path, config=config) as memory:
        found = {each.id: each.data["text"] for each in memory.operations(OperationFilter())}  # type: ignore[call-overload, index]
    assert kept.items() <= found.items()
    # An operation refused while the server died may be stored, at most once.
    assert len(found) - len(kept) <= len(refused)
    assert len(set(found.values())) == len(found)


def test_after_a_cut_no_call_waits_for_each_dead_connection(
    tmp_path: Path, config: dict[str, Any], postgres: PostgresServer
) -> None:
    """A call that finds a dead connection drops all of them and soon has a new one."""
    with closing(open_database(tmp_path, load_settings(tmp_path, {}, config))) as database:
        with ExitStack() as at_once:
            for _ in range(6):
                at_once.enter_context(database.reading("each has a connection of its own"))
        postgres.cut_connections()
        assert until(lambda: database.value("SELECT 1"), 20) < 5


def test_while_the_server_is_away_documents_and_the_last_context_are_there(
    tmp_path: Path, config: dict[str, Any], server: PostgresServer
) -> None:
    """Without the server, documents and the last context are available and recording fails; later it succeeds."""
    config["storage"]["busy_timeout_s"] = 3
    with open_memory(tmp_path, config=config) as memory:
        work(memory, 20)
        memory.refresh()
        last = memory.get_orchestrator_context("x")
        server.kill()
        begun = 0.0
        for _ in range(2):
            begun = time.monotonic()
            context = memory.get_orchestrator_context("y", query="where do we keep batch 14?")
            assert (context.render(), context.for_operation) == (last.render(), "y")
            (note,) = context.notes
            assert note.startswith(
                "this is the last context, because newer data cannot be read: reading: postgresql://"
            )
        # Only the first call waits for 3 s: a later one for 1 s, and as long for a thread in the background.
        assert time.monotonic() - begun < 2.5
        for budget, where in ((1_000, EVERYTHING), (None, SearchFilter(readable=frozenset({"coder"}), strict=True))):
            with pytest.raises(ServerAwayError):  # no earlier context with this budget or filter
                memory.get_orchestrator_context("y", budget, where=where)
        with pytest.raises(StorageError, match=r"the server cannot be reached: check that it runs, and storage\.url"):
            memory.record_operation("note", {"text": "lost?"})
        assert memory.documents.path("decision_log").read_text(encoding="utf-8")
        server.start()
        assert memory.record_operation("note", {"text": "back"}).id == 21
        assert "back" in memory.get_orchestrator_context("x").render()


def test_a_connection_that_was_cut_is_met_by_nobody(
    tmp_path: Path, config: dict[str, Any], server: PostgresServer
) -> None:
    """After cut connections or a server restart, the next record or read succeeds at once."""
    with open_memory(tmp_path, config=config) as memory:
        for number in range(1, 7):
            if number == 4:
                server.kill()
                server.start()
            else:
                server.cut_connections()
            if number % 2:
                assert memory.record_operation("note", {"text": "one"}).id == number // 2 + 1
            else:
                assert len(memory.operations(OperationFilter())) == number // 2


def test_a_statement_that_the_server_ends_is_told_as_that(
    tmp_path: Path, config: dict[str, Any], postgres: PostgresServer
) -> None:
    """A statement that the server or the driver ends is reported with its own cause, not as a lost connection."""
    with postgres.connect() as connection, ExitStack() as stack:
        connection.execute("ALTER DATABASE postgres SET statement_timeout = '300ms'")
        stack.callback(connection.execute, "ALTER DATABASE postgres RESET statement_timeout")
        database = stack.enter_context(closing(open_database(tmp_path, load_settings(tmp_path, {}, config))))
        with pytest.raises(StorageError, match="the server cancelled it: statement_timeout expired") as told:
            database.value("SELECT pg_sleep(5)")
        with pytest.raises(StorageError, match="parameters") as refused:
            database.value("SELECT 1", (1,))
    assert "cannot be reached" not in f"{told.value} {refused.value}"


def test_what_is_wrong_with_the_address_is_told_without_its_password(tmp_path: Path) -> None:
    """An unreachable server and an invalid address or schema are errors that never contain the password."""
    away = {"storage": {"url": "postgresql://ann:secret1@127.0.0.1:1/db", "busy_timeout_s": 0.5}}
    with pytest.raises(StorageError, match=r"postgresql://127\.0\.0\.1:1/db: .* the server cannot be reached") as error:
        open_memory(tmp_path, config=away)
    assert "secret1" not in str(error.value)
    for storage, problem in (
        ({"url": "mysql://ann:secret1@h/db"}, "must begin with postgresql://"),
        ({"url": "postgresql://ann:secret1@x@h/db"}, "must percent-encode special characters"),
        ({"url": "postgresql://ann:se%ZZcret1@h/db"}, "must percent-encode special characters"),
        ({"url": "postgresql://ann:a/secret1@h/db"}, "must percent-encode special characters"),
        ({"url": "postgresql://ann:secret1@h/db?no=thing"}, "not a valid PostgreSQL address"),
        ({"schema_name": "Drop Table"}, "must be 1 to 63 lower-case letters"),
    ):
        with pytest.raises(Exception, match=problem) as told:
            open_memory(tmp_path, config={"storage": storage})
        assert "secret1" not in str(told.value)


def test_status_says_where_the_database_is_without_the_password(
    tmp_path: Path, on_server: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status names the schema, the server and this machine, never the password; the doctor finds no damage there."""
    schema, url = on_server["schema_name"], on_server["url"]
    monkeypatch.setenv("ORCHESTRA_MEM__STORAGE__URL", f"{url}&password=secret1" if "?" in url else url)
    monkeypatch.setenv("ORCHESTRA_MEM__STORAGE__SCHEMA_NAME", schema)
    monkeypatch.setenv("ORCHESTRA_MEM__STORAGE__MACHINE", "laptop")
    open_memory(tmp_path).close()
    program = Program(tmp_path)
    told = next(line for line in program("-C", tmp_path, "status").splitlines() if line.startswith("server"))
    assert re.fullmatch(f"server   schema {schema} of postgresql://.*/postgres, as machine laptop", told)
    assert "secret1" not in program("-C", tmp_path, "status", "--json")
    (finding,) = (each for each in diagnose(tmp_path) if each.part == "database")
    assert finding.words == f"no damage; schema {len(MIGRATIONS)}, on a PostgreSQL server"
    assert not (tmp_path / ".obra" / "obra.db").exists()


def test_what_others_keep_in_a_schema_is_left_alone(
    tmp_path: Path, config: dict[str, Any], postgres: PostgresServer
) -> None:
    """A schema with foreign tables is refused; a view added later is not listed among the memory's tables."""
    schema = config["storage"]["schema_name"]
    with postgres.connect() as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"CREATE TABLE {schema}.people (id INT, note TEXT)")
        with pytest.raises(StorageError, match="already contains other tables; give this memory a separate schema"):
            open_memory(tmp_path, config=config)
        connection.execute(f"DROP TABLE {schema}.people")
        with open_memory(tmp_path, config=config) as memory:
            memory.record_operation("note", {"text": "one"})
        connection.execute(f"CREATE VIEW {schema}.ops AS SELECT * FROM {schema}.operations")
    with closing(open_database(tmp_path / ".obra", load_settings(tmp_path, {}, config))) as database:
        assert "operations" in database.tables()
        assert "ops" not in database.tables()


def test_a_pooler_that_drops_the_options_is_refused_before_anything_is_made(
    tmp_path: Path, config: dict[str, Any], postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pooler that drops connection options is refused, since all memories would share one schema."""
    connect = psycopg.Connection.connect

    def without_options(conninfo: str = "", **how: Any) -> Any:
        return connect(conninfo, **{name: value for name, value in how.items() if name != "options"})

    monkeypatch.setattr(psycopg.Connection, "connect", without_options)
    monkeypatch.setattr(psycopg, "connect", without_options)
    with pytest.raises(
        StorageError, match=r"connection options did not reach the server: its search_path is .*public' instead of"
    ):
        open_memory(tmp_path, config=config)
    with postgres.connect() as connection:
        assert connection.execute("SELECT to_regclass('public.operations')").fetchone() == (None,)


def test_a_commit_is_noticed_whatever_else_the_server_commits_meanwhile(
    tmp_path: Path, config: dict[str, Any], postgres: PostgresServer
) -> None:
    """The commit count changes with each commit, even if a transaction that began later ended earlier."""
    settings = load_settings(tmp_path, {}, config)
    insert = "INSERT INTO notices (time, subject, text) VALUES (1, '', '')"
    with (
        closing(open_database(tmp_path, settings)) as one,
        closing(open_database(tmp_path, settings)) as other,
        postgres.connect() as elsewhere,
    ):
        with one.transaction("note"):
            one.write("note", insert)
            elsewhere.execute("CREATE TEMPORARY TABLE others (n INT)")
            looked = other.commit_count()
        assert other.commit_count() != looked
