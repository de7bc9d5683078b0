"""Signals between a starting server and its HTTP front."""

from __future__ import annotations

import trio
from attrs import field, frozen


@frozen
class FrontSignals:
    """Events of a server's HTTP front. A server without a front sets `loaded` at once."""

    #: Set once the front accepts connections.
    listens: trio.Event = field(factory=trio.Event)
    #: Set once a client waits for a library that the front has not loaded yet.
    wanted: trio.Event = field(factory=trio.Event)
    #: Set once no client needs to wait for a library of the front.
    loaded: trio.Event = field(factory=trio.Event)
