"""A document's text as bytes and back: what is no UTF-8 comes back as it was."""

from __future__ import annotations

import os


def encode(text: str) -> bytes:
    """The bytes of a text."""
    return text.encode("utf-8", "surrogateescape")


def decode(data: bytes) -> str:
    """The text of some bytes, whatever they are."""
    return data.decode("utf-8", "surrogateescape")


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of some bytes, however little the system takes at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
