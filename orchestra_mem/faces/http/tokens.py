"""AccessTokens: the memory's own, and those of agents, which are made of it and carry the agent's name.

Nothing is stored but the memory's own token: another one makes all agents' tokens void.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from orchestra_mem.catalog_types import GLOBAL
from orchestra_mem.core.catalog.access import EVERYBODY, OWNER
from orchestra_mem.errors import ServerError, storage_error

TOKEN_VARIABLE = "ORCHESTRA_MEM_TOKEN"
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
_FILE = "server/token"  # below the memory's folder
_LEAST_CHARS = 20
_PREFIX = "agent"


@dataclass(frozen=True, slots=True)
class AccessTokens:
    """Makes and reads tokens; `given` says whether a person chose the memory's own, by a file or a variable."""

    own: str = field(repr=False)
    given: bool = False

    def of_agent(self, agent: str) -> str:
        """Make the token of an agent: its name, and a digest that only who has the memory's own token can make.

        Raises:
            ServerError: no agent may have this name.
        """
        name = agent.strip()
        if name in (OWNER, GLOBAL, EVERYBODY) or not name.isprintable():
            raise ServerError(f"no agent can be called {agent!r}; give its name in a line, as in --agent reviewer")
        told = base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")
        digest = hmac.new(self.own.encode(), f"{_PREFIX}\0{name}".encode(), hashlib.sha256).hexdigest()
        return f"{_PREFIX}.{told}.{digest}"

    def holder(self, token: str) -> str | None:
        """Say whose token this is: an agent's name, `OWNER` for the memory's own; None where nobody's."""
        given = token.encode("utf-8", "surrogateescape")
        if hmac.compare_digest(given, self.own.encode()):
            return OWNER
        prefix, _, rest = token.partition(".")
        if prefix != _PREFIX:
            return None
        try:
            told = rest.partition(".")[0]
            agent = base64.urlsafe_b64decode(told + "=" * (-len(told) % 4)).decode()
            right = self.of_agent(agent)
        except (ValueError, ServerError):
            return None
        return agent if hmac.compare_digest(given, right.encode()) else None


def is_local(host: str) -> bool:
    """Tell whether only this machine reaches an address to listen at."""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host.lower() in LOCAL_HOSTS


def cookie_name(scope: Mapping[str, Any]) -> str:
    """Name the cookie that a browser keeps the token in: browsers do not keep those of two ports apart."""
    return f"orchestra-mem-{scope['server'][1]}"


def load_tokens(home: Path, environment: Mapping[str, str], file: Path | None = None) -> AccessTokens:
    """Take the token from the environment, else from a file; where that is not there yet, make both.

    Args:
        home: the memory's folder.
        environment: may have the token as `ORCHESTRA_MEM_TOKEN`.
        file: a file of the caller's choice; by default one below `home`.

    Raises:
        ServerError: the token cannot be used, or others may read its file.
        StorageError: the file cannot be read or made.
    """
    if file is None and (token := environment.get(TOKEN_VARIABLE)):
        return AccessTokens(_usable(token, TOKEN_VARIABLE), given=True)
    path = file or home / _FILE
    try:
        if not path.exists():
            _make(path, ignored=file is None)
        if os.name == "posix" and path.stat().st_mode & 0o077:
            mode = f"{path.stat().st_mode & 0o777:o}"
            raise ServerError(f"{path} has mode {mode}: other users may read the token; run chmod 600 on it")
        return AccessTokens(_usable(path.read_text("utf-8").strip(), str(path)), given=file is not None)
    except OSError as error:
        raise storage_error(error, "keeping the token in", path) from error
    except UnicodeDecodeError as error:
        raise ServerError(f"{path} holds no token: it is no text") from error


def _make(path: Path, *, ignored: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if ignored:  # by git: not every memory's own .gitignore names this folder
        (path.parent / ".gitignore").write_text("*\n", "utf-8")
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as made:
        made.write(f"{secrets.token_urlsafe(32)}\n")


def _usable(token: str, place: str) -> str:
    if len(token) < _LEAST_CHARS or not token.isascii() or not token.isprintable() or " " in token:
        raise ServerError(
            f"{place} holds no token that can be used: give at least {_LEAST_CHARS} printable characters of ASCII "
            "without blanks, as `openssl rand -hex 32` makes them"
        )
    return token
