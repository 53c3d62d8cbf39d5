"""The command mcp: the memory for programs that speak the Model Context Protocol."""

from __future__ import annotations

import json
from typing import Annotated

from typer import BadParameter, Option

from orchestra_mem.errors import ServerError
from orchestra_mem.faces.caller import Caller
from orchestra_mem.faces.command import CommandResult, Invocation, command
from orchestra_mem.faces.mcp.client_files import McpClient, install


@command("Serve")
def mcp(
    run: Invocation,
    agent: Annotated[
        str | None, Option("--agent", metavar="NAME", help="Speak for this agent, which sees what is its own.")
    ] = None,
    client: Annotated[
        McpClient | None,
        Option("--install", metavar="CLIENT", help=f"Print the configuration for a client: {', '.join(McpClient)}."),
    ] = None,
    write: Annotated[bool, Option("--write", help="With --install: put it into the client's file as well.")] = False,
) -> CommandResult | None:
    """Answer an MCP client on stdin and stdout, until it closes stdin; makes a memory if there is none.

    Example: orchestra-mem mcp --install claude-code
    """
    if client is not None:
        return _write(run, client, agent) if write else _print(run, client, agent)
    if write:
        raise BadParameter("it goes with --install CLIENT", param_hint="--write")
    try:
        from orchestra_mem.faces.mcp.mcp_server import serve_stdio
    except ImportError as error:
        raise ServerError(f"mcp needs `pip install 'orchestra-mem[mcp]'`: {error}") from error
    with run.open(create=True) as memory:
        if agent is not None:
            try:
                agent = memory.as_agent(agent).agent
            except ValueError as error:
                raise BadParameter(str(error), param_hint="--agent") from None
        serve_stdio(Caller(memory, agent or ""))
    return None


def _print(run: Invocation, client: McpClient, agent: str | None) -> CommandResult:
    entry = client.entry(run.project, agent)
    note = f"put this into {client.file(run.project)}, or have it put there by --write"
    return CommandResult({client.section: {"orchestra-mem": entry}}, client.text(entry), notes=[note])


def _write(run: Invocation, client: McpClient, agent: str | None) -> CommandResult:
    file, entry = client.file(run.project), client.entry(run.project, agent)
    before = install(client, file, entry)
    value = {"file": file, "changed": before != entry, "before": before, "entry": entry}
    if before == entry:
        return CommandResult(value, f"{file} has it already: nothing was changed\n")
    told = [] if before is None else [("before", before), ("now", entry)]
    notes = [f"{name}: {json.dumps(each, ensure_ascii=False)}" for name, each in told]
    return CommandResult(value, f"put into {file}\n", notes=notes)
