"""Find catalog items in a message to an agent and the agent's answer, and earlier items that a new item supersedes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestra_mem.catalog_types import Exchange, ItemType, MemoryItem
from orchestra_mem.core.catalog.item_drafts import ItemDraft
from orchestra_mem.core.catalog.item_json import FIRST_PRIORITY
from orchestra_mem.core.fact_kinds import KIND_ROWS
from orchestra_mem.core.facts.extraction import find_in_operations, find_in_text
from orchestra_mem.core.facts.prose import Field, Source
from orchestra_mem.core.facts.sentences import QUESTION, candidates_of
from orchestra_mem.core.facts.superseding import settle
from orchestra_mem.core.redaction.user_patterns import fault_of
from orchestra_mem.core.text import squeeze
from orchestra_mem.types import Author, Json, MustKeep, MustKeepKind, MustKeepStatus, Operation

# The kind of fact as which each type is compared with others.
_KINDS = {
    ItemType.DECISION: MustKeepKind.DECISION,
    ItemType.INSIGHT: MustKeepKind.INSIGHT,
    ItemType.ERROR: MustKeepKind.FAILURE,
    ItemType.PLAN: MustKeepKind.OPEN_ITEM,
    ItemType.OBSERVATION: MustKeepKind.INSIGHT,  # supersedes nothing, unless its text is a completion
}
_ANSWERED = (MustKeepKind.OPEN_ITEM, MustKeepKind.ROLE)  # what a question is taken for
_RULE_PRIORITY = 7
_MAX_EARLIER_CHARS = 400

Patterns = Mapping[ItemType, re.Pattern[str]]


def read_patterns(given: Mapping[str, str]) -> tuple[dict[ItemType, re.Pattern[str]], list[str]]:
    """Compile the user's patterns by item type; return them and a description of each invalid pattern."""
    patterns: dict[ItemType, re.Pattern[str]] = {}
    faults: list[str] = []
    for name, pattern in given.items():
        bounded = rf"(?i)\b(?:{pattern})\b"
        if pattern and (fault := fault_of(bounded)):
            faults.append(f"catalog.extraction_patterns.{name}: {pattern!r} is ignored: {fault_of(pattern) or fault}")
        elif pattern:
            patterns[ItemType(name)] = re.compile(bounded)
    return patterns, faults


def find_items(exchange: Exchange, said: Sequence[str], patterns: Patterns) -> list[ItemDraft]:
    """Find the items of an exchange, one for each sentence: first items of the classifier, then items of the patterns.

    Args:
        exchange: Provides the agent and the time.
        said: The texts to search, first the message, without roles: all count equally, since the items are the agent's
            own memory.
        patterns: Regular expressions used in addition to the classifier. The first one that matches a sentence decides
            its type, unless the classifier has found a type other than observation.
    """
    data: list[Json] = [{"content": text} for text in said]
    operation = Operation(
        id=exchange.id, session="", type="message", data=data, timestamp=exchange.time, tokens=0, entry_tokens=0,
        agent=exchange.agent,
    )  # fmt: skip
    drafts: list[ItemDraft] = []
    for fact in find_in_operations([operation])[0]:
        item_type = KIND_ROWS[fact.kind].item_type
        if fact.kind in _ANSWERED and QUESTION.search(fact.text) and fact.text in said[0]:
            continue  # the answer settles it, or says what is open
        if item_type is ItemType.OBSERVATION:
            item_type = _matched(fact.text, patterns) or item_type
        priority = _RULE_PRIORITY if fact.kind is MustKeepKind.CONSTRAINT else None
        drafts.append(ItemDraft(content=squeeze(fact.text), type=item_type, timestamp=exchange.time, priority=priority))
    known = [draft.content for draft in drafts]
    read = [Field(Source.SPEECH, "content", text) for text in said] if patterns else []
    for sentence in [squeeze(each.text) for field in read for each in candidates_of(field)]:
        matched = _matched(sentence, patterns)
        if matched is not None and not any(sentence in text or text in sentence for text in known):
            priority = FIRST_PRIORITY[matched] - 1  # a pattern may match by chance
            drafts.append(ItemDraft(content=sentence, type=matched, timestamp=exchange.time, priority=priority))
            known.append(sentence)
    return drafts


def _matched(text: str, patterns: Patterns) -> ItemType | None:
    return next((kind for kind, pattern in patterns.items() if pattern.search(text)), None)


def superseded_items(item: MemoryItem, earlier: Sequence[MemoryItem]) -> list[MemoryItem]:
    """Return the items that a new item revokes or completes; a person's items only if a person wrote the new item."""
    others = [each for each in earlier if each.author is not Author.PERSON or item.author is Author.PERSON]
    others.sort(key=lambda each: each.number)
    facts = [_fact(each, place) for place, each in enumerate([*others, item], 1)]
    if item.type is ItemType.OBSERVATION:
        found = find_in_text(facts[-1].text, operation=0, timestamp=item.timestamp)
        if any(each.kind is MustKeepKind.COMPLETION for each in found):
            facts[-1] = replace(facts[-1], kind=MustKeepKind.COMPLETION)
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
