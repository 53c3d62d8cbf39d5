"""The words of decisions and of taking them back, as patterns: agreed, let's, moved to, scrap that, no longer."""

from __future__ import annotations

from orchestra_mem.core.cues.cue import NICE, NUMBER, PAST, START, Cue, cue, table, words
from orchestra_mem.types import MustKeepKind

# Tables: what belongs to a cue stands together.
# fmt: off

_WE = r"(?:we|i|they|he|she|you|everyone|everybody|[\w']+(?: [\w']+)?)"
_HAVE = (
    "(?:'ve|'d|'s| have| has| had)?(?: (?:both|all|finally|also|already|now|just|since|officially|unanimously|"
    "jointly|collectively|now))*"
)
_LETS_STOP = words(
    "see hope say face be talk chat catch look check verify explore find dig get try hear know think imagine "
    "examine investigate understand review remember celebrate enjoy toast discuss wait continue begin first "
    "follow pray keep "
)
_CHOICE = words(
    "use go take skip drop switch move adopt stop hold postpone cancel replace choose pick stick defer delay keep "
    "reschedule push bring swap convert migrate standardize standardise settle opt allow"
)
_WE_WILL = words(
    "use go take skip drop switch move adopt start stop hold wait postpone cancel replace remove make do serve "
    "offer run "
    "meet pay buy hire rent plant paint build host travel keep order split open close bill charge publish ship pour "
    "send store limit phone call write share cook bake print focus target present submit deploy release migrate "
    "deliver "
    "merge invite plan install support allow accept treat train seat hang measure sample raise lower cut extend "
    "combine"
)
_PASSIVE = (
    "(?:approved|rejected|deferred|postponed|cancelled|canceled|decided|agreed|settled|chosen|selected|awarded|"
    "adopted|"
    "scrapped|shelved|called off|ruled out|rescheduled|moved (?:to|from|up|back|forward|out)|pushed (?:back|to|out|"
    "by)|"
    "brought forward|put off|put on hold|on hold|lifted|revoked|waived|withdrawn|raised (?:to|from|by)|"
    "lowered (?:to|from|by)|cut (?:to|from|by)|reduced (?:to|from|by)|increased (?:to|from|by)|"
    "extended (?:to|until|by|from)|replaced (?:by|with)|changed (?:to|from)|overturned|reversed|turned down|"
    "dropped|"
    "accepted|finali[sz]ed|vetoed|switched (?:to|from)|set (?:at|for|to(?! (?:true|false|null|none|nil|x{3,}|the|a|an|"
    "be)\\b))|suspended|abolished|repealed|off the "
    "table|"
    "off the menu|back on|merged into|rolled back|signed off|confirmed (?:for|as|to))"
)
_PLAN_ING = words(
    "doing having making getting ordering buying serving renting hiring inviting running holding putting setting "
    "painting building "
    "leaving ditching renewing selling starting ending opening paying bringing sending splitting meeting printing "
    "launching dropping "
    "extending going switching booking baking cooking pouring planting shipping deploying writing rewriting "
    "freezing charging "
    "offering organising organizing hosting staying travelling traveling submitting presenting publishing recording"
)
_GOES = (
    "stays?|goes|go|ends?|starts?|begins?|gets?|counts?|moves?|comes?|runs?|closes?|opens?|holds?|applies|apply|"
    "remains?|leaves?|departs?|costs?|stops?|waits?|shuts?|resumes?"
)
_WE_STOP = words(
    "thinking hoping looking trying talking getting going having loving enjoying feeling chatting lucky catching "
    "hanging learning growing working making building coming heading doing being struggling sure alone together "
    "happy ready so able still seeing watching playing eating sitting living kidding"
)


DECISION_CUES: tuple[Cue, ...] = table(
    MustKeepKind.DECISION,
    # standing preferences
    cue(3, "decided agreed settled opted resolved concluded voted elected",
        rf"\b{_WE}{_HAVE} (?:decided (?:to|on|that|against|for|not|we|it|in favou?r)|agreed (?:to|on|that|we|upon|"
        f"with|not|it)|settled (?:on|for)|opted (?:for|to|against|not|out)|resolved (?:to (?!{PAST})|that)|"
        r"concluded that|voted (?:to|for|against|on|in)|elected to)\b"),
    cue(2,
        "decided agreed settled confirmed approved rejected deferred postponed cancelled canceled declined accepted "
        "denied granted adopted",
        r"(?:^|[.!?;] |\b(?:ok|okay|right|so|then|good|great|fine|all right|alright)[,:]? )(?:it's |that's |it is "
        ")?(?:decided|agreed|settled|confirmed|approved|rejected|deferred|postponed|cancelled|canceled|accepted|"
        r"denied|granted|adopted)(?:\s?[:—–-]+ | ?,? (?!i\b|with you|so|and you|they|that must|\w+[.!]*$)\w+)"),
    cue(3, "chose chosen picked selected",
        rf"\b{_WE}{_HAVE} (?:chosen|chose|picked|selected|gone for|gone with) (?!(?:up|me|you|him|her|us|flowers|"
        r"berries|out some)\b)"),
    cue(2, "let's",
        rf"\blet's (?:just |all |both |now |then |also |please |rather |instead |maybe )?(?!(?:{_LETS_STOP}|hang "
        "out|take a look|not forget|go!|do it|make (?:sure|it happen|some|the most)|start (?:by|with)|have (?:a "
        "look|fun|some fun)|plan|run the (?:test|build|script|code)|read|"
        r"trace|test|search|debug|analy[sz]e|fix|add|update|create|write|"
        r"implement|walk|view|inspect|confirm|now|proceed|build|grab)\b)[a-z]+ \w+"),
    cue(2, "let's",
        r"\blet's (?:just |all |please |then )?(?:keep|stick|stay|go (?:with|for|ahead|back)|not|make it|switch|"
        r"move|use|skip|drop|do [\w ]+(?:instead|on|at|for|with)|wait (?:until|with|for)|plan (?:on|for)|say (?:\d|"
        r"noon|\w+day)|bump|meet (?:at|on|in)|try [\w ]+(?:first|instead))\b(?! (?:in touch|up the|going|it up|"
        "moving forward|spreading|each other|pushing|supporting|making|dreaming|fighting|chasing|working|doing))"),
    cue(2, "going go went sticking stick stay staying",
        r"\b(?:we're|i'm|we are|i am|we will|we'll|i'll|let's|we|i|they're|they)(?: (?:still|now|just|definitely|"
        "all|both))? (?:going with|go(?:ing)? for|go with|went with|stick(?:ing)? (?:with|to)|going ahead with|"
        r"staying with|stay with|going back to)\b(?! (?:a (?:walk|run|hike|swim|drive|ride)|walks|runs|it!|you|him|"
        "her|them|me|my (?:friends|family|kids)|hikes))"),
    cue(2, "i'll will going i'm",
        r"\bi(?:'ll|'m going to| will| am going to) (?:just |now |also |instead |simply |definitely |not |still "
        rf")*(?:{_CHOICE}|not)\b(?! (?:it!|you|for (?:a|it)|in touch|and (?:see|check)|up (?:the )?good|an eye|"
        "ahead and|look|going|on |my eye|working|back and|through|to (?:the|a|my)|doing|trying|pushing|care|a "
        "(?:look|closer|break|minute)|that in mind|you posted|me|moving|in mind|practicing|at it|to see|over|this "
        r"(?:up|in mind)|it (?:up|in mind)|improving|learning|fighting)\b)"),
    cue(2, "we'll will going we're they'll",
        r"\b(?:we|they)(?:'ll|'re going to| will| are going to) (?:just |now |also |instead |simply |definitely |"
        "not |all |both |then |therefore )*(?:be )?(?:using|switching|moving|going|serving|running|"
        rf"{_WE_WILL})\b(?! (?:out|so much|on (?:adventures|an)|a blast|memories|fun|great|it!|you|over (?:it|this)|"
        "see|through|this together|into|care|well|have|and see|any|able|home|good|a (?:great|good)))"),
    cue(3, "decision verdict consensus agreement answer ruling plan compromise conclusion outcome choice",
        r"(?:\b(?:the|our|my|final|their|general|current|new) |^)(?:final |current |joint |new )?(?:decision|"
        "verdict|consensus|agreement|final answer|ruling|compromise|conclusion|plan|final choice)(?: (?:now|here|"
        r"then|for [\w ]{2,30}|on [\w ]{2,30}|from the meeting|of the (?:meeting|board|committee)))?(?:'s | (?:is|"
        r"was|stands|remains)\b(?! (?:a|so|great|good|really|working|coming|not|to (?:have|see))\b)| ?[:—–-]+ )"),
    cue(2, "plan",
        r"\b(?:the|our|my|current|new) plan(?: now| for [\w ]{2,30})? (?:is|will be|remains|was) (?:to|that|for)\b|"
        r"\bplan is\b"),
    cue(2,

        "approved rejected deferred postponed cancelled canceled decided agreed settled chosen selected awarded "
        "adopted scrapped shelved called ruled rescheduled moved pushed brought put hold lifted revoked waived "
        "withdrawn raised lowered cut reduced increased extended replaced changed overturned reversed dropped "
        "accepted finalised finalized vetoed switched set suspended abolished repealed back merged rolled signed "
        "confirmed table menu down",
        r"(?:\b(?:is|are|was|were|been|got|gets|being|be|it's|that's|they're|we're|stands)|'s|'re) (?:(?:now|"
        "hereby|officially|finally|just|all|also|indefinitely|unanimously|therefore|provisionally|already|not|"
        rf"pretty much) )*{_PASSIVE}\b(?!-)"),
    cue(2,

        "moved pushed switched changed rescheduled postponed cancelled canceled dropped scrapped shelved deferred "
        "approved rejected vetoed ruled adopted raised lowered extended brought bumped awarded replaced reversed "
        "overruled abandoned increased reduced cut swapped delayed waived lifted suspended down",
        r"\b(?:we|i|they|management|the (?:\w+ )?(?:board|committee|council|client|team|owner|customer|boss|chef|"
        r"school|landlord|city|bank|director|manager|principal|head|court|judge|group)|"
        r"(?!(?:the|a|an|any|no|of|in|be|is|are|being|\w+ly)\b)[\w']+)(?:'ve|'s| have| has| "
        "had)? (?:now |just |also |finally |already |since |officially |all )*(?:(?:moved|pushed|changed|raised|"
        "lowered|extended|bumped|increased|reduced|cut|swapped|shifted) (?!(?:me|us|my life|"
        r"you)\b)(?:[\w'$€£#.,-]+ ){1,6}?(?:to|from|until|back|forward|up to|down to|by)\b|brought (?:[\w'-]+ "
        r"){1,4}?(?:forward|ahead)\b|switched (?:\w+ )?(?:from|to|over|away|back)|(?:rescheduled|postponed|"
        "cancelled|canceled|scrapped|shelved|deferred|approved|rejected|vetoed|ruled out|turned down|adopted|"
        "awarded|overruled|reversed|abandoned|waived|lifted|suspended|called off|signed off on|replaced|put off|"
        "delayed|revoked|overturned|dropped the (?:rule|idea|plan|requirement|limit|policy|feature|support|"
        r"charge))\b)"),
    cue(2, "moves move changes change shifts shift goes starts becomes",
        r"^(?:[\w ]+[,:] )?(?:the|our|this|that|\w+'s)(?: [\w-]+){1,4} (?:moves?|changes?|shifts?|is moving|are "
        r"moving|will move|will change|changes over|becomes?) (?:to|from|up to|back to|forward to|into) (?:[\w-]+ "
        rf"){{0,3}}?(?:{NUMBER}|\w+day|the \w+|\w+)"),
    cue(3, "settled mind minds green go-ahead nod change thumbs light settles",
        r"\b(?:it's|that's|is|all|are|that is|it is) settled\b|\bmade up (?:my|our|his|her|their) minds?\b|"
        r"\b(?:gave|given|got|gives?|have|has) (?:\w+ ){0,3}?(?:the |a )?(?:green light|go-ahead|nod|thumbs[- "
        r"]up)\b|\bchange of plans?\b|\bthat settles it\b"),
    cue(2, "it",
        r"(?<!what)(?<!how)(?<!that)(?<!where)(?<!\bas)(?<!think)(?<!like)(?<!who)(?<!know)(?<!sure)(?<!than) it is"
        r"(?:,? then)?[.!]*$",
        needs="it is"),
    cue(2, "go proceed proceeding",
        f"{START}(?:go ahead (?:with|and)|proceed(?:ing)? with|go for (?:the|option|it with)|go with|"
        "proceed[.!]?$)", imperative=True,
        needs="go ahead|proceed|go for |go with"),
    cue(2,
        "switching dropping moving keeping skipping cancelling canceling postponing replacing using taking choosing "
        "picking opting sticking planning deferring adopting scrapping",
        r"\b(?:we're|i'm|we are|i am|they're|they are)(?: (?:now|also|still|just|definitely|not|all|officially))* "
        "(?:switching|dropping|moving (?:the|to|from|it|our|everything)|keeping|skipping|cancelling|canceling|"
        "postponing|replacing|using|taking|choosing|picking|opting|planning (?:to|on|for)|deferring|adopting|"
        r"scrapping|closing|raising|cutting|changing|holding off|putting off|limiting)\b(?! (?:care|in touch|up "
        r"with|it easy|a (?:break|class|trip|walk|course|dance|pottery)|an? \w+ class|on (?:a|more)|my time|busy|"
        "fit|active|time|classes|some time|part))"),
    cue(2, "dropping support", r"\b(?:drop|dropping|dropped|end|ending) support for\b", imperative=True),
    cue(2, "ruled", r"\bruled (?:it |them |that )?out\b"),
    cue(2, "approve reject choose accept declare",
        r"\bi (?:hereby )?(?:approve|reject|choose|pick|accept|veto|declare)\b(?! (?:you|that you|my|myself))"),
    cue(2, "picked", r"\bwent with (?:the|a|an|\w+)\b"),
    cue(2, "agreed settled decided deal", ", ?(?:agreed|settled|decided|it's a deal)[.!]*$"),
    cue(2, "is are starts start begins place be happens opens",
        r"^(?:[\w ]{1,20}[,:] )?(?:the|our|lunch|dinner|breakfast|practice|rehearsal|training|\w+'s)(?: "
        r"[\w-]+){0,4} (?:is|are|starts?|begins?|takes place|will be|happens|opens?|is set|is due) (?:on|at|in|"
        r"for|from) (?:the )?(?:\d|(?:room|hall|building|floor|gate|lot|block|bay|shelf|box|table|track|platform|"
        r"suite|unit|line) \w?\d|\w+day\b|noon\b|midnight\b|january|february|march|april|may \d|june|july|august|"
        "september|october|november|december)"),
    # reversals
    cue(3, "scrap forget ignore disregard strike cancel undo",
        f"{START}(?:scrap (?:that|the|this|my|our|it|all)|forget (?:what|about what|that (?:idea|plan|rule|one)|"
        r"the (?!past|stress|world|time)[\w ]+|everything i said|my (?:last|earlier)|about (?:the|that|using|"
        r"\w+ing))|(?:ignore|disregard) (?:what|my|the (?:last|previous|earlier|old)|that|everything)|strike that|"
        r"cancel (?:that|the|my|our)|undo (?:that|the)|scratch that)\b", imperative=True),
    cue(2, "mind nevermind", r"(?:^|[.,;!] |\band |\bso )never ?mind (?:the|about|what|that|my|our|\w+ing)\b"),
    cue(3, "back thought thoughts mind minds wrong correction",
        r"\b(?:take (?:it |that |this )?back(?! (?:home|to))(?: what| my| the|[,.:]|$)|on (?:second|further) "
        "thoughts?|chang(?:ed|ing|e) (?:my|our|her|his|their) minds?|i was wrong (?:about|when)|(?:small |quick |"
        "one )?correction:|correction,|go back on)"),
    cue(3, "longer anymore more",
        r"\b(?:we|you|i|they|the|it|is|are|'s|'re|does|do|nobody|that|this|which)\b[\w' -]{0,40}?\b(?:no longer|not "
        r"(?:[\w ]{1,30} )?any ?more|(?:don't|doesn't|isn't|aren't|won't|needn't|can't|not) [\w' -]{1,40}?(?:any "
        r"?more|any longer))\b"),
    cue(3, "longer", r"\bno longer\b(?! than)"),
    cue(2, "instead rather",
        r"^(?=.*\b(?:we|i|let's|i'll|we'll|use|make|take|go|do|put|serve|please|they|\w+ing|will)\b).*\binstead "
        r"of\b|^(?:ok|okay|so|and|then|no|hmm|actually|right|sorry)?,? ?(?:let's|we'll|we will|i'll|use|make it|"
        r"take|go with|we're)\b[\w', -]* instead\b|,? [\w-]+ instead[.!]?$"),
    cue(1, "instead rather actually",
        r"\binstead[.!,]|\brather than\b|^(?:oh |ok,? |no,? |hmm,? |wait,? |sorry,? |well,? )?actually,? (?:no\b|"
        "let's|make|we|i'd|use|the|it|scrap|can we|don't|please|forget|that|both)"),
    cue(2, "make",
        rf"\b(?:let's |please |do |actually,? |then |so |, )?make (?:it|that|them) (?:{NUMBER}|the|a|an)\b[\w: "
        "]*(?:instead|rather|then|not|please|$|[.,;])"),
    cue(2, "fine ok okay allowed permitted back open again after acceptable good possible welcome unblocked",
        r"(?:\b(?:is|are|they're|it's|that's|be)|'re|'s) (?:all )?(?:fine|ok|okay|allowed|permitted|acceptable|good|"
        r"back|possible|welcome|open|unblocked)(?: to \w+)? (?:now|again|after all|from now on|as well now|once "
        r"more)\b|\b(?:ok|okay|fine|allowed|permitted) again\b",
        needs=" now| again|after all|once more"),
    cue(2, "may can",
        r"\byou (?:can|may)(?: now)? [\w' -]{3,40} (?:again|after all|from now on)\b|\b(?:can|may) now (?:be )?\w+"),
    cue(2, "bump raise lower change move increase decrease extend reduce cut switch push shorten shift",
        rf"(?:{START}|\blet's |\bto |\bwill |\bplease )(?:bump|raise|lower|change|move|increase|decrease|extend|"
        r"reduce|cut|switch|push|shorten|shift|drop)\b [\w' -]{0,40}?\b(?:from [\w$€£.,: -]{1,25}? to [\w$€£]|"
        f"(?:to|by|until) {NUMBER})", imperative=True,
        needs=" to | by | until "),
    cue(2, "hold",
        r"\b(?:we'll|i'll|let's|we're|i'm|we|decided to|going to) (?:hold(?:ing)?|put(?:ting)?) off (?:on|with|"
        r"until|the|\w+ing)\b"),
    cue(2, "turns applies enough needed necessary",
        r"\b(?:no longer applies|doesn't apply any ?more|is (?:now )?enough (?:now|from now)|(?:is|are) not "
        r"(?:needed|necessary|required) after all)\b"),
    cue(2, "out off", r"\bis (?:now )?(?:off|out),? (?:and )?[\w ]+ is (?:now )?(?:on|in)\b",
        needs="is off|is out|is now off|is now out"),
    # decisions told plainly
    cue(2, _PLAN_ING,
        rf"\b(?:we're|we are)(?: not| all| now| definitely| just)* (?:{_PLAN_ING})\b (?!(?:to (?:see|be|have|get|"
        "make)|well|on with|through|out of|there|strong|into|good|better|used|ready|closer|by|for a (?:walk|hike|"
        rf"run)|hiking|camping|swimming)\b){NICE}\w+"),
    cue(2, "ditching dropping renewing selling resigning cancelling withdrawing declining quitting",
        r"\b(?:i'm|i am)(?: not)? (?:ditching|dropping|renewing|selling|withdrawing|declining|not renewing|"
        r"cancelling) (?!out\b)\w+"),
    cue(2, "went said gave came plumped voted decided opted",
        r"\b(?:we|they|jury|board|committee|team|client|customer|council|group|parents|teacher|boss|owner|landlord|"
        r"couple|family|management|everyone|majority|chef|director|\w+) (?:all |both |finally )?(?:went for (?:the|"
        r"a|an|plan|option|\w+ing)|said (?:yes|no) to|gave up on|came down on|plumped for|voted (?:in|down|to|for|"
        r"against)|have the go)\b(?! (?:walk|run|hike|drive|swim|ride|stroll|trip|coffee|dinner|lunch|drink))"),
    cue(2, "decided agreed concluded settled final decision plan deal",
        r"\bwhat (?:we|they|the [\w ]{2,20}) (?:decided|agreed|settled on|concluded)\b|\bthat's (?:decided|agreed|"
        r"settled|final|the (?:decision|plan|deal))\b|\bso it's (?:decided|agreed)\b"),
    cue(3, "motion vote votes resolution proposal",
        r"\b(?:motion|resolution|proposal|vote) (?:is |was )?(?:carried|passed|adopted|defeated|rejected|carries|"
        r"passes)\b|\b(?:by )?\d+ votes? (?:to|against) \d+\b|\bvotes?\b.*\b\d+ to \d+\b|\b\d+ to \d+ votes\b"),
    cue(2, "won wins winner name plan roof",
        r"\b(?:the|our) winner is\b|\b(?:variant|version|\w+ (?:one|variant|version|option|design)) wins\b|"
        r"\b(?:option|proposal|design|version|plan|idea|bid|offer|variant|choice|name|draft|logo|candidate)(?: "
        r"[\w#]+)? (?:won|wins|it is|prevailed)\b"),
    cue(2, "we",
        r"(?:^|[,;:] |\b(?:so|then|ok|fine|sold|right|alright|deal) )(?:fine|ok|okay|sold|right|deal|so|then|"
        "alright|all right)?,? ?(?:then )?we (?:take|use|go (?:with|by|for|on)|do (?:it|without|the)|keep|buy|stay|"
        r"leave (?:at|on|the)|start (?:at|on|with)|(?:open|close|begin|finish|end|lead) with|skip|drop)\b(?! (?:in "
        "touch|a lot|walks|hikes|to be|"
        r"fun))(?=.{4})(?!.*\b(?:always|usually|often|every)\b)",
        needs="we take|we use|we go |we do |we keep|we buy|we stay|we leave|we start|we skip|we drop|we open|"
        "we close|we begin|we finish|we end|we lead"),
    cue(2, "going",
        r"\b(?:we|they|the [\w ]{2,20}|it|nobody|[\w]+) (?:is|are|'s|'re) (?:not |now |all )?going to (?:be "
        r"(?!(?:fine|ok|great|fun|a|so|good|amazing|able|hard|tough|here|there|happy|the best|epic|awesome)\b)|"
        "write|build|use|pay|hold|move|open|close|start|stop|serve|have (?:the|a|two)|do|run|send|take over|"
        "replace|host|print|buy|hire|rent|make (?:the|all)|drop|cut|raise|charge|ship|plant|paint|switch|merge|"
        r"teach|cover)\b"
        + NICE),
    cue(2, "won't will",
        r"\b(?:we|i|they|there|the [\w ]{2,20}) (?:won't|will not) be (?:\w+ing|any|a)\b"
        + NICE),
    cue(2, "do without", r"\b(?:do|going|make do|manage) without (?:the|a|an|it|them|\w+)\b"),
    cue(3, "scratch strike drop kill axe bin ditch",
        r"(?:^|[.,;:!] |\b(?:ok|so|then|and|please|no) )(?:scratch|strike|kill|axe|bin|ditch|drop) (?:the|that|"
        r"those|my|our|this) \w+(?!.*\b(?:from|into) the (?:file|list|db)\b)", imperative=True),
    cue(2, "now",
        r"\b(?:it's|it is|they're|that's|we're at) (?!(?:so|really|just|still|up|all|been|too|very|got|my turn|time|"
        r"your turn)\b)(?:a |an |the |at |on |in |with )?[\w' -]{2,40} now[.!]?$",
        needs="it's|it is|they're|that's|we're at"),
    cue(3, "correction misspoke mistaken mistake wrong",
        r"\bcorrection\b|\bi misspoke\b|\bi was mistaken\b|\bi got (?:that|it) wrong\b|\bmy mistake[,:]|\bi made a "
        "mistake (?:about|with|earlier)"),
    cue(2, "not",
        r"\b(?:it's|is|are|they're|was meant to be|should be|in|on|at) (?:[\w:.#-]+ ){0,3}?[\w:.#-]*\d[\w:.#-]*(?: "
        r"\w+)?,? (?:and )?not (?:[\w:.#-]+ ){0,2}?[\w:.#-]*\d"),
    cue(1, "sorry wait hold oops hang hmm no", "^(?:sorry|wait|hold on|oops|hang on|hmm|no),? "),
    cue(3, "rule limit cap requirement ban freeze restriction policy curfew embargo deadline moratorium condition",
        r"\b(?:rule|limit|cap|requirement|ban|freeze|restriction|policy|curfew|embargo|moratorium|condition|"
        r"deadline)s?\b[\w' ]{0,30} (?:is|are|was|were|has been|have been|'s) (?:now |all )?(?:gone|dead|history|"
        "obsolete|off|over|void|no more|relaxed|dropped|out|lifted|scrapped|waived|removed|abolished|moot|"
        r"suspended|loosened|tightened|extended|raised|lowered|cancelled)\b|\bno more (?:rule|limit|cap|ban|freeze|"
        r"curfew)\b|\bdoes(?:n't| not) apply (?:any ?more|to|on|now)\b|\babout the [\w -]+ (?:rule|ban|limit|"
        r"policy)\b"),
    cue(2, "we",
        r"^(?:ok|okay|right|fine|good|alright|all right|then|deal|so)(?:,| then,?) we "
        r"(?!(?:are|were|have|had|could|can|may|might|should|need|know|think|all|just|both|did|do|also|really|"
        r"still|got|"
        r"never|always|want|hope|must|see|saw|went|want)\b)\w+ \w+"),
    cue(2, "instead", r"\binstead of (?:the |at |on )?(?:\d|noon|midnight|\w+day\b)"),
    cue(3, "heart", r"\bchange of heart\b"),
    cue(3, "disregard ignore forget drop skip scrap",
        r"\byou can (?:now |all )?(?:disregard|ignore|forget (?:about )?(?:the|what)|drop the|skip the|scrap)\b"),
    cue(2, "new updated update revised changed change",
        r"^(?:(?:the )?(?:new|updated|revised|changed)|update|change)(?: of| on| to)? [\w' -]{2,40}: "),
    cue(2, "after", r"\bafter all[.!]*$|\bafter all,? (?:so|and|let's|we)\b"),
    cue(2, "for using as",
        r"^(?:for|as) (?:the |our )?[\w' -]{2,30},? (?:we're|we are|we'll|we will|we|i'll|let's) (?:use|using|take|"
        "taking|go|going|have|having|do|doing|serve|pick|order|ordering|get)"),
    cue(2,
        "stays stay goes go ends end starts start begins begin gets get counts count moves move comes come runs run "
        "closes close opens open holds hold applies apply remains remain leaves leave departs depart costs cost "
        "stops stop shuts shut resumes",
        r"^(?:[\w' ]{1,30}[,:] )?(?:the|our|all|both|each|every|this|\w+s|\w+day)(?: (?!(?:who|that|which|was|"
        rf"were|had|really|just)\b)[\w'-]+){{0,4}} (?:{_GOES}) (?:on|in|at|to|until|from|for|by|with|as|between|"
        r"after|before|through|under|up|out|back|over|off|open|closed|the same|where|into|via|\d|monday|tuesday|"
        r"wednesday|thursday|friday|saturday|sunday)\b(?!.*\b(?:was|were|had|fun|great|well|crazy|wild|fast|"
        r"forever)\b)"),
    cue(2, "will won't",
        r"^(?:[\w' ]{1,30}[,:] )?(?:the|our|all|both|each|every|\w+s|\w+day|[\w]+)(?: (?!(?:who|that|which|was|"
        r"were|had)\b)[\w'-]+){1,4} (?:will|won't|will not) (?!(?:be (?:fine|ok|okay|great|so|a|awesome|amazing|"
        "fun|happy|good|there|worth)|love|like|help|make|always|probably|never know|never forget|feel|see|enjoy|"
        r"bring|give)\b)\w+"
        + NICE),
    cue(2, "we we're we'll won't aren't not",
        rf"\b(?:we're|we are|we will|we'll) not (?:going to )?(?!(?:{_WE_STOP}|forget|regret|know|only|be (?:able|"
        rf"sad|disappointed))\b)\w+|\bwe (?:won't|aren't|will not) (?!(?:{_WE_STOP}|forget|regret|know|be (?:able|"
        r"disappointed)|let (?:you|it|this)|give up|see|find out)\b)\w+"
        + NICE,
        needs="we're not|we are not|we will not|we'll not|we won't|we aren't"),
    cue(2, "back",
        r"\b(?:we're|we are|we go|it's|back to|going|go) back to (?:the |our |using |plan |a )?(?:\w+ly\b|old|"
        r"original|previous|first|paper|plan|manual|\w+ing\b|two|one|three|every|\w+day)"),
    cue(2, "accepted declined took confirmed withdrew signed down",
        r"\b(?:accepted|declined|took|confirmed|withdrew|turned down|signed|matched) (?:our|the|their|his|her|your|"
        r"my) (?:\w+ )?(?:offer|quote|bid|proposal|invitation|counter-?offer|terms|price|contract|application|"
        r"resignation|request|suggestion|booking|plan)\b"),
    cue(2, "settled final unanimous contrary history planned unanimously",
        r"\b(?:we|i|they)(?:'ve| have)? settled (?!in\b|down\b|into\b)\w+|\bfinal(?: \w+)?:|\bunanimous(?:ly)?\b|"
        r"\bcontrary to (?:what|our|the|my)\b|\b(?:is|are) history\b|\b(?:we|i) had (?:planned|wanted|agreed|said|"
        r"intended|thought)\b.*\bbut\b"),
    cue(2, "more",
        r"(?:^|[,;:] |\bso |\band )no more (?!(?:excuses|worries|than|tears|problems|stress|doubt|pain|and "
        r"no)\b)[\w-]+(?: [\w-]+){0,4}(?=[,.;!]|$)(?!.*\b(?:was|were)\b)"),
    cue(2, "actually no", r"^(?:oh |hm+,? |wait,? )?(?:actually,? no|no,? actually)\b,? \w+"),
    cue(2, "included counts earlier new excluded holds applies stands went version list",
        r"\b(?:is|are) (?:now )?(?:included|excluded) (?:now|in|from)\b|\bfrom today counts\b|\bthe (?:new|latest|"
        r"current) (?:one|version|plan|list) (?:\w+ ){0,2}(?:counts|applies|stands|is valid|holds)\b|\bno longer "
        r"(?:holds|applies|counts|stands)\b|\bwent up,? (?:so )?you can\b",
        needs="included|excluded|counts|stands|holds|applies|is valid|went up"),
)
