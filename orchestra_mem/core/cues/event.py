"""The words of failures and completions, as patterns: crashed, timed out, fixed, is done."""

from __future__ import annotations

import re

from orchestra_mem.core.cues.cue import Cue, cue, table, words
from orchestra_mem.types import MustKeepKind

# Tables: what belongs to a cue stands together.
# fmt: off

_DID = words(
    "fixed finished completed merged shipped deployed released closed paid booked ordered submitted installed "
    "delivered "
    "signed published repaired solved resolved implemented uploaded migrated launched wired registered filed "
    "renewed "
    "scheduled printed painted replaced sent created added removed updated reserved confirmed passed built "
    "poured measured tested found wrote written checked counted cleaned swept planted packed documented reviewed "
    "verified mounted hung trained drafted translated sanded calibrated sequenced patched wrapped refactored "
    "finalised finalized hired mailed emailed posted"
)
_DONE_ADJ = (
    "(?:done|finished|complete|completed|fixed|merged|closed|deployed|released|shipped|booked|paid|ordered|"
    "submitted|"
    "installed|delivered|signed|published|repaired|solved|resolved|sorted|implemented|live|ready|in place|out the "
    "door|"
    "uploaded|migrated|launched|filed|renewed|printed|painted|replaced|sent|built|up and running|written|drafted|"
    "planted|hung|packed|labelled|labeled|measured|swept|documented|translated|taken down|taken care of|"
    "wrapped up|sealed|cleaned|reserved|counted|sold out|sequenced|calibrated|approved|green|passing|poured|"
    "mounted|assembled|"
    "restored|back up|working again|back online|cleared|handed (?:over|in)|set up|put up|tested)"
)
_PARTICIPLE = (
    r"(?:\w+ed|taken|written|built|sent|paid|sold|cut|put|set|drawn|hung|laid|made|bought|brought|done|given|signed|"
    "frozen|chosen|swept|dug|torn down|wired|glued|mown|sewn|shut|read|thrown|ground|fit)"
)


FAILURE_CUES: tuple[Cue, ...] = table(
    MustKeepKind.FAILURE,
    # reversals
    cue(2, "failed fails failing",
        r"(?<!\b0 )(?<!\bno )(?<!zero )(?<!\bif )(?<!\bthe )(?<!\ba )\b(?:has |have |had |is |are |was |were |"
        r"keeps? |kept |still |just |also |both |all |now )?(?:failed|fails|failing)\b(?! (?:test|tests|state|"
        "status|job|jobs|and passed|if|when|case|cases|fast|silently|to appreciate|to impress|over|loudly|"
        r"sessions?|attempts?|\d+))(?!:? 0\b)"),
    cue(2,
        "crashed crashes crashing broke collapsed died exploded stalled hung froze jammed burst cracked leaked "
        "leaking flooded overheated bounced shattered snapped misfired",
        r"(?<!if )\b(?:has |have |had |is |are |just |keeps? |kept )?(?:crashed|crashes|crashing|collapsed|exploded|"
        "stalled|jammed|leaked|leaking|flooded|overheated|hung up|broke (?:down|again|off|in|on|after|during|when|"
        r"the (?:build|tests?|api|ci))|froze up|bounced back|shattered|misfired)\b(?! (?:on the couch|into bed|"
        "laughing|at my|there|the party|course|to|onto))"),
    cue(2,
        "broken down died dead unusable corrupt corrupted missing stuck faulty offline unreachable defective "
        "spoiled spoilt ruined unresponsive unavailable jammed wedged flaky cracked order fritz leaking damaged "
        "contaminated smashed flooded failing crashing unusable",
        r"\b(?:is|are|was|were|been|got|went|seems?|arrived|came|stays?|still|'s|'re|it's)(?: \w+ly| still| "
        r"completely| all| just| now| again| totally)? (?:broken|down(?! to| for| with| by| on\b)|dead|unusable|"
        "corrupt(?:ed)?|faulty|offline|unreachable|defective|spoil(?:ed|t)|ruined|unresponsive|unavailable|jammed|"
        "wedged|flaky|out of order|on the fritz|leaking|damaged|contaminated|cracked|smashed|flooded|failing|stuck "
        r"(?:in|at|on|with|behind)|crashing)\b"),
    cue(2,
        "died broke gave split cracked burst froze snapped burned burnt curdled melted sank tripped blew slipped "
        "peeled fell",
        r"^(?:[\w ,']{0,40}[,:] )?(?:the|our|my|one|two|both|all|\w+'s|half)(?: [\w'-]+){1,5} (?:died|broke|gave "
        "out|gave up|split|cracked|burst|froze|snapped|burned|burnt|curdled|melted|sank|tripped|blew|slipped|"
        r"peeled|fell (?:off|over|apart|through|behind))\b(?! (?:up laughing|my heart|the ice|down in tears|in "
        "love))"),
    cue(2, "timed time times timing timeout timeouts ran run running",
        r"\b(?:timed out|times out|timing out|time-?outs? (?:on|in|from|again|after)|ran out of (?!(?:words|ideas|"
        r"context|ideas to)\b)\w+|run out of (?:propane|stock|memory|space|disk|paper|money|time|\w+ing)|running out "
        r"of (?:memory|"
        r"disk|space|stock|money))\b"),
    cue(2, "denied rejected refused declined bounced disqualified revoked down",
        r"\b(?:was|were|is|been|got|has|have|inspector|board|reviewer|reviewers|bank|council|customer|client|"
        r"inspection|city|supplier|journal|committee)\b[\w ]{0,15}? (?:denied|rejected|refused|declined|"
        r"disqualified|turned down)\b"),
    cue(2, "couldn't unable didn't doesn't won't don't wouldn't isn't cannot can't not hasn't",
        r"(?:\b(?:didn't|doesn't|won't|wouldn't|does not|did not|will not|hasn't|isn't)|(?<!^)\bdon't|(?<!^do )\bnot) "
        "(?:work(?:ing)?|rise|"
        "come through|arrive|compile|build|start(?:ing)?|boot|load|show up|turn up|respond(?:ing)?|connect|set|fit|"
        "pass|hold|open|close|print|charge|sync|render|match the|add up|go through|work out|make it (?:in|on) time|"
        r"import|install)\b(?! (?:any ?more|for me|like that|yet i|with kids|against)\b)"),
    cue(2, "couldn't unable",
        r"\b(?:we|i|they|the [\w ]{2,20}|he|she|it|nobody) (?:couldn't|could not|was unable to|were unable to|is "
        "unable to|are unable to|am unable to|wasn't able to|weren't able to) (?!(?:have|be (?:happier|more|"
        r"prouder|better)|agree|help|believe|stop|resist|ask|imagine|wait|care|tell|put|take my|decide)\b)\w+ "),
    cue(2, "regression outage regressions leak deadlock",
        r"\b(?:there's|there is|found|introduced|introduces|caused?|hit|had|another|is|was|see|saw|noticed|have) "
        r"(?:an? |the |another )?(?:\w+ )?(?:regressions?|outage|memory leak|deadlock|race condition|breakdown|"
        r"power cut|short circuit|leak|data loss|blackout)\b"),
    cue(2, "error errors exception exceptions bug",
        r"\b(?:got|getting|gets|get|hit|hits|hitting|throws?|threw|raises?|raised|returned|returns|saw|seeing|"
        "shows?|showing|ends? in|ended in|died with|exits? with|exited with|with|due to|see) (?:an? |the |this |"
        r"these |some |several |\d+ |another |lots of )?(?:[\w./-]+ )?(?:errors?|exceptions?|segfault|traceback|"
        r"stack trace)\b(?! (?:handling|message|messages|code|codes|class|type|types|path|paths|case|cases|if|when|"
        "for invalid|return|wrapping|checks?|propagation|logging|response|output|of\b))"),
    cue(3,
        "error exception fatal panic traceback importerror typeerror valueerror keyerror runtimeerror oserror "
        "attributeerror indexerror ioerror nameerror assertionerror permissionerror connectionerror timeouterror "
        "filenotfounderror modulenotfounderror syntaxerror nullpointerexception",
        r"^(?:[\w.]*(?:error|exception)|fatal|panic|traceback \(most recent call last\))\s?: \S|\b\w+(?:error|"
        r"exception): \w"),
    cue(2, "blocked blocking blocker stuck",
        r"\b(?:blocked (?:by|because|until|since)|stuck (?:because|until|since)|blocker(?: is|:| for|s are)|(?:is|"
        r"are) blocking (?:us|the|me|our))\b"),
    cue(2,
        "rolled lost missed spilled short late wrong spiked rates memory stock order disk tolerance spec fell "
        "arrived gone goes never showed",
        r"\b(?:rolled (?:it )?back (?:after|because|the)|went wrong|gone wrong|goes wrong with|we lost (?:the|all|"
        r"our|\d|half|power|two|three|data)|missed the (?:deadline|delivery|cut-?off|train|tour|slot|window|release|"
        r"flight|bus)|(?:pallets?|boxes|units|pieces|bags|people|staff|bottles|sheets|(?!(?:is|was|has|its|"
        r"this)\b)\w+s) "
        r"short\b|never (?:showed "
        "up|arrived|came|turned up|got there)|error rates?|out of (?:memory|stock|order|disk|tolerance|spec)|fell "
        "through|wrong (?:size|order|address|colou?r|amount|date|file|version|delivery|part|parts|batch)|arrived "
        r"(?:damaged|late|broken|short|cracked|too late|wilted))\b"),
    cue(2,
        "peeling leaking rotting flickering smoking tripping slipping dripping overheating sagging flaking drifting "
        "crashing hanging crumbling dropping",
        r"\b(?:is|are|keeps?|started|was|were|'s) (?:\w+ly )?(?:peeling|leaking|rotting|flickering|smoking|tripping|"
        r"slipping|dripping|overheating|sagging|flaking|drifting|crumbling|crashing|dropping packets|hanging)\b"),
    cue(1, "unfortunately sadly failure bug broken again bad damn ugh argh heads problem issue",
        r"^(?:unfortunately|sadly|bad news|damn|ugh|argh|bug:|problem:|issue:|heads up)\b"),
    cue(1, "because since after", r"\b(?:because|since (?:the|last|we|it)|due to|after) \w+"),
    cue(2, "unfortunately sadly news bad damn ugh argh heads problem issue",
        r"^(?:unfortunately|sadly|bad news)[,:]?.*\b(?:didn't|not|no|can't|won't|isn't|couldn't|lost|had to|without|"
        r"fell|never|cancelled)\b"),
    # failures, completions and open items told plainly
    cue(2,
        "died cracked collapsed curdled burst snapped shorted spilled leaked double-booked overbooked misprinted "
        "mislabelled mislabeled miscounted misplaced mixed",
        r"\b(?:died (?!for|of laughter)|cracked (?:because|when|after|on|in|under|over|again|at)|collapsed|curdled|"
        "burst (?!out|into)|snapped (?:off|in|when|under)|shorted|spilled (?:on|over|into)|double-?booked|"
        r"overbooked|misprinted|mislabell?ed|miscounted|misplaced|got mixed up|were mixed up)\b"),
    cue(2, "hasn't haven't",
        r"\b(?!(?:i|we|you)\b)\w+ (?:hasn't|haven't) (?:run|worked|started|booted|charged|updated|synced|printed|"
        r"loaded|rung|been (?:working|running|syncing|charging))\b"),
    cue(2, "down",
        r"\b(?:is|are|was|were|went|goes|been) down (?:with|again|since|because|after|for (?:the|two|three|an|half|"
        r"\d)|all|until)\b|\b(?:server|site|pump|crane|lift|elevator|line|network|wifi|internet|system|api|service|"
        "cluster|freezer|oven|heating|phone|website|dishwasher|printer|power|database|db|gateway)s? (?:is|are|was|"
        r"were|went) down\b"),
    cue(2, " ".join(str(n) for n in range(400, 600)) + " 500s 502s 503s 504s 404s 403s 401s 429s",
        r"(?<![#\w.,$-])[45]\d\d(?:s\b|\b (?:errors?|responses?|since|again)\b)|\b(?:http|status|code|returns?|"
        r"returned|"
        r"returning|throws?|throwing|gives?|gave|got|getting|gets|answers?|answered|hits?)(?: (?:us|me|an?|the|with|"
        r"status|code|"
        r"http|only|nothing but|back))* [45]\d\d\b(?! [a-z]+s\b)"),
    cue(2, "had",
        r"\bhad to (?:bin|scrap|throw|redo|start over|abort|cancel|restart|evacuate|send (?:\w+ ){0,3}back|pull|"
        "toss|discard|rip|tear|turn (?:away|back)|stop (?:work|the|production)|call off|close early|roll back|"
        r"revert|repeat|postpone)\b"),
    cue(2,
        "frozen broken damaged late wrong contaminated mouldy moldy rotten burnt burned scorched soaked bent torn "
        "stolen smashed cracked wilted flat leaking",
        r"\b(?:is|are|was|were|came|arrived|got|went|turned up|delivered|has been|have been|had a) (?:\w+ly |all |"
        "completely |the )?(?:frozen solid|frozen(?=[.,!]|$)|broken|damaged|too late|wrong|contaminated|mou?ldy|"
        "rotten|burn(?:t|ed)|scorched|soaked|bent|torn|stolen|smashed|cracked|wilted|flat tyre|flat tire|"
        r"flat)\b(?! (?:hearted|out))"),
    cue(2, "power lights heating water internet out",
        r"\b(?:power|lights?|electricity|heating|internet|wifi|water) (?:went|is|was|goes|cut) (?:out|off|down)\b|"
        r"\b(?:power|water) (?:cut|outage|failure)\b",
        needs="power|light|electricity|heating|internet|wifi|water"),
    cue(2, "choked swallowed tripped refused lost missed jammed hiccup stopped ran fell slipped",
        r"\b(?:choked on|swallowed (?:the|our|my|half)|tripped (?:over|the)|refuses? to|refused to|stopped working|"
        "ran off|fell (?:off|over|through|apart|short)|no usable|slipped (?:by|through)|got lost|went missing|was "
        r"never (?:sent|delivered|run|paid)|missed (?:the|our|their|his|her) (?:\w+ )?(?:deadline|opening|train|bus|"
        r"flight|tour|slot|start|delivery|connection|exam|appointment|window|cut-?off))\b"),
    cue(2, "no again nobody",
        r"\b(?:gave|got|shows?|showed|produced|yielded|had|returned) no (?:bands?|signal|result|results|data|growth|"
        r"answer|output|response)\b|\bno (?:bands|signal|growth|hot water|power|connection)(?: again| since| at all|"
        "[.,])"),
    cue(2, "order memory stock propane gas space out",
        r"\b(?:is|are|was|were|'s) out of (?:order|service|stock|tolerance|date|action|sync)\b|\b(?:ran|run|running|"
        "runs) out(?: of(?! context)|[.,!]|$)",
        needs="out of |ran out|run out|running out|runs out"),
)


# What stands before a participle that tells what something is like, and not who did it.
_NO_DOER = words(
    "the a an of be been being to in on for with or by from as no if when only its their our his her your my "
    "these those each any every than between into via per newly never yet would could might may t"
)


COMPLETION_CUES: tuple[Cue, ...] = table(
    MustKeepKind.COMPLETION,
    # reversals
    cue(2, _DID,
        rf"(?<!\bno )(?<!\bkeep )\b(?:i|we|they|he|she|(?!(?:{_NO_DOER})\b)\w+)(?:'ve|'s| have| has)? (?:just |"
        rf"already |finally |now |also |successfully |"
        rf"since |both |all |have )*(?:{_DID})\b (?!(?:away|off|you|that i|me|up with|by the|to be|in touch|flowers|"
        r"with me|by|from my|to my|it so|a lot|like|and)\b)(?:\w+|[#\"$'`])"),
    cue(-1, "added updated removed created built passed sent",
        r"\b(?:he|she|it|they|that|which)(?:'s|'ve)? (?:\w+ )?(?:added|updated|removed|created|built|passed|sent)\b"),
    cue(2, _DID,
        "^(?:and |ok,? |okay,? |great,? |finally,? |just |already |successfully |also |yesterday |today |- "
        f")*(?:{_DID}|made|set up|picked up|cleaned up|rolled out|signed off|handed in|cut over|taken care "
        r"of)\b(?:[ :])(?!by\b|the following|with\b|in\b)"),
    cue(2,

        "done finished complete completed fixed merged closed deployed released shipped booked paid ordered "
        "submitted installed delivered signed published repaired solved resolved sorted implemented live ready "
        "place door uploaded migrated launched filed renewed printed painted replaced sent built running sealed "
        "cleaned reserved counted sequenced calibrated approved green passing poured mounted assembled restored "
        "working online cleared tested written drafted planted hung packed labelled labeled measured swept "
        "documented translated taken wrapped sold handed set put back",
        r"(?:(?<=[\w#'./-]) (?:is|are|was|were|"
        r"has been|have been|got|were all)|it's|that's|\beverything's) (?:now |all |finally |already |"
        rf"fully |both |just |successfully |officially |also )*{_DONE_ADJ}\b(?! (?:to (?:go|take|be|start|see|help|"
        "try|get)|by (?:the|a) (?:same|idea)|with|for (?:you|me|a)|within|every|daily|weekly|once|twice|only|"
        r"before|if|when|in the|so|as|at (?:it|me)|of|about|like|on time if|enough|yet|\w+ing))(?!.*\b(?:isn't|not|"
        r"yet to|if|should be|will be|once)\b)"),
    cue(2, "pass passed passing green",
        r"\b(?:all|both|\d+|every|the|unit|integration|e2e) (?:[\w-]+ ){0,3}?(?:tests?|checks?|suites?|lint(?:er)?|"
        r"builds?|pipeline|ci|inspections?)(?: \w+)? (?:pass|passed|passes|passing|are green|is green|are passing|"
        r"is passing|succeeded|succeeds)\b|\bpassed (?:the|all|our|its|every)\b"),
    cue(2, "succeeded through arrived landed arrived went out in live gone",
        r"\b(?:succeeded|went through|came through|has arrived|have arrived|(?:has|have) landed|went out|is out(?: "
        "now|[.!]|$)|went live|is live|are live|is in(?: now|[.!]|$))(?! of| and about)",
        needs="succeeded|went |came through|arrived|landed|is out|is live|are live|is in"),
    cue(2, "again back",
        r"\b(?:works?|working|runs?|running|up|online|stable|green|passing|usable|open|on) again\b|\bback (?:up|"
        r"online|in (?:service|operation|action|stock)|to normal)\b"),
    cue(2, "finally got",
        r"\b(?:finally |just )?got (?:the|our|all|it|that|my) [\w' -]{2,30} (?:repaired|fixed|done|working|finished|"
        r"sorted|signed|approved|installed|running|booked|back up|merged|delivered)\b"),
    cue(2, "done finished completed complete",
        "^(?:ok,? |all |and |great,? |that's |it's )?(?:done|finished|completed?)(?:[:—–-]| with| and| —|, "
        r")\s?(?=.{8})(?!.*\?)"),
    cue(1, "already finally", r"\b(?:already|finally)\b"),
    cue(1, "closes fixes resolves closed fixed resolved", r"\b(?:closes|fixes|resolves|closed|fixed|resolved) #\d+"),
    cue(2,
        "called phoned chased emailed texted contacted handed returned picked dropped cleaned collected measured",
        "^(?:i|we)(?:'ve| have)? (?:just |already |finally )*(?:called|phoned|chased|contacted|emailed|texted|"
        r"handed|returned|picked up|dropped off|cleaned|collected|measured) (?:the|our|all|mr|mrs|ms|dr|\w+)\b(?! "
        "(?:and told|because))"),
    # failures, completions and open items told plainly
    cue(2, "been",
        rf"\b(?:has|have) (?:now |all |already |just |finally |both )*been (?:\w+ly )?{_PARTICIPLE}\b(?! (?:by how|"
        r"to (?:see|be|have|hear)|with (?:the|such)|about|in (?:you|it)))(?!.*\b(?:so|really|amazing|great|"
        r"inspired|blessed|interested|excited|worried|used to|trying)\b)"),
    cue(2,
        "went through gone report form application grant paper proposal offer order payment bid draft paperwork "
        "result results",
        r"\b(?:went out|went off|is through|are through|(?:report|form|application|grant|paper|proposal|offer|order|"
        "payment|bid|draft|paperwork|results?) (?:is|are) (?:in|out|off)|(?:bug|leak|error|problem|issue|crash|"
        r"smell|noise|backlog)s? (?:\w+ ){0,6}?(?:is|are) gone)\b"),
    cue(2, "picked dropped collected handed got cleaned cleared signed fetched returned",
        r"\b(?:i|we|they|he|she)(?:'ve|'s| have| has)? (?:just |already |finally )*(?:picked up|dropped off|"
        "collected|handed (?:in|over)|turned in|cleared|fetched|returned|signed|put up|took down|set up) (?:the|"
        r"our|all|my|both|two|three|a|\d+)\b|\bgot (?:the|our|a|an) [\w' ]{2,25} to (?:confirm|agree|sign|send|"
        r"accept|fix|deliver)\b"),
)

# fmt: on
_EXIT = re.compile(
    r"^\W*(?:[\w ]{0,30}\b)?exit(?:ed)?(?: with)?(?: code| status):? (?:[1-9]\d{0,2})\b", re.IGNORECASE | re.MULTILINE
)
# A compiler puts one blank behind the place; a search puts the line as it stands there, indented.
_FAILURE_LINE = re.compile(
    r"^(?:[^\s:]{1,80}:\d+(?::\d+)?: ?|\s*)"
    r"(?:E\s{2,}|(?:fatal|error|panic|FAILED|FAIL|ERROR|Error|Fatal)\b(?:\[\w+\])?[: ]\s?\S|"
    r"(?:[\w.]*[a-z](?:Error|Exception)|Traceback \(most recent call last\))(?::|$)).*(?<![\"'],)$",
    re.MULTILINE,
)
# One of these stands in each such line.
_FAILURE_MARKS = ("rror", "RROR", "FAIL", "atal", "anic", "xception", "raceback", "E  ", "E\t")
# What a failing command says of it, where no line begins with a word of failure.
_TELLING_LINE = re.compile(
    r"^(?!\s*(?:=== |--- PASS|ok\b|PASS|[#*+<>|{}/]|-\s|\d+[-:→|\t]|\S+:\d+:\s\s)).*(?:\b(?:errors?|fail(?:ed|s|ure)?|"
    r"fatal|cannot|"
    r"can't|could ?n[o']t|not found|no such|undefined|undeclared|unresolved|invalid|illegal|denied|refused|missing|"
    r"unexpected|expected|unknown|unrecognized|unable|unsupported|mismatch|must|too (?:many|few)|accepts|requires?|"
    r"want|not (?:a|an|in|set|formatted|properly|supported|allowed|installed)|timed out|conflict|rejected|usage:)\b|"
    r":\d+:\d+: \S).*$",
    re.MULTILINE | re.IGNORECASE,
)
_MAX_OUTPUT_FAILURES = 2
_MAX_LINE_CHARS = 200
_HEAD_CHARS, _TAIL_CHARS, _SHORT_CHARS = 2_000, 500, 4_000
_LISTING = re.compile(r"\s*\d+[→|:\t-]")


def failure_lines(text: str) -> list[str]:
    """Find the lines that tell of failures in what a tool printed, at most two; the exit status where none does."""
    exits = None
    if "exit" in text or "Exit" in text or "EXIT" in text:
        exits = _EXIT.search(text, 0, _HEAD_CHARS) or _EXIT.search(text, max(0, len(text) - _TAIL_CHARS))
    lines: list[str] = []
    if (exits or len(text) < _SHORT_CHARS) and any(mark in text for mark in _FAILURE_MARKS):
        for match in _FAILURE_LINE.finditer(text[:20_000]):
            line = match.group().strip()[:_MAX_LINE_CHARS]
            if line not in lines and not _LISTING.match(line):
                lines.append(line)
            if len(lines) == _MAX_OUTPUT_FAILURES:
                break
    if not lines and exits:
        begin, end = exits.span()
        telling = _TELLING_LINE.search(text, end, end + _SHORT_CHARS) or _TELLING_LINE.search(
            text, max(0, begin - _SHORT_CHARS), begin
        )
        lines = [(telling or exits).group().strip()[:_MAX_LINE_CHARS]]
    return lines
