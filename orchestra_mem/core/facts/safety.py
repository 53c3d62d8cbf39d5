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

# List items below a heading with one of these words, anywhere in the heading, are facts of that kind.
_HEADINGS: tuple[tuple[MustKeepKind, str], ...] = (
    (
        MustKeepKind.DECISION,
        r"\bdeci(?:ded|sions?)|\bagreed|agreements?\b|resolutions?\b|entschieden|entscheidung|beschl[oüu]ss|vereinbart|"
        r"decisi(?:ón|ones)|acuerdos?\b|acordado|décisions?|décidé|реш(?:ени|ено|или)|决定|决议|决策",
    ),
    (
        MustKeepKind.OPEN_ITEM,
        r"\bopen\b|to[- ]?dos?\b|next steps?|action items?|\bactions?\b|follow[- ]?ups?|pending|outstanding|questions|"
        r"still to|\boffen|nächste schritte|aufgaben|zu erledigen|pendientes?|próximos pasos|por hacer|à faire|"
        r"en suspens|prochaines étapes|открыт|вопросы|дальше|сделать|задачи|待办|下一步|未决|待定",
    ),
    (
        MustKeepKind.CONSTRAINT,
        r"\brules?\b|polic(?:y|ies)|constraints?|requirements?|don'?ts\b|limits?\b|regeln|\bregel\b|vorgabe|vorschrift|"
        r"reglas?|\bnormas?\b|requisitos|règles?|consignes?\b|contraintes|правил[ао]|ограничени|требовани|规则|规定|要求|"
        r"注意事项",
    ),
    (
        MustKeepKind.COMPLETION,
        r"\bdone\b|completed|finished|shipped|accomplish|erledigt|fertig|hecho|terminado|fait\b|terminé|сделано|готово|"
        r"已完成|完成",
    ),
    (
        MustKeepKind.FAILURE,
        r"problems?\b|\bissues?\b|failures?|broken|blockers?|incidents?|went wrong|probleme|störung|problemas|fallos|"
        r"problèmes|incidents|pannes|проблемы|сбои|问题|故障",
    ),
    (
        MustKeepKind.ROLE,
        r"\broles?\b|who does what|responsib|owners?\b|people\b|contacts?\b|zuständig|wer macht|rollen|responsables|"
        r"quién|rôles|responsables|qui fait|роли|ответственн|кто |分工|负责人|角色",
    ),
    (
        MustKeepKind.INSIGHT,
        r"learn(?:ed|t|ings?)|lessons?\b|insights?|findings?|gelernt|erkenntnis|aprendi|lecciones|hallazgos|appris|"
        r"enseignements|узнали|выводы|уроки|经验|教训|发现|心得",
    ),
)

# Kinds whose headings say more than the kind if they stand before a sentence: `Done: paint the shed`.
_REPORTS = (MustKeepKind.COMPLETION, MustKeepKind.FAILURE, MustKeepKind.ROLE)


@lru_cache(maxsize=256)
def heading_kind(heading: str) -> MustKeepKind | None:
    """Return the kind of facts that a heading announces, or None."""
    low = heading.lower()
    return next((kind for kind, pattern in _HEADINGS if re.search(pattern, low)), None)


@lru_cache(maxsize=1)
def _label() -> re.Pattern[str]:
    names = "|".join([*MustKeepKind, *(pattern for kind, pattern in _HEADINGS if kind not in _REPORTS)])
    return re.compile(rf"\A(?:{names})\w{{0,2}} ?[:\uff1a] ?(?=\S)")


def without_label(text: str) -> str:
    """Return a lower-case text without a label of a fact's kind before it, such as `rule: `."""
    return _label().sub("", text)


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
