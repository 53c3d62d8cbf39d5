"""The words of bans and duties, as patterns: never, must not, must, always, only, from now on."""

from __future__ import annotations

from orchestra_mem.core.cues.cue import NUMBER, PAST, START, Cue, cue, table, words
from orchestra_mem.types import MustKeepKind

# Tables: what belongs to a cue stands together.
# fmt: off

_NEVER_STOP = words(
    "mind been had have seen knew thought heard said again felt got been once really actually quite fails ending "
    "tire "
    "get know would could did imagined expected happened too gets ceases stop stops a an the in forget cease tried"
) + f"|{PAST}"
_ALWAYS_STOP = words(
    "love loves loved loving enjoy enjoys feel feels fun great nice good happy here there remember knew know makes "
    "wonder welcome seem seems something say says said look looks looking up so a an the glad supportive worth "
    "inspiring amazing exciting interesting dreamed wanted been had in like on such my happening find finds believe "
    "hard tough tricky easy more room time important cool lovely refreshing comforting fascinating been reminds "
    "one another has have having helps felt try trying next think thinking laugh laughs thankful grateful hungry "
    "was were did been down bring brings being talk talking open"
) + f"|{PAST}"
_DONT_STOP = words(
    "worry know think mind care want have need see remember recall like feel seem look believe understand get even "
    "really hesitate miss panic sweat stress bother be give exist work works matter belong live mean beat let tell "
    "always usually forget expect suppose necessarily actually want wanna quite fully yet do agree sell doubt you i "
    "we "
    "guess find apply require seem contain show hear pass match appear hold happen wish hate blame start come"
)
_SOFT = "really|absolutely|strictly|always|completely|totally|also|still|now|very|utterly|expressly|generally"
_RULE_VERB = words(
    "use accept take serve buy order call email mail send deploy merge push run open enter touch add write read "
    "allow "
    "commit change install ship hire share edit speak wear park cook log test book invite contact pay store keep "
    "release "
    "start work print ask cut sell play sign feed give go let put include make hand talk hold do heat pour bring "
    "plug "
    "admit plant water quote reply answer post publish schedule discuss show throw charge refer stick"
)
_IMPERATIVE_VERB = words(
    "label wash lock close turn check tell leave set clean rinse switch name format round document wait charge "
    "mark address treat prefer return knock cover wrap separate seal rotate review report count measure spell "
    "number "
    "follow stay move remove save back ping copy notify route respect verify default disinfect sort stack"
) + f"|{_RULE_VERB}"
_EPISTEMIC = words(
    "tired exhausted proud joking kidding nice hard great fun thrilled excited amazing so really such a an the "
    "wrong "
    "right mistaken crazy tough difficult exciting feeling it relieved pleased overwhelmed devastated worried "
    "scared "
    "stressed bored incredible awesome lovely busy very quite fantastic tough super rough wonderful awful terrible "
    "frustrating nerve some something quite freezing cool hungry starving missing rewarding inspiring satisfying"
)
_NOBODY_STOP = words(
    "knows know cares care likes like wants want is was has had would will beats compares happens seems works "
    "helps fits else but except in on too really ever even could can did seemed says said feels makes changes "
    "does answers needs reads sees looks here there special new wrong major left at about compared like quite "
    "matches "
)
_NO_STOP = words(
    "problem problems worries idea way doubt thanks thank need matter wonder rush big pressure offense luck "
    "clue kidding pain joke biggie hurry news sweat it i we he she they that this you not there one other such "
    "issues issue errors error changes warnings failures failing matches results tests test difference "
    "differences output sign evidence updates update questions question more further additional longer code "
    "new functional regressions diff open remaining existing objection objections comment comments response "
    "answer reply shame judgment better place words regrets "
)
_CANNOT_STOP = words(
    "wait believe imagine help see find remember figure tell say complain thank afford handle understand hear "
    "parse load connect reach resolve stand keep make get think even really be stop deny do express go compete "
    "remember quite recommend recall tell stress emphasize always put replace beat hide just wrap "
)
# Who is forbidden something where they "may not"; of machines it is a guess.
_PEOPLE = words(
    "guests visitors children kids students pupils players members volunteers drivers passengers customers patients "
    "parents employees staff contractors interns tenants dancers singers musicians actors runners riders walkers "
    "swimmers climbers campers judges voters speakers participants attendees candidates apprentices trainees amateurs "
    "adults minors dogs cats pets"
)
_MAY_NOT_STOP = words(
    "be have know like want need work happen get see find notice remember understand realise realize agree care think "
    "feel hear exist fit help matter look seem mean make last survive believe even always ever actually still quite "
    "fully really necessarily come recognise recognize recall expect enjoy love appreciate hold apply become show "
    "support receive reach arrive succeed manage turn end return respond answer reply all"
)


DUTY_CUES: tuple[Cue, ...] = table(
    MustKeepKind.CONSTRAINT,
    # negation
    cue(3, "never", rf"{START}never(?:,? ever)? (?!(?:{_NEVER_STOP})\b)\w+", imperative=True),
    cue(3, "never",
        r"\b(?:must|should|shall|may|can|will|ought to|are to|is to|'ll|let's|to) never\b(?! (?:be the same|forget|"
        "know))"),
    cue(2, "never", rf"\b(?:we|you|they|people|one) never (?!(?:{_NEVER_STOP})\b)\w+"),
    cue(2, "never", rf"^(?:the|our|all|any|[\w-]+s)(?: [\w-]+){{0,3}} never (?!(?:{_NEVER_STOP})\b)\w+"),
    cue(2, "never", r"\b(?:i|he|she|\w+) never (?:eats?|drinks?|uses?|works?|touch(?:es)?|takes?|wears?|drives?) "),
    cue(2, "nobody no-one none nothing one not",
        r"\b(?:nobody|no one|no-one|nothing|none of (?:us|you|them|the \w+)|not a single \w+)"
        "(?: (?:else|(?:but|except|other than|besides|apart from|outside|under|over|without|from|in|on|below|"
        r"above)[\w' -]{2,40}?))? "
        rf"(?!(?:{_NOBODY_STOP}|{PAST})\b)(?!to (?!(?:be|leave|enter|go|come|get)\b))"
        r"[a-z]+\b(?! (?:quite )?like\b)",
        needs="nobody|no one|no-one|nothing|none of|not a single"),
    cue(3, "nobody no-one nothing one no",
        r"\b(?:nobody|no one|no-one|nothing|no [\w-]+(?: [\w-]+)?)(?: (?:else|but [\w' ]+|except [\w' ]+|without "
        r"[\w' ]+|under [\w' ]+))? (?:may|must|should|shall|is to|are to|is allowed|are allowed|gets to)\b",
        needs="nobody|no one|no-one|nothing|no "),
    cue(2, "no",
        r"^(?:(?:please|and|so|also|but|again|remember|rule|ok|okay|then|one more thing|important|oh)\b[,:]? )*no "
        rf"(?!(?:{_NO_STOP})\b)"
        r"(?![^,;]*\b(?:is|are|was|were|has|have|had|did|does|found|came|i'm|it's|that's|left|yet|needed|required|"
        r"means?|been)\b)"
        r"(?:[\w'-]+ ){0,3}?[\w'-]+ (?:in|on|at|after|before|without|inside|during|near|past|over|under|for|until|"
        "unless|please|allowed|whatsoever|from|to|beyond|between|outside|anywhere|while|within|except|with|above|"
        r"below|this|by)\b"),
    cue(2, "no",
        "^(?:please,? |and |so |also,? )?no (?!(?:kidding|feeling|warning|meaning|missing|failing|breaking|"
        r"existing|remaining|matching)\b)\w+ing\b(?! (?:issues?|errors?|problems?|warnings?|needed|required|"
        r"necessary)\b| \()"),
    cue(3, "nobody no-one one", rf"\b(?:nobody|no one|no-one) can (?:just )?(?!(?:{_CANNOT_STOP})\b)\w+ [^.;:?]+, not "
        r"even (?:the |our |my |your |his |her |if |when |for |with |on |in )?\w"),
    cue(2, "may", rf"\b(?:you|{_PEOPLE}) may not (?!(?:{_MAY_NOT_STOP})\b)\w"),
    cue(1, "don't do", rf"{START}(?:don't|do not) (?!(?:{_DONT_STOP})\b)\w+", imperative=True),
    cue(1, "don't do",
        rf"{START}(?:don't|do not) (?!(?:{_DONT_STOP})\b)\w+ (?!(?:up|you|yourself|me)\b)\w+", imperative=True),
    cue(3, "don't do",
        rf"{START}(?:don't|do not)(?: you)?(?: dare|,? ever|,? under (?:any|no)|,? at any)\b", imperative=True),
    cue(2, "avoid refrain stay steer keep hands leave quit",
        f"{START}(?:avoid|refrain from|stay (?:off|away|out|clear|behind|within)|steer clear|keep (?:off|out|away|"
        r"clear|[\w' -]{2,40} (?:off|out of|away from|clear of|closed|shut|locked|separate|apart|dry|cold|"
        r"private|confidential|secret|to yourself|open|covered|upright))|hands off|leave [\w' -]{2,40}? (?:alone|"
        r"closed|shut|untouched|as is|in place|where)|quit \w+ing)\b", imperative=True),
    cue(2, "stop",
        f"{START}stop (?!(?:thinking|smiling|laughing|loving|wondering|worrying|crying|dreaming|raining|"
        r"playing)\b)\w+ing\b", imperative=True),
    cue(3, "mustn't must", r"\b(?:mustn't|must not)\b(?! have)"),
    cue(2, "shall shan't", r"\bshall\b(?! (?:we|i)\b)|\bshan't\b"),
    cue(2, "shouldn't should",
        r"\b(?:you|we|nobody|they|people|it|this|that|these|those|the [\w-]+(?: [\w-]+)?|[\w-]+s) (?:shouldn't|"
        "should not) (?!(?:have|be (?:a|an|too|hard|able|that|so|difficult|much|any|surprised|possible|affected|"
        "needed|necessary|the)|take|matter|affect|cause|need|happen|feel|fail|break|even|worry|see|get|come|"
        r"get)\b)\w+"),
    cue(2, "can't cannot can",
        r"\b(?=can)(?<!i )(?<!he )(?<!she )(?<!we )(?<!it )(?<!that )(?<!just )(?<!really )(?<!which )(?<!still "
        r")(?<!they "
        r")\b(?:can't|cannot|can not) (?:be (?!(?:sure|certain|the|a|that|so|able|happier|more|easy|there|bothered|"
        r"true|right|found|resolved|parsed|determined|read|loaded|reached|good|wrong|what|too|as)\b)|"
        rf"(?!(?:{_CANNOT_STOP})\b))\w+ \w+"),
    cue(3, "not",
        r"\bnot (?:strictly |absolutely )?(?:allowed|permitted|authori[sz]ed|supposed to|acceptable|negotiable|"
        r"optional|to be (?:\w+ed|taken|left|given|sold|worn|shown|put|thrown|eaten|driven|seen|told)\b)"),
    cue(2, "doesn't don't won't",
        r"\b(?:the|our|all|any|contractors|guests|visitors|interns|students|pupils|[\w-]+s) (?:don't|doesn't|won't) "
        r"(?:get|leave|go|touch|enter|receive) (?!(?:me|us|it|to|the|well|away|along|much|any|enough|why)\b)"),
    cue(1.5, "don't",
        rf"\b(?:we|you) (?:don't|do not) (?:ever )?(?!(?:{_DONT_STOP}|go|use|talk|speak|actually|support|check|set|"
        r"handle|only|make|pass|run|just|call|lose|write|take|load)\b)\w+ "),
    cue(1.5, "don't",
        r"\b(?:we|you) (?:don't|do not) [\w' -]{3,60}? (?:on|in|at|before|after|until|unless|without|during|to "
        r"anyone|for anyone|from) (?:the |any |a |our )?(?:\w+days?|week|weekends?|night|public|person|cash|advance|"
        r"writing|\w+)\b"),
    cue(2, "never",
        r"^(?!.*\b(?:was|were|had|did)\b).*"
        r"\bnever (?:in(?! (?:my|a million|a)\b)|on|at|with|by|from|before|after|during|without|inside|more than|"
        r"alone|to|the)\b(?!.*\b(?:was|were|had|did)\b)"),
    cue(2, "use",
        r"^(?:(?:please|and|so|also|ok|okay)\b,? )*use (?!(?:of|it to|this to|case|cases)\b)[\w-]+ ", imperative=True),
    # duty
    cue(3, "must",
        r"(?<!\b(?:i|a) )\bmust\b(?!-|'| not\b)(?! (?:have|say|admit|confess|see|read|watch|try|visit|feel|seem|"
        rf"love|mean|know|be nice|really|think|look|'ve|bring back|be going|for|{PAST})\b)(?! be "
        rf"(?:{_EPISTEMIC})\b)"),
    cue(-3, "must",
        r"\b(?:you|it|that|he|she|they|this|there) must be\b(?! (?:\w+ed (?:by|before|within|in|after|until|for|"
        "with|to)|kept|sent|signed|worn|done|used|paid|held|at least|in by|back by|able|present|accompanied|stored|"
        r"labell?ed|reviewed|approved|locked|checked|cleaned|under|below|above|within|no|\d))"),
    cue(2, "has have",
        r"(?:^|[,;:.] )(?!(?:i|we|you|he|she|it|they|what|all (?:i|we|you))\b)[\w'-]+(?: (?!(?:i|we|you|he|she|it|"
        r"they)\b)[\w'-]+){0,6} (?:has|have) to (?!(?:say|admit|do with|offer)\b)\w+"),
    cue(2, "all every each any anything everything everyone everybody anyone anybody whoever",
        r"\b(?:all|every|each|any|anything|everything|everyone|everybody|anyone|anybody|whoever)\b[\w', "
        r"-]{0,60}?\b(?:must|shall|should|needs?|has to|have to|is to|are to|requires?|ought to|need to)\b(?! "
        r"(?:be (?:fine|ok|okay|good|able|there)|work|feel|know|help|pass|all)\b)",
        needs="must|shall|should|need|has to|have to|is to|are to|require|ought to"),
    cue(2, "all every each any anything everything everyone everybody anyone",
        r"^(?:[\w' ,-]{0,30}\b(?:from now on|please|remember|and|so|also)\b,? )?(?:all|every|each|any|anything|"
        r"everything|everyone|everybody|anyone)\b[\w', -]{0,50}? (?:goes?|gets?|stays?|remains?|belongs?|comes?|"
        "runs?|is (?:kept|signed|stored|logged|checked|billed|reviewed|locked|washed)|are (?:kept|signed|stored|"
        "logged|checked|billed|reviewed|locked|washed)|wears?|signs?|uses?) (?:through|to|in|into|via|out|at|on|by|"
        r"with|under|off|home|over|between|after|before|up|a|an|the|their|its|for|two|at)\b"),
    cue(1, "need have required expected 'll",
        r"\b(?:you|they|guests|students|pupils|visitors|staff|everyone) (?:need|have|will need|'ll need|are "
        r"required|are expected|will have|are supposed) to\b"),
    cue(1, "need have",
        r"\byou (?:have|need|'ll need) to\b.*\b(?:when|before|after|if|every|each|until|as soon as|whenever)\b"),
    cue(2, "over above below under past beyond than",
        r"\b(?:can't|cannot|can not|won't|mustn't|must not|may not|shouldn't|should not|not to) (?:go|be|run|get|"
        "cost|take|last|weigh|drop|fall|rise|exceed|spend|pay) (?:any )?(?:over|above|below|under|past|beyond|"
        rf"more than|less than|longer than|later than|earlier than) (?:\w+ )?{NUMBER}"),
    cue(2, "always",
        r"^(?!(?:i|you|he|she|it|that|they|this|there|we)\b)[\w' -]{2,30} (?:is|are) always (?!(?:a|an|the|so|such|"
        "fun|been|there|here|great|good|nice|welcome|worth|on my|up|open to|happy|special|ready for|room|more|"
        r"something|amazing|interesting|important|\w+(?:ing|ful|able)\b(?! to\b))\b)\w+"),
    cue(2, "every",
        r"\b(?:we|you|they|[\w-]+s) (?!(?:was|were|did|had|played|used|love|enjoy|see|meet|miss)\b)\w+(?: "
        r"[\w-]+){0,3} every (?:two|three|four|six|other|second|third|\d+|day|week|month|year|morning|evening|night|"
        r"quarter|sprint|hour|\w+day)\b(?!.*\b(?:was|were|love|fun|enjoy)\b)"),
    cue(2, "within every once twice daily weekly monthly nightly before after only",
        r"^(?:[\w' ]{1,30}[,:] )?(?:the |our |all )?[\w' -]{2,40} (?:is|are|get|gets) (?:\w+ed|paid|sent|kept|taken|"
        "swept|cut|done|made|given|held|put|run|built|read) (?:within|every|once (?:a|per|every)|twice (?:a|per)|"
        r"daily|weekly|monthly|nightly|before|after|only)\b"),
    cue(2, "required expected requested",
        r"\b(?:is|are|'re) (?:required|expected|requested|obliged|supposed) to\b(?! be (?:a|the|good|great))"),
    cue(1, "whenever before unless until without every always each after",
        r"\b(?:whenever|every time|each time|unless (?:you|we|i|the|it|they|a|an|there|someone|somebody|both|helen|"
        r"\w+)|without (?:a|an|my|the|your|written|prior|two|asking|permission|gloves|approval|\w+ing)|before "
        r"(?:you|they|going|any|every|each|\w+ing|it|the)|until (?:the|we|you|i|it|they|a|further|\w+day))\b"),
    cue(2,
        "required mandatory compulsory obligatory essential imperative forbidden prohibited banned limits bounds "
        "non-negotiable unacceptable disallowed taboo verboten necessary crucial vital critical",
        rf"(?:\b(?:is|are|be|remains?|stays?|isn't|it's|that's|they're|as)|'s|'re) (?:(?:{_SOFT}) )*(?:required|"
        "mandatory|compulsory|obligatory|imperative|forbidden|prohibited|banned|off[- ]limits|out of bounds|"
        r"non-negotiable|unacceptable|disallowed|taboo)\b(?! reading)"),
    cue(2, "important essential crucial critical vital imperative necessary",
        r"\b(?:it's|it is|is|very|really) (?:very |really |absolutely |extremely |super )?(?:important|essential|"
        r"crucial|critical|vital|imperative|necessary) (?:that\b|nobody|no one|everyone|everybody|we (?:don't|never|"
        r"always|only|keep)|you (?:don't|never|always|only|keep)|not to\b|to (?:never|always|only|not|keep)\b)"),
    cue(2,
        "rule rules policy protocol guideline guidelines regulation regulations convention requirement condition "
        "principle law restriction standard",
        r"\b(?:the|our|my|one|house|hard|golden|ground|standing|safety|strict|company|school|new|general|only|first|"
        r"basic|key|simple|a) (?:\w+ )?(?:rules?|policy|protocol|guidelines?|regulations?|convention|requirement|"
        r"condition|restriction|standard)(?: (?:here|for [\w ]{2,30}|on [\w ]{2,30}|about [\w ]{2,30}|now|in [\w "
        r"]{2,20}|at [\w ]{2,20}))? (?:is|are|says?|states?|remains?|applies|of|that)\b(?! (?:was|were|been|so|very|"
        "too|thumb))"),
    # always, only, from now on
    cue(3, "always", rf"{START}always (?!(?:{_ALWAYS_STOP})\b)\w+", imperative=True),
    cue(3, "always",
        r"\b(?:must|should|shall|will|needs? to|has to|have to|are to|is to|'ll|ought to|please|may|can) "
        r"always\b(?! (?:be (?:a|the|there|here|my|special|in|grateful|proud|remembered|thankful)|remember|love|"
        "cherish|find|count|treasure|feel|support))"),
    cue(2, "always",
        rf"\bwe always (?!(?:{_ALWAYS_STOP}|end|seem|talk|go|play|joke|hang|celebrate|bond|get|share|come)\b)\w+ "),
    cue(2, "always",
        r"^(?:the|our|all|any|[\w-]+s)(?: [\w-]+){0,3} (?:always (?:goes|go|gets|get|stays|stay|comes first|come "
        "first|starts|start|uses|use|belongs|wears)|(?:is|are) always (?!(?:a|an|the|so|such|fun|been|there|here|"
        r"great|good|nice|welcome|worth|on|up|my|open to|happy|special)\b)\w+)"),
    cue(3, "only",
        r"(?:^|[,;:—] |\band |\bbut |\bso |\bthat )only (?!(?:a|to|one of|because|time|thing|if|when|after|then|"
        r"once|just)\b)[\w'’&.-]+(?: [\w'&.-]+){0,5}? (?:may|can|should|must|(?:is|are) (?:allowed|permitted|"
        "authori[sz]ed|supposed|to|admitted)|gets? to|gets?|has (?:the|access|keys)|have (?:the|access|keys)|"
        "touch(?:es)?|signs?|approves?|uses?|goes|go|enters?|handles?|drives?|opens?|deploys?|orders?|decides?|"
        r"talks?|speaks?)\b"),
    cue(3, "only", r"\b(?:may|must|should|shall|is to|are to|has to|have to|needs? to) only\b",
        needs="may only|must only|should only|shall only|to only"),
    cue(2, "only",
        r"\b(?:can|will|'ll|we|they|i|guests|you) only (?:be (?:used|opened|done|served|accessed|changed|entered|"
        rf"made|given|sold|taken|stored|reached|paid|merged|deployed)|{_RULE_VERB})\b(?! (?:so|imagine|"
        r"one))(?=.*\b(?:when|if|after|once|with|from|on|in|by|at|between|for|before|via|through|under|over|to)\b)"),
    cue(2, "only",
        rf"{START}(?:{_RULE_VERB}) [\w' -]{{0,30}}?\bonly (?:the|with|at|on|in|from|after|when|by|for|between|if|"
        r"once|to|via|through|\w+s|\w+ed)\b", imperative=True),
    cue(1, "only",
        r"\bonly[.!]?$|\bonly (?:with|after|when|if|once|by|between|during|via|through|until|on (?:weekdays|"
        r"\w+days?)|in (?:writing|the|emergencies))\b"),
    cue(1, "only",
        r"\b(?:(?:is|are) \w+ed\b.*\bonly|accepted|allowed|permitted|staff|members|adults|emergencies|authori[sz]ed "
        r"[\w ]+) ?only\b|\b(?:is|are) (?:\w+ed|open)\b.*\bonly\b"),
    cue(2, "else exceptions exception costs matter whatever non-negotiable notice period ifs exclusively reserved",
        r"\b(?:nowhere else|nobody else|no one else|no exceptions|without exceptions?|at all costs|no matter "
        "(?:what|who|when|how|which|where)|whatever you do|until further notice|no ifs|exclusively (?:for|by|in|on|"
        r"to)|(?:is|are) reserved for)\b"),
    cue(2,
        "now here today effective notice henceforth onwards onward monday tuesday wednesday thursday friday "
        "saturday sunday tomorrow point week",
        r"\b(?:from (?:now|here|today|tomorrow|this point|that point|\w+day|next week|\w+ \d+)(?: on(?:wards?)?| "
        r"forward)\b|henceforth|effective (?:immediately|today|\w+day|now)|as of (?:now|today|tomorrow|\w+day|next|"
        "this)|from today|until further notice)",
        needs="from |henceforth|effective |as of |further notice"),
    cue(1, "forward default starting rule throughout everywhere times board strictly",
        r"\b(?:going forward|moving forward|by default|starting (?:today|tomorrow|next|\w+day)|as a rule|throughout|"
        r"everywhere|at all times|in all cases|across the board|strictly)\b"),
    cue(1, "rule times", r"\b(?:as a (?:general )?rule|as a matter of (?:policy|principle)|at all times)\b"),
    cue(1, " ".join(_IMPERATIVE_VERB.split("|")),
        rf"^(?:(?:please|and|so|also|oh|ok|okay|then|hey|team|everyone|folks)\b,? )*(?:{_IMPERATIVE_VERB}) "
        r"(?!(?:you|i|it's|is|are|was|for|of)\b)", imperative=True),
    cue(2, "whenever every each anytime",
        r"(?:^|[,;:—] |\band |\bso )(?:whenever|every time|each time|any ?time) (?:you|we|someone|anyone|anybody|"
        r"somebody|a|an|the|there)\b[^,]{3,80}, (?:then )?(?:please |always |never |don't |you "
        rf")?(?:{_IMPERATIVE_VERB}|bump|update|announce|make|must|should|need)\b"),
    cue(2, "if when once after before",
        r"^(?:[\w ]+[,:] )?(?:if|when|once|before|after)\b[^,]{4,90}, (?:please |then )?(?:always|never|don't|do "
        r"not|only|make sure|avoid|you must|you need to|you have to|no one|nobody)\b"),
    cue(1, "if when once before after",
        rf"^(?:if|when|once|before|after)\b[^,]{{4,90}}, (?:please |then |always )?(?:{_IMPERATIVE_VERB})\b(?! "
        "(?:me know|you|i|it))"),
    cue(2, "sure certain ensure see mind remember careful",
        f"{START}(?:make (?:very |absolutely |double |doubly |damn )?(?:sure|certain)|ensure|double-check|be "
        "(?:sure|certain|careful) (?:to|that|not|you|with|when)|see to it|mind (?:the|that)|(?:keep|bear) in mind|"
        r"do remember|take care (?:to|not|that))\b", imperative=True,
        needs="sure|certain|ensure|double-check|see to it|mind |in mind|do remember|take care|careful"),
    cue(2, "instead not",
        r"(?:\bwe (?:use|write|speak|go by|work|deploy|count|measure|bill|say|call|do|store|serve|name)|"
        rf"{START}(?:{_IMPERATIVE_VERB}))\b [^,.;]{{2,60}}, not (?!(?:sure|only|to mention|just|yet|bad|really|too|"
        r"that|because|all|even|so|always|quite|me|a big)\b)\w+", imperative=True,
        needs=", not "),
)
