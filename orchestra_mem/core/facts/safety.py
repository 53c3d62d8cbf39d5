"""Safety words: plain words for rules and open work. A sentence with one is a fact even if the classifier misses it.

A lost rule is worse than an extra one. Keep the lists short: the classifier learns all other phrasings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from orchestra_mem.core.facts.prose import TICK
from orchestra_mem.types import MustKeepKind

# Never, must, forbidden and allergic, in English, German, Spanish, French, Russian and Chinese; then limits, what may
# not be done, and what needs permission: the classifier misses many of those in talk.
_RULES = (
    r"\bnever\b(?! ?mind)",
    r"\bmust(?:n't| not)?\b(?! be (?:kidding|joking|fun|nice|hard|tired))",
    r"\b(?:(?:not|aren't|isn't) (?:allowed|permitted)|(?:is|are) required|forbidden|prohibited|mandatory)\b|\ballerg",
    r"\b(?:niemals|ausnahmslos|zwingend|verboten|untersagt|verpflichtend)\b",
    r"\b(?:nunca|jamás|prohibid[oa]s?|obligatori[oa]s?)\b|\balérgic|\balergia\b",
    r"\b(?:jamais|interdite?s?|obligatoires?)\b",
    r"\b(?:никогда|нельзя|запрещ\w+|обязательно|аллерги\w+)\b",
    r"绝不|决不|禁止|不得|不准|必须|务必|过敏|不允许|(?:最多|至多|不超过|至少)\s*\d",
    r"\b(?:at (?:most|least)|no more than|maximum of|minimum of|höchstens|mindestens|maximal|nicht mehr als|máximo|"
    r"mínimo|al menos|no más de|au (?:plus|moins|maximum|minimum)|pas plus de|не (?:более|больше|менее)|максимум|"
    r"минимум) (?:de )?\d",
    r"\b(?:may (?:not|only)|(?:darf|dürfen) (?:\w+ ){0,4}(?:nicht|nie|nur|kein\w*)|no se (?:puede|permite|debe)|"
    r"ne (?:doit|doivent|peut|peuvent) pas)\b",
    r"\b(?:without|ohne|sin|sans|без) (?:[\w']+ ){0,2}(?:approval|permission|consent|erlaubnis|freigabe|zustimmung|"
    r"permiso|aprobación|accord|autorisation|разрешения|согласования|одобрения)\b",
)

# A sentence that begins with one of these phrases certainly is a fact of that kind.
_CERTAIN = (
    (
        MustKeepKind.CONSTRAINT,
        r"^(?:please |warning: |note: )?(?:never(?! ?mind)|always|under no circumstances|do not|must not|no more than|"
        r"at most|don't (?:ever|touch|deploy|push|merge|delete|use|send|share|commit|run|open|change|edit))\b|"
        r"^(?:nobody|no one) .{2,40}\b(?:without|unless|before)\b|"
        r"^(?:niemals|nie |auf keinen fall|nunca|jamás|(?:está )?prohibido|ne jamais|(?:il est )?interdi|"
        r"никогда|нельзя|запрещ)|^.{0,12}(?:禁止|严禁|不得|不准)|"
        r"^(?:rule|policy|regel|vorschrift|vorgabe|regla|règle|consigne|правило|规则|规定)\s?[:\uff1a]",
    ),
    (MustKeepKind.OPEN_ITEM, r"^(?:todo|fixme|tbd|action item|open question|待办|offen:|pendiente:|à faire\s?:)"),
)


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[MustKeepKind, bool, Callable[[str], object]], ...]:
    """Return kind, certainty and test of each set of safety words, compiled on first use to keep imports fast."""
    return (
        *((kind, True, re.compile(pattern).match) for kind, pattern in _CERTAIN),
        (MustKeepKind.CONSTRAINT, False, _any_of(_RULES).search),
    )


def _any_of(patterns: Sequence[str]) -> re.Pattern[str]:
    """Join patterns into one. Patterns that begin at a word boundary share its test, which is many times faster."""
    border = r"\b"
    words = [pattern.removeprefix(border) for pattern in patterns if pattern.startswith(border)]
    others = [pattern for pattern in patterns if not pattern.startswith(border)]
    return re.compile("|".join([f"{border}(?:{'|'.join(words)})", *others]))


def safety_kind(sentence: str, *, certain: bool = False) -> tuple[MustKeepKind, bool] | None:
    """Return the kind of fact that (`certain`) safety words indicate, and whether they are certain, or None."""
    low = sentence.lower().replace("’", "'")
    if tick := TICK.match(low):
        return (MustKeepKind.OPEN_ITEM if tick[1] in ("", " ") else MustKeepKind.COMPLETION), True
    return next(((kind, sure) for kind, sure, says in _patterns() if (sure or not certain) and says(low)), None)
