"""What a categorization says of an orchestration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from orchestra_mem.design_names import ReadByKey

RULE_BASED = "rule-based"
"""The `source` of a categorization that rules made."""


class Category(StrEnum):
    """What an orchestration came to, as the source design has it."""

    DECISION = "decision"
    BUGFIX = "bugfix"
    FEATURE = "feature"
    PATTERN_USAGE = "pattern-usage"
    DISCOVERY = "discovery"
    REFACTOR = "refactor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Categorization(ReadByKey):
    """What was learnt from an orchestration.

    `importance` is 1 to 10. `agent_insights` says what each agent contributed. `source` is the model's name, or
    `RULE_BASED`.
    """

    type: Category
    observation: str
    concepts: tuple[str, ...]
    importance: int
    agent_insights: Mapping[str, str]
    recommendations: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CategorizedOrchestration(ReadByKey):
    """What came of one orchestration of a batch: a `result`, or an `error`."""

    orchestration_id: int | str | None
    result: Categorization | None = None
    error: str = ""

    @property
    def success(self) -> bool:
        """Whether there is a result."""
        return self.result is not None
