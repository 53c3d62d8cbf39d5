"""The words by which work is done and told of: verbs with their objects, and states that work is in.

Entries are parted by semicolons. In one, `|` parts words of which any may stand, `?` marks what may be missing, `my` is
any article or possessive, or none. `_` is the work, behind all else where it does not stand; a particle behind the verb
may also stand behind the work: "wrap up" is "wrap it up" as well. `who` is a person, `how` a priority, `so` a state of
those below. Tense, voice, subject and what else may stand around a command are no matter of the entries.
"""

from __future__ import annotations

VERBS = """
start
    start|begin|commence|initiate|launch|tackle|attack|activate|trigger|undertake|greenlight|green-light|reopen|
    re-open|restart; kick|start|fire|spin|boot|open|pick|take|lead off|up; kick _ into gear; start|begin|commence|
    kick|lead up|off|out|in? work|working|things|doing|with|on on|with?; get going|cracking|started|working|busy|
    rolling|moving on|with|onto; get to work|grips on|with; get _ going|started|rolling|underway|moving|cracking;
    get _ under way; get _ off my ground; get my ball|show rolling|moving|started|going on|with; get my show on my
    road with; get down to; get into; get onto; get on to; get on with; get|sink my teeth into; get my hands dirty
    with; get stuck|dug in|into; set _ in motion; set _ going|rolling|moving; set about; set to work on; set
    off|out|to on?; take my stab|crack|shot|swing|run at; have my stab|crack|shot|swing|go|run at; crack on with;
    crack open|into; dive|jump|hop|plunge|wade|delve|tear|tuck|dig|leap|step|move|launch straight|right|head? first?
    in? into|on|onto|to; roll up my sleeves for; break ground on|for; turn my attention|hand|focus? to; switch|shift
    over? to; go|have at; go to town on; make my start on|with; make headway|inroads on|into; give _ my
    go-ahead|nod; give _ my go|green ahead|light; put|bring|take _ in|into play|action|motion|work|effect; embark
    on|upon; proceed to; kick things|it off with; knuckle|buckle|get down to|on; throw myself into|at;
    focus|concentrate on; zero|home in on; bang on with; set sail on; push|press my button on; pull my trigger on;
    green light|signal for|on; go-ahead for|on; open _ for work|business; start|begin over|again with|on; be under
    way with|on; be working|busy|stuck on|with|in|into; be on|onto; be at work on; be in my middle of; be
    knee|waist|neck deep in; set|get|start|put my ball|wheels|things|show rolling|in|turning motion? on|with|for; be
    underway with|on; hack|code|chip|plug|beaver away? on|at; sit down to do|with|on?; be deep in; take my plunge|
        step on|with; work on; be getting
    into|onto; be now on; have
    started|begun on|with?; put my hand to; do
finish
    finish|complete|close|conclude|end|finalise|wrap|shut|tick|nail|crush|smash|ace|ship|deliver|land|fulfil|settle|
    resolve|sort|accomplish|achieve|seal|retire|archive; wrap|wind|tie|finish|mop|button|sew|clean up;
    finish|close|tie|polish|sign|tick|check|cross|knock|clear|round|cap|top|mark|pull|see|write|square off|away;
    sign off on; close|knock|sort|round|see|cross|straighten out; close|nail|shut|knock down; hand|turn in; see _
    through; put my bow|cap|finishing|final|last? touches? on; tie _ up with my bow; put|lay _ to bed|rest; put _
    behind us|me; bring _ to my close|end|completion|conclusion|finish; bring _ home; get _ done|finished|completed|
    sorted|shipped|closed|delivered|wrapped up|off?; get _ over and? done? with; get _ off my plate|list|desk|board|
    radar|chest; get _ out of? my way|door; get|push|drag|carry|bring|take|pull|haul _ across|over my finish? line;
    get _ in|into my bag|can; get done|through with; call it done|finished|quits|complete on; call it my day|wrap
    on; draw my line under; bring my curtain down on; stick my fork in; be done|through|finished|all|good with|on
    done? with?; power|blast|breeze|get|plough through; declare victory on; cross|reach|hit my finish? line|end
    on|with|of; strike|knock|cross|take|scratch _ off my to-do|todo? list|board; do my last|final bit of; give _ my
    final|last tick
block
    block|stall|jam|obstruct|impede|hinder|hamstring|hold up?; get stuck|hung|jammed up? on|with; run into my
    wall|problem|trouble|snag|roadblock on|with; hit my brick? wall|snag|roadblock|block|dead|bump end? on|with; be
    stuck|blocked|hung|stalled up? on|with; put|slap|place|stick my block|blocker|hold on; blocker|impediment|
    obstacle|block on|for
unblock
    unblock|unstick|unfreeze|unlock|unclog|unjam|free|release|liberate up?; clear|pave|open|make my way|path|road
    for; let _ proceed|continue|go|move ahead|on|through?; give _ my all clear?; give _ my all-clear;
    remove|lift|clear|take|drop|solve|resolve|release|undo my block|blocker|hold|brakes|lock from|on|off; get _
    unstuck|unblocked|unjammed|moving|going again?; set _ free; turn _ loose; let _ off my hook
defer
    defer|postpone|delay|park|shelve|table|mothball|pause|suspend|snooze|hibernate|adjourn|reschedule|hold|sideline|
    bench|backburner|back-burner|pigeonhole|ice|freeze|stash|skip|slip|push; put|push|set|lay|leave|shove|shunt|
    move|hold|tuck|bump|slide|kick|roll|carry|drag off|back|out|aside|over|away; hold|back|step|lay off|away
    on|with|from?; put|place|stick|set|keep|leave|leave _ on my hold|ice|pause|shelf|backburner|side|standby;
    put|place|stick|move|push|leave|keep _ on|to my back-burner|back burner?; put|stick|move|throw|toss|drop _
    in|into|to my icebox|freezer|fridge|drawer|mothballs|hibernation|later; put|move|stick _ in|into|to my
    parking|cold|deep lot|storage|freeze; put|push|move|set|shove|leave|keep|kick _ to|on|off my one? side; put my
    brakes|lid on; put|stick my pin in; put _ to sleep; leave _ for later|now; leave _ hanging|be|alone for? now?;
    push|kick _ down my road|line|track; kick _ into my long? grass|touch; kick my can down my road on; sit on;
    procrastinate|sleep on; keep|leave|hold _ pending|waiting for? now?; let _
    wait|rest|slide|sit|slip|lie|simmer|stew|marinate|sleep; stop|quit|pause|cease
    work|working on; take|have my break from; take my rain check on; take _ off my table for now; give _ my
    rest|break; save|keep|leave|do|start|finish|tackle|handle|revisit _ for? later; come|circle|get|go|return back?
    to _ later; deal|look with|at _ later; drop|skip|forget|ignore|leave about? _ for now; press|hit pause on;
    hit|pump my pause|brakes button? on; down tools on; wait with|on; call my halt|timeout on
resume
    resume|continue|reactivate|revive|revisit|resurrect|rekindle|unpause|un-pause|unshelve|un-shelve|unpark|undefer|
    un-defer|unfreeze; carry|go|keep|push|press|plough|plow|forge|move|march|soldier on|going|ahead|forward
    with|on|at; keep at|on|up working|with?; continue with|on|working|work on?; keep|carry|go on? working|
    doing on?; go|get|come|turn|jump|dive|hop|switch|head|swing|circle|
    step right? straight? back to|on|into|at work|working? on?; return to; pick|take|bring|start|open _ up?
    again|back up?; pick|take up again|back; pick|take|start up? _ again; dust|wake off|up|down; bring|breathe life
    back into; bring|get|have|take|pull|put _ back to|on|in life|track|progress|play|my agenda|table?;
    take|bring|get|pull _ off hold|ice|pause; take|bring|get|pull _ off|out of? my shelf|icebox|freezer|drawer|
    backburner; take|bring|get|pull _ off my back burner; proceed|stay with|on; stick with; back to|on|at|with
    work|working? on|with; on with; pick up my thread|trail on|of|with; be back on|at|to|with; keep _
    going|moving|rolling|alive; keep my ball|momentum rolling|going? on|with
higher
    boost|escalate|expedite|fast-track|rush|hurry|accelerate|promote|upgrade|prioritise|elevate|raise; fast track;
    bump|push|move|speed|step|crank|jack|ratchet|dial|turn up; hurry along|up; light my fire under; hurry up? with;
    raise|up|boost|increase|bump|lift my priority|prio|importance|urgency level? of|on|for; move|bump|push|nudge|
    pull|rank _ up? higher|forward|ahead; move|bump|push|nudge|drag|pull _ up in? my list|queue|backlog|ladder|
    ranking|notch|order; put more weight|emphasis|priority on; treat|make|mark _ as? more urgent|important|pressing;
    give _ my more|higher|extra|increased priority|weight|urgency|importance; give _ my boost|bump|push
lower
    deprioritise|de-prioritise|demote|downgrade|lower; play|tone|dial|bump|move|push|turn|knock down; dial back; no
    rush|hurry on|for; lower|reduce|drop|decrease|cut my priority|prio|importance|urgency level? of|on|for;
    move|bump|push|rank|nudge _ down? lower; move|bump|push|nudge|knock|drop _ down in? my list|queue|backlog|
    ladder|ranking|notch|order|peg; treat|make|mark _ as? less urgent|important|pressing; give _ my
    less|lower|reduced priority|weight|urgency|importance
top
    put|move|push|bring|rank|make|place _ first; put|move|push|bring|bump|send|place|get|shoot _ at|to|on my very?
    top|front|head; put|move|push|bring|bump|send|place|get _ at|to|on my very? top|front|head of my
    list|queue|backlog|line|pile|board|stack|agenda; put|place _ above|before|over|ahead of? everything|all else?;
    drop everything for; put _ front and center|centre; make _ my number|top|first|main|absolute|highest|our one?
    priority?; treat _ as my emergency
bottom
    put|move|push|rank|place _ last; put|move|push|bring|bump|send|place|drop _ at|to|on my very? bottom|end|back|
    tail|foot; put|move|push|bring|bump|send|place|drop _ at|to|on my very? bottom|end|back|tail|foot of my
    list|queue|backlog|line|pile|board|stack|agenda; put|place _ below|after|behind everything|all else?
level
    set|make|mark|flag|tag|label|give|bump|raise|lower|drop|move|put|push|rank|rate|treat|classify|consider|regard|
    see|declare|upgrade|downgrade|escalate|prioritise|turn|dial|crank|change|switch|shift|adjust|assign|stamp|call|
    keep|leave|schedule|promote|demote|reduce|increase|boost|kick|nudge|have|list|put|bring|cut|take|update|pull|
    send|lift|deprioritise|reprioritise _ up|down|back? to|as|at|with|on|into|in? my how; assign|give|set|put|slap|
    stick|stamp|apply|attach my how to|on|for _; set|change|make|bump|raise|lower|drop|move|switch|turn|put|update|
    adjust|edit|take|cut|bring my priority|prio|importance|urgency level? of|on|for _ up|down? to|as|at|be? how;
    set|make|change|bump|raise|lower my? priority|prio _ to|as? how
assign
    assign|reassign|give|hand|pass|delegate|transfer|entrust|allocate|allot|award|offload|outsource|farm|route|
    relay|turn|sign|shift|switch|swap|move|send|throw|toss|lob|kick|bounce|slide|fling|chuck|shoot|forward|refer|
    swing|bring|offer|leave|slip|hand-off _ over|on|off|along|out|back|down? to who; hand|pass|turn|farm|sign
    over|on|off|along|out _ to who; dump|drop|fob|palm|offload|unload|leave|foist|pin|land|stick _ off?
    on|onto|with|for who; assign|reassign|give|hand|pass|throw|toss|chuck|slide|allocate|offer|send|lob who _; pass
    my baton|torch|ball on? for|on|of _ to who; hand my reins of|for|on _ over? to who; put|drop|dump|leave|land|
    stick _ on|in|under|into|onto who 's plate|list|desk|queue|hands|court|name|lap|pile|shoulders; put|get|stick|
    set|move|pull|bring|rope|loop|book|schedule|throw who in|down|over? on|onto|for|into|to _; put who in charge of
    _; put who to work on _; make|hold who responsible|accountable for _; make|name|appoint|nominate|designate|set|
    declare who as|to? be? my owner|assignee|lead|person|dri|driver|point of|on|for _; appoint|designate|nominate|
    tag|line|sign|volunteer who up? for|to|on _; let|have|make|get|ask|tell|want|need|assign who to? do|take|handle|
    own|tackle|lead|have|run|finish|drive|manage|cover|start|carry|claim|grab with|over|on? _; let|have|make|get|
    ask|tell|want|need who to? work|look|take|deal|pick|get|see|jump on|after|at|into|care|with|up|to|over of? _;
    saddle|task|charge|trust|entrust|burden|set up? who up? with _; set|change|update|make|switch my owner|assignee|
    lead|person of|on|for _ to|as|be? who; park|leave _ with who; put|write|add|stick|place who 's name down?
    next|on|onto|against|beside|under|by|for to? _
mine
    take|grab|claim|own|handle|snag|snatch|nab|bag|adopt; take on|over; take _ off my hands|plate; call dibs on;
    take ownership|charge|responsibility|care of|for; look after; see to; deal with; volunteer for; sign|put|count|
    pencil me up|down|in for; put|stick my name down? on|for|against|to|next|under to?; assign myself to?;
    assign|hand|pass|throw|toss|slide|chuck|allocate|give me; let me have|take|do|handle|own; leave|give|assign|
    hand|pass _ over|on? to|with me|myself; be my owner|one|lead of|for|on; run with; be responsible for; be in
    charge of; be taking|handling|doing|covering|owning on|over?; do|take|handle|tackle _ on? myself; put|leave _ on
    my plate|list|desk; have got?
nobody
    unassign|deassign; take|pull who off of? _; free _ from who; remove|clear|drop|unset|delete my owner|assignee|
    assignment from|of|on|for
so
    mark|set|flag|move|put|drag|shift|slide|flip|switch|turn|change|update|record|log|list|count|consider|declare|
    chalk|leave|make|show|report|call|pull|push|tag|label|transition|treat|get|register|note|file|classify|see|
    write|throw|stick|bring|hold|keep _ up|down|over|off|back? as|to|in|on|into|under|be|being? my so column|status|
    state|now?; set|change|update|switch|turn|put|make|move my status|state|stage of|on|for _ to|as|:? so;
    set|change|update|switch _ 's status|state|stage to|as|:? so; mark|flag|set|call|log as? so _
"""
# Behind "is", "looks", "has become", or a mark.
STATES = """
finish
    all|fully|totally|completely|good|100%? done|complete|completed|finished|closed|wrapped|sorted|handled|shipped|
    delivered|resolved|solved|settled|concluded|finalised|accomplished|achieved|merged|fixed|finito|over|ticked|
    checked up|off|out|with?; done and? dusted; over and? done with; my wrap; history; toast; crossed|boxed|signed
    off; in my bag|can|books|bank|past; off my plate|list|desk|board|hands|chest|radar|todo|to-do list?; behind
    us|me; out my door; over|across|past my finish? line; out of my way; put to bed|rest; live; out there; in
    production; launched; landed; good|ready to close|go? live?; all? ready; ready to be closed; buttoned|tied|sewn|
    cleared up; submitted|published|lodged|filed|uploaded; handed|turned in; sent|posted|mailed off|out; rolled out;
    gone live; taken care of; signed sealed and? delivered; a? hundred|100 percent done|complete?; at 100%
    percent?; squared away; dealt with; at my end; reached my finish? line|end; check
start
    started; in progress|flight|work|motion|hand|development|process|doing; now? ongoing|underway|active|begun|
    rolling|happening|moving; under way; in my works; on my go|way|bench|move; in full swing; up and running; being
    worked|tackled|done|handled on?; my current one; a|the go; off my ground; kicked off; picked up; off and running
block
    blocked|stuck|stalled|jammed|impeded|obstructed|gridlocked|snagged|wedged|stymied|roadblocked|trapped|choked|
    hamstrung|bottlenecked|deadlocked up?; held|hung|caught|bogged up|back|down; at my standstill|impasse|deadlock;
    at my dead end; at a dead end; dead in my water; in limbo; not moving; going nowhere; not going anywhere;
    stopped; halted; not progressing; unable to proceed|continue|move|go|progress forward|on|ahead?; being
    held|blocked|stalled up|back?; stuck in my mud|limbo; in a jam; hit my brick? wall|snag|roadblock|dead-end;
    run|ran into my wall|snag|trouble|problem|problems|roadblock; up against my wall
unblock
    unblocked|unstuck|unjammed|unlocked|released|freed|cleared|free|clear up?; free|clear|good|ready|able to
    go|proceed|continue|move|start|begin ahead|on|forward?; free|clear|moving again; all|in my clear; free and?
    clear; off my hook; back in business; open for business; no longer blocked|stuck|held|stalled|jammed|waiting|
    impeded up?; not any? anymore|more|longer blocked|stuck; not blocked|stuck any? anymore|more|longer
defer
    deferred|postponed|paused|parked|shelved|suspended|delayed|pushed|mothballed|sidelined|adjourned|backburnered|
    tabled|benched|frozen|snoozed|pushed|put|set off|back|out|aside?; on hold|ice|pause|standby|hiatus; on my
    shelf|backburner|back-burner|back burner?; for later; for another|some other? day|time; something for later; not
    for? now|today|yet; wait|rest|slide|sleep a? while|bit?; off my table|agenda|cards for now; in my
    icebox|freezer|mothballs|hibernation|drawer; in cold|deep storage|freeze; my later|tomorrow thing|problem; out
    for now
resume
    back on; back on|off|in track|hold|play|action|progress; back on my table|menu|agenda; off hold|ice|pause;
    resumed|reactivated|revived|unpaused; back from my dead; on again
top
    my number|top|first|highest|main|absolute|biggest|our one? priority; my number one; priority number? one; at? my
    top of my list|agenda|queue|pile; first in line; my absolute? must|must-have; my most important|urgent|pressing
    one|thing|item|task|story?; my emergency; on fire; burning; what matters most; more important|urgent than
    anything|everything|all else?; code red; do or die; all hands on deck; make or break
bottom
    last in line; at? my bottom of my list|queue|pile|agenda; my last|lowest priority; my least important|urgent
    one|thing|item?; less important|urgent than anything|everything|all else?
higher
    priority|prio up|higher|raised; even? more important|urgent|pressing|critical now?; hotter; heating up; getting
    urgent|hot|critical
lower
    priority|prio down|lower|lowered; even? less important|urgent|pressing|critical now?; not|hardly|no
    that|so|all|really|very? longer? urgent|important|pressing|critical; no big? deal|rush|hurry|biggie; in no
    hurry|rush
assign
    owner|assignee who; with|for|on who; all? on|with|up|down to? who; who 's job|task|responsibility|baby|problem|
    thing|turf|call?; on|in who 's plate|desk|list|hands|court|queue
nobody
    unassigned|ownerless|orphaned; nobody 's; up for grabs; without my owner; no owner|assignee any? more|anymore?;
    assigned to nobody|none; assigned to no one; free for my taking
mine
    mine; all? on|with me; all mine; my|our job|task|responsibility|baby|problem|thing|turf|call; my one to do; in my
    court|hands
"""
