"""Detection of lines without information (greetings), and of questions that ask for a complete list."""

from __future__ import annotations

import re
from typing import Final

#: Phrases of greetings, farewells and thanks, and the words used with them.
_PHRASES: Final = (
    "hi|hey|hello|hiya|bye|goodbye|cya|ciao|cheers|thanks|thank you|thx|welcome|you.re welcome|good morning",
    "good afternoon|good evening|good night|good day|see you|see ya|take care|talk soon|talk later",
    "talk to you soon|talk to you later|have a great|have a good|have a nice|have a lovely|one|day|evening",
    "night|weekend|week|time|so much|so long|a lot|later|soon|then|again|around|there|all|everyone|you too",
    "how are you|how are you doing|long time no see|great to see you|good to see you|nice to see you",
    "great to hear from you|good to hear from you|nice to hear from you|and|too",
)
_GREETING: Final = re.compile(rf"(?:\W|\b(?:{'|'.join(_PHRASES)})\b)+", re.IGNORECASE)
#: Maximum number of characters in a line that counts as a greeting.
_LONGEST_GREETING: Final = 80
_NAME: Final = re.compile(r"\A[*_]{0,2}[A-Z][\w .'-]{0,40}:[*_]{0,2}[ \t]*")
_ADDRESSED: Final = re.compile(r",? [A-Z][a-z]+(?=[!.?,]|\Z)")


def is_greeting(text: str) -> bool:
    """Return whether each line of a text is only a greeting or farewell. The speaker's name is ignored."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return bool(lines) and all(_only_greets(line) for line in lines)


def _only_greets(line: str) -> bool:
    if len(line) > _LONGEST_GREETING:
        return False
    said = _ADDRESSED.sub("", _NAME.sub("", line))
    return _GREETING.fullmatch(said) is not None and any(map(str.isalpha, said))


_VERB: Final = "did|does|do|has|have|had|are|were|is|was|can|could|will|would|should"
_ALL: Final = re.compile(
    rf"\s*(?:who (?:has|have|had|are|were|all|else)|which \w+(?: \w+){{0,3}} (?:{_VERB})"
    rf"|what (?:(?:kind|type|sort)s?|all|are all|\w+s (?:{_VERB}))"
    r"|(?:list|name|show|give)(?: me)? (?:all|every|each)|how many|all (?:the|of))\b",
    re.IGNORECASE,
)


def wants_all(question: str) -> bool:
    """Return whether an English question asks for all items instead of a single item."""
    return _ALL.match(question[:200]) is not None
