"""The command that shows what is saved in the documents as it happens: watch."""

from __future__ import annotations

import json
import os
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Annotated

import typer

from orchestra_mem.errors import ConfigError, ConfigFault
from orchestra_mem.faces.shell import DebugOption, ProjectOption, Shell, shell

if TYPE_CHECKING:
    from orchestra_mem.build import DocumentWatcher
    from orchestra_mem.faces.text_changes import DocumentChange
    from orchestra_mem.settings import Settings
    from orchestra_mem.types import Json


def watch(
    poll: Annotated[
        bool, typer.Option("--poll", metavar="", help="Look each second, as for network folders. See documents.watch.")
    ] = False,
    project: ProjectOption = None,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print one JSON object a line instead.")] = False,
    debug: DebugOption = False,
) -> None:
    """Show what is saved in the documents as it happens, line by line, until Ctrl-C.

    Example: orchestra-mem watch
    """
    with shell(project, as_json, debug) as run:
        from orchestra_mem.build import HOME, load_settings, open_watcher
        from orchestra_mem.settings import WatchChoice

        if not (run.project / HOME).is_dir():
            raise run.no_memory()
        settings = load_settings(run.project, os.environ)
        changed: SimpleQueue[frozenset[Path]] = SimpleQueue()
        watcher = open_watcher(run.project, changed.put, mode=WatchChoice.POLL if poll else None)
        if watcher is None:
            raise _off(settings)
        try:
            _show_changes(run, watcher, changed, settings)
        except KeyboardInterrupt:
            run.tell("")  # the end that is meant, and not in the terminal's line of ^C


def _off(settings: Settings) -> ConfigError:
    problem = "is off, so nothing is watched; set it to auto, or give --poll"
    return ConfigError(
        (ConfigFault(source=settings.origin_of("documents.watch"), key="documents.watch", problem=problem),)
    )


def _show_changes(
    run: Shell, watcher: DocumentWatcher, changed: SimpleQueue[frozenset[Path]], settings: Settings
) -> None:
    from orchestra_mem.faces.text_changes import SeenTexts

    orchestrator = settings.orchestrator
    folders = [run.project / orchestrator.memory_dir, run.project / orchestrator.session_dir]
    texts = SeenTexts(folders)
    for path, state in texts.states.items():
        watcher.expect(path, state)  # so that nothing is missed between reading and watching
    with watcher:
        run.tell(f"watching {' and '.join(map(str, folders))} ({watcher.mode}); Ctrl-C ends it")
        while True:
            for path in sorted(changed.get()):
                found = texts.look(path)
                if found is not None:
                    _show(run, found)


def _show(run: Shell, found: DocumentChange) -> None:
    from orchestra_mem.build import utc_now

    time = utc_now()
    if run.as_json:
        record: dict[str, Json] = {
            "time": time.isoformat(), "document": found.path.stem, "path": str(found.path),
            "event": found.event.value, "added": found.change.added, "removed": found.change.removed,
            "lines": [*found.change.lines],
        }  # fmt: skip
        return typer.echo(json.dumps(record))
    from orchestra_mem.faces.document_rendering import change_view

    view = change_view(time, found)
    if run.out.is_terminal:
        return run.show(view)
    return run.text(f"{view.plain}\n")


def add_to(app: typer.Typer, panel: str) -> None:
    """Add this command."""
    app.command(rich_help_panel=panel)(watch)
