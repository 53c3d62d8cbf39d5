"""Backups of both storages, made while programs record, are complete and consistent, and never change afterwards."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestra_mem import Projects, open_memory
from orchestra_mem.adapters.config_files import with_values
from orchestra_mem.adapters.database import Database
from orchestra_mem.adapters.home import HOME_VARIABLE
from orchestra_mem.build import load_settings
from orchestra_mem.doctor.backups import check_backup, make_backup, restore_backup
from orchestra_mem.doctor.memory import Health, diagnose
from orchestra_mem.doctor.moves import move_database
from orchestra_mem.errors import StorageError
from orchestra_mem.faces.http.tokens import load_tokens
from orchestra_mem.stores import EventLog
from orchestra_mem.tiers.authorship import Writer
from tests.faces.conftest import Program
from tests.memories import SMALL, problems_of
from tests.processes import bound, start
from tests.timing import until

WORKER = """
import sys, time
from pathlib import Path
from orchestra_mem import open_memory
project, name = sys.argv[1:]
with open_memory(project) as memory:
    tried = 0
    while not (Path(project) / "stop").exists():
        tried += 1
        kind = "decision" if tried % 9 == 3 else "note"
        operation = memory.record_operation(kind, {"text": f"We keep batch {tried} of {name} in table t{tried}."})
        print(operation.id, name, tried, flush=True)
        time.sleep(0.02)
"""


def program(*arguments: str | Path, exit_code: int = 0) -> str:
    """Run a command and return its output: standard output, or the error message if it fails."""
    run = Program(Path())
    said = run(*arguments, exit_code=exit_code)
    return run.errors.removeprefix("orchestra-mem: ").removesuffix("\n") if exit_code else said


def apart(*arguments: object, exit_code: int = 0, **options: Any) -> str:
    """Run a command in a separate process; return its output as `program` does."""
    said, words = map(str, (done := start("-m", "orchestra_mem", *arguments, **options)).communicate(timeout=120))
    assert done.returncode == exit_code, (arguments, done.returncode, said, words)
    return words.removeprefix("orchestra-mem: ").removesuffix("\n") if exit_code else said


def killed(number: int, *arguments: object) -> None:
    """Run a command in a separate process that sends itself a signal (see `KILLED`) and ends by it."""
    said = (done := start("-c", KILLED, int(number), *arguments)).communicate(timeout=120)
    assert done.returncode in (-number, 130), said


@pytest.fixture
def project(tmp_path: Path, storage: dict[str, Any]) -> Path:
    """A project's folder whose settings name the storage, each in turn, and a small window."""
    folder = tmp_path / "bakery"
    (folder / ".obra").mkdir(parents=True)
    (folder / ".obra" / "config.yaml").write_text(
        yaml.safe_dump({**SMALL, **({"storage": storage} if storage else {})})
    )
    return folder


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A project with one decision, stored in SQLite."""
    folder = tmp_path / "bakery"
    folder.mkdir()
    with open_memory(folder) as memory:
        memory.record_operation("decision", {"text": "We decided to bake rye bread on Tuesdays."})
        memory.refresh()
    return folder


@contextmanager
def recording(project: Path, count: int) -> Iterator[list[tuple[int, str]]]:
    """Let processes record meanwhile; yield a growing list of the acknowledged operations, number and text."""
    told: list[tuple[int, str]] = []

    def hear(worker: subprocess.Popen[str]) -> None:
        assert worker.stdout is not None
        for line in worker.stdout:
            number, name, tried = line.split()
            told.append((int(number), f"We keep batch {tried} of {name} in table t{tried}."))

    workers = [start("-c", WORKER, project, f"w{number}") for number in range(count)]
    threads = [threading.Thread(target=hear, args=[worker]) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        until(lambda: len({text.split()[5] for _, text in [*told]}) == count, 60)
        yield told
    finally:
        (project / "stop").touch()
        for worker, thread in zip(workers, threads, strict=True):
            thread.join(60)
            with worker:  # closes its pipes
                assert worker.stderr is not None
                said = worker.stderr.read()
            assert worker.returncode == 0, said


def in_folder(project: Path) -> dict[Path, bytes]:
    """Read every file below a folder."""
    return {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}


@pytest.mark.timeout(300)
def test_backups_made_while_four_processes_record_hold_all_that_was_acknowledged(
    tmp_path: Path, project: Path, storage: dict[str, Any]
) -> None:
    """Each backup is free of faults, has every person's edit saved before it, and attributes no other line to one."""
    log = project / ".obra" / "memory" / "decision_log.md"
    backups: list[tuple[Path, dict[int, str]]] = []
    with recording(project, 4) as told:
        until(log.exists)
        for number in range(2):
            with log.open("a", encoding="utf-8") as file:
                file.write(f"\n### Person's decision {number}\n\nWe count loaves by hand, rule {number}.\n")
            acknowledged, target = dict(told), tmp_path / f"backup{number}"
            made = json.loads(program("-C", project, "backup", target, "--json"))
            assert made["left_out"] == (["storage.url"] if storage else [])
            backups.append((target, acknowledged))
            time.sleep(0.3)
    for number, (target, acknowledged) in enumerate(backups):
        before = in_folder(target)
        assert [each for each in diagnose(target) if each.health is Health.FAULT] == []
        assert in_folder(target) == before
        again = tmp_path / f"again{number}" / project.name
        again.mkdir(parents=True)
        restore_backup(target, again, replace=False)
        with open_memory(again) as memory:
            found = {each.id: each.data["text"] for each in memory.operations()}  # type: ignore[call-overload, index]
            assert acknowledged.items() <= found.items()
            assert problems_of(memory) == []
            assert memory.conflicts() == []
            by_person = {
                (name, line.text)
                for name in ("project_state", "work_plan", "decision_log", "session")
                for line in memory.blame(name)
                if line.origin.writer is Writer.PERSON and line.text.strip()
            }
            assert {name for name, _ in by_person} == {"decision_log"}
            rules = {f"We count loaves by hand, rule {rule}." for rule in range(number + 1)}
            assert rules <= {text for _, text in by_person}
    if storage:
        again = tmp_path / "again1" / project.name
        with open_memory(again) as memory:
            recorded = memory.operations()
        server = {"storage": {**storage, "schema_name": f"{storage['schema_name']}_again"}}
        settings = load_settings(again, {}), load_settings(again, {}, server)
        moved = move_database(again, *settings, on_table=lambda table, rows: None)
        assert moved.rows > len(recorded)
        with open_memory(again, config=server) as memory:
            assert memory.operations() == recorded


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("storage", "number"),
    [("sqlite", signal.SIGKILL), ("sqlite", signal.SIGINT), ("postgres", signal.SIGKILL)],
    indirect=["storage"],
)
def test_a_backup_that_is_killed_leaves_none(tmp_path: Path, project: Path, number: int) -> None:
    """A backup that is killed at any moment is complete or absent, recording goes on, and a later backup succeeds."""
    ended = 0
    with recording(project, 1) as told:
        until(lambda: len(told) > 20)
        for attempt in range(12):
            if ended >= 2 and attempt >= 3:
                break
            target = tmp_path / f"backup{attempt}"
            with start("-m", "orchestra_mem", "-C", project, "backup", target) as running:
                until(lambda: [*tmp_path.glob("*.unfinished-*")] or running.poll() is not None)
                # A fast machine may have finished by the later moments; further attempts send the signal at once.
                time.sleep(0.02 * attempt if attempt < 3 else 0)
                running.send_signal(number)
                said = running.communicate()
            leftovers = [*tmp_path.glob(f"{target.name}.unfinished-*")]
            if target.exists():
                check_backup(target)
            else:
                ended += 1
                if number == signal.SIGINT:
                    # Python itself ends by the signal if that arrives while a module is imported.
                    assert running.returncode in (130, -signal.SIGINT), said
            for leftover in leftovers:
                assert number == signal.SIGKILL
                # A backup that lacked only its final name may be complete; no other passes the check.
                with suppress(StorageError):
                    assert len(check_backup(leftover).files) > 5
                leftover.rename(tmp_path / f"seen-{attempt}")
        before = len(told)
        until(lambda: len(told) > before)
        make_backup(project, load_settings(project, {}), tmp_path / "last", on_table=lambda table, rows: None)
        check_backup(tmp_path / "last")
    assert ended >= 2


def test_a_backup_is_read_and_never_changes(tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup can be searched, refuses to record and says why, is not listed as a project, and never changes."""
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    target = tmp_path / "backup"
    program("-C", kept, "backup", target)
    before = in_folder(target)
    assert "rye bread" in program("-C", target, "search", "bread")
    assert "rye bread" in program("-C", target, "context")
    words = program("-C", target, "record", "note", "--text", "x", exit_code=4).splitlines()
    home = target / ".obra"
    assert words == [
        f"the memory can be read, but nothing can be recorded: {home} is a backup and is read-only; "
        "`orchestra-mem restore-backup` restores a memory from it",
        f"orchestra-mem: record: {home / 'obra.db'}: this memory is read-only; `orchestra-mem status` shows why",
    ]
    assert in_folder(target) == before
    assert [each.path for each in Projects().list()] == []


def test_a_restore_moves_aside_what_was_there(tmp_path: Path, kept: Path) -> None:
    """A restore replaces a memory only with `--replace` and if no program has it open; the old one stays usable."""
    target = tmp_path / "backup"
    program("-C", kept, "backup", target)
    with open_memory(kept) as memory:
        memory.record_operation("note", {"text": "Later."})
        told = program("-C", kept, "restore-backup", target, exit_code=4)
        assert told == f"{kept / '.obra'} already exists; with --replace it is moved aside first"
        told = apart("-C", kept, "restore-backup", target, "--replace", exit_code=4)
        assert told == f"another program has the memory in {kept / '.obra'} open: end it, then restore again"
        assert len(memory.operations()) == 2
    assert [path.name for path in kept.iterdir()] == [".obra"]
    done = json.loads(program("-C", kept, "restore-backup", target, "--replace", "--json"))
    with open_memory(kept) as memory:
        assert len(memory.operations()) == 1
    Path(done["moved_aside"]).rename(tmp_path / ".obra")
    with open_memory(tmp_path) as memory:
        assert len(memory.operations()) == 2
    assert [path.name for path in kept.iterdir()] == [".obra"]


def test_clients_of_a_restored_memory_keep_their_tokens(tmp_path: Path, kept: Path) -> None:
    """A backup holds no access token, and restoring it over a memory leaves that memory's token as it was."""
    home, target = kept / ".obra", tmp_path / "backup"
    tokens = load_tokens(home, {})
    program("-C", kept, "backup", target)
    assert not (target / ".obra/server").exists()
    program("-C", kept, "restore-backup", target, "--replace")
    assert load_tokens(home, {}) == tokens


def test_who_may_look_into_a_memory_is_the_same_when_it_is_back(tmp_path: Path, kept: Path) -> None:
    """The permissions of the memory's folders are the same in the backup and after the restore."""
    home, target = kept / ".obra", tmp_path / "backup"
    home.chmod(0o700)
    (home / "memory").chmod(0o750)
    program("-C", kept, "backup", target)
    program("-C", kept, "restore-backup", target, "--replace")
    for each in (target / ".obra", home):
        assert [path.stat().st_mode & 0o777 for path in (each, each / "memory")] == [0o700, 0o750]


def test_a_backup_that_finds_another_at_its_end_leaves_that_alone(tmp_path: Path, kept: Path) -> None:
    """A backup whose target folder appears meanwhile fails with a message and leaves that folder untouched."""
    target = tmp_path / "backup"
    settings, other = load_settings(kept, {}), target / "other"
    with pytest.raises(StorageError, match=f"writing {target}: Directory not empty"):
        make_backup(kept, settings, target, on_table=lambda table, rows: other.mkdir(parents=True, exist_ok=True))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup", "bakery"]


# The program; it sends itself a signal at the nth audit event of a given kind that concerns the unfinished folder.
KILLED = """
import os, runpy, sys
number, what, left = int(sys.argv.pop(1)), sys.argv.pop(1), int(sys.argv.pop(1))
def strike(event, arguments):
    global left
    if event == what and ".unfinished-" in str(arguments):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), number)
sys.addaudithook(strike)
runpy.run_module("orchestra_mem", run_name="__main__")
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_restore_that_is_killed_leaves_a_whole_memory(tmp_path: Path, kept: Path, number: int) -> None:
    """A restore that is killed leaves either the old memory or the restored one in place, and can be repeated."""
    target = tmp_path / "backup"
    program("-C", kept, "backup", target)
    with open_memory(kept) as memory:
        memory.record_operation("note", {"text": "Later."})
    for place in (("os.mkdir", 1), ("open", 1), ("open", 9)):
        killed(number, *place, "-C", kept, "restore-backup", target, "--replace")
        with open_memory(kept) as memory:
            assert len(memory.operations()) == 2
        assert number == signal.SIGKILL or not [*kept.glob("*.unfinished-*")]
    killed(number, "os.rename", 1, "-C", kept, "restore-backup", target, "--replace")  # the folders are swapped already
    with open_memory(kept) as memory:
        assert len(memory.operations()) == 1
    last = []
    for file in kept.glob(".obra.*/obra.db"):
        # An unfinished copy may be truncated.
        with suppress(StorageError), closing(Database(file, read_only=True)) as database:
            last.append(EventLog(database).last_operation())
    assert 2 in last


def test_what_cannot_be_backed_up_or_restored_is_told_in_a_sentence(tmp_path: Path, kept: Path) -> None:
    """A backup or restore that is impossible is refused in one sentence, and no file changes."""
    target = tmp_path / "backup"
    mark, log = target / ".obra" / "backup.json", target / ".obra" / "memory" / "decision_log.md"
    program("-C", kept, "backup", target)
    empty = tmp_path / "empty"
    empty.mkdir()
    before = in_folder(tmp_path)
    within, there = kept / ".obra" / "x", "and a backup never replaces anything: name a new folder"
    for words, arguments in {
        f"{target} already exists, {there}, for example {target / 'bakery'}": [target],
        f"{log} already exists, {there}": [log],
        f"the folder {tmp_path / 'no'} for the backup does not exist": [tmp_path / "no" / "backup"],
        f"{within} is inside the memory itself: name a folder elsewhere": [within],
    }.items():
        assert program("-C", kept, "backup", *arguments, exit_code=4) == words
    for command in (["backup", tmp_path / "other"], ["move", "--to", "postgresql:///x"], ["redact", "apply", "--yes"]):
        told = program("-C", target, *command, exit_code=4)
        assert told.startswith(f"{target / '.obra'} is a backup and is read-only")

    def restored(folder: Path) -> str:
        return program("-C", empty, "restore-backup", folder, exit_code=4)

    assert restored(tmp_path / "no") == f"{tmp_path / 'no'} is not a backup: the folder does not exist"
    assert restored(kept) == f"{kept} is not a backup: it has no .obra/backup.json"
    assert "/backup.json: File name too long" in restored(tmp_path / ("x" * 300))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORCHESTRA_MEM__STORAGE__URL", "postgresql:///x")
        leads = (
            "storage.url (environment variable ORCHESTRA_MEM__STORAGE__URL) names a server, but a backup is restored"
        )
        assert restored(target).startswith(leads)
    assert in_folder(tmp_path) == before
    told = program("-C", target, "restore-backup", target, "--replace", exit_code=4)
    assert told == f"{target / '.obra'} is itself a backup; name the project to restore into with -C"

    said = json.loads(mark.read_text())
    mark.write_text(json.dumps({**said, "schema": 99, "program": "9.0"}))
    assert restored(target) == f"{target} was made by a newer orchestra-mem, 9.0: install that version"
    mark.write_text(json.dumps({**said, "files": {"../../bakery/.obra/obra.db": ""}}))
    assert restored(target) == f"{mark} is damaged: it names files outside the backup"
    for broken in ("{", "[]", '{"schema": 1}'):
        mark.write_text(broken)
        assert restored(target) == f"{mark} is damaged: it does not have the form that `orchestra-mem backup` writes"
    mark.write_text(json.dumps(said))
    log.write_text("Less.")
    (target / ".obra" / "memory" / "work_plan.md").unlink()
    wrong = "memory/decision_log.md, memory/work_plan.md"
    assert restored(target) == (
        f"{target / '.obra'} was damaged or changed since it was made: {wrong}. Use another backup; if there is none, "
        "copy this .obra into a project by hand, and delete backup.json there to use what is left"
    )
    (fault,) = [each for each in diagnose(target) if each.part == "backup"]
    assert (fault.health, wrong in fault.words) == (Health.FAULT, True)
    assert [*empty.iterdir()] == []


@pytest.mark.parametrize("most", [1_000, 100_000])
def test_a_full_disk_leaves_no_backup(tmp_path: Path, kept: Path, most: int) -> None:
    """If a document or the database does not fit, the backup fails, asks for space and leaves nothing behind."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    told = apart("-C", kept, "backup", tmp_path / "backup", exit_code=4, preexec_fn=limit)
    assert "free some space" in told
    assert [path.name for path in tmp_path.iterdir()] == ["bakery"]


def test_a_memory_that_may_only_be_read_is_backed_up(tmp_path: Path, kept: Path) -> None:
    """A user without write permission can back up a read-only memory, and can record in the restored copy."""
    home, again = kept / ".obra", tmp_path / "again"
    again.mkdir()
    for path in (*home.rglob("*"), home):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = in_folder(kept)
    try:
        apart("-C", kept, "backup", tmp_path / "backup", preexec_fn=bound)
    finally:
        for path in (home, *home.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert in_folder(kept) == before
    apart("-C", again, "restore-backup", tmp_path / "backup", preexec_fn=bound)
    apart("-C", again, "record", "note", "--text", "Later.", preexec_fn=bound)
    assert [each["id"] for each in json.loads(program("-C", again, "ops", "--json"))] == [1, 2]


def test_what_may_not_be_read_is_told_and_never_left_out(tmp_path: Path, kept: Path) -> None:
    """A folder of the memory that the user may not read fails the backup with its path; nothing is left behind."""
    versions = kept / ".obra" / "memory" / "versions"
    versions.mkdir(mode=0o300, exist_ok=True)
    versions.chmod(0o300)
    told = apart("-C", kept, "backup", tmp_path / "backup", exit_code=4, preexec_fn=bound)
    assert told == f"reading {versions}: Permission denied; give this user the right to read there"
    assert [path.name for path in tmp_path.iterdir()] == ["bakery"]


def test_an_index_that_may_not_be_read_stops_no_command(tmp_path: Path, kept: Path) -> None:
    """A search index that only another user may read stops no search, status or backup; redacting must delete it."""
    program("-C", kept, "search", "rye")
    index = kept / ".obra" / "index"
    index.chmod(0)
    assert "rye" in apart("-C", kept, "search", "rye", preexec_fn=bound)
    assert "no problems" in apart("-C", kept, "status", preexec_fn=bound)
    apart("-C", kept, "check", exit_code=1, preexec_fn=bound)
    apart("-C", kept, "backup", tmp_path / "backup", preexec_fn=bound)
    told = apart("-C", kept, "redact", "apply", "--yes", exit_code=4, preexec_fn=bound)
    assert told == f"{index} cannot be deleted and may contain secrets: delete it, then repeat"


def test_secrets_and_what_leads_elsewhere_are_left_out(tmp_path: Path) -> None:
    """Secrets and paths are left out of the settings, comments are kept; documents outside `.obra` are included."""
    folder, target, again = tmp_path / "bakery", tmp_path / "backup", tmp_path / "again"
    (folder / ".obra" / "server").mkdir(parents=True)
    again.mkdir()
    (folder / ".obra" / "server" / "token").write_text("a key")
    written = (
        "# Ours.\norchestrator:\n  memory_dir: 'docs' # as we like it\nsearch.api_key: &key |-\n  sk-1\n"
        "llm: {api_key: *key, model: ö}\n# The end.\n"
    )
    (folder / ".obra" / "config.yaml").write_text(written, encoding="utf-8")
    with open_memory(folder) as memory:
        memory.record_operation("decision", {"text": "We bake rye bread."})
        memory.refresh()
        log = memory.documents.path("decision_log")
    log.write_text(log.read_text() + "\nBy hand.\n")
    (folder / "docs" / "notes.md").write_text("Mine.")
    told = json.loads(program("-C", folder, "backup", target, "--json"))
    assert told["left_out"] == ["orchestrator.memory_dir", "search.api_key", "llm.api_key"]
    program("-C", again, "restore-backup", target)
    for each in (target, again):
        assert (each / ".obra" / "config.yaml").read_text(encoding="utf-8") == (
            '# Ours.\norchestrator:\n  memory_dir: ".obra/memory" # as we like it\nsearch.api_key: &key ""\n'
            "llm: {api_key: *key, model: ö}\n# The end.\n"
        )
        assert not (each / ".obra" / "server").exists()
    with open_memory(again) as memory:
        found = memory.documents.path("decision_log")
        assert found == again / ".obra" / "memory" / "decision_log.md"
        assert "By hand." in found.read_text()
    assert (again / ".obra" / "memory" / "notes.md").read_text() == "Mine."


@pytest.mark.parametrize(("name", "folder"), [("MEMORY_DIR", "memory"), ("SESSION_DIR", "sessions")])
def test_a_restore_that_no_command_would_find_is_refused(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch, name: str, folder: str
) -> None:
    """A restore is refused if a variable puts documents elsewhere, and allowed if it names the restored place."""
    target, again = tmp_path / "backup", tmp_path / "again"
    again.mkdir()
    program("-C", kept, "backup", target)
    variable = f"ORCHESTRA_MEM__ORCHESTRATOR__{name}"
    monkeypatch.setenv(variable, "docs")
    assert program("-C", again, "restore-backup", target, exit_code=4) == (
        f"orchestrator.{name.lower()} (environment variable {variable}) puts documents into {again / 'docs'}, but a "
        f"backup is restored into {again / '.obra' / folder}: "
        "unset it, restore, then move the documents and set it again"
    )
    assert [*again.iterdir()] == []
    monkeypatch.setenv(variable, f".obra/{folder}")
    program("-C", again, "restore-backup", target)


@pytest.mark.parametrize("text", ["", "# nothing\n", "a: 1\n", "storage:\n", "storage: {url: ''}\n", "storage.url: \n"])
def test_settings_without_a_secret_stay_byte_for_byte(text: str) -> None:
    """Settings without a secret are not changed, and no key is reported."""
    assert with_values(text, {"storage.url": ""}) == (text, [])
