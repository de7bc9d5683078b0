"""Declarations of a capability. `lithos.app` lists all capabilities, ordered by their dependencies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from attrs import frozen

from lithos.kernel.parts import Maker, Parts
from lithos.kernel.state import Gauge, HealthCheck, Observed

#: Callback that returns whether a server has an object with this id. It covers the kinds of objects that the
#: capability owns.
Holds = Callable[[Parts, str], Awaitable[bool]]


@frozen
class Background:
    """A method of a part that runs as a background task while a server runs.

    `kind` is the class of the part. If the server has no such part, nothing runs.
    """

    kind: type[Any]
    run: Callable[[Any], Awaitable[None]]
    #: Whether the task runs only in a server with a front.
    needs_front: bool = False


@frozen
class NavigationLink:
    """An entry of the console navigation. Entries are sorted by `place`."""

    place: int
    label: str
    address: str
    #: Key that opens the page if it is pressed after `g`.
    key: str = ""


@frozen
class PendingReview:
    """A count of changes that wait for a person. It has a singular, a plural, and the page with a list.

    `kind` is the class of the part that counts the changes. If the server has no such part, the count is
    zero.
    """

    kind: type[Any]
    count: Callable[[Any], int]
    one: str
    many: str
    address: str


@frozen(kw_only=True)
class Pages:
    """Pages and links that a capability adds to the console.

    `modules` are names of modules that are imported for the first page request. Each module has
    `add_routes(console, app)`.
    """

    modules: tuple[str, ...] = ()
    #: Entries for the navigation and for the tabs above the note lists.
    links: tuple[NavigationLink, ...] = ()
    tabs: tuple[NavigationLink, ...] = ()
    waiting: tuple[PendingReview, ...] = ()


@frozen
class Retention:
    """Rows of `coordination.db` that are deleted at a certain age.

    `command` makes the delete command for a given time. Its reply is the number of deleted rows. With `most`,
    the command is sent again as long as it deletes `most` rows. Without `most`, it is sent once.
    """

    what: str
    command: Callable[[datetime], Any]
    most: int | None = None


@frozen
class Store:
    """A store on disk that is open while a server runs.

    `open` gets the arguments that its parameters name: the occasion, the settings, or stores with a lower
    place. It may return None if the store is switched off. Stores are opened in order of `place` and closed
    in reverse order. Stores with a negative `place` are opened before the data directory is migrated to the
    current layout.
    """

    place: int
    open: Maker


@frozen(kw_only=True)
class Capability:
    """One capability of Lithos, with everything that it adds to a server.

    * `needs`: names of the leaf packages that this capability depends on. If one is missing, the capability
      is left out too;
    * `makers`: classes or functions that make its parts (`lithos.kernel.parts`);
    * `background`: background tasks that run from the end of the start until the server stops;
    * `pages`: additions to the console;
    * `front`: name of a module that is imported with the first front. Its async function `add_to(front)` adds
      endpoints to an HTTP front (`lithos.server.http.front`);
    * `tools`: names of the modules that declare its tools and rows, which are imported when tools are needed;
    * `resources`: classes of the parts that are kinds of MCP resources, in list order;
    * `holds`: whether the server has an object with a given id. A process with several vaults uses this to
      choose the server.
    * `boards`: classes of its boards, which run its commands in the coordinator's transaction;
    * `retention`: rows of `coordination.db` that are deleted by age;
    * `tables`: tables of `coordination.db`, each a `lithos.events.rows.schema.CapabilityTables`.
    * `stores`: stores that stay open on disk;
    * `checks`: modules with its checks (`lithos.kernel.values.findings`), which are imported when the checks
      run;
    * `health`: components of `/health`;
    * `statistics`: functions that return its `Number`s of `lithos_stats`. Their parameters name the parts
      that they need. Asynchronous functions are awaited first, so that all numbers are counted at the same
      moment;
    * `gauges`: samples of `/metrics`;
    * `actors`: actors whose mailboxes `/metrics` shows.
    """

    name: str
    needs: tuple[str, ...] = ()
    makers: tuple[Maker, ...] = ()
    stores: tuple[Store, ...] = ()
    background: tuple[Background, ...] = ()
    pages: Pages = Pages()
    front: str | None = None
    tools: tuple[str, ...] = ()
    resources: tuple[type[Any], ...] = ()
    holds: Holds | None = None
    boards: tuple[type[Any], ...] = ()
    retention: tuple[Retention, ...] = ()
    tables: tuple[Any, ...] = ()
    checks: tuple[str, ...] = ()
    health: tuple[HealthCheck, ...] = ()
    statistics: tuple[Maker, ...] = ()
    gauges: tuple[Gauge, ...] = ()
    actors: tuple[Observed, ...] = ()


@frozen
class Capabilities:
    """All capabilities of a server."""

    listed: tuple[Capability, ...]
