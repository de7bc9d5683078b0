"""Facts of which people in generated conversations have one at a time, and questions about them.

`{v}` is the value of a fact, `{d}` a detail of it, `{p}` who is asked about, `{q}` the other speaker, `{m}`
a month. A question uses other words than most of the statements, as somebody who was not there would.
`topics` announce what comes; `pairs` are statements that make sense only after what the other one asked.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from bench.dialogue_words import couples, split


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


TRAITS: Final = (
    Trait(
        "employer",
        split("Work news:|About my job:|The company question is settled."),
        split(
            "Northwind|Halcyon Labs|the harbour office|Brightwater|Quillon|Tessera|Palisade|the city archive"
        ),
        split(
            "I signed with {v}, they even gave me a desk by the window."
            "|First payslip from {v} arrived, it feels real now."
            "|At {v} they make us badge in even for coffee."
        ),
        couples("And, did you accept the offer?=Yes! {v} it is, I start with onboarding next week."),
        split("Which company does {p} work for?|Who is {p}'s employer?|Where is {p} employed?"),
        changes=split(
            "Big step: I handed in my notice and go to {v} instead."
            "|So I switched, {v} made me a better offer."
        ),
        now=split("Where does {p} work these days?|Who is {p}'s current employer?"),
        both="Which companies do {p} and {q} work for?",
    ),
    Trait(
        "home",
        split("About my home:|Moving update:|On where I live:"),
        split("Ghent|Porto|Leipzig|Tromsø|Bilbao|Cork|Trieste|Uppsala|Graz|Aarhus"),
        split(
            "The boxes are unpacked at last, {v} already feels cosy."
            "|I found a flat in {v}, third floor, no lift."
            "|Our street in {v} has a bakery on each corner, dangerous."
        ),
        couples("Where do you live now, anyway?=In {v}, ten minutes from the station."),
        split("Which city is {p}'s home?|In which town did {p} settle?|Where does {p} live?"),
        changes=split(
            "We are packing again: the lease in {v} is signed.|I gave up the flat, from now on {v} it is."
        ),
        now=split("What is the town {p} lives in at present?|Where is {p}'s home now?"),
        both="In which cities do {p} and {q} live?",
    ),
    Trait(
        "pet",
        split("Pet news:|Animal lover that I am:|About the new pet:"),
        split(
            "a hedgehog called Biscuit|a greyhound named Pilot"
            "|two ferrets, Salt and Pepper|an old parrot, Mango"
            "|a tabby called Turing|a tortoise named Achilles|a rescue donkey, Bruno|a gecko called Neon"
        ),
        split(
            "I finally did it and adopted {v}."
            "|Can't talk long, I have to feed {v}."
            "|Since last week there is {v} in my kitchen, it is chaos."
        ),
        couples("So who is the new flatmate you were hinting at?=Not a person! It's {v}."),
        split(
            "What animal does {p} keep?"
            "|Does {p} have a pet, and what is its name?|Which creature lives with {p}?"
        ),
        both="Which animals do {p} and {q} keep?",
    ),
    Trait(
        "allergy",
        split("My allergy again:|Health update:|Allergic as I am:"),
        split("walnuts|shellfish|celery|penicillin|sesame|kiwis|latex|birch pollen|lupin flour"),
        split(
            "Had to leave early, my face swells up as soon as there are {v} around."
            "|The doctor was clear: no {v} for me, ever."
            "|I carry the pen with me in case somebody brings {v}."
        ),
        couples("Wait, why did you end up at the emergency room?={v}. One bit of it and my throat closes."),
        split("What is {p} allergic to?|What must be avoided for {p}'s health?|Which allergy does {p} have?"),
        both="What are {p} and {q} allergic to?",
    ),
    Trait(
        "instrument",
        split("Music news:|About that instrument:|Playing again:"),
        split("cello|oboe|accordion|banjo|marimba|trombone|harp|clavichord|bagpipes"),
        split(
            "My neighbours hate me since I practise the {v} every evening."
            "|I rented a {v} for half a year, let's see whether I stick to it."
            "|My fingers hurt from the {v}, but the scales get better."
        ),
        couples("What did you pick in the end at the music school?=The {v}. Nobody else wanted it."),
        split(
            "What instrument does {p} play?|What does {p} make music with?|Which instrument is {p} learning?"
        ),
        both="Which instruments do {p} and {q} play?",
    ),
    Trait(
        "sibling",
        split("Family stuff:|About my sibling:|On brothers and sisters:"),
        split(
            "Vera, a midwife|Anselm, a glassblower|Noor, a pilot"
            "|Bastian, a tax inspector|Wanda, a beekeeper"
            "|Iker, a stuntman|Philippa, a judge|Otto, a locksmith"
        ),
        split(
            "Mum's two kids could not differ more: me at the screen, and then there's {v}."
            "|My sibling visited for the weekend, you know, {v}."
            "|I grew up with one other child at home: {v}."
        ),
        couples("Are you an only child?=No no, there is {v}."),
        split(
            "Who is {p}'s brother or sister?"
            "|What does {p}'s sibling do for a living?|Name the sibling of {p}."
        ),
    ),
    Trait(
        "vehicle",
        split("On my commute:|Transport update:|New vehicle, by the way:"),
        split(
            "a yellow cargo bike|an old Saab|a folding bicycle"
            "|a moped from 1982|a camper van|a hand-me-down Volvo"
            "|an electric scooter|a tandem"
        ),
        split(
            "These days I get around with {v}."
            "|The garage called, {v} passed the inspection, I can drive again."
            "|Rain or not, I ride {v} to the office."
        ),
        couples("How do you get to work without a bus?=I bought {v}, used of course."),
        split("How does {p} commute?|What means of transport does {p} own?|Which vehicle does {p} have?"),
        changes=split("It broke down for good, so now I own {v}.|I sold it and got {v} for the money."),
        now=split("What is {p}'s present vehicle?|What does {p} travel to work with nowadays?"),
        both="What vehicles do {p} and {q} own?",
    ),
    Trait(
        "diet",
        split("About my diet:|Food rules:|My meals are different now:"),
        split(
            "vegan|pescatarian|without gluten|low in salt|without sugar|only raw food until noon|keto|halal"
        ),
        split(
            "I have been eating {v} for a month now and sleep better."
            "|Everything at our table is {v} now, the children complain."
            "|Remember when you cook for me on Saturday: {v}, please."
        ),
        couples("Anything I should know before I order for everybody?=For me it has to be {v}."),
        split(
            "What diet does {p} follow?|How should one cook for {p}?|What rules does {p} have about meals?"
        ),
        changes=split(
            "Change of plan with my food: it is {v} from today on.|The old regime is over, I eat {v} now."
        ),
        now=split("Which diet is {p} on at the moment?|What does {p} eat like now?"),
    ),
    Trait(
        "fear",
        split("My old phobia:|I was afraid again.|Scared as always:"),
        split("lifts|wasps|deep water|dentists|flying|thunder|clowns|heights|moths"),
        split(
            "My heart was racing the whole time, you know how I am with {v}."
            "|I took the long way round because of {v}. Silly, I know."
            "|My therapist and I are working on the thing with {v}."
        ),
        couples("Why did you turn so pale back there?={v}. I have panicked since I was six."),
        split("What is {p} afraid of?|Which phobia does {p} have?|What scares {p}?"),
        both="What are {p} and {q} afraid of?",
    ),
    Trait(
        "editor",
        split("About my editor:|Coding update:|Tools talk:"),
        split("Helix|Emacs|Sublime|Kakoune|Zed|Nano|BBEdit|Vim|Geany"),
        split(
            "I moved all my key bindings over to {v}, it took an evening."
            "|In {v} I have a macro for exactly that."
            "|The plug-in for {v} crashed and took my unsaved draft with it."
        ),
        couples("What are you typing all of this in?={v}, always. Please no holy war."),
        split(
            "Which text editor does {p} use?"
            "|What program does {p} write code in?|What is {p}'s favourite editor?"
        ),
        both="Which text editors do {p} and {q} use?",
    ),
    Trait(
        "port",
        split("Port news:|About the staging server:|Note the port:"),
        split("8431|9077|7300|6113|8899|5544|9412|7070|6221"),
        split(
            "My staging service listens on {v}, the firewall rule is in."
            "|If it says connection refused, you forgot to forward {v}."
            "|I put the proxy on {v} because the usual one was taken."
        ),
        couples("Which one do I have to open for your box?={v}, TCP only."),
        split(
            "Which port does {p}'s service use?"
            "|What port number did {p} configure?|On which port is {p}'s staging"
            " server reachable?"
        ),
        changes=split(
            "Heads up, I moved the service to {v}.|The old one clashed, so mine answers on {v} now."
        ),
        now=split("Which port is {p}'s service on now?|What is the present port of {p}'s staging server?"),
    ),
    Trait(
        "deadline",
        split("Work pressure:|Paperwork, paperwork.|I have to hand something in:"),
        split(
            "the grant report|the visa papers|the thesis draft|the tax return"
            "|the quarterly audit|the museum loan"
            "|the patent filing|the choir budget"
        ),
        split(
            "I won't sleep much, {v} has to be out by Friday."
            "|{v} is hanging over me, after that I am free."
            "|They extended the date for {v}, thank goodness."
        ),
        couples("What keeps you up so late?={v}. It's due and nobody else will do it."),
        split(
            "What work does {p} have to hand in?"
            "|Which paperwork puts {p} under pressure?|What was {p} up late for?"
        ),
    ),
    Trait(
        "birthday",
        split("My birthday:|About the day I was born:|Birthday planning:"),
        split(
            "the 3rd of May|the 29th of February|the 17th of August|the 11th of November|the 8th of January"
            "|the 24th of June|the 30th of September|the 2nd of April"
        ),
        split(
            "Don't plan anything for {v}, I turn a year older and want cake."
            "|Every year it rains on {v}, so my parties are indoors."
            "|My passport says {v}, but grandmother swears it was a day earlier."
        ),
        couples("When do we have to sing for you?=On {v}, and no candles please, there'd be too many."),
        split("When is {p}'s birthday?|On what day was {p} born?|What is {p}'s date of birth?"),
        both="When do {p} and {q} have their birthdays?",
    ),
    Trait(
        "injury",
        split("I hurt myself.|Injury update:|Recovering slowly:"),
        split("left ankle|right shoulder|lower back|wrist|knee|collarbone|big toe|elbow"),
        split(
            "No running for me, the {v} is in a splint."
            "|Slipped on the stairs, and now the {v} is the size of a melon."
            "|The physio says my {v} needs eight more weeks."
        ),
        couples("You are limping through your sentences, what's wrong?=It's the {v}. I fell off a ladder."),
        split("What did {p} injure?|Which part of the body did {p} hurt?|What is {p} recovering from?"),
    ),
    Trait(
        "saving",
        split("Saving up again:|About money:|My dream purchase:"),
        split(
            "a sailing boat|a kiln|a year off|a telescope|a piano|a solar roof|a greenhouse|a printing press"
        ),
        split(
            "Every month I put two hundred aside, one day it will be {v}."
            "|No holidays this year, the money goes into {v}."
            "|My piggy bank has a label on it: {v}."
        ),
        couples("Why are you so stingy lately?=Because I want {v} and it isn't cheap."),
        split(
            "What is {p} saving up for?|What does {p} put money aside for?"
            "|Which big purchase does {p} dream of?"
        ),
        both="What are {p} and {q} saving for?",
    ),
    Trait(
        "volunteering",
        split("About volunteering:|Charity work:|Helping out again:"),
        split(
            "the animal shelter|the night bus|the repair café|the food bank"
            "|the lifeboat station|the school library"
            "|the hospice|the community garden"
        ),
        split(
            "On Thursdays you won't reach me, I help out at {v}."
            "|They were short of hands at {v}, so I said yes."
            "|Unpaid, but the evenings at {v} are the best of my week."
        ),
        couples("What do you do with your free Thursdays?=I'm at {v}, somebody has to."),
        split("Where does {p} volunteer?|Which charity work does {p} do?|Whom does {p} help without pay?"),
        both="Where do {p} and {q} volunteer?",
    ),
)
