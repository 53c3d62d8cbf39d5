"""Several machines with one memory on a server: each folder has a copy of the documents, and the copies converge.

Many rounds of edits, cuts and kills are in `benchmarks/machines.py`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from errno import ENOSPC
from pathlib import Path
from threading import Event

import pytest
from rich.console import Console

from orchestra_mem import ItemFilter, OrchestratorContextManager, Projects, StorageError, open_memory
from orchestra_mem.adapters.database.postgres import PostgresDatabase
from orchestra_mem.adapters.files.working_copies import CopyHistory
from orchestra_mem.build import load_settings
from orchestra_mem.build.storage import open_database, server_name
from orchestra_mem.catalog_types import ItemStatus
from orchestra_mem.doctor.documents import find_secrets, redact_memory
from orchestra_mem.errors import LockTimeoutError, ServerAwayError
from orchestra_mem.faces.records import conflict_records
from orchestra_mem.faces.views import conflicts_view
from orchestra_mem.stores.shared_files import SharedFiles
from orchestra_mem.types import SharedFile
from tests.memories import SMALL, closed_to_writing, killing, problems_of
from tests.postgres_server import PostgresServer
from tests.processes import python, start
from tests.promises.test_redaction import SECRET, _leaks
from tests.storage.conftest import Machine
from tests.timing import until


def test_what_is_saved_on_one_machine_is_in_the_others_file_within_two_seconds(laptop: Machine, desk: Machine) -> None:
    """A saved edit reaches the other machine's file within 2 s and is a fact on both; a new folder starts complete."""
    with laptop.open() as here, desk.open() as there:
        assert desk.text() == laptop.text()
        laptop.edit("rye bread on Tuesdays", "rye bread on Mondays")
        until(lambda: "on Mondays" in desk.text(), within_s=2.0)
        for memory in (here, there):
            assert "We bake rye bread on Mondays." in [fact.text for fact in memory.facts()]


def test_what_is_saved_while_the_documents_are_held_is_a_fact_afterwards(laptop: Machine) -> None:
    """A query made while the documents are locked waits and includes an edit saved meanwhile."""
    held, saved = Event(), Event()
    with laptop.open() as memory, ThreadPoolExecutor(1) as pool:

        def hold() -> None:
            with memory._parts.store.lock():
                held.set()
                saved.wait()
                time.sleep(0.3)

        pool.submit(hold)
        held.wait()
        laptop.edit("rolls by the dozen", "rolls by the score")
        saved.set()
        assert "We sell rolls by the score." in [fact.text for fact in memory.facts()]


def test_watch_carries_what_is_saved_to_the_other_machine(laptop: Machine, desk: Machine) -> None:
    """Where `watch` runs on two machines of a memory on a server, an edit of one reaches the other's file."""
    desk.open().close()
    for machine in (laptop, desk):
        machine.write_settings()
    commands = [("-m", "orchestra_mem", "-C", machine.project, "watch") for machine in (laptop, desk)]
    with start(*commands[0]) as here, start(*commands[1]) as there:
        try:
            for each in (here, there):
                assert each.stderr is not None
                assert "Ctrl-C ends it" in each.stderr.readline()
            laptop.edit("on Tuesdays", "on Mondays")
            until(lambda: "on Mondays" in desk.text())
        finally:
            here.kill()
            there.kill()


def test_what_two_people_save_at_a_time_stands(laptop: Machine, desk: Machine) -> None:
    """Simultaneous edits keep both people's lines and deletions; for a fact, the later wording holds.

    The earlier wording is in a conflict block below the fact that names both machines and can be accepted.
    """
    with laptop.open() as memory:
        laptop.edit("## Decisions", "## Notes\n\n- flour\n- salt\n- yeast\n\n## Decisions")
        memory.refresh()
    desk.open().close()
    laptop.edit("- flour\n- salt", "- spelt\n- salt\n- honey")
    laptop.edit("rolls by the dozen", "rolls by the score")
    desk.edit("- flour\n- salt\n- yeast", "- wheat\n- yeast\n- water")
    desk.edit("rolls by the dozen", "rolls by the piece")
    laptop.open().close()
    with desk.open() as there:
        text = desk.text()
        notes = text.partition("## Notes")[2].partition("## Decisions")[0].split()
        assert sorted(notes) == sorted("- spelt - wheat - honey - yeast - water".split())
        assert "We sell rolls by the piece." in [fact.text for fact in there.facts()]
        (name, block), *more = there.documents.conflicts()
        assert (name, "score" in block.machine, more) == ("decision_log", True, [])
        assert "the line above is from desk and was kept; laptop has this instead" in text
        ((_, block),) = there.conflicts()
        assert block.sides == ("desk", "laptop")
        with (console := Console(width=200)).capture() as shown:
            console.print(*conflicts_view(conflict_records(there)))
        said = " ".join(shown.get().split())
        found = re.findall(r"(desk|laptop): ### \[[^]]*\] We sell rolls by the (\w+)|yours|the machine's", said)
        assert found == [("desk", "piece"), ("laptop", "score")]
        assert there.resolve_conflict(block.id, accept=True)[1].note == "laptop's version was accepted"
        there.refresh()
    with laptop.open() as here:
        assert "We sell rolls by the score." in [fact.text for fact in here.facts()]
        assert laptop.text() == desk.text()


@pytest.mark.parametrize(("days_ago", "sides"), [(1, ("laptop", "desk")), (9, ("desk", "laptop"))])
def test_of_two_wordings_the_one_saved_later_stands_in_whatever_order_they_arrive(
    laptop: Machine, desk: Machine, days_ago: int, sides: tuple[str, str]
) -> None:
    """What a person saved offline five days ago replaces an older wording, not a newer one; a conflict shows both.

    When the machine itself wrote the document does not count. All other lines of both people stay.
    """
    laptop.open().close()
    desk.open().close()
    words = {"laptop": "rolls by the score", "desk": "rolls by the piece"}
    desk.edit("## Decisions", "## Notes\n\n- written on the train\n\n## Decisions")
    for machine, days in ((desk, 5), (laptop, days_ago)):
        machine.edit("rolls by the dozen", words["desk" if machine is desk else "laptop"])
        saved = time.time() - days * 86_400
        os.utime(machine.log, (saved, saved))
    with laptop.open() as here:
        here.record_operation("decision", {"text": "We bake the almond cake on Sundays."})
        here.refresh()
    with desk.open() as there:
        assert f"We sell {words[sides[0]]}." in [fact.text for fact in there.facts()]
        ((_, block),) = there.conflicts()
        assert (block.sides, words[sides[1]] in block.machine) == (sides, True)
    laptop.open().close()
    assert laptop.text() == desk.text()
    assert all(each in desk.text() for each in ("- written on the train", "almond cake", *words.values()))


def test_a_secret_that_is_taken_out_on_one_machine_leaves_the_others_documents(laptop: Machine, desk: Machine) -> None:
    """A secret removed on one machine leaves the other's documents; each removes it from its record of copies."""
    laptop.edit("## Decisions", f"## Notes\n\nThe token is {SECRET}.\n\n## Decisions")
    for machine in (laptop, desk):
        machine.open().close()
        assert SECRET in machine.text()
    assert redact_memory(laptop.project, laptop.settings()).files > 0
    with laptop.open() as memory:
        assert [entry.call for entry in memory.audit()] == ["redact"]
    desk.open().close()
    assert [name for machine in (laptop, desk) for name, text in machine.files().items() if SECRET in text] == []
    assert {each.place for each in find_secrets(desk.project, desk.settings())} == {"working_copy.db, seen"}
    assert redact_memory(desk.project, desk.settings()).texts == 1
    for machine in (laptop, desk):
        assert _leaks(machine.project) == []
        assert find_secrets(machine.project, machine.settings()) == []
        with closing(CopyHistory(machine.project / ".obra" / "working_copy.db")) as copies:
            assert SECRET not in str(copies.held("memory/decision_log.md"))


def test_what_is_purged_leaves_the_record_of_copies(laptop: Machine) -> None:
    """A purge removes an item also from the contents that the machine's copies have had."""
    with laptop.open() as memory, closing(CopyHistory(laptop.project / ".obra" / "working_copy.db")) as copies:
        memory.catalog.store({"content": "The zanzibar door is open.", "agent": "ada"})
        memory.refresh()
        memory.catalog.delete("M1")
        assert memory.catalog.purge(ItemFilter(statuses=[ItemStatus.DELETED])) == 1
        assert {"zanzibar" in each.text for each in copies.held("memory/catalog/ada.md")} == {False}


def test_an_editor_that_never_saw_what_came_takes_nothing_of_it_out(laptop: Machine, desk: Machine) -> None:
    """An editor that saves an outdated text removes no other machine's lines, and deletions stay deleted."""
    with laptop.open() as here, desk.open() as there:
        opened = desk.log.read_text("utf-8")
        laptop.edit("## Decisions", "## Notes\n\n- from the laptop\n\n## Decisions")
        laptop.edit("rye bread on Tuesdays", "rye bread on Sundays")
        until(lambda: "from the laptop" in desk.text())
        here.refresh()
        there.refresh()
        desk.log.write_text(opened.replace("## Decisions", "## Desk\n\n- from the desk\n\n## Decisions"), "utf-8")
        until(lambda: "from the desk" in laptop.text())
        assert "from the laptop" in laptop.text()
        assert "on Sundays" in laptop.text()
        laptop.edit("- from the desk\n", "")
        until(lambda: "from the desk" not in desk.text())
        there.refresh()
        assert "from the desk" not in laptop.text()


def test_a_context_has_what_another_machine_has_spilled(laptop: Machine, desk: Machine) -> None:
    """A context includes what another machine has just spilled into the session's document."""
    with desk.open() as there, laptop.open() as here:
        there.get_orchestrator_context("x")
        for number in range(12):
            here.record_operation("note", {"text": f"The oven takes {number} minutes more."})
        here.refresh()
        said = there.get_orchestrator_context("x", 2_000).render()
        assert all(f"The oven takes {number} minutes more." in said for number in range(12))


@pytest.mark.parametrize(("names", "is_lost"), [(["desk"], False), (["laptop", "desk"], False), (["desk"], True)])
def test_what_is_saved_in_a_session_that_ends_elsewhere_goes_along(
    laptop: Machine, desk: Machine, names: list[str], is_lost: bool
) -> None:
    """An edit to a session archived elsewhere moves to the archive, or to a version if the record of copies is lost."""
    desk.open().close()
    (live,) = (desk.project / ".obra" / "sessions").glob("session_*.md")
    with laptop.open() as here:
        here.flush_session()
    (archive,) = (laptop.project / ".obra" / "sessions" / "archive").glob("*.md")
    for name, document in zip(reversed(names), (live, archive), strict=False):
        document.write_text(document.read_text("utf-8") + f"\nA remark from the {name}.\n", "utf-8")
    for path in (desk.project / ".obra").glob("working_copy.db*") if is_lost else ():
        path.unlink()
    for machine in (laptop, desk, laptop, desk):
        machine.open().close()
    assert not live.exists()
    assert laptop.files() == desk.files()
    texts = [text for file, text in desk.files().items() if ("/versions/" if is_lost else "/archive/") in file]
    assert all(any(f"A remark from the {name}." in text for text in texts) for name in names)


@pytest.mark.parametrize("end", ["archive.rename.before", "archive.rename.after"])
def test_a_session_is_archived_once_though_its_machine_was_ended_meanwhile(
    laptop: Machine, desk: Machine, end: str
) -> None:
    """A session interrupted while being archived is archived once, and its document disappears everywhere."""
    with suppress(KeyboardInterrupt), laptop.open(write_point=killing([end])) as here:
        here.record_operation("note", {"text": "The oven is warm."})
        here.flush_session()
    for machine in (laptop, desk, laptop):
        machine.open().close()
    assert len([name for name in desk.files() if "/archive/" in name]) == 1
    assert laptop.files() == desk.files()


def test_earlier_texts_are_there_on_every_machine(laptop: Machine, desk: Machine) -> None:
    """History is the same and as private on every machine, and restoring a version on one changes the others."""
    with laptop.open() as here, desk.open() as there:
        laptop.edit("We sell rolls by the dozen", "We sell rolls by weight")
        here.refresh()
        until(lambda: "by weight" in desk.text())

        def kept(memory: OrchestratorContextManager) -> list[int]:
            return [version.sequence for version in memory.documents.history("decision_log")]

        until(lambda: kept(there) == kept(here))
        kept_texts = there.documents.history("decision_log")
        old = next(each for each in kept_texts if "by the dozen" in Path(each.path).read_text())
        there.documents.restore("decision_log", old.sequence)
        until(lambda: "by weight" not in laptop.text())
    versions = desk.log.parent / "versions"
    shutil.rmtree(versions)
    desk.log.chmod(0o600)
    for machine in (laptop, desk):
        machine.open().close()
    assert desk.files() == laptop.files()
    assert {each.stat().st_mode & 0o777 for each in versions.iterdir()} == {0o600}


def test_a_document_that_is_emptied_or_removed_on_one_machine_is_back_soon(laptop: Machine, desk: Machine) -> None:
    """A document emptied or removed on one machine is restored soon, since no one deleted its lines."""
    with laptop.open() as here, desk.open():
        before = desk.text()
        for remove in (lambda: laptop.log.write_bytes(b""), laptop.log.unlink):
            remove()
            until(lambda: laptop.log.exists() and laptop.text() == before)
        here.refresh()
        assert [fact.text for fact in here.facts()] != []


def test_who_is_cut_off_loses_nothing(laptop: Machine, desk: Machine, postgres: PostgresServer) -> None:
    """A machine whose connections are cut loses no edit: both machines end with the same text."""
    with laptop.open() as here, desk.open() as there:
        for number in range(2):
            laptop.edit("## Decisions", f"## Notes {number}\n\n- still here\n\n## Decisions")
            postgres.cut_connections()
            for memory in (here, there, here):
                with suppress(StorageError):
                    memory.refresh()
        until(lambda: all(f"## Notes {number}" in desk.text() for number in range(2)))
        there.refresh()
        until(lambda: laptop.text() == desk.text())


@pytest.mark.parametrize("is_cut", [True, False])
def test_what_is_undone_while_it_is_being_sent_stays_undone(
    laptop: Machine, desk: Machine, monkeypatch: pytest.MonkeyPatch, is_cut: bool
) -> None:
    """An edit undone while being sent stays undone, even if the connection is cut before the server's reply."""
    put = SharedFiles.put
    sent: list[SharedFile] = []

    def put_then_undo(self: SharedFiles, file: SharedFile) -> int:
        revision = put(self, file)
        if not sent and file.machine == "laptop" and "a mistake" in (file.text or "") and "/versions/" not in file.name:
            sent.append(file)
            laptop.log.write_text(before, "utf-8")
            if is_cut:
                raise ServerAwayError("the connection was cut")
        return revision

    laptop.edit("## Decisions", "## Notes\n\n- a note\n\n## Decisions")
    laptop.open().close()
    desk.open().close()
    desk.edit("rolls by the dozen", "rolls by the piece")
    desk.open().close()
    before = laptop.log.read_text("utf-8")
    monkeypatch.setattr(SharedFiles, "put", put_then_undo)
    laptop.edit("- a note\n", "- a note\n- a mistake\n")
    with suppress(ServerAwayError):
        laptop.open().close()
    with laptop.open(), desk.open():
        until(lambda: laptop.files() == desk.files())
    assert len(sent) == 1
    assert ("- a mistake" in laptop.text(), "by the piece" in laptop.text()) == (False, True)


def test_what_is_taken_out_after_a_kill_stays_out(laptop: Machine, desk: Machine) -> None:
    """A line deleted after a kill stays deleted, though the killed process had just written it and others edited."""
    laptop.edit("## Decisions", "## Notes\n\n- flour\n- yeast\n\n## Decisions")
    laptop.open().close()
    desk.open().close()
    laptop.edit("- flour\n", "- flour\n- salt\n")
    laptop.open().close()
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from orchestra_mem import open_memory\n"
        "def kill(point):\n"
        "    if point == 'pull.rename.after' and '- salt' in Path(sys.argv[1]).read_text('utf-8'):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        f"open_memory(Path({str(desk.project)!r}), config={desk.config!r}, write_point=kill)\n"
    )
    python(program, desk.log, status=-signal.SIGKILL)
    desk.edit("- yeast\n", "")
    laptop.edit("rolls by the dozen", "rolls by the piece")
    with laptop.open(), desk.open():
        until(lambda: laptop.files() == desk.files() and "by the piece" in desk.text())
    assert ("- salt" in laptop.text(), "- yeast" in laptop.text()) == (True, False)


def test_a_folder_with_another_memorys_documents_is_refused(
    laptop: Machine, desk: Machine, postgres: PostgresServer, tmp_path: Path
) -> None:
    """A folder with its own memory, or with copies of another schema, is refused; a moved folder is accepted."""
    own = Machine(desk.project, SMALL)
    own.open().close()
    other = {**laptop.config, "storage": {**laptop.config["storage"], "schema_name": postgres.schema()}}
    for config in (desk.config, other):  # the other schema is empty
        with pytest.raises(StorageError, match="has a memory, and schema"):
            desk.open(config=config)
    own.open().close()
    home, first, second = laptop.project / ".obra", *map(server_name, (laptop.settings(), laptop.settings(other)))
    with pytest.raises(StorageError) as told:
        laptop.open(config=other)
    assert str(told.value) == (
        f"{home} has documents of the memory that was in {first}, but the settings name the one in {second}: another "
        "one, or a later copy. To use the first, correct storage.url and storage.schema_name; to use the second, move "
        f"everything in {home} but config.yaml away"
    )
    shutil.copytree(laptop.project, tmp_path / "moved")  # a moved or copied folder is one more working copy
    with open_memory(tmp_path / "moved", config=laptop.config) as memory:
        assert len(memory.operations()) == 2


@pytest.mark.parametrize("has_own_address", [False, True])
def test_a_project_on_a_server_is_searched_by_its_own_address_or_the_environments(
    home: Path, laptop: Machine, monkeypatch: pytest.MonkeyPatch, has_own_address: bool
) -> None:
    """A project's own address and schema win over the environment's, which holds for a project without an address."""
    storage, other = laptop.config["storage"], {"url": "postgresql://mem@127.0.0.1:9/team", "schema_name": "other"}
    own = f"url: '{storage['url']}', " if has_own_address else ""
    (laptop.project / ".obra" / "config.yaml").write_text(f"storage: {{{own}schema_name: {storage['schema_name']}}}")
    for name, value in (other if has_own_address else {"url": storage["url"]}).items():
        monkeypatch.setenv(f"ORCHESTRA_MEM__STORAGE__{name.upper()}", value)
    found = Projects().search("rye bread")
    assert (found.hits[0].project, found.notes) == ("bakery", ())


def test_folders_of_one_memory_are_one_project_with_one_name(home: Path, laptop: Machine, desk: Machine) -> None:
    """Folders with one schema are listed once, with the memory's id and name, which a change in any folder changes."""
    assert [each.named() for each in (desk, laptop)] == ["project: bakery"] * 2
    (found,) = Projects().list()
    assert (found.name, found.note, {found.path, *found.copies}) == ("bakery", "", {laptop.project, desk.project})
    assert [Projects().info(each) for each in (laptop.project, desk.project, "bakery", found.id)] == [found] * 4
    changed = [desk.named(id="8", name="Bread"), laptop.named(), desk.named(id="8", name="Bread")]
    assert changed == ['project: "Bread (ID: 8)"'] * 3
    assert [(each.id, each.name) for each in Projects().list()] == [("8", "Bread")]
    Projects().remove("Bread")
    assert Projects().list() == []


def test_a_name_in_the_settings_wins_over_that_of_a_folder(laptop: Machine, desk: Machine) -> None:
    """A name in any folder's settings replaces the name of the first folder, but not a name from settings."""
    given = [laptop.named(), desk.named(name="Bread"), laptop.named(name="Rolls"), desk.named()]
    assert given == ["project: bakery", "project: Bread", "project: Rolls", "project: Rolls"]
    other = Machine(desk.project.parent / "oven", desk.config)
    other.project.mkdir()
    assert other.named(name="Oven") == "project: Rolls"


def test_a_folder_that_may_only_be_read_has_the_name_on_the_server(
    home: Path, laptop: Machine, desk: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read-only folder of a memory on a server opens whatever its settings name; nothing is written to it."""
    laptop.named(name="Bread")
    folder = desk.project / ".obra"
    folder.mkdir()
    closed_to_writing(folder, monkeypatch)
    with desk.open(config={**desk.config, "project": {"id": "8", "name": "Desk"}}) as memory:
        assert len(memory.operations()) == 2
        assert memory.documents.text("decision_log").count("rye bread on Tuesdays") == 1
    listed = [json.loads(file.read_text("utf-8")) for file in (home / "projects").iterdir()]
    assert [(each["id"] == "8", each["name"]) for each in listed] == [(False, "Bread")] * 2
    assert [*folder.iterdir()] == []


def test_a_lost_memory_of_copies_keeps_what_differs_as_a_version(laptop: Machine) -> None:
    """If the record of copies is lost, the server's text wins and the local one is kept as a version."""
    laptop.edit("We sell rolls by the dozen", "We give rolls away")
    for path in (laptop.project / ".obra").glob("working_copy.db*"):
        path.unlink()
    record = laptop.project / ".obra" / "working_copy.db"
    record.write_text("No database at all." * 100)
    with closing(CopyHistory(record)) as copies:
        with pytest.raises(StorageError, match="delete it: documents that differ from the server's become versions"):
            copies.names()
        record.unlink()
        assert copies.names() == set()
    with laptop.open() as memory:
        assert "by the dozen" in laptop.text()
        assert any(
            "We give rolls away" in Path(version.path).read_text("utf-8")
            for version in memory.documents.history("decision_log")
        )


def test_a_document_that_could_not_be_written_here_is_taken_from_the_server_later(
    laptop: Machine, desk: Machine
) -> None:
    """A document that did not fit on the disk is fetched from the server later, and later edits are shared."""
    desk.open().close()
    full = False

    def disk(point: str) -> None:
        if full and point == "document.rename.before":
            raise OSError(ENOSPC, "No space left on device")

    with laptop.open(write_point=disk) as here:
        here.record_operation("decision", {"text": "We close at noon."})
        full = True
        here.refresh()
    with laptop.open():
        assert "at noon" in laptop.text()
        laptop.edit("## Decisions", "## Notes\n\n- saved after it\n\n## Decisions")
    with laptop.open(), desk.open():
        assert "saved after it" in desk.text()
        assert desk.text() == laptop.text()


def test_a_document_that_may_not_be_written_here_is_named_and_brought_up_to_date_later(
    laptop: Machine, desk: Machine
) -> None:
    """A read-only document is reported and left alone, and is updated once it may be written."""
    desk.open().close()
    desk.log.chmod(0o444)
    with laptop.open() as here, desk.open() as there:
        laptop.edit("on Tuesdays", "on Mondays")
        here.refresh()
        assert any("on Mondays" in fact.text for fact in there.facts())
        there.record_operation("decision", {"text": "We close at noon."})
        there.refresh()
        assert any("read-only" in str(problem) for problem in problems_of(there))
        assert "on Tuesdays" in desk.text()
        desk.log.chmod(0o644)
        there.refresh()
        until(lambda: "on Mondays" in desk.text() and "at noon" in laptop.text())


def test_bytes_that_are_no_text_stay_as_they_are_on_every_machine(laptop: Machine, desk: Machine) -> None:
    """Invalid UTF-8 in a document stays as it is on every machine and is merged with others' lines."""
    with laptop.open() as here, desk.open():
        saved = laptop.log.read_bytes().replace(b"## Decisions", b"## Notes\n\n- cr\xe8me\n\n## Decisions")
        laptop.log.write_bytes(saved)
        until(lambda: b"cr\xe8me" in desk.log.read_bytes())
        desk.log.write_bytes(desk.log.read_bytes().replace(b"on Tuesdays", b"on Mondays"))
        until(lambda: b"on Mondays" in laptop.log.read_bytes())
        here.refresh()
        assert b"cr\xe8me" in laptop.log.read_bytes()


def test_what_is_no_version_among_the_versions_keeps_nobody_from_them(laptop: Machine, desk: Machine) -> None:
    """A folder and an undecodable file name among the versions do not stop sharing."""
    versions = laptop.log.parent / "versions"
    (versions / "folder.md").mkdir(parents=True)
    Path(os.fsdecode(os.fsencode(versions) + b"/caf\xe9.md")).write_text("What is that?", "utf-8")
    laptop.edit("on Tuesdays", "on Mondays")
    with laptop.open(), desk.open():
        assert "on Mondays" in desk.text()


def test_a_name_on_the_server_that_leads_out_of_the_folders_is_skipped(laptop: Machine, desk: Machine) -> None:
    """A server file name that leads out of the folders is skipped, and later edits are still shared."""
    with closing(open_database(laptop.project / ".obra", laptop.settings())) as database:
        for name in ("memory/../../outside.md", f"memory/{desk.project}/outside.md", "elsewhere/a.md"):
            SharedFiles(database).put(SharedFile(name=name, revision=0, text="Hello."))
    for old, new in (("on Tuesdays", "on Mondays"), ("on Mondays", "on Fridays")):
        laptop.edit(old, new)
        for machine in (laptop, desk):
            machine.open().close()
        assert new in desk.text()
    assert not any("outside" in str(path) for path in desk.project.rglob("*"))


def test_a_link_among_the_documents_stays_one(laptop: Machine, desk: Machine) -> None:
    """A linked document stays a link; its target is read, shared and written from any machine."""
    file = laptop.log.rename(laptop.project / ".obra" / "log.md")
    laptop.log.symlink_to(file)
    laptop.edit("## Decisions", "## Notes\n\n- by hand\n\n## Decisions")
    with laptop.open() as here, desk.open() as there:
        desk.edit("rye bread on Tuesdays", "rye bread on Mondays")
        until(lambda: "on Mondays" in laptop.text())
        here.record_operation("decision", {"text": "We close at noon."})
        here.refresh()
        until(lambda: "at noon" in desk.text())
        there.refresh()
    assert laptop.log.is_symlink()
    assert "by hand" in desk.text()


def test_who_holds_the_documents_for_too_long_is_named_and_takes_them_again_after_a_cut(
    laptop: Machine, postgres: PostgresServer
) -> None:
    """A long-held document lock is reported with its holder, and after a server restart is available again soon."""
    home, config = laptop.project / ".obra", load_settings(laptop.project, {}, laptop.config)
    with closing(open_database(home, config)) as one, closing(open_database(home, config, wait_s=1.5)) as other:
        assert isinstance(one, PostgresDatabase)
        assert isinstance(other, PostgresDatabase)
        who = f"process {os.getpid()} on {socket.gethostname()} has locked the documents for 1.5 s"
        with one.exclusive("documents"):
            with pytest.raises(LockTimeoutError, match="has locked the documents; end it"):
                other.exclusive("documents", timeout_s=0).__enter__()
            with pytest.raises(LockTimeoutError, match=who):
                other.exclusive("documents").__enter__()
            postgres.cut_connections()
            with pytest.raises(LockTimeoutError, match=who):
                other.exclusive("documents").__enter__()
            postgres.kill()
            postgres.start()
        with one.exclusive("documents", timeout_s=0):  # although its lease has not ended
            pass


_STOPS = """
import json, os, signal, sys
from pathlib import Path
from orchestra_mem import StorageError
from orchestra_mem.build import load_settings
from orchestra_mem.build.storage import open_database
project = Path(sys.argv[1])
database = open_database(project / ".obra", load_settings(project, {}, json.loads(sys.argv[2])), wait_s=1.5)
try:
    with database.exclusive("documents"):
        print("held", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
except StorageError as error:
    print(error)
database.close()
"""


def test_a_process_that_stopped_while_it_held_the_documents_loses_them_and_is_told(laptop: Machine) -> None:
    """A stopped process keeps the documents for the time of a lease; when it goes on, it raises an error."""
    stopped = start("-c", _STOPS, laptop.project, json.dumps(laptop.config))
    try:
        assert stopped.stdout is not None
        assert stopped.stdout.readline() == "held\n"
        with closing(open_database(laptop.project / ".obra", laptop.settings(), wait_s=12)) as other:
            assert isinstance(other, PostgresDatabase)
            with other.exclusive("documents"):  # after 8 s, the length of a lease
                os.kill(stopped.pid, signal.SIGCONT)
                said, failed = stopped.communicate(timeout=30)
        assert re.match(r"this process held the documents for \d+ s and lost them, .*another process may have", said)
        assert failed == ""
    finally:
        stopped.kill()
        stopped.communicate()


def test_a_process_that_works_for_long_keeps_the_documents(laptop: Machine, postgres: PostgresServer) -> None:
    """A holder that works for longer than a lease lasts keeps the documents, even if its connections were cut."""
    opened = [closing(open_database(laptop.project / ".obra", laptop.settings(), wait_s=wait_s)) for wait_s in (1, 10)]
    with opened[0] as one, opened[1] as other:
        assert isinstance(one, PostgresDatabase)
        assert isinstance(other, PostgresDatabase)
        with one.exclusive("documents"):
            with pytest.raises(LockTimeoutError, match=f"process {os.getpid()} on"):
                other.exclusive("documents").__enter__()
            postgres.cut_connections()
            with pytest.raises(LockTimeoutError, match=f"process {os.getpid()} on"):
                other.exclusive("documents", timeout_s=2).__enter__()
        with other.exclusive("documents"):
            pass
