"""A memory moves between its file and a server, with its documents; what it was moved from tells of that."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem import OrchestratorContextManager, StorageError, open_memory
from orchestra_mem.build import load_settings
from orchestra_mem.build.storage import open_database
from orchestra_mem.doctor.backups import go_on_here, move_database
from orchestra_mem.settings import Settings
from orchestra_mem.work_types import WorkKind
from tests.memories import SMALL
from tests.postgres_server import PostgresServer
from tests.processes import python
from tests.promises.conftest import work
from tests.storage.conftest import Machine

_KILLED = """
import json, os, sys
from pathlib import Path
from orchestra_mem.build import load_settings
from orchestra_mem.doctor.backups import move_database
project = Path(sys.argv[1])
def end(point):
    if point == "copy.commit.after":
        print("copied", flush=True)
        os.kill(os.getpid(), 9)
file, server = (load_settings(project, {}, json.loads(config)) for config in sys.argv[2:])
move_database(project, file, server, on_table=lambda table, rows: None, write_point=end)
"""


def test_documents_move_to_the_server_and_back_with_the_memory(tmp_path: Path, on_server: dict[str, Any]) -> None:
    """On the server another machine has them, with their versions; back in the file nothing tells of it."""
    machine = Machine.of(tmp_path, "laptop", on_server)
    with open_memory(machine.project, config=SMALL) as memory:
        work(memory, 30)
        memory.refresh()
    before = machine.files()
    file, server = (load_settings(machine.project, {}, each) for each in (SMALL, machine.config))
    move_database(machine.project, file, server, on_table=lambda table, rows: None)
    machine.open().close()
    desk = Machine.of(tmp_path, "desk", on_server)
    with desk.open() as there:
        assert desk.files() == machine.files() == before
        there.record_operation("decision", {"text": "We close on Sundays."})
        there.refresh()
    move_database(machine.project, server, file, on_table=lambda table, rows: None)
    with open_memory(machine.project, config=SMALL) as memory:
        assert memory.documents.unread() == []
        assert "revision: " not in machine.log.read_text("utf-8")
        assert "We close on Sundays." in machine.text()
    with closing(open_database(machine.project / ".obra", file)) as database:
        assert database.value("test", "SELECT count(*) FROM shared_files") == 0
    move_database(machine.project, file, server, on_table=lambda table, rows: None)
    with machine.open() as memory:
        assert [operation.type for operation in memory.operations()][30:] == ["decision"]
        assert "We close on Sundays." in machine.text()


def test_a_move_that_was_killed_goes_on(tmp_path: Path, on_server: dict[str, Any]) -> None:
    """Between the commits of the two databases; what was recorded in the old one since is not left behind untold."""
    machine = Machine.of(tmp_path, "laptop", on_server)
    with open_memory(machine.project, config=SMALL) as memory:
        work(memory, 20)
    killed = python(_KILLED, machine.project, json.dumps(SMALL), json.dumps(machine.config), status=-9)
    assert killed.stdout == "copied\n"
    file, server = (load_settings(machine.project, {}, each) for each in (SMALL, machine.config))
    assert move_database(machine.project, file, server, on_table=lambda table, rows: None).rows > 20
    with pytest.raises(StorageError, match="this memory was moved from"):
        move_database(machine.project, file, server, on_table=lambda table, rows: None)
    with machine.open() as memory:
        assert len(memory.operations()) == 20
    go_on_here(machine.project, file)
    with open_memory(machine.project, config=SMALL) as memory:
        memory.record_operation("note", {"text": "One more loaf."})
    with pytest.raises(StorageError, match=r"has another memory already: .* operations\. .*`DROP SCHEMA … CASCADE`"):
        move_database(machine.project, file, server, on_table=lambda table, rows: None)
    with open_memory(machine.project, config=SMALL) as memory:
        assert memory.record_operation("note", {"text": "And one."}).id == 22


def test_who_records_where_the_memory_was_moved_from_is_told(
    laptop: Machine, desk: Machine, postgres: PostgresServer
) -> None:
    """All that was acknowledged before has moved; whoever opens it is told as well, until it is to go on there."""
    schema = postgres.schema()
    other = Machine(laptop.project, {**SMALL, "storage": {**laptop.config["storage"], "schema_name": schema}})
    file, server, elsewhere = (load_settings(laptop.project, {}, each) for each in (SMALL, laptop.config, other.config))

    def moves(memory: OrchestratorContextManager, old: Settings, new: Settings) -> str:
        with ThreadPoolExecutor() as pool:
            moved = pool.submit(move_database, laptop.project, old, new, on_table=lambda table, rows: None)
            with pytest.raises(StorageError) as told:
                recorded.extend(memory.record_operation("note", {"text": "Another loaf."}) for _ in count())
            moved.result()
        with pytest.raises(StorageError, match="this memory was moved from"):
            memory.state.create(WorkKind.EPIC, "Bake bread")
        return str(told.value)

    recorded: list[object] = []
    with desk.open() as there:
        assert re.search(r"moved from schema .* to .*obra.db of .*: only that folder can", moves(there, server, file))
    with pytest.raises(StorageError, match=r"To go on here as well.*`orchestra-mem move --to URL`, with the URL in"):
        desk.open()
    with open_memory(laptop.project, config=SMALL) as here:
        assert len(here.operations()) == 2 + len(recorded)
        assert f"to schema {schema} of postgresql://" in moves(here, file, elsewhere)
    with other.open() as here:
        assert len(here.operations()) == 2 + len(recorded)
    with pytest.raises(StorageError, match=r"To go on with .* all the same: `orchestra-mem move --to file`"):
        open_memory(laptop.project, config=SMALL)
    for machine, settings in ((desk, server), (Machine(laptop.project, SMALL), file)):
        assert go_on_here(machine.project, settings)
        assert not go_on_here(machine.project, settings)
        with machine.open() as memory:
            memory.record_operation("note", {"text": "The oven is cold."})
    postgres.drop(schema)


def test_a_memory_moves_from_schema_to_schema(laptop: Machine, postgres: PostgresServer) -> None:
    """With the folder that it is moved from, which has the documents that it had."""
    schema, before = postgres.schema(), laptop.files()
    other = Machine(laptop.project, {**SMALL, "storage": {**laptop.config["storage"], "schema_name": schema}})
    old, new = (load_settings(laptop.project, {}, each.config) for each in (laptop, other))
    move_database(laptop.project, old, new, on_table=lambda table, rows: None)
    with other.open() as memory:
        assert len(memory.operations()) == 2
        assert other.files() == before
    postgres.drop(schema)


def test_an_older_copy_does_not_take_the_place_of_a_newer_memory(tmp_path: Path, on_server: dict[str, Any]) -> None:
    """Who moves back what a server has from before the move loses nothing of what lies here."""
    machine = Machine.of(tmp_path, "laptop", on_server)
    with open_memory(machine.project, config=SMALL) as memory:
        work(memory, 12)
    file, server = (load_settings(machine.project, {}, each) for each in (SMALL, machine.config))
    move_database(machine.project, file, server, on_table=lambda table, rows: None)
    with closing(open_database(machine.project / ".obra", server)) as database:
        database.write("test", "DELETE FROM operations WHERE id = 12")
    with pytest.raises(StorageError, match="another memory already"):
        move_database(machine.project, server, file, on_table=lambda table, rows: None)
    with closing(open_database(machine.project / ".obra", file, moving=True)) as database:
        assert database.value("test", "SELECT count(*) FROM operations") == 12


def test_a_persons_own_line_like_the_revisions_stays(tmp_path: Path, on_server: dict[str, Any]) -> None:
    """In front matter that was there before the documents were shared, and through what is shared later."""
    laptop, desk = (Machine.of(tmp_path, name, on_server) for name in ("laptop", "desk"))
    with open_memory(laptop.project, config=SMALL) as memory:
        memory.record_operation("decision", {"text": "We close at noon."})
        memory.refresh()
    laptop.edit("---\n\n", "revision: 5\n---\n\n")
    file, server = (load_settings(laptop.project, {}, each) for each in (SMALL, laptop.config))
    move_database(laptop.project, file, server, on_table=lambda table, rows: None)
    for machine in (laptop, desk, laptop):
        with machine.open() as memory:
            memory.record_operation("decision", {"text": f"We close at {len(memory.operations()) + 1}."})
            memory.refresh()
        rows = [row for row in machine.log.read_text("utf-8").split("\n") if row.startswith("revision: ")]
        assert (len(rows), rows[-1]) == (2, "revision: 5")


def test_the_first_documents_are_shared_all_or_none(tmp_path: Path, on_server: dict[str, Any]) -> None:
    """Who is ended while it shares them has left none out: another machine would begin these anew."""
    laptop, desk = (Machine.of(tmp_path, name, on_server) for name in ("laptop", "desk"))
    with open_memory(laptop.project, config=SMALL) as memory:
        work(memory, 30)
        memory.refresh()
    file, server = (load_settings(laptop.project, {}, each) for each in (SMALL, laptop.config))
    move_database(laptop.project, file, server, on_table=lambda table, rows: None)
    before = laptop.files()

    def ends(point: str) -> None:
        if point == "sharing.commit.after":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_memory(laptop.project, config=laptop.config, write_point=ends)
    desk.open().close()
    assert desk.files() == before
    laptop.open().close()
    assert laptop.files() == before
