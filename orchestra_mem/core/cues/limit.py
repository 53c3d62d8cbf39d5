"""The words of limits, preferences and rules told plainly, as patterns: at most, prefers, whoever leaves last."""

from __future__ import annotations

from orchestra_mem.core.cues.cue import BASE, NUMBER, START, Cue, cue, table, words
from orchestra_mem.types import MustKeepKind

# Tables: what belongs to a cue stands together.
# fmt: off

_BOUND = (
    "(?:at (?:most|least|the (?:most|latest|earliest))|no (?:more|less|fewer|later|earlier|longer|higher|lower|"
    "bigger) "
    r"than|not (?:more|less|later|longer|higher) than|(?:a )?(?:maximum|minimum|max|min)\.?(?: of)?|more than|"
    "fewer than|less than|later than|longer than|earlier than)"
)
_BOUND_TRIGGERS = "most least latest earliest than maximum minimum max min"
_CHAT_NO = words(
    "problem problems worries idea way doubt thanks thank need matter wonder rush big pressure offense luck clue "
    "kidding pain joke "
    "biggie hurry news sweat it i we he she they that this you not there one other such issue issues errors error "
    "changes "
    "longer more further additional regrets shame judgment reason excuse stranger exception surprise limits turning "
    "going "
    "words place better words matter fun question"
)


LIMIT_CUES: tuple[Cue, ...] = table(
    MustKeepKind.CONSTRAINT,
    # bounds
    cue(2, _BOUND_TRIGGERS,
        r"^(?=.*\b(?:must|should|shall|may|can|can't|cannot|limit|keep|cap|spend|allowed|per|each|every|only|"
        r"needs?|requires?|has to|have to|are kept|is kept|won't|will be)\b)(?!.*\b(?:was|were|took|had|lasted|"
        rf"spent|been|felt|saw|found|met|lost)\b).*\b{_BOUND} {NUMBER}"),
    cue(2, _BOUND_TRIGGERS,
        "^(?:please,? |and |so |also,? |again,? )?(?:at most|at least|no more than|no less than|no fewer than|no "
        rf"later than|not more than|maximum|minimum|max|min)\b:? (?:of )?{NUMBER}"),
    cue(2, "exceed exceeds", r"\b(?:not|never|can't|cannot|mustn't|shouldn't|won't) exceed\b|\bmay (?:not )?exceed\b"),
    cue(2,
        "limit budget cap quota maximum minimum deadline cutoff cut-off curfew ceiling tolerance code date max min "
        "threshold capacity allowance due rate fee price rent deposit wage salary fine toll charge",
        r"\b(?:limit|budget|cap|quota|maximum|minimum|deadline|cutoff|cut-off|curfew|ceiling|tolerance|dress code|"
        "due date|max|min|threshold|capacity|allowance|fee|price|rate|rent|deposit|wage|salary|fine|toll|"
        r"charge)\b[\w\s'-]{0,40}?(?:\b(?:is|are|stays|remains|at|of|stands at|ends|falls on)\b|'s\b|[:=]) "
        rf"(?:[\w°]+ ){{0,3}}?{NUMBER}"),
    cue(2, "keep keeps stay stays hold remain remains cap limit restrict keeping limited capped restricted",
        r"\b(?:keep|keeps|stay|stays|hold|remain|remains|cap|limit|restrict|keeping|limited|capped|"
        r"restricted)\b[\w' ,-]{0,50}?\b(?:under|below|above|within|beneath|between|at|to|over|around) (?:\w+ "
        f")?{NUMBER}"),
    cue(1, "above over below under beyond after past before by older younger",
        rf"\b(?:above|over|below|under|beyond|past|older than|younger than) {NUMBER}"),
    cue(2, "approval sign-off signature permission consent authorisation authorization approved permit clearance",
        r"\b(?:needs?|requires?|must have|has to have|have to have|only with|subject to|without)\b[\w' "
        r"-]{0,25}?\b(?:approval|sign-?off|signatures?|permission|consent|authori[sz]ation|clearance|ok|okay|"
        r"go-ahead)\b"),
    cue(1, "has have must need needs", r"\b(?:has|have|needs?) to be\b"),
    # standing preferences
    cue(2, "prefer prefers prefer'd preferred prefers",
        r"\b(?:i|we|she|he|they|who|[\w.]+)(?:'d| would)? (?:really |much |always |strongly |generally |also |still "
        r")?prefers?\b(?! (?:to say|not to say))"),
    cue(3,
        "allergic allergy allergies intolerant intolerance vegetarian vegan celiac coeliac diabetic kosher halal "
        "pescatarian gluten-free teetotal asthmatic lactose",
        r"\b(?:allerg(?:ic|y|ies)|intoleran(?:t|ce)|vegetarian|vegan|coeliac|celiac|diabetic|kosher|halal|"
        r"pescatarian|teetotal|asthmatic)\b"),
    cue(2, "stand eat drink bear tolerate",
        r"\b(?:can't|cannot|doesn't|don't|won't|does not|do not|never) (?:ever |really )?(?:stand|eat|eats|drink|"
        r"drinks|bear|tolerate)\b(?! (?:up|out|to see|how|the thought|it when i))"),
    cue(2, "insists insist dislikes dislike detests detest loathe loathes hates",
        r"\b(?:insists?|dislikes?|detests?|loathes?|hates) (?!(?:me|you|us|him)\b)\w+"),
    cue(1, "so", ", so (?:please |always |never |don't |tell|leave|keep|no |let me|give|make)",
        needs=", so "),
    cue(3, "rather",
        r"\b(?:i'd|we'd|he'd|she'd|they'd|would) (?:much )?rather (?:you|we|they|not|nobody|it|have|keep|use|that)\b"),
    # rules told without a word of duty
    cue(2, "always ever discussion excuses exceptions period stop story fail buts debate matter",
        ",? (?:always|ever|no (?:discussion|excuses|exceptions|ifs,? (?:no |or )?buts|debate|matter what)|period|"
        "full stop|end of (?:story|discussion)|without fail)[.!]*$"),
    cue(2, "want need expect like",
        r"\b(?:i|we) (?:do not|don't) want (?:any|anyone|anybody|you|people|them|him|her|the|to (?:see|find|hear|"
        r"have)|phones|kids|guests|a|more|it) (?!else to worry)[\w']+"),
    cue(2, "want need expect like",
        r"\b(?:i|we)(?:'d)? (?:want|need|expect|like) (?:everyone|everybody|all of (?:you|us|them)|you all|no |"
        r"nobody|every \w+|all \w+|them all|it (?:to be|done|kept))"),
    cue(2, "could can would",
        r"\b(?:could|can|would) (?:we|you|everyone|everybody|people|you all) (?:please |all |just |kindly )*(?:keep|"
        r"stop|not|avoid|refrain|always|make sure|only|stick|leave|never)\b(?! (?:it up|up with|thinking|smiling))",
        asks=True),
    cue(2, "only",
        r"\bfor (?:[\w'-]+ ){1,3}only\b|^(?!the only\b)[\w' -]{2,40}(?<!the)(?<!not)(?<!if)(?<!it's)(?<!is)(?<!was)("
        "?<!has) only (?:for|on|in|at|with|by|when|after|between|from) (?!(?:me|a few|the first time|"
        r"my)\b)\w+(?!.*\b(?:was|were|had|did)\b)|\b\w+s only(?:[.!,;]|$)"),
    cue(2, "whoever anyone anybody those everyone everybody people",
        r"(?:^|[,:;.—] ?|\b(?:and|so|but) )(?:whoever|anyone (?:who|\w+ing|in|with|on|under|over|without)|anybody "
        r"(?:who|\w+ing|in|with|on)|those who|everyone (?:who|\w+ing|in|with|on)|people who) (?!(?:said|told|loves?|"
        r"thinks?|knows?)\b)[\w' ,-]+ (?!(?:was|were|had|did)\b)\w+"),
    cue(2, "every each all any everything anything",
        r"^(?:[\w' ]{0,30}[,:] )?(?:every|each|all|any|everything|anything)\b[\w', -]{1,45}? (?:goes|go|gets|get|"
        "stays?|needs?|comes?|pass(?:es)?(?= (?:through|by|over|under|via)\b)|starts?|ends?|leaves?|has|have|belongs?|"
        "runs?|takes?|costs?|requires?|"
        "wears?|brings?|pays?|signs?|knocks?|reports?|waits?|counts?) (?!(?:great|better|amazing|good|well|like|so|"
        r"fun|away|on and)\b)\w+"),
    cue(2, "no",
        r"(?:[:;—–] ?|, (?:so |and |but |please )?|\bso |\babsolutely |\bstrictly |\bdefinitely |^please )no "
        rf"(?!(?:{_CHAT_NO})\b)[\w-]+(?!.*\b(?:was|were|had|did|found|needed|required|missing)\b)",
        needs=": no |; no |— no |– no |, no |, so no |, and no |, but no |, please no |so no |absolutely no |"
        "strictly no |definitely no |please no |:no |;no |—no |–no "),
    cue(2, "not",
        r"\bnot a (?:word|single (?:person|word|drop|one)|soul|drop|crumb)\b(?!.*\b(?:was|had|came)\b)|(?:[:;—–] ?|"
        r", (?:so |and |but )?|\bso )not (?:in|on|at|before|after|without|with|to|by|inside|near) (?!(?:a |my |"
        r"mention|sure|worry)\b)\w+"),
    cue(1, "please", ",? please[.!]*$"),
    cue(1, "every each", r"\b(?:on|for|in|per|at|with|to|before|after|by) (?:every|each)\b(?! other)"),
    cue(2, "to",
        r"\b(?:is|are) (?:not |never |only |always |strictly )?to (?:be (?!(?:seen|honest|fair|expected|told|able|"
        r"the|a|there|with|in)\b)\w+|(?!(?:be|blame|come|say|die|make|have|find|get|see|help|do|take|go|keep|create|"
        r"give|learn|try|add|use|show|let|build|start|follow)\b)\w+)(?! (?:people|my|me|you)\b)",
        needs="is to |are to | not to | never to | only to | always to | strictly to "),
    cue(-2,
        "goal dream aim hope idea trick key point thing way purpose challenge step job plan task option intention "
        "fix solution approach part advice tip best next easiest going here there able used about",
        r"\b(?:goal|dream|aim|hope|idea|trick|key|point|thing|way|purpose|challenge|step|job|plan|task|option|"
        "intention|fix|solution|approach|part|advice|tip|best|next|easiest|going|here|there|able|used|about|"
        r"going)\b[\w ]{0,20} (?:is|was|are) to\b",
        needs=" is to| was to| are to"),
    cue(2, "if",
        r"^(?:[\w ]{1,20}[,:] )?if [^,]{3,80}, (?:then )?(?:it|they|he|she|that|you|we|i|nobody|the \w+(?: \w+)?|"
        r"\w+s) (?:doesn't|don't|won't|can't|cannot|isn't|aren't|stays?|goes|gets?|must|has to|have to|leaves?|"
        r"comes? (?!back)|waits?|pays?|moves?|stops?|calls?|is not|are not|need to|needs to) ?\w*"),
    cue(2, "unless until while long",
        r"(?:^|[,:] |\b(?:and|but) )(?:as long as|so long as|unless|until|while) [^,]{4,80},? (?:nobody|no one|"
        r"nothing|you |we |they |the \w+(?: \w+)? |i )(?:don't|doesn't|no|not|never|stays?|must|can't|cannot|won't|"
        r"keep|stay|leave|wait|\w+s|\w+)\b(?!.*\b(?:was|were|had|did|fun|love|feel|happy)\b)"),
    cue(2,
        "hours times time shift break lunch class practice rehearsal meeting curfew checkout check-out check-in "
        "kitchen bar doors gates office library pool gym hall training visiting quiet",
        r"\b(?:hours|times?|shift|break|lunch|class|practice|rehearsal|meetings?|curfew|check-?out|check-?in|"
        r"kitchen|bar|doors?|gates?|office|library|pool|gym|hall|training|stand-?up)\b[\w ]{0,25}? (?:is|are|"
        r"runs?|starts?|ends?|closes?|opens?|begins?|shuts?|locks?|finishes) (?:\w+ ){0,2}?(?:from|at|by|between|"
        rf"until|till|on|before|after|every) (?:\w+ )?{NUMBER}"),
    cue(2, "wants want takes likes expects demands asked insists drinks",
        r"^(?:and |also |so )?(?!(?:it|this|that|who|which|he|she|they|we|i|everyone|someone)\b)[\w.' ]{2,30} "
        "(?:wants?|takes|likes|expects?|demands?|asked for|drinks|insists) (?:the|his|her|their|all|every|"
        r"everything|no|only)\b [\w' -]{2,40}? (?:\w+ed|un\w+|without|with|in|by|before|first|separate\w*|plain|"
        r"black|cold|hot|early|late|short|kept|done|sent)\b(?!.*\b(?:was|were|had|did)\b)",
        needs="want|takes|likes|expect|demand|asked for|drinks|insists"),
    cue(2, "let",
        f"{START}(?:don't|do not|never) let (?:the|anyone|anybody|them|him|her|any|guests|kids|it (?:sit|boil|dry|"
        r"cool|get (?:above|below|over|under))|\w+s)\b(?! (?:tell|get you|bring|stop you|doubts|fears))",
        imperative=True),
    cue(2, "stay stays stayed",
        r"\b(?!(?:i|we|you|he|she|it|they|to|and|let's|just|will|can|must)\b)[\w-]+ stays? (?:out of|off|in the|on "
        "the|at the|with the|with us|closed|locked|shut|open|between|under|below|above|where|here|put|inside|"
        r"outside|dry|cold|empty|secret|private|at|within|between us|in house|upstairs|downstairs)\b"),
    cue(2, "lasts runs holds applies valid",
        r"\b(?:lasts|runs|holds|applies|apply|is valid|are valid|remains in (?:force|place)) (?:until|till|from|"
        r"through|to (?:all|every|both|everyone|any)|for (?:all|every|both|everyone|any|two|three|\d)|at all)\b"),
    cue(2, "may",
        r"\bmay (?:only |also )?be (?:\w+ed|spent|kept|taken|sold|worn|given|drunk|eaten|left|driven|put|cut|held|"
        r"shown|lent) (?:on|by|in|at|for|with|between|from|after|before|until|to|if|when|only)\b"),
    cue(2, BASE,
        rf"^(?:(?:please|and|so|also|oh|ok|okay|then|hey|team|everyone|folks|just|kindly)\b,? )*(?:{BASE}) "
        "(?!(?:you|i|it up|it off|is|are|was|of|me|us|up for|yourself|in touch|going|doing|up|moving|pushing|"
        r"coming)\b)\w+ .*\b(?:before|after|when|until|with|without|in|on|for|at|all|every|each|never|always|"
        r"between|by|under|over|first|from|to|as)\b .", imperative=True),
    cue(2, "before after",
        r"^(?:[\w ]{1,20}[,:] )?(?:before|after) (?:you|we|they|anyone|anybody|going|leaving|any|each|every|"
        r"\w+ing)\b[^,]{2,60}, (?:please |always |first )?(?!(?:i|we|he|she|it|they|there|the|a|my|our|that|this|"
        r"you)\b)[a-z]+ \w+", imperative=True),
    cue(2, "clear strict firm specific adamant explicit",
        r"\b(?:was|is|were|are|been) (?:very |quite |really |absolutely )?(?:clear|strict|firm|specific|adamant|"
        r"explicit) (?:about|on|that)\b|\b(?:was|is|were) (?:very |quite |really )?(?:clear|strict|adamant|"
        "explicit)(?::|,| —)"),
    cue(2, "doesn't don't", r"\b(?:doesn't|don't) want (?:any|anyone|anybody|people|him|her|them|his|their) \w+"),
    cue(2, "other", r"\b(?:at|in|by|for|with|through) no other \w+"),
    cue(2, "next monday tuesday wednesday thursday friday saturday sunday",
        r"\bfrom (?:next (?:week|month|term|year|season)|\w+day) (?:on |onwards? )?"
        r"(?:we|you|they|the|all|it|our|no)\b"),
    cue(2, "free",
        r"\b(?:nut|gluten|smoke|dairy|alcohol|phone|plastic|meat|scent|pet)-free\b.*\b(?:so|must|only|please|zone|"
        r"school|kitchen|site)\b"),
    cue(1, "so", r", so (?:check|use|wear|bring|put|take|avoid|ask|oat|only|no|not|never|always|nothing|nobody)\b",
        needs=", so "),
    # bounds told without a verb of duty
    cue(2, "outside tops ceiling limit cap maximum floor minimum bar",
        r"\bat the outside\b|, tops\b|\btops(?=[.!]*$)|\b(?:is|are|'s) (?:the|our|my|a hard) (?:ceiling|limit|cap|"
        r"maximum|minimum|bar)\b"),
    # bans told without a verb of duty
    cue(2, "excluded grounded barred question limits table menu bounds",
        r"\b(?:is|are|stays?|remains?) (?:\w+ )?(?:excluded|grounded|barred|out of the question|off[- ]limits|out of "
        r"bounds)\b"),
    cue(2, "none",
        r": none (?:between|before|after|on|during|in|of|at|from|until|without)\b|^none (?:of (?:these|those|this)|"
        r"before|"
        r"between|after|during|until) .*\b(?:goes|go|leaves?|gets?|is|are)\b", imperative=True),
    cue(2, "nothing nobody no-one one",
        r"\b(?:nothing|nobody|no one|no-one) (?:about|of|to do with|from|in|with|on|under|over|below|above) "
        r"[\w' ]{1,30}? (?:goes|gets|leaves|enters|comes|stays|touches|sees|may|is (?:sent|shared|sold|thrown|"
        r"left))\b",
        needs="nothing|nobody|no one|no-one"),
    cue(2, "isn't aren't not", r"\b(?:isn't|aren't|'re not|'s not|is not|are not|am not) to (?!(?:be (?:able|a|the)|"
        r"blame|say|mention|do with|have|you|me|everyone|my|our|the|a)\b)\w+"),
    cue(2, "don't doesn't do does",
        r"^(?:[\w' ]{1,30}[,:;.] )?(?!(?:it|that|this|they|there|things|these|those|we|you|i|he|she|people)\b)"
        r"(?:[\w'-]+ ){0,2}(?!news|tests\b)[\w'-]+ (?:don't|doesn't|do not|does not) (?:go|leave|enter|touch|let|"
        r"interpret|"
        r"travel|ride|drive|eat|drink|sign|handle|carry|ship|sell|open|speak|work|start|park|sit|sleep|enter|"
        r"cross|post|share) (?!(?:me|us|it|to|well|away|along|much|enough|why|as|like|how|with|properly|because|if "
        r"you)\b)"
        r"[\w']+"),
    cue(2, "don't", r"\bwe don't do (?!(?:that|it|this|much|a lot|too|so|well|anything)\b)\w+"),
    cue(2, "can't cannot may", r"\b(?:we|you|they) (?:cannot|can not|may not) (?:take|cross|give|sell|accept|leave|"
        r"enter|"
        r"touch|open|move|go|exceed|miss|break|lend|bring|spend|pay|send|offer|change)\b"),
    cue(2, "can't cannot", r"\b(?:can't|cannot|can not) be (?:bent|moved|changed|touched|skipped|broken|missed|shifted|"
        r"extended|waived|negotiated|swapped|opened|shared|sold|left|used|taken|stored|reused)\b"),
    cue(2, "phones mobiles cameras shoes boots lights hats engines masks helmets gloves goggles jackets vests "
        "hairnets badges hands hair laptops seatbelts belts leads sleeves", r"\b(?:phones|mobiles|cameras|shoes|"
        r"boots|lights|hats|engines|masks|"
        r"helmets|gloves|"
        r"goggles|jackets|vests|hairnets|badges|hands|hair|laptops|seat ?belts|leads|sleeves) (?:off|on|out|shut|"
        r"closed|tied)(?: (?:at|in|on|while|when|before|until|after|during|its|the|please|by|from|back)\b|[,.!;]|$)"),
    # only
    cue(2, "only", r"^(?!.*\b(?:was|were|had|did|have been)\b).*\b(?:via|in|at|on|by|through|with|from|for|to|"
        r"after|between|"
        r"under) [\w.' -]{1,40}? only(?=[,.;:!]|$)"),
    cue(2, "only", r"(?<!\bif )(?:\b(?:is|are)|'s|'re) only (?:ever )?(?:\w+ed|taken|given|shown|sold|sent|held|"
        r"cut|put|drawn|"
        r"worn|driven|lent|kept|fed|built|run|made|read) (?:with|by|after|when|if|under|while|once|behind|between)\b",
        imperative=True,
        needs="is only|are only|'s only|'re only"),
    cue(2, "only", r"(?:^|[;:,.] )(?:a|an|every|each|any|the) [\w-]+(?: [\w-]+)? only (?!(?:has|had|knows|is|was|"
        r"gets?)\b)\w+s "
        r"(?:\w+ing|with|when|in|under|after|by|on|if|at|from|beside|once)\b", imperative=True),
    cue(2, "only", rf"{START}only (?:copy|{BASE}) ", imperative=True),
    # what is to be done when
    cue(2, "if when once whenever", r"\b(?:if|when|once|whenever|the moment) (?!you\b)[^,?]{3,70},? you (?:ring|"
        r"call|phone|tell|wake|"
        r"stop|pull|leave|ask|wait|page|text|report|evacuate|shut|turn|close|fetch|write|alert|drop|hand|press|"
        r"radio|inform|notify|abort|pause)\b(?! (?:out|it a day))"),
    cue(2, "stays stay leave", r"\b(?:and|it|that|this|gate|door|\w+) stays? (?:so|that way|as it is|as they are|"
        r"like that|true|"
        r"exactly|unchanged|sealed|plugged|powered)\b|\b(?:you|and|please|just) leave (?:it|that|them|the [\w-]+) "
        r"(?:as it is|as "
        r"they are|alone|powered|on|off|switched|running|plugged|there|where|closed|shut)\b"),
    cue(2, "wear carry sign bring wash knock keep", r"^(?:[\w ]{1,20}[:,] )?(?!(?:you|we|they|things|always|"
        r"sometimes|does|"
        r"friends|kids)\b)(?:[\w-]+ )?[\w-]+s (?:wear|carry|sign in|sign out|knock|wash|bring their|keep their) "
        r"(?!me|us)\w+"),
    cue(2, "belong belongs", r"^(?:[\w ]{1,20}[:,] )?(?!(?:it|that|this|i|you|we|they)\b)[\w' -]{3,40} belongs? "
        r"(?:in|on|under|inside|"
        r"behind|to) (?:the|a|one|its|their)\b"),
    cue(2, "most latest earliest max maximum tops less fewer more longer later higher",
        rf"^(?!.*\b(?:was|were|took|had|lasted|spent|been|felt|saw|found|met|lost)\b)(?=.*\b{NUMBER}).*\b(?:at "
        rf"(?:the )?"
        r"(?:most|latest|earliest)|max(?:imum)?|or (?:less|fewer)|(?:and )?(?:not|no) (?:one |a minute |a second |"
        r"an hour )?"
        r"(?:more|longer|later|higher|earlier))(?=[,.;!]|$| (?:on|in|at|per|a|for|to)\b)"),
    cue(2, "don't", r"\bwe don't (?:lend|rent|sell|serve|ship|store|share|open|accept|print|mix|deliver|refund|"
        r"hire|reuse|break|"
        r"lock|heat|touch|freeze|hand|park|smoke|skip|record|log|cache|post|publish|cool|patch|force|merge|deploy)\b"),
    cue(2, "when if whenever once soon", r"\b(?:when|if|whenever|once|as soon as) (?!(?:you|i|we)\b)[^,?]{4,60}?,? you "
        r"(?!(?:can|could|are|know|will|would|might|may|have|had|see|get|feel|look|want|need|think|say|said|were|"
        r"did|don't|do|"
        r"like|love|realize|realise|find|put|gave|told|also|just|really|should|come|went|got|made|run|call|"
        r"make)\b)[a-z]+ (?:the|it|them|me|"
        r"him|her|all|out|up|back|again|over|us|no|every)\b(?!.*\b(?:was|were|love|proud)\b)"),
    cue(2, "each every whenever", r"^(?:\w+, )?you (?!(?:can|could|are|were|know|will|would|might|may|have|had|see|"
        r"get|feel|look|want|"
        r"did|don't|said|seem|always|never|must)\b)[a-z]+ .*\b(?:each time|every time|whenever)\b"),
    cue(2, "carries holds fits seats bears lifts weighs", rf"\b(?:carries|holds|fits|seats|bears|lifts) (?:up to |"
        rf"only |\w+ )?{NUMBER}"),
    cue(2, "frozen closed locked shut blocked paused sealed suspended barred reserved",
        r"\b(?:is|are|stays?|remains?) (?:\w+ )?(?:frozen|closed|locked|shut|blocked|paused|sealed|suspended|"
        r"barred|reserved) "
        r"(?:until|till|while|during|as long as|unless|to (?:the|all|any)|for (?!(?:the (?:day|night)|now|a)\b))",
        imperative=True),
    cue(2, "that's stays", r"\bthat's (?:all you get|all there is|the limit|the most)\b|^what(?:'s| is|ever)? [\w' "
        r"]{3,40} stays\b"),
    cue(2, "don't do", r"^(?:and |so |but |please )?you (?:don't|do not) (?!(?:have|need|want|know|get|see|think|"
        r"feel|even|really|look|like|"
        r"seem|believe|mind|understand|say|realize|always|often|think|usually|just|happen|sound)\b)\w+ (?!(?:any "
        r"better|it)\b)"),
    cue(2, "first", r"^[\w' ]{2,30} first, [\w' ]{2,30} (?:later|after|afterwards|second|then|next|last)\b",
        needs=" first, "),
    cue(2, "doesn't don't", r"^(?:[\w' ]{1,30}[,:] )?(?!(?:it|that|this|they|there|i|we|you|he|she|things|people|"
        r"who|what)\b)(?:[\w'-]+ ){1,4}"
        r"(?:doesn't|don't) [\w' ]{2,40}? (?:without|until|unless)\b", imperative=True),
    cue(2, "confidential private secret internal final binding record", r"\b(?:is|are|stays?|remains?) (?:strictly "
        r"|all |\w+ly )?(?:confidential|private|"
        r"secret|binding|off the record|between us)(?=[,.;!]|$| (?:until|and|to|for)\b)"),
    cue(2, "older bigger larger longer shorter younger smaller heavier without", r"^[\w'-]+s (?:older|bigger|"
        r"larger|longer|shorter|younger|smaller|"
        r"heavier|without) [\w ,.'-]{2,40}? (?:are|get|go|must|need|stay) \w+", imperative=True),
)
