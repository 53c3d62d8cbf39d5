"""Find items in what was said to an agent and what it answered, and the earlier ones that a new one replaces."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from orchestra_mem.catalog_types import Exchange, ItemType, MemoryItem
from orchestra_mem.core.catalog.item_drafts import ItemDraft
from orchestra_mem.core.catalog.item_json import first_priority
from orchestra_mem.core.facts.extraction import find_in_operations
from orchestra_mem.core.facts.superseding import settle
from orchestra_mem.core.text import split_sentences, squeeze
from orchestra_mem.types import Author, Json, MustKeep, MustKeepKind, MustKeepStatus, Operation

# What the facts' classifier knows as the catalog's types. A rule is a decision that holds.
_TYPES = {
    MustKeepKind.DECISION: ItemType.DECISION,
    MustKeepKind.CONSTRAINT: ItemType.DECISION,
    MustKeepKind.INSIGHT: ItemType.INSIGHT,
    MustKeepKind.FAILURE: ItemType.ERROR,
    MustKeepKind.OPEN_ITEM: ItemType.PLAN,
    MustKeepKind.COMPLETION: ItemType.OBSERVATION,
    MustKeepKind.ROLE: ItemType.OBSERVATION,
}
_KINDS = {
    ItemType.DECISION: MustKeepKind.DECISION,
    ItemType.INSIGHT: MustKeepKind.INSIGHT,
    ItemType.ERROR: MustKeepKind.FAILURE,
    ItemType.PLAN: MustKeepKind.OPEN_ITEM,
    ItemType.OBSERVATION: MustKeepKind.COMPLETION,
}
_RULE_PRIORITY = 7
_MAX_EARLIER_CHARS = 400

Patterns = Mapping[ItemType, re.Pattern[str]]


def read_patterns(given: Mapping[str, str]) -> tuple[dict[ItemType, re.Pattern[str]], list[str]]:
    """Read the user's own patterns, by type; what is wrong with the others, one by one."""
    patterns: dict[ItemType, re.Pattern[str]] = {}
    faults: list[str] = []
    for name, pattern in given.items():
        try:
            if pattern:
                patterns[ItemType(name)] = re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
        except re.error as error:
            faults.append(f"catalog.extraction_patterns.{name}: {pattern!r} is no regular expression: {error}")
    return patterns, faults


def find_items(exchange: Exchange, said: Json, patterns: Patterns) -> list[ItemDraft]:
    """Find the items of an exchange, in the order of the texts; one for each sentence.

    Args:
        exchange: which agent's, and when.
        said: what of it is to be looked through; see `messages_of`.
        patterns: plain ones beside the classifier. A sentence that the first of them matches is an item of its type;
            what the classifier knows better keeps its own.
    """
    operation = Operation(
        id=exchange.id, session="", type="message", data=said, timestamp=exchange.time, tokens=0, entry_tokens=0,
        agent=exchange.agent,
    )  # fmt: skip
    drafts: list[ItemDraft] = []
    for fact in find_in_operations([operation])[0]:
        kind = _TYPES.get(fact.kind)
        if kind is ItemType.OBSERVATION:
            kind = _matched(fact.text, patterns) or kind
        if kind is not None:
            priority = _RULE_PRIORITY if fact.kind is MustKeepKind.CONSTRAINT else None
            drafts.append(ItemDraft(content=squeeze(fact.text), type=kind, timestamp=exchange.time, priority=priority))
    known = [draft.content for draft in drafts]
    for sentence in _sentences(said) if patterns else ():
        kind = _matched(sentence, patterns)
        if kind is not None and not any(sentence in text or text in sentence for text in known):
            priority = first_priority(kind) - 1  # a word may stand there by chance
            drafts.append(ItemDraft(content=sentence, type=kind, timestamp=exchange.time, priority=priority))
            known.append(sentence)
    return drafts


def _matched(text: str, patterns: Patterns) -> ItemType | None:
    return next((kind for kind, pattern in patterns.items() if pattern.search(text)), None)


def messages_of(exchange: Exchange) -> list[Json]:
    """Give an exchange as two texts. An agent's answer counts as much as a person's: it is the agent's own memory."""
    return [{"content": exchange.message}, {"content": exchange.answer}]


def _sentences(said: Json) -> list[str]:
    texts = [str(each.get("content", "")) for each in said if isinstance(each, dict)] if isinstance(said, list) else []
    return [squeeze(sentence) for text in texts for sentence in split_sentences(text)]


def taken_place_of(item: MemoryItem, earlier: Sequence[MemoryItem]) -> list[MemoryItem]:
    """Name the earlier items that a new one revokes, settles or completes; what a person wrote stands."""
    others = [each for each in earlier if each.author is not Author.PERSON or item.author is Author.PERSON]
    others.sort(key=lambda each: each.number)
    facts = [_fact(each, place) for place, each in enumerate([*others, item], 1)]
    settled = settle(facts, known=len(others))
    return [
        each
        for each, fact in zip(others, settled, strict=False)
        if fact.status in (MustKeepStatus.SUPERSEDED, MustKeepStatus.DONE)
    ]


def _fact(item: MemoryItem, place: int) -> MustKeep:
    return MustKeep(
        kind=_KINDS[item.type], text=item.content[:_MAX_EARLIER_CHARS], operation=place, timestamp=item.timestamp,
        id=place,
    )  # fmt: skip
