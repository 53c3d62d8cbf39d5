"""Terminal view of `status`, without rich: loading rich would take as long as querying the memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from typer import style

from orchestra_mem.core.text import visible
from orchestra_mem.faces.records import counted

_LOUDNESS: tuple[dict[str, Any], ...] = ({"fg": "green"}, {"fg": "yellow"}, {"fg": 208}, {"fg": "red", "bold": True})
_BAR_CHARS = 50


def status_lines(record: Mapping[str, Any]) -> Iterator[str]:
    """Show the result of `status`."""
    window, thresholds, following = record["context_window"], record["thresholds"], record["next_context"]
    used, size = window["used_tokens"], window["max_tokens"]
    whose = "the model's own" if window["exact"] else "not the model's own"
    yield _styled(f"Memory of {record['project']}", bold=True)
    yield ""
    yield f"window   {_bar(used / size, thresholds.values())} {used / size:.0%}"
    yield f"         {used:,} of {size:,} tokens"
    yield f"         {', '.join(f'{name} at {share:.0%}' for name, share in thresholds.items())}"
    yield f"         counted by {window['counter']} ({whose})"
    about = "" if following["is_sure"] else "about "
    yield f"context  {about}{following['tokens']:,} of {following['budget_tokens']:,} tokens"
    yield f"search   {record['search_index']}"
    yield f"catalog  {_catalog(record['catalog'])}"
    if record["server"]:
        yield f"server   {record['server']}"
    sizes = [f"{name} {_size(size)}" for name, size in record["sizes"].items()]
    yield f"disk     {', '.join(sizes[:2])}"
    yield f"         {', '.join(sizes[2:])}"
    yield ""
    yield from _tiers(record)
    yield ""
    yield from _places(record["documents"], record["project"])
    yield ""
    for problem in record["problems"]:
        since = f" (since {problem['since']})" if problem["since"] else ""
        yield _styled(f"! {problem['subject']}: {problem['problem']}{since}", **_LOUDNESS[-1])
    if not record["problems"]:
        yield _styled("no problems", fg="green")


def _styled(words: str, **how: Any) -> str:
    """Style a text if stdout is a terminal that shows colours; else return it unstyled."""
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return visible(words) if plain else style(visible(words), **how)


def _bar(share: float, thresholds: Collection[float]) -> str:
    """Draw a bar for a share, 0 to 1, with a mark at each threshold; the colour depends on the thresholds reached."""
    marks = {min(_BAR_CHARS - 1, int(threshold * _BAR_CHARS)) for threshold in thresholds}
    signs = "".join("┊" if at in marks else "·" for at in range(_BAR_CHARS))
    filled = min(_BAR_CHARS, round(share * _BAR_CHARS))
    loudness = _LOUDNESS[sum(share >= threshold for threshold in thresholds)]
    return f"│{_styled('█' * filled, **loudness)}{signs[filled:]}│"


def _catalog(found: Mapping[str, Any]) -> str:
    waits = f"; {counted(found['waiting'], 'exchange')} not analysed yet" if found["waiting"] else ""
    whose = f" of {counted(found['agents'], 'agent')}, {found['tokens']:,} tokens" if found["items"] else ""
    return f"{counted(found['items'], 'item')}{whose}{waits}"


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB" if size_bytes >= 100_000 else f"{size_bytes / 1e3:,.1f} KB"


def _tiers(record: Mapping[str, Any]) -> Iterator[str]:
    working, session, episodic = (record[f"{tier}_memory"] for tier in ("working", "session", "episodic"))
    here, versions = session["operation_count"], episodic["version_count"]
    tokens = sum(value for name, value in episodic.items() if name.endswith("_tokens"))
    rows = [
        ("working", f"{working['operation_count']:,} of {working['max_operations']:,} operations",
         f"{working['current_tokens']:,} of {working['max_tokens']:,}"),
        ("session", counted(here, "operation") if session["session_id"] else "no current session",
         f"{session.get('current_tokens', 0):,}"),
        ("", f"{record['sessions']['archived']:,} archived", ""),
        ("episodic", counted(versions, "earlier version"), f"{tokens:,}"),
    ]  # fmt: skip
    yield _styled(f"{'tier':<11}{'content':<24}{'tokens':>18}", bold=True)
    yield from (f"{tier:<11}{holds:<24}{tokens:>18}".rstrip() for tier, holds, tokens in rows)


def _places(documents: Mapping[str, str | None], project: str) -> Iterator[str]:
    yield _styled(f"{'document':<16}file", bold=True)
    for name, path in documents.items():
        if path is not None:
            below = Path(path).is_relative_to(project)
            yield f"{name:<16}{visible(str(Path(path).relative_to(project)) if below else path)}"
