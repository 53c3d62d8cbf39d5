"""Access tokens of the HTTP server: the owner's token, and agents' tokens, which are derived from it.

Only the owner's token is stored. Replacing it invalidates the tokens of all agents.
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

from orchestra_mem.catalog_types import GLOBAL, MAX_NAME_CHARS
from orchestra_mem.core.catalog.access import EVERYBODY, OWNER
from orchestra_mem.errors import ServerError, storage_error
from orchestra_mem.faces.records import written_aside

TOKEN_VARIABLE = "ORCHESTRA_MEM_TOKEN"
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
_FILE = "server/token"  # relative to the memory's folder
_LEAST_CHARS = 20
_PREFIX = "agent"


@dataclass(frozen=True, slots=True)
class AccessTokens:
    """The owner's token `own`, and agents' tokens. `given`: Whether the user chose `own`, by a file or the variable."""

    own: str = field(repr=False)
    given: bool = False

    def of_agent(self, agent: str) -> str:
        """Make the token of an agent: its name, and an HMAC of the name whose key is the owner's token.

        Raises:
            ServerError: The name is not allowed for an agent.
        """
        name = agent.strip()
        if name in (OWNER, GLOBAL, EVERYBODY) or not name.isprintable() or len(name) > MAX_NAME_CHARS:
            words = f"give up to {MAX_NAME_CHARS} printable characters and no reserved name, as in --agent reviewer"
            raise ServerError(f"invalid agent name {agent!r}; {words}")
        encoded = base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")
        digest = hmac.new(self.own.encode(), f"{_PREFIX}\0{name}".encode(), hashlib.sha256).hexdigest()
        return f"{_PREFIX}.{encoded}.{digest}"

    def holder(self, token: str) -> str | None:
        """Return the holder of a token: an agent's name, or `OWNER`; None if the token is invalid."""
        given = token.encode("utf-8", "surrogateescape")
        if hmac.compare_digest(given, self.own.encode()):
            return OWNER
        prefix, _, rest = token.partition(".")
        if prefix != _PREFIX:
            return None
        try:
            encoded = rest.partition(".")[0]
            agent = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
            right = self.of_agent(agent)
        except (ValueError, ServerError):
            return None
        return agent if hmac.compare_digest(given, right.encode()) else None


def is_local(host: str) -> bool:
    """Check whether a server that listens at this address is reachable from this machine only."""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host.lower() in LOCAL_HOSTS


def cookie_name(scope: Mapping[str, Any]) -> str:
    """Return the name of the token cookie. It contains the port, because browsers share cookies between ports."""
    return f"orchestra-mem-{scope['server'][1]}"


def load_tokens(home: Path, environment: Mapping[str, str], file: Path | None = None) -> AccessTokens:
    """Load the owner's token from a file or from the environment; create a missing file with a random token.

    Args:
        home: The memory's folder.
        environment: May hold the token as `ORCHESTRA_MEM_TOKEN`. Ignored if `file` is given.
        file: The token file; by default `server/token` in `home`.

    Raises:
        ServerError: The token is too short or not printable ASCII, or other users may read its file.
        StorageError: The file cannot be read or created.
    """
    if file is None and (token := environment.get(TOKEN_VARIABLE)):
        return AccessTokens(_usable(token, TOKEN_VARIABLE), given=True)
    path = file or home / _FILE
    try:
        if not path.exists():
            _make(path, ignored=file is None)
        if path.stat().st_mode & 0o077:
            mode = f"{path.stat().st_mode & 0o777:o}"
            raise ServerError(f"{path} has mode {mode}: other users can read the token; run chmod 600 on it")
        return AccessTokens(_usable(path.read_text("utf-8").strip(), str(path)), given=file is not None)
    except OSError as error:
        raise storage_error(error, "storing the token in", path) from error
    except UnicodeDecodeError as error:
        raise ServerError(f"{path} does not contain a token: it is not UTF-8 text") from error


def _make(path: Path, *, ignored: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if ignored:  # by git, even if the .gitignore of the memory lacks this folder
        (path.parent / ".gitignore").write_text("*\n", "utf-8")
    with written_aside(path, f"{secrets.token_urlsafe(32)}\n".encode(), 0o600) as aside:
        with suppress(OSError):  # another process has just made the file, or the file system has no hard links
            os.link(aside, path)
        if not os.path.lexists(path):
            os.replace(aside, path)


def _usable(token: str, place: str) -> str:
    if len(token) < _LEAST_CHARS or not token.isascii() or not token.isprintable() or " " in token:
        raise ServerError(
            f"{place} does not contain a valid token: give at least {_LEAST_CHARS} printable ASCII characters "
            "without spaces, such as the output of `openssl rand -hex 32`"
        )
    return token
