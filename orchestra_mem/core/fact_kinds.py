"""The table of the kinds of facts: where documents and summaries list each, and what the catalog takes it for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestra_mem.catalog_types import ItemType
from orchestra_mem.types import DocumentName, MustKeepKind


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRow:
    """A row of the table.

    Attributes:
        item_type: The catalog's type for a fact of this kind.
        operation_types: Types of operations that name this kind: their `text` is such a fact if it is one line.
        headings: Headings in documents below which a line that a person adds is a fact of this kind.
        closing_key, closing_title: The list of a session's summary that has facts of this kind; only a document has a
            list without a key.
        counted_as: Word for the number of that list's entries.
        shown_first: Whether a small context shows the operations with such facts before others.
    """

    item_type: ItemType
    operation_types: tuple[str, ...] = ()
    headings: Mapping[DocumentName, tuple[str, ...]] = field(default_factory=dict)
    closing_key: str = ""
    closing_title: str = ""
    counted_as: str = ""
    shown_first: bool = False


_STATE, _PLAN, _LOG = DocumentName
KIND_ROWS: Mapping[MustKeepKind, KindRow] = {
    MustKeepKind.COMPLETION: KindRow(
        item_type=ItemType.OBSERVATION, headings={_STATE: ("Recent Progress",)},
        closing_key="key_accomplishments", closing_title="Accomplishments", counted_as="completed",
    ),
    MustKeepKind.DECISION: KindRow(
        item_type=ItemType.DECISION, operation_types=("decision",),
        headings={_LOG: ("Decisions", "Older Decisions", "Decision Log")},
        closing_key="decisions_made", closing_title="Recent Decisions", counted_as="decided", shown_first=True,
    ),
    MustKeepKind.FAILURE: KindRow(
        item_type=ItemType.ERROR, headings={_STATE: ("Blockers",)},
        closing_key="issues_encountered", closing_title="Issues Encountered", counted_as="failed",
    ),
    MustKeepKind.OPEN_ITEM: KindRow(
        item_type=ItemType.PLAN, operation_types=("open item", "open_item", "todo"),
        headings={_PLAN: ("Immediate Next Steps", "Backlog", "Prioritized Backlog", "Future Work")},
        closing_key="recommended_next_steps", closing_title="Next Steps", counted_as="open", shown_first=True,
    ),
    MustKeepKind.CONSTRAINT: KindRow(
        item_type=ItemType.DECISION, operation_types=("constraint", "rule"),
        headings={_STATE: ("Rules",), _LOG: ("Rules",)}, closing_title="Rules", shown_first=True,
    ),
    MustKeepKind.ROLE: KindRow(
        item_type=ItemType.OBSERVATION, operation_types=("role",),
        headings={_STATE: ("People and Roles",)}, closing_title="People and Roles", shown_first=True,
    ),
    MustKeepKind.INSIGHT: KindRow(
        item_type=ItemType.INSIGHT, operation_types=("insight",),
        headings={_STATE: ("Insights",)}, closing_title="Insights",
    ),
}  # fmt: skip
"""The rows by kind. A session's summary has its lists in this order."""
CLOSING_ROWS = {kind: row for kind, row in KIND_ROWS.items() if row.closing_key}
"""The rows of the kinds that have a list in a session's summary."""
KIND_OF_TYPE = {name: kind for kind, row in KIND_ROWS.items() for name in row.operation_types}
"""The kind that a type of operations names. `failure` and `completion` name none: tools use those otherwise."""
