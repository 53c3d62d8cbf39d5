"""Mixins that accept the calls of the source designs: dictionary-style records, per-tier calls, constructors.

A design's call that does not work here raises an error that names the replacement. `docs/names.md` lists all of them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self


@lru_cache
def replacement(name: str, owner: type | None = None) -> str:
    """Return what to use for a source design's name, in any spelling, that `owner` lacks; "" for other names."""
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().lstrip("_")
    if plain != name and hasattr(owner, plain):
        return plain
    import tomllib  # takes milliseconds, which every start would pay

    return str(tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).get(plain, ""))


class DesignNames:
    """Answers a source design's name that a class lacks with an error that says what to use."""

    __slots__ = ()

    if not TYPE_CHECKING:  # with `__getattr__`, a type checker would accept any name

        def __getattr__(self, name: str) -> object:
            if use := replacement(name, type(self)):
                raise AttributeError(f"{type(self).__name__} has no {name!r}: use {use}")
            return object.__getattribute__(self, name)  # raises the error of the failed access


class MappingAccess:
    """Dictionary-style read access to a record, as in the source designs: `operation["type"]`."""

    __slots__ = ()

    def _by_key(self) -> Mapping[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __getitem__(self, key: str) -> Any:
        """Return the value of a key."""
        found = self._by_key()
        if key not in found:
            raise KeyError(f"{type(self).__name__} has no {key!r}; it has {', '.join(found)}")
        return found[key]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys."""
        return iter(self._by_key())

    def keys(self) -> list[str]:
        """Return the keys, so that `dict(record)` works."""
        return list(self)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or the default."""
        return self._by_key().get(key, default)


class RejectsDesignArguments(DesignNames):
    """Rejects constructor calls with a source design's arguments; the error message shows the right call, `use`.

    Subclasses without their own `use` are not checked: they may take any arguments.
    """

    _use: ClassVar[str]

    def __init_subclass__(cls, *, use: str = "") -> None:
        """Store `use`, the replacement that the error message names."""
        if use:
            cls._use = use

    def __new__(cls, *arguments: object, **named: object) -> Self:
        """Check the arguments against `__init__`.

        Raises:
            TypeError: The arguments do not fit, or the first is a configuration mapping.
        """
        if "_use" not in vars(cls):
            return super().__new__(cls)
        try:
            inspect.signature(cls.__init__).bind(None, *arguments, **named)
            problem = "it takes no configuration" if arguments and isinstance(arguments[0], Mapping) else ""
        except TypeError as error:
            problem = str(error)
        if problem:
            raise TypeError(f"wrong arguments for {cls.__name__} ({problem}): use {cls._use}")
        return super().__new__(cls)


class _Memory(Protocol):
    def extract_facts(self) -> object: ...
    def refresh(self) -> object: ...
    def flush_session(self) -> Path | None: ...


class SessionCalls(RejectsDesignArguments):
    """A source design's calls on the session tier; here they act on the entire memory."""

    memory: _Memory

    def compress(self) -> None:
        """Spill working memory and compact the session document; see `refresh`."""
        self.memory.refresh()

    def archive(self) -> Path | None:
        """End the session and archive its document; see `flush_session`."""
        return self.memory.flush_session()


class EpisodicCalls(RejectsDesignArguments):
    """A source design's calls on the episodic tier; here they act on the entire memory."""

    memory: _Memory

    def update_project_state(self, session_data: Mapping[str, object] | None = None) -> None:
        """Rewrite the documents from the recorded operations; `session_data` is ignored. See `refresh`."""
        self.memory.refresh()
