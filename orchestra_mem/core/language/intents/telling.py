"""The patterns of what is told: notes, decisions, reports.

Written as in `intent_words`; headings as in `intent_rules`.
"""

from __future__ import annotations

TELLING = r"""
decide
    (record|log|note|write down|add|make|save|put down|capture|document|register|file|jot down|enter|keep|
        minute) [(a|
        the|this|that|our|my|another|as a|as the|as|it as a) ][new |following |final |design |architecture |
        technical |
        team ]decision[ (to|that|:|-|,|about|for|of|is|as follows|on|is that)][ (:|that|we|to)] <v>
    [the |our |my |a ][final |new |design |architecture |team |technical ](decision|conclusion|verdict|resolution|
        ruling|choice|call|answer) (:|-|is|was|,|made|on|to|has been made)[ (:|that|to|on)] <v>
    (decided|decide|resolved|agreed) (:|-|,|that|to|on|upon|against)[ (:|that|to|on)] <v>
    [(after|in|at|during|following|on|for|about|regarding|concerning|as for|as to|re|with|yesterday|today|
        this) \S.{0,40}? ,? ?](i|we|the team|everyone|us|
        all of us|(\S+ ){1,4}and (i|me)|the (board|group|committee|family|crew|council|whole team|others))[ (have|
        had|
        all|just|now|finally|already|both|has)] [(just|now|finally|all|already|then|also|eventually|jointly|
        collectively) ](decided|decide|agreed|agree|concluded|resolved|determined|settled|opted|committed|elected|
        voted|landed|
        made the decision|made a decision|made the call|made up (my|our) (mind|minds)|came to the conclusion|
        came to the decision|reached the decision|reached a decision)[ (to|that|on|for|upon|in favour of|
        in favor of|
        :|between|in|,)][ (that|:)] <v>
    [(after|in|at|during|following|on|yesterday|today|this) \S.{0,40}? ,? ?](we|i) (talked|discussed|debated|voted|
        met|argued|compared|weighed|considered|sat down|thought)[ \S.{0,30}?] and (have )?(decided|agreed|chose|
        settled|
        went with|picked|opted)[ (to|that|on|for|upon|:|in favour of)] <v>
    the team has[ (now|finally|already)] (decided|agreed|chosen|settled|opted)[ (to|that|on|for|upon|
        in favour of)][ :] <v>
    [(after|in|at|during|following|on|for|about|regarding|concerning|as for|as to|re|with|yesterday|
        today) \S.{0,40}? ,? ?](i|we|the team|team|everyone|everybody|
        the family|the crew)[ (have|had|just|now|
        finally|already|both)] [(just|now|finally|then|also|eventually|
        already) ](chose|chosen|picked|selected|choose|pick|select|went with|gone with|prefer|adopted|adopt|
        standardised on|standardized on|settled for|go for|go with|went for|gone for|ended up with|ended up using|
        favour|favor|rejected|ruled out)[ :] <v>
    (going with|sticking with|settling on|opting for) <v>
    [(result|results|outcome|end|winner) of ][the |our |a |final ][(team|majority|unanimous|final|board|family|public|
        whole team) ](vote|votes|poll|ballot|
        consensus|show of hands|adr|team decision|group decision)[ (result|results|outcome|today|yesterday)] (:|-|is|
        was|says|said|went|=)[ (that|for|to)] <v>
    (?!what |how |that |this |there |so |oh |who |which )<v> (won|wins|has won|got|gets|takes) the (vote|poll|ballot|
        most votes|majority)
    <v> (,|-) [(it is|that is|so|that) ][now |finally ](decided|settled|agreed|decision made|decision taken|
        end of discussion|it is decided|final decision|
        that is the decision|that is decided|that is final|final)
    (we are|i am|we will be|we shall be)[ (now|all|definitely)] (doing|having|taking|getting|buying|ordering|building|
        keeping|
        serving|making) (?P<value>\S.{0,80}? (not|instead of|rather than|and not|over) \S.*)
    (we are|everyone is|we are all|all are|so it is|we have) (agreed|decided|settled|resolved)[ then] [(,|:|-|
        that|on|to) ][that ]<v>
    the (plan|deal|rule|date|budget|menu|price|choice|arrangement) is (fixed|settled|agreed|decided|set)[ now|
         then] (:|-|,) <v>
    (management|the (client|clients|owner|owners|directors|trustees|boss|bosses|head office))[ (have|
        has)] (decided|agreed|voted|settled|opted|chosen|chose|picked|ruled|approved)[ (to|on|for|
        that|upon|in favour of)] <v>
    (agreed|decided|settled|fixed|arranged|resolved) (with|by|at|in) \S.{0,40}? (that|on|:|to) <v>
    (decision|decisions|resolution|verdict|ruling|choice|the decision|our decision|the decisions|the resolution|
        the verdict|a decision) (taken|made|reached|passed|from|of|by|at|in|adopted)[ .{1,40}?] (:|-|is|was|
        that) [that ]<v>
    (i am|we are|i|we|we will be|i will be|we shall be)[ (now|all|instead)] (going with|going for|sticking with|
        sticking to|settling on|using|adopting|
        choosing|picking|opting for|standardising on|switching to using|committed to|staying with|moving to|
        migrating to|switching to|going to use|going to go with|going to adopt|leaving out) <v>
    (it is|it was|it has been|that is|so it is|that has been) [now |hereby ](decided|settled|agreed|
        resolved)[ (that|
        to|:|,|-|then|on|upon)] <v>
    (go (with|for|ahead with)|stick (with|to)|settle (on|for)|opt for|stay (with|on)|standardise on|standardize on|
        commit to|decide (on|for|to|against)|agree (on|to)) <v>
    (use|adopt|choose|pick|prefer|go for|go with|keep using|select|switch over to using|embrace|stick to|
        stay away from|never use) <v>
    (?!what |how |that |this |there |so |oh )<v> it is[ ,][ then]
    (for|on|with) (?!(me|us|now|later)\b)\S.{0,40}?[ ,] (use|we use|we will use|let us use|go with|we go with|choose|
        we choose|pick|we pick) <v>
    (after|since|following|because of) \S.{0,40}?[ ,] (we are|i am|we will be) (now )?(going with|going for|
        sticking with|settling on|using|
        choosing|picking|opting for) <v>
    (we are|we will be|i am) (dropping|ditching|leaving) (?P<value>(?!(it|that|this|them|
        #?\d+)\b)\S.{0,60} in (favour|favor) of \S.+)
report
    !(?P<value>~CHECKS \S.*?) (on|for|in|of|with|against) <T>[ (again|now|today|so far)]
    (report|reporting|report back|status report|progress report|progress update|status update|update|result|results|
        outcome|
        progress|test results|test report|findings|summary|retro) [(on|for|of|about|from|to|:) ]<T> (:|-|is|that|
        ,|are|
        says|saying)[ that] <v>
    (report|update|log|record|progress|status|result) (?!that )<T> (:|as|that|-|,|is) <v>
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
    <T> [(has|have|also|just|now|then|again|finally|already) ](?P<value>(took|went(?! live)|ran|cost|lasted|failed|
        passed|
        succeeded|broke|crashed|produced|resulted in|turned out|worked|did not work|returned|gave|came out|ended|
        errored|timed out|did not pass|made progress|fails|passes|works|crashes|has failed|has passed|needed|found|
        yielded|revealed|showed|
        hit|got to|reached|is at|stands at|came back)[ .+])
    <T> (is|are|'s|was) [(now|still|at|about|already|only|roughly|around|almost|nearly|
        currently) ](?P<value>((\d+(\.\d+)?) ?(%|percent|per cent)|\d+%|half|halfway|half way|almost|nearly|mostly|
        partly|close to|failing|broken|passing|green|red|working|not working|a success|a failure|going well|
        going badly|on track|behind schedule|late|ahead of schedule|behind|overdue|delivered with|tested|deployed|
        live|in review|in qa|in testing|under review)[ .+])
    <T> (did not|has not|could not) (?P<value>(succeed|work|pass|go well|go|turn out|compile|build|hold|help|
        come out|run|deliver)[ .+])
    <T> (:|-|,|at|now at|=|to|now) (?P<value>\d+ ?(%|percent)[ (done|complete|finished|there)][ .+])
    (half|most|part|some|a third|two thirds|a quarter|three quarters|\d+ ?%) of <T> (is|are|has been|have been) <v>
    <T> (results?|outcome|report|findings) (:|-|is|are|was|were) (?!(~DONE|~STUCK|~PROGRESS|on hold|deferred|postponed|
        parked|
        urgent|high|low|top|critical|pending|overdue|late)\b)<v>
    [the ](results?|outcome|findings?) of <T> [(is|are|was|were) ]<v>
    (test|tests|all tests|the tests|the build|build|ci) (for|of|on) <T> (?P<value>(pass|passed|fail|failed|
        are green|
        are red|is green|
        is red)[ .+])
    [<T> ](test|tests|all tests|the tests|the build|build|ci) (?P<value>(pass|passed|fail|failed|
        are green|are red|is green|is red)[ .+])
    !~CHECKS (on|for|of|in|with|against) <T> [(:|-|,|is|are|was|were) ]<v>
    !(?!(all|both|everything|most|some|half) )<T> [(:|-|,) ](?P<value>~CHECKS (:|-|is|are|was|were|all|still|now|
        green|red|
        passing|pass|passed|passes|fail|failed|fails|failing|broke|breaks|broken|found|came|ok|okay|flaky|good|clean|
        at|up|
        down|dropped|rose|went|ran)[ .+])
    !(?P<value>~CHECKS (found|finds|showed|shows|flagged|reported|turned up|spotted) .+) (in|on|with|for) <T>
    !(?P<value>failed|broken|red|passed|green|flaky|crashed)[ again| now| still] (:|-) <T>
    !(?!(all|both|everything|most|some|half) )<T> [(is|are|was|'s|still|again|now|got|gets) ]*(?P<value>(flaky|red|
        green|
        unstable|stable|crashing|leaking|hanging|slow|slower|faster|unreliable|reliable|buggy|half done|
        half finished)[ .+])
    !<T> [(is|are|was|'s|now|got|gets) ]*(?P<value>\d+(\.\d+)? ?(x|times|percent|%|ms|s|sec|seconds|
        minutes)( \S+)? (faster|
        slower|better|worse|smaller|bigger|cheaper|quicker)[ .+])
    !<T> [(is|was|got|has been|now|just) ]*(?P<value>(deployed|pushed|rolled out|released|installed|on|live on|up on|
        in) (to |on )?(the )?(staging|
        stage|test|testing|dev|qa|preprod|pre-prod|canary|beta|sandbox)[ .+])
    !(?P<value>deployed|pushed|rolled out|released|installed) <T> (to|on) (the )?(staging|stage|test|testing|dev|qa|
        preprod|pre-prod|canary|beta|sandbox)
    !(?P<value>\d+(\.\d+)? ?(h|hrs|hours?|m|mins?|minutes|d|days?)) (on|for|in|into) <T>[ (today|yesterday|so far|
        this week)]
    !<T> [(is|at|about|roughly|around|now|some|nearly|almost|circa) ]*(?P<value>(\d+ ?(percent|%)|half|halfway|
        two thirds|a third)[ (done|complete|
        finished|there|through)])
    !<T> (update|progress update|status update|progress report|news) (:|-) <v>
    !<T> (does not|do not|will not) (?P<value>(work|build|compile|run|pass|load|boot|render|install|scale|hold|
        start up|connect)[ .+])
note
    (add|leave|make|put|write|attach|drop|post|record|log|append|pin|stick|place|set|give|enter|create) [me ][(a|
        another|the following|this|the|one more) ][quick |short |little |small |brief |new ](note|comment|remark|
        memo|
        annotation|reminder) (to|on|for|about|in|under|against|at) <T> [, ](:|-|that|saying|,|to say|which says|to|
        about|stating|with|reading|with the text|of)[ (that|:)] <v>
    (add|leave|make|put|write|attach|drop|post|record|log|append|pin|enter) (a|another|the following|this|
        the) [quick |short |little |small |brief ](note|comment|remark|memo|annotation|reminder) (to|on|for|in|
        under|
        against|at) <T> <v>
    (add|leave|make|put|write|attach|take|drop|post|record|log|jot down|save|enter|keep|create|new) (a|another|this|
        the following|the|one more|) ?[quick |short |little |small |brief |mental |new ](note|comment|remark|memo|
        reminder) [(for|to) (me|us|myself|ourselves|self) ][(there|here|in there|with it|on it|to it|on that|
        on them) ](:|-|that|saying|,|of|to|about|to say|stating|
        for)[ (that|
        :|the fact that)] <v>
    (add|attach|put|leave|write|append) (to|on|under|for|against|in) <T> (a|another|this|the|one more)[ (quick|
        short|
        little|small)] (note|comment|remark|memo|reminder)[ ,] (that|:|saying|to say|-|which says|to|about|
        stating)[ that] <v>
    (add|leave|put|write|attach|post|drop|record) <v> as (a |the )?(note|comment|remark) (to|on|for|under|in) <T>
    (add|put|write|attach|append|post) <v> (to|in|into|under) the (notes|comments|description) (of|on|for) <T>
    [a |another |quick |one ](note|comment|remark|memo|reminder) (on|to|for|about|re|regarding|in) <T> [, ](:|-|
        that|
        ,|is|to)[ that] <v>
    [a |another |quick |one ](note|comment|remark|memo) (on|to|for|about|re|regarding) <t> : <v>
    (note|annotate) <T> (:|-|that|with|,) <v>
    <T>[ ,] (note|comment|remark) (:|-) <v>
    (note|write|write down|jot|jot down|note down|put|put down|record|log|mention|remark|comment|add|state|pin|scribble|
        scribble down) (on|for|against|under|in|at|about|to|by|beside|next to|alongside|with|near|onto|
        down by|down for|down against|down beside) <T> (that|:|,|-|saying) <v>
    (comment on|annotate|note on|note for|note about|write on|put on|note against|comment)[ (the)] <T> [, ](that|
        with|
        saying|:|-|,) <v>
    (tell|inform) <T> that <v>
    [(a|another|quick|one|one more|just a|just) ](note|memo|comment|reminder|fyi|for your information|nb|n.b|
        heads up|
        psa|ps|remark|side note|note to self|notes|notice) (:|-|,|that|to|for the record :)[ that] <v>
    (note|notice|mind|remember|record|write down|write|jot down|jot|log|put down|put on record|put it on record|
        keep in mind|bear in mind|do not forget|take down|keep a note|make a note|take note|take a note|make note|
        note down|be aware|be advised|for the record|let the record show|let the record state|let it be known|
        let it be noted|put in the notes|save|store|remind (me|us)|mark down|know|never forget|worth noting|
        it is worth noting|worth remembering|worth knowing|worth keeping in mind|worth mentioning|
        worth bearing in mind|do not let (me|us) forget|let (me|us) not forget|i want to note|put it down|keep|
        scribble down|get down|state for the record|keep on record|
        memorise|memorize|commit to memory|document|make sure (we|you) remember|make sure to remember|
        we should remember|write it down|write this down|write that down|keep track|jot this down|jot that down|
        note this|note this down|remember this|record this|log this|add to the notes|please note|i note|
        let us not forget|have it noted|note for the record|put in writing|have it on record|get it on record|
        i want it on record|i want it noted|we want it on record|save this|keep this|store this|
        one thing to remember|
        something to remember|a thing to remember|things to remember|another thing to remember|
        take this down|make a record) [(for later|for the record|somewhere|in the notes|for me|for us|please|
        as well|
        too|again|down|for next time) ][, ](that|:|,|of the fact that|about|of|to|-|the fact that|how)[ (that|:|
        the fact that)] <v>
    (it should be noted|it is to be noted|it bears noting|it must be noted|it should be remembered|somebody note|
        someone note|someone write down|
        somebody write down|so (i|we) do not forget|lest (i|we) forget)[ (that|:|,|-)][ that] <v>
    (note|write|log|record|put) (this|that|it|the following) [down ](for|on|under|against|to) <T> (:|-|,|
        that)[ that] <v>
    (add|put|write|append) [(this|the following|that) ](to|in|into|under) <T> 's (notes|comments|description|
        note) (:|-|that|,) <v>
    (on|for|about|re|regarding) <T> [, ](note|remember|keep in mind|write down|record|add a note)[ (that|:)] <v>
    (noting|remembering|recording|reminding (myself|us|everyone)|reminder|nb|n.b|mental note|note to all|
        keep a record|keep record|let the notes
        say|let the notes show|let the log say|may the record show)[ (that|:|,|-)][ that] <v>
    (for the record|fyi|for your information|for the notes|just so (you|we) know|so (you|we) know|
        just so it is recorded|on the record|for future reference|note to self|for later reference|for posterity|
        for reference|for the log|as a note|as a reminder|as a side note|heads up|important|good to know|
        to remember|
        be it noted)[ ,| :| -][ that] <v>
    (write|put|get) <v> down[ (somewhere|for later|please|for the record|in the notes)]
    (remember|note|write down|jot down|do not forget|note down|keep in mind|record|bear in mind|take note|log) <v>
    <v> [, ](for the record|for future reference|just for the record|fyi|note to self|note that|note it|
        note it down|write it down|jot it down|keep that in mind|
        remember that|
        remember this|do not forget that|make a note of (that|it)|note that down|write that down)
"""

# Looked at after all else: what else is said is the rule.
TELLING_AT_LAST = r"""
decide
    (from (today|tomorrow|monday|next (week|month|year)|this week)[ on]|from now on|going forward|henceforth|
        as of now|as of today|from here on|in future|in the future)[ ,] [(we|
        i) ][(will|are going to|should|only|always|must) ]<v>
"""
