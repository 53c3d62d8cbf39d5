"""The words that commands are made of, and the small language in which patterns of them are written.

In a pattern `(a|b)` is either, `[a]` may be missing, `~NAME` is one of the lists below. What is between angles is
taken out: `<t>` the target and `<o>` the other phrase, in capitals where it must name work beyond doubt (a number,
a kind, a pronoun, something quoted); `<v>` the rest, `<n>` a person, `<p>` a priority, `<w>` a time. A blank stands
between words.
"""

from __future__ import annotations

import re

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
    "highest|urgent|critical|crucial|blocker|maximum|max|p ?[0-5]|vital|essential|high|important|major|medium|normal|"
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
    f"|[(on|by|until|till|to) ](next |this |coming )?({_WEEKDAYS}|{_MONTHS})( morning| afternoon| evening| \\d+)?"
    "|(the )?(end of|start of|beginning of) .+"
    "|(until|till|to|into|for|in|by) (later|tomorrow|another .+|some other .+|further notice|q[1-4].*|a later .+|"
    "sprint .+"
    "|version .+|v\\d.*|phase .+|the (next|following|coming|end|start|beginning|back burner|new) ?.*|after .+|then"
    "|\\d+ (days?|weeks?|months?|sprints?|hours?)|(a|an|two|three|four|a few|some|a couple of)"
    " (days?|weeks?|months?|sprints?|hours?|while))"
    "|[(until|till|to|into|for|in) ](the )?(next|following|coming|upcoming) "
    "(week|month|sprint|quarter|year|iteration|release|phase|milestone|cycle|version|day)"
    "|next (week|month|sprint|quarter|year|time|iteration|release|phase)|another (day|time)|some other (day|time)"
    "|in (a|an|\\d+|two|three|a few|a couple of) (days?|weeks?|months?|sprints?|hours?|while)|after (the|our|we|i) .+",
    "LEVEL": _LEVEL,
    "Q": '"q"',
    "GONE": "cancelled|canceled|dropped|abandoned|scrapped|wontfix|will not do|will not fix|called off|discarded",
    "WE": "we|i|you|they|us|everyone|anyone|the team",
}
_PRIORITY = (
    rf"(?:(?:a|an|the|our|of|at|very|really|super|extremely|most|as) )*(?:{_LEVEL}|(?:priority|prio|level)"
    rf" (?:level )?(?:of )?(?:[0-5]|one|two|three|four|five|{_LEVEL})|[0-5](?= (?:priority|prio)\b)|top(?= of)|"
    rf"first priority|priority)"
    r"(?: (?:in |on )?(?:priority|prio|importance|urgency|level|one))?"
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


_OPENING = re.compile(r"\(((?:[a-z' |-]|\([a-z' |-]*\))+)\)(?=[ \[]|$)")


_PART = re.compile(r"~([A-Z]+)|<(\w2?)>|\((?!\?)|[\[\]]")


def fill(source: str) -> str:
    """Put the lists in for their names in what is a regular expression otherwise."""
    return re.sub("~([A-Z]+)", lambda match: f"(?:{expand(MACROS[match[1]])})", source)


def expand(template: str) -> str:
    """Write a pattern out as a regular expression."""
    return _PART.sub(_expanded, template)


def _expanded(match: re.Match[str]) -> str:
    macro, slot = match[1], match[2]
    if macro:
        return f"(?:{expand(MACROS[macro])})"
    if slot:
        return f"(?P<value>{expand(MACROS['TIME'])})" if slot == "w" else SLOTS[slot]
    if match[0] == "]":
        repeated = match.string[match.end() : match.end() + 1] in ("*", "+", "?")
        return ")" if repeated else ")?"
    return "(?:"


# What is mended is mended into words of the patterns; these are right as they stand.
KNOWN = frozenset(
    """
    star stars cart carts clock flock black fund kind mind dine gone gene none tone bone ask asks desk mask risk
    disk disks epoch store stores stored sorry stay stand stark smart chart part port sort fort crop prop chop
    shop chip ships live design designs resign aligned mark marks bark dark clone clones lose nose rose repeat
    retort deport onto into unto last lost fist gift shift shifts high sign sight night low how not now move
    moves love more prove prose make take fake lake open pen often seed seeds feed feeds need needs next text
    texts nest help held heap work word words world worm fork note vote node nodes mode code codes core cores
    care case cases base bases block blocks book look looks lock locks link links line lines like likes live
    time times tile tiles title titles table tables cable page pages pack back bank rank rang ring run runs ran
    rename remove rest rests test tests best west reset resets read ready real deal dear year near fear hear
    heart start state states stats stage staging staged status stack stick stuck shut short show shows slow slot
    slots plot blot bolt boot root roots route routes router door doors form forms from farm firm for four fore
    force forced five fine finer final find finds found round sound bound wound would could should cloud clouds
    load loads loading login logins logs log long song wrong strong among along belong build builds built guild
    guide quite quiet quit suite site sites side sides size sizes since sense send sends sent spent spend speed
    spec specs space spaces place places plane planes plan plans plant plate late later latter letter letters
    better butter batter matter water wait waits want wants went when then than thin thing things think thank
    that this thus these those there where were here hero zero user users used uses use issue issues tissue item
    items team teams tear term terms them theme themes the they email emails mail main maintain train trail tail
    tails fails failed fail fall falls fill fills file files pile while will well wall call calls cell cells
    sell tell tells role roles rule rules rate rates gate gates date dates data update updates upload uploads
    down done don dose does doe goes grow group groups great treat create creates created paste past post posts
    cost costs lost host hosts most must mist just trust bust dust duty busy buy by bye buys auth path paths
    bath math both bot bots got get gets set sets let lets yet bet pet net nets new news few view views review
    reviews preview renew vie tie die pie lie give given gives dive drive driver drivers driven drives river
    liver price prices prize size search research reach each teach beach bench branch batch match catch watch
    patch cache caching parse parser phase phrase erase lease release releases please place peace piece niece
    nice dice rice race trace name names same some come home dome game games tame fame frame frames flame blame
    became because before behind below about above after again over ever even event events every very vary any
    many may day days way ways say says pay pays payment payments print prints point points paint pain pair
    pairs fair hair air aid add adds bad bed red rid hid did lead leads leader leaders head heads bead dead deal
    deals seal steal steel feel fuel full pull pulls push pushes bush rush crash crashes crush brush flush flash
    slash cash rash wash dash dashboard board boards broad road roads roam room rooms zoom loop loops pool pools
    tool tools cool food foot good mood wood hook cook took hold holds gold cold bold told old alone alike alert
    alerts apply apple ample sample simple single signal signup sign signs sing king wing bring moving coding
    hiding riding adding padding heading reading leading waiting writing testing setting settings getting bring
    being seeing doing going using sharing staring storing string strings bugs bug bus big bag tag tags tab tabs
    lab labs map maps cap cup up us as is it its if of off on in an am at to do go no so we he she me my our out
    own put cut but hut nut nutrition input output report reports resort reserve server servers serve service
    services assets asset assist assume assess access account accounts count counts country county mount amount
    module modules model models modal medal metal meta beta data delta delay delays relay reply replies replay
    display play plays player layer layers lawyer later latency urgent agent agents event advent invent intent
    content contents context contest product products project projects protect process progress profile profiles
    profit private primary query queries queue queues request requests require requires required acquire inquire
    retry retries entry entries empty happen happened happens history story stories sorties month months mouth
    north worth earth forth truth growth yesterday today weather whether other others another mother brother
    rather gather father further farther feather alright right rights light lights fight might tight eight
    weight height wide wise rise raise raises praise phrase anna bob mara maria mark marc nina dana tina dina
    lena lisa sara sarah tom tim jim kim sam dan ben ken jan ian ana epicenter topic topics picture pictures
    mixture fixture fixtures feature features future nature mature capture cancellation assignment assignments
    milestone depending pending spending ending sending lending bending famished varnish diminish
    burnish furnish fish dish wish rich which witch switch switches pitch docs doc dock docks deck decks check
    checks chuck chunk chunks click clicks clicked clock flick deploy deploys deployment employ employee staff
    stuff stiff still spill skill skills kill bill billing filling starter stared started restart restarts
    upstart artist assistant distant instant constant consistent hidden hide hides hire hired tired wired fired
    filed filled failed sailed mailed nailed wrapper wraps warp warps trap traps scrape scraper scrap shape
    share shared shares shore sure pure cure core docker linked listed lists list lift left loft soft sift gift
    rift drift draft drafts craft crafts migrate migration notes noted notice notices nodes remind reminder
    reminders behind unlock unlocked clocked lockout logout layout timeout checkout payout signin onboarding
    offboarding backlog catalog dialog analog prolog
    """.split()
)
