"""What happens to people in generated conversations several times, and questions about it.

`{v}` is the value of a fact, `{d}` a detail of it, `{p}` who is asked about, `{q}` the other speaker, `{m}`
a month. A question uses other words than most of the statements, as somebody who was not there would.
`topics` announce what comes; `pairs` are statements that make sense only after what the other one asked.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from bench.dialogue_words import couples, split


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


SERIES: Final = (
    Series(
        "trip",
        split("Travel report:|About my trip:|Back from a journey."),
        couples(
            "Lisbon=lost my wallet on the tram|Oslo=ate the best fish soup|Tbilisi=stayed in a monastery"
            "|Marrakesh=got hopelessly lost in the souk|Reykjavik=missed the flight home"
            "|Naples=learned to throw dough|Tallinn=met my cousin by accident|Kyoto=slept in a capsule"
            "|Valletta=got stung by a jellyfish|Sofia=bought an icon at the flea market"
        ),
        split(
            "Just back from {v}, I {d}!|{v} was wonderful, although I {d}."
            "|You won't believe it, in {v} I {d}."
            "|My trip to {v} was far too short, still I {d}."
        ),
        couples(
            "How was the long weekend?={v}! And I {d}.|Where are the photos from?={v}. That's where I {d}."
        ),
        split("What happened to {p} in {v}?|What did {p} experience on the journey to {v}?"),
        split("Which places has {p} travelled to?|What journeys did {p} make?"),
        split("When did {p} visit {v}?|In what month was {p} in {v}?"),
        split("Where did {p} travel in {m}?|What trip did {p} make in {m}?"),
    ),
    Series(
        "book",
        split("Book club news:|Reading update:|About that novel:"),
        couples(
            "The Leopard=cried at the end|Middlemarch=gave up after 200 pages"
            "|Solaris=want to read it again at once"
            "|Beloved=could not put it down|Stoner=found it too slow|Dune=liked the worms only"
            "|Piranesi=finished it in one night|Emma=laughed on every page|Rebecca=guessed the ending"
            "|Kim=skipped half of it"
        ),
        split(
            "I finished {v} yesterday and {d}.|{v} is back on the shelf. Let me tell you, I {d}."
            "|My reading group chose {v}, and I {d}.|What a book, {v}! I {d}."
        ),
        couples(
            "What are you reading?={v}. Well, I'm through: I {d}."
            "|Any novel to recommend?=Not sure. {v}: I {d}."
        ),
        split("What did {p} think of {v}?|How did {p} like the novel {v}?"),
        split("Which books has {p} read?|What novels did {p} read?"),
        split("When did {p} read {v}?|In what month was {p} through with {v}?"),
        split("What did {p} read in {m}?|Which book did {p} finish in {m}?"),
    ),
    Series(
        "dish",
        split("I cooked again.|From my kitchen, a new dish:|Meal of the week:"),
        couples(
            "moussaka=burnt the top|ramen=made the noodles by hand"
            "|gumbo=forgot the okra|pierogi=froze forty of them"
            "|bouillabaisse=smelled of fish for days|tamales=ran out of husks|borscht=ruined a white shirt"
            "|paella=fed eleven people|strudel=tore the dough twice|dal=used far too much chilli"
        ),
        split(
            "Tried {v} on Sunday and {d}.|I served {v} to the in-laws, and of course I {d}."
            "|Kitchen report: {v}, and I {d}.|I cooked {v} for the first time and {d}."
        ),
        couples(
            "What's that stain on your notebook?=From the {v}. I {d}.|Hungry already?=No, I made {v} and {d}."
        ),
        split("How did {p}'s {v} turn out?|What went on when {p} prepared {v}?"),
        split("Which dishes has {p} cooked?|What meals did {p} prepare?"),
        split("When did {p} cook {v}?|In what month did {p} prepare {v}?"),
        split("What did {p} cook in {m}?|Which dish did {p} prepare in {m}?"),
    ),
    Series(
        "concert",
        split("Live music at last:|Concert report:|About the performance:"),
        couples(
            "the Kronos Quartet=stood behind a pillar"
            "|a Fado singer=got a signed record|the brass band finale=danced "
            "barefoot|an organ recital=fell asleep"
            "|the punk reunion=lost my voice|a gamelan night=sat on the floor"
            "|the gospel choir=sang along|a techno set=stayed until six|the opera=left at the interval"
            "|a tango orchestra=trod on three feet"
        ),
        split(
            "We had tickets for {v}, I {d}."
            "|My ears still ring from {v}, I {d}.|Went out to hear {v} and {d}."
            "|At the concert yesterday, {v}, I {d}."
        ),
        couples(
            "You sound hoarse, late night?={v}! I {d}."
            "|Did you use the voucher I gave you?=Yes, for {v}. I {d}."
        ),
        split("What did {p} do at the performance of {v}?|What happened when {p} listened to {v}?"),
        split("Which concerts has {p} been to?|What live music did {p} hear?"),
        split("When did {p} hear {v} live?|In what month did {p} go to {v}?"),
        split("Which concert did {p} attend in {m}?|What live music did {p} hear in {m}?"),
    ),
    Series(
        "purchase",
        split("I bought something.|New purchase:|Spending again:"),
        couples(
            "a sewing machine=paid 140 euros|a kayak=haggled it down to 300"
            "|noise-cancelling headphones=paid 219"
            "|an espresso machine=spent half a month's rent|a wool coat=got it for 45 at the flea market"
            "|a standing desk=paid 380 with delivery"
            "|a chess clock=got it for 20|a drill=borrowed the money for it"
            "|a tent=paid 199 and it leaks|a rug=paid 75 to a neighbour"
        ),
        split(
            "Look what the courier brought: {v}! I {d}.|I treated myself to {v}, I {d}."
            "|I could not resist {v} and {d}.|I bought {v} after all and {d}."
        ),
        couples("What's in the big box?={v}. I {d}.|Did you spend your bonus yet?=Some of it on {v}, I {d}."),
        split("How much did {p} spend on {v}?|What was the price of {p}'s new possession, {v}?"),
        split("Which things has {p} bought?|What purchases did {p} make?"),
        split("When did {p} buy {v}?|In what month did {p} get {v}?"),
        split("What did {p} buy in {m}?|What purchase did {p} make in {m}?"),
    ),
    Series(
        "repair",
        split("Repairs, repairs.|Fixing things again:|Household chores:"),
        couples(
            "the boiler=replaced the valve"
            "|the front door=planed two millimetres off|the bike chain=took it off with "
            "pliers|the laptop hinge=glued it"
            "|the gutter=cleared a nest out of it|the toaster=found a coin inside"
            "|the garden pump=changed the seal"
            "|the piano stool=turned a new leg|the router=soldered the plug"
            "|the kitchen tap=called a plumber in the end"
        ),
        split(
            "{v} gave out again, so I {d}.|Spent the whole morning on {v}, and finally {d}."
            "|Victory over {v}: I {d}.|I tried to fix {v} myself and {d}."
        ),
        couples(
            "Why are your hands black?=Because of {v}. I {d}."
            "|Is it warm and dry at yours again?=Yes, {v} is fine, I {d}."
        ),
        split("How did {p} fix {v}?|What was done about {v} at {p}'s place?"),
        split("What has {p} mended?|Which household things did {p} repair?"),
        split("When did {p} fix {v}?|In what month was {v} mended by {p}?"),
        split("What did {p} mend in {m}?|Which household thing did {p} repair in {m}?"),
    ),
    Series(
        "bug",
        split("Bug report:|Software troubles:|Solved one problem:"),
        couples(
            "the login loop=cleared a stale cookie"
            "|the memory leak=closed the forgotten cursor|the double invoice="
            "added a unique key|the frozen import=raised the batch size"
            "|the wrong time zone=stored everything in UTC"
            "|the blank PDF=embedded the font|the slow search=added an index"
            "|the lost webhook=retried with back-off"
            "|the broken umlauts=set the encoding|the flaky test=froze the clock"
        ),
        split(
            "Remember {v}? I {d} and it is gone.|Two days on {v}, then I {d}."
            "|I can close the ticket about {v}: I {d}."
            "|The bug of the month was {v}, and I {d}."
        ),
        couples(
            "Production is green again, what was it?={v}. I {d}."
            "|What did you do all day at the office?=Chased {v}, then I {d}."
        ),
        split("How did {p} solve {v}?|What was {p}'s remedy for {v}?"),
        split("Which software problems has {p} solved?|What bugs did {p} fix?"),
        split("When did {p} solve {v}?|In what month did {p} get rid of {v}?"),
        split("Which bug did {p} solve in {m}?|What software problem did {p} deal with in {m}?"),
    ),
    Series(
        "gift",
        split("A present!|Gift news:|I received something."),
        couples(
            "a fountain pen=came from my boss"
            "|a jar of honey=came from the neighbour|a knitted scarf=came from my aunt"
            "|an orchid=came from the landlord|a jigsaw=came from my godchild"
            "|a bottle of mead=came from the team"
            "|a cookbook=came from the postwoman"
            "|a bird feeder=came from grandpa|a vinyl record=came from an ex"
            "|a lucky coin=came from a stranger"
        ),
        split(
            "Somebody put a ribbon on {v} for me, it {d}.|I was so touched, {v}! It {d}."
            "|Unwrapped {v} this morning, it {d}.|Best present of the year: {v}! It {d}."
        ),
        couples(
            "What was in the parcel with the bow?={v}! It {d}.|You're smiling, what is it?=I got {v}. It {d}."
        ),
        split("Who gave {p} {v}?|From whom did {p} receive {v}?"),
        split("Which presents has {p} received?|What gifts did {p} get?"),
        split("When did {p} receive {v}?|In what month was {p} given {v}?"),
        split("What present did {p} receive in {m}?|What was {p} given in {m}?"),
    ),
)
