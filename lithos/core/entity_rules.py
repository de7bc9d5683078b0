"""What is no entity: words that never name anything, file names, versions, code (memory spec, section 4)."""

from __future__ import annotations

import re
from typing import Final

from lithos.core.entity_words import CALENDAR, COMMANDS, COUNTED, FILLERS, GENERIC, OPENERS

SHORTEST: Final = 3
LONGEST: Final = 60
MOST_WORDS: Final = 5

_FILE_SUFFIX: Final = re.compile(
    r"\.(?:md|markdown|mdx|txt|rst|org|adoc|pdf|docx?|xlsx?|pptx?|odt|csv|tsv|json|jsonl|ya?ml|toml|ini|cfg|conf"
    r"|env|lock|log|xml|html?|css|scss|less|svg|png|jpe?g|gif|webp|ico|mp[34]|mov|wav|py|pyi|pyc|ipynb|tsx?|jsx"
    r"|mjs|cjs|rs|go|java|kt|kts|swift|c|cc|cpp|cxx|h|hpp|rb|php|pl|lua|sh|bash|zsh|fish|ps1|bat|exe|dll|so"
    r"|sql|db|sqlite|parquet|proto|graphql|tf|vue|svelte|canvas|zip|t?gz|tar|bz2|xz|7z|deb|rpm|dmg|iso|bak|tmp)$",
    re.IGNORECASE,
)
_SCRIPT: Final = re.compile(r"\.js$", re.IGNORECASE)
_VERSION: Final = re.compile(r"[vV]?\d+(?:[.\-]\w+)*\+?")
#: Anything that prose does not put into a name.
_CODE: Final = re.compile(r"""[(){}\[\]<>=;:\\/|*_$@#"`~^%!?,]|--|\.\.|->|^[-.&+']|[-&]$""")
#: Of a link target only what is surely code, since a person chose it as a name.
_LINK_CODE: Final = re.compile(r"[(){}\[\]<>=;\\/|*_$@`~^]|::|--|->|\.\.")
_QUALIFIER: Final = re.compile(r"(?<=\S) \([^()]+\)$")
_STEM: Final = re.compile(r"[a-z]+")
_HEXADECIMAL: Final = re.compile(r"(?=.*\d)[0-9A-Fa-f]{6,}")


def is_filler(word: str) -> bool:
    """True for words at which no name begins or ends."""
    return word.casefold() in FILLERS


def is_stop_word(word: str) -> bool:
    """True for words that name nothing alone, in any case."""
    lower = word.casefold()
    return lower in FILLERS or lower in GENERIC


def is_opener(word: str) -> bool:
    """True for words that stand before a name at the start of a sentence: `Install Apache Kafka`."""
    lower = word.casefold()
    return lower in FILLERS or lower in OPENERS or (word.endswith("ing") and not word.isupper())


def is_calendar(word: str) -> bool:
    """True for months, days and seasons."""
    return word.casefold() in CALENDAR


def is_numbering(word: str) -> bool:
    """True for `Step-1`, `Week2`, `Q3` and `V2`: they count something."""
    stems = _STEM.findall(word.casefold())
    return any(map(str.isdigit, word)) and all(stem in COUNTED or is_stop_word(stem) for stem in stems)


def is_file_name(text: str) -> bool:
    """True for `main.py` and `app.js`; a capitalised `.js` name (`Node.js`) is a product."""
    if _SCRIPT.search(text):
        return not text[0].isupper() or " " in text
    return bool(_FILE_SUFFIX.search(text))


def is_entity(text: str) -> bool:
    """True unless one of the general reasons to reject a name holds."""
    words = text.split()
    if not SHORTEST <= len(text) <= LONGEST or not words or len(words) > MOST_WORDS:
        return False
    if not any(character.isalpha() for character in text):
        return False
    if _CODE.search(text) or is_file_name(text) or any(map(_VERSION.fullmatch, words)):
        return False
    if len(words) == 1 and (text.islower() or _HEXADECIMAL.fullmatch(text) or is_numbering(text)):
        return False
    return not all(is_stop_word(word) or is_calendar(word) for word in words)


def is_code_name(text: str) -> bool:
    """True for the content of a code span that is a name, not a command or plain words."""
    return (
        is_entity(text)
        and not any(word.startswith("-") for word in text.split())
        and not _is_phrase_or_command(text)
    )


def is_link_name(target: str) -> bool:
    """True for a link target that names something; a trailing ` (qualifier)` is part of the name."""
    bare = _QUALIFIER.sub("", target)
    return bool(bare) and not _LINK_CODE.search(bare) and not is_file_name(bare)


def _is_phrase_or_command(text: str) -> bool:
    words = text.split()
    return text.islower() and (words[0] in COMMANDS or any(map(is_filler, words)))
