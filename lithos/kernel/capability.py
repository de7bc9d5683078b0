"""What a capability declares of itself. `lithos.app` lists them, ordered by what they need."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from attrs import frozen

from lithos.kernel.parts import Maker
from lithos.kernel.state import Gauge, Health, Observed


@frozen
class Background:
    """A method of a part that runs beside a server until it stops.

    `kind` is the class of the part. Nothing runs where the server has no such part.
    """

    kind: type[Any]
    run: Callable[[Any], Awaitable[None]]
    #: Runs only while the server has a front.
    needs_front: bool = False


@frozen
class Store:
    """Something that is open on disk while a server runs.

    `open` is given what its parameters name: the occasion, settings, stores with a lower place. It may give
    None where the store is switched off. Stores are opened by place, and closed in reverse. Those below 0 are
    opened before the layout of the data directory is migrated.
    """

    place: int
    open: Maker


@frozen(kw_only=True)
class Capability:
    """One thing that Lithos can do, with everything it adds to a server.

    * `makers`: what makes its parts, each a class or a function (`lithos.kernel.parts`);
    * `stores`: what it has open on disk;
    * `background`: what runs beside the server from the end of its start until it stops;
    * `checks`: the modules with its checks (`lithos.core.findings`), imported when somebody asks for checks;
    * `health`: its components of `/health`;
    * `statistics`: functions that give its `Number`s of `lithos_stats`, from the parts that they name. What
      they wait for is waited for first, so that the others count at one moment;
    * `gauges`: its samples of `/metrics`;
    * `actors`: its actors whose mailboxes `/metrics` shows.
    """

    name: str
    makers: tuple[Maker, ...] = ()
    stores: tuple[Store, ...] = ()
    background: tuple[Background, ...] = ()
    checks: tuple[str, ...] = ()
    health: tuple[Health, ...] = ()
    statistics: tuple[Maker, ...] = ()
    gauges: tuple[Gauge, ...] = ()
    actors: tuple[Observed, ...] = ()


@frozen
class Capabilities:
    """All capabilities of a server."""

    listed: tuple[Capability, ...]
