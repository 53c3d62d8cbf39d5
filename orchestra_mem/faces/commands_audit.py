"""Commands that tell who has looked at the catalog and who has changed it: audit, audit entries, audit injections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from orchestra_mem.catalog_types import AccessOutcome, AuditFilter
from orchestra_mem.faces.asking import SinceOption
from orchestra_mem.faces.command import (
    CommandResult,
    LimitOption,
    catalog_views,
    command,
    command_group,
    up_to,
)

if TYPE_CHECKING:
    from orchestra_mem.memory.manager import OrchestratorContextManager

group = command_group("audit", "Agents")
_OUTCOMES = ", ".join(AccessOutcome)

OfAgentOption = Annotated[
    str | None, Option("--agent", metavar="NAME", help='Only what this agent did; "": the memory\'s owner.')
]


@command(of=group, bare=True)
@command(of=group)
def entries(
    memory: OrchestratorContextManager,
    agent: OfAgentOption = None,
    call: Annotated[str | None, Option("--call", metavar="NAME", help="Only of this kind, as inject, update.")] = None,
    outcome: Annotated[AccessOutcome | None, Option("--outcome", metavar="OUTCOME", help=f"Only: {_OUTCOMES}.")] = None,
    item: Annotated[str | None, Option("--item", metavar="ID", help="Only of this item, as in mem_…")] = None,
    since: SinceOption = None,
    limit: LimitOption = 50,
) -> CommandResult:
    """List who looked at the catalog and who changed it, newest first.

    Example: orchestra-mem audit entries --agent reviewer --outcome refused --since 7d
    """
    where = AuditFilter(agent=agent, call=call, outcome=outcome, item=item, since=since, limit=limit or None)
    found = memory.audit(where)
    return CommandResult(found, lambda: catalog_views.audit_view(found), notes=up_to(found, limit))


@command(of=group)
def injections(
    memory: OrchestratorContextManager,
    agent: OfAgentOption = None,
    since: SinceOption = None,
    unused: Annotated[int, Option(metavar="N", min=1, help="Warn from so many times without use on.")] = 10,
    share: Annotated[
        float, Option(metavar="SHARE", min=0, max=1, help="Warn from this share of all tokens on.")
    ] = 0.25,
) -> CommandResult:
    """Count how often each item was put into the messages of each agent, and warn of what is given too often.

    Example: orchestra-mem audit injections --since 7d --unused 5
    """
    found = memory.catalog.audit.injections(agent, since, unused=unused, share=share)
    return CommandResult(found, lambda: catalog_views.injections_view(found))
