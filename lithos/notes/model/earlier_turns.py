"""Turns of past sessions that a briefing shows next to notes."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen


@frozen(kw_only=True)
class EarlierTurn:
    """A turn of a past session that probably answers a question. `address` is what `lithos_read` takes."""

    address: str
    title: str
    client: str
    project: str
    when: datetime | None
    text: str
