"""The patterns of questions about the talk so far and the shell itself: help, what is next, what was done, why.

Written as in `intent_words`; headings as in `intent_rules`.
"""

from __future__ import annotations

# Looked at before anything else, with and without a question mark.
ASKING = r"""
help
    how (do|should|would|must) you (want|like|expect|need) (me|us) to (phrase|ask|say|type|word|write|put|use) .+
    (can|could|would) (somebody|someone|anyone|anybody|you) explain (this|the|that) (tool|shell|thing|system|app|
        program)[ .*]
    (teach|train|guide|instruct) me[ .*]
    what (kind|kinds|sort|sorts) of (things|commands|questions|orders|stuff) (can|do|may|could) (you|i|we) .+
    what (am i|are we) (supposed|meant|allowed|able|expected) to (type|say|do|enter|write|ask)[ here]
    (help|help me|help me out|help out|help please|commands|usage|\?|h|man|help menu|instructions|manual|options|
        menu|
        i need help|
        i need some help|i am lost|hints?|tutorial|guide)
    (what|which) (can|could|do) (you|i|we) (do|say|type|ask|tell you|use|ask you|understand|write|enter)[ (here|
        for me|with this|you|for us|with you|in here)]
    (what|which) (commands?|things|options|actions|words|phrases|verbs|operations)[ (are there|do you (know|have|
        understand|support|take|accept)|can i (use|type|give|say|enter)|are (available|supported|known|possible)|
        exist|work|is there)]
    (what|which) (are|is) (the|your|my|available|all the) (commands?|options|features|possibilities|capabilities|
        available commands|choices)[ .+]
    [explain ](how) [(it|this|that|the shell|this thing|everything|all this) ](works?|is used)[ .+]
    explain (yourself|the commands|this|how .+)
    (how) (do|does|can|could|would|should|might|may) (i|we|this|it|you|one|someone|somebody|a person|people|the shell|
        this thing|this tool) (use|
        work|do|start|create|add|cancel|finish|undo|rename|make|assign|block|mark|get started|operate|talk|get|delete|
        remove|close|unblock|
        defer|move|prioritise|set|change|find|list|see|go about|write|note|record)[ .+]
    (how to) .+
    (show|list|give|print|display|tell)[ me| us] (the |all |all the |your |available |some )*(help|commands?|usage|
        options|instructions|manual|examples)[ .+]
    (who|what) are you
    (can|could|would|will) you help[ (me|us)][ (out|please|here)]
    help[ me| us]? (with|on|about) .+
    [a |the ]list [of ](all |the |your |possible )*(commands|options)
    (i|we) (could use|can use|need|want|would like|could do with|may need)[ (some|a little|a bit of|more|any|
        your)] (help|assistance|guidance|
        instructions)[ (with|on|about|here|using|please) ?.*]
quit
    (quit|exit|bye|goodbye|good bye|bye bye|q|:q|:wq|:q!|see you|see ya|cya|logout|log out|log off|logoff|leave|
        stop|
        end|terminate|farewell|ciao|good night|goodnight|shut down|shutdown|close|over and out|sign off|i am (off|
        out|
        leaving)|gotta go|have to go|i have to go|i must go|ttyl|later|peace out)[ (now|then|everyone|all|please|
        later|soon|tomorrow|for now|for today|the (shell|session|program|app|conversation)|this (shell|session|
        program)|session|shell|here|again)]
    (stop|quit|end|finish|pause|break) here[ (for (today|now|tonight|the day))]
    (end|close|leave|quit|exit|stop|finish|terminate|shut down|wrap up|conclude) [(the|this|our|my) ](session|shell|
        program|conversation|app|chat|application|prompt|console|terminal)[ (now|for now|for today)]
    (that is|that was|this is|that will be) (it|all|everything|enough)[ (for (now|today|the day|this session|me)|
        then|
        folks|from me)]
    (i am|we are)[ all] (done|finished|through|signing off|logging off|calling it a day|heading out|out of here|
        off)[ (for (now|today|the day|tonight)|here|now)]
    (call it a (day|night)|let us call it a (day|night)|done for (today|now|the day)|enough for (today|now)|
        see you (later|tomorrow|soon|around|next time|again|monday)|talk (later|tomorrow|soon)|until (tomorrow|
        next time)|have a (nice|good|great) (day|one|evening|night|weekend)|catch you later|time to go|good night)
next
    (what|which|whats)[ (is|'s|are|comes|should|shall|do|can|must|could|would|will|else|now|of|task|tasks|story|one|
        item|items|issue|thing|things|ones|to|epic|ticket|tickets)]* (next|now|next up|up next|after (this|that|it)|
        next then|next on the (list|agenda|plan|backlog)|coming up|coming next|first)[ .+]
    (what|which)[ (task|tasks|story|stories|one|item|ones|thing|epic|ticket|work|things|of these|of them)] (should|
        shall|do|can|could|must|would|might|ought|is) (i|we|it|you|one|there|be|my)[ (to|now|next|best|you|
        recommend|
        suggest|i|we|want|have)]* (do|work on|start|tackle|pick|pick up|focus on|take|take on|start with|begin with|
        begin|be working on|be doing|look at|handle|attack|get to|take up|be done|go for|prioritise|concentrate on|
        do first|to do|get started on|done)[ (next|now|first|today|then|after (this|that|it)|right now|from here|
        with|
        this (morning|week|afternoon)|tomorrow|at this point|best)]*
    (what|which) [(is|are|would be|'s) ](the |my |our |your )*(next|following|upcoming|top|best|most important|
        most urgent|highest priority|first|recommended|logical|obvious)[ (best|most important|logical|sensible|
        priority|open|urgent|possible|few|three|two|couple of)] [(~KIND|~THING|step|steps|move|moves|priority|
        priorities|action|actions|job|up|work|on the list|on my list|thing to do|things to do|task to do)][ .+]
    (next|next up|up next|what now|now what|and now|what then|next step|next steps|next task|next story|next item|
        next one|next please|then what|whats next|to do next|next thing|next on the list|next up please|what to do|
        next work|coming up|upcoming)[ (please|next|now|first)]
    (anything|something|what)[ (else|is there|left|other|more|remaining)]*( that| which)? (i|we) (should|can|could|
        might|ought to|shall|may|must) (do|start|
        start with|work on|pick up|tackle|begin|begin with|take|take on|look at|get on with|be doing)[ .+]
    what (do|should|shall|can|have|must) (we|i)( to| have to)? do( now| next| then| first)*
    what to (do|work on|start|tackle|pick up|pick|start with)[ (next|now|first|today)]*
    (show|give|tell|suggest|pick|recommend|list|display|find|propose|name|choose|get)[ (me|us)] [(to me|to us|me|
        us) ](the |my |our |a |some |what )*(next|upcoming|is next|to do next|comes next|i should do|we should do|
        should i do|something to (do|work on)|following|to work on|should come next|to start next|best next|
        to tackle next|most urgent|top priority|most important|i should work on|we should work on|should be next|
        task to (do|work on))[ .+]
    (i|we) have[ got] nothing (to do|left to do|to work on|on)[ .*]
    (i am|we are) at a loose end[ .*]
    where to (begin|start)[ .*]
    (any suggestions|any ideas|suggestions)[ (for me|for what to do|on what to do)[ next]]
    (pick|choose|suggest|recommend|select) [(me|us) ](a|another|some|any) (task|job|story|thing|work|
        one)[ (for me|to do|to work on|next)]
    (any|is there any|got any|have you got any|have you any) (work|job|jobs|task|tasks|thing|things) (left )?(for|
        i can do|to do|i could do|waiting for)[ (me|us|now|today)]
    (what|which) (is|'s|are|comes) [(at|on) ][the ]top (of|on|in) (the|my|our) (list|pile|stack|queue|board|
        agenda|backlog|plan)[ (now|today|right now|next)]
    (where) (should|do|shall|can) (i|we) (start|begin|go from here|go next|continue|go now|focus)[ .+]
    (give|get|find|assign) (me|us) [(some|more|new|the next) ](work|job)
    (what|which) (is|'s|are) waiting for (me|us)[ .+]
    (anything|something) else (to do|to work on|for me|left)[ .+]
    (anything|something)[ else| left]? for (me|us)[ to (do|work on|start|pick up|take)][ .+]
    what[ else| more]? (can|could|should|shall|may) (i|we)[ (now|still|also|next)] (do|work on|start|pick up|tackle|
        take)[ (now|next|then|today|here)]*
    (i am|we are) (free|ready|idle|bored|available|out of work|ready for (the next|more|another).*|
        done what is next|
        looking for (work|something to do).*)[ (now|what is next|what now|again)]
    (what|anything|something)[ is| 's| else is| else]? (left|ready|available|up|on the agenda|on my plate|
        on the plate|on deck|in the queue|on my list|on our plate|planned next|actionable|unblocked|coming up|
        startable)[ (to do|for (me|us|today|now)|next|now|to start|to work on|to be done|today|to be worked on|
        for me to do|to pick up)]
    (is there|have we got|do we have|do i have|got|have you got) (anything|something|any work|any task|a task|
        work)[ else| left| more]* (to do|to work on|left|for me|for us|i can do|i could do|i can work on|next|
        that i can (do|start|pick up|work on)|i can start|ready|to start|to pick up|left to do|we can start|
        we can work on)[ .+]
    (what|which) (is|are|'s|remains|remain|does remain)[ (still|there)] (left|remaining|outstanding|to do|
        to be done|
        still to do|open to do|left to do|left over|there left|missing)[ .+]
    what (remains|is left|needs doing|needs to be done|has to be done|still needs doing|do we still have to do|
        have (we|i) to do|
        do i still have to do|do we have left|do i have left|must be done|else needs doing|is on for today|
        is up for today|needs attention|
        needs my attention|have we got left|is there to do|is there left to do|else is there|is still to be done|
        still has to be done|do we have to do|do i have to do|needs work|is on today|is planned|is the plan)[ .+]
    (which|what) (one|task|story|epic|item)[ (of .+)] (comes|goes|is|has to come|should come|should be|gets done|
        do i do|do we do) (first|next)
recent
    (how) (did|was|has) (yesterday|today|the (week|day|session|morning|afternoon|weekend)|this week|last week|
        last night|
        things|it all) (go|been|gone|turn out)[ .+]
    (today|yesterday|this week|this morning|last week|show me today|show me yesterday|show today|show yesterday|
        give me today|
        give me yesterday|list today|list yesterday) 's (changes|work|activity|
        updates|news|progress|events|history|log|things|achievements|results)
    (what|which)[ (~KIND|~THING|work|changes|of .+|decisions|stuff|all|exactly|else|have all|decision|note|notes|
        commands?|operations?|steps?|command|progress|epics and stories|errors?|failures?|problems?)]* (did|have|
        had|
        were|was|has) (~WE|.{1,20}?)[ (all|just|actually|ever|so far|recently|last|already|been|really|even|lately|
        only|then|today)]* (do|done|doing|finish|finished|get done|got done|gotten done|complete|completed|
        completing|
        work on|worked on|working on|change|changed|changing|achieve|achieved|accomplish|accomplished|add|added|
        adding|create|created|creating|start|started|make|made|up to|say|said|decide|decided|note|noted|talk about|
        talked about|talking about|discuss|discussed|discussing|ship|shipped|close|closed|touch|touched|get through|
        wrap up|wrapped up|record|recorded|deliver|delivered|cancel|cancelled|block|blocked|assign|assigned|rename|
        renamed|move|moved|defer|deferred|drop|dropped|go wrong|gone wrong|break|broken|fail|failed|learn|learned|
        leave off|stop at|tell you|told you|ask|asked|run|run last|update|updated|modify|log|undo|undone)[ .+]
    (what|anything|something|which)[ (~KIND|~THING|work|changes|decisions|all|else|has|have|exactly|all has|was|
        were|
        operations?|commands?)]* (happened|changed|went on|went wrong|has happened|have happened|has changed|
        got done|
        was done|been done|has been done|is new|'s new|went down|took place|occurred|failed|has failed|broke|
        was created|was made|was added|was finished|was completed|were created|were finished|were completed|
        were added|
        got finished|got created|got closed|was closed|were closed|was decided|were made|was cancelled|
        were cancelled|
        got cancelled|was changed|been going on|is the latest|are the latest|was started|were started|got added|
        got changed|has been happening|been happening|has been going on|has gone on|were changed|was shipped|
        got shipped|were blocked|got blocked|was said|was noted|moved|did i miss|have i missed|was going on|
        had happened|went well|was the outcome|crashed|got started|new)[ .+]
    (what|which)[ (is|was|were|are|'s)] (the |my |our |your )*(last|latest|most recent|newest|previous|recent|final|
        first|last few|last couple of|last (two|three|four|five|ten|\d+)|latest few|past few)[ (few|two|three|four|
        five|ten|couple|of|failed|finished|completed|created|\d+)]* (~KIND|~THING|change|changes|command|commands|
        operation|operations|step|steps|action|actions|activity|activities|decision|decisions|note|notes|news|
        update|
        updates|event|events|failure|failures|error|errors|bit|moves?|happenings|result|results|session|progress|
        edits?|entries|log|thing)[ .+]
    (who) (did|has|changed|created|added|finished|started|closed|cancelled|worked on|completed|blocked|touched|made|
        assigned|moved|renamed|opened|decided|noted|broke) (?!what$).+
    (when) (did|was|were|has|have|had|is|are|do|does) .+
    (show|list|give|tell|display|print|get|read|see|let me see|pull up|bring up|fetch|view|recall|recap|replay|dump|
        look at|remind)[ (me|us)] [(to me|me|us|about|of|on|again) ](the |my |our |your |a |all |all the |any |
        some |
        just |only |what |about |short |quick |brief |little )*(last|latest|most recent|newest|previous|recent|
        recently|history|log|logs|activity|changes|events|timeline|change log|changelog|operations|operation log|
        audit|audit trail|journal|protocol|news|recent activity|summary of (the |what |today|yesterday|this |last |
        recent ).*|recap|overview of (recent|the last|today|yesterday|what).*|happened|changed|we did|we just did|
        i did|i just did|did we (just )?do|was done|we have done|has happened|has changed|we did last|is new|
        we have been doing|you did|you just did|what happened|what changed|what we did|what i did|what was done|
        what you did|what is new|just happened|got done|went wrong|last thing|we talked about|we were doing|
        i was doing|we were working on|i was working on|went on|finished since|done since|changed since|
        created since|
        created today|created yesterday|finished today|finished yesterday|done today|done yesterday|completed today|
        closed today|decisions (since|from|of) .+)[ .+]
    (show|list|display|print|give)[ me| us] .+ (since|from) (yesterday|today|this morning|last .+|monday|tuesday|
        wednesday|thursday|friday|saturday|sunday|the last .+|an hour ago|noon|lunch|.+ ago)
    (recent|latest|last|newest) (changes|activity|activities|events|operations|work|updates|news|history|commands?|
        steps|actions|decisions|edits|things|tasks|stories)
    (a|the|my|our|your|quick|short|brief|give me a|give us a|give me the|do a|have a|a quick|a short|a brief|
        give me a quick|
        give me a short|recap|summary|rundown|run-down|round-up|roundup|digest|overview|history|log|list|i want a|
        i need a) [(recap|summary|rundown|run-down|run down|round-up|roundup|digest|
        overview|history|log|list) ]of (what|the last|the latest|the recent|the past|recent|today|yesterday|
        this (week|morning|
        month|afternoon|session)|last|our (last|latest|recent)|my (last|latest|recent)|everything (we|i|that))[ .+]
    (recap|summary|history|log|activity|changelog|recent|timeline|news|summarise|summarise the (session|day|week|
        last .+|work|progress|conversation|changes)|summarise (today|yesterday|this .+|last .+|what .+|everything|
        our .+|recent .+|the recent .+)|sum up|sum it up|sum up .+|catch (me|us) up|bring (me|us) up to (speed|
        date)|
        fill (me|us) in|update me|refresh my memory|get me up to speed|recap .+|what is new|anything new|any news|
        any updates|any changes|what did i miss|what have i missed|remind (me|us) what .+|remind (me|us) where .+|
        debrief|rewind .+|review (today|yesterday|the (day|week|session)|this week|last week|what .+)|
        go over what .+|
        tell me what .+ (did|done|happened|changed)[ .+])[ (since|from|of|on|for|about|please|today|yesterday|
        so far|
        again|this|last|with|over|in|during|then|me|the|quickly) ?.*]
    (where|at what point) (did|were|have|had|was|are) (we|i|you|it)[ (last|just)] (leave off|leave it|leave things|
        stop|stopped|left off|at|leave it off|leave|finish|end up|end|get to)[ (last time|yesterday|before|last|
        last week|last night|on friday|off|with .+|on .+|in .+)]
    (did|have|has) (anything|something|anyone|someone|anybody|somebody|much|a lot) .+
    (the )?(last|latest|most recent|previous) (failed |finished |completed |created |few |two |three |five |ten |
        \d+ )*(~KIND|operations?|changes?|commands?|steps?|actions?|events?|things?|failures?|errors?|decisions?)
    how did (we|i) get here
    what (has|have|'s|is) (changed|happened|moved|been done|gone on)[ .*]
    (anything|something|did anything|has anything|did something) (happen|happened|change|changed|moved|move)[ .*]
    what (is|has|have|'s) [been ](happening|going on|cooking)[ (lately|recently|today|here|around here|so far|
        this week|now)]
    where (were|was) (we|i)[ (again|at|now)]
why
    why (did|do|does|are|is|was|were|have|has|had) <v>
    why <v>
    (what|which) (was|were|is|are|'s) (the|our|your) (reason|reasons|reasoning|rationale|motivation|thinking|point|
        purpose|argument|
        arguments|justification|logic|idea|thought|cause|case|grounds|basis|explanation|background|thought process|
        intent)[ (again)] (for|behind|of|to|that|why|in|on|we|not|against|to go with|beneath) <v>
    (what) (made|led|drove|caused|prompted|got|convinced|motivated|brought|persuaded|possessed) (us|you|me|the team|
        them|it) (to |into )?<v>
    (how come|for what reason|for which reason|for what reasons|what for|on what grounds|based on what|how so|
        by what reasoning|wherefore|since when and why) <v>
    (explain|tell|remind|say|show|give|recall|describe|clarify)[ (me|us)] [(to|me|us|again|of|about) ]*(why|
        the reason|the reasons|the reasoning|the rationale|the motivation|how come|our reasoning|the thinking|
        our rationale|our reasons|the reason why|the reason for|reasons|rationale)[ (for|behind|of|that|why|to)] <v>
    (reason|reasons|rationale|reasoning|justification|motivation|explanation|thinking|background)[ (for|behind|of|
        why|
        to|on)] <v>
    (do|does|can|could) (you|we|anyone|anybody|i) (remember|know|recall|tell me|explain|say|tell us|remind me|
        have any idea)[ (again|to me)] why <v>
    (i forgot|i forget|i do not remember|i do not know|i wonder|i am wondering|i would like to know|i want to know|
        remember) why <v>
    why
    (explain|justify|defend) (the|our|your) (decision|choice) (for|to|of|about|on|against|in favour of) <v>
    what (is|was|lies|lay|'s|stands|stood) behind <v>
    how did (we|you|i) (come to|end up with|end up|arrive at|get to|come up with|settle on) <v>
    (what|which) (were|are|was) (we|you|i) thinking (when|with|on|about) <v>
    (on|for|with) what (basis|grounds|reason|reasons) <v>
    what (speaks|spoke) (for|against) <v>
    what (are|were) the (pros and cons|trade-offs|tradeoffs|advantages) of <v>
"""
