"""The command mcp: the memory for programs that speak the Model Context Protocol."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import Annotated, Any

from typer import BadParameter, Option

from orchestra_mem.errors import ServerError
from orchestra_mem.faces.command import CommandResult, Invocation, command


class McpClient(StrEnum):
    """A program whose configuration can be printed."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CURSOR = "cursor"
    VS_CODE = "vs-code"


_FILES = {
    McpClient.CLAUDE_CODE: ".mcp.json in the project's folder",
    McpClient.CLAUDE_DESKTOP: "claude_desktop_config.json, which Settings > Developer > Edit Config opens",
    McpClient.CURSOR: ".cursor/mcp.json in the project's folder",
    McpClient.VS_CODE: ".vscode/mcp.json in the project's folder",
}


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
) -> CommandResult | None:
    """Answer an MCP client on stdin and stdout, until it closes stdin; makes a memory if there is none.

    Example: orchestra-mem mcp --install claude-code
    """
    if client is not None:
        made = _configuration(run, client, agent)
        return CommandResult(made, f"{json.dumps(made, indent=2)}\n", notes=[f"put this into {_FILES[client]}"])
    try:
        from orchestra_mem.faces.mcp.mcp_server import serve_stdio
    except ImportError as error:
        raise ServerError(f"mcp needs `pip install 'orchestra-mem[mcp]'`: {error}") from error
    from orchestra_mem.faces.caller import Caller

    with run.open(create=True) as memory:
        if agent is not None:
            try:
                agent = memory.as_agent(agent).agent
            except ValueError as error:
                raise BadParameter(str(error), param_hint="--agent") from None
        serve_stdio(Caller(memory, agent or ""))
    return None


def _configuration(run: Invocation, client: McpClient, agent: str | None) -> dict[str, Any]:
    """Make the part of a client's configuration that starts this program over this project."""
    arguments = ["-m", "orchestra_mem", "mcp", "--project", str(run.project)]
    server: dict[str, Any] = {"command": sys.executable, "args": arguments + (["--agent", agent] if agent else [])}
    if client is McpClient.VS_CODE:
        return {"servers": {"orchestra-mem": {"type": "stdio", **server}}}
    return {"mcpServers": {"orchestra-mem": server}}
