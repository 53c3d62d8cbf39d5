"""The patterns of who works on what, what it is called, and how far it is.

Written as in `intent_words`, headings as in `intent_rules`.
"""

from __future__ import annotations

WORK = r"""
assign/
    (take|remove|unassign) <n> (off|from) <T>
    (remove|clear|drop|delete) (the|its) (assignee|owner|assignment)[ (of|from|on|for) <t>]
    (assign|give) <t> to (nobody|no one|no-one|none)
    (clear|remove|drop) <t> 's (assignee|owner)
    <T> (~BE) [~ADV ](unassigned|assigned to (nobody|no one)|free for anyone)
    (nobody|no one) (should|needs to|has to|is to|must|may) (own|have|do|handle|take|be on|work on) <T>
assign/me
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
    (assign|reassign|re-assign) <T> (from|away from) \S+ to <n>
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
    !(put|place|set|get|stick|throw) <n> (on|onto|in charge of|on to|to work on) <T>
    !(assign|reassign|allocate|delegate|appoint|designate) <n> (to|on|onto|for) <T>
    (give|hand|pass|assign|reassign|delegate|allocate|offer) <n> <T>
    <T> (is|are|'s|goes|go|belongs|should go|will go|gets|has to go|is going|was|should be|must go|has been|
        needs to go|needs to be|can go|will be|shall go)[ (now|over|all|both|also|being)] [(assigned|reassigned|owned|
        handled|done|taken|taken over|led|given|handed|worked on|picked up|delegated|passed|taken care of|
        handed over) ](to|by|with|for|over to) <n>
    <T> (is|'s) <n> 's[ (job|task|now|responsibility|baby|problem|to do)]
    <n> [(now|also|gladly|already) ](takes|will take|is taking|owns|will own|gets|should take|should get|should have|
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
    owner of <T>[ (is|:|should be)] <n>
    <T> 's (owner|assignee) (is|should be|will be|becomes|must be|:)[ now] <n>
    <n> , [you ](take|take on|take over|do|handle|own|grab|pick up|look after|take care of|deal with|tackle|have) <T>
    (the )?(owner|assignee|responsible|responsible person|person responsible|lead) (of|for|on) <T> (is|:|should be|
        becomes|will be)[ now] <n>
rename
    (rename|retitle|re-title|re-name|relabel|rechristen|rebrand) <t> (to|as|into|in|->|:|=|from .+ to|-)[ :] <v>
    (rename|retitle|relabel) <t> "q"
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
    <T> (gets|is to be|will be|is being|is to get|has been|was|is)[ (now|also)] (renamed|retitled|relabelled)[ (to|as|
        into)] <v>
    (change|set|update|edit|make|switch) [(the|its) ](title|name|label) [(of|for|on) ]<T> (?P<value>"q")
    (its|the) [new ](name|title) (is|should be|shall be|will be|must be|becomes)[ now] <v>
    !(call|name|title|entitle) <T>[ (now|rather|instead)][ (to|as|:)] <v>
    <T> 's [new ](name|title) (is|should be|will be|becomes)[ now] <v>
    !(rename|retitle) <T> <v>
    <T> (gets|has) a new (name|title) [: |, |- ]<v>
finish
    ~MARK <t> [(as|to|into|over to|in|be|is) ][(being|having been|the|been) ]~DONE[ (now|status|column|state|please|
        already|too)]
    ~MARK (as |to )?~DONE[ :] <t>
    (set|change|update|move) (the )?status (of|on|for) <t> to ~DONE
    (set|change|update|move) <t> 's status to ~DONE
    (finish|complete|close|conclude|finalise|ship|resolve|end|deliver|accomplish|wrap|sign off|tick|tick off|
        check off|cross off|wrap up|close out|close off|close down|finish up|finish off|complete off|sign off on|
        mark off|knock out|polish off|check|cross|button up|bring to a close|put to bed|call it a day on|put a bow on|
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
    (i|we) (have )?(got|gotten) <t> (done|finished|working|over the line|out the door|completed|shipped)[ (now|today|
        at last)]
    <T> (~BE|'s) [~ADV ][~ADV ]~DONE[ (now|already|too|as well|at last|by now|then|again|today|as of today|yesterday|
        just now)]
    <T> (has|have|had|'s) [~ADV ](been )?(done|finished|completed|closed|shipped|resolved|delivered|wrapped up|landed|
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
    (start|begin|commence|initiate|launch|tackle|pick up|kick off|take up|take on|work on|get (going|started|cracking|
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
    (i am|we are|i|we|am|are)[ now| currently| just| already| busy| gonna be| also] (working on|starting|starting on|
        starting with|starting work on|on|beginning|beginning with|tackling|going to start|going to work on|
        kicking off|picking up|on to|in the middle of|moving on to|getting started on|getting started with|
        switching to) <t>[ (now|today)]
    [just |already |finally |now ](started|begun|kicked off|working on)[ (work|working|on|with)] <T>[ (now|today)]
    work (has|'s) (started|begun) on <t>
    work on <T> (starts|begins|is starting|has started|has begun|is under way|is underway)[ now]
    <T> (~BE|'s) [~ADV ]~PROGRESS[ (now|again|already|today|too)]
    <T> [(:|-|now|back) ]~PROGRESS[ (now|again|already|today|too)]
    !<T> (next|first|now|please|then)
resume
    (resume|continue|carry on|keep going|keep on|keep|go on|go back|get back|proceed|continue on|continue working|
        pick up again|go back to working|keep working|carry on working|get back to working|get back into|move forward|
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
    (resume|continue|carry on|keep going|keep at it|keep it up|go on|proceed|pick up again|continue where we left off|
        continue the work|continue working|keep working|press on|push on|move on|back to work|let us continue|onward|
        onwards|
        get back to it|get back to work)[ (now|then|from there|from here|work|working|with it all)]
    (un-pause|unpause|un-defer|undefer|reactivate|unshelve|bring back|take off hold|revive|resurrect|rekindle) <t>
    (take|bring) <t> (off hold|back|off ice|out of the (icebox|freezer|parking lot)|back in|back into play|
        off the shelf)
"""
