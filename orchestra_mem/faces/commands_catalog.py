"""Commands for the catalog and for its audit trail."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import BadParameter

from orchestra_mem.catalog_types import AccessOutcome, AuditFilter, ItemFilter, ItemStatus, ItemType
from orchestra_mem.errors import InvalidItemError, NotFoundError, storage_error
from orchestra_mem.faces.command import CommandResult, Invocation, add_group, argument, command, option, recall_views
from orchestra_mem.faces.inputs import LimitOption, SinceOption, agent_name, from_stdin, text_or_stdin, up_to
from orchestra_mem.faces.records import counted
from orchestra_mem.types import Author, Json

if TYPE_CHECKING:
    from orchestra_mem.memory.manager import OrchestratorContextManager

group = add_group("catalog", "Agents", help="The catalog: what agents have learnt, item by item.")
_HIDDEN = (ItemStatus.SUPERSEDED, ItemStatus.EXPIRED, ItemStatus.DISPLACED, ItemStatus.DELETED)


_OWNER: Any = None
AgentOption = Annotated[
    str,
    option("--agent NAME", "Act as this agent, with its permissions. Default: as the owner.", callback=agent_name),
]  # fmt: skip
ItemArgument = Annotated[str, argument("ID", "The item's id, for example mem_1764129600_abc123 or M12.")]
OfOption = Annotated[list[str] | None, option("--of AGENT", "Only items of this agent; global: items for all agents.")]
# Plain strings, validated later together, so that all faults of an item are reported at once.
TypeOption = Annotated[str | None, option("--type TYPE", f"One of: {', '.join(ItemType)}.")]
PriorityOption = Annotated[str | None, option("--priority N", "0 to 10; by default items from 8 on are permanent.")]
ExpiresOption = Annotated[
    str | None,
    option("--expires TIME", "A time such as 2026-12-01T14:00, a span from now such as 12h, 3d or 2w, or never."),
]
SummaryOption = Annotated[str | None, option("--summary TEXT", "One line. Default: made from the text.")]
TagsOption = Annotated[list[str] | None, option("--tag TAG", "What it is about. Default: found from the text.")]
ReferencesOption = Annotated[list[str] | None, option("--reference ID", "What it refers to, such as op12, K7 or M3.")]


@command(of=group, name="list")
def list_items(
    memory: OrchestratorContextManager,
    types: Annotated[list[ItemType] | None, option("--type TYPE", "Only this type.")] = None,
    tags: Annotated[list[str] | None, option("--tag TAG", "Only with this tag, or with one of several.")] = None,
    text: Annotated[str, option("--text TEXT", "Only with all these words.")] = "",
    of: OfOption = None,
    statuses: Annotated[
        list[ItemStatus] | None,
        option("--status STATUS", f"Only this status, one of: live, {', '.join(_HIDDEN)}. Default: live."),
    ] = None,
    everything: Annotated[bool, option("--all-statuses", "Include hidden items.")] = False,
    limit: Annotated[int, option("--limit N", "The newest N; 0 for all.", min=0)] = 20,
    offset: Annotated[int, option("--offset N", "Skip the newest N.", min=0)] = 0,
    agent: AgentOption = _OWNER,
) -> CommandResult:
    """List items, newest first; in full with --json.

    Example: orchestra-mem catalog list --of reviewer --type decision
    """
    shown = (ItemStatus.LIVE, *_HIDDEN) if everything else tuple(statuses or (ItemStatus.LIVE,))
    where = ItemFilter(
        agents=of or None, types=tuple(types or ()), tags=tuple(tags or ()), text=text, statuses=shown,
        limit=limit or None, offset=offset,
    )  # fmt: skip
    found = memory.catalog.items(where, agent=agent)
    return CommandResult(found, lambda: recall_views.memory_items_view(found), notes=up_to(found, limit))


@command(of=group)
def show(memory: OrchestratorContextManager, item_id: ItemArgument, agent: AgentOption = _OWNER) -> CommandResult:
    """Show an item, whatever its status.

    Example: orchestra-mem catalog show M12
    """
    item = memory.catalog.get(item_id.strip(), agent=agent)
    return CommandResult(item, lambda: "".join(f"{line}\n" for line in recall_views.memory_item_lines(item)))


@command(of=group)
def add(
    run: Invocation,
    text: Annotated[str, argument("TEXT", "What was learnt; - reads it from stdin.")],
    item_type: TypeOption = None,
    of: Annotated[
        str | None,
        option(
            "--of AGENT", "The agent that it belongs to; global: all agents. Default: the acting agent, else global."
        ),
    ] = None,
    priority: PriorityOption = None,
    expires: ExpiresOption = None,
    tags: TagsOption = None,
    summary: SummaryOption = None,
    references: ReferencesOption = None,
    agent: AgentOption = _OWNER,
) -> CommandResult:
    """Add an item, or strengthen the live item with the same text. Creates a memory if there is none.

    Example: orchestra-mem catalog add "We deploy on Tuesdays." --type decision --of reviewer --expires 30d
    """
    given = _fields(
        content=text_or_stdin(text), type=item_type, ci_source=of, priority=priority,
        expires=expires, tags=tags, summary=summary, references=references,
    )  # fmt: skip
    from orchestra_mem.core.catalog.item_drafts import read_draft

    with _usage_faults():
        draft = read_draft(given, datetime.now(UTC))
    with run.open(create=True) as memory:
        item = memory.catalog.put(draft, agent=agent, author=Author.PERSON)
        memory.write_catalog()
    again = f" (said {item.said:,} times so far)" if item.said > 1 else ""
    return CommandResult(item, f"M{item.number} {item.id}{again}\n")


@command(of=group)
def edit(
    memory: OrchestratorContextManager,
    item_id: ItemArgument,
    text: Annotated[str | None, option("--text TEXT", "The new text; - reads it from stdin.")] = None,
    item_type: TypeOption = None,
    of: Annotated[str | None, option("--of AGENT", "The agent that it belongs to; global: all agents.")] = None,
    priority: PriorityOption = None,
    expires: ExpiresOption = None,
    tags: TagsOption = None,
    summary: SummaryOption = None,
    references: ReferencesOption = None,
    agent: AgentOption = _OWNER,
) -> CommandResult:
    """Change some fields of an item; the others stay. `--tag` and `--reference` replace all earlier values.

    Example: orchestra-mem catalog edit M12 --priority 9
    """
    changes = _fields(
        content=text_or_stdin(text), type=item_type, ci_source=of, priority=priority,
        expires=expires, tags=tags, summary=summary, references=references,
    )  # fmt: skip
    if not changes:
        raise BadParameter("nothing to change: give --text, --priority or another field")
    with _usage_faults():
        item = memory.catalog.update(item_id.strip(), changes, agent=agent)
    memory.write_catalog()
    return CommandResult(item, f"M{item.number} {item.id}\n")


@command(of=group)
def remove(memory: OrchestratorContextManager, item_id: ItemArgument, agent: AgentOption = _OWNER) -> CommandResult:
    """Hide an item from everybody; `catalog purge` deletes it permanently.

    Example: orchestra-mem catalog remove M12
    """
    item = memory.catalog.delete(item_id.strip(), agent=agent)
    memory.write_catalog()
    return CommandResult(item, f"removed M{item.number} {item.id}\n")


@command(of=group)
def expire(memory: OrchestratorContextManager, agent: AgentOption = _OWNER) -> CommandResult:
    """Hide expired and surplus items; remove old audit entries and archives. Automatic once a day by default.

    Example: orchestra-mem catalog expire
    """
    done = memory.clean_up(agent=agent)
    memory.write_catalog()
    lines = [f"{done.expired:,} expired, {done.displaced:,} displaced, {done.audit_entries:,} audit entries deleted"]
    lines += [f"{name} removed" for name in done.archives]
    lines += [f"{name} kept: it contains a person's text or could not be read" for name in done.archives_kept]
    return CommandResult(done, "".join(f"{line}\n" for line in lines))


@command(of=group)
def purge(
    run: Invocation,
    memory: OrchestratorContextManager,
    expired: Annotated[bool, option("--expired", "Delete expired items.")] = False,
    deleted: Annotated[bool, option("--deleted", "Delete removed items.")] = False,
    everything: Annotated[
        bool, option("--all", "Delete all hidden items, including superseded and displaced ones.")
    ] = False,
    of: OfOption = None,
    yes: Annotated[bool, option("--yes", "Do not ask for confirmation.")] = False,
    agent: AgentOption = _OWNER,
) -> CommandResult:
    """Delete hidden items and their text permanently. Live items stay. Asks first.

    Example: orchestra-mem catalog purge --expired --deleted
    """
    wanted = {ItemStatus.EXPIRED: expired, ItemStatus.DELETED: deleted}
    statuses = _HIDDEN if everything else tuple(status for status, is_wanted in wanted.items() if is_wanted)
    if not statuses:
        raise BadParameter("choose what to delete: --expired, --deleted or --all")
    where = ItemFilter(agents=of or None, statuses=statuses)
    count = memory.catalog.count(where, agent=agent)
    if count and not yes and not run.agrees(f"Delete {counted(count, 'item')} permanently?"):
        return CommandResult({"purged": 0}, "nothing was deleted\n", failed=True)
    done = memory.catalog.purge(where, agent=agent)
    return CommandResult({"purged": done}, f"deleted {counted(done, 'item')} permanently\n")


@command(of=group)
def stats(
    memory: OrchestratorContextManager,
    of: Annotated[str | None, option("--of AGENT", "Only this agent.")] = None,
    agent: AgentOption = _OWNER,
) -> CommandResult:
    """Count the live items of each agent and their tokens.

    Example: orchestra-mem catalog stats
    """
    found = memory.catalog.get_stats(of, agent=agent)
    return CommandResult(found, lambda: recall_views.catalog_stats_view(found))


@command(of=group)
def export(
    memory: OrchestratorContextManager,
    whose: Annotated[str, argument("AGENT", "The agent whose items are exported; global: items for all agents.")],
    out: Annotated[Path | None, option("--out FILE", "The file to write. Default: stdout.")] = None,
    agent: AgentOption = _OWNER,
) -> CommandResult:
    """Write an agent's live items as a JSON document for `catalog import`.

    Example: orchestra-mem catalog export reviewer --out catalog_reviewer.json
    """
    if whose not in memory.catalog.get_stats(agent=agent):
        raise NotFoundError(f"no visible items of {whose!r}; `orchestra-mem catalog stats` lists agents")
    document: Any = memory.catalog.export(whose, agent=agent)
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if out is None:
        return CommandResult(document, text)
    try:
        out.write_text(text, encoding="utf-8", errors="surrogatepass")
    except OSError as error:
        raise storage_error(error, "writing", out) from error
    count = len(document["memories"])
    return CommandResult({"file": str(out), "items": count}, f"exported {counted(count, 'item')} to {out}\n")


@command(of=group, name="import")
def bring_in(
    run: Invocation,
    file: Annotated[Path, argument("FILE", "A file written by `catalog export`; - reads stdin.")],
    agent: AgentOption = _OWNER,
) -> CommandResult:
    """Add the items of a catalog document, all or none. Skips expired items; creates a memory if there is none.

    Example: orchestra-mem catalog import catalog_reviewer.json
    """
    source = "standard input" if str(file) == "-" else str(file)
    try:
        document: Json = json.loads(from_stdin() if str(file) == "-" else file.read_bytes())
    except OSError as error:
        raise storage_error(error, "reading", file) from error
    except (ValueError, RecursionError) as error:
        raise InvalidItemError([f"{source} is not a JSON document: {error}"]) from error
    with run.open(create=True) as memory:
        done = memory.catalog.bring_in(document, agent=agent)
        memory.write_catalog()
    return CommandResult({"items": done}, f"imported {counted(done, 'item')} from {source}\n")


def _fields(**given: Any) -> dict[str, Any]:
    """Return the fields that are not None; parse priority and expiry if possible, else leave them to the validation."""
    fields = {name: value for name, value in given.items() if value is not None}
    if re.fullmatch(r"-?\d{1,9}", str(given["priority"])):
        fields["priority"] = int(fields["priority"])
    if "expires" in fields:
        fields["expires"] = _expiry(fields["expires"].strip())
    return fields


def _expiry(given: str) -> datetime | str | None:
    """Parse a local time, a duration from now, or `never` (None); return other text unchanged, to be rejected later."""
    from orchestra_mem.core.periods import parse_span

    if given == "never":
        return None
    try:
        if given[-1:] in ("h", "d", "w") and (span := parse_span(given)) is not None:
            return datetime.now(UTC) + span
        return datetime.fromisoformat(given).astimezone(UTC)
    except (ValueError, OverflowError):
        return given


@contextmanager
def _usage_faults() -> Iterator[None]:
    """Turn an `InvalidItemError`, which lists all faults of an item, into a usage error."""
    try:
        yield
    except InvalidItemError as error:
        raise BadParameter(str(error)) from error


audit_group = add_group("audit", "Agents")

OfAgentOption = Annotated[str | None, option("--agent NAME", 'Only what this agent did; "": the memory\'s owner.')]


@command(of=audit_group, bare=True)
@command(of=audit_group)
def entries(
    memory: OrchestratorContextManager,
    agent: OfAgentOption = None,
    call: Annotated[
        str | None, option("--call NAME", "Only this kind of access, for example inject or update.")
    ] = None,
    outcome: Annotated[AccessOutcome | None, option("--outcome OUTCOME", "Only this outcome.")] = None,
    item: Annotated[str | None, option("--item ID", "Only accesses to this item, for example mem_…")] = None,
    since: SinceOption = None,
    limit: LimitOption = 50,
) -> CommandResult:
    """List who looked at the catalog and who changed it, newest first.

    Example: orchestra-mem audit entries --agent reviewer --outcome refused --since 7d
    """
    where = AuditFilter(agent=agent, call=call, outcome=outcome, item=item, since=since, limit=limit or None)
    found = memory.audit(where)
    return CommandResult(found, lambda: recall_views.audit_view(found), notes=up_to(found, limit))


@command(of=audit_group)
def injections(
    memory: OrchestratorContextManager,
    agent: OfAgentOption = None,
    since: SinceOption = None,
    unused: Annotated[
        int, option("--unused N", "Warn if an item was injected at least N times since its last use.", min=1)
    ] = 10,
    share: Annotated[
        float,
        option(
            "--share SHARE", "Warn if such an item has at least this share of the agent's tokens, 0 to 1.", min=0, max=1
        ),
    ] = 0.25,
) -> CommandResult:
    """Count how often each item was put into the messages of each agent, and warn of items given too often.

    Example: orchestra-mem audit injections --since 7d --unused 5
    """
    found = memory.catalog.audit.injections(agent, since, unused=unused, share=share)
    return CommandResult(found, lambda: recall_views.injections_view(found))
