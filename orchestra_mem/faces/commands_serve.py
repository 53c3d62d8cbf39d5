"""Commands that serve other programs: serve, serve token, mcp. They import the server modules only when they run."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import BadParameter

from orchestra_mem import build
from orchestra_mem.errors import ServerError, storage_error
from orchestra_mem.faces.command import CommandResult, Invocation, add_group, command, option
from orchestra_mem.faces.records import Caller, written_aside
from orchestra_mem.serialize import readable_json, reject_duplicate_keys

if TYPE_CHECKING:
    from orchestra_mem.faces.http.tokens import AccessTokens

_NAME = "orchestra-mem"


class McpClient(StrEnum):
    """MCP clients whose configuration `mcp --install` can print and write."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CURSOR = "cursor"
    VS_CODE = "vs-code"
    CODEX = "codex"

    @property
    def section(self) -> str:
        """The key that holds the servers in the client's configuration file."""
        return {McpClient.VS_CODE: "servers", McpClient.CODEX: "mcp_servers"}.get(self, "mcpServers")

    def file(self, project: Path) -> Path:
        """Return the client's configuration file: the project's, or the user's if a client has no project file."""
        if self is McpClient.CODEX:
            return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "config.toml"
        if self is McpClient.CLAUDE_DESKTOP:
            from platformdirs import user_config_path

            return user_config_path("Claude", appauthor=False, roaming=True) / "claude_desktop_config.json"
        folder = {McpClient.CURSOR: ".cursor/mcp.json", McpClient.VS_CODE: ".vscode/mcp.json"}
        return project / folder.get(self, ".mcp.json")

    def entry(self, project: Path, agent: str | None) -> dict[str, Any]:
        """Build the configuration entry that starts this program for a project."""
        arguments = ["-m", "orchestra_mem", "mcp", "--project", str(project)] + (["--agent", agent] if agent else [])
        kind = {"type": "stdio"} if self is McpClient.VS_CODE else {}
        return {**kind, "command": sys.executable, "args": arguments}

    def text(self, entry: dict[str, Any]) -> str:
        """Format an entry for the client's file, as JSON or TOML."""
        if self is not McpClient.CODEX:
            return f"{readable_json({self.section: {_NAME: entry}}, indent=2)}\n"
        lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in entry.items()]
        return f"[{self.section}.{_NAME}]\n{''.join(lines)}"


def install(client: McpClient, file: Path, entry: dict[str, Any]) -> Any:
    """Put this program's entry into a client's file, and keep all other contents. Return the previous entry, or None.

    Raises:
        ServerError: The file cannot be edited without loss, for example JSON with comments; nothing is written.
        StorageError: The file cannot be read or written.
    """
    put = _into_toml if client is McpClient.CODEX else _into_json
    try:
        text = file.read_bytes().decode("utf-8") if file.exists() else ""
        before, made = put(text, client, entry)
        if before != entry:
            mode = file.stat().st_mode & 0o777 if file.exists() else 0o666
            with written_aside(file.resolve(), made.encode("utf-8"), mode) as aside:
                os.replace(aside, file.resolve())
    except OSError as error:
        raise storage_error(error, "changing", file) from error
    except (ValueError, RecursionError) as error:
        problem = getattr(error, "problem", error)
        raise ServerError(f"{file} was not changed, add the entry by hand: {problem}") from error
    return before


def _into_json(text: str, client: McpClient, entry: dict[str, Any]) -> tuple[Any, str]:
    """Return the previous entry, or None, and the text with the new entry."""
    try:
        found = json.loads(text, object_pairs_hook=reject_duplicate_keys) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON, or has comments, which would be lost: {error}") from error
    servers = found.setdefault(client.section, {}) if isinstance(found, dict) else None
    if not isinstance(servers, dict):
        raise ValueError(f"{client.section!r} in it is not an object of servers")
    before, servers[_NAME] = servers.get(_NAME), entry
    indent = re.match(r"\s*{\s*?\n([ \t]+)", text)
    return before, json.dumps(found, indent=indent[1] if indent else 2, ensure_ascii=text.isascii()) + "\n"


def _into_toml(text: str, client: McpClient, entry: dict[str, Any]) -> tuple[Any, str]:
    """Return the previous entry, or None, and the text with the new entry appended."""
    import tomllib

    servers = tomllib.loads(text).get(client.section, {})
    if not isinstance(servers, dict):
        raise ValueError(f"{client.section!r} in it is not a table of servers")
    before = servers.get(_NAME)
    if before not in (None, entry):
        raise ValueError(f"it already has a different [{client.section}.{_NAME}]")
    made = f"{text.rstrip()}\n\n{client.text(entry)}".lstrip()
    if before is None and tomllib.loads(made)[client.section][_NAME] != entry:
        raise ValueError("the entry cannot be written as TOML")
    return before, made


group = add_group("serve", "Serve")
TokenFileOption = Annotated[
    Path | None, option("--token-file FILE", "The file with the token, created if missing. Default: a file in .obra.")
]


@command(of=group, bare=True)
def serve(
    run: Invocation,
    host: Annotated[
        str | None, option("--host HOST", "Address to listen on. Default: the setting server.host.")
    ] = None,
    port: Annotated[
        int | None, option("--port N", "Port; 0: any free port. Default: the setting server.port.", min=0, max=65_535)
    ] = None,
    token_file: TokenFileOption = None,
) -> None:
    """Serve the memory over HTTP, for programs and the browser, until Ctrl-C; creates a memory if there is none.

    Example: orchestra-mem serve --port 8377
    """
    from orchestra_mem.faces.http.tokens import TOKEN_VARIABLE, is_local

    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    settings = run.settings.server.model_copy(update=given)
    if not (is_local(settings.host) or token_file or os.environ.get(TOKEN_VARIABLE)):
        raise BadParameter(
            f"{settings.host} can be reached from other machines: set a token with {TOKEN_VARIABLE} or --token-file",
            param_hint="--host",
        )
    try:
        from orchestra_mem.faces.http.application import address_of, run_server, take_port
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

        ended_by = run_server(memory, run.project, listening, tokens=tokens, settings=settings, started=started)
    if ended_by == signal.SIGINT:
        raise KeyboardInterrupt
    raise typer.Exit(128 + ended_by if ended_by else 0)


@command(of=group)
def token(
    run: Invocation,
    agent: Annotated[
        str | None,
        option("--agent NAME", "The token of this agent, which gives access only to what the agent may see."),
    ] = None,
    token_file: TokenFileOption = None,
) -> CommandResult:
    """Print the access token of the memory or of an agent. To renew all, delete the token file and restart the server.

    Example: orchestra-mem serve token --agent reviewer
    """
    run.require_memory()
    tokens = _tokens(run, token_file)
    made = tokens.own if agent is None else tokens.of_agent(agent)
    return CommandResult({"agent": agent, "token": made}, f"{made}\n")


def _tokens(run: Invocation, file: Path | None) -> AccessTokens:
    from orchestra_mem.faces.http.tokens import load_tokens

    is_missing = file is not None and not file.exists()
    tokens = load_tokens(run.project / build.HOME, os.environ, file)
    if is_missing:
        run.tell(f"{file} did not exist: it now has a new random token")
    return tokens


@command("Serve")
def mcp(
    run: Invocation,
    agent: Annotated[str | None, option("--agent NAME", "Act as this agent, with its permissions.")] = None,
    client: Annotated[McpClient | None, option("--install CLIENT", "Print the configuration for a client.")] = None,
    write: Annotated[bool, option("--write", "With --install: also write it to the client's file.")] = False,
) -> CommandResult | None:
    """Serve an MCP client on stdin and stdout until it closes stdin; creates a memory if there is none.

    Example: orchestra-mem mcp --install claude-code
    """
    if client is not None:
        return _install(run, client, agent, write=write)
    if write:
        raise BadParameter("it needs --install CLIENT", param_hint="--write")
    try:
        from orchestra_mem.faces.mcp_server import serve_stdio
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


def _install(run: Invocation, client: McpClient, agent: str | None, *, write: bool) -> CommandResult:
    file, entry = client.file(run.project), client.entry(run.project, agent)
    if not write:
        note = f"add this to {file}, or let --write add it"
        return CommandResult({client.section: {_NAME: entry}}, client.text(entry), notes=[note])
    before = install(client, file, entry)
    value = {"file": file, "changed": before != entry, "before": before, "entry": entry}
    if before == entry:
        return CommandResult(value, f"{file} already has this entry: nothing was changed\n")
    entries = [] if before is None else [("before", before), ("now", entry)]
    notes = [f"{name}: {json.dumps(each, ensure_ascii=False)}" for name, each in entries]
    return CommandResult(value, f"written to {file}\n", notes=notes)
