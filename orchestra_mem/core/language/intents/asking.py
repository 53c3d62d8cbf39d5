"""The patterns of questions about work as it stands: its status, lists of it, and the search for words.

Written as in `intent_words`; headings as in `intent_rules`. Unlike there, a phrase in capitals takes a kind or a
number, and behind a `!` "the boss fight" is enough.
"""

from __future__ import annotations

ASKING_OF_WORK = r"""
list
    (get|have|see|view|fetch|pull|want)[ (me|us)] (all|every|any|each|all the|all of the|a list of|the list of|
        every single|
        all my|all our) <q>
    (everything|anything|all|whatever|stuff|things|what|(all )?(the |my )?~KIND) (assigned|given|
        belonging) to \S+[ \S+]
    (have you |have we |do we have |you |do i have )?got any <q>
    what (has|have|does|do|is) \S+ (got|have|having)? ?on (his|her|their|my|our|its) (plate|list|desk|board|to-do
        list|hands|table)[ .*]
    (give|tell|get|name|fetch|bring) (me|us) [about ](all|every|the|all the|all of the|my|our|your|any|everything|
        the list of|a list of|list of|an overview of|overview of|what|which|the whole|the full)?[ ]?<q>
    (show|list|display|print|see|view|enumerate|let me see|pull up|bring up|dump|which are|what are|what is|look at|
        count)[ (me|us)] [(me|us|about) ](all|every|the|all the|all of the|my|our|your|any|each|everything|
        the list of|a list of|list of|an overview of|overview of|all of our|all of my|only|just|only the|what|which|
        every single|all my|all our|the whole|the full|the complete|me all|both|these|those)?[ ]?<q>
    (what|which)[ (of|all|other|kind of|kinds of)]* <q> (are there|is there|do we have|do i have|have we got|
        have i got|exist|exists|remain|have we|do you have|do we (still|currently|now) have|are (still |currently |
        now )?(left|open|there|listed|tracked|on the (list|plan|board))|is on the (list|plan|board)|did we plan|
        have we planned|do you know( of| about)?|are we (tracking|having)|should i know about|can you see|
        belong here)
    (what|which)[ (of|all|other)]* <k> (is|are|'s|was|were|have|has|do|does|belong|belongs|need|needs|depend|
        depends|
        wait|waits|got|can|should|could|must|did|will|remain|remains|still|lack|lacks) <r>
    (what|which)[ (of|all|other)]* <k> (?P<rest>failed|broke|stalled|slipped|succeeded|finished)
    (what|which)[ (of|all|other)]* <k> (did|have|has) (~WE)[ (already|ever|all|just)] (?P<rest>(cancel|cancelled|
        finish|finished|start|started|defer|deferred|block|blocked|complete|completed|close|closed|drop|dropped|
        postpone|postponed)[ .+])
    (what|which) (is|are|'s)[ (all|still|currently|now|everything|else|there)]* <s>[ (right now|now|at the moment|
        currently|today|still|there)]
    (what|which|how many|how much) (is|are|'s|stands|belongs|goes|lies|sits|falls|belong|lie|sit)[ (still|all|
        there|currently|left|open)]* (in|under|inside|below|within|part of|on|beneath|underneath) <t>
    what does <T> (contain|have|include|consist of|hold|comprise|cover)[ .+]
    what (am i|are we|is everyone|is \S+|are they|is the team|do we|do i|does \S+|should i be|are people)[ (all|
        currently|still|now)]* (working on|doing|assigned|assigned to|responsible for|have assigned|
        have on my plate|
        have to do|have in progress|busy with|have open|have on (his|her|their) plate|have on|on|stuck on|
        waiting for|
        waiting on|blocked on|blocked by|blocking on|have blocked)[ (right now|now|at the moment|currently|today|
        this week)]
    (what|which)[ (items|things|work|tasks|stories)] (do|did|does|have) (i|we|\S+) (own|have open|have in progress|
        have assigned|have)[ .+]
    who (is|'s|are) (working|doing|assigned|responsible|on|busy|free|idle) (on |for |to |with )?(what|which .+|
        anything|nothing|everything)
    who (does|has|owns|handles) what
    (what|which .+|who) (is|are|has been|have been|was)[ (all|still|currently|now)] (assigned to|owned by|
        with) \S+[ \S+]
    (how many|what number of|count|count all|count the|number of) <q>[ (are there|is there|do we have|do i have|
        have we got|exist|remain|are left|is left|left|are open|there are|in total|overall|so far|have we)]
    (how many|how much) <k> (is|are|have|has|do|does|did|were|was) <r>
    (is|are) there (any|some|a|an|still any|any more|more|no|still)[ (other|open|more|still)]* <k>[ <r>]
    (do|have|did) (we|i|you)[ (have|got|still have|already have|still got|currently have)]* (any|some|more|other|
        open|
        no|anything|still any) <q>
    (anything|something|any)[ (is|still|else|currently)]* <s>
    (stories|tasks|epics|milestones|subtasks) (of|in|under|for|from|below|inside) <T>
    (any|are any|is any) <q>[ (left|open|there|remaining|today|right now|now)]
    (all|every|my|our|open|blocked|pending|done|finished|deferred|cancelled|failed|active|in progress|completed|
        closed|unassigned|urgent|high priority|low priority|overdue|unfinished|remaining|outstanding|stuck|stalled|
        ongoing|the|unstarted|postponed|current) [(open|blocked|pending|done|finished|deferred|cancelled|failed|
        active|in progress|completed|closed|unassigned|urgent|high priority|remaining|outstanding|the|my|our|
        current|
        unfinished) ]*(~KIND|work|blockers?|items|things|backlog|plan|todos?|work items|issues)[ (in|under|of|for|
        assigned|by|below|with|about|that|which|on|please|from) ?.*]
    (~KIND|list|backlog|work plan|the (backlog|plan|board|list|roadmap)|plan|board|roadmap|blockers?|the blockers|
        ls|
        ll|dir|tree|open items|the work plan|todo list|the todo list|work list|items|overview|outline|workload|
        blocked|in progress|pending|unassigned)[ (please|again|now)]
    (list|show|display|view) (in progress|blocked|done|open|pending|all|everything|it all|them all|active|deferred|
        failed|cancelled|unfinished|overdue|unassigned|what we have|what there is|what is there)[ .+]
    <T> 's (~KIND|children|parts|items|contents|subitems|sub items|blockers|dependencies|work)
status
    (what|what all|who|which one|which|anything) (is|'s|are|keeps|has been|was|blocks|holds)[ (still|currently|now|
        actually|exactly|one)]* (blocking|holding up|blocked by|holding back|stopping|in the way of|the blocker for|
        the blockers for|the blocker of|the blockers of|stalling|the hold up with|the holdup with|up|delaying|
        the problem with|the issue with|good with|wrong with|the matter with|going on with|happening with|up with|
        new with|
        new on|left on|left in|left to do on|left to do in|left for|left to do for|missing in|missing for|
        missing from|still open in|still open on|the state with|the deal with|the story with|the situation with|
        the word on|the latest on|remaining in|remaining on|remaining for|keeping|outstanding in|outstanding on|
        outstanding for|the blocker on|to do in|to do on|to do for|done in|the hold-up with|the plan for|
        the news on|
        open in|open under|the update on|the delay with|the scoop on) <t>
    (what|who|which)( one| ones|\S+)? (blocks|holds up|stops) <t>
    !(what|which)[ (~KIND|things|items)] (does|do|did|is|are|'s) <T> [(still|currently|also) ](depend on|depends on|
        need|wait for|wait on|waiting for|waiting on|rely on|require|blocked by|blocked on|blocking|block|hold up|
        dependent on|stuck on|about|look like|say|involve|entail|hold|held up by|stand at|at|assigned to)[ .+]
    (what|which)[ (~KIND|things|items|one)] (depends|depend|waits|wait|relies|rely|is waiting|are waiting) (on|
        for) <t>
    (has|have|did|is|does)[ (anyone|anybody|someone|somebody|any one of us|one of us)] [(already|ever|yet|been|
        even) ](looked at|
        started|start|started on|working on|begun|begin|touched|touch|finished|finish|picked up|pick up|work on|
        worked on|
        taken|take|claimed|doing|done|do|had a look at|on) <T>[ (yet|already|now|so far|at all)]
    how (far|close|near) (are|am|is) (we|i|you|they|everyone|the team) (to|from|off|with) [(finishing|completing|
        closing|
        being done with|wrapping up|done with|being through with|getting done with|shipping) ]<T>[ (now|yet)]
    !(who)[ (is|'s|are|has|was|does|will|should|owns|does|did|do|currently|now)]* (on|working on|assigned to|doing|
        owns|own|responsible for|the owner of|the assignee of|handling|handles|got|have|has|working|in charge of|
        taking care of|takes|assigned|taking|the assignee on|has taken|leading|leads|assigned on|
        got assigned to) <T>
    (whose) .*<T>[ .*]
    <T> (is|'s) (whose|who's|assigned to whom|on whose plate|with whom)[ .*]
    (what|how|which)[ (is|'s|was|are|about)] (the |its |our |my |current |overall |latest |general )*(status|state|
        progress|situation|standing|priority|prio|owner|assignee|condition|health|completion|percentage|blocker|
        blockers|parent|title|name|description|dependencies|due date|shape|stand|stage|score|numbers|stats|
        statistics|
        overview)[ (report|update|of things|of play|of affairs|here|now|right now|today|currently|overall|
        at the moment|so far|on things|of everything|of the project|of the whole project|in general|of our work|
        check)]
    (what|how|which)[ (is|'s|was|are|about)] (the |its |our |my |current |overall |latest |general |state of |
        level of )*(status|state|progress|situation|standing|priority|prio|owner|assignee|condition|health|
        completion|
        percentage|blocker|blockers|parent|title|name|description|dependencies|stage|completion rate|update|
        acceptance notes|details|acceptance criteria)[ (report|update|level)] (of|on|for|with|in|about|at|
        to) <t>[ (now|right now|today|currently|at the moment|at|so far|like)]
    !(what|which) (status|state|stage|phase|point|shape|condition|position) (is|are) <T> (at|in|on)[ (now|
        currently|right now)]
    (what|which) (status|state|priority|stage|parent|epic|milestone) (is|does|has|was|do) <T>[ (in|at|have|now|on|
        currently|got|under|belong to|part of)]*
    (what) (is|'s) <T> 's (status|state|progress|priority|owner|assignee|prio|blocker|parent|title|name|description|
        blockers)[ .*]
    <T> 's (status|state|progress|priority|owner|assignee|blockers|dependencies)
    (percent|percentage|per cent|how many percent|what percent|what percentage|completion|progress)[ (complete|done|
        finished|completion|ready|
        progress)] (of|on|for|in) <T>[ (is|are) (done|complete|finished|completed)][ in percent]
    eta[ (for|on|of)] <T>
    sitrep[ .*]
    <T> percent[ (done|complete|finished)]
    (what) (about|of) <T>[ (now|then)]
    [and |so ](how|what) about <T>[ (now|then)]
    (what|how)[ about] (is|are|'s)[ (it|everything|things|stuff|we|the project|the team|all|work|the work|
        our project|
        this project|that)] (going|coming along|coming on|progressing|looking|doing|getting on|moving|standing|
        getting along|shaping up|faring)[ (so far|now|today|overall|right now|currently|in general|at the moment|
        here|
        over all|along|on|up)]
    (how|what|where)[ (is|are|'s|well|far|much|good|does|do|did|about|has|have|fast|close|near)]* (it|things|we|
        everything|stuff|work|progress|you)? ?(going|coming along|coming|progressing|looking|doing|getting on|
        moving|
        standing|moving along|stand|are|is|progress|proceeding|get|gotten|got|come)[ along| on| ahead]? (with|on|
        for|
        in|regarding) <t>[ (so far|now|today|overall|right now|currently)]
    !(how) (is|are|'s|was|does|do|goes|fares|has)[ (it|that(?! one))] <T>[ (going|coming along|coming on|progressing|
        looking|
        doing|getting on|moving|standing|coming|stand|going on|look|fare|shaping up|progressed|developing|
        proceeding|
        holding up|today|now|so far|right now|these days|at the moment|along|been going|going so far|getting along|
        moving along)]+
    (how is|how are|how was|how goes|how stands) <T>
    !(how|what) (far|far along|advanced|complete|done) <t> (is|are|has come|has progressed|has got)[ (now|so far|
        by now|already)]
    (what|how) <T> (is|are) (doing|up to|going|at|like|looking|coming along)[ .+]
    (what|how) [the ](status|state|progress|situation) (of|on|with|for) <t> is[ (now|currently|like)]
    (how) (far|much|close|near|complete|done|advanced|finished|many percent|good|big|long)[ (along|progress|work|
        is left|is done|through|remains|in|into|of)]* (is|are|have|has|did|do|does|until|till|on|with|for|before|'s|
        left|remaining|we|in|of|to|am i|into) [(we|i|you|it|the work|progress|along|there|left|made|are|with|on|
        in) ]*<t>[ (is|are)]?[ (done|finished|completed|complete|along|left|progressed|now|so far|gotten|come|got|
        from done|remaining|ready|to go|today|to done|to being done|to completion|away|has (come|progressed|
        been done))]*
    (where|how) (do|are|is|does|did) (we|i|things|it|everything|you|the project|the work|stuff|all)[ (currently|now|
        right now|at)][ (stand|at|stands|standing|with things|now|with everything|in the project|right now|
        on the project|are|today|overall|so far)][ (now|right now|today|overall|currently|at)]
    (where|how) (do|are|is|does|did) (we|i|things|it|everything|you)[ (currently|now|right now|stand|at|standing|
        stands|are)]* (with|on|in|regarding|at with|for) <t>[ (now|today|right now|currently)]
    !(where) (is|are|'s) <T> (at|with|up to|in all this|currently at|standing|now)[ (now|currently|then)]
    !(what|how much|how many|which)[ (percentage|percent|share|part|portion|fraction|proportion|bit|
        amount)] of <T> (is|
        are|has|have|remains?|'s)[ (been|already|now|still)]*[ (done|complete|completed|finished|left|remaining|
        ready|to
        go|open|closed)][ .*]
    (where) (does|do|is|are|'s) <T>[ (stand|stands|at|standing|now|currently|right now|hanging|stuck)]*
    (is|are|was|were|has|have|did|do|does|will)[ (we|i|you|anyone|anybody|someone|somebody|everyone|they|the team|
        all of|all|both|ever|even|actually|really|yet|already)]* (finished|finish|done|complete|completed|start|
        started|close|closed|block|blocked|ship|
        shipped|defer|deferred|assign|assigned|working on|wrap up|wrapped up|done with|finished with|rename|renamed|
        begun|begin|picked up|postpone|postponed|resolve|resolved|touched|deliver|delivered|on track with|
        on track for|on schedule with|ready with|mark|marked|forget|forgotten|already) <t>[ (yet|already|now|today|
        yesterday|as done|on time|so far)]
    !(is|are|was|were|has|have|did|does|do|will|can|should|isn 't) <T> [(already|still|now|really|actually|all|
        currently|not|fully|been|getting|also|ever|get|going to be|even|being|yet|just|get) ]*(done|finished|
        complete|
        completed|ready|started|blocked|stuck|in progress|open|closed|over|on track|on hold|deferred|assigned|
        shipped|
        active|pending|failed|overdue|late|urgent|important|being worked on|under way|underway|ok|okay|delayed|
        depend|
        depending|waiting|dependent|unblocked|high priority|low priority|p\d|part of|under|ongoing|merged|live|
        resolved|moving|progressing|behind|ahead|free|taken|mine|on schedule|left|there|have|still|on|off|due|
        working|
        pass|finish|fail|start|block|ship|go out|go live|land|merge|make it|get done|close|out|postponed|gone|
        happening|any further|progress|need|has)[ .+]
    (is|are) <T>[ (yet|already|still)]
    (any|some|is there any|is there|are there any|do we have any|have you any|got any|do you have any|was there any|
        has there been any)[ (new|further|more|recent|other)] (progress|news|update|updates|movement|word|
        information|
        change|changes|blockers|problems|issues|development|developments|status|feedback) (on|with|about|for|of|
        from|
        in|to|regarding) <t>[ (yet|so far|today|lately)]
    (show|give|tell|display|print|get|read|check|see|report|let me see|describe|view|pull up|bring up|look up|
        inspect|
        fetch|provide|look at|open)[ (me|us)] [(me|us|what|how|about|with|on|at) ]*(the |a |an |your |quick |short |
        current |brief |overall |its |full |general |all |our |my |more |latest |project |some )*(status|state|
        progress|details?|info|information|overview|update|picture|stats|statistics|numbers|dashboard|health|
        standing|
        summary|situation|figures|status report|status update|progress report|big picture|where we are|
        where we stand|
        how we are doing|how things (are going|stand|are)|completion|priority|owner|assignee|description|metrics|
        status overview|project state|work state|counts)[ (report|update|check|overview|here|please|now|bar|
        summary)][ (of|on|for|about|with|regarding|to|in) <t>]
    (give|tell|get|fetch|update|brief|fill|catch) (me|us) [(about|on|in|up|more|everything|more about|
        everything about|all|in on|up on|the|what is|how is) ]*<T>[ (is|are|please|again|in detail|stands?|is going|
        is doing|along|going|doing)]*
    (show|display|print|read|check|check on|see|describe|view|pull up|bring up|look up|inspect|
        let me see|let me look at|look at|look into|examine|review|details of|details on|
        details for|details|info on|info about|more on|more about|know more about|look in on|check in on|
        check up on|
        catch up on|catch me up on|take a look at|have a look at)[ (me|us)] [(me|us|about|on|in|of|up|at|more|
        everything|more about|everything about|all|in on|how far|the|how) ]*<T>[ (is|are|please|again|in detail|
        in full|stands?|are going|is going|is doing|are doing|along)]*
    (overall |current |project |quick |full |general |work |team |our |my |the )*(status|progress|state|standing|
        overview|summary|stats|statistics|dashboard|health|how are we doing|status quo)[ (report|update|check|
        please|
        now|overview|of (everything|the project|things|all|the work|play)|bar|today|overall)]*
    (status|progress|state|details?|info|information|update|stats|overview|summary|completion|show|health|priority|
        owner|assignee|blockers?|dependencies|description|news|situation|statistics)[ (report|update|check|
        info)] [(of|on|for|about|with|regarding|in|:|to) ]<T>
    (status|progress|state|update) (of|on|for|about|with|regarding) <t>
    <t> (status|progress)
    <T> (status|progress|state|details|info|update|stats|overview|health|blockers|dependencies)[ (report|update|
        please|now|check)]*
    (are we|am i|is the project|is everything|are things|is it all|is it|is the work|are we all)[ (still|all|doing|
        going|now)]* (on track|on schedule|ok|okay|done|done yet|finished|there yet|behind|late|good|fine|well|
        making progress|ready|ahead|in good shape|blocked|stuck|nearly there|close|nearly done|almost done|
        making any progress|getting anywhere|progressing|still blocked|still on track)[ .*]
    (can|could) <T> (start|be started|begin|be finished|proceed|be closed)[ .*]
    (when) (will|is|are|should|does|can) <T>[ .+]
    (does|do) <T> [(still|also|really|even) ]*(depend|need|have|wait|block|belong|require|rely|exist|count|look|
        contain|include|hold)[ .+]
    (?P<target_named>(?:~KIND )?#?\d+)
find
    (is|was|are|were) <v> (mentioned|noted|written|recorded|written down|noted down)[ (anywhere|somewhere|
        in the notes)]
    (i am |we are )?(looking|searching) for (what|where|anything|whatever) (we|i|you) (wrote|said|noted|know|have|
        decided|put|recorded)[ down] (about|
        on|regarding|for) <v>
    did (i|we|anyone|somebody|someone|you) [(ever|already|even) ](write down|note|note down|record|jot down|
        mention|say anything about|save|keep) <v>
    (what|where) (is|was|were|are) (that|the|this|those|the other) (thing|bit|stuff|note|point|part|remark|
        comment|line|entry|idea)[ (we|i) (had|
        wrote|said|noted)] (about|on|with|regarding|concerning) <v>
    (~KIND|items|notes|decisions|entries|things|everything|anything) (about|regarding|mentioning|concerning|
        that mentions?|
        that talks? about|related to|to do with|containing|with the words?) <v>
    (does|do|did) (any|some|one|our|the)[ (of the|of our|other)] (~KIND|items?|notes?|decisions?|entries|entry|
        one)[ ever| already] (talk|speak|mention|say|deal|refer|contain|have|
        touch|cover)[ (anything|something)][ (about|of|with|to|on|regarding)] <v>
    (find|search|locate|look|hunt|dig|scan|query|grep|look around|browse|seek|fetch|lookup|recall|retrieve|trace|
        track down|dig up|dig out|look up|pull up|bring up|check)[ (me|us|through|out|up|everywhere|around|in|all|
        again)]* (for|the notes for|the memory for|memory for|our memory for|the history for|the log for|
        the decisions for|everything for|everything about|everything on|all about|anything about|anything on|
        anything with|anything that mentions|the backlog for|notes on|notes about|notes for|our notes for|
        everything that mentions|everything related to|what we know about|what we said about|all mentions of|
        all mention of|mentions of|references to|every mention of|any mention of|things about|stuff about|
        where we) <v>
    [(i am|we are) ](looking|searching|hunting) for [(anything|something|everything|all|the|any|notes|tasks|stories|
        items)] [(that has|that have|which has|having|with|to do|about|on|that mentions?|mentioning|regarding|
        related|
        in connection)[ to do]* (with|to)?] ?<v>
    (find|search|locate|look up|lookup|grep|hunt down|track down|dig up|dig out|query|retrieve|look for|search for|
        seek|hunt for|scan for|recall|search memory for|remind me (of|about))[ (me|us|out|all|again)]* <v>
    (where) (is|are|was|were|did|do|does|have|has|can i find|could i find|'s|in the .+ is) <v>
    (is|are|was|were) there (anything|something|any|a|an|some|one|already a|already an|already something|
        any mention of|any note|any notes)[ (note|notes|decision|decisions|mention|record|info|information|other|
        ~KIND|word|document|documentation)] (about|on|for|with|called|named|regarding|concerning|related to|of|
        mentioning|that mentions?|that (deals?|has|have) .*with|dealing with|covering|in memory about|like|
        similar to|
        touching|around|that covers?|that says|that talks about|which mentions?) <v>
    (do|did|have|has) (we|you|i|anyone|anybody|someone|somebody)[ (already|ever|even|still|not|also)]* (have|got|
        know|
        say|said|note|noted|write|written|write down|written down|mention|mentioned|discuss|discussed|record|
        recorded|
        decide|decided|talk|talked|remember|save|saved|store|stored|heard|track|keep|kept|written anything|
        noted anything|said anything|see|seen)[ (down|anything|something|any|a|an|some|already|what|ever|the|one|we|
        have|things)]*[ (note|notes|decisions?|mention|record|~KIND|written|noted|saved|stored|recorded|info|
        information|said|decided)]* (about|on|for|with|called|regarding|concerning|related to|of|that mentions?|
        mentioning|covering|in memory about|around|to do with|like) <v>
    (what|which|anything|everything|something)[ (do|did|have|has|was|were|is|are|had|all)]* (we|you|i|the team|they|
        it|anyone|memory|the memory|the notes|our notes)[ (all|already|ever|just|last|currently|really|actually|
        finally)]* (know|say|said|note|noted|write|written|decide|decided|discuss|discussed|agree|agreed|record|
        recorded|mention|mentioned|remember|have|talk|talked|find|found|learn|learned|conclude|concluded|got|stored|
        store|think|written down|write down|come up with|settle|settled|plan|planned|tell you|told you)[ (down|up|
        anything|stored|noted|written)]* (about|on|for|regarding|concerning|with|of|related to|as to|in terms of|
        around) <v>
    (what|which)[ (was|were|is|are|'s)] (the |our |my |all |any |your )*(decisions?|notes?|conclusions?|agreements?|
        rules?|plans?|ideas?|discussions?|story|information|deal|verdict|policy|guidelines?|outcome|final word|
        position)[ (we made|made|again|taken|i made)] (about|on|for|regarding|concerning|with|around|of|as to) <v>
    (what|which)[ (did|have|do)] (we|i|you|the team)[ (just|already|have|finally|ever)] (decided?|agreed?|noted?|
        said|
        say|chosen?|chose|choose|concluded?|picked?|settle|settled|planned?|write|wrote|used?|recorded?) (about|on|
        for|regarding|concerning|with|to use for|to do about|to do with|in) <v>
    (which|what)[ (was|is|of|one|other)]* [the ](~KIND|one|ones|decision|decisions|note|notes|item|items|work|
        operation|things?|place)[ (was|were|is|are|it)] [(that |which )](mentions?|mentioned|about|covers?|covered|
        contains?|contained|has|had|deals? with|dealt with|talks? about|talked about|refers? to|referred to|touch|
        touches|touched|related to|relate to|concerns?|speaks? of|is about|are about|has the word|have the word|
        has to do with|have to do with|involves?|handles?|says?|said|includes?) <v>
    (show|list|give|tell|get|display|bring up|pull up|see|let me see|dig up|bring)[ (me|us)] [(me|us|
        back) ](everything|anything|all|something|what we (know|have|said|wrote|noted|decided|have noted)|what (you|
        i) (know|have|said|wrote|noted)|what is known|all notes|notes|all the notes|the notes|all decisions|
        decisions|
        the decisions|all we (have|know)|everything we (have|know|said|decided)|what there is|any notes|my notes|
        our notes|our decisions|items|things|the discussion|the history|all mentions|every mention|mentions|
        all items|
        stuff|whatever we (have|know))[ (there is|we have|we know|you have|you know|that is|that we have|related|of|
        made)] (about|on|for|regarding|concerning|with|mentioning|that mentions?|related to|that contains?|of|
        containing|to|around|matching|that has to do with|named|called) <v>
    (show|list|give|tell|get|display)[ (me|us)] (all |the |any |every |our |my |all the )*(~KIND|items|work|things|
        notes|decisions|work items|cards|issues) (about|regarding|concerning|mentioning|that mentions?|related to|
        containing|that contains?|matching|with the words?|around|that are about|which mentions?|
        that have to do with|
        named|called|that deals? with) <v>
    (anything|something|everything|any (notes?|mention|decisions?|info|information|mentions|word|~KIND)|notes|
        decisions|info|information)[ (there is|we have|we know|known|in memory|in the notes|noted|said|written|
        recorded|at all)] (about|on|regarding|concerning|mentioning|that mentions?|related to|of|around|to do with|
        with|for|that deals with|from) <v>
    (tell|inform|remind|talk)[ (me|us|to me)] (about|of|more about|everything about|all about|what you know about|
        what we know about|what we (decided|said|noted|agreed|know|have) (about|on|for|regarding)|what i said about|
        something about) <v>
    (who|when) (mentioned|noted|talked about|brought up) <v>
    (who|when) (said|wrote) (?=(about|down|that|this|it|we|i|to|on|the (note|notes|comment|decision|remark|
        line))\b)<v>
"""
