"""The patterns of what is taken back and what is given up; nothing is cancelled or undone but by these.

Written as in `intent_words`, headings as in `intent_rules`.
"""

from __future__ import annotations

UNDO = r"""
undo
    (undo|revert|reverse) (that|this|it)[ (,|-|:)] ((it|that) was )?(wrong (one|number|task|item|thing|ticket|story)|
        the wrong (one|
        number|task|item|story|thing)|my (mistake|bad)|a mistake|mistake|typo|by mistake)
    (revert|undo) back <t>
    cancel (that|this|the|my|our) (very )?(last|previous|latest) (change|step|action|command|operation|edit|thing|
        instruction)
    (ctrl|cmd)\+z
    (forget|ignore) (the|my|that|our) last (change|step|action|command|operation|edit|instruction)
    (undo|revert|roll back|reverse|unwind|take back|back out|backtrack|back out of|rewind|un-do|walk back)[ all of|
         both of]
    (undo|revert|roll back|reverse|unwind|take back|back out|back out of|rewind|walk back|un-do) <t>
    (undo|revert|roll back|reverse|take back|back out) (what|whatever|everything|all) (i|we|you|it|that) .+
    (take|roll|wind|walk) <t> back[ (again)]
    (go|take|step) (back|one step back|back (a|one|\d+) steps?|me back[ (a|one) step]|us back[ (a|one) step]|
        a step back)
    (ctrl z|ctrl-z|ctrl \+ z|control z|control-z|cmd z|cmd-z|ctrl and z|cmd and z)
    scratch (that|this|(that|the|my|our) (very )?(last|previous|latest)( one| bit| thing| command| change| step)?|
        the last (one|bit|thing|command))
    put (it|that|things|everything) back (the way|how|as|like) (it|that|things|they|everything) (was|were)[ before]
"""
CANCEL = r"""
cancel
    (cancel|abandon|scrap|call off|axe|nix) <t>[ (altogether|completely|entirely|outright|
        for good|after all|instead|
        too|as well|already)]
    (junk|nuke|jettison|annul|rescind|quash|purge|void|revoke|deep-six|yeet|pull the plug on|put the kibosh on|
        bail on|
        wash our hands of|put an end to) <T>[ (altogether|completely|entirely|for good|after all|instead|too|
        as well)]
    (drop|delete|remove|rm|del|kill|kill off|trash|ditch|discard|bin|dump|scratch|get rid of|throw away|throw out|
        do away with|erase|terminate|abort|toss|toss out|strike|strike out|cut|eliminate|close as (cancelled|
        wontfix)|
        chuck|chuck out|write off|withdraw|can|give up on|give up|wipe) <T>[ (altogether|completely|entirely|
        outright|
        for good|after all|instead|too|as well|from (the|our) (plan|backlog|list|board|project|scope|roadmap|
        tracker|
        sprint))]
    (give) <T> the (axe|ax|chop|boot|heave-ho)
    put <T> out of its misery
    (throw|call|toss|chuck|strike) <T> (away|out|off)[ (the|our) (list|plan|board)]
    ~MARK <T> [(as|to|into|over to) ](~GONE)[ (now|status|please)]
    (close) <T> [(as|to) ](~GONE)
    <T> [(now|just|also|really) ](must|can|should|may|has to|have to|is to|ought to|shall) [(now|just|also|
        really) ]be (cancelled|canceled|
        deleted|removed|dropped|scrapped|binned|abandoned|thrown out|thrown away|called off)[ (now|too|as well|
        altogether|entirely)]
    [(so|now|please) ](i|we)[ (would|will)] (like|want|need) <T> [to be ](cancelled|canceled|deleted|removed|dropped|
        scrapped|binned|thrown out|called off)[ now]
    <T> (delete|cancel|remove)[ (it|this|that)]
    (close|resolve|mark|set|flag|end|shut|finish|complete|retire|label|tag|move|archive) <T>[ down| out| off| up][ (,|
        :|-|
        \x28)][ (as|to|because|since|for being)][ (it|that|this) is| 's]( being)? ~MOOT[ (of|by|with|to|now) .+]
    (~GONE|~MOOT|not doing|not going to do)[ now| then] (:|-) <T>
    <T> (:|-|,) [please ](cancel|drop|kill|scrap|delete|remove|bin|abandon|ditch|trash|bin)[ (it|this|that)][ please]
    (cancel|drop|kill|scrap|delete|remove|bin|abandon|ditch|trash|axe|nuke) <T>[ (:|-|,)] as ~MOOT[ (of|by|with) .+]
    [(as|since|because) ](we|i|they|you)[ (are|am|will|do|is)] not (do|doing|going to do|need|needing|want|building|
        shipping) <T>[ (any more|anymore|now|after all|
        any longer|this year)] [(,|so|-|and) ]*[(please|just|then|we can) ](cancel|drop|kill|scrap|delete|remove|bin|
        close|abandon|
        trash|ditch) (it|that|this)
    <T> (will not|is not going to|does not) happen[ (any more|anymore|now|after all)] [(,|so|-|and) ]*[(please|just|
        then) ](cancel|drop|kill|
        scrap|delete|remove|bin|close|abandon|trash|ditch)[ (it|that|this)]
    <T> [(:|-|to|,|is|is a) ](wontfix|will not fix|will not do)
    <T> (~BE) ~MOOT[ (of|by|with|now) \S.{0,40}?] (,|so|-|and|, so|, please|so please|and so) [(please|just|let us|
        we can) ](close|resolve|shut|end|finish|archive|cancel|drop|kill|scrap|delete|remove|bin|trash|ditch) (it|
        that|this)[ (down|out|off)]
    (set|change|update) (the )?status (of|on|for) <T> to (~GONE)
"""
