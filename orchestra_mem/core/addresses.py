"""Validate server addresses, database URLs and schema names, and shorten or mask invalid values for error messages."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_SHOWN_CHARS = 60  # longest excerpt of an invalid value in an error message
_PART = r"(?:[^:@/?#%\s]|%[0-9A-Fa-f]{2})*"
_DATABASE = re.compile(rf"postgres(?:ql)?://(?:{_PART}(?::{_PART})?@)?[^@/?#]*(?:/{_PART})?(?:\?[^@#]*)?")


def mask_credentials(address: str) -> str:
    """Replace everything between the scheme and the last `@` by `***`, also in a malformed address."""
    return re.sub(r"^([a-z]+://)?.*@", r"\1***@", address, flags=re.IGNORECASE | re.DOTALL)


def clipped(text: str) -> str:
    """Quote a text; a long text is shortened to its beginning and the number of omitted characters."""
    more = len(text) - _SHOWN_CHARS
    return f"{text[:_SHOWN_CHARS]!r} and {more} more characters" if more > 0 else repr(text)


def address_fault(address: str) -> str:
    """Describe what is wrong with an HTTP address, without its user name and password; empty if it is valid."""
    try:
        parts = urlsplit(address)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and address.isprintable():
            return ""
    except ValueError:  # its message is not passed on, as it may quote part of a password
        pass
    return (
        f"{clipped(mask_credentials(address))} is not a server address: use a form such as "
        "http://127.0.0.1:8080 or http://[::1]:8080, with a port of at most 65535"
    )


def database_address(text: str) -> str:
    """Return `text` if it is empty or the URL of a PostgreSQL database.

    Raises:
        ValueError: `text` is neither. The message does not quote it, because it may hold a password.
    """
    if text and not text.startswith(("postgresql://", "postgres://")):
        raise ValueError("must begin with postgresql://")
    if text and not _DATABASE.fullmatch(text):
        raise ValueError(
            "must percent-encode special characters in the user name and password: %40 for @, %2F for / and so on"
        )
    return text


def checked_schema(name: str) -> str:
    """Return `name` if it is a valid database schema name that needs no quotes.

    Raises:
        ValueError: The name is invalid.
    """
    if not re.fullmatch("[a-z_][a-z0-9_]{0,62}", name):
        raise ValueError("must be 1 to 63 lower-case letters, digits or underscores, and must not begin with a digit")
    return name
