"""The command `demo`: a repository's history, recorded by the real manager with a small window, and what it is then."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from orchestra_mem.errors import StorageError
from orchestra_mem.faces.command import CommandResult, command
from orchestra_mem.faces.shell import Shell

if TYPE_CHECKING:
    from orchestra_mem.faces.replay import NextSession, Replayed

WINDOW_TOKENS = 8_192
# Entries so short that several make a segment in so small a window, and a document so large that it is compacted as
# often for its own size as for the window's; a history that was made just now is compacted like an old one.
_SMALL: dict[str, object] = {
    "orchestrator": {"context_window": {"max_tokens": WINDOW_TOKENS}, "session_compression_ratio": 0.5},
    "compaction": {"window_share": 0.55, "verbatim_window_s": 0}, "entries": {"max_chars": 240},
}  # fmt: skip


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
    config = _SMALL | {"project": {"name": source.resolve().name or "project"}}
    if not run.debug:
        logging.getLogger("orchestra_mem").setLevel(logging.ERROR)
    if not run.as_json:
        run.show(*replay.opening(history, limit, folder, WINDOW_TOKENS, patches=patches))
    with open_memory(folder, config=config) as memory, run.progress(history.unit) as bar:
        task = bar.add_task("recording", total=history.total)
        replayed = replay.replay(memory, history, lambda found: bar.update(task, completed=found.position))
    with open_memory(folder, config=config) as memory:
        following = replay.look_again(memory)
    if run.as_json:
        return CommandResult(_record(folder, replayed, following), "")
    return CommandResult(None, lambda: replay.everything(replayed, following, folder))


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


def _record(folder: Path, replayed: Replayed, following: NextSession) -> dict[str, Any]:
    context = replayed.small_context
    documents = {name: str(path) for name, path in following.documents.items()}
    return {
        "folder": str(folder), "recorded": replayed.recorded, "recorded_tokens": replayed.tokens,
        "seconds": round(replayed.seconds, 3), "window_tokens": WINDOW_TOKENS, "refreshes": replayed.refreshes,
        "asked_refresh": replayed.asked_refresh,
        "usage": [[point.sequence, point.used_tokens, point.event.value] for point in replayed.points],
        "summaries": replayed.summaries,
        "expanded": replayed.expansion.reference if replayed.expansion else None,
        "originals_equal": replayed.originals_equal,
        "context": {"budget_tokens": context.budget_tokens, "tokens": context.tokens, "text": context.render(),
                    "explain": context.explain()},
        "documents": documents | {"session": str(replayed.archive) if replayed.archive else None},
        "versions": following.versions, "diff": following.diff, "just_done": following.recent,
    }  # fmt: skip
