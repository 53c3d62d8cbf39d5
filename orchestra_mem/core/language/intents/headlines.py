"""Work and its state side by side as in a headline, without a verb: "gym lights blocked", "hall chairs urgent"."""

from __future__ import annotations

from orchestra_mem.core.language.intents.frames import BE, level_at, verb_forms

# What may stand between work and what is told of it.
LINK = BE | frozenset(
    """
    has have had been being be got get gets getting goes go gone going went come comes came falls fell belongs
    needs need wants should must can could may will shall 'll ought now already also still just finally both all really
    actually officially totally completely then again pretty quite very super so rather too apparently sadly
    unfortunately temporarily currently definitely probably seems seem looks look remains remain stays turned
    became becomes stands sits deserves requires
    today yesterday to as : - , = ( well finally at last be like good and it that they hereby i we
    """.split()
)
_HEADLINES = frozenset(
    """
    done finished completed complete sorted closed shipped delivered blocked stuck stalled unblocked deferred postponed
    parked
    """.split()
)
# What leaves something in a state, and what says how far it is in one.
_LEAVES = frozenset(
    """
    get mark make set call consider declare put keep want need flag see leave move change turn find think say half
    almost nearly never once soon when not if job work much more most less feel feeling
    """.split()
)
LEVELS = frozenset("urgent critical high top low".split())
_BEHIND_HEADLINE = frozenset(", - : ( by because until till due pending over".split())


def is_headline(words: tuple[str, ...], start: int, end: int) -> bool:
    """Tell whether a title and a state stand together as in a headline: "gym lights blocked, no parts yet"."""
    last = level_at(words, end) if words[end] in LEVELS else end + (words[end] in _HEADLINES)
    if last <= end or words[start] in _LEAVES or (end - start < 2 and words[start] in verb_forms()):
        return False
    if words[start].endswith("ly") or len(words[start]) < 3 or set(words[start:end]) & LINK:
        return False
    return last == len(words) or words[last] in _BEHIND_HEADLINE
