"""Signals between the start of a server and its front."""

from __future__ import annotations

import trio
from attrs import field, frozen


@frozen
class FrontSignals:
    """Events of a server's front; a server without a front sets `loaded` at once."""

    #: Set once the front listens.
    listens: trio.Event = field(factory=trio.Event)
    #: Set once a client waits for a library of the front.
    wanted: trio.Event = field(factory=trio.Event)
    #: Set once no client has to wait for a library of the front.
    loaded: trio.Event = field(factory=trio.Event)
