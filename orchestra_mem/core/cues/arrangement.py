"""Decisions told by how things now are, as patterns: so the gala goes to the castle, the order turns, by rail it is."""

from __future__ import annotations

from orchestra_mem.core.cues.cue import NICE, NUMBER, START, Cue, cue, table, words
from orchestra_mem.types import MustKeepKind

_MONTHS = "january february march april may june july august september october november december"

# Tables: what belongs to a cue stands together.
# fmt: off

_SO_STOP = words(
    "i you he she it they we there this that who what if far much many long sorry glad happy yeah yes no it's that's "
    "there's i'm you're we're they're he's she's basically maybe when how why let let's please not my-self some "
    "everything everyone nobody nothing something somebody anyway thanks proud good great cool nice fun true life "
    "issue problem error bug question answer reason test tests file files code function method class output"
)
_SO_PREDICATE = (
    r"(?:\w+ing|\w+ly|not|so|very|too|really|just|fine|ok|okay|good|great|bad|hard|easy|happy|nice|right|wrong|"
    r"true|false|"
    r"clear|possible|important|likely|able|also|still|already|like|more|less|better|worse|correct|missing|what|why|"
    r"where|how|"
    r"because|that|to|no|in sync|there|here|about|all|pretty|quite|me|you|my|your|used|called|defined|needed|"
    r"happening|done|ready|safe|due|over|out|always|never|it|this|only|up|broken|gone|dead|\w+able|\w+ful|\w+ous|"
    r"\w+ive)\b"
)


ARRANGEMENT_CUES: tuple[Cue, ...] = table(
    MustKeepKind.DECISION,
    # plans that are settled, as what follows from them tells: we do three, the board is printed
    cue(4, "signed printed voted ordered paid reserved booked announced published settled agreed built brochure poster "
        "flyer website invitation invitations",
        r"^(?:[\w ]{1,20}[,:] )?(?:(?:so |ok |and |now )?we (?:do|go|take|use|keep|hold|play|serve|run|open|close|"
        r"start|end|offer|sell|meet|stay|show|build|make|print|ship|pay|send|eat|travel|fly|drive)|(?!(?:it|that|this|"
        r"he|she|they|what|who|there|these|those|all|everything|nothing)\b)(?:[\w-]+ ){1,4}(?:is|are)) (?!(?:not|done|"
        r"finished|ready|fixed|live|gone|up|back|out|in|all|signed|printed|ordered|paid|reserved|booked|announced|"
        r"published|approved)\b)"
        r"[^.;]+?,(?: \w+'s| (?!(?:but|if|when|once|should)\b)\w+){0,3}? (?:(?:signed|printed|voted|ordered|paid|"
        r"reserved|booked|announced|published|settled|agreed|built)\b|(?:in the brochure|on the (?:poster|flyer|"
        r"website|invitations?))\b)(?!.*\b(?:yet|if|should|once)\b)",
        needs="we | is | are "),
    cue(3, _MONTHS, r"^(?:(?:so|ok|and|right|now|the [\w-]+)[,.:]? ){0,2}we (?:go live|launch|open|ship|release|switch|"
        r"move|start|meet|fly|leave|travel|play|close|begin|cut over|deliver|sail|hand|present|submit|print|harvest|"
        rf"sow|plant|pour|record|shoot|migrate)\b[\w ]{{0,30}}? on (?:the )?[\w-]+ (?:of )?"
        rf"(?:{_MONTHS.replace(' ', '|')})\b"),
    # arrangements told as they now are
    cue(2, "so hence therefore thus", r"(?:^|[,;:.] |\band |[a-z] (?=so ))(?:so|hence|therefore|thus),? (?:then "
        r")?(?:the |our |my |this |that |"
        rf"those |these )?(?!(?:{_SO_STOP})\b)[\w'.-]+(?: (?!(?:who|which|that|was|were|had|did|it|"
        rf"not)\b)[\w'.-]+){{0,4}}? "
        rf"(?:becomes?|goes|go|moves?|turns?|gets?|comes?|leaves?|switch(?:es)?|stays?|runs?|(?:is|are|will be) "
        rf"(?!{_SO_PREDICATE}))"
        rf"\b{NICE}", imperative=True),
    cue(2, "so", r"(?:^|[,;:.] )(?:so|then|therefore|hence) it(?:'s| is| becomes| will be) (?:a|an|the|now|on|in|"
        r"at|by|[a-z]+ now)\b"
        rf"(?! (?:good|great|bit|lot|shame|pity|matter|question|problem|bug|same|case|only|first|long|way)\b){NICE}",
        needs="so it|then it|therefore it|hence it"),
    cue(2, "so then ok okay right fine therefore hence", r"(?:^|[,;:.] )(?:so|then|ok|okay|right|fine|therefore|"
        r"hence),? (?!(?:what|that|how|who|as|where|"
        r"i|why)\b)"
        r"(?:[\w-]+ ){1,4}it is\b(?! (?:a|the|not|so|very|really|just|possible|hard|easy|important|like|too|good|"
        r"still|also|"
        r"clear|more)\b)",
        needs="it is"),
    cue(2, "now", r"^(?:[\w' ,]{1,60}[,:;.] )?(?!(?:i|you|he|she|it|that|this|there|life|everything|who|"
        r"what)\b)(?:[\w'-]+ ){1,5}"
        rf"(?:is|are|comes?|goes|go|gets?|leaves?|starts?|runs?) (?:[\w\"'-]+ ){{0,5}}?now\b(?! (?:and then|that|"
        rf"a)\b){NICE}",
        imperative=True),
    cue(2, "becomes become turns turn moves move goes go switches switch flips changed",
        r"(?:^|[,;:.] |\b(?:and|but|so|hence) )(?!(?:i|you|he|she|"
        r"it|that|this|there|life|who|what|which|everything|we|they|everyone|time)\b)(?:[\w'-]+ ){0,4}?[\w'-]+ "
        r"(?:becomes|turns "
        r"(?:to|into)|moves (?:to|into|from|back|up)|(?:goes|go) (?:to|into|by|with|back to|down to|up to|over to) "
        r"(?:the |a |our |"
        r"period |room |plain |number )?(?!bed|sleep|school|work|the (?:gym|beach|park)|show|waste|church|college|"
        r"therapy|yoga)"
        r"[\w-]+|flips(?=[,.:;]|$)|turns(?=[,.:;]|$)|is changed\b)"
        r"(?!.*\b(?:was|were|had|when i|love|loves|me|my|life|dream\w*|usually|always|often|together)\b)"
        + NICE, imperative=True,
        needs="becomes|turns|moves |goes |go |flips|is changed"),
    cue(2, "instead", r"^(?!.*\b(?:was|were|had|did)\b).*\b(?:gonna|going to|will|'ll|you'd|we'd|let's|we|"
        r"do)\b.*\binstead(?=[,.;!]|$)"),
    cue(2, "switch change swap go", r"(?:^|[,;:.] |\b(?:and|so|but|then) )we (?:switch|change|swap|go over|convert|"
        r"go back|revert) (?:\w+ "
        r"){0,3}?(?:to|for|back)\b(?!.*\b(?:was|were|when we|always|often)\b)"),
    cue(2, "no", r"^(?:\w+[,.] )?(?:so |ok |okay |right |then )?no [\w.-]+(?: [\w-]+)?(?:,| -| —|;) (?:we|all|it's|"
        r"just|only|plain|they're|"
        r"every|there'll)\b"),
    cue(2, "off out dead", r"\b(?!(?:it|that|this|he|she|who|power|light|lights)\b)[\w-]+ (?:is|are) (?:off|out|"
        r"dead)[,;] (?:and |so )?"
        r"(?:\w+ )?(?:wants?|it's|is|are|goes|comes|take|use|we|she|he|they)\b|\bdrops? out(?=[,.;]|$)",
        needs=" off,| off;| out,| out;| dead,| dead;|drop out|drops out"),
    cue(2, "off history cancelled canceled", r"^(?:(?:and|so|ok|okay|well|sorry|also|by the way),? )*(?:the |our |my )?"
        r"(?!(?:it|that|this|he|she|who|what|power|light|lights|something|everything|nothing|all|water|heating|internet|"
        r"day|time)\b)[\w'-]+(?: [\w'-]+)? (?:is|are) (?:now |officially |also )?(?:off|history|called off|cancell?ed|"
        r"off the (?:table|menu|list))[.!]*$"),
    cue(2, "rest retire go", r"\b(?:old|other|former|previous|first|current) (?:thing|one|ones|plan|way|setup|system|"
        r"idea|version|rule|design|list|tool) (?:may|can) (?:now |finally )?(?:rest in peace|retire|go(?=[,.;!]|$))"),
    cue(2, "wants want", r"(?:^|[,;:.] |\band |\bso )(?:i|we|she|he|they|the \w+|\w+) wants? (?:the|our|all|those|"
        r"these|his|her|its|\w+) "
        r"?(?:[\w-]+ ){0,2}?(?:in (?:[a-z]+)|on (?:the|a)|there|at the|by (?:\w+day|the)|instead|now)(?=[ ,.;]|$)"
        r"(?!.*\b(?:life|world|future|dream|my|me|you)\b)" + NICE),
    cue(2, "down up", rf"\b(?:is|are|goes?|gets? cut|cut) (?:now )?(?:back )?(?:down|up) to (?:\w+ )?{NUMBER}"),
    cue(2, "do", rf"{START}do (?:it|that|them|the [\w-]+) (?:daily|weekly|monthly|yearly|twice|once|every|on "
        rf"\w+days?|at \d)",
        imperative=True),
    cue(2, "number plan date figure final place spot venue price choice pick", r"\bthat(?:'s| is) (?:our|the|my) "
        r"(?:number|plan|date|figure|final|place|spot|venue|"
        r"price|choice|pick)\b"
        r"(?! (?:of|is|for me))"),
    cue(2, "say", r"\bi say (?:the|we|it's|let's|our)\b"),
    cue(2, "speed rate size length width height weight price date temperature pressure interval retention "
        "resolution ratio "
        "dose voltage frequency distance delivery pickup window budget", r"\b(?:speed|rate|size|length|width|"
        r"height|weight|price|date|"
        r"temperature|pressure|interval|retention|resolution|ratio|dose|voltage|frequency|delivery|pickup|window) "
        r"(?:is|are) "
        rf"(?:now |back )?(?:at |on |from )?(?:\$|€|£)?(?:\d|{NUMBER})(?!.*\b(?:too|only|measured)\b)",
        imperative=True,
        needs=" is | are "),
    cue(2, "we", r"\b(?:too \w+|closed|shut|full|broken|dead|gone|booked|cancelled|canceled|sold out|ill|sick),? "
        r"(?:so |and so |so then )?we "
        r"(?!(?:had|were|could|just|all|are|have (?:to|had|been)|did|went|got|can|should|need|might|always|never|also|"
        r"both)\b)[a-z]+ \w+" + NICE,
        needs="too |closed|shut|full|broken|dead|gone|booked|cancel|sold out|ill|sick"),
    cue(2, "forget scratch scrap strike bin ditch", rf"{START}(?:forget|scratch|scrap|strike|bin|ditch) (?!(?:it|"
        rf"that|me|him|her|about)\b)"
        r"[\w-]+(?: [\w-]+)?[,;:] \w+"),
    cue(2, "now", r"\bnow,? (?:and )?not \w+|^(?=.*\bnow[.!]*$)(?!.*\b(?:was|were|had|did|feel\w*|i|i'm|you|he|she|"
        r"right now|for "
        r"now|by now|until now|it|that|life)\b)"
        r"(?:[\w'-]+ ){1,4}[a-z]+s? (?:[\w'-]+ ){1,5}now[.!]*$" + NICE, imperative=True),
    cue(2, "not", r"\b(?:we'll|we're|we go|we meet|we take|let's|they'll|we leave|we start|we use|we do)\b.*, not "
        r"(?!(?:sure|just|only|really|that|bad|"
        r"too|so|very|even|yet|me|because|to mention)\b)[\w ]{2,25}[.!]*$"),
    cue(2, "thought correct rethought", r"\b(?:i've|we've|i have|we have|having) (?:thought again|rethought|"
        r"thought better|thought it over)\b|"
        r"\b(?:let me|i must|i have to) correct (?:that|myself|this)\b"),
    cue(2, "swapped switched exchanged flipped reversed traded", r"\bwe(?:'ve| have)? (?:swapped|switched|"
        r"exchanged|flipped|reversed|traded) (?:the|our|round|"
        r"to|over|from)\b"),
    cue(2, "off", r"\boff the (?:plan|menu|list|schedule|programme|program|agenda)\b"),
    cue(2, "then", r"^(?:by|in|at|on|with|from) [\w' -]{2,30} then[,.;]"),
    cue(2, "not", r"^(?:[\w' ]{1,20}[,:] )?(?:the|our|his|her|their|\w+'s) (?:[\w'-]+ ){1,3}(?:gets?|goes|go|"
        r"becomes?|stays?|is|are) (?:[\w'-]+ ){1,3}?"
        r"(?<= )[\w'-]+, not (?:the |a |in |at |on |to |by )?[\w'-]+[.!]*$", imperative=True),
    cue(2, "moved shifted pushed swapped switched renamed relocated shortened postponed",
        r"\b(?:has|have|is|are|was|were|been|got|gets) (?:been |just |now "
        r"|all )?(?:moved (?:online|indoors|outdoors|inside|to|into|from|up|back|forward)|shifted|pushed(?=[,.;!]|"
        r"$| (?:back|to|out))|"
        r"swapped|switched (?:to|from|over)|renamed|relocated|shortened|postponed)\b(?! (?:by how|that you))",
        imperative=True),
    cue(2, "then", r"^(?:the |our )?[\w' -]{2,30} (?:is|are) [\w' -]{2,25} then[.!]*$"),
    cue(2, "went gone goes go came slips slip slides slide drops drop rises rise climbs climb moved pushed cut",
        r"\b(?:went|gone|goes|go|came|slips?|slides?|drops?|rises?|climbs?|moved|pushed|cut) (?:up |down |"
        r"back |out )?to "
        rf"(?:the )?{NUMBER}(?!.*\b(?:gym|park|places?|times)\b)"),
    cue(2, "voted decided agreed talked spoke chose tossed", r"\b(?:voted|decided|agreed|talked|spoke|chose|tossed "
        r"a coin)[\w ]{0,20}(?: and|:|,) it's (?!been|so|all)"),
)
