"""Dates in words: notes have ISO dates, people and agents ask for "in March".

`2026-03-05` has no token in common with "5 March", nor does it mean much to an embedding model. So what is
indexed has its dates spelled out; what is stored and shown keeps them.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from lithos.core.text.pieces import cut_at_spaces

MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
#: Distinct dates of a text that are spelled out in addition; the first ones.
MOST_DATES: Final = 100

#: What must not stand before the year is looked at behind it: a pattern that begins with digits finds them
#: in half the time, and every text is searched three times when it is indexed.
_ISO_DATE: Final = re.compile(r"([0-9]{4})(?<![\w-][0-9]{4})-([0-9]{2})-([0-9]{2})(?![0-9-])(T(?=[0-9]))?")


def spell_dates(text: str) -> str:
    """A short text with each ISO date (`2026-03-05`) in words (`5 March 2026`); what is no date stays."""
    return _ISO_DATE.sub(_spell, text)


def dates_in_words(text: str) -> str:
    """The ISO dates of a text in words, each once, one per line; empty without any."""
    found: dict[str, None] = {}
    for piece in cut_at_spaces(text):
        for match in _ISO_DATE.finditer(piece):
            words = _spell(match)
            if words != match[0]:
                found[words.rstrip()] = None
            if len(found) == MOST_DATES:
                return "\n".join(found)
    return "\n".join(found)


def _spell(match: re.Match[str]) -> str:
    year, month, day = (int(part) for part in match.group(1, 2, 3))
    try:
        date(year, month, day)
    except ValueError:
        return match[0]
    return f"{day} {MONTHS[month - 1]} {match[1]}{' ' * bool(match[4])}"
