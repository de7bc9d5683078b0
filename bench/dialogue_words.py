"""What people say to each other in generated conversations: kinds of facts, small talk, and the questions.

`{v}` is the value of a fact, `{d}` a detail of it, `{p}` who is asked about, `{q}` the other speaker, `{m}`
a month. A question uses other words than most of the statements, as somebody who was not there would.
`topics` announce what comes; `pairs` are statements that make sense only after what the other one asked.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen


@frozen
class Trait:
    """Something of which a person has one at a time; `changes` say a later value that supersedes it."""

    name: str
    topics: tuple[str, ...]
    values: tuple[str, ...]
    says: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    asks: tuple[str, ...]
    changes: tuple[str, ...] = ()
    now: tuple[str, ...] = ()
    both: str = ""


@frozen
class Series:
    """Something that happens to a person several times, each with a detail."""

    name: str
    topics: tuple[str, ...]
    values: tuple[tuple[str, str], ...]
    says: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    asks: tuple[str, ...]
    several: tuple[str, ...]
    when: tuple[str, ...]
    month: tuple[str, ...]


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("|"))


def _couples(text: str) -> tuple[tuple[str, str], ...]:
    couples = (part.split("=", 1) for part in text.split("|"))
    return tuple((one.strip(), other.strip()) for one, other in couples)


PEOPLE: Final = _split(
    "Ada|Ben|Chiara|Dmitri|Esther|Farid|Greta|Hiro|Imani|Jonas|Katya|Luca|Mireille"
    "|Nadim|Olga|Pedro|Quinn|Rosa|Sven|Tamsin"
)

TRAITS: Final = (
    Trait(
        "employer",
        _split("Work news:|About my job:|The company question is settled."),
        _split(
            "Northwind|Halcyon Labs|the harbour office|Brightwater|Quillon|Tessera|Palisade|the city archive"
        ),
        _split(
            "I signed with {v}, they even gave me a desk by the window."
            "|First payslip from {v} arrived, it feels real now."
            "|At {v} they make us badge in even for coffee."
        ),
        _couples("And, did you accept the offer?=Yes! {v} it is, I start with onboarding next week."),
        _split("Which company does {p} work for?|Who is {p}'s employer?|Where is {p} employed?"),
        changes=_split(
            "Big step: I handed in my notice and go to {v} instead."
            "|So I switched, {v} made me a better offer."
        ),
        now=_split("Where does {p} work these days?|Who is {p}'s current employer?"),
        both="Which companies do {p} and {q} work for?",
    ),
    Trait(
        "home",
        _split("About my home:|Moving update:|On where I live:"),
        _split("Ghent|Porto|Leipzig|Tromsø|Bilbao|Cork|Trieste|Uppsala|Graz|Aarhus"),
        _split(
            "The boxes are unpacked at last, {v} already feels cosy."
            "|I found a flat in {v}, third floor, no lift."
            "|Our street in {v} has a bakery on each corner, dangerous."
        ),
        _couples("Where do you live now, anyway?=In {v}, ten minutes from the station."),
        _split("Which city is {p}'s home?|In which town did {p} settle?|Where does {p} live?"),
        changes=_split(
            "We are packing again: the lease in {v} is signed.|I gave up the flat, from now on {v} it is."
        ),
        now=_split("What is the town {p} lives in at present?|Where is {p}'s home now?"),
        both="In which cities do {p} and {q} live?",
    ),
    Trait(
        "pet",
        _split("Pet news:|Animal lover that I am:|About the new pet:"),
        _split(
            "a hedgehog called Biscuit|a greyhound named Pilot"
            "|two ferrets, Salt and Pepper|an old parrot, Mango"
            "|a tabby called Turing|a tortoise named Achilles|a rescue donkey, Bruno|a gecko called Neon"
        ),
        _split(
            "I finally did it and adopted {v}."
            "|Can't talk long, I have to feed {v}."
            "|Since last week there is {v} in my kitchen, it is chaos."
        ),
        _couples("So who is the new flatmate you were hinting at?=Not a person! It's {v}."),
        _split(
            "What animal does {p} keep?"
            "|Does {p} have a pet, and what is its name?|Which creature lives with {p}?"
        ),
        both="Which animals do {p} and {q} keep?",
    ),
    Trait(
        "allergy",
        _split("My allergy again:|Health update:|Allergic as I am:"),
        _split("walnuts|shellfish|celery|penicillin|sesame|kiwis|latex|birch pollen|lupin flour"),
        _split(
            "Had to leave early, my face swells up as soon as there are {v} around."
            "|The doctor was clear: no {v} for me, ever."
            "|I carry the pen with me in case somebody brings {v}."
        ),
        _couples("Wait, why did you end up at the emergency room?={v}. One bit of it and my throat closes."),
        _split(
            "What is {p} allergic to?|What must be avoided for {p}'s health?|Which allergy does {p} have?"
        ),
        both="What are {p} and {q} allergic to?",
    ),
    Trait(
        "instrument",
        _split("Music news:|About that instrument:|Playing again:"),
        _split("cello|oboe|accordion|banjo|marimba|trombone|harp|clavichord|bagpipes"),
        _split(
            "My neighbours hate me since I practise the {v} every evening."
            "|I rented a {v} for half a year, let's see whether I stick to it."
            "|My fingers hurt from the {v}, but the scales get better."
        ),
        _couples("What did you pick in the end at the music school?=The {v}. Nobody else wanted it."),
        _split(
            "What instrument does {p} play?|What does {p} make music with?|Which instrument is {p} learning?"
        ),
        both="Which instruments do {p} and {q} play?",
    ),
    Trait(
        "sibling",
        _split("Family stuff:|About my sibling:|On brothers and sisters:"),
        _split(
            "Vera, a midwife|Anselm, a glassblower|Noor, a pilot"
            "|Bastian, a tax inspector|Wanda, a beekeeper"
            "|Iker, a stuntman|Philippa, a judge|Otto, a locksmith"
        ),
        _split(
            "Mum's two kids could not differ more: me at the screen, and then there's {v}."
            "|My sibling visited for the weekend, you know, {v}."
            "|I grew up with one other child at home: {v}."
        ),
        _couples("Are you an only child?=No no, there is {v}."),
        _split(
            "Who is {p}'s brother or sister?"
            "|What does {p}'s sibling do for a living?|Name the sibling of {p}."
        ),
    ),
    Trait(
        "vehicle",
        _split("On my commute:|Transport update:|New vehicle, by the way:"),
        _split(
            "a yellow cargo bike|an old Saab|a folding bicycle"
            "|a moped from 1982|a camper van|a hand-me-down Volvo"
            "|an electric scooter|a tandem"
        ),
        _split(
            "These days I get around with {v}."
            "|The garage called, {v} passed the inspection, I can drive again."
            "|Rain or not, I ride {v} to the office."
        ),
        _couples("How do you get to work without a bus?=I bought {v}, used of course."),
        _split("How does {p} commute?|What means of transport does {p} own?|Which vehicle does {p} have?"),
        changes=_split("It broke down for good, so now I own {v}.|I sold it and got {v} for the money."),
        now=_split("What is {p}'s present vehicle?|What does {p} travel to work with nowadays?"),
        both="What vehicles do {p} and {q} own?",
    ),
    Trait(
        "diet",
        _split("About my diet:|Food rules:|My meals are different now:"),
        _split(
            "vegan|pescatarian|without gluten|low in salt|without sugar|only raw food until noon|keto|halal"
        ),
        _split(
            "I have been eating {v} for a month now and sleep better."
            "|Everything at our table is {v} now, the children complain."
            "|Remember when you cook for me on Saturday: {v}, please."
        ),
        _couples("Anything I should know before I order for everybody?=For me it has to be {v}."),
        _split(
            "What diet does {p} follow?|How should one cook for {p}?|What rules does {p} have about meals?"
        ),
        changes=_split(
            "Change of plan with my food: it is {v} from today on.|The old regime is over, I eat {v} now."
        ),
        now=_split("Which diet is {p} on at the moment?|What does {p} eat like now?"),
    ),
    Trait(
        "fear",
        _split("My old phobia:|I was afraid again.|Scared as always:"),
        _split("lifts|wasps|deep water|dentists|flying|thunder|clowns|heights|moths"),
        _split(
            "My heart was racing the whole time, you know how I am with {v}."
            "|I took the long way round because of {v}. Silly, I know."
            "|My therapist and I are working on the thing with {v}."
        ),
        _couples("Why did you turn so pale back there?={v}. I have panicked since I was six."),
        _split("What is {p} afraid of?|Which phobia does {p} have?|What scares {p}?"),
        both="What are {p} and {q} afraid of?",
    ),
    Trait(
        "editor",
        _split("About my editor:|Coding update:|Tools talk:"),
        _split("Helix|Emacs|Sublime|Kakoune|Zed|Nano|BBEdit|Vim|Geany"),
        _split(
            "I moved all my key bindings over to {v}, it took an evening."
            "|In {v} I have a macro for exactly that."
            "|The plug-in for {v} crashed and took my unsaved draft with it."
        ),
        _couples("What are you typing all of this in?={v}, always. Please no holy war."),
        _split(
            "Which text editor does {p} use?"
            "|What program does {p} write code in?|What is {p}'s favourite editor?"
        ),
        both="Which text editors do {p} and {q} use?",
    ),
    Trait(
        "port",
        _split("Port news:|About the staging server:|Note the port:"),
        _split("8431|9077|7300|6113|8899|5544|9412|7070|6221"),
        _split(
            "My staging service listens on {v}, the firewall rule is in."
            "|If it says connection refused, you forgot to forward {v}."
            "|I put the proxy on {v} because the usual one was taken."
        ),
        _couples("Which one do I have to open for your box?={v}, TCP only."),
        _split(
            "Which port does {p}'s service use?"
            "|What port number did {p} configure?|On which port is {p}'s staging"
            " server reachable?"
        ),
        changes=_split(
            "Heads up, I moved the service to {v}.|The old one clashed, so mine answers on {v} now."
        ),
        now=_split("Which port is {p}'s service on now?|What is the present port of {p}'s staging server?"),
    ),
    Trait(
        "deadline",
        _split("Work pressure:|Paperwork, paperwork.|I have to hand something in:"),
        _split(
            "the grant report|the visa papers|the thesis draft|the tax return"
            "|the quarterly audit|the museum loan"
            "|the patent filing|the choir budget"
        ),
        _split(
            "I won't sleep much, {v} has to be out by Friday."
            "|{v} is hanging over me, after that I am free."
            "|They extended the date for {v}, thank goodness."
        ),
        _couples("What keeps you up so late?={v}. It's due and nobody else will do it."),
        _split(
            "What work does {p} have to hand in?"
            "|Which paperwork puts {p} under pressure?|What was {p} up late for?"
        ),
    ),
    Trait(
        "birthday",
        _split("My birthday:|About the day I was born:|Birthday planning:"),
        _split(
            "the 3rd of May|the 29th of February|the 17th of August|the 11th of November|the 8th of January"
            "|the 24th of June|the 30th of September|the 2nd of April"
        ),
        _split(
            "Don't plan anything for {v}, I turn a year older and want cake."
            "|Every year it rains on {v}, so my parties are indoors."
            "|My passport says {v}, but grandmother swears it was a day earlier."
        ),
        _couples("When do we have to sing for you?=On {v}, and no candles please, there'd be too many."),
        _split("When is {p}'s birthday?|On what day was {p} born?|What is {p}'s date of birth?"),
        both="When do {p} and {q} have their birthdays?",
    ),
    Trait(
        "injury",
        _split("I hurt myself.|Injury update:|Recovering slowly:"),
        _split("left ankle|right shoulder|lower back|wrist|knee|collarbone|big toe|elbow"),
        _split(
            "No running for me, the {v} is in a splint."
            "|Slipped on the stairs, and now the {v} is the size of a melon."
            "|The physio says my {v} needs eight more weeks."
        ),
        _couples("You are limping through your sentences, what's wrong?=It's the {v}. I fell off a ladder."),
        _split("What did {p} injure?|Which part of the body did {p} hurt?|What is {p} recovering from?"),
    ),
    Trait(
        "saving",
        _split("Saving up again:|About money:|My dream purchase:"),
        _split(
            "a sailing boat|a kiln|a year off|a telescope|a piano|a solar roof|a greenhouse|a printing press"
        ),
        _split(
            "Every month I put two hundred aside, one day it will be {v}."
            "|No holidays this year, the money goes into {v}."
            "|My piggy bank has a label on it: {v}."
        ),
        _couples("Why are you so stingy lately?=Because I want {v} and it isn't cheap."),
        _split(
            "What is {p} saving up for?|What does {p} put money aside for?"
            "|Which big purchase does {p} dream of?"
        ),
        both="What are {p} and {q} saving for?",
    ),
    Trait(
        "volunteering",
        _split("About volunteering:|Charity work:|Helping out again:"),
        _split(
            "the animal shelter|the night bus|the repair café|the food bank"
            "|the lifeboat station|the school library"
            "|the hospice|the community garden"
        ),
        _split(
            "On Thursdays you won't reach me, I help out at {v}."
            "|They were short of hands at {v}, so I said yes."
            "|Unpaid, but the evenings at {v} are the best of my week."
        ),
        _couples("What do you do with your free Thursdays?=I'm at {v}, somebody has to."),
        _split("Where does {p} volunteer?|Which charity work does {p} do?|Whom does {p} help without pay?"),
        both="Where do {p} and {q} volunteer?",
    ),
)

SERIES: Final = (
    Series(
        "trip",
        _split("Travel report:|About my trip:|Back from a journey."),
        _couples(
            "Lisbon=lost my wallet on the tram|Oslo=ate the best fish soup|Tbilisi=stayed in a monastery"
            "|Marrakesh=got hopelessly lost in the souk|Reykjavik=missed the flight home"
            "|Naples=learned to throw dough|Tallinn=met my cousin by accident|Kyoto=slept in a capsule"
            "|Valletta=got stung by a jellyfish|Sofia=bought an icon at the flea market"
        ),
        _split(
            "Just back from {v}, I {d}!|{v} was wonderful, although I {d}."
            "|You won't believe it, in {v} I {d}."
            "|My trip to {v} was far too short, still I {d}."
        ),
        _couples(
            "How was the long weekend?={v}! And I {d}.|Where are the photos from?={v}. That's where I {d}."
        ),
        _split("What happened to {p} in {v}?|What did {p} experience on the journey to {v}?"),
        _split("Which places has {p} travelled to?|What journeys did {p} make?"),
        _split("When did {p} visit {v}?|In what month was {p} in {v}?"),
        _split("Where did {p} travel in {m}?|What trip did {p} make in {m}?"),
    ),
    Series(
        "book",
        _split("Book club news:|Reading update:|About that novel:"),
        _couples(
            "The Leopard=cried at the end|Middlemarch=gave up after 200 pages"
            "|Solaris=want to read it again at once"
            "|Beloved=could not put it down|Stoner=found it too slow|Dune=liked the worms only"
            "|Piranesi=finished it in one night|Emma=laughed on every page|Rebecca=guessed the ending"
            "|Kim=skipped half of it"
        ),
        _split(
            "I finished {v} yesterday and {d}.|{v} is back on the shelf. Let me tell you, I {d}."
            "|My reading group chose {v}, and I {d}.|What a book, {v}! I {d}."
        ),
        _couples(
            "What are you reading?={v}. Well, I'm through: I {d}."
            "|Any novel to recommend?=Not sure. {v}: I {d}."
        ),
        _split("What did {p} think of {v}?|How did {p} like the novel {v}?"),
        _split("Which books has {p} read?|What novels did {p} read?"),
        _split("When did {p} read {v}?|In what month was {p} through with {v}?"),
        _split("What did {p} read in {m}?|Which book did {p} finish in {m}?"),
    ),
    Series(
        "dish",
        _split("I cooked again.|From my kitchen, a new dish:|Meal of the week:"),
        _couples(
            "moussaka=burnt the top|ramen=made the noodles by hand"
            "|gumbo=forgot the okra|pierogi=froze forty of them"
            "|bouillabaisse=smelled of fish for days|tamales=ran out of husks|borscht=ruined a white shirt"
            "|paella=fed eleven people|strudel=tore the dough twice|dal=used far too much chilli"
        ),
        _split(
            "Tried {v} on Sunday and {d}.|I served {v} to the in-laws, and of course I {d}."
            "|Kitchen report: {v}, and I {d}.|I cooked {v} for the first time and {d}."
        ),
        _couples(
            "What's that stain on your notebook?=From the {v}. I {d}.|Hungry already?=No, I made {v} and {d}."
        ),
        _split("How did {p}'s {v} turn out?|What went on when {p} prepared {v}?"),
        _split("Which dishes has {p} cooked?|What meals did {p} prepare?"),
        _split("When did {p} cook {v}?|In what month did {p} prepare {v}?"),
        _split("What did {p} cook in {m}?|Which dish did {p} prepare in {m}?"),
    ),
    Series(
        "concert",
        _split("Live music at last:|Concert report:|About the performance:"),
        _couples(
            "the Kronos Quartet=stood behind a pillar"
            "|a Fado singer=got a signed record|the brass band finale=danced "
            "barefoot|an organ recital=fell asleep"
            "|the punk reunion=lost my voice|a gamelan night=sat on the floor"
            "|the gospel choir=sang along|a techno set=stayed until six|the opera=left at the interval"
            "|a tango orchestra=trod on three feet"
        ),
        _split(
            "We had tickets for {v}, I {d}."
            "|My ears still ring from {v}, I {d}.|Went out to hear {v} and {d}."
            "|At the concert yesterday, {v}, I {d}."
        ),
        _couples(
            "You sound hoarse, late night?={v}! I {d}."
            "|Did you use the voucher I gave you?=Yes, for {v}. I {d}."
        ),
        _split("What did {p} do at the performance of {v}?|What happened when {p} listened to {v}?"),
        _split("Which concerts has {p} been to?|What live music did {p} hear?"),
        _split("When did {p} hear {v} live?|In what month did {p} go to {v}?"),
        _split("Which concert did {p} attend in {m}?|What live music did {p} hear in {m}?"),
    ),
    Series(
        "purchase",
        _split("I bought something.|New purchase:|Spending again:"),
        _couples(
            "a sewing machine=paid 140 euros|a kayak=haggled it down to 300"
            "|noise-cancelling headphones=paid 219"
            "|an espresso machine=spent half a month's rent|a wool coat=got it for 45 at the flea market"
            "|a standing desk=paid 380 with delivery"
            "|a chess clock=got it for 20|a drill=borrowed the money for it"
            "|a tent=paid 199 and it leaks|a rug=paid 75 to a neighbour"
        ),
        _split(
            "Look what the courier brought: {v}! I {d}.|I treated myself to {v}, I {d}."
            "|I could not resist {v} and {d}.|I bought {v} after all and {d}."
        ),
        _couples(
            "What's in the big box?={v}. I {d}.|Did you spend your bonus yet?=Some of it on {v}, I {d}."
        ),
        _split("How much did {p} spend on {v}?|What was the price of {p}'s new possession, {v}?"),
        _split("Which things has {p} bought?|What purchases did {p} make?"),
        _split("When did {p} buy {v}?|In what month did {p} get {v}?"),
        _split("What did {p} buy in {m}?|What purchase did {p} make in {m}?"),
    ),
    Series(
        "repair",
        _split("Repairs, repairs.|Fixing things again:|Household chores:"),
        _couples(
            "the boiler=replaced the valve"
            "|the front door=planed two millimetres off|the bike chain=took it off with "
            "pliers|the laptop hinge=glued it"
            "|the gutter=cleared a nest out of it|the toaster=found a coin inside"
            "|the garden pump=changed the seal"
            "|the piano stool=turned a new leg|the router=soldered the plug"
            "|the kitchen tap=called a plumber in the end"
        ),
        _split(
            "{v} gave out again, so I {d}.|Spent the whole morning on {v}, and finally {d}."
            "|Victory over {v}: I {d}.|I tried to fix {v} myself and {d}."
        ),
        _couples(
            "Why are your hands black?=Because of {v}. I {d}."
            "|Is it warm and dry at yours again?=Yes, {v} is fine, I {d}."
        ),
        _split("How did {p} fix {v}?|What was done about {v} at {p}'s place?"),
        _split("What has {p} mended?|Which household things did {p} repair?"),
        _split("When did {p} fix {v}?|In what month was {v} mended by {p}?"),
        _split("What did {p} mend in {m}?|Which household thing did {p} repair in {m}?"),
    ),
    Series(
        "bug",
        _split("Bug report:|Software troubles:|Solved one problem:"),
        _couples(
            "the login loop=cleared a stale cookie"
            "|the memory leak=closed the forgotten cursor|the double invoice="
            "added a unique key|the frozen import=raised the batch size"
            "|the wrong time zone=stored everything in UTC"
            "|the blank PDF=embedded the font|the slow search=added an index"
            "|the lost webhook=retried with back-off"
            "|the broken umlauts=set the encoding|the flaky test=froze the clock"
        ),
        _split(
            "Remember {v}? I {d} and it is gone.|Two days on {v}, then I {d}."
            "|I can close the ticket about {v}: I {d}."
            "|The bug of the month was {v}, and I {d}."
        ),
        _couples(
            "Production is green again, what was it?={v}. I {d}."
            "|What did you do all day at the office?=Chased {v}, then I {d}."
        ),
        _split("How did {p} solve {v}?|What was {p}'s remedy for {v}?"),
        _split("Which software problems has {p} solved?|What bugs did {p} fix?"),
        _split("When did {p} solve {v}?|In what month did {p} get rid of {v}?"),
        _split("Which bug did {p} solve in {m}?|What software problem did {p} deal with in {m}?"),
    ),
    Series(
        "gift",
        _split("A present!|Gift news:|I received something."),
        _couples(
            "a fountain pen=came from my boss"
            "|a jar of honey=came from the neighbour|a knitted scarf=came from my aunt"
            "|an orchid=came from the landlord|a jigsaw=came from my godchild"
            "|a bottle of mead=came from the team"
            "|a cookbook=came from the postwoman"
            "|a bird feeder=came from grandpa|a vinyl record=came from an ex"
            "|a lucky coin=came from a stranger"
        ),
        _split(
            "Somebody put a ribbon on {v} for me, it {d}.|I was so touched, {v}! It {d}."
            "|Unwrapped {v} this morning, it {d}.|Best present of the year: {v}! It {d}."
        ),
        _couples(
            "What was in the parcel with the bow?={v}! It {d}.|You're smiling, what is it?=I got {v}. It {d}."
        ),
        _split("Who gave {p} {v}?|From whom did {p} receive {v}?"),
        _split("Which presents has {p} received?|What gifts did {p} get?"),
        _split("When did {p} receive {v}?|In what month was {p} given {v}?"),
        _split("What present did {p} receive in {m}?|What was {p} given in {m}?"),
    ),
)

OPENERS: Final = _split(
    "Oh, by the way.|Guess what.|Hm, so.|News from me!|Before I forget:"
    "|Well.|Funny story.|You asked, so:||||||"
)
TAILS: Final = _split(
    "How are things with you?|Long story.|Anyway, your turn.|I'll tell you more on the phone.|What a week."
    "|Don't tell anybody.|I keep thinking about it.||||||||"
)
#: What the other one answers: about the topic, without the fact.
REACTIONS: Final = _split(
    "Oh wow, {p}, I did not see that coming."
    "|Ha, that sounds like you, {p}.|No way! Tell me everything, {p}."
    "|I'm jealous.|Take care of yourself, {p}.|That reminds me of my uncle, he had the same with {v}."
    "|{v}? Really?|Good for you, {p}!|Hm, I would have done it differently."
    "|I thought you were joking about {v}."
)
#: Mentions of topics that say nothing of either speaker.
DECOYS: Final = _split(
    "My colleague has three pets and no time for any of them."
    "|Somebody at the gym switched to a new diet again."
    "|Companies these days, always new offers, never a contract."
    "|A friend of a friend moved cities for love."
    "|The radio said allergies are worse this spring."
    "|My old boss played an instrument in every meeting, seriously."
    "|Is it just me or does everybody have a phobia now?|I read that birthdays are the loneliest days."
    "|They argued about text editors for an hour on that podcast.|My cousin's car would not start, again."
    "|The library wants volunteers, there's a poster.|People save money for years and then buy rubbish."
    "|I should travel more, everybody posts pictures.|A concert would be nice, some day."
    "|Cooking shows make me hungry and lazy at once.|Everything in this house needs a repair."
    "|The bug tracker at work has nine hundred open tickets.|I never know what present to buy for anyone."
    "|Which port was it again that they always block at the hotel?"
    "|My knee predicted the rain better than the app."
    "|So many books, so little time.|The deadline of the other team moved, not ours."
    "|Siblings fight, then they need each other.|One day I'll shop only in flea markets."
)
#: What follows the announcement of a topic of which nothing is told.
NOTHINGS: Final = _split(
    "more on that tomorrow.|I'd rather not say yet.|nothing to report.|still thinking about it."
    "|ask me next week.|the same old story.|you don't want to know."
)
SMALL_TALK: Final = (
    _split(
        "Morning!|Hi {p}!|Hey, are you there?|Good evening.|Back again."
        "|Hello hello.|Sorry, was on a call.|Hey {p}."
        "|Quick one.|So.|Hm.|Still awake?"
    ),
    _split(
        "The weather was {a} again|My train was {a} today|The office feels {a} without you"
        "|My night was {a}|The meeting was {a}"
        "|That series we talked about turned out {a}|The queue at the post "
        "office was {a}|My mother called, it was {a}|Lunch was {a}|The news is {a}|Our neighbours were {a}"
        "|The new intern is {a}|The coffee machine is {a}|My inbox is {a}"
    ),
    _split(
        "as always.|and I need a nap.|, what about yours?|, don't ask."
        "|but I survived.|, so I went for a walk."
        "|, which is a first.|and nobody said a word."
        "|, can you believe it?|, typical Monday.|, I blame {p}."
        "|, we should meet soon.|and then the lights went out.|, at least there was cake."
    ),
)
ADJECTIVES: Final = _split(
    "dreadful|lovely|endless|strange|quiet|loud|boring|splendid|chaotic|late|sticky|short|hopeless"
    "|decent|odd|grim|hilarious|soggy|pleasant|exhausting"
)
