"""The patterns of who works on what, what it is called, and how far it is.

Written as in `intent_words`, headings as in `intent_rules`.
"""

from __future__ import annotations

WORK = r"""
assign/
    <T> (is|are) (not|no longer) (mine|my job|my task)[ (any more|anymore|any longer|now)]
    <n> (no longer|is no longer|does not) (works on|working on|work on|does|do|has|have|owns|own|on|handles|
        handling) <T>[ (any more|anymore)]
    (take|remove|unassign) <n> (off|from) <T>
    (remove|clear|drop|delete) (the|its) (assignee|owner|assignment)[ (of|from|on|for) <t>]
    (assign|give) <t> to (nobody|no one|no-one|none)
    (clear|remove|drop) <t> 's (assignee|owner)
    <T> (~BE) [~ADV ](unassigned|assigned to (nobody|no one)|free for anyone)
    (nobody|no one) (should|needs to|has to|is to|must|may) (own|have|do|handle|take|be on|work on) <T>[ (for now|
        now|yet|today|at all)]
assign/me
    (i am) the (owner|lead|assignee|one|responsible|person responsible) (of|for|on|doing) <T>
    (i will|i shall|i can|let me|i am going to|i would like to|i want to|i am|i) [just ](take|take on|take over|
        handle|own|grab|do|claim|be on|taking|taking on|handling|doing|grabbing|claiming|deal with|take care of|
        look after|have|pick up) <T>[ (myself|then|on|over|on myself|personally|on board|next)]
    !(take|grab|claim) <T>[ (myself|for me)]
    dibs on <T>
assign
    !(i|we) (need|want|would like) <n> on <T>
    (assign|reassign|re-assign|delegate|hand|hand over|hand off|pass|pass on|pass over|give|transfer|allocate|allot|
        entrust|attribute|shift|switch|delegate responsibility (for|of)|handoff|turn over|route) <t> [(over|off|on|
        back|along|
        out|all|both|now) ][from \S+ ]to <n>
    (assign|reassign|re-assign|swap|switch|transfer|move|hand|change|shift) <T> (from|away from) \S+ to <n>
    (assign|reassign|delegate|allocate) <T> (at|for) <n>
    (assign|reassign|delegate|give|hand) (?P<target_named>(it|(the )?(~KIND )?#?\d+)) <n>
    !(toss|throw|chuck|lob|put|shoot) <T> [over ](to|at) <n>
    !(move|send|forward|leave|bring|offer|turn) <T> [over |on ](to|with) <n>
    (set|change|update|switch|make|put) (the|its|their) (assignee|owner|responsible|lead|person) [(of|for|
        on) <t> ](to|as|:|=|be) <n>
    (set|change|update|make|switch) <t> 's (assignee|owner|lead) (to|as|be|=|:) <n>
    (set|make) <n> (as|the|as the|to be the|be the) (assignee|owner|lead|responsible|responsible person|
        person responsible|one responsible|person in charge) (of|for|on|to) <t>
    (make|hold) <n> (responsible|accountable|the responsible|the one responsible) (for|of) <t>
    (let|have|make|get|ask|tell) <n> (do|to do|handle|to handle|take|to take|take on|to take on|work on|to work on|
        own|to own|tackle|to tackle|deal with|to deal with|take over|to take over|take care of|to take care of|
        look after|to look after|look at|to look at|pick up|to pick up|finish|to finish|run with|to run with|
        look into|to look into|start|to start|get on|to get on|have|work|to have|get|lead|to lead) <T>
    (let|have|get|make) <n> (take over|to take over|step in|to step in|jump in|
        fill in) [from \S+ ][from \S+ \S+ ](on|with|for) <T>
    !(put|place|set|get|stick|throw) <n> (on|onto|in charge of|on to|to work on) <T>
    !(assign|reassign|allocate|delegate|appoint|designate) <n> (to|on|onto|for) <T>
    (give|hand|pass|assign|reassign|delegate|allocate|offer) <n> <T>
    <T> (is|are|'s|has gone|have gone|'s gone|went|goes|go|belongs|should go|will go|gets|has to go|is going|was|
        should be|must go|has been|
        needs to go|needs to be|can go|will be|shall go)[ (now|over|all|both|also|being)] [(assigned|reassigned|
        owned|
        handled|done|taken|taken over|led|given|handed|worked on|picked up|delegated|passed|taken care of|
        handed over) ](to|by|with|for|over to) <n>
    <T> [(is|are|should|must|will|has|needs|ought|shall|can|may|is going|will now|shall now) ](to be|be) (done|handled|
        taken|owned|finished|completed|taken over|taken up|picked up|led|dealt with|taken care of|managed|overseen|
        covered|
        supervised|attended to|
        written|run|looked after) by <n>
    <T> (is|are|'s) (yours|for you|your job|your task) ,[ dear] <n>
    <T> (is|'s|should be|will be|becomes|can be|could be) <n> 's[ (job|task|now|responsibility|baby|problem|to do)]
    <n> [(now|also|gladly|already) ](takes|will take|is taking|owns|will own|gets|should take|should get|
        should have|
        handles|will handle|is handling|will do|is doing|does|should do|should handle|can take|can have|picks up|
        will pick up|is on|is working on|is responsible for|works on|takes over|will be taking|is going to do|
        is going to take|is going to handle|is going to work on|is in charge of|will work on|should work on|
        should own|can do|can handle|will be doing|has|will get|will look after|looks after|takes care of|
        will take care of|has taken|took|has picked up|has got|got|'s got|'s on|'s taking|'s doing|'s handling|
        will have|
        volunteered for|volunteers for|will lead|leads|wants|
        would like|is to do|must do|is the owner of|is the assignee of|will run with|will take on|takes on|
        should pick up|could take|is taking over|will take over)[ (on|over|care of|up)] <T>[ (over|on|now|from here|
        from now on)]
    (?!(i|we|you|they|it|that|this|he|she) )<n> [(now|also|kindly) ](will|shall|can|is going to|'s going to|is about to|
        's about to|is happy to|is to|'s to|should|must|has to|is keen to)[ (now|also|just|kindly)] (do|sort|sort out|
        handle|tackle|take|take on|take over|take care of|look after|see to|deal with|run|run with|lead|cover|manage|
        own|have|get on with|work on|pick up|attend to|oversee|supervise|mind|look into|check on|be responsible for|
        be in charge of) <T>[
         (now|from now on|from here|too|as well)]
    <n> (overtakes|supervises|oversees|is looking after|'s looking after|is taking care of|is covering|'s covering|
        is leading|
        is running|'s running|is dealing with|'s dealing with|is sorting|'s sorting|is sorting out|'s sorting out|
        is seeing to) <T>
    owner of <T>[ (is|:|should be)] <n>
    <T> 's (owner|assignee) (is|should be|will be|becomes|must be|:)[ now] <n>
    <n> , [(so|now|then) ]<T> (is|are)[ (all|now|officially|entirely|totally|completely)] (yours|your job|your task|
        your baby|your call|your problem|your responsibility|for you|with you|on you|on your plate|in your hands|
        over to you|down to you|up to you)
    <T> (is|are)[ (all|now|officially|entirely|totally|completely)] (yours|your job|your task|
        your baby|your call|your problem|your responsibility|for you|with you|on you|on your plate|in your hands|
        over to you|down to you|up to you|your department)[ now| then] , <n>
    over to (you|thee)[ now| then] (on|for|with) <T> , <n>
    <T> from \S+ to <n>
    (let|have|make|get) <n> (have|take|have another|take another) (a |an )?(go|look|crack|shot|stab|turn|swing|
        try) (at|on|with) <T>
    over to <n> (on|for|with) <T>[ (from now on|from here|from here on|now|then)]
    (one|a job|something|this one is|this is) for you ,[ dear] <n> (:|-|,|is) <T>
    [the ]ball is in <n> 's court (on|for|with|regarding) <T>
    [the ]ball (on|for) <T> is in <n> 's court
    <T> (lands|landed|falls|fell|sits|is|goes|went|is sitting|rests|belongs|ends up)[ (now|squarely|all)] (on|with|in|
        at|under|upon|
        into) <n> 's (desk|plate|list|hands|lap|court|shoulders|queue|inbox|door|name|tray)
    <n> , [you ](take|take on|take over|do|handle|own|grab|pick up|look after|take care of|deal with|tackle|
        have) <T>
    (the )?(owner|assignee|responsible|responsible person|person responsible|lead) (of|for|on) <T> (is|:|should be|
        becomes|will be)[ now] <n>
rename
    [(there is|i see|we have|i found|we found|i made|oops|sorry|just|noticed|spotted) ][a |an |the ](typo|typos|
        mistake|misspelling|
        spelling mistake|error|spelling error) in [the (title|name|heading|wording) of ]<T>[ 's (title|name|heading|
        wording)][ (,|:|-|;|\.)][ (so|and|
        please)] (should be|should read|should say|it should be|it should read|it should say|must be|must read|
        ought to be|meant to be|
        supposed to be|make it|make that|it is|is|it must be|change it to|correct it to|correct is|fix it to|->|to|
        correct|correctly|
        right is|read|i meant)[ :] <v>
    <T> 's (title|name|heading|label|wording) (is|has|was|got|reads|sounds) ~BADLY[ (,|:|-|;)][ (so|and|please|let us|
        better)] (call it|make it|
        name it|rename it|rename it to|retitle it|change it to|it should be|it should say|it should read|should be|
        should say|should read|
        better|it must be|better call it)[ :] <v>
    (the |its )?(title|name|heading|label|wording|spelling) (of|on|for|in) <T> (is|has|was|got|reads|
        sounds) ~BADLY[ (,|:|-|;)][ (so|and|please|
        let us|better)] (call it|make it|name it|rename it|rename it to|retitle it|change it to|it should be|
        it should say|it should read|
        should be|should say|should read|better|it must be|better call it)[ :] <v>
    <T> (has|got|carries|bears) ~BADLY (title|name|heading)[ (,|:|-|;)][ (so|and|please|let us|better)] (call it|
        make it|name it|rename it|
        rename it to|retitle it|change it to|it should be|it should say|should be|better|better call it)[ :] <v>
    <T> 's (name|title|heading|label) (should|must|ought to|is to|shall|has to|needs to|had better) (be|read|say) <v>
    (the |its |a )?[(right|proper|correct) ](name|title|heading|label|wording) (of|for|on) <T> (should|must|ought to|
        is to|
        shall|has to|needs to|had better|can)[ (now|really|rather|actually)] (be|read|say|become)[ (changed to|as|
        :)] <v>
    <T> (would be|is|'s|might be|may be|could be|will be|would have been|would read)[ (much|far|a lot|rather|
        perhaps)] better [(off ]
        ](called|named|titled|as|renamed|known as|styled|labelled|worded as|worded|phrased as|described as|put as) <v>
    <T> (could|can|could do|might do|would do)[ (better|well)] with (being|getting|having been)[
         ](called|named|titled|renamed|renamed to|retitled) <v>
    (i|we)[ would] (rather|sooner|prefer|prefer to)[ (have|see|had|that|
        if)] <T>[ (was|were|be|to be|got|is)] (called|named|titled|renamed to|renamed as|renamed|retitled|entitled|
        known as|
        labelled) <v>
    <T> [(,|:|-) ][the |its |a ]new (title|name)[ (is|:|-|=|should be|will be|->|to be)][ :] <v>
    <T> (is|was|has been) (misspelled|misspelt|misnamed|mistyped|mislabelled|wrong|wrongly named|spelt wrong|
        spelled wrong|named wrong|called the wrong thing)[ ,][ (so|and)] (it|that) (is|was|should|ought|must|
        has)[ (to|
        meant|supposed|be|read|say|called|have been|been|really)]* <v>
    <T> (should|must|ought to|shall|has to) (say|read) <v>
    <t> (should|must|ought to|shall|needs to|has to)[ (now|really|rather|better)] be (called|named|titled|renamed|
        renamed to|
        retitled) <v>
    (i|we)[ would] (prefer|want|like|need|wish)[ for] <T> to be (called|named|titled|renamed|known as)[ to| as] <v>
    <T> has a (typo|mistake|spelling mistake|misspelling|wrong name|wrong title)[ in (its|the) (title|
        name)][ ,][ (so|and)] (it
        |that )?(should|ought to|must) (be|read|say)[ called] <v>
    (the proper|the right|the correct|the real|a better|the better|the new|the full) (name|title) (for|
        of) <T> (is|should be|:|would be|-)[ :] <v>
    <T> (gets|has|needs|should get|must get) (a|the) (new|better|different) (name|title)[ (,|:|-)] <v>
    (shorten|lengthen|abbreviate|simplify|extend|trim|cut) [(the title|the name|title|name) (of|on|for) ]<T> to <v>
    (change|alter|correct) (?P<target_named>"q") to (?P<value>"q")
    (the title|the name|the spelling|the wording|the label|title|name|spelling) (of|on|for|in) <T> (is|
        was) (wrong|not right|off|misspelled|
        misspelt|bad|outdated|old|misleading)[ (,|:|-)][ (so|and|please)] (make it|it should be|it should read|
        it should say|change it to|should be|call it|it must be|it is|it ought to be) <v>
    (name|title|the name|the title|new name|new title|the new name|the new title|a new name|a new title) (for|of|
        on) <T> (:|-|is|=|should be|,|to|shall be|will be|must be|ought to be)[ :] <v>
    (i|we)[ have] (misspelled|misspelt|mistyped|misnamed|mislabelled|got the (name|title) wrong (of|on|
        for)) <T>[ ,][ (so|
        and|please)] (make it|it should be|it should read|it should say|change it to|should be|call it|it must be|
        it is|
        it ought to be|it was)[ (meant to be|supposed to be|meant to read|called|really)] <v>
    (rename|retitle|re-title|re-name|relabel|rechristen|rebrand) <t> (to|as|into|in|->|:|=|from .+ to|-)[ :] <v>
    (rename|retitle|relabel) <t> (?P<value>"q")
    (change|update|edit|correct|fix|mend|repair) (the|its|their) (title|name|label|spelling) (of|on|for|
        in) <T> , <v>
    (change|set|update|edit|correct|modify|fix|switch|make|replace|alter) (the|its|their) (title|name|label|heading|
        wording|titles)[ of| on| for] <t> (to|as|into|be|read|:|=|with|say|from .+ to)[ :] <v>
    (change|set|update|edit|correct|modify|fix|switch|make|alter) (title|name) (of|on|for) <t> (to|as|into|:|
        =)[ :] <v>
    (change|set|update|edit|correct|modify|fix|make|switch|alter) <t> 's (title|name|label) (to|as|into|be|read|:|=|
        say)[ :] <v>
    (change|set|update|edit|correct) (the|its) (title|name) (to|into|as|:)[ :] <v>
    (give|assign) <t> (the|a) [new |better ](title|name)[ of] [: ]<v>
    (the )?[new ](title|name) (of|for) <T> (should be|is|should read|will be|must be|shall be|becomes|
        ought to be)[ now| actually| really] <v>
    <T> (should|shall|must|ought to|needs to|has to|is to|will)[ (now|really|actually|rather|better|
        instead)] be [(called|named|titled|renamed|renamed to|retitled|retitled to|entitled|known as|labelled)] <v>
    <T> (is|'s|are)[ (now|actually|really|to be|from now on)] (called|named|titled|renamed to|known as|entitled|
        retitled) <v>
    <T> (should|shall|must|is to|has to) (have|get|bear|carry) the (name|title|label)[ of] [: ]<v>
    [the ]new (title|name|label) (of|for) <T> [: |, |- |= ]<v>
    <T> (gets|is to be|will be|is being|is to get|has been|was|is)[ (now|also)] (renamed|retitled|
        relabelled)[ (to|as|
        into)] <v>
    (change|set|update|edit|make|switch) [(the|its) ](title|name|label) [(of|for|on) ]<T> (?P<value>"q")
    (its|the) [new ](name|title) (is|should be|shall be|will be|must be|becomes)[ now] <v>
    !(call|name|title|entitle) <T>[ (now|rather|instead)][ (to|as|:)] <v>
    <T> 's [new ](name|title) (is|should be|will be|becomes)[ now] <v>
    !(rename|retitle) <T> <v>
    <T> (gets|has) a new (name|title) [: |, |- ]<v>
finish
    <t> [~ADV ](went|has gone|have gone|goes|is going|is gone)[ (finally|officially|now|just)] live[ (now|today|at last|
        yesterday|this morning|last night|earlier|already)]
    (put|place|add|stick|make) a (tick|check|check mark|checkmark|tick mark) (against|next to|on|beside|by|behind|
        to) <T>
    (job done|mission accomplished|all sorted|case closed|game over|finish line reached) (on|for|with) <T>
    ![(this|that) ](closes|fixes|resolves|completes|finishes) <T>
    [(i|we|just|finally|now|have) ]*(deployed|merged|released|rolled out|pushed|landed|shipped) <T> (to|into|on|
        in) (the )?(prod|
        production|main|master|trunk|main branch|live)[ (now|today|yesterday|this morning)]
    <T> [(has|is|was|got|been|just|finally|now) ]*(landed|merged|deployed|released|shipped|rolled out|pushed|live|in|
        out) (on|in|to|into) (the )?(prod|
        production|main|master|trunk|main branch)[ (now|today|yesterday|this morning)]
    (that|this|which) (completes|finishes|concludes|wraps up|closes|settles) <T>
    (no|no more|no further|nothing) (work|more work|further work)[ is] (needed|required|left|necessary|
        remaining) (on|for|in) <T>
    (done|finished|through|complete|completed|sorted|set|all done|all finished|all set) (on|with|for|in) <T>
    (nothing|nothing else|nothing more|no work|there is nothing|there is nothing more|there is no work) [(is|
        are) ](left|remains|remaining|outstanding|open|to be done|
        to do)[ (to do|to be done|open|to finish)] (on|in|for|with|under) <T>
    ~MARK <t> [(as|to|into|over to|in|be|is) ][(being|having been|the|been) ]~DONE[ (now|status|column|state|please|
        already|too)]
    ~MARK (as |to )?~DONE[ :] <t>
    (set|change|update|move) (the )?status (of|on|for) <t> to ~DONE
    (set|change|update|move) <t> 's status to ~DONE
    (finish|complete|close|conclude|finalise|ship|resolve|end|deliver|accomplish|wrap|sign off|tick|tick off|
        check off|cross off|wrap up|close out|close off|close down|finish up|finish off|complete off|sign off on|
        mark off|knock out|polish off|check|cross|button up|bring to a close|put to bed|call it a day on|
        put a bow on|
        cap off|round off|clear off)[ (with|out|off|up)] <t>[ (up|out|off|off the list|off my list|
        off our list|off the board|from the list|down|as done)]
    (sign|tick|check|cross|wrap|knock|polish|finish|close|round|button) <t> (off|up|out)[ (the|my|our) (list|
        board|plan)][ for good]
    (bring|put) <t> (to a close|to an end|to bed|to completion|behind us)
    [just |already |finally |have |has |all |now ](finished|completed|closed|wrapped up|shipped|resolved|delivered|
        done|wrapped|closed out|finished up|ticked off|through|knocked out)[ (up|with|out|off|:|-)] <T>[ (now|today|
        already|yesterday|just now|up)]
    (i am|we are|i|we)[ all| now| finally| already| just| pretty much] (done|finished|through|all done|
        ready) with <t>[ (now|already|at last)]
    (that is it|that is all|that does it|that is a wrap) (for|with|on) <T>
    (i|we) (have )?(got|gotten) <t> (done|finished|working|over the line|out the door|completed|shipped)[ (now|
        today|
        at last)]
    <T> (~BE|'s) [~ADV ][~ADV ]~DONE[ (now|already|too|as well|at last|by now|then|again|today|as of today|
        yesterday|
        just now)]
    <T> (has|have|had|'s) [~ADV ](been )?(done|finished|completed|closed|shipped|resolved|delivered|wrapped up|
        landed|
        gone live|passed)[ (now|already|too|as well|today)]
    (close|close out|mark) <T> [as |: |- ]~DONE
start
    ~MARK <t> [(as|to|into|over to|in|be|is) ][(being|the|an) ]~PROGRESS[ (now|status|column|state)]
    ~MARK (as |to )?(in progress|started)[ :] <t>
    (set|change|update|move) (the )?status (of|on|for) <t> to ~PROGRESS
    (set|change|update|move) <t> 's status to ~PROGRESS
    (start|begin|commence)[ (up|out|off|again)] (work|working|doing|development|coding|implementing|with|on|in on|
        implementation|off with|out with|to work|to work on|building|tackling|to do|the work)[ (on|of|
        with)] <t>[ (now|today|again)]
    (start|begin|commence|initiate|launch|tackle|pick up|kick off|take up|take on|work on|get (going|started|
        cracking|
        working|moving|to work|rolling|busy) (on|with)|get on with|get into|get to|jump (on|into|onto|to|right into|
        in on)|dive (into|in to|right into)|reopen|re-open|activate|turn to|move on to|move onto|move to|
        crack on with|focus on|concentrate on|get to work on|switch to|switch over to|dig into|have a go at|attack|
        set off on|step into|
        restart|go for|on to|onto|embark on|set about|fire up|get down to|begin to work on|engage|make a start on|
        make a start with|spin up work on|get stuck into|be working on|head into|go with|proceed to|
        put in progress) <t>[ (now|today|again|then|straight away|up)]
    (kick|pick|start|fire|take) <t> (off|up)
    (kick|get|start|set) (things|it|this) (off|going|rolling|started|moving) (with|on|by doing) <t>
    (put|bring|take) <t> (in|into) (progress|work|motion|play|development|action)
    !(do|open|open up) <T>[ (now|today|then)]
    (i am|we are|i|we|am|are)[ now| currently| just| already| busy| gonna be| also] (working on|working at|starting|
        starting on|
        starting with|starting work on|beginning|beginning with|tackling|going to start|going to work on|
        kicking off|picking up|on to|in the middle of|moving on to|getting started on|getting started with|
        switching to) <t>[ (now|today)]
    (i am|we are|i|we|am|are)[ now| currently| just| already| busy| also] on (?!(the |my |our |a )?(holidays?|
        vacation|leave|call|phone|train|bus|
        tram|plane|road|way|move|fence|line|team|edge|break|duty|site|strike|budget|time|schedule|track|sick|parental|
        other|same|safe|roof|
        toilet|incident)\b)<t>[ (now|today|next)]
    !on <T> (now|next|today)
    [just |already |finally |now ](started|begun|kicked off|working on)[ (work|working|on|with)] <T>[ (now|today)]
    work (on|with|for) <T> (started|began|begun|commenced|got going|got under way|is on)[ (yesterday|today|
        this morning|last \S+|
        on \S+|already|now)]
    (am|are|i am|we are|currently|now|presently) (currently |now |really |very )*(busy|occupied|engaged|underway|
        under way) (with|on|in) <T>
    work (has|'s|is) [now |finally |also ](started|begun|commenced|kicked off|under way|underway|got going|
        got under way) (on|
        with|for) <t>
    work on <T> (starts|begins|is starting|has started|has begun|is under way|is underway)[ now]
    <T> (~BE|'s) [~ADV ]~PROGRESS[ (now|again|already|today|too)]
    <T> [(:|-|now|back) ]~PROGRESS[ (now|again|already|today|too)]
    !<T> [(is|comes|goes|be) ](next|now)
    !<T> (next|first|now|please|then)
resume
    (continue|carry on|resume|go on|start again) from (yesterday|last (time|week|night|\S+day)|before|there|here|
        this morning|earlier)
    (go|come|get|back) [back ]to (what|where|whatever) (we|i) (were|was|had|left)[ (doing|working on|at|off|
        stopped)]
    (pick|take) <t> up (where|from where) (we|i) (left|stopped)[ (it|off|that)]
    (resume|continue|carry on|keep going|keep on|keep (at|working|doing)|go on|go back|get back|proceed|continue on|
        continue working|
        pick up again|go back to working|keep working|carry on working|get back to working|get back into|
        move forward|
        press on|push on|press ahead|push ahead|forge ahead|move along|go ahead|stay|hop back|jump back|come back|
        switch back|back|return|dive back|keep at|follow up|march on|plough on|crack on|get on)[ (work|
        working)][ (with|on|to|to working on|into|at|at it with|in|onto|going with|doing|from|up with|
        up on)] <t>[ (again|now|where we (left|stopped)[ off]|from (there|here)|from where we (left|stopped)[ off]|
        then)]
    (pick|take) <t> (up|back up)[ again][ where (we|i|you) (left|stopped)[ off]]
    (pick|take) up [<t> ][again ](where|from where) (we|i|you) (left|stopped|were)[ (off|it|things)][ (with|
        on) <o>][ .+]
    (start|continue|resume|carry on|go on|proceed) [(again|from|on) ](where|from where) (we|i|you) (left|stopped|
        were)[ (off|it|things)][ (with|on) <t>][ .+]
    (resume|continue|carry on|keep going|keep at it|keep it up|go on|proceed|pick up again|
        continue where we left off|
        continue the work|continue working|keep working|press on|push on|move on|back to work|let us continue|
        onward|
        onwards|
        get back to it|get back to work)[ (now|then|from there|from here|work|working|with it all)]
    (un-pause|unpause|un-defer|undefer|reactivate|unshelve|bring back|take off hold|revive|resurrect|rekindle) <t>
    (take|bring) <t> (off hold|back|off ice|out of the (icebox|freezer|parking lot)|back in|back into play|
        off the shelf)
"""
