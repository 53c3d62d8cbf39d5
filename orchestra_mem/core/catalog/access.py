"""Access control: which items and records an agent may see and change. All interfaces use this module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from orchestra_mem.catalog_types import GLOBAL
from orchestra_mem.errors import AccessDeniedError
from orchestra_mem.search_types import SearchFilter

OWNER = ""
"""The owner of the memory: the person at the command line or the program that opened it. Has all permissions."""

EVERYBODY = "*"


@dataclass(frozen=True, slots=True)
class Grants:
    """The agents whose items an agent may read or write in addition to its own; `*` means all agents."""

    read: frozenset[str] = frozenset()
    write: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Access:
    """The permissions of all agents. An agent sees its own items, global items, and the items that it is granted.

    With `strict` the same rules apply to operations, facts, and search results from them.
    """

    grants: Mapping[str, Grants] = field(default_factory=dict)
    strict: bool = False

    def readable(self, agent: str) -> frozenset[str] | None:
        """Return the agents whose items an agent may see; None means all agents."""
        granted = self.grants.get(agent, Grants()).read
        return None if agent == OWNER or EVERYBODY in granted else granted | {agent, GLOBAL}

    def may_read(self, agent: str, whose: str | None) -> bool:
        """Check whether `agent` may see items of the agent `whose`; None stands for items without an agent."""
        allowed = self.readable(agent)
        return allowed is None or (whose is not None and whose in allowed)

    def sees(self, agent: str, whose: str | None) -> bool:
        """Check whether `agent` may see records of the agent `whose`: with `strict` as `may_read`, else always."""
        return not self.strict or self.may_read(agent, whose)

    def within(self, where: SearchFilter, *agents: str) -> SearchFilter:
        """Narrow a search to the records that all of the given agents may see.

        Raises:
            AccessDeniedError: With `strict`, the search names an agent whose records one of them may not see.
        """
        for agent in agents:
            if self.strict and where.agent is not None:
                self.check_read(agent, (where.agent,))
            if (readable := self.readable(agent)) is not None:
                both = readable if where.readable is None else readable & where.readable
                where = replace(where, readable=both, strict=self.strict)
        return where

    def check_read(self, agent: str, whose: Iterable[str]) -> None:
        """Check that `agent` may see the items of the agents `whose`.

        Raises:
            AccessDeniedError: `agent` may not see them; the message names the missing permission.
        """
        allowed = self.readable(agent)
        if allowed is not None:
            _check(agent, "see", "read", {*whose} - allowed)

    def check_write(self, agent: str, whose: Iterable[str]) -> None:
        """Check that `agent` may change items of the agents `whose`; raises the same error as `check_read`."""
        granted = self.grants.get(agent, Grants()).write
        if agent != OWNER and EVERYBODY not in granted:
            _check(agent, "change", "write", {*whose} - granted - {agent})


def _check(agent: str, doing: str, permission: str, refused: Iterable[str]) -> None:
    if others := sorted(refused):
        raise AccessDeniedError(
            f"agent {agent!r} may not {doing} items of {', '.join(map(repr, others))}; "
            f"to allow it, grant it {permission}: [{', '.join(others)}] in `catalog.permissions`"
        )
