"""Rules: tables of patterns, made into regular expressions in the order in which they are tried.

In a table each heading names the action, and behind a stroke the value that it comes with; what says more stands
first. A pattern that is long goes on in the next line, further indented. Behind a `!` a phrase in capitals is read
more strictly, or in questions less so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from orchestra_mem.core.language.intents.asking import ASKING_OF_WORK
from orchestra_mem.core.language.intents.asking_of_talk import ASKING
from orchestra_mem.core.language.intents.cancel_patterns import CANCEL, UNDO
from orchestra_mem.core.language.intents.mending import Vocabulary
from orchestra_mem.core.language.intents.order_patterns import ORDER
from orchestra_mem.core.language.intents.telling import TELLING
from orchestra_mem.core.language.intents.types import Action
from orchestra_mem.core.language.intents.words import (
    LEAD,
    MACROS,
    expand,
    first_words,
    longest_first,
    needed_words,
    templates,
)
from orchestra_mem.core.language.intents.work_patterns import WORK

# Of two words that are equally near the first is meant.
_COMMONEST = """
start begin finish create make add rename block blocked unblock defer postpone assign priority depends note remember
decided report
resume continue what why how where when which who show list find search status next help done story stories epic
epics task
tasks milestone subtask ticket mark close complete set give move put the that this one first second third last please
could would with under called named happened
"""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a pattern means; `value` is what it comes with, None where the words have it.

    Where it is `strict`, marked by a `!`, "the boss fight" is not enough to name work: it takes a kind or a number.
    `opens` are the words of which one stands first, None where any may; `needs` those of which one stands anywhere.
    """

    action: Action
    value: str | None
    template: str
    dotall: bool
    strict: bool
    opens: frozenset[str] | None
    needs: frozenset[str] | None


class Rules:
    """Rules in the order in which they are tried."""

    def __init__(self, table: str, *, dotall: bool = False) -> None:
        self.rules = tuple(read_rules(table, dotall=dotall))
        self.openers = frozenset(word for rule in self.rules for word in rule.opens or ())
        self._opening: dict[str, list[int]] = {}
        self._needing: dict[str, list[int]] = {}
        self._of_any: list[int] = []
        for place, rule in enumerate(self.rules):
            for word in rule.opens or ():
                self._opening.setdefault(word, []).append(place)
            for word in (rule.needs or ()) if rule.opens is None else ():
                self._needing.setdefault(word, []).append(place)
            if rule.opens is None and not rule.needs:
                self._of_any.append(place)

    def fitting(self, text: str) -> Iterator[tuple[Rule, re.Match[str]]]:
        """Yield the rules that fit a whole clause; a pattern is compiled when it is first needed."""
        words = frozenset(text.split())
        places = {*self._of_any, *self._opening.get(text.partition(" ")[0], ())}
        for word in words & self._needing.keys():
            places.update(self._needing[word])
        for place in sorted(places):
            rule = self.rules[place]
            if rule.needs and words.isdisjoint(rule.needs):
                continue
            if match := _regex(rule.template, rule.dotall).fullmatch(text):
                yield rule, match


@cache
def _regex(template: str, dotall: bool) -> re.Pattern[str]:
    return re.compile(expand(_longest_first(template)), re.DOTALL if dotall else 0)


@cache
def rules() -> Rules:
    """Give the rules of commands."""
    return Rules(UNDO + ORDER + CANCEL + WORK)


def read_rules(table: str, *, dotall: bool = False) -> list[Rule]:
    """Make rules of a table of patterns; with `dotall` a text may hold line ends."""
    made, action, value = [], Action.HELP, None
    for line in templates(table):
        if not line.startswith(" "):
            name, stroke, fixed = line.partition("/")
            action, value = Action(name), fixed if stroke else None
        else:
            template = line.strip()
            made.append(
                Rule(
                    action,
                    value,
                    template.lstrip("!"),
                    dotall,
                    template.startswith("!"),
                    first_words(template),
                    needed_words(template),
                )
            )
    return made


def _longest_first(template: str) -> str:
    """Let "start on" be tried before "start": of what may stand in one place the longest is meant."""
    return _CHOICE.sub(lambda match: f"({longest_first(match[1])})", template)


_CHOICE = re.compile(r"\(((?:[a-z' |-]|\([a-z' |-]*\))+)\)")


@cache
def vocabulary() -> Vocabulary:
    """Give the words that commands are made of and into which mistyped ones are mended, the destructive left out."""
    lists = " ".join([*MACROS.values(), *sorted(LEAD)])
    text = f"{_COMMONEST} {ORDER} {WORK} {lists} {ASKING} {TELLING} {ASKING_OF_WORK}"
    found = dict.fromkeys(re.findall(r"(?<![~<\\])\b[a-z]{3,}\b", text))
    return Vocabulary(word for word in found if word not in destructive_words())


@cache
def destructive_words() -> Vocabulary:
    """Give the words that cancel or undo."""
    words = "cancel cancelled abandon scrap delete remove undo revert drop discard trash ditch kill erase rollback"
    return Vocabulary(words.split())
