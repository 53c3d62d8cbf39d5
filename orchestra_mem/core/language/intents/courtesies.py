"""The courtesies around a command: greetings, politeness, roundabout requests, thanks; taken off both ends."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from orchestra_mem.core.language.intents.normalising import Clause, Word
from orchestra_mem.core.language.intents.verbs import base_of, is_verb
from orchestra_mem.core.language.intents.words import longest_first

_FILLER = (
    r"ok(?:ay)?|okey|alright|all right|right|great|cool|good|nice|perfect|awesome|excellent|wonderful|so|well|"
    r"now(?! that)|and|then|also|next|"
    r"first(?:ly)?|first of all|second(?:ly)?|third(?:ly)?|finally|lastly|actually|oh|hm+|um+|uh+|erm?|ah|aha|btw|"
    r"by the way|yes|yeah|yep|yup|nope|"
    r"sure(?: thing)?|fine|hi|hello|hey|hiya|yo|good (?:morning|afternoon|evening|day)|morning|thanks(?: a lot|"
    r" so much)?|"
    r"thank you(?: very much| so much)?|cheers|sorry|listen|look ,|alternatively|after that|afterwards|after this|"
    r"once (?:more|again)|"
    r"while you are at it|while we are at it|plus|but|quick one|one more thing|one last thing|i guess|i suppose|"
    r"i think|i believe|i reckon|"
    r"on second thought|come on|anyway|anyways|oops|ooh|wow|gosh|no worries|sounds good|that is (?:great|good|fine)|"
    r"additionally|furthermore|moreover|besides|in addition|meanwhile|in the meantime|instead|as well|too|again|"
    r"that said|"
    r"basically|honestly|literally|obviously|quick question|question|just a question|a question|hopefully|lovely|"
    r"brilliant|"
    r"(?:the|my) (?:thing|fact|truth|good news|bad news|news|point|problem|understanding|feeling) is(?: that)?|"
    r"to be (?:honest|fair|clear|frank|precise|safe|sure|on the safe side)|if i (?:remember|recall|am not mistaken)"
    r"(?: correctly| right| rightly)?|i (?:just )?(?:forgot|wanted|want|meant|need|have|would like|"
    r"am happy) to (?:mention|say|add|tell you|"
    r"let you know|announce|inform you|confirm|admit)(?: that)?|(?:it|this) (?:looks|seems|appears|"
    r"sounds)(?: like| as if|"
    r" that| as though)?|as far as i (?:know|can tell|remember|can see)|i can (?:confirm|report|say|"
    r"tell you)(?: that)?|"
    r"i am (?:pretty |quite |fairly )?sure(?: that)?|not sure if you (?:know|knew|saw)|(?:just )?(?:confirming|"
    r"reporting(?! on| for))(?: that)?|"
    r"you know what|frankly|in short|long story short|in any case|in other words|by all means|at any rate|"
    r"dude|bro|bruh|nah|fam|buddy|mate|man|pal|chief|boss|guys|folks|oi|ayo|greetings|howdy|basically|"
    r"got it|will do|makes sense|good idea|go on then|of course|absolutely|definitely|exactly|as discussed|"
    r"as agreed|as a next step|"
    r"next step|(?:no |oh |hold on |hang on )?wait(?: a (?:minute|second|moment|sec))?|hold on|(?:(?:i am|"
    r"we are) )?(?:happy|glad|pleased|proud|sorry|just) to (?:say|tell you|report|announce|let you know|"
    r"inform you)(?: that)?|(?:just )?(?:letting you know|to let you know)(?: that)?|turns out(?: that)?|"
    r"it turns out(?: that)?|it seems(?: that)?|sadly|unfortunately|luckily|fortunately|finally|(?:good|bad|great|"
    r"happy|sad) news|oh (?:no|yes|dear|boy|man|well)|alas|surprise|guess what|phew|yay|hooray|hurray|yikes|damn|"
    r"no no(?: no)*|argh|hmmm*|mm+|alrighty|righto|righty|ok then|now then|well then|woo+ ?hoo+|yippee|omg|ugh+|whew|"
    r"boom|oopsie|whoops|"
    r"dang|darn|as far as (?:i am|we are) concerned|looks (?:like|as if)(?: that)?|seems(?: like| that)?|"
    r"it (?:occurred to me|came to my attention|appears) that|(?:i|we)(?: have)?(?: just|"
    r" only)? (?:noticed|realised|realized|"
    r"found out|learned|discovered)(?: that)?|to (?:sum up|summarise|conclude)|in (?:summary|conclusion|the end)|"
    r"(?:i am|we are) afraid(?: that)?|(?:i|we) regret to (?:say|report|inform you|tell you|announce)(?: that)?|"
    r"it is (?:my|our|a) (?:pleasure|duty) to (?:say|report|inform you|tell you|announce)(?: that)?|"
    r"be (?:informed|advised)(?: that)?|(?:i|we) can (?:safely|now|happily) (?:say|report|confirm|announce)(?: that)?"
)
_HERE_IS = (
    r"(?:here (?:is|are|comes)|this is|that is|now for)"
    r"(?= (?:my|our|the|a|an) (?:\S+ )?(?:report|note|update|decision|result|results|findings)\b)"
)
_FILLER += rf"|{_HERE_IS}|(?:my|our|the|a)(?= (?:\S+ )?(?:report|note|update|findings|results)\b.* :)"
_VOCATIVE = (
    r"(?: (?:there|all|team|everyone|everybody|folks|guys|buddy|mate|bot|assistant|then|now|computer|shell|"
    r"orchestrator|friend|again|dear|man|boss))?"
)
_COLON = re.compile(
    r"(?:start|begin|finish|complete|close|block(?:ed)?|unblock|defer|postpone|assign|cancel|rename|prioritise|"
    r"done|finished|started|delete|drop|reopen|resume|continue|command|action|request|start work|next) : "
    r"|(?:start|begin|finish|complete|close|block|unblock|defer|postpone|assign|prioritise|resume) , (?=#?\d)"
)
_FILLERS = re.compile(
    rf"(?:(?:{longest_first(_FILLER)}){_VOCATIVE}(?: [,:.!\-])* |(?:dear|hey|hello|hi) (?:\S+ )?, |"
    rf"[,:.!;?\-•|)] )+"
)
_NAMED_GREETING = re.compile(
    r"(?:hi|hello|hey) \S+ (?:, |! )|(?:it is|this is|i am) \S+(?: \S+)? (?:here|speaking|calling|"
    r"from (?:the )?\S+(?: \S+)?)"
    r"(?: again)? [,:\-] "
)
_ADV = (
    r"(?: (?:really|just|also|now|still|then|kindly|please|very much|quickly|maybe|possibly|perhaps|actually|finally|"
    r"all|simply|first|only|so|be so kind as to|go ahead and|help me(?: to)?|help us(?: to)?|mind))*"
)
_FOR = r"(?: (?:for )?(?:you|us|me|someone|somebody|the team|everyone))?"
_LIKED = (
    r"(?:great|nice|good|lovely|cool|helpful|wonderful|awesome|best|perfect|super|fantastic|brilliant|ideal|amazing|"
    r"splendid|grand|appreciated|fine|handy|useful|kind|sweet|much appreciated)"
)
_WANT = (
    rf"(?:i|we|you){_ADV} ?(?:(?:would|will|do){_ADV} )?(?:like|love|want|need|wish|prefer|have|ought|got|"
    rf"intend|plan|expect|ask|appreciate|request|require|hope|mean)(?: it)?{_FOR}{_ADV} "
    r"(?:to|if you could|if you would|if you can|that you|that we)"
)
# What is put like this is plainly asked for.
_CLEAR = re.compile(
    rf"(?:(?:(?:please|kindly) to|please|kindly|just|simply|quickly|go ahead(?: and| ,)?|feel free to|"
    rf"(?:(?:would|could|will) you )?be (?:so )?(?:kind|good|nice)(?: enough)?(?: as)? (?:to|and)|"
    rf"(?:(?:would|could|will) you )?have the (?:kindness|goodness|courtesy) (?:to|and)|"
    rf"(?:may|might|can|could) i (?:kindly )?(?:ask|trouble|bother|beg) you(?: kindly)? to|"
    rf"would you (?:be (?:willing|able|prepared) to|care to)|(?:i|we) beg (?:of )?you to|allow me to|"
    rf"be an? (?:dear|darling|star|pal|angel|sport|gem) and|do me (?:a|the) favor(?: and|,)?|do not hesitate to|try to|"
    rf"make sure (?:to|(?:that )?(?:you|we))|be sure to|see to it that (?:you|we)|"
    rf"let us{_ADV}|let me(?: just| now)?|(?:it is |it is about |it is high |about |high )?time to|"
    rf"it is{_ADV}(?: about| high)? time(?: that| for)? (?:you|we|i|us)(?: to)?|{_WANT}|"
    rf"(?:(?:i|we) (?:am|are){_ADV} )?(?:asking you|going|about|planning|ready|here|trying) to|(?:we|you|i) must{_ADV}|"
    rf"i (?:would be|should be|am|will be) (?:very |so |really |much |most )?(?:grateful|glad|happy|"
    rf"thankful|obliged)(?: if you(?: could|"
    rf" would| can)?| to)?|(?:can|could|will|would) (?:you|u|ya){_ADV}(?: be able to|"
    rf" be (?:so )?kind (?:enough )?(?:as )?to| to)?|"
    rf"(?:would|do) you mind|mind|(?:would it be|would it be a problem)(?: ok| okay| alright|"
    rf" possible)? (?:for you )?to|(?:i (?:was|am) (?:wondering|hoping|wanting to ask)|i wonder|i hope|i hoped|"
    rf"wondering|any chance|is there any chance|do you think)(?: that| if| whether)? (?:you|u) (?:could|can|would|"
    rf"might){_ADV}|"
    rf"are you able to|might you|help me(?: to)?|help us(?: to)?|it (?:would|will) be (?:\S+ )?{_LIKED}"
    rf"(?: if (?:you|we)(?: could| would| can)?)?(?: to)?|it would help(?: me| us| a lot)? if you(?: could| would)?|"
    rf"if you (?:could|would|can)|if (?:i may(?: ask)?|possible|you (?:do not mind|have (?:time|"
    rf"a (?:minute|moment|second|sec))|"
    rf"please|like|are ready|get a chance)|(?:that|it) is (?:ok|okay|possible|alright|fine|not (?:too much|"
    rf"a (?:problem|bother)).{{0,20}}?)(?: with you| for you| by you)?)(?= ,)|"
    rf"when(?:ever)? you (?:can|have time|get (?:a|the) chance|have a (?:moment|minute|second|sec)|are ready|"
    rf"get (?:round|around) to it)(?= ,| please)|(?:we|i|you) (?:will|shall|can)(?: now| just| also| then| first)?|"
    rf"(?:can|could|may|might|shall)(?: not)? there (?:please |also |perhaps |maybe )*be(?= (?:an?|another|one|"
    rf"some|two|"
    rf"three|more) )|"
    rf"(?:make sure|see to it|ensure)(?: that)?(?= (?:#?\d|task|story|epic))|do the needful(?: and| to| by|,)?|"
    rf"i hereby|hereby|proceed to|get ready to|i now|we now|you may|you should|"
    rf"for me|as soon as you can|right away|"
    rf"immediately|asap|at once|straight away|this time|today|for now|this one time|"
    rf"(?:the|my|our) plan is to|(?:what|all) (?:i|we){_ADV} (?:want|need|ask)(?: you)?(?: from you|"
    rf" of you)? is(?: for you)? to|"
    rf"next up|(?:i )?(?:want|like|need|have) to|(?:i|we) (?:want|need|would like)(?= (?:create|add|start|finish|close|"
    rf"rename|assign|defer|see|know)\b)|i was wondering)(?: [,:\-])? )"
)
# Behind these a question stands.
_TELL_ME = re.compile(
    r"(?:(?:please|kindly) )?(?:(?:tell|remind|show|let|inform|explain to)(?: me| us)?(?: know| again)?|do you know|"
    r"any (?:idea|clue)|i (?:would (?:like|love)|want|need) to (?:know|see|hear)|i (?:wonder|am wondering|"
    r"was wondering|"
    r"am curious|need to know)|curious|wondering|you know|can you say|have you any idea|do you (?:happen to know|"
    r"have any idea)|"
    r"can anyone tell me|find out|check|just checking|i (?:forgot|forget|do not (?:remember|know|recall)))(?: [,:\-])? "
    r"(?=(?:what|how|where|which|who|when|why|whether|if)\b)"
)
_BY_US = re.compile(
    r"(?:(?:can|could|may|might|shall) (?:we|i)|how about(?: we| you| if you| if we| i)?|what do you say we|"
    r"(?:is there (?:a|any) way|is it (?:ok|okay|alright|possible)) (?:for (?:you|us|me) )?to|"
    r"why do not (?:we|you|i)(?! use| go| choose| pick| adopt| have))"
    r"(?: (?:please|just|also|maybe|now|then|go ahead and|perhaps))* "
)
# What is put like this is done, but for what destroys.
_HEDGED = re.compile(
    rf"(?:maybe|perhaps|possibly|probably|potentially|it might be (?:good|best|time|wise|nice) to|"
    rf"(?:i|we|you|someone|somebody|one of us|the team){_ADV} (?:might|may|could|should|had better|had best|ought to|"
    rf"need to|needs to|has to)"
    rf"(?: want to| as well| need to| probably| really| maybe| also| now| just| then| start to)*|"
    rf"(?:i|we){_ADV} (?:managed|wanted|needed|had|meant|hoped|intended){_FOR} to|(?:i would )?say|"
    rf"i (?:think|guess|suggest|propose|recommend|vote|reckon|figure|"
    rf"believe|feel|say)(?: that)?(?: (?:we|i|you|it)(?: should|"
    rf" could| will| might| can)?)?|(?:i|we) (?:was|were|am|are|have been) (?:thinking|wondering|hoping)(?: that| if|"
    rf" whether|"
    rf" maybe| perhaps)* (?:we|you|i) (?:could|should|can|might|would|will)(?: maybe| perhaps)?|"
    rf"(?:the|my|our|your|another|one)(?: \S+){{0,2}} (?:thing|step|plan|idea|request|wish|job|move|point|"
    rf"order of business|"
    rf"suggestion|proposal)(?: (?:i|we) (?:have|want|need))?(?: (?:to|we) do)?(?: now| today| then| next|"
    rf" here)? (?:is|would be)"
    rf"(?: for you)?(?: to| that (?:you|we))|(?:what|all) (?:i|we){_ADV} (?:want|need|would like|am asking(?: for)?|"
    rf"propose|"
    rf"suggest)(?: now| here| next| you)? is(?: to| that (?:you|we))?|"
    rf"it (?:would make|makes)(?: more)? sense to|better|it is best to|(?:i|we) would(?: rather| sooner)?|"
    rf"(?:there is a|there is) need to|it is (?:necessary|important) to)(?: ,)? "
)
_TAIL = re.compile(
    r"(?: ,| -| \.| !)? (?:please|kindly|thanks(?: a lot| so much| in advance| a bunch| a million| again| mate|"
    r" man| buddy)?|thank you(?: so much| very much| in advance| kindly)?|thx|cheers|"
    r"much appreciated|many thanks|would you(?: please| mind)?|will you(?: please)?|could you(?: please)?|"
    r"can you(?: please)?|if you (?:can|could|would|please|do not mind|have time|like|will|get a chance|wish|want)|"
    r"if (?:that|it) is (?:ok|okay|fine|all right|alright|possible|not too much (?:trouble|work)|"
    r"not a problem)(?: with you| for you| by you)?|if (?:possible|that is (?:ok|okay|possible|fine|alright)|"
    r"it is (?:ok|possible))|"
    r"when you (?:can|have time|get a chance|have a (?:moment|minute|sec|second)|get the chance|are ready|"
    r"get to it|get around to it)|ok|okay|alright|right|got it|for me please|real quick|lol|haha|buddy|mate|"
    r"(?<=,) (?:man|folks|team|everyone|guys|dear|friend|friends|boss|all|there|yeah|yes|will ya|eh|huh)|you know|"
    r"i guess|"
    r"i think|i suppose|i would say|i believe|i reckon|"
    r"if (?:i|we|you|nobody|no one|everyone|everybody|all|that|it|there is nothing|"
    r"there are no objections)(?: (?:may|might|can|could|"
    r"would|please|so|all|do not|does not|is|are|not|be|at all|really|you|me|us|everyone))*(?: (?:objects?|minds?|"
    r"agrees?|"
    r"wish(?:es)?|prefers?|works?|suits?|helps?|makes? sense|permits?|allows?|allowed|ask|say so|kind|willing|able|"
    r"in the mood|"
    r"have the time|around|inclined|against it|disagrees?|may|can|could))(?: (?:for|with|by|to) (?:you|me|us|"
    r"everyone))?|"
    r"woo+ ?hoo+|yay+|yippee|hoo?ray|phew|omg|(?<=,) (?:so )?there we (?:are|go)|"
    r"as discussed|as agreed|as you know|by the way|btw|and thanks|as soon as you can|whenever you (?:can|have time|"
    r"like)|"
    r"at your convenience|no rush|no hurry|no worries|that would be (?:\S+ )?(?:great|nice|lovely|awesome|perfect|"
    r"helpful|"
    r"appreciated)|you are (?:the best|a star|awesome)|if you get a (?:moment|minute|sec|second))$"
)
_END_MARKS = re.compile(r"(?: [.!,;:\-|•()=])+$")
_TIMES = re.compile(
    r"(?: ,)?(?<! from)(?<! since)(?<! of)(?: (?:now|right now|right away|straight away|immediately|at once|for me|"
    r"for us|asap|today|then|too|"
    r"as well|already|again|instead|"
    r"this (?:morning|afternoon|evening|week)|tonight|just now|actually|after all|finally|at last|also|quickly|"
    r"yesterday|from now on|officially|ourselves|myself|yourself|"
    r"somewhere|somehow|directly|once more|a bit|a little|though|anyway|in the end|so far|please|ok)|"
    r"(?<! the)(?<! our)(?<! my)(?<! a) (?:next|first))$"
)


@dataclass(frozen=True, slots=True)
class Stripped:
    """A clause without its courtesies, and how it was put.

    `asks` is "tell me …", `asked` "could you …", `by_us` "can we …", `hedged` "maybe …", `question` that it ends with
    a question mark.
    """

    clause: Clause
    question: bool = False
    asked: bool = False
    by_us: bool = False
    hedged: bool = False
    asks: bool = False


@lru_cache(maxsize=64)
def strip(clause: Clause) -> Stripped:
    """Take greetings, courtesies and thanks off both ends."""
    result = strip_ends(clause)
    for _ in range(12):
        text = f"{result.clause.text} "
        if match := _FILLERS.match(text) or _NAMED_GREETING.match(text):
            pass
        elif (match := _TELL_ME.match(text)) or (match := _CLEAR.match(text)):
            result = replace(result, asked=True)
        elif match := _BY_US.match(text):
            result = replace(result, by_us=True)
        elif match := _HEDGED.match(text):
            result = replace(result, hedged=True)
        else:
            break
        result = replace(result, clause=result.clause.part(match.end()))
        if match.re is _TELL_ME:
            return replace(result, clause=_whether(result.clause), asks=True)
        if match.re is not _FILLERS:
            result = replace(result, clause=with_base_verb(result.clause))
    return result


def _whether(clause: Clause) -> Clause:
    """Make sure that "(tell me) if 12 is done" is not taken for a condition."""
    first, *rest = clause.words
    return Clause(clause.line, (Word("whether", first.start, first.end), *rest)) if first.text == "if" else clause


@lru_cache(maxsize=64)
def strip_tail(clause: Clause) -> tuple[bool, Clause]:
    """Take thanks and marks off the end; tells whether there was a question mark."""
    question = False
    for _ in range(8):
        text = f" {clause.text}"
        if text.endswith(" ?"):
            question, clause = True, clause.between(0, -1)
        elif match := _END_MARKS.search(text) or _TAIL.search(text):
            clause = clause.part(0, max(0, match.start() - 1)) if match.start() else clause.between(0, 0)
        else:
            break
    return question, clause


@lru_cache(maxsize=64)
def strip_ends(clause: Clause) -> Stripped:
    """Take thanks and marks off the end, and fillers and marks off the beginning."""
    question, clause = strip_tail(clause)
    if match := _COLON.match(clause.text):  # "assign: 641 to Hana"
        colon = len(match[0].split()) - 1
        clause = Clause(clause.line, (*clause.words[:colon], *clause.words[colon + 1 :]))
    if match := _FILLERS.match(f"{clause.text} "):
        rest = clause.part(match.end())
        if rest.words:
            clause = rest
    return Stripped(clause, question)


def with_base_verb(clause: Clause, *, ends: tuple[str, ...] = ("ing", "ed")) -> Clause:
    """Put the verb at the beginning into its base form: "(would you mind) starting 12"."""
    first = clause.words[0] if clause.words else None
    base = base_of(first.text, ends=ends) if first and not is_verb(first.text) else ""
    return Clause(clause.line, (Word(base, first.start, first.end), *clause.words[1:])) if first and base else clause


def without_time(clause: Clause) -> Clause:
    """Take "now", "right away", "as well" off the end; the clause itself where there is none of these."""
    for _ in range(3):
        match = _TIMES.search(clause.text)
        if match is None:
            break
        clause = clause.part(0, match.start())
    return clause
