"""The configuration files of MCP clients: where they are, what starts this program there, and how that is put in."""

from __future__ import annotations

import json
import os
import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any

from orchestra_mem.errors import ServerError, storage_error
from orchestra_mem.serialize import unrepeated

_NAME = "orchestra-mem"


class McpClient(StrEnum):
    """A program whose configuration can be printed and written."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CURSOR = "cursor"
    VS_CODE = "vs-code"
    CODEX = "codex"

    @property
    def section(self) -> str:
        """The key under which its file has the servers."""
        return {McpClient.VS_CODE: "servers", McpClient.CODEX: "mcp_servers"}.get(self, "mcpServers")

    def file(self, project: Path) -> Path:
        """Give the file that the client reads: in the project, or the user's where it reads none there."""
        if self is McpClient.CODEX:
            return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "config.toml"
        if self is McpClient.CLAUDE_DESKTOP:
            from platformdirs import user_config_path

            return user_config_path("Claude", appauthor=False, roaming=True) / "claude_desktop_config.json"
        folder = {McpClient.CURSOR: ".cursor/mcp.json", McpClient.VS_CODE: ".vscode/mcp.json"}
        return project / folder.get(self, ".mcp.json")

    def entry(self, project: Path, agent: str | None) -> dict[str, Any]:
        """Make what starts this program over a project."""
        arguments = ["-m", "orchestra_mem", "mcp", "--project", str(project)] + (["--agent", agent] if agent else [])
        kind = {"type": "stdio"} if self is McpClient.VS_CODE else {}
        return {**kind, "command": sys.executable, "args": arguments}

    def text(self, entry: dict[str, Any]) -> str:
        """Write an entry as the file has it."""
        if self is not McpClient.CODEX:
            return f"{json.dumps({self.section: {_NAME: entry}}, indent=2)}\n"
        lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in entry.items()]
        return f"[{self.section}.{_NAME}]\n{''.join(lines)}"


def install(client: McpClient, file: Path, entry: dict[str, Any]) -> Any:
    """Put the entry of this program into a client's file, whose other contents stay; gives the entry that it had.

    Raises:
        ServerError: the file is none that can be kept; nothing is written.
        StorageError: it cannot be read or written.
    """
    put = _into_toml if client is McpClient.CODEX else _into_json
    try:
        text = file.read_bytes().decode("utf-8") if file.exists() else ""
        before, made = put(text, client, entry)
        if before != entry:
            _replace(file.resolve(), made.encode("utf-8"))
    except OSError as error:
        raise storage_error(error, "changing", file) from error
    except (ValueError, RecursionError) as error:
        problem = getattr(error, "problem", error)
        raise ServerError(f"{file} is left as it is, put the entry in by hand: {problem}") from error
    return before


def _into_json(text: str, client: McpClient, entry: dict[str, Any]) -> tuple[Any, str]:
    """Give the entry that a file has, and the file with this one."""
    try:
        found = json.loads(text, object_pairs_hook=unrepeated) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON, or has comments, which would be lost: {error}") from error
    servers = found.setdefault(client.section, {}) if isinstance(found, dict) else None
    if not isinstance(servers, dict):
        raise ValueError(f"it has no object {client.section!r} of servers")
    before, servers[_NAME] = servers.get(_NAME), entry
    indent = re.match(r"\s*{\s*?\n([ \t]+)", text)
    return before, json.dumps(found, indent=indent[1] if indent else 2, ensure_ascii=text.isascii()) + "\n"


def _into_toml(text: str, client: McpClient, entry: dict[str, Any]) -> tuple[Any, str]:
    """Give the entry that a file has, and the file with this one at its end."""
    import tomllib

    servers = tomllib.loads(text).get(client.section, {})
    if not isinstance(servers, dict):
        raise ValueError(f"it has no table {client.section!r} of servers")
    before = servers.get(_NAME)
    if before not in (None, entry):
        raise ValueError(f"it has another [{client.section}.{_NAME}]")
    made = f"{text.rstrip()}\n\n{client.text(entry)}".lstrip()
    if before is None and tomllib.loads(made)[client.section][_NAME] != entry:
        raise ValueError("the entry cannot be written as TOML")
    return before, made


def _replace(file: Path, data: bytes) -> None:
    """Write a file whole or not at all; who may read it stays."""
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o666
    try:
        with open(aside, "wb", opener=lambda path, flags: os.open(path, flags, mode)) as made:
            made.write(data)
            made.flush()
            os.fsync(made.fileno())
        os.replace(aside, file)
    finally:
        aside.unlink(missing_ok=True)
