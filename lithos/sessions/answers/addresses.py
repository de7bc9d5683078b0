"""Addresses of sessions and of their turns, as tools, notes and pages write them.

An address is the id of a session, with `session:` before it or not. `#12` after it is the number of a turn,
and `@TIME` is the turn at a time. Notes have the time, because the turn in which a note is written has no
number yet. The client's own id of a session is accepted in place of the id.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from attrs import frozen

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.times import format_time, parse_time

#: Beginning of an address that names what it addresses.
SCHEME: Final = "session:"
#: Maximum number of digits of the number of a turn.
_DIGITS: Final = 9


@frozen
class TurnAddress:
    """The address of a session, or of one of its turns: by number, or by time."""

    session: str
    turn: int | None = None
    moment: datetime | None = None

    def __str__(self) -> str:
        if self.turn is not None:
            return f"{self.session}#{self.turn}"
        return self.session if self.moment is None else f"{self.session}@{_short(self.moment)}"

    @property
    def source(self) -> str:
        """Return the address with its scheme, as in the property `source` of a note."""
        return f"{SCHEME}{self}"


def read_address(text: str) -> TurnAddress:
    """Return the address in a text. Raises `InvalidInput`."""
    rest = text.strip().removeprefix(SCHEME)
    session, sign, place = rest, "", ""
    for mark in "#@":
        if mark in rest:
            session, sign, place = rest.partition(mark)
            break
    if not session:
        raise InvalidInput(_told(text))
    if not sign:
        return TurnAddress(session)
    if sign == "#":
        if not (place.isascii() and place.isdigit() and len(place) <= _DIGITS and int(place)):
            raise InvalidInput(_told(text))
        return TurnAddress(session, turn=int(place))
    try:
        return TurnAddress(session, moment=parse_time(place))
    except ValueError as problem:
        raise InvalidInput(_told(text)) from problem


def _short(moment: datetime) -> str:
    """Return a time in seconds, in the form that is also short enough for the property of a note."""
    return f"{format_time(moment)[:19]}Z"


def _told(text: str) -> str:
    return (
        f"{text[:80]!r} is not the address of a session. Give an id from lithos_search with "
        "kinds=['session'], such as ses_0123456789abcdef, and a turn such as ses_0123456789abcdef#12."
    )
