"""The words that commands are made of, and the small language in which patterns of them are written.

In a pattern `(a|b)` is either, `[a]` may be missing, `~NAME` is one of the lists below. What is between angles is
taken out: `<t>` the target and `<o>` the other phrase, in capitals where it must name work beyond doubt (a number,
a kind, a pronoun, something quoted); `<v>` the rest, `<n>` a person, `<p>` a priority, `<w>` a time. A blank stands
between words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestra_mem.work_types import WorkKind

KINDS = {
    "milestone": WorkKind.MILESTONE, "milestones": WorkKind.MILESTONE,
    "epic": WorkKind.EPIC, "epics": WorkKind.EPIC,
    "story": WorkKind.STORY, "stories": WorkKind.STORY,
    "task": WorkKind.TASK, "tasks": WorkKind.TASK, "ticket": WorkKind.TASK, "tickets": WorkKind.TASK,
    "todo": WorkKind.TASK, "todos": WorkKind.TASK, "chore": WorkKind.TASK, "chores": WorkKind.TASK,
    "subtask": WorkKind.SUBTASK, "subtasks": WorkKind.SUBTASK,
}  # fmt: skip
PLURALS = frozenset(word for word in KINDS if word.endswith("s"))
NUMBERS = {
    word: number
    for number, word in enumerate(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen".split(), start=1
    )
} | {"a": 1, "an": 1, "another": 1, "couple": 2, "pair": 2, "dozen": 12, "twenty": 20}
PRIORITIES = {
    word: level
    for level, listed in {
        "1": "highest top urgent critical crucial blocker maximum max p0 p1 vital essential asap 0 1 one pressing",
        "2": "high important major p2 2 two",
        "3": "medium normal default mid regular average standard moderate p3 3 three",
        "4": "low minor p4 4 four unimportant",
        "5": "lowest trivial minimum min bottom p5 5 five nice",
        "higher": "higher up raised",
        "lower": "lower down lowered",
    }.items()
    for word in listed.split()
}

_KIND = "milestones?|epics?|user story|user stories|story|stories|tasks?|tickets?|todos?|chores?|sub tasks?|subtasks?"
_WORKS = (
    "work items?|items?|things?|issues?|cards?|work|backlog|work plan|plan|blockers?|list|board|roadmap|tree|ones|"
    "one|bugs?"
)
_LEVEL = (
    "highest|urgent|critical|crucial|blocker|maximum|max|p ?\\d|vital|essential|high|important|major|medium|normal|"
    "mid|moderate|low|minor|lowest|trivial|minimum|min|top priority|top prio|number one|higher|lower|"
    "nice to have|nice-to-have|pressing"
)
_WEEKDAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
MACROS = {
    "KIND": _KIND,
    "THING": "items?|things?|work items?|issues?|cards?|entry|entries|piece of work|one|bugs?|features?|deliverables?",
    "DONE": "(fully |completely |now )?(done|complete|completed|finished|closed|resolved|shipped|delivered|wrapped up"
    "|over|done and dusted|checked off|accomplished|over and done with|sorted|finalised|merged|solved)",
    "ARRIVED": "in|here|there|ready|live|through|out|back|up|approved|signed off|landed|come in|come|working|gone"
    "|\\w+ed|laid|built|cut|made|found|paid|sent|bought|set|sewn|hung|written|drawn|taken|given|put in|dealt with|shut"
    "|dry",
    "PROGRESS": "in progress|started|under way|underway|ongoing|active|doing|being worked on|in development"
    "|in the works",
    "STUCK": "blocked|stuck|held up|stalled|held back|impeded|hung up|hindered|jammed",
    "BE": "is|are|'s|was|were|gets|got|has been|have been|has become|have become|is becoming|became|remains|stays|am|"
    "seems|looks|will be|should be|must be"
    "|needs to be|has to be|ought to be|'re",
    "ADV": "now|currently|already|also|still|finally|just|all|both|really|actually|officially|apparently|temporarily"
    "|unfortunately|again|very|super|extremely|definitely|pretty|quite|too|probably",
    "BY": "by|on|because of|due to|behind|thanks to|owing to|with|from|until|till|pending",
    "MARK": "mark|set|flag|move|put|change|switch|update|make|turn|declare|consider|label|tag|transition|call|treat"
    "|get",
    "TIME": "later|later on|tomorrow|tonight|for now|for later|for the moment|for the time being|for a while|for a bit"
    f"|[(on|by|until|till|to|in|from) ](next |this |coming )?({_WEEKDAYS}|{_MONTHS})( morning| afternoon| evening|"
    f" \\d+)?"
    "|(the )?(end of|start of|beginning of) .+"
    "|indefinitely|(by )?(a|an|one|two|three|four|\\d+|a few|a couple of|another) (days?|weeks?|"
    "months?|sprints?|fortnights?)|"
    "(until|till|to|into|for|in|by|this|next|over) (the )?(new year|spring|summer|autumn|winter|"
    "holidays|christmas)"
    "|(until|till|to|into|for|in|by) (later|tomorrow|another .+|some other .+|further notice|q[1-4].*|a later .+|"
    "sprint .+"
    "|version .+|v\\d.*|phase .+|the (next|following|coming|end|start|beginning|back burner|new) ?.*|after .+|then"
    "|\\d+ (days?|weeks?|months?|sprints?|hours?)|(a|an|two|three|four|a few|some|a couple of)"
    " (days?|weeks?|months?|sprints?|hours?|while))"
    "|[(until|till|to|into|for|in) ](the )?(next|following|coming|upcoming) "
    "(week|month|sprint|quarter|year|iteration|release|phase|milestone|cycle|version|day)"
    "|(until|till|by|before|at|to) (the )?(month|year|week|quarter|season)( |-)?end"
    "|next (week|month|sprint|quarter|year|time|iteration|release|phase)|another (day|time)|some other (day|time)"
    "|in (a|an|\\d+|two|three|a few|a couple of) (days?|weeks?|months?|sprints?|hours?|while)|after (the|our|we|i) .+",
    "LEVEL": _LEVEL,
    "Q": '"q"',
    "GONE": "cancelled|canceled|dropped|abandoned|scrapped|wontfix|will not do|will not fix|called off|discarded",
    "BADLY": "(a |an |such a |the |just |simply |really |so |too |a bit |very |rather |quite |totally |not )*(wrong|"
    "bad|misleading|"
    "outdated|old|stupid|silly|dumb|awful|terrible|ugly|unclear|vague|confusing|misspelled|misspelt|mistyped|long|"
    "short|clumsy|"
    "off|right|good|clear|great|boring|generic|cryptic|ambiguous|inaccurate|incorrect|lame|typo|typos|mistake|"
    "spelling mistake|"
    "misnomer|mess|nonsense|rubbish|weird|odd|horrible)( in it| now| any more| anymore| at all)?",
    "CHECKS": "(the |our |all |all the |both |most |some )*(ci|cd|builds?|pipelines?|((unit|load|smoke|e2e|"
    "integration|stress|regression|"
    "perf|performance|acceptance|user|field|lab|soak) )?(tests?|testing)|test (runs?|suite|results?)|qa|benchmarks?|"
    "reviews?|code review|"
    "coverage|lint|linter|latency|throughput|p50|p90|p95|p99|perf)",
    "MOOT": "(an? |the |just |now |only )*(duplicates?|dupes?|dup|obsolete|invalid|moot|superseded|redundant|"
    "irrelevant|"
    "out of scope|rejected|not needed|no longer needed|unneeded|not planned|not relevant|no longer relevant|"
    "will not do|will not fix|wontfix|not a bug|works as intended|not reproducible)( any more| anymore| any longer)?",
    "WE": "we|i|you|they|us|everyone|anyone|the team",
}
_PRIORITY = (
    rf"(?:(?:a|an|the|our|of|at|very|really|super|extremely|most|as) )*(?:{_LEVEL}|(?:priority|prio|level)"
    rf" (?:level )?(?:of )?(?:[0-5]|one|two|three|four|five|{_LEVEL})|[0-5](?= (?:priority|prio)\b)|top(?= of)|"
    rf"first priority|priority)"
    r"(?: (?:in |on )?(?:priority|prio|importance|urgency|level|basis|one))?"
)
SLOTS = {
    "t": r"(?P<target>\S.*?)", "T": r"(?P<target_named>\S.*?)",
    "o": r"(?P<other>\S.*?)", "O": r"(?P<other_named>\S.*?)",
    "v": r"(?P<value>\S.*)", "n": r"(?P<person>[^\s,:;.]+(?: [^\s,:;.]+){0,2}?)",
    "p": rf"(?P<priority>{_PRIORITY})", "P": rf"(?P<priority>{_PRIORITY}|[0-5]|one|two|three|four|five)",
    "T2": r"(?P<other_named>\S.*?)",
    "k": rf"(?P<listed>(?:\S+ ){{0,3}}?(?:{_KIND}|{_WORKS}))",
    "q": rf"(?P<listed>(?:(?!(?:about|to|that|on|for|mentioning)\b)\S+ ){{0,4}}?(?:{_KIND}|{_WORKS})(?: .+)?)",
    "r": r"(?P<rest>\S.*)",
    "s": r"(?P<rest>(?:blocked|open|pending|done|in progress|deferred|cancelled|failed|active|unassigned|unfinished|"
    r"stuck|"
    r"on hold|overdue|urgent|high priority|low priority|ongoing|finished|completed|started|not started|unstarted|"
    r"under way"
    r"|postponed|to do|closed|underway|being worked on|late|outstanding|stalled|paused|parked|not done|not finished|"
    r"waiting|ready)(?: .+)?)",
}  # fmt: skip


# Words of courtesy, hesitation and intention: a row of them in front of a command changes nothing.
LEAD = frozenset(
    """
    i we you me us it is am are be been was were have has had would could can will shall may must do to that
    this please kindly just simply really only also now then so and but ok okay well right hey hi hello dear team
    folks everyone guys time about high going go ahead ready want wanted need needed like love wish hope hoping hoped
    wondering prefer plan planning intend trying try help let for of the a an favour favor good kind enough as great
    nice lovely wonderful grateful glad happy appreciate appreciated pleased possible possibly maybe perhaps finally
    actually already today immediately straight away asap quickly quick first next too much ask asking beg
    think guess believe suppose reckon feel mind bother trouble moment minute sorry thanks thank cheers yes yeah yep
    sure fine alright idea mean meant supposed better best ought someone somebody with your my hope hopefully
    officially definitely certainly surely absolutely all still even rather at last able , : - ! . ) (
    """.split()
)


def longest_first(choices: str) -> str:
    """Sort the alternatives of a regular expression so that "good news" is tried before "good"."""
    return "|".join(sorted(_apart(choices), key=len, reverse=True))


def _apart(choices: str) -> list[str]:
    found, depth = [""], 0
    for character in choices:
        depth += (character == "(") - (character == ")")
        if character == "|" and not depth:
            found.append("")
        else:
            found[-1] += character
    return found


def templates(table: str) -> list[str]:
    """Give the lines of a table of patterns, headings and all, those that go on in the next line made whole."""
    return [line for line in re.sub(r"\n {8}", "", table).split("\n") if line.strip()]


def first_words(template: str) -> frozenset[str] | None:
    """Give the words with which what fits a pattern begins, None where it may begin with any."""
    template = template.strip().lstrip("!")
    if template.startswith("~MARK "):
        return frozenset(MACROS["MARK"].split("|"))
    match = _OPENING.match(template)
    return frozenset(choice.split()[0] for choice in _apart(match[1])) if match else None


def needed_words(template: str) -> frozenset[str] | None:
    """Give words of which a clause must have one to fit a pattern, None where that cannot be told from it."""
    needed = list(_needed(template))
    return next((words for words in needed if not words & _COMMONEST), needed[0] if needed else None)


_COMMONEST = frozenset(
    "a an and are as at be by do does for has have i in is it of on so that the this to was we will with you 's".split()
)


def _needed(template: str) -> Iterator[frozenset[str]]:
    """Yield the groups of a pattern that must fit, each as the words of which one then stands there."""
    place, optional = 0, 0
    while place < len(template):
        optional += (template[place] == "[") - (template[place] == "]")
        if template[place] == "(":
            end = _closing(template, place)
            must = not optional and template[end + 1 : end + 2] not in ("?", "*")
            choices = _apart(template[place + 1 : end])
            found = [_PLAIN_WORD.match(choice) for choice in choices]
            if must and all(found):
                yield frozenset(match[1] for match in found if match)
            elif must and len(choices) == 1 and (named := _VALUE.match(choices[0])):
                yield from _needed(choices[0][named.end() :])
            place = end
        elif not optional and template.startswith("~CHECKS", place):
            yield _CHECKED
        elif not optional and template[place - 1 : place] in ("", " ") and (word := _PLAIN_WORD.match(template, place)):
            yield frozenset((word[1],))
            place = word.end() - 1
        place += 1


_VALUE = re.compile(r"\?P<value>")
_CHECKED = frozenset(
    word
    for match in re.finditer(r"([a-z0-9]+?)(s?)(\??)(?![a-z0-9])", MACROS["CHECKS"])
    for word in (match[1] + match[2], match[1] if match[3] else match[1] + match[2])
) - frozenset("the our all both most some".split())


def _closing(template: str, start: int) -> int:
    depth = 0
    for place in range(start, len(template)):
        depth += (template[place] == "(") - (template[place] == ")")
        if not depth:
            return place
    return len(template)


_PLAIN_WORD = re.compile(r"([a-z][a-z0-9'-]*)(?= |$|\[ )")
_OPENING = re.compile(r"\(((?:[a-z0-9' |-]|\([a-z0-9' |-]*\))+)\)(?=[ \[]|$)")


_PART = re.compile(r"~([A-Z]+)|<(\w2?)>|\((?!\?)|[\[\]]")


def fill(source: str) -> str:
    """Put the lists in for their names in what is a regular expression otherwise."""
    return re.sub("~([A-Z]+)", lambda match: f"(?:{expand(MACROS[match[1]])})", source)


def expand(template: str) -> str:
    """Write a pattern out as a regular expression."""
    return _PART.sub(_expanded, template)


_AND_WHEN = r"(?:(?: ,)? (?:when|once|as soon as|after|until|because|since) .+)?"


def _expanded(match: re.Match[str]) -> str:
    macro, slot = match[1], match[2]
    if macro:
        return f"(?:{expand(MACROS[macro])})"
    if slot:
        return f"(?P<value>(?:{expand(MACROS['TIME'])}){_AND_WHEN})" if slot == "w" else SLOTS[slot]
    if match[0] == "]":
        repeated = match.string[match.end() : match.end() + 1] in ("*", "+", "?")
        return ")" if repeated else ")?"
    return "(?:"
