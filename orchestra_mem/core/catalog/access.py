"""Say what an agent may see and change. The one place that every face goes through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from orchestra_mem.catalog_types import GLOBAL
from orchestra_mem.errors import AccessDeniedError
from orchestra_mem.search_types import SearchFilter

OWNER = ""
"""Who owns the memory: the person at the command line, the program that opened it. Sees and changes all."""

EVERYBODY = "*"


@dataclass(frozen=True, slots=True)
class Grants:
    """What an agent may do beyond its own items: read those of some agents, write those of some; `*` for all."""

    read: frozenset[str] = frozenset()
    write: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Access:
    """Who may see and change what. An agent sees its own items, those of all agents, and what it is granted.

    With `strict` the same holds for operations, facts and what search finds of them.
    """

    grants: Mapping[str, Grants] = field(default_factory=dict)
    strict: bool = False

    def readable(self, agent: str) -> frozenset[str] | None:
        """Name the agents whose items an agent may see; None for all."""
        granted = self.grants.get(agent, Grants()).read
        return None if agent == OWNER or EVERYBODY in granted else granted | {agent, GLOBAL}

    def may_read(self, agent: str, whose: str | None) -> bool:
        """Tell whether an agent may see something of an agent, None for what is of none."""
        allowed = self.readable(agent)
        return allowed is None or (whose is not None and whose in allowed)

    def sees(self, agent: str, whose: str | None) -> bool:
        """Tell whether an agent may see what an agent recorded: with `strict` as for items, else always."""
        return not self.strict or self.may_read(agent, whose)

    def within(self, where: SearchFilter, *agents: str) -> SearchFilter:
        """Narrow a search to what all of these agents may see.

        Raises:
            AccessDeniedError: with `strict`, it asks for another agent by name.
        """
        for agent in agents:
            if self.strict and where.agent is not None:
                self.check_read(agent, (where.agent,))
            if (readable := self.readable(agent)) is not None:
                both = readable if where.readable is None else readable & where.readable
                where = replace(where, readable=both, strict=self.strict)
        return where

    def check_read(self, agent: str, whose: Iterable[str]) -> None:
        """Make sure that an agent may see what is of these agents.

        Raises:
            AccessDeniedError: it may not; the missing permission is named.
        """
        allowed = self.readable(agent)
        if allowed is not None:
            _check(agent, "see", "read", {*whose} - allowed)

    def check_write(self, agent: str, whose: Iterable[str]) -> None:
        """Make sure that an agent may change items of these agents; see `check_read`."""
        granted = self.grants.get(agent, Grants()).write
        if agent != OWNER and EVERYBODY not in granted:
            _check(agent, "change", "write", {*whose} - granted - {agent})


def _check(agent: str, doing: str, permission: str, refused: Iterable[str]) -> None:
    if others := sorted(refused):
        raise AccessDeniedError(
            f"agent {agent!r} may not {doing} what is of {', '.join(map(repr, others))}; "
            f"`catalog.permissions` would have to grant it {permission}: [{', '.join(others)}]"
        )
