"""The patterns of what is told: notes, decisions, reports; and of what is asked.

Written as in `intent_words`; headings as in `intent_rules`.
"""

from __future__ import annotations

TELLING = r"""
decide
    (record|log|note|write down|add|make|save|put down|capture|document|register|file|jot down|enter|keep|minute) [(a|
        the|this|that|our|my|another|as a|as the|as|it as a) ][new |following |final |design |architecture |technical |
        team ]decision[ (to|that|:|-|,|about|for|of|is|as follows|on|is that)][ (:|that|we|to)] <v>
    [the |our |my |a ][final |new |design |architecture |team |technical ](decision|conclusion|verdict|resolution|
        ruling|choice|call|answer) (:|-|is|was|,|made|on|to|has been made)[ (:|that|to|on)] <v>
    (decided|decide|resolved|agreed) (:|-|,|that|to|on|upon|against)[ (:|that|to|on)] <v>
    [(after|in|at|during|following|on|yesterday|today|this) \S.{0,40}? ,? ?](i|we|the team|everyone|us|
        all of us|(\S+ ){1,4}and (i|me)|the (board|group|committee|family|crew|council|whole team|others))[ (have|had|
        all|just|now|finally|already|both|has)] [(just|now|finally|all|already|then|also|eventually|jointly|
        collectively) ](decided|decide|agreed|agree|concluded|resolved|determined|settled|opted|committed|elected|
        voted|landed|
        made the decision|made a decision|made the call|made up our (mind|minds)|came to the conclusion|
        came to the decision|reached the decision|reached a decision)[ (to|that|on|for|upon|in favour of|in favor of|
        :|between|in|,)][ (that|:)] <v>
    [(after|in|at|during|following|on|yesterday|today|this) \S.{0,40}? ,? ?](we|i) (talked|discussed|debated|voted|
        met|argued|compared|weighed|considered|sat down|thought)[ \S.{0,30}?] and (have )?(decided|agreed|chose|settled|
        went with|picked|opted)[ (to|that|on|for|upon|:|in favour of)] <v>
    the team has[ (now|finally|already)] (decided|agreed|chosen|settled|opted)[ (to|that|on|for|upon|
        in favour of)][ :] <v>
    [(after|in|at|during|following|yesterday|today) \S.{0,40}? ,? ?](i|we|the team|everyone)[ (have|had|just|now|
        finally|already|both)] [(just|now|finally|then|also|eventually|
        already) ](chose|chosen|picked|selected|choose|pick|select|went with|gone with|prefer|adopted|adopt|
        standardised on|standardized on|settled for|go for|go with|went for|gone for|ended up with|ended up using|
        favour|favor|rejected|ruled out)[ :] <v>
    (going with|sticking with|settling on|opting for) <v>
    (i am|we are|i|we)[ (now|all|instead)] (going with|going for|sticking with|sticking to|settling on|using|adopting|
        choosing|picking|opting for|standardising on|switching to using|committed to|staying with|moving to|
        migrating to|switching to|going to use|going to go with|going to adopt|leaving out) <v>
    (it is|it was|it has been|that is|so it is|that has been) [now |hereby ](decided|settled|agreed|resolved)[ (that|
        to|:|,|-|then|on|upon)] <v>
    (go (with|for|ahead with)|stick (with|to)|settle (on|for)|opt for|stay (with|on)|standardise on|standardize on|
        commit to|decide (on|for|to|against)|agree (on|to)) <v>
    (use|adopt|choose|pick|prefer|go for|go with|keep using|select|switch over to using|embrace|stick to|
        stay away from|never use) <v>
    (?!what |how |that |this |there |so |oh )<v> it is(, then)?
report
    (report|reporting|report back|status report|progress report|progress update|status update|update|result|results|
        outcome|
        progress|test results|test report|findings|summary|retro) [(on|for|of|about|from|to|:) ]<T> (:|-|is|that|,|are|
        says|saying)[ that] <v>
    (report|update|log|record|progress|status|result) <T> (:|as|that|-|,|is) <v>
    (report|log|record|add|note|write|file|post|submit|enter|give) (a|the|this|that|as|as a) [short |quick |status |
        progress |test |final ](report|result|results|outcome|update|progress|finding|findings) [(on|for|of|about|
        to) <T> ](:|-|that|,|is|saying)[ that] <v>
    (log|record|report|book|track|put|clock|enter|add) (?P<value>.+? (hours?|hrs?|minutes?|mins?|days?|h|points?|%|
        percent|progress)) (on|for|against|to|of|in|into) <T>
    (log|record|report|book|track|put|clock|enter|add) (?P<value>\d+(\.\d+)?(h|hrs|hours|m|min|mins|d|%)) (on|for|
        against|to|of|in|into) <T>
    (spent|burned|worked|logged) (?P<value>.+?) (on|into|for|in) <T>
    (i|we)[ (have|just)] (spent|put|worked|used|burned|needed|logged) (?P<value>.+?) (on|into|for|in) <T>
    [quick |short |brief |small |final ](report|result|outcome|progress report|status report|status update|
        progress update|test results|results|
        findings) (:|that|-|,)[ that] <v>
    [(i|we) ][(hereby|can) ](report) (?P<value>(success|failure|done|progress|a failure|an error|a problem|problems|
        no problems|that .+|
        completion|all green|green|blocked)[ .+?])[ (on|for|of) <T>]
    (mark|set|flag|move|record|log|report|put) <t> [(as|to|into) ][(having|a) ](?P<value>failed|failure|broken|
        unsuccessful|a failure|not working|failing)
    [(i am|we are|i|we) ][(all|now|just|finally) ](done|finished|through) with <t> (:|-|;|and) <v>
    [(i|we) ][(have|just|finally|now) ](finished|completed|wrapped up|closed|shipped|done|did|delivered) <t> (:|-|
        and it) <v>
    <T> (~BE|'s) [~ADV ]~DONE (:|-|;|and) <v>
    <T> (done|finished|complete|completed|shipped) (:|-|;) <v>
    <T> [(has|have|also|just|now|then|again|finally|already) ](?P<value>(took|went|ran|cost|lasted|failed|passed|
        succeeded|broke|crashed|produced|resulted in|turned out|worked|did not work|returned|gave|came out|ended|
        errored|timed out|did not pass|made progress|fails|passes|works|crashes|has failed|has passed|needed|found|
        yielded|revealed|showed|
        hit|got to|reached|is at|stands at|came back)[ .+])
    <T> (is|are|'s|was) [(now|still|at|about|already|only|roughly|around|almost|nearly|
        currently) ](?P<value>((\d+(\.\d+)?) ?(%|percent|per cent)|\d+%|half|halfway|half way|almost|nearly|mostly|
        partly|close to|failing|broken|passing|green|red|working|not working|a success|a failure|going well|
        going badly|on track|behind schedule|late|ahead of schedule|behind|overdue|delivered with|tested|deployed|
        live|in review|in qa|in testing|under review)[ .+])
    <T> (results?|outcome|report|findings) (:|-|is|are|was|were) <v>
    [the ](results?|outcome|findings?) of <T> [(is|are|was|were) ]<v>
    (test|tests|all tests|the tests|the build|build|ci) (for|of|on) <T> (?P<value>(pass|passed|fail|failed|are green|
        are red|is green|
        is red)[ .+])
    [<T> ](test|tests|all tests|the tests|the build|build|ci) (?P<value>(pass|passed|fail|failed|
        are green|are red|is green|is red)[ .+])
note
    (add|leave|make|put|write|attach|drop|post|record|log|append|pin|stick|place|set|give|enter|create) [me ][(a|
        another|the following|this|the|one more) ][quick |short |little |small |brief |new ](note|comment|remark|memo|
        annotation|reminder) (to|on|for|about|in|under|against|at) <T> [, ](:|-|that|saying|,|to say|which says|to|
        about|stating|with|reading|with the text|of)[ (that|:)] <v>
    (add|leave|make|put|write|attach|drop|post|record|log|append|pin|enter) (a|another|the following|this|
        the) [quick |short |little |small |brief ](note|comment|remark|memo|annotation|reminder) (to|on|for|in|under|
        against|at) <T> <v>
    (add|leave|make|put|write|attach|take|drop|post|record|log|jot down|save|enter|keep|create|new) (a|another|this|
        the following|the|one more|) ?[quick |short |little |small |brief |mental |new ](note|comment|remark|memo|
        reminder) [(for|to) (me|us|myself|ourselves|self) ](:|-|that|saying|,|of|to|about|to say|stating|for)[ (that|
        :|the fact that)] <v>
    (add|leave|put|write|attach|post|drop|record) <v> as (a |the )?(note|comment|remark) (to|on|for|under|in) <T>
    (add|put|write|attach|append|post) <v> (to|in|into|under) the (notes|comments|description) (of|on|for) <T>
    [a |another |quick |one ](note|comment|remark|memo|reminder) (on|to|for|about|re|regarding|in) <T> [, ](:|-|that|
        ,|is|to)[ that] <v>
    (note|annotate) <T> (:|-|that|with|,) <v>
    <T> (note|comment|remark) (:|-) <v>
    (note|write|write down|jot down|note down|put down|record|log|mention|remark|comment|add|state) (on|for|against|
        under|in|at|
        about|to) <T> (that|:|,|-|saying) <v>
    (comment on|annotate|note on|note for|note about|write on|put on|note against|comment)[ (the)] <T> [, ](that|with|
        saying|:|-|,) <v>
    (tell|inform) <T> that <v>
    [(a|another|quick|one|one more|just a|just) ](note|memo|comment|reminder|fyi|for your information|nb|n.b|heads up|
        psa|ps|remark|side note|note to self|notes|notice) (:|-|,|that|to|for the record :)[ that] <v>
    (note|notice|mind|remember|record|write down|write|jot down|jot|log|put down|put on record|put it on record|
        keep in mind|bear in mind|do not forget|take down|keep a note|make a note|take note|take a note|make note|
        note down|be aware|be advised|for the record|let the record show|let the record state|let it be known|
        let it be noted|put in the notes|save|store|remind (me|us)|mark down|know|never forget|worth noting|
        it is worth noting|i want to note|put it down|keep|scribble down|get down|state for the record|keep on record|
        memorise|memorize|commit to memory|document|make sure (we|you) remember|make sure to remember|
        we should remember|write it down|write this down|write that down|keep track|jot this down|jot that down|
        note this|note this down|remember this|record this|log this|add to the notes|please note|i note|
        let us not forget|have it noted|note for the record|put in writing|have it on record|get it on record|
        take this down|make a record) [(for later|for the record|somewhere|in the notes|for me|for us|please|as well|
        too|again|down|for next time) ][, ](that|:|,|of the fact that|about|of|to|-|the fact that|how)[ (that|:|
        the fact that)] <v>
    (for the record|fyi|for your information|for the notes|just so (you|we) know|so (you|we) know|
        just so it is recorded|on the record|for future reference|note to self|for later reference|for posterity|
        for reference|for the log|as a note|as a reminder|as a side note|heads up|important|good to know|to remember|
        be it noted)[ ,| :| -][ that] <v>
    (write|put|get) <v> down[ (somewhere|for later|please|for the record|in the notes)]
    (remember|note|write down|jot down|do not forget|note down|keep in mind|record|bear in mind|take note|log) <v>
    <v> [, ](for the record|for future reference|just for the record|fyi|note to self|keep that in mind|remember that|
        remember this|do not forget that|make a note of (that|it)|note that down|write that down)
"""

# Looked at after all else: what else is said is the rule.
TELLING_AT_LAST = r"""
decide
    (from now on|going forward|henceforth|as of now|as of today|from here on|in future|in the future)[ ,] [(we|
        i) ][(will|are going to|should|only|always|must) ]<v>
"""

# Looked at before anything else, with and without a question mark.
ASKING = r"""
help
    (help|help me|help me out|help out|help please|commands|usage|\?|h|man|help menu|instructions|manual|options|menu|
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
    (how) (do|does|can|should) (i|we|this|it|you|one|the shell|this thing|this tool) (use|work|do|start|create|add|
        cancel|finish|undo|rename|make|assign|block|mark|get started|operate|talk|get)[ .+]
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
    (quit|exit|bye|goodbye|good bye|bye bye|q|:q|:wq|:q!|see you|see ya|cya|logout|log out|log off|logoff|leave|stop|
        end|terminate|farewell|ciao|good night|goodnight|shut down|shutdown|close|over and out|sign off|i am (off|out|
        leaving)|gotta go|have to go|i have to go|i must go|ttyl|later|peace out)[ (now|then|everyone|all|please|
        later|soon|tomorrow|for now|for today|the (shell|session|program|app|conversation)|this (shell|session|
        program)|session|shell|here|again)]
    (end|close|leave|quit|exit|stop|finish|terminate|shut down|wrap up|conclude) [(the|this|our|my) ](session|shell|
        program|conversation|app|chat|application|prompt|console|terminal)[ (now|for now|for today)]
    (that is|that was|this is|that will be) (it|all|everything|enough)[ (for (now|today|the day|this session|me)|then|
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
        shall|do|can|could|must|would|might|ought|is) (i|we|it|you|one|there|be|my)[ (to|now|next|best|you|recommend|
        suggest|i|we|want|have)]* (do|work on|start|tackle|pick|pick up|focus on|take|take on|start with|begin with|
        begin|be working on|be doing|look at|handle|attack|get to|take up|be done|go for|prioritise|concentrate on|
        do first|to do|get started on|done)[ (next|now|first|today|then|after (this|that|it)|right now|from here|with|
        this (morning|week|afternoon)|tomorrow|at this point|best)]*
    (what|which) [(is|are|would be|'s) ](the |my |our |your )*(next|following|upcoming|top|best|most important|
        most urgent|highest priority|first|recommended|logical|obvious)[ (best|most important|logical|sensible|
        priority|open|urgent|possible|few|three|two|couple of)] [(~KIND|~THING|step|steps|move|moves|priority|
        priorities|action|actions|job|up|work|on the list|on my list|thing to do|things to do|task to do)][ .+]
    (next|next up|up next|what now|now what|and now|what then|next step|next steps|next task|next story|next item|
        next one|next please|then what|whats next|to do next|next thing|next on the list|next up please|what to do|
        next work|coming up|upcoming)[ (please|next|now|first)]
    (anything|something|what)[ else| is there]? (i|we) (should|can|could|might|ought to|shall|may) (do|start|
        start with|work on|pick up|tackle|begin|begin with|take|take on|look at|get on with|be doing)[ .+]
    what (do|should|shall|can|have|must) (we|i)( to| have to)? do( now| next| then| first)*
    what to (do|work on|start|tackle|pick up|pick|start with)[ (next|now|first|today)]*
    (show|give|tell|suggest|pick|recommend|list|display|find|propose|name|choose|get)[ (me|us)] [(to me|to us|me|
        us) ](the |my |our |a |some |what )*(next|upcoming|is next|to do next|comes next|i should do|we should do|
        should i do|something to (do|work on)|following|to work on|should come next|to start next|best next|
        to tackle next|most urgent|top priority|most important|i should work on|we should work on|should be next|
        task to (do|work on))[ .+]
    (where) (should|do|shall|can) (i|we) (start|begin|go from here|go next|continue|go now|focus)[ .+]
    (give|get|find|assign) (me|us) [(some|more|new|the next) ](work|job)
    (anything|something) else (to do|to work on|for me|left)[ .+]
    (i am|we are) (free|ready|idle|bored|available|out of work|ready for (the next|more|another).*|done what is next|
        looking for (work|something to do).*)[ (now|what is next|what now|again)]
    (what|anything|something)[ is| 's| else is| else]? (left|ready|available|up|on the agenda|on my plate|
        on the plate|on deck|in the queue|on my list|on our plate|planned next|actionable|unblocked|coming up|
        startable)[ (to do|for (me|us|today|now)|next|now|to start|to work on|to be done|today|to be worked on|
        for me to do|to pick up)]
    (is there|have we got|do we have|do i have|got|have you got) (anything|something|any work|any task|a task|
        work)[ else| left| more]* (to do|to work on|left|for me|for us|i can do|i could do|i can work on|next|
        that i can (do|start|pick up|work on)|i can start|ready|to start|to pick up|left to do|we can start|
        we can work on)[ .+]
    (what|which) (is|are|'s|remains|remain|does remain)[ (still|there)] (left|remaining|outstanding|to do|to be done|
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
    (what|which)[ (~KIND|~THING|work|changes|of .+|decisions|stuff|all|exactly|else|have all|decision|note|notes|
        commands?|operations?|steps?|command|progress|epics and stories|errors?|failures?|problems?)]* (did|have|had|
        were|was|has) (~WE|.{1,20}?)[ (all|just|actually|ever|so far|recently|last|already|been|really|even|lately|
        only|then|today)]* (do|done|doing|finish|finished|get done|got done|gotten done|complete|completed|completing|
        work on|worked on|working on|change|changed|changing|achieve|achieved|accomplish|accomplished|add|added|
        adding|create|created|creating|start|started|make|made|up to|say|said|decide|decided|note|noted|talk about|
        talked about|talking about|discuss|discussed|discussing|ship|shipped|close|closed|touch|touched|get through|
        wrap up|wrapped up|record|recorded|deliver|delivered|cancel|cancelled|block|blocked|assign|assigned|rename|
        renamed|move|moved|defer|deferred|drop|dropped|go wrong|gone wrong|break|broken|fail|failed|learn|learned|
        leave off|stop at|tell you|told you|ask|asked|run|run last|update|updated|modify|log|undo|undone)[ .+]
    (what|anything|something|which)[ (~KIND|~THING|work|changes|decisions|all|else|has|have|exactly|all has|was|were|
        operations?|commands?)]* (happened|changed|went on|went wrong|has happened|have happened|has changed|got done|
        was done|been done|has been done|is new|'s new|went down|took place|occurred|failed|has failed|broke|
        was created|was made|was added|was finished|was completed|were created|were finished|were completed|were added|
        got finished|got created|got closed|was closed|were closed|was decided|were made|was cancelled|were cancelled|
        got cancelled|was changed|been going on|is the latest|are the latest|was started|were started|got added|
        got changed|has been happening|been happening|has been going on|has gone on|were changed|was shipped|
        got shipped|were blocked|got blocked|was said|was noted|moved|did i miss|have i missed|was going on|
        had happened|went well|was the outcome|crashed|got started|new)[ .+]
    (what|which)[ (is|was|were|are|'s)] (the |my |our |your )*(last|latest|most recent|newest|previous|recent|final|
        first|last few|last couple of|last (two|three|four|five|ten|\d+)|latest few|past few)[ (few|two|three|four|
        five|ten|couple|of|failed|finished|completed|created|\d+)]* (~KIND|~THING|change|changes|command|commands|
        operation|operations|step|steps|action|actions|activity|activities|decision|decisions|note|notes|news|update|
        updates|event|events|failure|failures|error|errors|bit|moves?|happenings|result|results|session|progress|
        edits?|entries|log|thing)[ .+]
    (who) (did|has|changed|created|added|finished|started|closed|cancelled|worked on|completed|blocked|touched|made|
        assigned|moved|renamed|opened|decided|noted|broke) (?!what$).+
    (when) (did|was|were|has|have|had|is|are|do|does) .+
    (show|list|give|tell|display|print|get|read|see|let me see|pull up|bring up|fetch|view|recall|recap|replay|dump|
        look at|remind)[ (me|us)] [(to me|me|us|about|of|on|again) ](the |my |our |your |a |all |all the |any |some |
        just |only |what |about |short |quick |brief |little )*(last|latest|most recent|newest|previous|recent|
        recently|history|log|logs|activity|changes|events|timeline|change log|changelog|operations|operation log|
        audit|audit trail|journal|protocol|news|recent activity|summary of (the |what |today|yesterday|this |last |
        recent ).*|recap|overview of (recent|the last|today|yesterday|what).*|happened|changed|we did|we just did|
        i did|i just did|did we (just )?do|was done|we have done|has happened|has changed|we did last|is new|
        we have been doing|you did|you just did|what happened|what changed|what we did|what i did|what was done|
        what you did|what is new|just happened|got done|went wrong|last thing|we talked about|we were doing|
        i was doing|we were working on|i was working on|went on|finished since|done since|changed since|created since|
        created today|created yesterday|finished today|finished yesterday|done today|done yesterday|completed today|
        closed today|decisions (since|from|of) .+)[ .+]
    (show|list|display|print|give)[ me| us] .+ (since|from) (yesterday|today|this morning|last .+|monday|tuesday|
        wednesday|thursday|friday|saturday|sunday|the last .+|an hour ago|noon|lunch|.+ ago)
    (recent|latest|last|newest) (changes|activity|activities|events|operations|work|updates|news|history|commands?|
        steps|actions|decisions|edits|things|tasks|stories)
    (recap|summary|history|log|activity|changelog|recent|timeline|news|summarise|summarise the (session|day|week|
        last .+|work|progress|conversation|changes)|summarise (today|yesterday|this .+|last .+|what .+|everything|
        our .+|recent .+|the recent .+)|sum up|sum it up|sum up .+|catch (me|us) up|bring (me|us) up to (speed|date)|
        fill (me|us) in|update me|refresh my memory|get me up to speed|recap .+|what is new|anything new|any news|
        any updates|any changes|what did i miss|what have i missed|remind (me|us) what .+|remind (me|us) where .+|
        debrief|rewind .+|review (today|yesterday|the (day|week|session)|this week|last week|what .+)|go over what .+|
        tell me what .+ (did|done|happened|changed)[ .+])[ (since|from|of|on|for|about|please|today|yesterday|so far|
        again|this|last|with|over|in|during|then|me|the|quickly) ?.*]
    (where|at what point) (did|were|have|had|was|are) (we|i|you|it)[ (last|just)] (leave off|leave it|leave things|
        stop|stopped|left off|at|leave it off|leave|finish|end up|end|get to)[ (last time|yesterday|before|last|
        last week|last night|on friday|off|with .+|on .+|in .+)]
    (did|have|has) (anything|something|anyone|someone|anybody|somebody|much|a lot) .+
    (the )?(last|latest|most recent|previous) (failed |finished |completed |created |few |two |three |five |ten |
        \d+ )*(~KIND|operations?|changes?|commands?|steps?|actions?|events?|things?|failures?|errors?|decisions?)
    how did (we|i) get here
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
    (reason|reasons|rationale|reasoning|justification|motivation|explanation|thinking|background)[ (for|behind|of|why|
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
