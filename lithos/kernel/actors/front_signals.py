"""What the start and the front tell each other."""

from __future__ import annotations

import trio
from attrs import field, frozen


@frozen
class FrontSignals:
    """Events of a server's front; whoever has no front sets `loaded` at once."""

    #: Set once the front listens.
    listens: trio.Event = field(factory=trio.Event)
    #: Set once somebody waits for a library of the front.
    wanted: trio.Event = field(factory=trio.Event)
    #: Set once no client has to wait for a library of the front.
    loaded: trio.Event = field(factory=trio.Event)
