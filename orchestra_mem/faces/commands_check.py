"""Maintenance commands: settings, faults, secrets, backups, moves, the list of projects."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import BadParameter

from orchestra_mem.errors import ConfigError
from orchestra_mem.faces.command import (
    CONFIGURATION,
    CommandResult,
    Invocation,
    add_group,
    argument,
    command,
    option,
    views,
)
from orchestra_mem.faces.records import counted

if TYPE_CHECKING:
    from orchestra_mem.home import ListedProject, Projects

config = add_group("config", "Look after", help="Show and check the settings.")


@command(of=config)
def show(
    run: Invocation,
    defaults: Annotated[
        bool, option("--defaults", "Print instead every key with its default, unit, range and reason, as YAML.")
    ] = False,
) -> CommandResult:
    """Print every setting with its value, and where the value comes from.

    Example: orchestra-mem config show
    """
    from orchestra_mem.build import default_config_text
    from orchestra_mem.settings import Settings

    if defaults and not run.as_json:
        return CommandResult(None, default_config_text())
    settings = Settings() if defaults else run.settings
    record = {key: {"value": value, "origin": settings.origin_of(key)} for key, value in settings.flat().items()}
    return CommandResult(record, lambda: views.settings_view(settings))


@command(of=config)
def check(run: Invocation) -> CommandResult:
    """Check the settings: files, environment, and whether they fit together. Exits with 3 if something is wrong.

    Example: orchestra-mem config check
    """
    from orchestra_mem.build import CONFIG_PATH

    try:
        _ = run.settings
    except ConfigError as error:
        if not run.as_json:
            raise
        return CommandResult({"faults": [*error.faults]}, "", failed=True, exit_code=CONFIGURATION)
    file = run.project / CONFIG_PATH
    return CommandResult({"faults": []}, f"valid: {file if file.exists() else 'the defaults'} and the environment\n")


@command("Look after", name="check")
def check_documents(run: Invocation) -> CommandResult:
    """Check documents and search index: each fault with file, line and current effect. Exits with 1 if there is one.

    Example: orchestra-mem check
    """
    from orchestra_mem.doctor import documents

    run.require_memory()
    problems = documents.check_documents(run.project, run.settings)
    problems += documents.check_index(run.project)
    record = {"project": str(run.project), "problems": problems}
    text = views.problems_text(problems) if problems else "no faults in the documents and the search index\n"
    return CommandResult(record, text, failed=bool(problems))


@command("Look after")
def doctor(run: Invocation) -> CommandResult:
    """Examine a memory part by part, and report what is wrong and what to do. Exits with 1 if there is a fault.

    Example: orchestra-mem doctor
    """
    from orchestra_mem.doctor.memory import Health, diagnose

    run.require_memory()
    with run.steps(total=7) as tell:
        findings = diagnose(run.project, on_part=tell)
    faults = sum(finding.health is Health.FAULT for finding in findings)
    record = {"project": str(run.project), "faults": faults, "findings": findings}
    return CommandResult(record, lambda: views.findings_view(findings), failed=bool(faults))


@command("Look after")
def move(
    run: Invocation,
    to: Annotated[str, option("--to URL", "postgresql://…, or `file` for .obra/obra.db in the project.")],
    schema: Annotated[
        str | None, option("--schema NAME", "The memory's schema on the server. Default: storage.schema_name.")
    ] = None,
    old_place_lost: Annotated[
        bool, option("--old-place-lost", "Copy nothing: use what an interrupted or earlier move left there.")
    ] = False,
) -> CommandResult:
    """Copy the database to a PostgreSQL server, or back, and verify every row. The old database keeps its rows.

    Afterwards, using the old database fails with an error that names the new place.
    If a move was interrupted, repeat it. Only if the old place is lost, pass --old-place-lost: if it is still in use,
    there are then two memories.

    Example: orchestra-mem move --to postgresql://db.example/team
    """
    from orchestra_mem.build import HOME, load_settings
    from orchestra_mem.build.storage import open_database
    from orchestra_mem.doctor.moves import TO_FILE, move_database, reactivate

    run.require_memory()
    settings = run.settings
    storage: dict[str, object] = {"url": "" if to == TO_FILE else to}
    if schema is not None:
        storage["schema_name"] = schema
    try:
        target = load_settings(run.project, os.environ, {"storage": storage})
    except ConfigError as error:
        problem = "; ".join(fault.problem for fault in error.faults)
        form = f"as in `--to postgresql://mem@db.example/team --schema bakery`, or `--to {TO_FILE}`"
        raise BadParameter(f"{problem}; {form}", param_hint="--to, --schema") from None
    keys = "storage.url" if schema is None else "storage.url and storage.schema_name"
    what = "remove storage.url from" if to == TO_FILE else f"write {keys}, as given here, into"
    note = f"{what} .obra/config.yaml now: until then the memory cannot be opened"
    is_here = (target.storage.url, target.storage.schema_name) == (settings.storage.url, settings.storage.schema_name)
    if old_place_lost:
        if not reactivate(run.project, target):
            raise BadParameter("no move has left a memory there", param_hint="--old-place-lost")
        notes = ["the old place may still be in use: what is recorded there from now on is missing here"]
        return CommandResult({}, "the memory is used there now\n", notes=notes if is_here else [*notes, note])
    if is_here:
        open_database(run.project / HOME, settings).close()  # refuses a memory that was moved away
        raise BadParameter("the memory is already there", param_hint="--to")
    with run.steps() as tell:
        copied = move_database(run.project, settings, target, on_table=tell)
    text = f"copied {counted(copied.rows, 'row')}, each read back and compared (sha256 {copied.digest[:16]}…)\n"
    return CommandResult(copied._asdict(), text, notes=[note])


@command("Look after")
def backup(
    run: Invocation, folder: Annotated[Path, argument("FOLDER", "The backup to create; the folder must not exist yet.")]
) -> CommandResult:
    """Copy the memory into a new folder while programs use it, and verify every row.

    Example: orchestra-mem backup ../bakery-backup
    """
    from orchestra_mem.doctor.backups import make_backup

    run.require_memory()
    target = Path(os.path.abspath(folder))
    with run.steps() as tell:
        made = make_backup(run.project, run.settings, target, on_table=tell)
    record = {**asdict(made), "files": len(made.files), "backup": target}
    rows, files = counted(made.rows, "row"), counted(len(made.files), "file")
    notes = [f"not in the backup, because it is a secret or points elsewhere: {key}" for key in made.left_out]
    return CommandResult(record, f"backed up to {target}: {rows}, each compared, and {files}\n", notes=notes)


@command("Look after", name="restore-backup")
def restore_backup(
    run: Invocation,
    folder: Annotated[Path, argument("FOLDER", "A backup.")],
    replace: Annotated[bool, option("--replace", "Move an existing memory aside first.")] = False,
) -> CommandResult:
    """Restore a backup as the project's memory, and verify every file. Programs that use the memory must have ended.

    Example: orchestra-mem restore-backup ../bakery-backup
    """
    from orchestra_mem.doctor import backups

    with run.steps() as tell:
        tell("restoring")
        made, aside = backups.restore_backup(Path(os.path.abspath(folder)), run.project, replace=replace)
    record = {**asdict(made), "files": len(made.files), "restored": run.project, "moved_aside": aside}
    notes = [f"the previous memory was moved to {aside}"] if aside else []
    for key in made.left_out:
        if key == "storage.url":
            words = "the memory was on a server and is now in the file .obra/obra.db; `orchestra-mem move` copies it"
            notes.append(f"{words} into an empty schema on a server: set storage.url after that")
        elif key.startswith("orchestrator."):
            notes.append(f"the documents are now in .obra; to keep them elsewhere, move them, then set {key} again")
        else:
            notes.append(f"not in the backup; set it again if it is needed: {key}")
    words = f"restored into {run.project}: the memory of {made.project} as of {made.made}\n"
    return CommandResult(record, words, notes=notes)


projects = add_group("projects", "Look after", help="All your projects, and what recurs in them.")
WhichArgument = Annotated[
    str | None, argument("PROJECT", "Its name, id or folder. Default: the project of this folder.")
]


def _projects() -> Projects:
    from orchestra_mem.home import Projects

    return Projects()


@command(of=projects, name="list")
def list_projects() -> CommandResult:
    """List all projects by name; a project is added to the list when it is opened.

    Example: orchestra-mem projects list
    """
    found = _projects().list()

    def row(each: ListedProject) -> Sequence[str]:
        return each.name, each.id[:12], each.last_opened, "yes" if each.shared else "no", str(each.path)

    return CommandResult(
        found, lambda: views.table_of(found, row, "|id|opened|searched|folder", empty="no project has been opened yet"),
        notes=[f"orchestra-mem: {each.path}: {each.note}" for each in found if each.note],
    )  # fmt: skip


@command(of=projects)
def add(
    run: Invocation,
    folder: Annotated[
        Path | None, argument("FOLDER", "The folder of a project with a memory. Default: this project.")
    ] = None,
) -> CommandResult:
    """Add a project with a memory to the list. Opening a project does this too, except in a temporary folder.

    Example: orchestra-mem projects add ../shop
    """
    done = _projects().add(folder or run.project)
    return CommandResult(done, f"listed: {done.name} {done.id} {done.path}\n")


@command(of=projects)
def remove(run: Invocation, which: WhichArgument = None) -> CommandResult:
    """Remove a project from the list until it is opened again; its memory stays unchanged.

    Example: orchestra-mem projects remove shop
    """
    done = _projects().remove(which or run.project)
    return CommandResult(done, f"no longer listed: {done.name} {done.id} {done.path}\n")


@command(of=projects)
def info(run: Invocation, which: WhichArgument = None) -> CommandResult:
    """Show the list's entry of a project: id, name, tags, folder, and the days it was first and last opened.

    Example: orchestra-mem projects info shop
    """
    found = _projects().info(which or run.project)
    told = [
        f"{found.name} (ID: {found.id})", str(found.path), f"tags: {', '.join(found.tags) or 'none'}",
        f"opened: {found.first_opened} to {found.last_opened}",
        f"searched from others: {'yes' if found.shared else 'no'}", found.note,
    ]  # fmt: skip
    return CommandResult(found, "".join(f"{line}\n" for line in told if line))


@command(of=projects)
def recurring(least: Annotated[int, option("--least N", "In at least N projects.", min=2)] = 3) -> CommandResult:
    """Find decisions and rules that several projects have in common, and that could be shared.

    Exits with 1 if there are none.

    Example: orchestra-mem projects recurring --least 4
    """
    found = _projects().recurring(least=least)
    groups = [[f"{each.project} K{each.id}: {' '.join(each.text.split())}" for each in group] for group in found.groups]
    text = "\n".join("".join(f"{line}\n" for line in lines) for lines in groups) or "no decision or rule recurs\n"
    notes = [f"orchestra-mem: {note}" for note in found.notes]
    return CommandResult(found, text, failed=not found.groups, notes=notes)


redact = add_group("redact", "Look after", help="Find and remove secrets.")


@command(of=redact)
def scan(run: Invocation) -> CommandResult:
    """List where the database and the documents contain secrets, without showing them. Exits with 1 if there are any.

    Example: orchestra-mem redact scan
    """
    from orchestra_mem.doctor.documents import find_secrets

    run.require_memory()
    found = find_secrets(run.project, run.settings)
    lines = [f"{each.place}: {', '.join(f'{kind} ({n})' for kind, n in each.kinds.items())}\n" for each in found]
    text = "".join(lines) or "no secrets found\n"
    notes = (
        ["`orchestra-mem redact apply` removes them, except from files that this memory did not write"] if found else []
    )
    return CommandResult({"secrets": found}, text, failed=bool(found), notes=notes)


@command(of=redact)
def apply(
    run: Invocation,
    yes: Annotated[bool, option("--yes", "Do not ask, even if a program has it open.")] = False,
    left_deleted: Annotated[bool, option("--left-deleted", "The schemas that moves have left are deleted.")] = False,
) -> CommandResult:
    """Replace secrets by placeholders permanently, in the database and in documents, people's lines too. Asks first.

    Exits with 1 if files that the memory did not write, such as copies of documents, still contain secrets, or if a
    move has left a schema on a server: delete that, then repeat with --left-deleted.

    Example: orchestra-mem redact apply --yes
    """
    from orchestra_mem.doctor.backups import check_unused
    from orchestra_mem.doctor.documents import redact_memory

    run.require_memory()
    if not yes:
        check_unused(run.project, "repeat; --yes skips this check, but that program may write the secrets again")
    question = "Programs that have this memory open may write the secrets again: end them first. Replace them now?"
    if not yes and not run.agrees(question):
        return CommandResult({"texts": 0, "files": 0}, "nothing was rewritten\n", failed=True)
    done = redact_memory(run.project, run.settings, left_deleted=left_deleted)
    rewritten = f"{counted(done.texts, 'text')} in the database and {counted(done.files, 'file')}"
    notes = [f"not rewritten; delete or edit it, see `redact apply --help`: {each}" for each in done.left]
    return CommandResult(done, f"rewritten: {rewritten}\n", failed=bool(done.left), notes=notes)
