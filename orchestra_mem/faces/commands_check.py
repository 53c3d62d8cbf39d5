"""Commands that tell whether all is well: config show, config check, check, doctor."""

from __future__ import annotations

import os
from typing import Annotated

from orchestra_mem.faces.command import CommandResult, command, config, document_views, flag, views
from orchestra_mem.faces.commands_documents import problem_record, require_memory
from orchestra_mem.faces.shell import CONFIGURATION, FAILED, Shell


@command(of=config)
def show(
    run: Shell,
    defaults: Annotated[
        bool, flag("--defaults", "Every key with its default, unit, range and reason, as YAML.")
    ] = False,
) -> CommandResult:
    """Print the settings in force, and where each that is not a default comes from.

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
def check(run: Shell) -> CommandResult:
    """Check the settings: files, environment, and whether they go together. Exits with 3 where they do not.

    Example: orchestra-mem config check
    """
    from orchestra_mem.build import CONFIG_PATH, load_settings
    from orchestra_mem.errors import ConfigError

    try:
        load_settings(run.project, os.environ)
    except ConfigError as error:
        if not run.as_json:
            raise
        faults = [
            {"source": fault.source, "line": fault.line, "key": fault.key, "problem": fault.problem}
            for fault in error.faults
        ]
        return CommandResult({"faults": faults}, "", exit_code=CONFIGURATION)
    file = run.project / CONFIG_PATH
    return CommandResult({"faults": []}, f"in order: {file if file.exists() else 'defaults'} and the environment\n")


@command("Look after", name="check")
def check_documents(run: Shell) -> CommandResult:
    """Look through the documents: every fault with file and line, and what happens meanwhile. 1 where there is one.

    Example: orchestra-mem check
    """
    from orchestra_mem import doctor
    from orchestra_mem.build import load_settings

    require_memory(run)
    problems = doctor.check_documents(run.project, load_settings(run.project, os.environ))
    problems += doctor.check_index(run.project)
    record = {"project": str(run.project), "problems": [problem_record(problem) for problem in problems]}
    if not problems:
        return CommandResult(record, "all is well with the documents\n")
    if not run.as_json and run.out.is_terminal:
        return CommandResult(record, lambda: document_views.problems_view(problems), exit_code=FAILED)
    # Unfolded, for programs that look for file:line.
    text = "".join(f"{problem}\n  meanwhile {problem.meanwhile}\n" for problem in problems)
    return CommandResult(record, text, exit_code=FAILED)


@command("Look after")
def doctor(run: Shell) -> CommandResult:
    """Look for what is wrong with a memory, part by part, and say what to do. Exits with 1 where something is.

    Example: orchestra-mem doctor
    """
    from orchestra_mem.doctor import Health, diagnose

    require_memory(run)
    with run.progress() as bar:
        task = bar.add_task("", total=7)
        findings = diagnose(run.project, on_part=lambda part: bar.update(task, description=part, advance=1))
    faults = sum(finding.health is Health.FAULT for finding in findings)
    parts = [
        {"part": found.part, "health": found.health, "words": found.words, "advice": found.advice} for found in findings
    ]
    record = {"project": str(run.project), "faults": faults, "findings": parts}
    return CommandResult(record, lambda: views.findings_view(findings), exit_code=FAILED if faults else 0)
