"""The speakers of generated conversations, and sentences that state no facts.

`{p}` is the other speaker, `{v}` the value of the last fact, `{a}` an adjective.
"""

from __future__ import annotations

from typing import Final


def split(text: str) -> tuple[str, ...]:
    """Split a text at bars."""
    return tuple(part.strip() for part in text.split("|"))


def couples(text: str) -> tuple[tuple[str, str], ...]:
    """Split a text at bars, and each part at its `=`."""
    couples = (part.split("=", 1) for part in text.split("|"))
    return tuple((one.strip(), other.strip()) for one, other in couples)


PEOPLE: Final = split(
    "Ada|Ben|Chiara|Dmitri|Esther|Farid|Greta|Hiro|Imani|Jonas|Katya|Luca|Mireille|Nadim|Olga|Pedro|Quinn"
    "|Rosa|Sven|Tamsin"
)

OPENERS: Final = split(
    "Oh, by the way.|Guess what.|Hm, so.|News from me!|Before I forget:|Well.|Funny story.|You asked, so:||||"
    "||"
)
TAILS: Final = split(
    "How are things with you?|Long story.|Anyway, your turn.|I'll tell you more on the phone.|What a week."
    "|Don't tell anybody.|I keep thinking about it.||||||||"
)
#: Replies of the other speaker. They mention the topic, but not the fact.
REACTIONS: Final = split(
    "Oh wow, {p}, I did not see that coming.|Ha, that sounds like you, {p}.|No way! Tell me everything, {p}."
    "|I'm jealous.|Take care of yourself, {p}.|That reminds me of my uncle, he had the same with {v}."
    "|{v}? Really?|Good for you, {p}!|Hm, I would have done it differently."
    "|I thought you were joking about {v}."
)
#: Sentences that mention topics, but state nothing about either speaker.
DECOYS: Final = split(
    "My colleague has three pets and no time for any of them."
    "|Somebody at the gym switched to a new diet again."
    "|Companies these days, always new offers, never a contract.|A friend of a friend moved cities for love."
    "|The radio said allergies are worse this spring."
    "|My old boss played an instrument in every meeting, seriously."
    "|Is it just me or does everybody have a phobia now?|I read that birthdays are the loneliest days."
    "|They argued about text editors for an hour on that podcast.|My cousin's car would not start, again."
    "|The library wants volunteers, there's a poster.|People save money for years and then buy rubbish."
    "|I should travel more, everybody posts pictures.|A concert would be nice, some day."
    "|Cooking shows make me hungry and lazy at once.|Everything in this house needs a repair."
    "|The bug tracker at work has nine hundred open tickets.|I never know what present to buy for anyone."
    "|Which port was it again that they always block at the hotel?"
    "|My knee predicted the rain better than the app.|So many books, so little time."
    "|The deadline of the other team moved, not ours.|Siblings fight, then they need each other."
    "|One day I'll shop only in flea markets."
)
#: Sentences that follow the announcement of a topic, but state no fact.
NOTHINGS: Final = split(
    "more on that tomorrow.|I'd rather not say yet.|nothing to report.|still thinking about it."
    "|ask me next week.|the same old story.|you don't want to know."
)
SMALL_TALK: Final = (
    split(
        "Morning!|Hi {p}!|Hey, are you there?|Good evening.|Back again.|Hello hello.|Sorry, was on a call."
        "|Hey {p}.|Quick one.|So.|Hm.|Still awake?"
    ),
    split(
        "The weather was {a} again|My train was {a} today|The office feels {a} without you|My night was {a}"
        "|The meeting was {a}|That series we talked about turned out {a}|The queue at the post office was {a}"
        "|My mother called, it was {a}|Lunch was {a}|The news is {a}|Our neighbours were {a}"
        "|The new intern is {a}|The coffee machine is {a}|My inbox is {a}"
    ),
    split(
        "as always.|and I need a nap.|, what about yours?|, don't ask.|but I survived."
        "|, so I went for a walk.|, which is a first.|and nobody said a word.|, can you believe it?"
        "|, typical Monday.|, I blame {p}.|, we should meet soon.|and then the lights went out."
        "|, at least there was cake."
    ),
)
ADJECTIVES: Final = split(
    "dreadful|lovely|endless|strange|quiet|loud|boring|splendid|chaotic|late|sticky|short|hopeless|decent|odd"
    "|grim|hilarious|soggy|pleasant|exhausting"
)
