"""The patterns of what waits for what, what matters most, and what is put off.

Written as in `intent_words`, headings as in `intent_rules`.
"""

from __future__ import annotations

ORDER = r"""
prioritise
    (mark|keep|put|set|flag|treat|do|handle|take|take up|finish|make|note) [(on|as|in|at|with) ]<p> <T>
    (give|assign|grant|accord|attach) [(a|an|the|our|very|utmost|some|more) ]<p> (to|for) <T>
prioritise/2
    (do|take|take up|handle|finish|complete|treat|close|deliver|attend to|look into|keep) <T> (on|as a|
        at) priority[ basis]
    <T> (to|should|must|needs to|has to|shall)[ be] (done|taken|taken up|completed|finished|closed|handled|delivered) on
         priority[ basis]
prioritise/1
    <T> [(must|should|has to|needs to|shall|ought to|will|to) ](takes|take|has|have|gets|get) [absolute |
        top ](precedence|
        priority)( over (everything|all|the rest|anything|all others|all the others)[ .*])
    <T> (matters|counts) (most|the most|more than anything[ else]|more than everything[ else])
    (we|i|you|they) (need|want) <T> (asap|urgently|badly|right away|immediately|as soon as possible|
        before everything|before
        anything)[ else]
    (nothing|no one|nobody) (is|'s) (more|as) (important|urgent|critical|pressing) (than|as) <T>
    (do|finish|handle|tackle|take|get|start|treat) <T> (before|ahead of|above) (anything|everything|all)[ (else|
        other)]
    !<T> [(should|must|has to|needs to|shall) ](come|comes|go|goes|be) (first|on top|before everything[ else])[ now]
prioritise/1
    !<T> (asap|pronto|urgently|immediately|right away|straight away|first thing|before all else)
prioritise
    (?P<priority>p\d|p \d|priority \d) <T>
prioritise/higher
    !<T> [(goes|moves|one|a notch|a bit) ](up)[ (a (notch|bit|level|little)|one|one notch|in the (list|queue|backlog)|
        please)]
prioritise/lower
    !<T> [(goes|moves|one|a notch|a bit) ](down)[ (a (notch|bit|level|little)|one|one notch|in the (list|queue|backlog)|
        please)]
prioritise/5
    !<T> [(should|must|has to|can|shall) ](come|comes|go|goes|be) (last|at the end)[ now]
prioritise/higher
    <T> (matters|counts|weighs) more[ than <o>]
prioritise/lower
    (no|not much|no great|no real|there is no|there is not much|there is no great|there is no real) (rush|hurry|
        urgency|pressure)[ at all] (on|for|with|about|to do|to finish|
        to start|to close) <T>
    <T> (matters|counts|weighs) less[ than <o>]
    (nothing|there is nothing) (urgent|important|pressing|critical) about <T>
    <T> (~BE) [~ADV ]not [(so|that|very|really|too|all that|as|terribly|particularly) ](important|urgent|critical|
        pressing)[ (any more|
        anymore|now|any longer|after all)]
    <T> (~BE) [~ADV ](less important|less urgent|less pressing|less critical) than <o>
depend
    (we|i|you) need <O> (for|before|to do|to start|to finish) <T>
    <T> (is|are) [only ](possible|doable|feasible|allowed) (after|once|when|with) <O>[ ~BE][ ~DONE]
    <O> is a must (before|for) <T>
    (as long as|while|until) <O> (is|are) not [yet ]~DONE , <T> (can not|must not|will not|may not) (start|begin|
        go on|proceed|move|happen)
block
    <T> (has|have|has got|got) [now ](a|an|some|another) [new ](blocker|blockers|impediment|obstacle)[ (:|-|,|
        because of|due to) <o>]
    [(we|i|you|they) ]can not (continue|proceed with|finish|go on with|work on|move on with|progress with|start|do|
        complete|ship|carry on with|get on with|go ahead with|crack on with|move forward with|progress|continue with|
        get started on|get going on|do anything on) <t>[ (now|
        right now|yet|today|at the moment)] (because|since|due to|:|-|,|as) [of ]<v>
    [(we|i|they) ][are |am ][still |currently ](waiting|held up) (on|for|by) <o> (for|on|with|before starting|
        to start) <T>
unblock
    <T> (no longer has|has no|has not got|does not have|has got no) (any |more |a |further )*(blocker|blockers|
        block|impediment|impediments|
        obstacle|obstacles)[ (any more|anymore|any longer|now|left)]
    <T> [(:|-|,) ](blocker|blockers|block|the blocker|all blockers) [(is|are|has been|have been) ](resolved|gone|
        removed|cleared|fixed|lifted|solved)
    (take|remove|get|move) <T> (off|from|out of) the (blocked|blocker|blockers|waiting) (list|pile|column|board|
        lane)
    (unblock|unstick|free up|unfreeze) <t>
    (free|release|clear|unpark) <T>[ up| from (hold|being blocked|its block|its blocker)]
    (remove|lift|clear|take away|take off|drop|delete|resolve|get rid of) (the|its|any|every|all|their|
        all the) [hold |remaining ](block|blocks|blocker|blockers|blockage|blocking|impediment|impediments|hold|
        blocked (status|flag|state)|dependency|dependencies|obstacle)[ (on|from|for|of|between|off) <t>]
    (remove|clear|take|drop) [the ]blocker [<O> ](from|on|of|off) <T>
    (remove|clear|drop|delete) [the ]<O> (as a|as the|as) (blocker|dependency|prerequisite|block) (from|of|for|
        on) <T>
    (remove|drop|delete|clear) (the|a|its) (dependency|block|dependence) (on|to|of|by|from) <O> (from|of|for) <T>
    (remove|drop|delete|clear) (the|a) (dependency|block) (of|from|for) <T> (on|to|by) <O>
    ~MARK <t> [(as|to) ](unblocked|no longer blocked|not blocked|not blocked (any more|anymore)|free|clear|
        good to go)
    <T> (~BE) [~ADV ](no longer|not|not [~ADV ](longer )) (~STUCK|on hold|blocked any longer|waiting|waiting (for|
        on)|
        dependent on|depending on)[ (by|on|for) <o>][ (any more|anymore|now|any longer)]
    <T> (no longer|does not) (depends|depend|needs|need|waits|wait|relies|rely|requires|require)[ (on|
        for)] <O>[ (any more|anymore|any longer)]
    <O> (no longer blocks|does not block|is no longer blocking|is not blocking|has stopped blocking) <t>[ (any more|
        anymore|any longer)]
    <O> is no longer a (blocker|dependency|prerequisite)[ (for|of|on|to)] <T>
    [(the|its|every|all) ][remaining ](blocker|blockers|block|impediment|impediments|obstacle|hold|
        dependency)[ (on|for|
        of|to) <T>] (~BE|has been|have been|has|have|got) [~ADV ](gone|resolved|removed|fixed|cleared|lifted|solved|
        out of the way|over|done|history|no more|dealt with|sorted|sorted out|taken care of|closed|disappeared|
        gone away|finished)[ (now|already)]
    (no|no more) (blocker|blockers|block|blocks|obstacle|impediment|impediments) (on|for|in) <T>[ (any more|
        anymore|now|
        left)]
    <T> (can|may)[ (now|finally|again)] (proceed|continue|carry on|resume|be resumed|be continued|go on again|go ahead|
        move on|move forward|
        go on|start|begin|move|be worked on)[ (now|again|
        now again)]
    <T> 's (blocker|blockers|block|dependency|impediment|obstacle) (~BE) [~ADV ](gone|resolved|removed|fixed|
        cleared|
        lifted|
        solved|out of the way|over|done|closed)[ (now|already)]
    nothing (is blocking|blocks|is holding up|stops|keeps|holds up|holds back) <t>[ (any more|anymore|now|back)]
    [(i am|we are|i|we|am|are) ](no longer|not|not any longer) [(being|getting) ]~STUCK[ (up|back)] (on|with|at|in|
        by) <T>[ (any more|
        anymore|now|any longer)]
    [(so|and|but) ](what|whatever|the thing that) (held up|blocked|was blocking|was holding up|stopped|
        held back) <T> (~BE|has been|has) [~ADV ](gone|
        fixed|solved|resolved|here|there|over|done|cleared|out of the way|dealt with)
depend
    there (is|should be|must be) (a|an) [new ](dependency|dependence) (between|from|of) <T> (and|to|on|upon) <O>
    (add|create|set|put|make|record|draw|introduce) (a|the) [new ](dependency|dependence|link) (from|for|to|of|
        between) <T> (on|to|upon|and|with) <O>
    (add|create|set|put|make|record) (a|the) [new ](dependency|dependence) (on|upon) <O> (to|for|from|of|in) <T>
    (add|set|make|mark|put|record|list) <O> (as|as a|as the|a|the) (dependency|prerequisite|requirement|
        precondition|
        predecessor) (of|to|for|on|in) <T>
    (add|list) (dependency|dependencies) <O> to <T>
    (make|let|have) <T> (depend|dependent|rely|wait|hinge|contingent|hang|follow|come|go|be dependent|
        be contingent)[ (on|upon|for|after)] <O>
    (make|let|have) <t> (depend|dependent|rely|be dependent|be contingent|contingent|wait) (on|upon|for) <o>
    (make|let|have) <T> (a|the) (prerequisite|dependency|precondition|requirement) (of|for|to) <o>
    <T> [(shall|should|must|will|has to|have to|needs to|is to|is going to|now) ](depends|depend|relies|rely|hinges|
        hinge|is dependent|are dependent|builds|build|hangs|is contingent|is depending|are depending|
        is conditional|rests)[ also| directly] (on|upon|from|of) <o>[ (being|getting|to be) ~DONE]
    <T> (has|have|got) (a|an|some) [hard |strict |strong ](dependency|dependence) (on|to|upon) <o>
    <T> (is|are|has been|have been|'s)[ (now|still|also|currently)] (waiting|pending|queued|dependent|
        conditional)[ (for|on|upon|behind|until|till)] <o>[ (to be|being|is|are|gets) ~DONE]
    <T> (waits|wait|has to wait|have to wait|must wait|needs to wait|need to wait|should wait|will have to wait|
        is to wait|will wait)[ (for|on|until|till|behind)] <o>[ (to be|being|is|are|gets|to get) ~DONE]
    !<T> (needs|need|requires|require|will need|must have|presupposes|assumes|calls for) [first |also ]<O>[ to be|
         being][ ~DONE][ (first|before|beforehand)]
    <T> (needs|need|requires|require) <O>[ to be| being][ ~DONE] (first|before|beforehand|before that|to start|
        before it can start)
    <T> (comes|come|goes|go|runs|run|should come|should go|must come|must go|has to come|has to go|follows|happens|
        should happen|is to come|can only come|can only start|can only begin|starts|start|should start|must start|
        begins|only starts|is scheduled|should be done|must be done|has to be done|gets done|should follow|
        can only be done|can only be started) [only ][right |straight |directly ](after|once|when|behind|
        upon) <O>[ ~BE][ has been][ ~DONE]
    <T> (will|should|must|shall|has to|needs to) follow <O>
    before <T> [(can|may|is|gets|could|will) ](start|starts|begin|begins|started|begun|happen|go ahead|be started|
        done)[ ,] <O> (has to|must|
        needs to|should|have to|need to) [be |get ](~DONE|finish|close|there)
    !<T> follows <O>
    <T> (can not|can never|must not|should not|may not|could not|will not|does not|do not) (start|begin|proceed|
        go ahead|be started|be done|happen|be finished|finish|be completed|go|move|move on|continue|be worked on|
        run|
        ship|close|go out|go live|come)[ forward| on| out] (until|till|before|unless|without|till after|
        until after) <O>[ (~BE|has|have|has been)[ (also|all|fully)] ~ARRIVED][ ~BE][ has been][ ~DONE]
    [(we|i|you) ](do not|can not|never|please do not) (start|begin|do|finish|touch|work on|pick up|ship|
        release|proceed with|go ahead with|move on with) <t> (until|till|before|unless|
        without|until after) <o> (~BE|has been|have been|has|have)[ (also|all|fully)] ~ARRIVED
    [(we|i|you) ](do not|can not|never|please do not) (start|begin|do|finish|touch|work on|pick up|ship|
        release|proceed with|go ahead with|move on with) <T> (until|till|before|unless|
        without|until after) <O>[ ~BE][ has been][ ~DONE]
    <t> (can not|can never|must not|should not|may not|could not|will not) (start|begin|proceed|go ahead|be started|
        happen|continue|go live|go out|move|move on)[ forward| on| out] (until|till|before|unless|until after) <o> (~BE|
        has been|have been|has|have)[ (also|all|fully)] ~ARRIVED
    (hold|keep|delay|block|postpone|defer|hold off on|hold off|hold back|hold up|wait with|park) <T> (until|till|
        before|until after) <O> (~BE|has been)[ ~DONE]
    <O> (must|has to|should|needs to|have to|need to|ought to|will have to|shall|is to) [first ](be (done|finished|
        completed|ready|closed)|come|go|happen|precede|finish|get done|be there|
        land)[ first][ ,][ before] <T>[ can (start|begin|be started|be done)][ (starts|begins)]
    <O> (comes|come|goes|precedes|is done|gets done|is first|happens)[ first] before <T>[ (starts|begins)]
    <O> (precedes) <T>
    <O> (is|are) (a|the|one) [hard ](prerequisite|dependency|precondition|requirement|predecessor)[s] (of|for|
        to) <T>
    <O> (is|are) (needed|required|necessary)[ (for|by|before|to start|to do|to finish|in)] <T>
    (do|finish|complete|put|place|schedule|get|have|run) <O>[ done| first] before [(starting|beginning|doing|
        we start|
        working on|you start|we do) ]<T>
    (do|start|begin|schedule|put|place|run|tackle|queue|work on|pick up) <T> [only ](after|once|behind|
        when) <O>[ ~BE][ has been][ ~DONE]
    !<T> [only ]after <O>[ ~BE][ has been][ ~DONE]
    !<O> before <T>
    (link|chain|tie|hook|connect) <T> to <O>[ as (a|its|the) dependency]
    <t> (depends|depend|relies|rely|hinges) on <o>
    <T> (is|are) (downstream of|subject to|tied to|chained to|behind) <O>
    depend <T> on <O>
    <T> (depends|depend) [(of|from|to) ]<O>
    <T> (blocked until|not before|not until) <O>[ ~BE][ has been][ ~DONE]
prioritise
    (raise|increase|up|bump|boost|lift|lower|decrease|reduce|drop|cut|set|change|make|update|put|bring|turn|edit|
        adjust|get) [up |down ][(the|its|their) ](priority|prio|importance|urgency)[ level] [(of|on|for) <t> ][up |
        down ](to|as|at|=|into) <P>
    (set|change|make|update|raise|lower|bump|drop|increase|decrease) [the ](priority|prio) (of|on|for) <t> (to|as|
        :|=|
        at) <P>
    (set|change|make|update|raise|lower|bump|drop) (priority|prio) <p> (on|for|of) <t>
    (set|change|make|update|raise|lower|bump|drop|increase|decrease|boost|reduce|get) <t> 's (priority|
        prio)[ level] (to|as|at|=) <P>
    (give|assign|grant) <t> [(a|an|the) ]<p>
    (set|make|mark|give|flag|move|bump|raise|lower|drop|push|put|upgrade|downgrade|change|turn|treat|label|tag|
        switch|
        crank|crank up|bring|escalate|promote|demote|prioritise|consider|rank|rate|increase|decrease|reduce|boost|
        reprioritise|
        declare|deprioritise|send|shift|cut|pull|lift) <t> [(up|down|back|all the way|straight|right) ][(to|as|at|a|
        an|into|with|in|on|:|be|as being|=|over to) ][priority |prio ]<p>
    <T> (~BE) [~ADV ]<p>[ (now|again|actually|instead)]
    <T> (has|have|gets|should have|needs|deserves|should get|must have|carries) [a |an ]<p>
    <p> (for|on|:|-|=) <T>
    (priority|prio) <T> [(to|:|=) ]<p>
    (the )?(priority|prio) (of|for|on) <T> (is|=|:|to|should be|becomes|must be)[ now] <P>
    <T> 's (priority|prio) (is|=|:|to|should be|becomes|must be)[ now] <P>
prioritise/1
    (move|push|put|bring|bump|get|pull|send|place|shift) <t> [up |right |straight ](to|at|on|in) (the|
        our) (very )?(top|front|head|start)[ (of|in) .+]
    <T> (~BE|comes|goes) [~ADV ](the most important|the top priority|number one|our top priority|
        the highest priority|
        what matters most|a must)[ .+]
prioritise/5
    (move|push|put|bring|bump|get|send|place|shift|drop) <t> [down |right |straight ](to|at|on|in) (the|
        our) (very )?(bottom|end|tail|back)( of .+)?
    (move|put|push|send) <t> last
prioritise/higher
    (raise|increase|up|bump|boost|lift|bump up|step up|crank up) [(the|its|their) ](priority|prio|importance|
        urgency)[ level][ (of|on|for) <t>][ up]
    (raise|increase|bump|boost|lift|up) <t> 's (priority|prio)
    (prioritise|escalate|expedite|bump|bump up|upgrade|raise|boost|move up|push up|fast track|fast-track|
        reprioritise|
        increase) <t>[ (up|higher|first|a notch|one level|by one|a level|to a higher priority|a bit|in priority|now|
        over everything[ else])]
    (move|push|put|bring|bump|rank) <t> (up|higher|forward|ahead|up front)[ (in|on) the .+][ a notch]
    (move|put|push|rank|prioritise|place) <T> (above|over|ahead of|before|in front of) <O>[ in the .+]
    (give|assign) <t> (more|a higher|higher|extra) (priority|importance|weight|prio)
    <T> (~BE) [~ADV ](more important|more urgent|a priority|the priority)[ than (we|i|you|they|it|before|ever|usual|
        expected|first|most) ?.*]
    <T> (~BE) [~ADV ](more important|more urgent|a priority|the priority)( than <o>)?[ (now)]
prioritise/lower
    (lower|decrease|reduce|drop|cut|bump down) [(the|its|their) ](priority|prio|importance|urgency)[ level][ (of|on|
        for) <t>][ down]
    (lower|decrease|reduce|drop) <t> 's (priority|prio)
    (deprioritise|downgrade|lower|bump down|move down|demote|push down|de-prioritise|de-prioritize|decrease|
        reduce) <t>[ (down|a notch|one level|by one|a level|in priority|now)]
    (move|push|bump|rank) <t> (down|lower)[ (in|on) the .+][ a notch]
    (move|put|push|rank|place) <T> (below|behind|under|after) <O> in the (backlog|list|plan|queue|order|priorities)
    <T> (~BE) [~ADV ](less important|less urgent|not urgent|not important|not that important|not so urgent|
        no longer urgent|not a priority|no priority)[ (now|any more|anymore)]
block
    (?P<value>\S.*?)[ ,| -| ;] (so|therefore|hence|thus|which means|that is why|so that means) [(now|
        at present) ]<T> (can not|
        is not able to|are not able to|will not be able to|is unable to|are unable to)[ now| currently] (move|
        proceed|continue|go ahead|go on|start|begin|happen|progress|be done|be started|be finished|go forward|
        move forward|move on)[ (now|yet|today|at the moment|any further|forward|further)]
    (set|mark|flag|make|move|put|add|record|list) <o> [as ](a|the) blocker (for|of|on|to) <t>
    (add|set|put|record|note|report|raise) (a|the) [new ](block|blocker|impediment|hold) (on|to|for|in) <t>[ ( : |
         - |
        because of |because |by )<o>]
    (add|put) [a |the ]blocker <O> (on|to|for) <t>
    ~MARK <t> [(as|to|is|into) ][being ]~STUCK [status ](because|since|as) (?!of )<v>
    ~MARK <t> [(as|to|is|into) ][being ]~STUCK [(:|-|,|~BY|waiting on|waiting for)] <o>
    ~MARK <t> [(as|to|is|into|in) ][the |being ]~STUCK[ status| state| column]
    ~MARK as ~STUCK[ :] <t>
    block <t> (because|since) (?!of )<v>
    block <T> [(on|by|with|behind|because of|due to|until|pending|via|using|thanks to|for|against) ]<O>
    <T> (~BE) [~ADV ]~STUCK (~BY|waiting for|waiting on|at|in|over|against|after|through) <o>
    (i am|we are|i 'm|am|are|got|getting|i got|we got)[ (still|now|currently|completely|totally)] ~STUCK (on|with|
        at|
        in) <t> (~BY|because|since) <o>
    (i am|we are|i got|we got)[ (still|now|currently|completely|totally)] ~STUCK (on|with|at|in) <t>
    ![(again|now|still|totally) ](stuck|stalled|jammed|held up)[ again| now] (on|with|at) <T>[ (because|since|:|-|
        ,) <v>]
    <O> (is|are|'s|has been|have been)[ (now|currently|still|also|actually)] (blocking|holding up|holding back|
        stopping|obstructing|impeding|preventing|a blocker for|a blocker of|a blocker on|the blocker for|
        the blocker of|in the way of|standing in the way of|what blocks|stalling|what is blocking|a blocker to) <T>
    <o> (blocks|holds up|stops|impedes|prevents|stalls|stands in the way of|is blocking|is holding up|
        is a blocker for|is a blocker of|are blocking|is stopping|keeps blocking|is stalling) <T>
    <O> block <T>
    <T> can not (proceed|continue|go on|move|move on|move forward|progress|be finished|be done|go ahead|
        start) [(because|
        since|as|due to|:|-) ](of )?<v>
defer
    <T> (is|are|will) not [be |going to ](be |get )?(happening|happen|done|going ahead|started|start) <w>
    <T> (is|are|will) not [be |going to ](be |get )?(happening|happen|done|going ahead|started|
        start) (?P<value>this (week|
        month|year|quarter|season|sprint|time))
    (stop|quit|pause) (work|working) on <t>[ <w>]
    (defer|postpone|delay|snooze|suspend|pause|shelve|backburner|table|park|push back|push out|push off|put off|
        hold off on|hold off|hold|set aside|lay aside|put aside|put on hold|put on ice|move back|leave|skip|stash|
        freeze|adjourn|reschedule|wait with|save|push|deprioritise|deprioritise|mothball|bench|punt on|punt|
        sideline) <t> [(out|back|off|over) ]<w>
    (defer|postpone|delay|snooze|suspend|pause|shelve|backburner|push back|push out|push off|put off|hold off on|
        set aside|lay aside|put aside|put on hold|put on ice|put on the back burner|mothball|sideline|punt on|punt|
        adjourn) <t>
    (defer|postpone|delay|snooze|suspend|pause|shelve|park|push back|put off|hold off on) <t> (until|till|to|by|for|
        because|because of|due to|:|-) <v>
    (park|table|hold off|hold|freeze|bench|stash|skip|leave) <t>
    (push|put|move|set|lay|leave|hold|kick|bump|shift|shove|keep|save|place|stick|take|send|mark|flag|change|
        switch) <t> [(as|to|be|over|onto|right|straight) ](back|off|aside|out|on hold|on ice|on pause|in pause|
        on standby|
        on the (back burner|shelf|backburner|back-burner|side|long finger|ice)|to the (back burner|backburner|side|
        icebox|back-burner)|into the (icebox|freezer|fridge)|off the table for now|hold|deferred|postponed|parked|
        paused|delayed|shelved|suspended|in the (icebox|freezer|parking lot)|to one side|
        on the to do later list|down the (road|line|track))[ <w>]
    (push|put|move|set|leave|hold|kick|bump|shift|shove|keep|save|place|do|reschedule|start|finish|tackle|handle|
        take up|take|pick up|begin|kick off|launch|attend to|see to|
        revisit|slip|roll|carry|look at|deal with|come back to|get back to|return to|get to|work on|take care of|
        worry about|schedule|drag) <t> [(out|back|off|over|again|on) ]<w>
    (push|put|move|bump|shift|reschedule|slip|defer|postpone|delay|drag|roll|slide|kick) (?P<target_named>(it|that|
        this|them|both|[the ]((~KIND) )?#?\d+|the
         .{1,50}?)) [(out|back|off|over|on) ](to|until|till|onto) (?P<value>[the ]((\d{1,2}(st|nd|rd|th)|first|second|
        third|fifth|tenth|
        \d{1,2}( of|\.)? (jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec|january|february|march|april|june|july|
        august|september|
        october|november|december))( of \S+)?|(jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec|mon|tue|wed|thu|
        fri|sat|sun)( \d{1,2}[a-z]*)?|the
         (next|following)( one)?))
    <T> (slips|slides|moves|shifts|goes|is moving|is slipping|gets moved|gets pushed|gets postponed|will slip|
        is not happening|
        will not happen|can not happen|is not going to happen|has to move|must move|should move)[ (out|back|
        over)] <w>
    (no time|i have no time|we have no time|there is no time|i have got no time|we have got no time|
        got no time) (for|to do|to start|to finish|to work on) <T>[ (now|
        today|this (week|month|sprint)|right now)][ , later]
    (do not|not|we are not|i am not|let us not|we will not|no) (do|doing|start|starting|work on|working on|
        bother with|bothering with|worry about|
        touch|touching|going to do) <T> (?P<value>today|this (week|month|sprint)|before .+)[ , .+]
    (do not|not|we are not|i am not|let us not|we will not|no) (do|doing|work on|working on|bother with|
        bothering with|worry about|touch|
        touching) <T> (now , .+|<w>)
    <T> [(:|-|,) ]not (before|until|till) (?P<value>\S.{0,40}?)
    let <t> (wait|rest|slide|sit|lie|sleep|slip)[ <w>]
    <T> (can|could|should|may|will have to|has to|have to|needs to|need to|must|is going to have to|might|
        will)[ (just|probably|
        definitely)] wait[ [a|for a] (bit|while|little)][ <w>]
    <T> (can|should|will|may) (be done|come|go|happen|be left|be pushed|be moved|slip|move|be dealt with|follow) <w>
    <T> (~BE) [~ADV ](deferred|postponed|on hold|parked|delayed|paused|on ice|suspended|shelved|pushed back|pushed|
        put off|put on hold|on the back burner|for later|not for now|something for later|not now)[ <w>]
    <T> [(:|-) ](on hold|on ice|on pause|deferred|postponed|parked|paused)[ <w>]
    not [now ](for|with) <T>
    !<T> (later|tomorrow|some other time|another time|not now|next (week|sprint|month))
    !(not <T> now)
    !<T> in (?P<value>(a|an|another|two|three|four|five|\d+|a few|a couple of) (days?|weeks?|months?|sprints?))
    !<T> not (?P<value>this (sprint|week|month|year|quarter|season|iteration)|today)
"""
