"""Commands that look after a memory: config show and check, check, doctor, move, backup, restore-backup, summaries."""

from __future__ import annotations

import os
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Option

from orchestra_mem.errors import ConfigError
from orchestra_mem.faces.command import (
    CONFIGURATION,
    FAILED,
    CommandResult,
    Invocation,
    LimitOption,
    SessionOption,
    command,
    command_group,
    flag,
    recall_views,
    views,
)
from orchestra_mem.faces.records import counted

if TYPE_CHECKING:
    from orchestra_mem.compression.service import SummaryStory
    from orchestra_mem.memory.manager import OrchestratorContextManager

config = command_group("config", "Look after", help="Show and check the settings.")


@command(of=config)
def show(
    run: Invocation,
    defaults: Annotated[
        bool, flag("--defaults", "Every key with its default, unit, range and reason, as YAML.")
    ] = False,
) -> CommandResult:
    """Print every setting with its value, and where the value comes from.

    Example: orchestra-mem config show
    """
    from orchestra_mem.build import default_config_text, load_settings
    from orchestra_mem.settings import Settings

    if defaults and not run.as_json:
        return CommandResult(None, default_config_text())
    settings = Settings() if defaults else load_settings(run.project, os.environ)
    record = {key: {"value": value, "origin": settings.origin_of(key)} for key, value in settings.flat().items()}
    return CommandResult(record, lambda: views.settings_view(settings))


@command(of=config)
def check(run: Invocation) -> CommandResult:
    """Check the settings: files, environment, and whether they fit together. Exits with 3 if something is wrong.

    Example: orchestra-mem config check
    """
    from orchestra_mem.build import CONFIG_PATH, load_settings
    from orchestra_mem.errors import ConfigError

    try:
        load_settings(run.project, os.environ)
    except ConfigError as error:
        if not run.as_json:
            raise
        return CommandResult({"faults": [*error.faults]}, "", exit_code=CONFIGURATION)
    file = run.project / CONFIG_PATH
    return CommandResult({"faults": []}, f"valid: {file if file.exists() else 'the defaults'} and the environment\n")


@command("Look after", name="check")
def check_documents(run: Invocation) -> CommandResult:
    """Check the documents: every fault with file and line, and what happens meanwhile. Exits with 1 if there is one.

    Example: orchestra-mem check
    """
    from orchestra_mem.build import load_settings
    from orchestra_mem.doctor import documents

    run.require_memory()
    problems = documents.check_documents(run.project, load_settings(run.project, os.environ))
    problems += documents.check_index(run.project)
    record = {"project": str(run.project), "problems": problems}
    text = views.problems_text(problems) if problems else "the documents have no faults\n"
    return CommandResult(record, text, exit_code=FAILED if problems else 0)


@command("Look after")
def doctor(run: Invocation) -> CommandResult:
    """Examine a memory part by part, and say what is wrong and what to do. Exits with 1 if something is.

    Example: orchestra-mem doctor
    """
    from orchestra_mem.doctor.memory import Health, diagnose

    run.require_memory()
    with run.progress() as bar:
        task = bar.add_task("", total=7)
        findings = diagnose(run.project, on_part=lambda part: bar.update(task, description=part, advance=1))
    faults = sum(finding.health is Health.FAULT for finding in findings)
    record = {"project": str(run.project), "faults": faults, "findings": findings}
    return CommandResult(record, lambda: views.findings_view(findings), exit_code=FAILED if faults else 0)


@command("Look after")
def move(
    run: Invocation,
    to: Annotated[str, Option("--to", metavar="URL", help="postgresql://…, or file for obra.db in the folder.")],
    schema: Annotated[
        str | None, Option("--schema", metavar="NAME", help="The memory's own on the server; as storage.schema_name.")
    ] = None,
) -> CommandResult:
    """Copy what was recorded to a PostgreSQL server, or back, and verify every row. The old database keeps its rows.

    Whoever opens that afterwards, or writes there, is told where the memory is; to move to it goes on there as well.

    Example: orchestra-mem move --to postgresql://db.example/team
    """
    from orchestra_mem.build import load_settings
    from orchestra_mem.doctor.moving import TO_FILE, go_on_here, move_database

    run.require_memory()
    settings = load_settings(run.project, os.environ)
    storage: dict[str, object] = {"url": "" if to == TO_FILE else to}
    if schema is not None:
        storage["schema_name"] = schema
    try:
        target = load_settings(run.project, os.environ, {"storage": storage})
    except ConfigError as error:
        problem = "; ".join(fault.problem for fault in error.faults)
        form = f"as in `--to postgresql://mem@db.example/team --schema bakery`, or `--to {TO_FILE}`"
        raise BadParameter(f"{problem}; {form}", param_hint="--to, --schema") from None
    if (target.storage.url, target.storage.schema_name) == (settings.storage.url, settings.storage.schema_name):
        if go_on_here(run.project, settings):
            return CommandResult({}, "the memory goes on here; what was recorded where it was moved to stays there\n")
        raise BadParameter("the memory is there already", param_hint="--to")
    with run.progress() as bar:
        task = bar.add_task("", total=None)
        copied = move_database(
            run.project, settings, target, on_table=lambda table, rows: bar.update(task, description=table)
        )
    text = f"copied {counted(copied.rows, 'row')}, each read again and compared (sha256 {copied.digest[:16]}…)\n"
    if to == TO_FILE:
        note = "take storage.url out of .obra/config.yaml now: until then the memory is not to be opened"
    else:
        note = "put the address under storage.url into .obra/config.yaml now: until then the memory is not to be opened"
    return CommandResult(copied._asdict(), text, notes=[note])


@command("Look after")
def backup(
    run: Invocation,
    folder: Annotated[Path, Argument(metavar="FOLDER", help="The backup, which is not there yet.")],
) -> CommandResult:
    """Copy the memory into a new folder while programs use it, and verify every row.

    Example: orchestra-mem backup ../bakery-backup
    """
    from orchestra_mem.build import load_settings
    from orchestra_mem.doctor.backups import make_backup

    run.require_memory()
    target = Path(os.path.abspath(folder))
    with run.progress() as bar:
        task = bar.add_task("", total=None)
        made = make_backup(
            run.project, load_settings(run.project, os.environ), target,
            on_table=lambda table, rows: bar.update(task, description=table),
        )  # fmt: skip
    record = {**asdict(made), "files": len(made.files), "backup": target}
    rows, files = counted(made.rows, "row"), counted(len(made.files), "file")
    notes = [f"not in it, as it would lead elsewhere or give a secret away: {key}" for key in made.left_out]
    return CommandResult(record, f"backed up to {target}: {rows}, each compared, and {files}\n", notes=notes)


@command("Look after", name="restore-backup")
def restore_backup(
    run: Invocation,
    folder: Annotated[Path, Argument(metavar="FOLDER", help="A backup.")],
    replace: Annotated[bool, Option("--replace", help="Move the memory that is there aside first.")] = False,
) -> CommandResult:
    """Put a backup back as the project's memory, and verify every file. Programs that use it must have ended.

    Example: orchestra-mem restore-backup ../bakery-backup
    """
    from orchestra_mem.doctor import backups

    with run.progress() as bar:
        bar.add_task("restoring", total=None)
        made, aside = backups.restore_backup(Path(os.path.abspath(folder)), run.project, replace=replace)
    record = {**asdict(made), "files": len(made.files), "restored": run.project, "moved_aside": aside}
    notes = [f"what was there is now {aside}"] if aside else []
    for key in made.left_out:
        if key == "storage.url":
            words = "its memory was on a server, and is in the file .obra/obra.db now; `orchestra-mem move` copies it"
            notes.append(f"{words} into an empty schema there: set storage.url after that")
        elif key.startswith("orchestrator."):
            notes.append(f"its documents are in .obra now; to keep them elsewhere, move them, then set {key} again")
        else:
            notes.append(f"not in the backup; set it again where it is needed: {key}")
    words = f"{run.project} has the memory of {made.project} as of {made.made}\n"
    return CommandResult(record, words, notes=notes)


class SummariesAction(StrEnum):
    """What to do with summaries."""

    LIST = "list"
    REDO = "redo"


@command("Ask")
def summaries(
    run: Invocation,
    action: Annotated[
        SummariesAction, Argument(metavar="ACTION", help="List them, or redo one by the model.")
    ] = SummariesAction.LIST,
    reference: Annotated[str | None, Argument(metavar="ID", help="For redo: which one, as in S12.")] = None,
    session: SessionOption = None,
    limit: LimitOption = 20,
) -> CommandResult:
    """List summaries: how each was made and checked, what was put back and lost. redo has the model try again now.

    Example: orchestra-mem summaries redo S12
    """
    if (action is SummariesAction.REDO) != (reference is not None):
        raise BadParameter(
            "give redo, and only redo, the number of a summary, as in: summaries redo S12", param_hint="ID"
        )
    with run.open() as memory:
        if reference is not None:
            return _redo(memory, reference)
        found = memory.compression.stories(memory.losses(session, limit=limit or None))
    return CommandResult([_story_record(story) for story in found], lambda: recall_views.stories_view(found))


def _redo(memory: OrchestratorContextManager, reference: str) -> CommandResult:
    done = memory.compression.redo(reference)
    fault = f", {done.fault}" if done.fault else ""
    what = "the next refresh takes this text:" if done.verdict.good else "the summary stays as it is:"
    return CommandResult(done, f"{done.verdict}{fault} ({done.talk.seconds:.1f} s); {what}\n\n{done.text.rstrip()}\n")


def _story_record(story: SummaryStory) -> dict[str, Any]:
    from orchestra_mem.serialize import to_object

    trial, job = story.trial, story.job
    return {
        **to_object(story.summary),
        "model": trial.model if trial else None,
        "tried": trial.verdict if trial else None,
        "fault": (trial.fault if trial else "") or (job.error if job else "") or None,
        "job": job.state if job else None,
        "draft_waits": story.draft is not None,
    }
