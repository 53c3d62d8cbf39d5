"""Words of headings and labels that announce a kind of fact, such as `Open questions` or `Rule:`, in six languages."""

from __future__ import annotations

import re
from functools import lru_cache

from orchestra_mem.types import MustKeepKind

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
