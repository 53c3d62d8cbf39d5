"""The command `demo`: a repository's history, recorded by the real manager with a small window, and what it is then."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import Annotated

from typer import Option

from orchestra_mem.errors import StorageError
from orchestra_mem.faces.command import CommandResult, command
from orchestra_mem.faces.shell import Shell


@command("Begin")
def demo(
    run: Shell,
    repo: Annotated[Path, Option("--repo", metavar="PATH", help="The repository.")] = Path(),
    limit: Annotated[int, Option("--limit", min=1, metavar="N", help="Its newest N commits.")] = 400,
    keep: Annotated[
        Path | None,
        Option("--keep", metavar="DIR", help="Where the memory is made. Default: a new temporary one."),
    ] = None,
) -> CommandResult:
    """Replay a git history through a memory with a small window, and show what it keeps. Takes under a minute.

    Example: orchestra-mem demo --repo . --limit 400
    """
    from orchestra_mem.build import open_git_history, open_memory
    from orchestra_mem.faces import replay

    source = run.project if run.given is not None and repo == Path() else repo
    history = open_git_history(source, limit=limit)
    patches = history.total < replay.FEW_COMMITS
    if patches:
        history = replay.thinned(open_git_history(source, limit=limit, patches=True), replay.MOST_OPERATIONS)
    folder = _folder(keep)
    if not run.debug:
        logging.getLogger("orchestra_mem").setLevel(logging.ERROR)
    if not run.as_json:
        run.show(*replay.opening(history, limit, folder, patches=patches))
    config = replay.SMALL_CONFIG | {"project": {"name": source.resolve().name or "project"}}
    with open_memory(folder, config=config) as memory, run.progress(history.unit) as bar:
        task = bar.add_task("recording", total=history.total)
        replayed = replay.replay(memory, history, folder, lambda found: bar.update(task, completed=found.position))
    return CommandResult(replay.replayed_record(replayed), lambda: replay.replayed_view(replayed))


def _folder(keep: Path | None) -> Path:
    from orchestra_mem.build import HOME

    if keep is None:
        return Path(tempfile.mkdtemp(prefix="orchestra-mem-demo-"))
    if (keep / HOME).exists():
        raise StorageError(f"{keep} has a memory already; name a folder without one, so that nothing is mixed into it")
    try:
        keep.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{keep} cannot be made: {error.strerror or error}") from error
    return keep.resolve()
