"""What lets in those who hold a source design: its dictionaries, its calls on one tier, its constructors.

Mixins for the classes whose names the designs have. A call that cannot be taken as it stands raises an error that names
what to use. `docs/names.md` has the whole table.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self


class ReadByKey:
    """Lets a record be read as the dictionary that a design has in its place: `operation["type"]`."""

    __slots__ = ()

    def _by_key(self) -> Mapping[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __getitem__(self, key: str) -> Any:
        """Give what stands under a key."""
        found = self._by_key()
        if key not in found:
            raise KeyError(f"{type(self).__name__} has no {key!r}; it has {', '.join(found)}")
        return found[key]

    def __iter__(self) -> Iterator[str]:
        """Give the keys."""
        return iter(self._by_key())

    def keys(self) -> list[str]:
        """Give the keys, so that `dict(record)` works."""
        return list(self)

    def get(self, key: str, default: Any = None) -> Any:
        """Give what stands under a key, or the default."""
        return self._by_key().get(key, default)


class MadeOtherwise:
    """Tells those who call a constructor with a design's arguments what to use: the class's `use`.

    What programs derive from such a class takes what arguments it likes.
    """

    _use: ClassVar[str]

    def __init_subclass__(cls, *, use: str = "") -> None:
        """Take down what is told."""
        if use:
            cls._use = use

    def __new__(cls, *arguments: object, **named: object) -> Self:
        """Make sure that the arguments are those of this class.

        Raises:
            TypeError: they are not; its message says what to use.
        """
        if "_use" not in vars(cls):
            return super().__new__(cls)
        try:
            inspect.signature(cls.__init__).bind(None, *arguments, **named)
            problem = "a configuration is no argument of it" if arguments and isinstance(arguments[0], Mapping) else ""
        except TypeError as error:
            problem = str(error)
        if problem:
            raise TypeError(f"{cls.__name__} is not made like this ({problem}): use {cls._use}")
        return super().__new__(cls)


class _Memory(Protocol):
    def facts(self, *, limit: int) -> object: ...
    def refresh(self) -> object: ...
    def flush_session(self) -> Path | None: ...


class SessionCalls(MadeOtherwise):
    """What a design asks of the session's tier, and takes the whole memory here."""

    memory: _Memory

    def compress(self) -> None:
        """Spill, and bring the document within its size; see `refresh`."""
        self.memory.refresh()

    def archive(self) -> Path | None:
        """End the session and move its document into the archive; see `flush_session`."""
        return self.memory.flush_session()


class EpisodicCalls(MadeOtherwise):
    """What a design asks of the episodic tier, and takes the whole memory here."""

    memory: _Memory

    def update_project_state(self, session_data: Mapping[str, object] | None = None) -> None:
        """Write the documents anew from what is recorded, not from `session_data`; see `refresh`."""
        self.memory.refresh()
