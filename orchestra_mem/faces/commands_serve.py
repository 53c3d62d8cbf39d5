"""Commands that answer other programs: serve, serve token, mcp. What they are made of is loaded as they start."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import BadParameter, Option

from orchestra_mem import build
from orchestra_mem.errors import ServerError
from orchestra_mem.faces.caller import Caller
from orchestra_mem.faces.command import CommandResult, Invocation, command, command_group
from orchestra_mem.faces.mcp.client_files import McpClient, install

if TYPE_CHECKING:
    from orchestra_mem.faces.http.tokens import AccessTokens
    from orchestra_mem.settings import ServerSettings

group = command_group("serve", "Serve")
TokenFileOption = Annotated[
    Path | None,
    Option("--token-file", metavar="FILE", help="The file of the token, made if missing. Default: one in .obra."),
]


@command(of=group, bare=True)
def serve(
    run: Invocation,
    host: Annotated[str | None, Option("--host", metavar="HOST", help="Address to listen at. Default: as set.")] = None,
    port: Annotated[
        int | None,
        Option("--port", min=0, max=65_535, metavar="N", help="Port; 0: a free one. Default: as set."),
    ] = None,
    token_file: TokenFileOption = None,
) -> None:
    """Answer over HTTP, for programs and the browser, until Ctrl-C; makes a memory if there is none.

    Example: orchestra-mem serve --port 8377
    """
    from orchestra_mem.faces.http.tokens import TOKEN_VARIABLE, is_local

    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    settings = build.load_settings(run.project, os.environ).server.model_copy(update=given)
    if not (is_local(settings.host) or token_file or os.environ.get(TOKEN_VARIABLE)):
        raise BadParameter(
            f"other machines reach {settings.host}: give a token of your own by {TOKEN_VARIABLE} or --token-file",
            param_hint="--host",
        )
    ended_by = _serve(run, settings, token_file)
    if ended_by == signal.SIGINT:
        raise KeyboardInterrupt
    raise typer.Exit(128 + ended_by if ended_by else 0)


@command(of=group)
def token(
    run: Invocation,
    agent: Annotated[
        str | None, Option("--agent", metavar="NAME", help="For this agent, which then sees what is its own.")
    ] = None,
    token_file: TokenFileOption = None,
) -> CommandResult:
    """Print the token of the memory, or of an agent. A new one for all: delete the file and start the server again.

    Example: orchestra-mem serve token --agent reviewer
    """
    run.require_memory()
    tokens = _tokens(run, token_file)
    made = tokens.own if agent is None else tokens.of_agent(agent)
    return CommandResult({"agent": agent, "token": made}, f"{made}\n")


def _tokens(run: Invocation, file: Path | None) -> AccessTokens:
    from orchestra_mem.faces.http.tokens import load_tokens

    return load_tokens(run.project / build.HOME, os.environ, file)


def _serve(run: Invocation, settings: ServerSettings, token_file: Path | None) -> int:
    try:
        from orchestra_mem.faces.http.uvicorn_server import address_of, run_server, take_port
    except ImportError as error:
        raise ServerError(f"serve needs `pip install 'orchestra-mem[server]'`: {error}") from error
    with take_port(settings.host, settings.port) as listening, run.open(create=True) as memory:
        tokens, address = _tokens(run, token_file), address_of(listening)

        def started() -> None:
            if run.as_json:
                run.print_json({"url": address, "token": None if tokens.given else tokens.own})
            else:
                run.text(f"{address}/\n" if tokens.given else f"{address}/?token={tokens.own}\n")
            run.tell(f"serving the memory of {run.project}; Ctrl-C ends it")
            sys.stdout.flush()

        return run_server(memory, run.project, listening, tokens=tokens, settings=settings, started=started)


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
        return _write_entry(run, client, agent) if write else _print_entry(run, client, agent)
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


def _print_entry(run: Invocation, client: McpClient, agent: str | None) -> CommandResult:
    entry = client.entry(run.project, agent)
    note = f"put this into {client.file(run.project)}, or have it put there by --write"
    return CommandResult({client.section: {"orchestra-mem": entry}}, client.text(entry), notes=[note])


def _write_entry(run: Invocation, client: McpClient, agent: str | None) -> CommandResult:
    file, entry = client.file(run.project), client.entry(run.project, agent)
    before = install(client, file, entry)
    value = {"file": file, "changed": before != entry, "before": before, "entry": entry}
    if before == entry:
        return CommandResult(value, f"{file} has it already: nothing was changed\n")
    told = [] if before is None else [("before", before), ("now", entry)]
    notes = [f"{name}: {json.dumps(each, ensure_ascii=False)}" for name, each in told]
    return CommandResult(value, f"put into {file}\n", notes=notes)
