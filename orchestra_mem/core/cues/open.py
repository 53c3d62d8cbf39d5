"""The words of what is still open, as patterns: to do, waiting for, not yet, could you, by Friday."""

from __future__ import annotations

from orchestra_mem.core.cues.cue import BASE, START, Cue, LazyPattern, cue, table, words
from orchestra_mem.types import MustKeepKind

# Tables: what belongs to a cue stands together.
# fmt: off

_WHEN = (
    "(?:by|before|on|until|this|next|tomorrow|tonight|later|first thing|after|end of|once|as soon as|in the "
    "morning|"
    r"when (?:i|we|you|the)|over the weekend|at (?:noon|\d)|in (?:a|an|two|three|the)|asap|today|over lunch)"
)
_PROMISE = words(
    "send call email mail book order buy check bring fix finish write ask talk speak find look get pick prepare "
    "draft post "
    "ping update arrange schedule organise organize confirm follow submit pay set review test clean order print "
    "file "
    "deliver drop measure share forward message text phone chase reach try sort handle report let come hand open "
    "start do "
    "make upload document return renew repair replace run collect inspect figure work take put give circulate sign "
    "see"
)
_ASK = words(
    "look check book chase find call order send confirm ask fix make get pick bring prepare update add write buy "
    "arrange review test reach handle sort clean print email mail move set take schedule remove rename change "
    "create "
    "implement investigate try run replace put measure figure draft reserve contact share explain provide"
)
_TASK = words(
    "book order pay mail email collect fetch return confirm reserve call ring chase renew invite buy bring print "
    "send schedule arrange finish fix prepare draft pick get find ask check cancel rent hire repair replace add "
    "write update upload"
)


OPEN_ITEM_CUES: tuple[Cue, ...] = table(
    MustKeepKind.OPEN_ITEM,
    # reversals
    cue(3,
        "todo fixme tbd tba outstanding pending to-do do open action next follow-up follow-ups blocker blockers "
        "remaining left unresolved",
        r"\b(?:todo|to-do|to do|fixme|tbd|tba|outstanding|open (?:question|point|item|issue)s?|action items?|next "
        r"steps?|follow-?ups?|pending|blockers?|remaining|left to do|unresolved)\b ?(?:[:—–]|-\s)", asks=True),
    cue(2, "todo fixme tbd tba xxx", r"\b(?:todo|fixme|tbd|tba)\b", asks=True),
    cue(2, "still",
        r"\bstill (?:need|needs|have to|has to|got to|gotta|missing|waiting|pending|open|outstanding|unresolved|"
        "unclear|undecided|to do|to be|owe|owes|unsure|unknown|not (?:sure|clear|decided|done|in|fixed|back|here|"
        "signed|finished)|hasn't|haven't|don't know|doesn't|isn't|aren't|want to|looking for|trying to (?:find|"
        r"figure|decide|work)|no (?:word|answer|reply|decision|news|sign))\b"),
    cue(2, "yet",
        r"\b(?:not|hasn't|haven't|isn't|aren't|don't|doesn't|no|nobody has|nothing)\b[^.;]{0,50}\byet\b(?!,? (?:but|"
        r"another|again))|\byet to (?!be seen)\w+|\bnot yet \w+"),
    cue(2,
        "pending unresolved undecided outstanding unclear unconfirmed undetermined unanswered overdue open limbo "
        "air decided determined confirmed done settled announced final finalized finalised clear unassigned list",
        r"\b(?:is|are|remains?|still|was|left|being|stays?|'s|'re|currently|it's) (?:still |currently |very much |"
        "as yet |yet )*(?:pending|unresolved|undecided|outstanding|unclear|unconfirmed|undetermined|unanswered|"
        "overdue|up in the air|in limbo|to be (?:decided|determined|confirmed|done|seen to|settled|announced|"
        r"agreed)|an open (?:question|issue|point)|unassigned|open\b(?! (?:to|for|on|until|from|at|every|now|again|"
        "minded|air|about|book))|on the to-?do list|not (?:settled|decided|finali[sz]ed|final|confirmed|clear))"),
    cue(2, "waiting wait awaiting blocked",
        r"\b(?:(?:i'm|we're|am|are|is|still|he's|she's|they're|we|i|been) (?:still |just |all |also |now "
        r")*(?:waiting (?:on|for|to hear)|awaiting)|waiting (?:on|for) [\w' ]+ (?:to|from|before|for)\b|blocked "
        r"(?:on|pending|waiting)|^awaiting|^waiting (?:on|for))\b(?! (?:the day|someone special|you\b|this|my turn|"
        r"that moment|it\b|so long|ages|months))"),
    cue(2, "need needs needed",
        r"\b(?:we|i|someone|somebody|they|you|he|she|one of us|both of us)(?:'ll| will| do| would| also| still| "
        "really| just| all)* need to (?!(?:be (?:so|more|kind|strong|ourselves)|know you|tell you|hear|say|relax|"
        "rest|chill|see (?:you|the light)|take (?:a|some) (?:break|time|breath)|remember|believe|understand (?:the|"
        "how|what)|see|look|check (?:the|how|if|what|whether|where) (?:file|code|existing|current)|catch up|get "
        r"out|talk more|celebrate|feel|go!|hang|unwind|read|find where|examine|keep|try)\b)\w+ "),
    cue(1.5, "needs need",
        r"\b(?:the|our|this|that|my|\w+) [\w' -]{2,40}? (?:needs?|still needs?) (?:to be |a |an |some |more |"
        r"\w+ing\b|repair|fixing|new |\w+ed\b)"),
    cue(1, "needs need", r"\bneeds? (?:to be \w+|\w+ing)\b"),
    cue(2, "someone somebody who anyone",
        r"\b(?:someone|somebody|one of us|one of you|anyone) (?:has to|needs to|should|must|still has to|will have "
        r"to|ought to)\b"),
    cue(2, "have has gotta got",
        r"\b(?:we|i)(?:'ll| will| still| also|'ve)? (?:have|has|gotta|got) (?:yet )?to (?!(?:say|admit|tell you|"
        "agree|be (?:honest|kidding)|go now|go!|run!|see (?:it|you|that)|try (?:it|that)|check (?:it|that)|look|"
        "remember|stay|keep|give|work (?:hard|late)|take care|wait|share|meet|experience|believe|think|deal|figure "
        r"out (?:how|what|where)? ?(?:this|the code))\b)\w+ "),
    cue(2, "remind forget reminder remember",
        rf"\bremind (?:me|us|him|her|them|\w+) (?:to|about|that|of the)\b(?<!reminds me)|{START}(?:don't|do not|"
        rf"don't let (?:me|us)|let's not) forget (?:to|about|the|that|your|\w+)\b|{START}remember to (?!(?:never|"
        r"always|be yourself|take care of yourself|breathe|enjoy|relax|have fun))|\breminder to\b", asks=True),
    cue(2, "next",
        r"\b(?:next (?:step|up|on (?:the|my) list|task|action)s?|(?:the|our|my) next (?:task|thing to do|job|item|"
        r"move))\b ?(?:is|are|will be|:|would be|—|-)|^next(?: up)?,? (?:we|i)(?:'ll| will| need| have|'m| should)|"
        "^next:"),
    cue(2, "follow followup follow-up circle chase get",
        r"\b(?:follow(?:ing)?[- ]up (?:with|on|about|next|tomorrow|to)|circle back (?:to|on|with)|come back to "
        r"(?:this|that|it)|chase (?:up )?(?:the|them|him|her|\w+) (?:about|for|up)?|(?:get|getting) back to (?:you|"
        "me|us|him|her|them) (?:on|about|with|by|once|when|next|tomorrow)|revisit (?:this|that|the|it|in|next|on|"
        r"\w+))\b", asks=True),
    cue(2, "heard hear back word haven't hasn't answer news reply",
        r"\b(?:haven't|hasn't|have not|still no|no) (?:yet )?(?:heard (?:back |anything )?(?:from|yet|back)|heard|"
        "word (?:from|on|yet)|news (?:from|on|about)|reply from|answer from|received (?:the|a|any|an|our)|answered|"
        "replied|responded|got(?:ten)? (?:the|a|any|an|back)|arrived|signed|decided|confirmed|found (?:a|an|the|"
        "any|out)|been (?:able to (?!go)|decided|fixed|resolved|confirmed|paid|assigned|settled|tested|done|sent|"
        r"booked|signed|ordered|delivered|approved|answered|finali[sz]ed))\b"),
    cue(2, "owe owes promised",
        r"\b(?:i|we|he|she|they|\w+) (?:still )?owes? (?:you|me|us|him|her|them|\w+) (?:the|a|an|two|some|our|his|"
        r"her|their)\b(?! (?:debt|lot|drink))|\bi promised (?:to|you|him|her|them|the|\w+ (?:to|that|i))\b"),
    cue(2, "i'll we'll will i'm going he'll she'll they'll",
        r"\b(?:i|we|he|she|they|[\w]+)(?:'ll|'m going to|'re going to| will| am going to| are going to| shall) "
        "(?:just |also |then |still |try to |probably |definitely |have to |need to "
        rf")*(?:{_PROMISE})\b[^.;]{{2,80}}? (?:{_WHEN})\b(?! (?:course|all|my way|again|this adventure|a while|the "
        "end of the day))"),
    cue(2, "i'll we'll he'll she'll they'll",
        r"\b(?:i|we|he|she|they)'ll (?:\w+ ){2,14}?(?:by|before|until) (?:the )?(?:end of|\w+day|tomorrow|noon|"
        r"tonight|next|then|\d)"),
    cue(2, "i'll we'll",
        r"\b(?:i|we)'ll (?:look into|find out|figure out|sort out|double-check|get back|report back|let you know "
        r"(?:when|if|once|whether|by|as|what|how)|ask (?:\w+ )?(?:about|if|whether)|follow up|take care of (?:the|"
        "that|it)|confirm with|check with|check (?:if|whether) (?:the|we|they|he|she|there)|order|book|send (?:you|"
        r"the|it|them|over|out)|draft|arrange|chase)\b(?! the (?:file|code|test|existing))"),
    cue(2, "could can would someone",
        r"(?:^|[,;:.] |\band |\bso |\balso |\bplease |\b(?:hey|hi|ok|okay) )(?:could|can|would|will) (?:you|"
        "someone|somebody|anyone|one of you|we get someone to|[a-z]+)(?: please| also| maybe| kindly| perhaps| "
        rf"just)* (?:{_ASK})\b (?!(?:me more|more about|what|how you|a (?:pic|photo|picture)|your (?:experience|"
        r"story)|that feel|it's|back if|one of|the time)\b)\w+", asks=True),
    cue(2, "please",
        rf"\bplease,? (?:also |just |can you )?(?:{_ASK})\b (?!(?:me more|it up the|sure)\b)\w+",
        asks=True, imperative=True),
    cue(2,
        "sure know unclear decide figure clear certain wonder decided find work clarify settle agree determine "
        "choose pick open",
        r"\b(?:not (?:sure|clear|certain|decided)(?: yet)? (?:if|whether|who|when|which|where|what|how (?:many|much|"
        "long))|don't (?:yet )?know(?: yet)? (?:if|whether|who|when|which|where|what to do|how (?:many|much))|"
        "(?:need|have|needs|has|yet|left|still|remains) to (?:decide|figure out|find out|work out|clarify|settle|"
        "agree on|determine|choose|pick)|unclear (?:if|whether|who|when|which|how)|can't decide|it's (?:still "
        r")?open (?:whether|who|if))\b"),
    cue(2, "missing short lacking outstanding",
        r"\b(?:is|are|'s|'re|still|were|was) (?:still |also )?(?:missing|lacking|unaccounted for)(?: (?!you|out|him|"
        r"her|my|the (?:fun|old))| ?[.!,;]|$)|\bwe(?:'re| are) (?:still )?(?:missing|lacking|short of|short on|"
        r"looking for an?)\b"),
    cue(2, "ask find check talk confirm tell call email",
        rf"{START}(?:ask|check with|find out from|talk to|confirm with|tell|call|email|remind) [\w.' ]{{2,40}}? "
        r"(?:whether|if|about the|for the|to (?:send|confirm|bring|check|order|sign|fix|call|look)|when|how many)\b",
        imperative=True,
        needs="whether|if|about the|for the|to send|to confirm|to bring|to check|to order|to sign|to fix|"
        "to call|to look|when|how many"),
    cue(2, "once after when",
        "^(?:once|after|when|as soon as) [^,]{4,60},? (?:we|i|you|someone)(?:'ll| will|'ll have| still)? (?:have "
        r"to|need to|must|'ll need to|will have to|should)\b"),
    cue(2, "should ought better",
        r"\b(?:we|i|you|someone) (?:should|ought to|really should|had better|'d better) (?:also |still |probably |"
        "really |at some point )?(?:order|book|call|ask|fix|check with|confirm|decide|renew|replace|send|schedule|"
        "add|write|find|buy|arrange|sort|update|follow up|file|clean|tidy|revisit|look into|document|test|measure|"
        r"get the|get a)\b(?! (?:it out|it sometime|out))"),
    cue(1, "before by deadline due until",
        r"\b(?:before|by|due|until) (?:the )?(?:\w+day|tomorrow|noon|next|end of|\d|january|february|march|april|"
        r"may|june|july|august|september|october|november|december|then|christmas|easter)\b"),
    cue(1, "question questions issue",
        r"\b(?:open|unanswered|remaining|outstanding) (?:question|point|issue|item|task|bug)s?\b", asks=True),
    cue(2, "remains remain left",
        r"\b(?:remains?|left) (?:unresolved|open|unclear|to be|undecided|unfixed|unfinished|to do|unsolved|"
        r"unanswered|unpaid)\b"),
    cue(2, "who who's",
        r"\bwho(?:'s going to| will| is going to| can| could| wants to| takes| brings| pays| picks| does| covers| "
        r"drives| is (?:bringing|taking|picking|driving|covering)) (?!(?:be|win|you|that|it)\b)[\w' -]+\?|^(?:and "
        r")?who (?:pays|brings|takes|picks|covers|drives)\b", asks=True),
    cue(2, "clear sure decided known settled come follow question",
        r"^(?:still )?not (?:yet )?(?:clear|sure|decided|known|settled)\b|\b(?:is|are) still to (?:come|do|follow|"
        r"be)\b|\ban open question\b"),
    # failures, completions and open items told plainly
    cue(2, "nobody one nothing none",
        r"\b(?:nobody|no one|nothing|none of [\w ]{2,20}) (?:has|have|is|knows (?:who|where|how|what|when|whether|"
        r"if)|seems to know|has an answer|volunteered|signed up|is assigned)\b(?! (?:ever|like|perfect|impossible|"
        "better|wrong|more))",
        needs="nobody|no one|nothing|none of"),
    cue(1, "far", r"\bso far\b(?=[.,]|$)"),
    cue(2, "hasn't haven't",
        r"\b(?!(?:i|we|you|they|it|that|this|there|what|and|but)\b)[\w.]+ (?:hasn't|haven't) (?!(?:been (?:to|there|"
        r"a|able|easy|the|in)|changed|seen|had|felt|got(?:ten)? (?:to|over)|stopped|lost|always|given up)\b)\w+|\bi "
        "haven't (?:got(?:ten)? (?:round|around)|finished|started|done|decided|heard|received|sent|checked|asked|"
        r"booked|ordered|paid|called|written|filed|tested|managed)\b|\bwe haven't (?!(?:seen|been|had|talked|met|"
        r"chatted|caught|spoken)\b)\w+"),
    cue(2, "need needs",
        r"\b(?:we|i|they)(?:'ll| will| still| also|'d)* (?:still |also )?need (?:a|an|another|more|some|two|three|"
        r"four|someone|somebody|the|new|at least|\d+|your|extra|better|one more)\b(?! (?:break|hug|vacation|drink|"
        "rest|nap|boost|laugh|bit of|time to|little|change|friend|lot|reminder|support|encouragement|help!))"),
    cue(2, "needs need",
        r"\b(?!(?:who|everyone|everybody|it|that|someone|she|he)\b)[\w-]+ (?:still |also |now )?(?:needs|need) (?:a|"
        "an|another|new|more|some|two|fresh|replacing|fixing|painting|cleaning|signing|checking|repairing|watering|"
        r"testing|to be)\b(?! (?:hug|break|friend|rest|nap|love|little|lot of love|good laugh))"),
    cue(2, "what what's don't lack missing",
        r"\bwhat (?:we|i) (?:don't have|still don't have|still lack|lack|are missing|still need)\b|\bwhat's "
        r"(?:still )?(?:missing|left|open|outstanding|unclear)\b|\bwe (?:still )?don't have (?:a|an|any|anyone|"
        r"anybody|enough|the)\b(?! (?:lot|clue|chance))"),
    cue(2, "let know tell",
        r"\b(?:let (?:me|us|him|her|them) know|tell me|get back to me|send me|give me) (?:by|before|until|on|asap|"
        "which|whether|who|when|where|how many|if (?:the|anything|someone|we|it|they|he|she)|once|as soon|your "
        r"(?:answer|choice|size|sizes|number|numbers|order))\b(?! (?:you|i can|you're|how))", asks=True),
    cue(2, "matter question issue problem whether business",
        r"\bthere(?:'s| is| are) (?:still )?the (?:matter|question|issue|problem|business) of\b|\bthe (?:big |open |"
        r"only |other |remaining )?question (?:of|is|whether|remains)\b|\bwhether (?:we|to|or not|the|it|they) [\w' "
        r",-]+ (?:is|remains|has|needs|depends|we)\b",
        needs="whether we|whether to|whether or|whether the|whether it|question|the matter|the issue|"
        "the problem|the business"),
    cue(2, "talk discuss go revisit look decide speak return come settle pick",
        r"\b(?:let's|we'll|we can|we should|i'd like to|we need to|can we) (?:talk (?:about|through|over)|discuss|"
        "go (?:over|through)|revisit|look at|decide|return to|pick (?:this|that|it) up|settle|speak about|come "
        rf"back to)\b[\w' ]{{2,50}}? (?:{_WHEN}|\w+day|monday|tuesday|wednesday|thursday|friday|next|tomorrow|"
        r"later)\b", asks=True),
    cue(2, "expecting expected due arrive arrives coming comes come back ready get",
        r"\b(?:expecting|is expected|are expected|is due|are due|should (?:arrive|come|be here|be back|be ready|be "
        "in)|due back|comes? back|will (?:arrive|come|be (?:here|back|ready|delivered))|arrives?|get (?:them|it|"
        r"the results) back) (?:\w+ ){0,5}?(?:on|by|at|in|this|next|before|until|tomorrow|tonight|from|within|"
        r"between)\b(?! (?:time|the world|all))"),
    cue(2, "someone somebody anyone",
        r"\b(?:someone|somebody|anyone|one of you|everyone|everybody)(?: please|,? please)? (?:please "
        rf")?(?:{_PROMISE}|{BASE}|look|go|grab|fetch|{_ASK})\b(?! (?:to|up to|out))\b", asks=True),
    cue(-2, "anyone everyone someone",
        r"\b(?:anyone|everyone|someone) (?:put|set|read|cut|run|come|report|pay|wear|sign|keep)\b"),
    cue(3, "open", "^(?:still )?open ?:"),
    cue(3, "do", r"^(?:things |left |still |also )?to[- ]do\b[^.:]{0,40}:"),
    cue(2, "you",
        r"\b(?:i'd like you to|i want you to|i need you to|would you mind|i'd appreciate it if you|it'd be (?:good|"
        "great|nice) if (?:you|someone|somebody)|your (?:job|task|next task|homework) (?:is|today|this)|you still "
        r"(?:need|have|owe)|are you able to|you were going to|you wanted to|it's your turn to)\b", asks=True),
    cue(-3, "longer anymore", r"\bno longer\b|\banymore\b"),
    cue(2, _TASK,
        rf"^(?:(?:please|and|so|also|oh|ok|okay|then|just|kindly|someone|somebody)\b,? )*(?!check out\b)(?:{_TASK}) "
        rf"(?:the|a|an|"
        r"two|three|four|some|more|new|our|all|back|up|\d+|out) [\w'-]+", imperative=True),
    cue(2, "check touch remind get touch look have make pick drop order book arrange schedule chase renew follow",
        f"{START}(?:check (?:back|in) with|get in touch with|touch base with|follow up with|get hold of|get back "
        "to|have a word with|make an appointment|get a quote|pick up the|drop off the|look into|find out (?:who|"
        r"whether|if|when|what|where|how)|find (?:a|an|someone)|chase|book (?:a|the|an)|order (?:a|the|more|\d)|"
        r"renew|arrange|schedule (?:a|the))\b", imperative=True,
        needs="check back with|check in with|in touch with|touch base|follow up with|get hold|get back|"
        "have a word|appointment|get a quote|pick up the|drop off the|look into|find out|find a|find an|"
        "find someone|chase|book |order |renew|arrange|schedule "),
    cue(2, "promised promises agreed volunteered offered meant supposed hold going",
        r"\b(?:promised|promises|volunteered|offered) to (?!(?:be (?:there|good)|love|help me)\b)\w+|\b(?:i|we) "
        r"(?:have to|need to|must|should) get hold of\b|\b(?:is|are|was|were) (?:supposed|meant|going) to (?:send|"
        r"bring|call|deliver|confirm|fix|come back|get back|reply|arrive|order|book|check|sign|pay|write|pick)\b"),
    cue(2,
        "unpaid unsigned unfinished unassigned unanswered unopened untested unread unbooked unlabelled unlabeled "
        "undone unsettled unclaimed unfilled unsolved unconfirmed unpacked unwired unstaffed unsold unmerged "
        "unreviewed uncertain",
        r"\b(?:is|are|remains?|still|was|left|stands?|lies?|'s|'re) (?:still |currently |as yet |largely "
        ")*un(?:paid|signed|finished|assigned|answered|opened|tested|read|booked|label?led|done|settled|claimed|"
        r"filled|solved|confirmed|packed|wired|staffed|merged|reviewed|certain)\b"),
    cue(2, "depends hinges up",
        r"\b(?:depends on (?:whether|if|who|when|the|what)|hinges on|is up to (?!(?:date|speed|par|scratch|now|"
        r"standard|spec)\b)(?:the|him|her|them|you|\w+))\b(?! "
        "(?:you to decide what makes))"),
    # no answer, nobody, not known
    cue(2, "hasn't haven't not", r"\b(?:they|he|she|it|who|and|but|him|\w+) (?:hasn't|haven't|has not|have not) "
        r"(?:yet |even |"
        r"really )?(?:said|set|replied|answered|decided|told|given|sent|confirmed|come back|called|picked|chosen|"
        r"signed|paid|named|agreed|written|responded|ruled|fixed|got back)\b"),
    cue(2, "no without any answer", r"\b(?:no|without an?|without any|not had an?|not had any|never got an?|don't "
        r"have an?|"
        r"don't have any|didn't get an?) (?:clear |final |real )?(?:answer|reply|word|response|decision|date|price|"
        r"quote|"
        r"result|confirmation|feedback|verdict|ruling)s? (?:so far|yet|from|about|on|at the moment|either|for|as to|"
        r"whether|if|back)\b|\bstill without (?:an?|any|the)\b", asks=False),
    cue(2, "answer reply answers replies crickets circles respond", r"\b(?:it's been crickets|been crickets|round "
        r"in circles|in "
        r"circles about|(?:doesn't|don't|won't|didn't|never) (?:answer|reply|respond|replied|answered)(?=[,.;!]|$| "
        r"(?:my|the|our|"
        r"to|me|us)\b))",
        needs="crickets|in circles|n't |never "),
    cue(2, "found knows know known unknown guess", r"\b(?:i|we|nobody|no one) never found out\b|\b(?:no one|nobody|"
        r"none "
        r"of us) knows?(?=[,.;:]|$| "
        r"(?:if|whether|who|when|which|where|what|how))|\b(?:is|are|'s) (?:not known|unknown|anybody's guess|"
        r"anyone's guess)\b|"
        r"^unknown\b"),
    cue(2, "air limbo disputed hanging maybe dispute unsettled unresolved", r"\b(?:is|are|'s|'re|stays?|remains?|"
        r"hangs?) (?:still |all |very "
        r"much |now )?(?:(?:up )?in the air|in limbo|disputed|in dispute|hanging(?=[,.;!]|$| (?:between|over us))|"
        r"unsettled)\b|\bthat's a maybe\b"),
    cue(2, "find ask check clarify clear sort settle look decide know", r"\b(?:thing|question|point|something|"
        r"matter|one) (?:to|for us to) (?:find "
        r"out|ask|check with|clarify|clear up|sort out|settle|look into|decide)\b|\b(?:that|this|it)(?:'s| is) "
        r"(?:still )?to (?:clear up|find "
        r"out|clarify|settle|sort out|check)\b", asks=True),
    cue(2, "can't cannot don't", r"\b(?:i|we) (?:can't|cannot|don't) (?:yet )?(?:answer yet|close\b|say (?:yet|if|"
        r"whether|when|who|yes|no)|"
        r"remember a decision|have (?:it |that |this )?(?:resolved|settled|answered|decided)|know the answer)"),
    cue(2, "find", r"\b(?:i|we) (?:can't|cannot|couldn't|didn't) find(?=[,.;!]|$| (?:who|what|where|how|why|out)\b)"),
    cue(2, "found clarified settled cleared", r"\b(?:is|are|'s|remains?|still) (?:still |yet )?to be (?:found out|"
        r"clarified|"
        r"settled|cleared up)\b"),
    cue(2, "say decide tell confirm rule judge", r"\b(?!(?:i|we|you|people|some|who|they)\b)\w+ (?:must|has to|"
        r"have to|should|is to|will have to|needs to) "
        r"(?:still |first )?(?:say|decide|tell us|rule|confirm|judge) (?:if|whether|who|when|which|how)\b"),
    cue(2, "isn't aren't not", r"\b(?:isn't|aren't|is not|are not) (?:yet )?(?:confirmed|decided|settled|approved|"
        r"agreed|assigned|signed|booked|"
        r"paid|finali[sz]ed|cleared|certain)\b(?! (?:to|in the code))"),
    cue(2, "volunteered asked named assigned", r"\b(?:nobody's|no one's|nobody has|no one has|nobody) "
        r"(?:volunteered|asked|been (?:named|assigned|told|"
        r"asked)|claimed|taken it|offered|picked)\b|\bno (?:one|body) (?:is )?(?:named|assigned|down) for\b",
        needs="nobody|no one|no body"),
    cue(2, "waiting", r"\b(?:is|are|'m|'re|'s|still|,|i'm|we're) ?waiting (?:at|with|for|on|to hear) (?:what|"
        r"whether|the|a|an|his|her|their|our|"
        r"\w+'s)\b(?! (?:day|right|perfect|next adventure|moment|chance|wait))"),
    cue(2, "supposed meant should", r"\b(?:supposed|meant) to \w+.{1,40}?\b(?:haven't|hasn't|didn't|but|never)\b|"
        r"\bshould (?:say|tell|confirm|send)\b"
        r".{1,60}?\b(?:hasn't|haven't|has not|have not|didn't)\b"),
    cue(2, "deputy cover replacement owner plan date budget", r"\bthere(?:'s| is) (?:still |currently )?no "
        r"(?:deputy|cover|replacement|owner|date|budget|"
        r"successor|stand-in|backup person) (?:for|yet|named|so far|at)\b"),
    cue(2, "nobody's nobody one's one", r"\b(?:nobody's|no one's|nobody has|no one has) (?!(?:perfect|business|"
        r"fault|home|there|ever|here|"
        r"favou?rite|like|going)\b)\w+(?:ed|en|ld|de|wn|ne|id|t)\b",
        needs="nobody's|no one's|nobody has|no one has"),
    cue(2, "couldn't can't could", r"\b(?:couldn't|can't|could not) (?:tell you|tell yet|say)(?=[,.;!]|$| (?:if|"
        r"whether|who|when|what|how|which)\b)"),
    cue(2, "not", r"(?:'ve|'s|\bhave|\bhas) not (?:yet |quite )?(?:settled|decided|agreed|chosen|picked|heard|"
        r"found out|got (?:the|an?)|been told|"
        r"received|worked out|sorted|figured|come back|answered)\b"),
    cue(2, "lawyer lawyers council bank insurer insurers insurance office board authority ministry legal finance "
        "vendor supplier accountant accountants architect engineer engineers landlord court police committee "
        "printer printers department client customer", r"\b(?:is|are|'s) (?:still |now )?with (?:the|our|their|his|"
        r"her) (?:\w+ )?(?:lawyers?|council|"
        r"bank|insurers?|insurance|office|"
        r"board|authority|ministry|legal|finance|vendor|supplier|accountants?|architect|engineers?|landlord|court|"
        r"police|"
        r"committee|printers?|department|client|customer)\b"),
    cue(2, "guess see tell seen", r"\b(?:is|are|'s) (?:still )?(?:anyone's|anybody's) guess\b|\b(?:we|you)(?:'ll| "
        r"will) (?:just )?have to (?:wait and )?"
        r"see(?=[,.;]|$)|\bremains? to be seen\b",
        needs="guess|have to |to be seen"),
    cue(2, "arguing fighting debating chasing haggling negotiating quarrelling deciding torn",
        r"\b(?:still|is|are|'re|'m) (?:arguing|fighting|"
        r"debating|chasing|haggling|negotiating|quarrelling|deciding|torn) (?:about|over|for|with|on|the|if|"
        r"whether|between|\w+ for)\b"),
    cue(2, "not", r"(?:\b(?:is|are)|'s|'re) (?:still |just )?not (?:yet )?(?:solved|resolved|sorted|settled|"
        r"decided|known|confirmed|signed|agreed|"
        r"answered|booked|assigned)(?=[,.;!]|$| (?:yet|by|with|who|if|whether|when)\b)"),
    cue(2, "never", r"\b(?:we|i|they|he|she|nobody) never (?:settled|decided|agreed|heard back|got an answer|"
        r"resolved|answered|sorted)\b"),
    cue(2, "mystery puzzle riddle beyond", r"\b(?:is|remains?|stays?) (?:still )?(?:a|an) (?:mystery|puzzle|"
        r"riddle)\b|\bis beyond me\b"),
    cue(2, "tell know", r"\b(?:they|he|she|\w+)(?:'ll| will) (?:tell us|let us know|let me know|tell me)\b(?! "
        r"(?:about|all|off|stories))"),
)

# fmt: on
# An answer that leaves the question before it open.
NO_ANSWER = LazyPattern(
    r"(?:(?:because|and|but|so|well|no|honestly|sorry)\b,? )*(?:i haven't|we haven't|nobody (?:knows|has|does)|no "
    r"one (?:knows|has)|no idea|"
    r"no clue|(?:i|we) (?:really |still )?don't know|(?:i|we) (?:can't|couldn't) (?:say|tell)|not known|unknown|"
    r"not yet|"
    r"who knows|not that i know|never (?:settled|decided)|we never|still (?:open|unclear|hanging|waiting)|(?:that|"
    r"it)'s (?:still )?(?:open|hanging|unclear|in the air|"
    r"not settled|"
    r"not decided)|no answer|no reply|haven't heard|nothing yet|undecided|i never found out|search me|good question)\b"
)
UNKNOWN = LazyPattern(
    r"(?:(?:well|so|honestly|no|sorry|hm+|and|but)\b,? )*(?:i don't know|we don't know|(?:no one|nobody) knows|"
    r"(?:it's|it is|that's) not "
    r"(?:known|clear|decided|settled)|unknown|no idea|undecided|not (?:known|decided|settled)|(?:that|it)'s "
    r"(?:still )?(?:open|"
    r"unclear)|(?:still|one) open|nothing (?:yet|so far))(?: yet| either)?[.!]*$"
)
