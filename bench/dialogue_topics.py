"""Facts that people in generated conversations state about themselves, and questions about these facts.

`{v}` is the value of a fact, `{d}` a detail, `{p}` the person asked about, `{q}` the other speaker and `{m}`
a month. A question uses other words than most of the statements, as a stranger would. `topics` announce the
next statement. `pairs` are statements that make sense only after a question by the other speaker. Each line
is a field of a topic, and bars separate the parts of a field. An indented line continues the field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from attrs import frozen

from bench.dialogue_words import couples, split


@frozen
class Trait:
    """A fact with one value at a time for each person.

    `changes` state a later value, which supersedes the previous value.
    """

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
    """A fact that is true for a person several times, with a different detail each time."""

    name: str
    topics: tuple[str, ...]
    values: tuple[tuple[str, str], ...]
    says: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    asks: tuple[str, ...]
    several: tuple[str, ...]
    when: tuple[str, ...]
    month: tuple[str, ...]


def _read(text: str) -> Iterator[dict[str, Any]]:
    for topic in re.split(r"\n(?=name )", text.strip()):
        lines = (line.split(" ", 1) for line in re.sub(r"\n +", " ", topic).splitlines())
        yield {
            key: rest if key in ("name", "both") else couples(rest) if "=" in rest else split(rest)
            for key, rest in lines
        }


_TRAITS: Final = """
name employer
topics Work news:|About my job:|The company question is settled.
values Northwind|Halcyon Labs|the harbour office|Brightwater|Quillon|Tessera|Palisade|the city archive
says I signed with {v}, they even gave me a desk by the window.|First payslip from {v} arrived, it feels real
  now.|At {v} they make us badge in even for coffee.
pairs And, did you accept the offer?=Yes! {v} it is, I start with onboarding next week.
asks Which company does {p} work for?|Who is {p}'s employer?|Where is {p} employed?
changes Big step: I handed in my notice and go to {v} instead.|So I switched, {v} made me a better offer.
now Where does {p} work these days?|Who is {p}'s current employer?
both Which companies do {p} and {q} work for?
name home
topics About my home:|Moving update:|On where I live:
values Ghent|Porto|Leipzig|Tromsø|Bilbao|Cork|Trieste|Uppsala|Graz|Aarhus
says The boxes are unpacked at last, {v} already feels cosy.|I found a flat in {v}, third floor, no lift.|Our
  street in {v} has a bakery on each corner, dangerous.
pairs Where do you live now, anyway?=In {v}, ten minutes from the station.
asks Which city is {p}'s home?|In which town did {p} settle?|Where does {p} live?
changes We are packing again: the lease in {v} is signed.|I gave up the flat, from now on {v} it is.
now What is the town {p} lives in at present?|Where is {p}'s home now?
both In which cities do {p} and {q} live?
name pet
topics Pet news:|Animal lover that I am:|About the new pet:
values a hedgehog called Biscuit|a greyhound named Pilot|two ferrets, Salt and Pepper|an old parrot, Mango|a
  tabby called Turing|a tortoise named Achilles|a rescue donkey, Bruno|a gecko called Neon
says I finally did it and adopted {v}.|Can't talk long, I have to feed {v}.|Since last week there is {v} in my
  kitchen, it is chaos.
pairs So who is the new flatmate you were hinting at?=Not a person! It's {v}.
asks What animal does {p} keep?|Does {p} have a pet, and what is its name?|Which creature lives with {p}?
both Which animals do {p} and {q} keep?
name allergy
topics My allergy again:|Health update:|Allergic as I am:
values walnuts|shellfish|celery|penicillin|sesame|kiwis|latex|birch pollen|lupin flour
says Had to leave early, my face swells up as soon as there are {v} around.|The doctor was clear: no {v} for
  me, ever.|I carry the pen with me in case somebody brings {v}.
pairs Wait, why did you end up at the emergency room?={v}. One bit of it and my throat closes.
asks What is {p} allergic to?|What must be avoided for {p}'s health?|Which allergy does {p} have?
both What are {p} and {q} allergic to?
name instrument
topics Music news:|About that instrument:|Playing again:
values cello|oboe|accordion|banjo|marimba|trombone|harp|clavichord|bagpipes
says My neighbours hate me since I practise the {v} every evening.|I rented a {v} for half a year, let's see
  whether I stick to it.|My fingers hurt from the {v}, but the scales get better.
pairs What did you pick in the end at the music school?=The {v}. Nobody else wanted it.
asks What instrument does {p} play?|What does {p} make music with?|Which instrument is {p} learning?
both Which instruments do {p} and {q} play?
name sibling
topics Family stuff:|About my sibling:|On brothers and sisters:
values Vera, a midwife|Anselm, a glassblower|Noor, a pilot|Bastian, a tax inspector|Wanda, a beekeeper|Iker, a
  stuntman|Philippa, a judge|Otto, a locksmith
says Mum's two kids could not differ more: me at the screen, and then there's {v}.|My sibling visited for the
  weekend, you know, {v}.|I grew up with one other child at home: {v}.
pairs Are you an only child?=No no, there is {v}.
asks Who is {p}'s brother or sister?|What does {p}'s sibling do for a living?|Name the sibling of {p}.
name vehicle
topics On my commute:|Transport update:|New vehicle, by the way:
values a yellow cargo bike|an old Saab|a folding bicycle|a moped from 1982|a camper van|a hand-me-down
  Volvo|an electric scooter|a tandem
says These days I get around with {v}.|The garage called, {v} passed the inspection, I can drive again.|Rain
  or not, I ride {v} to the office.
pairs How do you get to work without a bus?=I bought {v}, used of course.
asks How does {p} commute?|What means of transport does {p} own?|Which vehicle does {p} have?
changes It broke down for good, so now I own {v}.|I sold it and got {v} for the money.
now What is {p}'s present vehicle?|What does {p} travel to work with nowadays?
both What vehicles do {p} and {q} own?
name diet
topics About my diet:|Food rules:|My meals are different now:
values vegan|pescatarian|without gluten|low in salt|without sugar|only raw food until noon|keto|halal
says I have been eating {v} for a month now and sleep better.|Everything at our table is {v} now, the children
  complain.|Remember when you cook for me on Saturday: {v}, please.
pairs Anything I should know before I order for everybody?=For me it has to be {v}.
asks What diet does {p} follow?|How should one cook for {p}?|What rules does {p} have about meals?
changes Change of plan with my food: it is {v} from today on.|The old regime is over, I eat {v} now.
now Which diet is {p} on at the moment?|What does {p} eat like now?
name fear
topics My old phobia:|I was afraid again.|Scared as always:
values lifts|wasps|deep water|dentists|flying|thunder|clowns|heights|moths
says My heart was racing the whole time, you know how I am with {v}.|I took the long way round because of {v}.
  Silly, I know.|My therapist and I are working on the thing with {v}.
pairs Why did you turn so pale back there?={v}. I have panicked since I was six.
asks What is {p} afraid of?|Which phobia does {p} have?|What scares {p}?
both What are {p} and {q} afraid of?
name editor
topics About my editor:|Coding update:|Tools talk:
values Helix|Emacs|Sublime|Kakoune|Zed|Nano|BBEdit|Vim|Geany
says I moved all my key bindings over to {v}, it took an evening.|In {v} I have a macro for exactly that.|The
  plug-in for {v} crashed and took my unsaved draft with it.
pairs What are you typing all of this in?={v}, always. Please no holy war.
asks Which text editor does {p} use?|What program does {p} write code in?|What is {p}'s favourite editor?
both Which text editors do {p} and {q} use?
name port
topics Port news:|About the staging server:|Note the port:
values 8431|9077|7300|6113|8899|5544|9412|7070|6221
says My staging service listens on {v}, the firewall rule is in.|If it says connection refused, you forgot to
  forward {v}.|I put the proxy on {v} because the usual one was taken.
pairs Which one do I have to open for your box?={v}, TCP only.
asks Which port does {p}'s service use?|What port number did {p} configure?|On which port is {p}'s staging
  server reachable?
changes Heads up, I moved the service to {v}.|The old one clashed, so mine answers on {v} now.
now Which port is {p}'s service on now?|What is the present port of {p}'s staging server?
name deadline
topics Work pressure:|Paperwork, paperwork.|I have to hand something in:
values the grant report|the visa papers|the thesis draft|the tax return|the quarterly audit|the museum
  loan|the patent filing|the choir budget
says I won't sleep much, {v} has to be out by Friday.|{v} is hanging over me, after that I am free.|They
  extended the date for {v}, thank goodness.
pairs What keeps you up so late?={v}. It's due and nobody else will do it.
asks What work does {p} have to hand in?|Which paperwork puts {p} under pressure?|What was {p} up late for?
name birthday
topics My birthday:|About the day I was born:|Birthday planning:
values the 3rd of May|the 29th of February|the 17th of August|the 11th of November|the 8th of January|the 24th
  of June|the 30th of September|the 2nd of April
says Don't plan anything for {v}, I turn a year older and want cake.|Every year it rains on {v}, so my parties
  are indoors.|My passport says {v}, but grandmother swears it was a day earlier.
pairs When do we have to sing for you?=On {v}, and no candles please, there'd be too many.
asks When is {p}'s birthday?|On what day was {p} born?|What is {p}'s date of birth?
both When do {p} and {q} have their birthdays?
name injury
topics I hurt myself.|Injury update:|Recovering slowly:
values left ankle|right shoulder|lower back|wrist|knee|collarbone|big toe|elbow
says No running for me, the {v} is in a splint.|Slipped on the stairs, and now the {v} is the size of a
  melon.|The physio says my {v} needs eight more weeks.
pairs You are limping through your sentences, what's wrong?=It's the {v}. I fell off a ladder.
asks What did {p} injure?|Which part of the body did {p} hurt?|What is {p} recovering from?
name saving
topics Saving up again:|About money:|My dream purchase:
values a sailing boat|a kiln|a year off|a telescope|a piano|a solar roof|a greenhouse|a printing press
says Every month I put two hundred aside, one day it will be {v}.|No holidays this year, the money goes into
  {v}.|My piggy bank has a label on it: {v}.
pairs Why are you so stingy lately?=Because I want {v} and it isn't cheap.
asks What is {p} saving up for?|What does {p} put money aside for?|Which big purchase does {p} dream of?
both What are {p} and {q} saving for?
name volunteering
topics About volunteering:|Charity work:|Helping out again:
values the animal shelter|the night bus|the repair café|the food bank|the lifeboat station|the school
  library|the hospice|the community garden
says On Thursdays you won't reach me, I help out at {v}.|They were short of hands at {v}, so I said
  yes.|Unpaid, but the evenings at {v} are the best of my week.
pairs What do you do with your free Thursdays?=I'm at {v}, somebody has to.
asks Where does {p} volunteer?|Which charity work does {p} do?|Whom does {p} help without pay?
both Where do {p} and {q} volunteer?
"""
_SERIES: Final = """
name trip
topics Travel report:|About my trip:|Back from a journey.
values Lisbon=lost my wallet on the tram|Oslo=ate the best fish soup|Tbilisi=stayed in a
  monastery|Marrakesh=got hopelessly lost in the souk|Reykjavik=missed the flight home|Naples=learned to throw
  dough|Tallinn=met my cousin by accident|Kyoto=slept in a capsule|Valletta=got stung by a
  jellyfish|Sofia=bought an icon at the flea market
says Just back from {v}, I {d}!|{v} was wonderful, although I {d}.|You won't believe it, in {v} I {d}.|My trip
  to {v} was far too short, still I {d}.
pairs How was the long weekend?={v}! And I {d}.|Where are the photos from?={v}. That's where I {d}.
asks What happened to {p} in {v}?|What did {p} experience on the journey to {v}?
several Which places has {p} travelled to?|What journeys did {p} make?
when When did {p} visit {v}?|In what month was {p} in {v}?
month Where did {p} travel in {m}?|What trip did {p} make in {m}?
name book
topics Book club news:|Reading update:|About that novel:
values The Leopard=cried at the end|Middlemarch=gave up after 200 pages|Solaris=want to read it again at
  once|Beloved=could not put it down|Stoner=found it too slow|Dune=liked the worms only|Piranesi=finished it
  in one night|Emma=laughed on every page|Rebecca=guessed the ending|Kim=skipped half of it
says I finished {v} yesterday and {d}.|{v} is back on the shelf. Let me tell you, I {d}.|My reading group
  chose {v}, and I {d}.|What a book, {v}! I {d}.
pairs What are you reading?={v}. Well, I'm through: I {d}.|Any novel to recommend?=Not sure. {v}: I {d}.
asks What did {p} think of {v}?|How did {p} like the novel {v}?
several Which books has {p} read?|What novels did {p} read?
when When did {p} read {v}?|In what month was {p} through with {v}?
month What did {p} read in {m}?|Which book did {p} finish in {m}?
name dish
topics I cooked again.|From my kitchen, a new dish:|Meal of the week:
values moussaka=burnt the top|ramen=made the noodles by hand|gumbo=forgot the okra|pierogi=froze forty of
  them|bouillabaisse=smelled of fish for days|tamales=ran out of husks|borscht=ruined a white shirt|paella=fed
  eleven people|strudel=tore the dough twice|dal=used far too much chilli
says Tried {v} on Sunday and {d}.|I served {v} to the in-laws, and of course I {d}.|Kitchen report: {v}, and I
  {d}.|I cooked {v} for the first time and {d}.
pairs What's that stain on your notebook?=From the {v}. I {d}.|Hungry already?=No, I made {v} and {d}.
asks How did {p}'s {v} turn out?|What went on when {p} prepared {v}?
several Which dishes has {p} cooked?|What meals did {p} prepare?
when When did {p} cook {v}?|In what month did {p} prepare {v}?
month What did {p} cook in {m}?|Which dish did {p} prepare in {m}?
name concert
topics Live music at last:|Concert report:|About the performance:
values the Kronos Quartet=stood behind a pillar|a Fado singer=got a signed record|the brass band finale=danced
  barefoot|an organ recital=fell asleep|the punk reunion=lost my voice|a gamelan night=sat on the floor|the
  gospel choir=sang along|a techno set=stayed until six|the opera=left at the interval|a tango orchestra=trod
  on three feet
says We had tickets for {v}, I {d}.|My ears still ring from {v}, I {d}.|Went out to hear {v} and {d}.|At the
  concert yesterday, {v}, I {d}.
pairs You sound hoarse, late night?={v}! I {d}.|Did you use the voucher I gave you?=Yes, for {v}. I {d}.
asks What did {p} do at the performance of {v}?|What happened when {p} listened to {v}?
several Which concerts has {p} been to?|What live music did {p} hear?
when When did {p} hear {v} live?|In what month did {p} go to {v}?
month Which concert did {p} attend in {m}?|What live music did {p} hear in {m}?
name purchase
topics I bought something.|New purchase:|Spending again:
values a sewing machine=paid 140 euros|a kayak=haggled it down to 300|noise-cancelling headphones=paid 219|an
  espresso machine=spent half a month's rent|a wool coat=got it for 45 at the flea market|a standing desk=paid
  380 with delivery|a chess clock=got it for 20|a drill=borrowed the money for it|a tent=paid 199 and it
  leaks|a rug=paid 75 to a neighbour
says Look what the courier brought: {v}! I {d}.|I treated myself to {v}, I {d}.|I could not resist {v} and
  {d}.|I bought {v} after all and {d}.
pairs What's in the big box?={v}. I {d}.|Did you spend your bonus yet?=Some of it on {v}, I {d}.
asks How much did {p} spend on {v}?|What was the price of {p}'s new possession, {v}?
several Which things has {p} bought?|What purchases did {p} make?
when When did {p} buy {v}?|In what month did {p} get {v}?
month What did {p} buy in {m}?|What purchase did {p} make in {m}?
name repair
topics Repairs, repairs.|Fixing things again:|Household chores:
values the boiler=replaced the valve|the front door=planed two millimetres off|the bike chain=took it off with
  pliers|the laptop hinge=glued it|the gutter=cleared a nest out of it|the toaster=found a coin inside|the
  garden pump=changed the seal|the piano stool=turned a new leg|the router=soldered the plug|the kitchen
  tap=called a plumber in the end
says {v} gave out again, so I {d}.|Spent the whole morning on {v}, and finally {d}.|Victory over {v}: I {d}.|I
  tried to fix {v} myself and {d}.
pairs Why are your hands black?=Because of {v}. I {d}.|Is it warm and dry at yours again?=Yes, {v} is fine, I
  {d}.
asks How did {p} fix {v}?|What was done about {v} at {p}'s place?
several What has {p} mended?|Which household things did {p} repair?
when When did {p} fix {v}?|In what month was {v} mended by {p}?
month What did {p} mend in {m}?|Which household thing did {p} repair in {m}?
name bug
topics Bug report:|Software troubles:|Solved one problem:
values the login loop=cleared a stale cookie|the memory leak=closed the forgotten cursor|the double
  invoice=added a unique key|the frozen import=raised the batch size|the wrong time zone=stored everything in
  UTC|the blank PDF=embedded the font|the slow search=added an index|the lost webhook=retried with
  back-off|the broken umlauts=set the encoding|the flaky test=froze the clock
says Remember {v}? I {d} and it is gone.|Two days on {v}, then I {d}.|I can close the ticket about {v}: I
  {d}.|The bug of the month was {v}, and I {d}.
pairs Production is green again, what was it?={v}. I {d}.|What did you do all day at the office?=Chased {v},
  then I {d}.
asks How did {p} solve {v}?|What was {p}'s remedy for {v}?
several Which software problems has {p} solved?|What bugs did {p} fix?
when When did {p} solve {v}?|In what month did {p} get rid of {v}?
month Which bug did {p} solve in {m}?|What software problem did {p} deal with in {m}?
name gift
topics A present!|Gift news:|I received something.
values a fountain pen=came from my boss|a jar of honey=came from the neighbour|a knitted scarf=came from my
  aunt|an orchid=came from the landlord|a jigsaw=came from my godchild|a bottle of mead=came from the team|a
  cookbook=came from the postwoman|a bird feeder=came from grandpa|a vinyl record=came from an ex|a lucky
  coin=came from a stranger
says Somebody put a ribbon on {v} for me, it {d}.|I was so touched, {v}! It {d}.|Unwrapped {v} this morning,
  it {d}.|Best present of the year: {v}! It {d}.
pairs What was in the parcel with the bow?={v}! It {d}.|You're smiling, what is it?=I got {v}. It {d}.
asks Who gave {p} {v}?|From whom did {p} receive {v}?
several Which presents has {p} received?|What gifts did {p} get?
when When did {p} receive {v}?|In what month was {p} given {v}?
month What present did {p} receive in {m}?|What was {p} given in {m}?
"""

TRAITS: Final = tuple(Trait(**topic) for topic in _read(_TRAITS))
SERIES: Final = tuple(Series(**topic) for topic in _read(_SERIES))
