"""Moving a memory with its documents between a file and a server; the old place then refuses use."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import stat
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem import OrchestratorContextManager, StorageError
from orchestra_mem.build import load_settings
from orchestra_mem.build.storage import open_database, server_name
from orchestra_mem.doctor.backups import make_backup
from orchestra_mem.doctor.moves import move_database, reactivate
from orchestra_mem.errors import StorageReadOnlyError
from orchestra_mem.work_types import WorkKind
from tests.conftest import Clock
from tests.faces.conftest import Program
from tests.memories import SMALL, killing, work
from tests.postgres_server import PostgresServer
from tests.processes import python
from tests.storage.conftest import Machine

_KILLED = """
import json, os, sys
from pathlib import Path
from orchestra_mem.build import load_settings
from orchestra_mem.doctor.moves import move_database
project = Path(sys.argv[1])
def end(point):
    if point == "copy.commit.after":
        print("copied", flush=True)
        os.kill(os.getpid(), 9)
file, server = (load_settings(project, {}, json.loads(config)) for config in sys.argv[2:])
move_database(project, file, server, on_table=lambda table, rows: None, write_point=end)
"""


def _killed_at(step: int, machine: Machine, old: dict[str, Any], new: dict[str, Any]) -> str:
    """Move a memory in a fork that kills itself at a step; return the step, or `done` if there are fewer."""
    settings = machine.settings(old), machine.settings(new)
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        passed = count(1)

        def pass_by(what: str) -> None:
            if next(passed) == step:
                os.write(writing, what.encode())
                os.kill(os.getpid(), signal.SIGKILL)

        def hear(event: str, given: tuple[Any, ...]) -> None:
            if event == "os.remove" and ".obra" in str(given[0]):
                pass_by(event)

        try:
            sys.addaudithook(hear)
            move_database(machine.project, *settings, on_table=lambda table, rows: None, write_point=pass_by)
            os.write(writing, b"done")
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as told:
        said = told.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (0 if said == "done" else -signal.SIGKILL)
    return said


def _said(machine: Machine, config: dict[str, Any]) -> tuple[object, ...]:
    """Return the memory's hits, a context, the operations and the documents, to compare byte for byte."""
    with machine.open(config=config, clock=Clock()) as memory:
        asked = [[hit.chunk.text for hit in memory.search(f"where is batch {n}?").hits] for n in range(0, 30, 3)]
        return asked, memory.get_orchestrator_context("x").render(), str(memory.operations()), machine.files()


def test_a_memory_moves_to_the_server_and_back_with_its_documents(tmp_path: Path, on_server: dict[str, Any]) -> None:
    """A memory moved to a server, used on another machine, and moved back answers the same, byte for byte."""
    machine, desk = (Machine.of(tmp_path, name, on_server) for name in ("laptop", "desk"))
    with machine.open(config=SMALL, clock=Clock()) as memory:
        work(memory, 30)
        memory.record_operation("note", {"text": "nul \x00, half \ud800, \U00100000 0, 日本, %s ? :x"})
        memory.refresh()
    before = _said(machine, SMALL)

    def interrupt(table: str, rows: int) -> None:
        if table == "operations":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move_database(machine.project, machine.settings(SMALL), machine.settings(), on_table=interrupt)
    moved = machine.move(SMALL, machine.config)
    assert moved["operations"] == 31
    assert _said(machine, machine.config) == before
    with pytest.raises(StorageError, match=r"is on a server: set storage\.url"):  # the file is disabled
        machine.open(config=SMALL)
    with desk.open() as there:
        assert desk.files() == machine.files()
        there.record_operation("decision", {"text": "We close on Sundays."})
        there.flush_session()
    back = machine.move(machine.config, SMALL)
    assert (back["operations"], back.keys()) == (32, moved.keys())
    with machine.open(config=SMALL) as memory:
        assert str(memory.operations()[:31]) == before[2]
        assert memory.documents.unread() == []
        documents = [*machine.log.parent.parent.rglob("*.md")]
        assert [path.name for path in documents if "\nrevision: " in path.read_text("utf-8")] == []
        assert any(path.parent.name == "archive" for path in documents)
        assert "We close on Sundays." in machine.text()
    with closing(open_database(machine.project / ".obra", machine.settings(SMALL))) as database:
        assert database.value("SELECT count(*) FROM shared_files") == 0
    machine.move(SMALL, machine.config)
    with machine.open() as memory:
        assert [operation.type for operation in memory.operations()][31:] == ["decision"]
        assert "We close on Sundays." in machine.text()


def test_the_file_that_a_move_left_is_known_after_an_upgrade(tmp_path: Path, on_server: dict[str, Any]) -> None:
    """A server's memory opens without `working_copy.db`, even if the file that it left has an older schema."""
    machine = Machine.of(tmp_path, "laptop", on_server)
    with machine.open(config=SMALL) as memory:
        memory.record_operation("note", {"text": "One loaf."})
    machine.move(SMALL, machine.config)
    with closing(sqlite3.connect(machine.project / ".obra" / "obra.db")) as left:
        left.execute("PRAGMA user_version = 11")
    for path in (machine.project / ".obra").glob("working_copy.db*"):
        path.unlink()
    with machine.open() as memory:
        assert len(memory.operations()) == 1


def test_an_archive_that_may_not_be_written_stops_a_move_and_not_a_backup(laptop: Machine, tmp_path: Path) -> None:
    """A document marked read-only refuses a move before anything is copied, by its path; a backup has it as it is."""
    with laptop.open() as memory:
        memory.flush_session()
    (archive,) = (laptop.project / ".obra" / "sessions" / "archive").glob("*.md")
    (archive.parent / "folder.md").mkdir()
    archive.chmod(0o444)
    before = archive.read_text("utf-8")
    assert "\nrevision: " in before
    with pytest.raises(StorageReadOnlyError, match=f"{archive.name} is marked as read-only"):
        laptop.move(laptop.config, SMALL)
    assert archive.read_text("utf-8") == before
    make_backup(laptop.project, laptop.settings(), tmp_path / "backup", on_table=lambda table, rows: None)
    copy = tmp_path / "backup" / archive.relative_to(laptop.project)
    assert "\nrevision: " not in copy.read_text("utf-8")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o444
    with laptop.open() as memory:  # still on the server
        memory.record_operation("note", {"text": "The oven is cold."})
    archive.chmod(0o644)
    assert laptop.move(laptop.config, SMALL)["operations"] == 3


@pytest.mark.timeout(600)  # some fifteen moves, each killed and repeated
@pytest.mark.parametrize("to_server", [True, False])
def test_a_move_killed_at_any_step_leaves_one_memory_and_goes_on(
    tmp_path: Path, postgres: PostgresServer, to_server: bool
) -> None:
    """A killed move leaves at most one place that opens, even if it is then used; a repeated move completes it."""
    steps = [""]
    while steps[-1] != "done":
        schema = postgres.schema()
        machine = Machine.of(tmp_path, f"laptop-{len(steps)}", {"url": postgres.url, "schema_name": schema})
        in_file = {**machine.config, "storage": {}}
        old, new = (in_file, machine.config) if to_server else (machine.config, in_file)
        with machine.open(config=old) as memory:
            memory.record_operation("decision", {"text": "We bake rye bread on Tuesdays."})
            memory.refresh()
        steps.append(_killed_at(len(steps), machine, old, new))
        live = [config for config in (old, new) if _records(machine, config)]
        if live in ([old], []):
            assert machine.move(old, new)["operations"] == 1 + len(live), steps
        assert live in ([old], [], [new])
        with pytest.raises(StorageError, match=r"already moved: this memory was moved from"):
            machine.move(old, new)
        with machine.open(config=new) as memory:
            assert len(memory.operations()) == 1 + len(live), steps
            assert "We bake rye bread" in machine.text()
        assert not _records(machine, old)
        postgres.drop(schema)
    assert {"copy.commit.before", "copy.commit.after", "done"} <= {*steps}
    assert ("os.remove" in steps) != to_server


def _records(machine: Machine, config: dict[str, Any]) -> bool:
    """Record a note in one place of a memory; return False if that place refuses to open."""
    try:
        with machine.open(config=config) as memory:
            memory.record_operation("note", {"text": "The oven is cold."})
    except StorageError:
        return False
    return True


def test_a_copy_left_by_an_interrupted_move_is_not_made_usable(tmp_path: Path, on_server: dict[str, Any]) -> None:
    """The copy of a killed move says what to do, and cannot become a second memory, not even after a detour."""
    machine = Machine.of(tmp_path, "laptop", on_server)
    with machine.open(config=SMALL) as memory:
        work(memory, 20)
    python(_KILLED, machine.project, json.dumps(SMALL), json.dumps(machine.config), status=-9)
    unfinished = r"the move of this memory from .*obra.db on .* to schema .* was interrupted: repeat the same"
    with pytest.raises(StorageError, match=unfinished):
        machine.open()
    elsewhere = {**SMALL, "storage": {**on_server, "schema_name": f"{on_server['schema_name']}_b"}}
    machine.move(SMALL, elsewhere)
    with pytest.raises(StorageError, match=r"already moved: .*_b of"):
        machine.move(SMALL, machine.config)


@pytest.mark.parametrize("to_server", [True, False])
def test_a_copy_whose_old_place_is_lost_is_used_when_a_person_says_so(
    tmp_path: Path, on_server: dict[str, Any], to_server: bool
) -> None:
    """With `--old-place-lost`, the copy of a killed move becomes the memory, with every row and a warning."""
    machine = Machine.of(tmp_path, "laptop", on_server)
    in_file = {**machine.config, "storage": {}}
    old, new = (in_file, machine.config) if to_server else (machine.config, in_file)
    with machine.open(config=old) as memory:
        work(memory, 20)
        memory.refresh()
    python(_KILLED, machine.project, json.dumps(old), json.dumps(new), status=-9)
    with pytest.raises(StorageError) as told:
        move_database(machine.project, machine.settings(new), machine.settings(old), on_table=lambda table, rows: None)
    assert str(told.value).startswith("the move of this memory from ")
    if to_server:
        machine = Machine.of(tmp_path, "desk", on_server)
        (machine.project / ".obra").mkdir()
    there = ["--to", on_server["url"], "--schema", on_server["schema_name"]] if to_server else ["--to", "file"]
    run, finish = Program(machine.project), ["-C", machine.project, "move", *there, "--old-place-lost"]
    with pytest.raises(StorageError, match="--old-place-lost`"):
        machine.open(config=new)
    run(*finish)
    assert "the old place may still be in use: what is recorded there from now on is missing here" in " ".join(
        run.errors.split()
    )
    with machine.open(config=new) as memory:
        assert len(memory.operations()) == 20
        assert memory.record_operation("note", {"text": "One more loaf."}).id == 21
    run(*finish, exit_code=2)
    assert "no move has left a memory there" in " ".join(run.errors.replace("│", " ").split())


def test_a_folder_with_documents_of_the_lost_place_is_told_how_to_use_the_copy(
    laptop: Machine, postgres: PostgresServer
) -> None:
    """Documents from a lost server are refused with the copy of an interrupted move; doing what is said opens it."""
    new = {**SMALL, "storage": {**laptop.config["storage"], "schema_name": postgres.schema()}}
    python(_KILLED, laptop.project, json.dumps(laptop.config), json.dumps(new), status=-9)
    assert reactivate(laptop.project, laptop.settings(new))
    home, aside = laptop.project / ".obra", laptop.project / "aside"
    first, second = (server_name(laptop.settings(each)) for each in (laptop.config, new))
    words = f"in {first}, but .* the one in {second}: .*; to use the second, move everything in {home} but config.yaml"
    with pytest.raises(StorageError, match=words):
        laptop.open(config=new)
    home.rename(aside)
    with laptop.open(config=new) as memory:
        assert len(memory.operations()) == 2
    assert "rye bread on Tuesdays" in laptop.text()


def test_who_records_where_the_memory_was_moved_from_is_told(
    laptop: Machine, desk: Machine, postgres: PostgresServer
) -> None:
    """Recording in a memory that is moved away fails with its new place, and every acknowledged record has moved."""
    schema = postgres.schema()
    other = Machine(laptop.project, {**SMALL, "storage": {**laptop.config["storage"], "schema_name": schema}})

    def moves(memory: OrchestratorContextManager, old: dict[str, Any], new: dict[str, Any]) -> str:
        with ThreadPoolExecutor() as pool:
            moved = pool.submit(laptop.move, old, new)
            with pytest.raises(StorageError) as told:
                recorded.extend(memory.record_operation("note", {"text": "Another loaf."}) for _ in count())
            moved.result()
        with pytest.raises(StorageError, match="this memory was moved from"):
            memory.state.create(WorkKind.EPIC, "Bake bread")
        return str(told.value)

    recorded: list[object] = []
    with desk.open() as there:
        told = moves(there, laptop.config, SMALL)
        assert re.search(r"moved from schema .* to .*obra.db on .*: there, remove storage.url from", told)
    with pytest.raises(StorageError, match=r"If that is lost: `orchestra-mem move --to URL --old-place-lost` uses"):
        desk.open()
    with laptop.open(config=SMALL) as here:
        assert len(here.operations()) == 2 + len(recorded)
        assert f"to schema {schema} of postgresql://" in moves(here, SMALL, other.config)
    with other.open() as here:
        assert len(here.operations()) == 2 + len(recorded)
    with pytest.raises(
        StorageError, match=r"To use .* as it was before: `orchestra-mem move --to file --old-place-lost`"
    ):
        laptop.open(config=SMALL)
    for machine in (desk, Machine(laptop.project, SMALL)):
        assert reactivate(machine.project, machine.settings())
        assert not reactivate(machine.project, machine.settings())
        with machine.open() as memory:
            memory.record_operation("note", {"text": "The oven is cold."})
    postgres.drop(schema)


def test_a_memory_moves_from_schema_to_schema(laptop: Machine, desk: Machine, postgres: PostgresServer) -> None:
    """A memory moves from schema to schema with its folder's documents; other folders' are refused when it is back."""
    desk.open().close()
    schema, before = postgres.schema(), laptop.files()
    other = Machine(laptop.project, {**SMALL, "storage": {**laptop.config["storage"], "schema_name": schema}})
    laptop.move(laptop.config, other.config)
    with other.open() as memory:
        assert len(memory.operations()) == 2
        assert other.files() == before
    laptop.move(other.config, laptop.config)
    was = f"was in {server_name(desk.settings())}, but the settings name the one that is there now: another one"
    with pytest.raises(StorageError, match=re.escape(was)):
        desk.open()
    postgres.drop(schema)


def test_a_memory_keeps_its_name_when_it_moves(tmp_path: Path, on_server: dict[str, Any]) -> None:
    """A move takes the name along, from a file those in its settings, and no other folder's name replaces it."""
    laptop, desk = (Machine.of(tmp_path, name, on_server) for name in ("laptop", "desk"))
    in_file, there = ({**laptop.config, "storage": each} for each in ({"url": ""}, on_server))
    beyond = {**there, "storage": {**on_server, "schema_name": f"{on_server['schema_name']}_b"}}
    bread = {"project": {"id": "8", "name": "Bread"}}
    laptop.open(config={**in_file, **bread}).close()
    laptop.move({**in_file, **bread}, {**there, **bread})
    desk.project = desk.project.rename(desk.project.with_name("oven"))
    assert desk.named(there) == laptop.named(there) == 'project: "Bread (ID: 8)"'
    laptop.move(there, beyond)
    (mill := desk.project.with_name("mill")).mkdir()
    other = Machine(mill, {**beyond, "project": {"name": "Mill"}})
    assert [each.named(other.config) for each in (other, laptop)] == ['project: "Bread (ID: 8)"'] * 2
    laptop.move(beyond, in_file)
    laptop.move({**in_file, "project": {"name": "Rolls"}}, beyond)
    shutil.rmtree(mill / ".obra")
    assert other.named(other.config) == 'project: "Rolls (ID: 8)"'


def test_an_older_copy_does_not_take_the_place_of_a_newer_memory(tmp_path: Path, on_server: dict[str, Any]) -> None:
    """Moving back an older copy from a server is refused and leaves the newer memory complete."""
    machine = Machine.of(tmp_path, "laptop", on_server)
    with machine.open(config=SMALL) as memory:
        work(memory, 12)
    machine.move(SMALL, machine.config)
    with closing(open_database(machine.project / ".obra", machine.settings())) as database:
        database.write("test", "DELETE FROM operations WHERE id = 12")
    with pytest.raises(StorageError, match="already contains another memory"):
        machine.move(machine.config, SMALL)
    with closing(open_database(machine.project / ".obra", machine.settings(SMALL), moving=True)) as database:
        assert database.value("SELECT count(*) FROM operations") == 12


def test_a_redacted_memory_moves_back_and_its_words_are_gone_from_both_places(
    tmp_path: Path, on_server: dict[str, Any]
) -> None:
    """`redact` cleans the file that a move left, names a schema that a move left, and the memory still moves back."""
    machine, hidden = Machine.of(tmp_path, "laptop", on_server), {"redaction": {"patterns": {"w": "Pilar"}}}
    home, run = machine.project / ".obra", Program(machine.project)
    scan: list[str | Path] = ["-C", machine.project, "redact", "scan"]
    apply: list[str | Path] = [*scan[:-1], "apply", "--yes"]
    in_file, there = ({**machine.config, **hidden, "storage": each} for each in ({"url": ""}, on_server))
    with machine.open(config=SMALL) as memory:
        memory.record_operation("message", {"role": "user", "text": "Pilar Ferrer signs every invoice."})
        assert memory.facts()
    machine.move(SMALL, there)
    Machine(machine.project, there).write_settings()
    assert "obra.db, left by a move, operations 1, data: w (1)" in run(*scan, exit_code=1)
    run(*apply)
    assert run(*scan) == "no secrets found\n"
    with_words = [each.name for each in home.rglob("*") if each.is_file() and b"Pilar" in each.read_bytes()]
    assert with_words == ["config.yaml"]
    with machine.open(config=there) as memory:
        memory.record_operation("decision", {"text": "Pilar closes on Sundays."})
    assert machine.move(there, in_file)["operations"] == 2
    Machine(machine.project, in_file).write_settings()
    schema = server_name(machine.settings(there))
    assert run(*scan, exit_code=1) == f"{schema}, left by a move: not-searched (1)\n"
    run(*apply, exit_code=1)
    assert schema in run.errors
    machine.move(in_file, there)  # replaces those rows
    Machine(machine.project, there).write_settings()
    assert run(*scan) == "no secrets found\n"
    machine.move(there, in_file)
    Machine(machine.project, in_file).write_settings()
    run(*apply, "--left-deleted")
    assert run(*scan) == "no secrets found\n"


def test_an_old_place_is_used_again_only_with_its_flag(tmp_path: Path, on_server: dict[str, Any]) -> None:
    """No advice repeats the command that was refused; what a move left is used only with `--old-place-lost`."""
    machine = Machine.of(tmp_path, "laptop", on_server)
    run, in_file = Program(machine.project), Machine(machine.project, {**SMALL, "storage": {"url": ""}})
    back: list[str | Path] = ["-C", machine.project, "move", "--to", "file"]
    with in_file.open() as memory:
        memory.record_operation("note", {"text": "One loaf."})
    machine.move(in_file.config, machine.config)
    with machine.open() as memory:
        memory.record_operation("note", {"text": "Two loaves."})
    with closing(open_database(machine.project / ".obra", in_file.settings(), moving=True)) as left:
        left.refuse_writes("")
        left.write("test", "UPDATE operations SET timestamp = timestamp + 1")
        left.refuse_writes("moved")
    machine.write_settings()
    run(*back, exit_code=4)  # the file has something else, so it is not replaced
    assert "the target already contains another memory: its table" in run.errors
    in_file.write_settings()
    run(*back, exit_code=4)
    told = " ".join(run.errors.split())
    assert "is on a server: set storage.url and storage.schema_name to the values given to `move`. To use " in told
    assert told.endswith("as it was before: `orchestra-mem move --to file --old-place-lost`")
    run(*back, "--old-place-lost")
    assert "One loaf" in run("-C", machine.project, "ops")
    assert "Two loaves" not in run("-C", machine.project, "ops")
    run(*back, "--old-place-lost", exit_code=2)


@pytest.mark.parametrize("sessions", [".obra/sessions", ".obra/memory/sessions"])
def test_the_first_documents_are_shared_all_or_none(tmp_path: Path, on_server: dict[str, Any], sessions: str) -> None:
    """Interrupted sharing of the first documents leaves none missing; session and document folders may nest."""
    laptop, desk = (Machine.of(tmp_path, name, on_server) for name in ("laptop", "desk"))
    for machine in (laptop, desk):
        machine.config["orchestrator"] = {**SMALL["orchestrator"], "session_dir": sessions}
    in_file = {**laptop.config, "storage": {}}
    with laptop.open(config=in_file) as memory:
        work(memory, 30)
        memory.refresh()
    laptop.move(in_file, laptop.config)
    before = laptop.files()
    with pytest.raises(KeyboardInterrupt):
        laptop.open(write_point=killing(["sharing.commit.after"]))
    desk.open().close()
    assert desk.files() == before
    laptop.open().close()
    assert laptop.files() == before


def test_a_shared_log_that_was_moved_to_a_server_is_shared_to_there(
    home: Path, tmp_path: Path, postgres: PostgresServer
) -> None:
    """Once the shared log's own settings name the server that it was moved to, projects share to it and read it."""
    folder, project = home / "shared", Machine.of(tmp_path, "laptop", {})
    on_server = {"storage": {"url": postgres.url, "schema_name": postgres.schema()}}
    with project.open() as memory:
        memory.record_operation("decision", {"text": "We bake rye bread on Tuesdays."})
        memory.record_operation("decision", {"text": "We sell rolls by the dozen."})
        first, second = (f"K{fact.id}" for fact in memory.facts())
        memory.share_decision(first)
        old, new = (load_settings(folder, {}, config) for config in ({}, on_server))
        move_database(folder, old, new, on_table=lambda table, rows: None)
        with pytest.raises(StorageError, match=r"is on a server: set storage\.url"):
            memory.share_decision(second)
        with (folder / ".obra" / "config.yaml").open("a", encoding="utf-8") as file:
            file.write(json.dumps(on_server)[1:-1] + "\n")
        memory.share_decision(second)
        assert len(memory.shared_decisions()) == 2
    with closing(open_database(folder / ".obra", new)) as database:
        assert database.value("SELECT count(*) FROM operations") == 2
