"""Who is who: sentences that say which part a person plays. Names need capitals, so the text comes in its own case."""

from __future__ import annotations

import re
from collections import defaultdict

from orchestra_mem.core.cues.cue import LazyPattern
from orchestra_mem.core.text import STOP_WORDS

_TITLE = (
    r"(?:Dr|Mr|Mrs|Ms|Prof|Professor|Frau|Herr|Father|Sister|Brother|Chef|Captain|Coach|Judge|Officer|Nurse|Uncle|"
    r"Aunt|Auntie|Sir|Madame|Señora?)\.? "
)
_KIN = (
    r"(?:sister|brother|mother|father|mom|mum|dad|wife|husband|partner|boss|manager|son|daughter|cousin|aunt|uncle|"
    r"colleague|assistant|boyfriend|girlfriend|flatmate|roommate|neighbou?r|landlord|landlady|supervisor|advisor|"
    r"adviser|mentor|teacher|doctor|dentist|friend|accountant|lawyer|grandmother|grandfather|grandma|grandpa|niece|"
    r"nephew|deputy|co-founder|cofounder|teammate|fianc[ée]e?|in-law|predecessor|successor|counterpart|contact|intern|"
    r"apprentice)"
)
_NAME = rf"(?:{_TITLE})?[A-ZÀ-ÖØ-Þ][\w'’-]*\w(?: (?:de |van |von |al-|bin |da |di |del )?[A-ZÀ-ÖØ-Þ][\w'’-]*)?"
_KIN_NAME = rf"(?:[Mm]y|[Oo]ur|[Hh]er|[Hh]is|[Yy]our|[Tt]heir|{_NAME}'s) (?:\w+ )?{_KIN}(?:,? {_NAME},?)?"
_WHO = rf"(?P<who>{_KIN_NAME}|{_NAME}(?: and {_NAME})?)(?: (?:from|in|at) (?:the )?\w+)?"
_ADVERB = (
    r"(?:(?:also|now|still|currently|usually|mostly|always|both|will|is now|just|officially|temporarily|already|who|"
    r"then|generally|normally|personally|,)\s?)*"
)
_DUTY = (
    r"(?:owns?|runs?|leads?|manages?|heads?(?: up)?|oversees?|coordinates?|looks? after|takes? care of|supervises?|"
    r"chairs?|maintains?|(?:is|are|am|'s|'m|was made|remains?|will be) (?:now |still |also |the one |solely |jointly "
    r")*(?:responsible for|in charge of|accountable for|assigned to|the one (?:who|to)|taking over|running|leading|"
    r"handling|doing|owning|covering|heading|managing|organising|organizing|coordinating|overseeing|looking after|on "
    r"call|on duty|on (?:\w+ )?(?:duty|call|shift|watch)|on (?:support|dishes|grill|bar|sound|lights|pager|night shift|"
    r"reception)|standing in|filling in|stepping in|acting \w+|replacing|officiating|supervising|chairing|teaching|"
    r"stepping down|leaving the|moving to (?:the )?\w+ team)|takes? over|took over|has taken over|will take over|"
    r"covers? for|stands? in for|fills? in (?:for|as)|steps? in (?:for|as)|stepped in|reports? to|answers? to|works? "
    r"(?:under|for)|signs? off|approves|has the final (?:say|word)|has final say|decides|has the keys?|holds? the "
    r"keys?|keeps? the (?:books|minutes|keys|accounts|records)|replaces|replaced|succeeds|officiates?|moderates|"
    r"presides|referees|mentors|represents|teaches|coaches|supplies|audits|is (?:the|our|my|your|their|her|his)(?: "
    r"\w+){0,3}? (?:contact|boss|point of contact|go-to|point person|liaison)|deals? with|is the (?:only )?(?:person|"
    r"one|man|woman|guy|lady)|are the people|do the|shares? (?:the|a)|does (?!(?:not|n't|it|this|that|so|well|look|"
    r"seem|have|need|want|like|feel|make|take|know|get|go|a|sound like|anyone|anybody|everything)\b)[\w-]+(?=[.,;!]|$| "
    r"(?:and|on|in|for|at|while|with|every|today|tonight|this)\b)|does (?:the|all|our|most|their|my)|is (?:the |our "
    r")?(?:backup|cover|deputy|lead|stand-in|host|chair|captain|second|secretary|treasurer|contact|liaison|understudy|"
    r"support|goalkeeper|editor|point|head|president|director|manager|leader|coach|principal|chief|owner) (?:for|of|on|"
    r"in|at)|handles?|(?:reviews|orders|buys|cooks|writes|translates|edits|plans|prepares|books|tracks|trains|tests|"
    r"checks|hosts|drives|cleans|collects|delivers|designs|prints|pays|mows|feeds|cuts|tunes|keeps|brings|sets up|"
    r"opens|locks|signs|inspects|repairs|stocks|bakes) (?:the|all|our|every|most)|will (?:be )?(?:leading|lead|run|"
    r"running|handle|handling|chair|manage|officiate|teach|coach|own|host|moderate|drive|take over|take the lead|look "
    r"after|oversee|coordinate|supervise|be in charge|be responsible|be our|be the|act as|serve as|stand in|fill in|"
    r"cover)|acts? as|serves? as|plays? the|works? as|drives the|minds the|tends? (?:the )?bar|brings the)"
)
# What a person does who has that part, where the words alone say less: the verb comes with all of something.
_DEED = (
    r"(?:(?:holds|carries|curates|makes|picks|reads|gives|grants|issues|counts|assigns|draws|sends|files|sorts|posts|"
    r"records|logs|hands out|covers|watches|guards|minds|walks|waters|updates|edits|runs|logs|grades|marks|pours|loads|"
    r"drafts) (?:out )?(?:the|all|our|every|most|any)(?! (?:best|most|difference|time|way|world|right))|has (?:the|all "
    r"the|our) (?!best|same|right|most|feeling|ability|potential|power|chance|time|day|whole|cutest|sweetest|biggest|"
    r"greatest|following|option|advantage|energy|kids|strength)[\w-]+(?: \w+)?(?=[,.;]|$| and| until| till)|(?:gets|"
    r"has) the (?:last|final|casting) (?:word|say|vote)|decides on|(?:checks?|looks at|reads|signs) (?:every|each)|"
    r"(?:'s|has) got (?:the|all the) (?!best|same|right)[\w-]+|writes? (?:this|that) one|(?:is|'s) (?:in (?:goal|"
    r"defence|defense|the chair|nets?|the kitchen)|on [\w -]{3,25}? (?:until|till|this|today|tonight|tomorrow|from))|"
    r"(?:is|'s) (?:also |now )?(?:[\w-]+ )?(?:owner|lead|keeper|chair|captain|coordinator|treasurer|secretary|contact|"
    r"reviewer|editor|steward|buyer|marshal|scorer) (?:for|of)|answers (?:on|for|the)|does (?!not\b)[\w-]+ (?:tomorrow|"
    r"until|till|from|this)|(?:is|'s) under (?=[A-Z])|signs (?:his|her|their|your|for)|takes (?:the|all) (?:\w+ "
    r")?(?:shift|photos|money|tickets|minutes|notes|calls|orders|bookings|register|roll)|does (?:(?!not\b)[\w-]+ "
    r")?(?:and|&) [\w-]+(?=[.,;]|$))"
)
_PART = (
    r"(?:\w*(?:er|or|ist|ian|eer|man|woman|person|lead|head|chief|ant|smith|keeper|wright)s?|owner|DBA|CTO|CEO|CFO|COO|"
    r"PM|PO|SRE|TA|PI|VP|chef|cook|sous[- ]chef|boss|nurse|coach|chair|captain|liaison|deputy|intern|sponsor|host|"
    r"hostess|judge|clerk|treasurer|secretary|president|principal|headteacher|dean|mayor|postdoc|student|apprentice|"
    r"contact|contact person|go-to|witness|bride|groom|best man|maid of honou?r|stylist|DJ|MC|emcee|medic|referee|"
    r"pilot|guide|admin|architect|analyst|paramedic|foreman|concierge|on-call|backup|bass|tenor|alto|soprano|drummer|"
    r"client|delegate|representative|rep|expert|nanny|godmother|godfather|midwife|bridesmaid|au pair|cover|stand-in|"
    r"understudy|second|agent|trustee|mentor|tutor|sister|brother|wife|husband|cousin|daughter|son|mother|father|aunt|"
    r"uncle|niece|nephew|mom|mum|dad|partner|fianc[ée]e?|neighbou?r|lawyer|steward|scribe|bartender|barista|"
    r"superintendent|surveyor)"
)
_NOT_PART = (
    r"(?:winner|answer|number|order|matter|other|another|reminder|member|center|color|paper|water|letter|summer|winter|"
    r"dinner|weather|offer|power|factor|error|server|browser|layer|parser|user|folder|header|parameter|container|"
    r"filter|wrapper|handler|controller|constructor|iterator|helper|router|driver|adapter|decorator|generator|operator|"
    r"descriptor|editor|compiler|linter|formatter|monster|treasure|master|blocker|reader|writer|loader|logger|pointer|"
    r"buffer|identifier|killer|disaster|corner|river|door|floor|mirror|indicator|important|restaurant|elephant|giant|"
    r"plant|significant|relevant|constant|variant|tenant|redundant|instant|ever|over|under|better|later|never|rather|"
    r"earlier|either|sweater|checker|marker|tracker|counter|integer|character|register|newsletter|poster|banner|"
    r"trigger|worker|docker|cluster|bread|ahead|instead|read|dead|thread|spread|overhead|for|or|nor|per|after|together|"
    r"however|list|exist|gist|pleasure|teaser|dessert|brother-like|cover|starter|provider|manager class|scanner|"
    r"resolver|scheduler class|mayor of my heart)"
)

_PATTERNS: tuple[tuple[frozenset[str], LazyPattern, bool], ...] = tuple(
    (frozenset(triggers.split()), LazyPattern(pattern, tuple(needs)), "(?P<who>" in pattern)
    for triggers, pattern, *needs in (
        (
            "reviews orders buys cooks writes translates edits plans prepares books tracks trains tests checks "
            "hosts drives cleans collects delivers designs prints pays mows feeds cuts tunes opens locks inspects "
            "repairs stocks bakes watch doing only own owns run runs lead leads manage manages head heads oversee "
            "oversees coordinate coordinates look looks take takes took taken supervise supervises chair chairs "
            "maintain maintains responsible charge accountable assigned one taking running leading handling owning "
            "covering heading managing organising organizing coordinating overseeing looking call duty support "
            "dishes grill bar sound lights pager shift reception standing filling stepping acting replacing "
            "officiating supervising chairing teaching leaving moving cover covers stand stands fill fills step "
            "steps stepped report reports answer answers work works sign signs approves final decides keys key sets "
            "president director manager leader coach principal chief owner keep keeps holds replaces replaced "
            "succeeds officiate officiates moderates presides referees mentors represents teaches coaches supplies "
            "audits contact boss go-to liaison deal deals person people does do handle handles lead handle teach "
            "coach own host moderate drive act acts serve serves play plays drives minds tend tends brings point "
            "will be man woman guy lady share shares backup deputy lead stand-in host captain second secretary "
            "treasurer understudy goalkeeper editor",
            rf"(?:^|[,;:.—–(] ?|\b(?:and|but|so|that|since|because|now|from now on|then|hence|while|when|tomorrow|"
            rf"today|week|\w+day|[Oo]n \w+)[,]? ){_WHO}(?:, [^,]{{3,40}},)?(?: |(?='s )){_ADVERB}{_DUTY}\b",
        ),
        (
            "takes covers watches guards looks got holds carries curates makes picks reads gives grants issues counts "
            "assigns draws sends files sorts "
            "posts records "
            "logs hands walks waters updates grades marks pours loads drafts has gets decides check checks writes "
            "goal defence defense net nets kitchen until till today tonight tomorrow this from "
            "owner lead keeper chair captain coordinator treasurer secretary contact reviewer editor steward buyer "
            "marshal "
            "scorer answers does under signs takes minds edits runs",
            rf"(?:^|[,;:.—–(] ?|\b(?:and|but|so|that|because|now|then|while|when) ){_WHO}(?:, [^,]{{3,40}},)?(?: |"
            rf"(?='s )){_ADVERB}{_DEED}\b",
        ),
        (
            "is was are 's be am as isn't becomes became remains",
            rf"(?:^|[,;:.—–(] ?|\b(?:and|but|so|that|since|because|now|then|is) ){_WHO}(?:'s| is| was| are| becomes|"
            rf" became| remains| will be)(?: now| still| also| currently| actually| only)* (?:the|our|my|your|a|an|"
            rf"their|his|her)(?: new| acting| interim| current)? (?:[\w-]+ "
            rf"){{0,2}}?(?!{_NOT_PART}\b)(?-i:{_PART})\b(?!-)",
        ),
        ("dba cto ceo cfo pm sre pi", rf"{_WHO} is (?:the |our )?(?:DBA|CTO|CEO|CFO|COO|PM|SRE|PI|VP)\b"),
        (
            "i'm am",
            rf"\b(?:I'm|I am|i'm)(?: now| still| also| currently| actually)* (?:the|your|their|our|a|an)(?: new| "
            rf"acting| interim| only)? (?:[\w-]+ ){{0,2}}?(?!{_NOT_PART}\b){_PART}\b(?! (?:of (?:that|this|it|"
            rf"yours)|person|fan|believer|lover))",
        ),
        (
            "own run lead manage head oversee coordinate look supervise chair maintain responsible charge call "
            "handle report take cover duty sign approve keep teach coach do deal",
            r"(?:^|[,;:.] ?|\band |\bwhile |\bnow |\bhere )(?:[Ii] (?:also |now |still |usually |will |mostly "
            r")*(?:own|run|lead|manage|head|oversee|coordinate|look after|supervise|chair|maintain|handle|report to|"
            r"answer to|take care of|cover|sign off|approve|keep the (?:books|minutes|keys)|teach|coach|deal with|"
            r"do (?:the|all the|our))|[Ii](?:'m| am) (?:now |also |still |the one )*(?:responsible for|in charge of|"
            r"on call|on duty|running the|leading the|taking over|covering for|the one who|standing in)) (?!you|"
            r"me\b|away|out|into|this race|a (?:race|marathon)|my best|some|it\b|things|with the idea|hikes|dance|"
            r"yoga\b.*fun)\w+",
        ),
        (
            "ask talk speak contact call ping email reach go tell see write turn",
            rf"(?:^|[,;:.—–] ?|\b(?:please|and|so|just|then|always|but|should|must|can|to) )(?:[Aa]sk|[Tt]alk to|"
            rf"[Ss]peak (?:to|with)|[Cc]ontact|[Cc]all|[Pp]ing|[Ee]mail|[Rr]each out to|[Gg]o to|[Ss]ee|[Ww]rite to|"
            rf"[Tt]urn to) (?P<who>{_NAME}|{_KIN_NAME}) (?:about|for|if (?:anything|something|you|there|the|it)|"
            rf"when|with|regarding|whenever|first)\b",
        ),
        (
            "questions anything issues problems matters concerns for contact bookings",
            rf"(?:^|[,;:.—–] ?)(?:[Ff]or|[Aa]ll|[Aa]ny|[Aa]nything|[Qq]uestions|[Ii]ssues) [\w' -]{{2,40}}?,? "
            rf"(?:talk to|ask|contact|call|see|email|go to|(?:go|goes) (?:to|through|via)|speak to|ping|write to|"
            rf"reach) (?P<who>{_NAME}|{_KIN_NAME})\b",
            *("talk to ", "ask ", "contact ", "call ", "see ", "email ", "go to ", "goes ", "go through ", "go via "),
            *("speak to ", "ping ", "write to ", "reach "),
        ),
        (
            "is was be becomes remains called named contact contacts person lead owner manager reviewer deputy "
            "backup boss foreman name chair host captain supervisor head chief coordinator",
            rf"(?:[Tt]he |[Oo]ur |[Mm]y |[Yy]our |[Tt]heir |\w+s' |\w+'s |^|[,;:] ?)(?:[\w-]+ "
            rf"){{0,2}}?(?!{_NOT_PART}\b){_PART}(?: (?:for|of|at|in|on) (?:the |our |this )?[\w' -]{{2,30}}?)?(?: "
            rf"(?:we|you|they) [a-z]+)?(?: (?:is|was|remains|will be|becomes)(?: now| still| called| named)?|'s "
            rf"now|'s| "
            rf"?[:–—]|'s name is|,? called|,? named) (?P<who>{_NAME})\b",
        ),
        (
            "responsible charge ask call",
            rf"\b(?:person|people|one|contact|colleague|man|woman) (?:who is |that is )?(?:responsible|in charge|to "
            rf"(?:ask|call|talk to|see))\b[\w ]{{0,30}} (?:is|are) (?P<who>{_NAME})\b",
        ),
        (
            "hired appointed named made elected promoted assigned put nominated introduced meet met welcome joins "
            "joined joining",
            rf"\b(?:hired|appointed|named|made|elected|promoted|assigned|nominated|put|[Mm]eet|[Ww]elcome) "
            rf"(?P<who>{_NAME})(?:,| as| to| in charge| our| the| for|)\s?(?:as|to|our|the|for|a|in charge|new|who|"
            rf"interim|acting|head|chair)\b",
        ),
        (
            "asked want wants told ask asking needs got",
            rf"\b(?:asked|[Ww]ants?|told|[Aa]sk|asking|got) (?P<who>{_NAME}) to (?:chair|run|handle|lead|do the|"
            rf"take (?:over|care|the)|organi[sz]e|manage|own|look after|coordinate|cover|host|moderate|supervise|be "
            rf"(?:the|our|my)|stand in|fill in|represent|teach|review|do|make|keep|write|bring|check|prepare|sort|"
            rf"draw|collect|watch|mind|buy|book|order|drive|cook|act)\b",
        ),
        (
            "the our my your their",
            rf"\b(?:[Tt]he|[Oo]ur|[Mm]y|[Yy]our|[Tt]heir|\w+'s) (?:[\w-]+ ){{0,2}}?(?!{_NOT_PART}\b){_PART}, "
            rf"(?P<who>{_NAME})(?=[,.;]|$| (?:is|will|has|can|on))",
            ", ",
        ),
        ("meet", rf"(?:^|[.,!] )[Mm]eet (?P<who>{_NAME}), (?:he|she|they|who|our|the|your)\b"),
        (
            "joins joined joining starts started left leaves leaving quit retired resigned stepped",
            rf"{_WHO} (?:has |have |is )?(?:just |now |also )?(?:joins|joined|joining|left|leaves|leaving|quit|"
            rf"retired|resigned|stepped down|moved) (?:as|us as|the (?:\w+ )?(?:team|crew|staff|company|board|"
            rf"project|committee|group|kitchen|lab)|from|for the|to (?:the )?\w+ team|last|yesterday|in \w+|on "
            rf"\w+)\b",
        ),
        (
            "our the my your new with",
            rf"(?:^|[,;:.—–(] ?|\b(?:and|but|with|to|from|by|is|for) )(?P<who>{_NAME}), (?:who (?:is|runs|leads|"
            rf"owns|handles|manages)|(?:our|the|my|your|their)(?: new| acting)? (?:[\w-]+ "
            rf"){{0,2}}?(?!{_NOT_PART}\b){_PART})\b(?=,|\.|!|;|$| )",
            *(", who ", ", our ", ", the ", ", my ", ", your ", ", their "),
        ),
        (
            "with to by through via",
            rf"(?=['isalrgfhp])(?<!\b[Ii] )(?<!\b[Ww]e )(?<!\b[Yy]ou )(?<!\b[Hh]e )(?<!\b[Ss]he )(?<!\b[Tt]hey "
            rf")(?:\b(?:is|are|"
            rf"stays?|lies?|"
            rf"rests?|remains?) (?:now |still |all |entirely )?(?:with|up to|down to)|'s (?:now |still )?with|"
            rf"\b(?:goes?|falls?) "
            rf"(?:straight |first |only |back )?(?:to|through|via|by)|\b(?:given|gave|handed|passed)(?: over)? to) "
            rf"(?P<who>{_NAME}|{_KIN_NAME})(?=[,.;:]|$| (?:and|from|until|till|in|at|now|this|for|first|only|"
            rf"tonight|today|"
            rf"tomorrow|he|she|who|not|as|because|since|while)\b)",
            *(" with ", "up to ", "down to ", "goes ", "go ", "fall", "given ", "gave ", "handed ", "passed "),
        ),
        (
            "'s",
            rf"\b(?:is|are|'s) (?:all |now |still |also )?(?P<who>{_NAME})'s(?=[,.;]|$| (?:job|department|desk|"
            rf"call|decision|"
            rf"task|duty|area|patch|turf|territory|baby|business|responsibility|work|domain|part|role|thing|to|at|"
            rf"until|"
            rf"now|from|for|this)\b)",
        ),
        (
            "is are 's",
            rf"(?=[ '])(?<!\b[Ii]t)(?<!\b[Tt]hat)(?<!\b[Tt]his)(?<!\b[Hh]e)(?<!\b[Ss]he)(?<!\b[Tt]here)"
            rf"(?<!name)(?<!\b[Hh]ere)(?<!\b[Ww]ho)"
            rf"(?<!\b[Ww]hat)(?<!\b[Ww]here)(?<!called)(?<!character)(?<!favourite)(?<!favorite)(?: is| are|'s)(?: "
            rf"now| still| always|) "
            rf"(?P<who>{_NAME})"
            rf"(?=,? (?:and |not |he |she |they |he's |she's |who |until |till |this |for |from )|[.;]? (?:He|She|"
            rf"They)\b)",
        ),
        (
            "ask call see try ring ping",
            rf"^(?:[Jj]ust |[Pp]lease |[Tt]hen )?(?:[Aa]sk|[Cc]all|[Ss]ee|[Tt]ry|[Rr]ing|[Pp]ing) "
            rf"(?P<who>{_NAME})[.!]*$",
        ),
        (
            "by",
            rf"\b(?:is|are) (?:\w+ed|taken|done|kept|made|held|led|given|written|drawn|cut|built|fed|driven) by "
            rf"(?P<who>{_NAME}|{_KIN_NAME})(?=[,.;]|$| and\b)",
        ),
        (
            "who that",
            rf"\b(?:[Ii]t's|[Ii]t is|[Tt]hat's) (?P<who>{_NAME}) (?:who|that) \w+s\b",
        ),
        (
            "is",
            rf"\b[Tt]he (?:one|person|man|woman) (?:who|that|to|for) [\w ]{{2,40}} is (?P<who>{_NAME})\b",
        ),
        (
            "for want need",
            rf"(?:^|[,;:] ?)[Ff]or [\w' -]{{2,40}}?,? (?:you want|you need|you'd want|it's|that's) "
            rf"(?P<who>{_NAME})(?=[,.;]|$)",
        ),
        (
            "that's it's ask",
            rf"^[A-Za-z][\w'&-]*(?: [\w'&-]+){{0,4}}: (?:that's|it's|ask) (?P<who>{_NAME})(?=[,.;]|$)",
        ),
        (
            "as",
            rf"(?:^|[,;:.] ?|\b(?:and|with|put|take|use|have|got|makes?) )(?P<who>{_NAME}) as (?:the|our|my|a|an|"
            rf"first|second|third|lead|head|deputy|acting) "
            rf"(?:[\w-]+ ){{0,2}}?(?!{_NOT_PART}\b){_PART}\b",
        ),
        (
            "he she",
            rf"(?P<who>{_NAME})[;,] (?:he|she)(?:'s| is)(?: now| also)? (?:our|the|in charge|responsible|under)"
            r"\b",
        ),
        (
            "she he they not until till from for this",
            rf"^(?:\w+[,.] )?(?!(?:[Ss]peaker|[Nn]ote|[Pp]s|[Ss]ee|[Tt]ype|[Ff]ix|[Cc]lose)\b)[A-Za-z][\w'&-]*(?: "
            rf"[\w'&-]+){{0,4}}: "
            rf"(?P<who>{_NAME}(?: and {_NAME})?)(?=,? (?:(?:and )?(?:he|she|they|he's|she's|not|until|till|"
            rf"from)\b)|[.]?$)",
        ),
        (
            "call ask ping text phone page ring tell write message",
            r"(?:^|[,;:.—–] ?|\b(?:please|and|so|just|then|always|but|you|must|can|to) )(?:[Cc]all|[Aa]sk|[Pp]ing|"
            r"[Tt]ext|"
            rf"[Pp]hone|[Pp]age|[Rr]ing|[Tt]ell|[Ww]rite|[Mm]essage) (?P<who>{_NAME}|{_KIN_NAME})(?:,? not \w+|,? "
            rf"(?:he|she) "
            rf"(?:knows|decides|has|keeps|holds)|,? (?:nobody|no one) else)\b",
        ),
        (
            "owner owners lead reviewer assignee assigned responsible driver",
            rf"\b(?:[Oo]wners?|[Ll]ead|[Rr]eviewers?|[Aa]ssignee|[Rr]esponsible|[Dd]river|[Cc]ontact|[Cc]hair|"
            rf"[Hh]ost|[Cc]oordinator) ?[:=–—] ?(?P<who>{_NAME})",
        ),
        (
            "covered handled run led owned managed taught overseen chaired replaced assigned supervised maintained "
            "coached organised organized hosted conducted directed looked played driven",
            rf"\b(?:is|are|be|being|was|were|gets?) (?:now |still |all )*(?:covered|handled|run|led|owned|managed|"
            rf"taught|overseen|chaired|replaced|assigned|supervised|maintained|coached|organi[sz]ed|hosted|"
            rf"conducted|directed|looked after|driven) (?:by|to) (?P<who>{_NAME}|{_KIN_NAME})\b",
        ),
    )
)
_BY_TRIGGER: dict[str, list[int]] = defaultdict(list)
for _number, _row in enumerate(_PATTERNS):
    for _trigger in _row[0]:
        _BY_TRIGGER[_trigger].append(_number)
_CAPITAL = re.compile(r"\b[A-ZÀ-ÖØ-Þ][\w'’-]*\w")
_KIN_WORDS = frozenset(re.findall(r"[a-z-]{3,}", _KIN))
# Capitalised at the start of a sentence, but nobody's name.
_NO_NAMES = STOP_WORDS | frozenset(
    "everyone everybody nobody someone somebody anyone anybody everything nothing something anything people guests "
    "kids children students pupils parents staff users customers tests test code it's that's there's here's what's "
    "let's yes no ok okay please thanks today tomorrow yesterday monday tuesday wednesday thursday friday saturday "
    "sunday january february march april may june july august september october november december one two three "
    "also still maybe perhaps then now well oh hey hi hello wow great good nice sure right and but or so if when "
    "because although though while since after before once as in on at for from with without by to of neither "
    "either another each every all some most many several few both life love music art nature work school home time "
    "things family friends friend team god christmas easter english german french spanish python java javascript "
    "typescript rust go golang ruby docker git github gitlab linux windows macos mac android ios google amazon aws "
    "azure redis postgres postgresql mysql sqlite kafka nginx kubernetes django flask react vue angular node npm "
    "pip pytest mypy ruff json yaml xml html css sql http https api cli gpt claude llm ai ci readme error errors "
    "function class method module file files server client version support summary result results note notes next "
    "first second third finally currently however additionally instead overall step phase option part section "
    "chapter figure table see add fix update remove use run make set get put move keep check let adds fixes updates "
    "functions classes methods helpers types values removes uses runs makes sets gets handles returns allows new old "
    "default yeah yep wait mark closes closed "
    "fixed".split()
)


def find_role(sentence: str, vocabulary: set[str]) -> tuple[str, int] | None:
    """Find who plays a part in a sentence: the name, or `I`, and where the telling begins.

    `vocabulary` are the sentence's lower-case words; apostrophes are straight.
    """
    named = not _KIN_WORDS.isdisjoint(vocabulary) or any(
        word.lower() not in _NO_NAMES and _is_name(word) for word in _CAPITAL.findall(sentence)
    )
    if not named and "i" not in vocabulary:
        return None
    for number in sorted(set().union(*[_BY_TRIGGER[word] for word in vocabulary if word in _BY_TRIGGER])):
        pattern, needs_name = _PATTERNS[number][1:]
        if needs_name and not named:
            continue
        for match in pattern.finditer(sentence):
            who = match.groupdict().get("who")
            if who is None:
                return "I", match.start()
            if _is_name(who):
                return who, match.start("who")
    return None


_GOES_ON = LazyPattern(
    r"(?:He|She|They)(?:'s|'re|’s|’re|'ll|’ll| is| are| will)? (?:(?:also|now|still|the one|be|will) )*"
    r"(?:owns?|runs?|leads?|manages?|heads?|oversees?|coordinates?|looks? after|takes? care of|supervises?|chairs?|"
    r"handles?|maintains?|responsible for|in charge of|on call|taking over|takes? over|signs? off|covers? for|"
    r"reports? to|"
    r"our (?:new )?\w+|the (?:new |only )?\w+(?:er|or|ist|man|woman|lead|head|chef|nurse|boss))\b"
)


def continues_role(sentence: str, before: str) -> bool:
    """Tell whether a sentence says which part the person named in the sentence before plays: `She runs the lab.`"""
    if not sentence.startswith(("He", "She", "They")) or _GOES_ON.match(sentence) is None:
        return False
    return any(_is_name(word) for word in _CAPITAL.findall(before))


def _is_name(who: str) -> bool:
    first = who.split()[0].rstrip(".,").lower().replace("’", "'")
    if first in ("my", "our", "her", "his", "your", "their"):
        return True
    if "_" in who or any(c.isdigit() for c in who) or who.split()[0].isupper():
        return False
    return first not in _NO_NAMES and first.removesuffix("'s") not in _NO_NAMES
