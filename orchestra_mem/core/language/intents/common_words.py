"""Common English words near to those of commands, right as they stand; written by `tools/common_words.py`."""

from __future__ import annotations

COMMON_WORDS = frozenset(
    """
    abide abort absolute accent acceptable accepted accepts access accomplice accused aching act acting activated
    actively actor actors actual adapt adapted addict adjusted admin admired adoption adored adult advance advances
    advantage advice advise advisor advocate affair agency agent agents aging agreement agrees aid aide aiding
    aiming ale alert alive alleged allied allow allows almighty alone altar amazing amends among amount anger
    answered answers ant ants apart apparent appeal appear appendix applications appointed appreciates arch archer
    architectural archive areas arena argue arise armed arming arouse aroused arrival arrived arrives art arts
    ascend asian asks ass asses assignments assist assistant assistants assisted assume assumed assure assured ate
    atone attached attacked attacker attacks attain attend attic attract attributed auction audio await awaited
    awaiting awaits awake award babe backed backing backs backup bags bailing baked bank banned banner barbed barber
    bark baron barred base bases bashed basic bass bath bathe bathed batter battery bay beach bead beak beam beamed
    beaming beams bean beans beard bearer bears beast beat beaten beaver bee beef beep beer bees began begging begin
    beginnings begs behave behold beings belief beliefs believed believer believes belonged belt ben bent bet bets
    beware beyond bidding billing bills binding binds birds bitten bitter black blacked blacks blame bleak blind
    blinding blinds blinking bloated blockade bloke blokes blond blooming blouse blow blowing blows boar boards
    boast boiler boiling boils bollocks bomber boner boo boob booked booking books boom boot booth boots border bore
    boring borne bosom botched bothered bothers bottle bottoms bought bout boxed boxer brains brake brakes bread
    breaks breakup breath bred breed bricks bright brings brink broad broker bronze brothel brother brothers brown
    browser bruise buck bucks buds buffer bug bugged bugger builders buildings built bulls bullying bum bummed
    bumped bumper bumps bumpy bums bunch bunker buns burden burger burgers buried burns burnt bury bus bush bust
    busted butcher butler butt butter buttons butts buy buyer buys buzzer cable cables caches caching cage caged
    cages cake calf caller calm calmed calming calms calories cam camel camp camped camping cane cans cape capsule
    captain captains captive captured car card cared careers cares cargo caring carried carrier carrots cars cart
    carve carved carving cases cash cashed casing cast casting casually cat catering causes causing caution cave
    cease ceased ceases ceiling cell cells cement cents cert certain certainty chains chair chairs chance chances
    channels chant chanting chaos chap charged charges charging charity charlie charm charmed charming charms chart
    charter charts chase chased chases chasing chatting cheat cheated cheating cheats checking checkout checks cheek
    cheeks cheeky cheer cheered cheering cheese cheesy chefs cherry chess chew chewed chick chicken chicks chiefs
    chilling chimes chin china choir choke choked choking chooses chopping chops chorus chris chucked chunk chunks
    claimed claims clam clapping clarity classes clause clean cleaned cleaner cleaning clearer clearing clearly
    clears click clicking climbing cling clinging clinical cloak cloaking clocked clocks clone cloned closely closer
    closes closest closet closing cloud coaches coaching coalition coast coat coats cock code coded codes coins coke
    cold collect collection collective colored colors columns com coma comb combat combine combing comet comic
    comics commanded commander commanders commend commerce commits common company compare compel compelled
    compelling compete competing completes complex comply compose composed compromise con concealing concede
    concentrated concept concern concerned concert concludes concussion conditions condone conduct cone confide
    confided confine confined confusion connected connecting connections connects conned consent considers consists
    consult consume consumer contact contacted contacting contacts container containers containment contend content
    contest context continent contingency continued continues continuing convent convention conversations conversion
    convert converted convict convicted conviction convince cooked cookie cookies cooled cooling cooped cope coping
    coppers cops copying core cornered corners corps corpse corrected correctly corrupt cos cosmic costing costs
    coughs counsel counted counter countess country county couples coupon course court courts covert cows cracked
    crackling cracks crammed cramped crane cranky crash crashing crate crater crates crave craving crawled crawling
    crazed creaking creaks cream creates creation creative creator creature creeping creeps crept crews cries
    criminal critic critics crops crossed crosses crossing crow crows crucify crushed crying culture cunt cure cured
    cures curing currency currents curry cursed curtain curtains cycles dad dads dame damp danced dare daring
    darling dashboards data dated dates dating dave dawn dead deadline deaf dealings dean debate debating debris
    decade decades decay deceased deceive deceived decent decides decisive decks declared declaring decline declined
    decode decoder decree deeds deer defeat defeated defect defendant defended defender defending defense defied
    define defined definite defying del delegates delicate delighted deliveries delivers delivery delusion delusions
    demand demanding demands demise demon demons denial denied dental denying departed depended deploy deploys depot
    derived descend descending described describes deserted deserts deserve deserved designated designed designer
    designs desire desired desires desk detailed detain determine determines device devil devils devised devote
    devoted dial dialing dice dick die dies digs dime dine ding dining dipped dire direct directed director disable
    disappear disappears discharged disguised disgust disgusted disgusting dismiss dismissed displayed displays
    divide divided diving division divisions dock docs documented documents dogs dome don donated donor doom doors
    dope dose doses dots double doubled doubles doubted dove dragon drags drawing drawn draws dreaming drew drink
    drive driver drone drown drowned drug drying dual duck ducking dumb dumped dumping dumps dusty dwelling dying
    ear early earn earned earning eight elect elevated elf email embraced emerge emerged emotion emotions ending
    enemies energies engaged engine enters entire entity entrusted ere eric errand essentially euros eve evenings
    exact examined examiner example executed existed exits expected explained explains exploit exploration extreme
    face faced faces facing facts fade faded fades fading fag faggot faint fainted fair fairly fairy fake faked
    faking fall fallen falling fame famine famous farm farming farms fart farther farting farts fat fate fates
    father favors faxed fearing fears feast feather feathers feature featured fee feed feeding feeling feels fees
    feet fell fellow fellows fencing fend fiber field figure figured filed files filing filled filling fills film
    filmed filming filter fin finale finals finds finer finest fingers finishes fired fires firewall firing firm
    fished fishing fist fitting fixes fixing fixture fixtures flags flaming flap flare flares flat flavor flaw flee
    fling flour flowing flows flying folding folk followed followers font fooled fooling force forced forces forcing
    forest forfeit forged forgets forging form format formed former forming forwarded fought foul founding fractures
    frail framing fred freed freely freezes fried fringe frog frost froze frying fudge fuel fueled fund funding fur
    furthest futile gain gains game gate gays gaze gene generally generals generate giant gives glide god gods gold
    golden goods grabs graceful grad gram grand granting grants grasping grave gray greed greek greet greeting grew
    grey grip groans ground grounded groups grunt grunts guest guests guided guides guns guts gutter guy hacked
    hacking hailing hall hallway halt handcuff handing hands handy hanged hans happier hardened harder hardly harm
    harmed harming harp hassle hat hate hated hating hatred hats hauled hauling haunt haunted haunting haven headed
    headline heal healed healing heals healthy heap hear hearing hearings hears heart hearts hearty heat heating
    heck heed heir hell helm helping helps hen herb herbs herd herds hereby hero hers hides hiding highly highness
    hiking hind hint hip hire hires hiring historic hits hitting hive hole holed holes holy home homing honking hoo
    hood hooking hooks hopeful hopes hopped hopping hose hosting housing howling hug hugging humming humping hundred
    hunger hunk hunted hunts hurt hurting hustling hut ide ideal ideals imitate immediate impending implied implies
    imply implying imposed inbox incense included increased increases indeed infant infect informal informed infra
    initial initials initiated initiative inject ink insane insect insects insert insider insides insist inspector
    inspire instant instruction intact intel intended intends intense interaction intern internet interns intimate
    intro introduced invade invent invest invite invoice invoices invoke involved issued jacked james jane joint
    joints journey jumped jumps junk jury justice keen kicks kid kidding kidney kids killed killing kin kinda king
    kings kinky kissed kissing knack kneeling knew knob knocking knockout knocks knot knows labeled labels lace
    laced lacked lacking lad ladder lads laid lake lakes lame lance landing lands lane largely larger largest laser
    lash lass lasts latch latency latte latter laugh launched layer laying layout leaf leak leaked leaking leaks
    lean leaned leaning leap leaping leaps learning learns learnt lease least leaves legs lend lending lens lent les
    lesson lest letting levels lever liable lice lick licked licking lied life lifts liked likely likes liking lime
    limited lined linen lines linger linked linking links lint linter lip lips lisa listen listened listens lists
    lit litter lived lively liver lives living load loaded loader loading loads loaned loathe lobby local locale
    locals located lock locked locker locking locks lodge lodged loft logger login logins logo logout lone lonely
    longed longest longing looked lookout loop loot lose loser loses losing loss lots louder loudly lounge loved
    lover lovers loves loving lowly luck lung lurking lust machine mad mailed mailer maker makers makes makeup male
    mall maniac mankind manly manned manner manners mansion mapped mapping mara marc marched marching marine marker
    markers market markets marking markings marks married mars martyr marvel mary mashed mask masked mass masses
    master masters match mate mates mating mattered mattress mature mayor maze meal meaning means meat medal meddle
    media medic melody melted memorial memories memorized men mend mentally mentor menus mere merge merger merges
    merits merry mess messed messes messing metal meter meters metric mice mighty migration migrations mike mild
    mildly mile milking minded minding mines ming mingle mini minimal mining mint minus misled misses missile
    mission missions missus mist mister mixed mixing moan moaning mocked mocking modal mode modest module moist mole
    molly moments momentum money monkey monks monthly monument mornings moron mortal moses moth mother mothers
    motions motivate motive motor motto mount mounting mourning mouth mouths movements movie movies muck mugged
    munitions muster mutilated mutual mysql myths naked names naming native nearby nearer nearest neat neatly
    necessarily necessity needle needles needy neon nerd nerds nerve nest nesting net nets newly nicer nicest nick
    niece nights nine node nodes noise non normally nose noses noticed notices noticing notify notion notions
    numbered obeyed obstacles obstruction obviously occupied offers official officials offline old older oldest
    onions online opening openly opens opera operated operates operating operational operative operatives operator
    opinions opposition optic option orders ore ounce ours outgoing outlive outside outward oven overdo overdose
    overly overrun oversee owed owes owners owning pace paces pack packed packet packing packs pact pads pageant
    paged pages paging pains paint paints paired palace pals pan panicked pans panting pants par para parade parcel
    pardon parental parents parish parks parole parrot parser parsers parted parting party partying pas passion
    passions passive pasta paste pastry pat patent patient paved paws pay paying payment pays peach peaks peck peed
    peeing peeling peeping pen pension peoples perfect period perish persian personal personality persons persuade
    pervert pest petition petting petty phases phrase picket pickle pickled pickup pictured pictures pieces pierce
    piled piling pill pinched pink pinned pint pints pirates piss pissed pisses pissing pitched pitching placed
    places placing plagued plain plains plane planes planet plant planted planting plants plates played playing
    plays plead pleaded pleading pleases pleasing pleasure pledge pledged plenty plucked plunged pocket poet poetry
    poets pointed pointy poised poison poke poked poking poles police polished polite poll polls ponies popping pork
    port portion ports pose posed poses posh posing positioned positions positive posse possess possesses posted
    posting posts pot potent potion pots pounding pounds poured praised praises praising pray prayed prayer praying
    precedent precious precise prefers prefix premier prepping present presenting presents preset pressed presses
    pressuring pretending pretends prevent prevented previously prices pricing prick pricks pride princess prints
    prior prison pro probable probe proceeded proceedings proceeds processed processes processing prod produce
    producer producers produces product products profile profit programs progressive projected projects prom promise
    promised promoted promptly prompts prop proper proposal proposed props prospect prosperity protect protects
    protest protests protocols prove proved proves provided provides province proving provoke prying publish pudding
    puked puking pulled pulls pumped punched puncture punish punished punk puny purely purest purple purposely
    purposes purse pursued pushes pushing quarrel quarters queen queer queues quicker quid quiet quieter quietly
    quiz quote quoted race raced rachel racing rack rag rage ragged raging raiding rail raining rains raised raises
    rake rally rang ranger ranks rap rape raping rare rat rated rates rating rational rats ratted rattle rave raving
    raw reach reaches reaching reacted reacting readers readings readme reads real reality realizes realm reap rear
    rebel rebels reborn rebound rebuilt recalled receipt receive recess recipe recipes recite reckoned reckons recon
    recorder recording records redis reduced reeks reese refer referee refill refined reflected reform refrain
    refuge refund refuse regain regard regarded regime region regions registered rehearse reindeer rejects rejoin
    relating relative relax relaxed relaxing relay released releases reliable relic relics relied relief relieve
    relish relive relocate relying remainder remained remarks remembered remembers reminded reminding reminds render
    renew renewed rent rented renting rents rep repaid repair repaired repairing repairs repay repeated repeating
    repel repent replaced replica replied reply reported reporter reports repos requirements rescue rescued resent
    resented reserve reserved reset reside resides resign resigned resist resisted resort respected rested resting
    restore retail retain retained retake retard retarded retire retired retirement retries retrieved retry returns
    reveals reversed reviewed reviews revised revolution revolver reward rewarded rewarding richer riders ridge
    riding rights riled ring rise rising rite roads roam roaming roar roaring robbing rocking rod role roles rollout
    rolls roman romans rooting ropes rotate rotting rough rounds router routes rubbing ruining ruins rule ruler
    rulers rumbling rumored rung running rushing rust rustling saas sacred sad safe safely sage sail sailed sailing
    sails saint saints sake sale sales sally same sample san sand sands sandy sane sap sarah satin saves saving
    savings scales scam scanning scans scar scarce scare scared scares scaring scarred scars scent scold scolded
    scoot scope scored scores scotch scramble scraped scraping script scripts sealed sealing seals sean searched
    searches season seated seating seats seconds section seed seeds seeing seeks seem sees sell selling sells semen
    seminar sending sends sent series serve served sessions sets setting settings settlers settles setup seven sewed
    sewing sewn shade shades shaft shagging shake shaking shalt shame shamed shaped shapes share shared shares
    sharing sharks shave shaved shaving sheep sheets shells shelter shelves shield shifted shines shining shipping
    ships shirt shirts shit shits shitty shocked shocking shoe shoes shone shook shoots shop shopping shops shore
    shores shorten shorter shorts shot shots shoulder shout shouted shouts shoved shovel shoving shower showers
    showing shown shows shred shrine shrink shuts shuttle sick sides siding siege sigh sighing sighting signs signup
    silent silly silver simple simpler simulation sin sing singer singing singles sings sinking sins sip sipping
    site sites sitting situations size sizes skate skating sketch ski skid skies skiing skill skilled skills skin
    skipped skipping skirts skulls slap slapped slapping slash slate slave slaves slay sleeping sleeps sleepy sleeve
    slept slice sliced slices slicing slick slid slider sliding slim slime sling slippers slippery slit slow slowed
    slower slut smaller smart smarter smash smell smelled smelling smells smiles smoke smoked snapped snapping
    snarling snatch sneak sneaky sneeze snippet snitch snooping snorting snow snuck snuff soaked soaking soaring
    soften softer sole solely solid solve solves son soothing sordid sore sorely sort sorta sorting sorts souls
    sound sounding sounds sow span spared sparing sparks sparring speak speaker speakers spear speck specs speeds
    speedy spell spelled spelling spells spend spending spends spider spiders spied spies spike spikes spill spilled
    spilling spilt spine spinning spins spirit spirits spit spits split splits spoilt spoken spoon sport sporting
    sports spots spotted spraying spreads spring springs sprite sprung spun spying stab stabbed stabbing stable
    stack stacked stacks staff stag staged stages staging stain stained stains stairs stake staked stakes staking
    stale stalk stalked stalker stalking stall stamped stamps stance standards standby staple star stare stares
    stark starling starring stars starter startle startled startling starve starved starving stashed stasis stated
    states static station stations statue statues statute stayed steak steaks stealing steals steaming steep stem
    stepped stepping stereo sterling steve stew sticks sticky stiff sting stink stinking stinks stirred stirring
    stitch stock stocked stocking stockings stole stolen stomp stomping stone stoned stones stool stoop stores
    storing storm stormed storming storms stormy stove straighten strand strange strapped stray street strictly
    strike strikes striking string strings strip striped stripes stripped stripping strips strive stroke strokes
    stroll strolling stronger strongly struck strung studies studying stuffy stung stunning style styles subjected
    subjects submarine subtle subway succeed successor suck suckers sucking sue sued suggested suggests suing suited
    suits summer summers summit sunny superb supper supplied supply supporters supports supposedly surf surge
    surgery survey suspect suspected swan swapped swarming sway swears sweating sweep swell swelling swift swing
    swinging swiped switched switches swoop sword swore tables tablet tack tagged tagging tailing tails tale tales
    tall taller tally tame tan tank tanker tanks tanning tape taped tapes taping tapped tapping tart tasked taste
    tasted tastes tasting taught taxes tea teaches teaching teams tear tearing teased teasing technically technician
    ted tee teen telling tells telly temporary tempted tempting tended tending tent tents term terminated testify
    texts thanked thanking thee theirs theme thereby thick thicker thieving thigh thighs thin thine thinks thorough
    though thoughts threat threw throughout thrown throws thugs thus thy ticking tickle tickling tide tides ties
    tight tile tiles tilt tim timer times timezone timing tipped tire tired tires tiring titans titties toad toes
    toil token toll tons tools topped tops torch torched tore torn tossed tossing touchy tough tougher toughest
    touring towers toying toys traced traces tracing tracker tracks tracy traded trades trading tradition trailing
    trails train trained training trains transaction transfers transform translation trapped trashed tread treated
    treating treats treaty trees tremble trend trial tribal trick tricked tricking tried troubled troubles truce
    truck true trunks trusted trusting tuck tucked tuned tunes tuning tunnel turd turf turkey turning turns turtles
    twins twisted twisting tying typed types typing tyre uncharted uncles understands understood underwear undress
    unfortunate union unions unleash unlock unlocked unpack unpaid untie upgraded upstate urged urgently urging
    useless users uses vending vent vents vermin versions vial views viral vision vitals volunteer vote votes vowed
    wailing waist waited waiter waking walked walking wall wand wander wandering wanting ward warmed warming warned
    warning warp wash washed washing waste wasted wasting water waved waving weak weaken weakened wedding wee weed
    weeds weekends weep weigh weights wells wept west wet whale whatsoever wheat whenever whereas wherever whine
    whining whipped white whoa whoever whomever whore wicked wider wild wills willy wilt winding wing winged winner
    winter wiping wire wired wiring wise wished wishing wit witch within without wits woken wondered wonderfully
    wonders wood wooden woods wore worker workers workout world worlds worm worms worn worried worrying worse worthy
    wound wounded wraps wring writ writer writes writings wrongs yearn years yelled yer yield yours yous
    """.split()
)
