"""Commands that tell whether all is well: config show, config check, check, doctor."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from orchestra_mem.faces.shell import CONFIGURATION, FAILED, DebugOption, JsonOption, ProjectOption, shell

if TYPE_CHECKING:
    from orchestra_mem.types import Json


def show(
    defaults: Annotated[
        bool,
        typer.Option("--defaults", metavar="", help="Every key with its default, unit, range and reason, as YAML."),
    ] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Print the settings in force, and where each that is not a default comes from.

    Example: orchestra-mem config show
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem.build import default_config_text, load_settings
        from orchestra_mem.settings import Settings

        if defaults and not as_json:
            return run.text(default_config_text())
        settings = Settings() if defaults else load_settings(run.project, os.environ)
        if as_json:
            record: dict[str, Json] = {
                key: {"value": _plain(value), "origin": settings.origin_of(key)}
                for key, value in settings.flat().items()
            }
            return run.answer(record)
        from orchestra_mem.faces.rendering import settings_view

        run.show(*settings_view(settings))
    return None


def _plain(value: object) -> Json:
    assert isinstance(value, bool | int | float | str)
    return value


def check(project: ProjectOption = None, as_json: JsonOption = False, debug: DebugOption = False) -> None:
    """Check the settings: files, environment, and whether they go together. Exits with 3 where they do not.

    Example: orchestra-mem config check
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem.build import CONFIG_PATH, load_settings
        from orchestra_mem.errors import ConfigError

        try:
            load_settings(run.project, os.environ)
        except ConfigError as error:
            if not as_json:
                raise
            run.answer(
                {
                    "faults": [
                        {"source": fault.source, "line": fault.line, "key": fault.key, "problem": fault.problem}
                        for fault in error.faults
                    ]
                }
            )
            raise typer.Exit(CONFIGURATION) from error
        if as_json:
            return run.answer({"faults": []})
        file = run.project / CONFIG_PATH
        run.text(f"in order: {file if file.exists() else 'defaults'} and the environment\n")
    return None


def check_documents(project: ProjectOption = None, as_json: JsonOption = False, debug: DebugOption = False) -> None:
    """Look through the documents: every fault with file and line, and what happens meanwhile. 1 where there is one.

    Example: orchestra-mem check
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem import diagnosis
        from orchestra_mem.build import HOME, load_settings
        from orchestra_mem.faces.document_rendering import problem_record, problems_view

        if not (run.project / HOME).is_dir():
            raise run.no_memory()
        problems = diagnosis.check_documents(run.project, load_settings(run.project, os.environ))
        problems += diagnosis.check_index(run.project)
        if as_json:
            run.answer({"project": str(run.project), "problems": [problem_record(problem) for problem in problems]})
        elif not problems:
            run.text("all is well with the documents\n")
        elif run.out.is_terminal:
            run.show(*problems_view(problems))
        else:
            # Unfolded, for programs that look for file:line.
            run.text("".join(f"{problem}\n  meanwhile {problem.meanwhile}\n" for problem in problems))
        if problems:
            raise typer.Exit(FAILED)


def doctor(project: ProjectOption = None, as_json: JsonOption = False, debug: DebugOption = False) -> None:
    """Look for what is wrong with a memory, part by part, and say what to do. Exits with 1 where something is.

    Example: orchestra-mem doctor
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem.build import HOME
        from orchestra_mem.diagnosis import Health, diagnose

        if not (run.project / HOME).is_dir():
            raise run.no_memory()
        with run.progress() as bar:
            task = bar.add_task("", total=7)
            findings = diagnose(run.project, on_part=lambda part: bar.update(task, description=part, advance=1))
        faults = sum(finding.health is Health.FAULT for finding in findings)
        if as_json:
            parts: list[Json] = [
                {"part": found.part, "health": found.health.value, "words": found.words, "advice": found.advice}
                for found in findings
            ]
            run.answer({"project": str(run.project), "faults": faults, "findings": parts})
        else:
            from orchestra_mem.faces.rendering import findings_view

            run.show(*findings_view(findings))
        if faults:
            raise typer.Exit(FAILED)


def add_to(app: typer.Typer, config: typer.Typer, panel: str) -> None:
    """Add these commands."""
    config.command("show")(show)
    config.command("check")(check)
    app.command("check", rich_help_panel=panel)(check_documents)
    app.command(rich_help_panel=panel)(doctor)
