"""Say which agents' items an agent may see and change. The one place that every face goes through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from orchestra_mem.catalog_types import GLOBAL
from orchestra_mem.errors import AccessDeniedError

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

    def check_write(self, agent: str, whose: Iterable[str]) -> None:
        """Make sure that an agent may change items of these agents.

        Raises:
            AccessDeniedError: it may not; the missing permission is named.
        """
        granted = self.grants.get(agent, Grants()).write
        if agent == OWNER or EVERYBODY in granted:
            return
        for other in whose:
            if other != agent and other not in granted:
                raise AccessDeniedError(
                    f"agent {agent!r} may not change items of {other!r}; "
                    f"`catalog.permissions` would have to grant it write: [{other}]"
                )
