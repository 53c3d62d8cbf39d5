"""Look at addresses of servers, and show of them and of other values what people may see."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

# Of a value that is wrong this much is shown.
_SHOWN_CHARS = 60


_PART = r"(?:[^:@/?#%\s]|%[0-9A-Fa-f]{2})*"
_DATABASE = re.compile(rf"postgres(?:ql)?://(?:{_PART}(?::{_PART})?@)?[^@/?#]*(?:/{_PART})?(?:\?[^@#]*)?")


def without_user(address: str) -> str:
    """Hide the name and the password in an address, a mistyped one too: all before its last @."""
    return re.sub(r"^([a-z]+://)?.*@", r"\1***@", address, flags=re.IGNORECASE | re.DOTALL)


def clipped(text: str) -> str:
    """Quote a text, of a long one the beginning."""
    more = len(text) - _SHOWN_CHARS
    return f"{text[:_SHOWN_CHARS]!r} and {more} more characters" if more > 0 else repr(text)


def address_fault(address: str) -> str:
    """Say why no server can be at `address`, without the name and the password in it; empty where one can."""
    try:
        parts = urlsplit(address)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and address.isprintable():
            return ""
    except ValueError:  # its words may quote a piece of a password
        pass
    return (
        f"{clipped(without_user(address))} is no address of a server: give one as http://127.0.0.1:8080 or "
        "http://[::1]:8080, its port up to 65535"
    )


def database_address(text: str) -> str:
    """Return the address of a PostgreSQL database, or nothing.

    Raises:
        ValueError: it is another. It is not shown, as it may hold a password.
    """
    if text and not text.startswith(("postgresql://", "postgres://")):
        raise ValueError("must begin with postgresql://")
    if text and not _DATABASE.fullmatch(text):
        raise ValueError("must have the special characters of a user or a password as %40 for @, %2F for / and so on")
    return text


def checked_schema(name: str) -> str:
    """Return the name of a schema.

    Raises:
        ValueError: no schema may have it without quotes.
    """
    if not re.fullmatch("[a-z_][a-z0-9_]{0,62}", name):
        raise ValueError("must be small letters, digits and _, 1 to 63 of them")
    return name
