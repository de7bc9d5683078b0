"""The declarations of a capability. `lithos.app` lists all capabilities, ordered by their needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from attrs import frozen

from lithos.kernel.parts import Maker, Parts
from lithos.kernel.state import Gauge, HealthCheck, Observed

#: Whether a server has something with this id, of the kinds that a capability owns.
Holds = Callable[[Parts, str], Awaitable[bool]]


@frozen
class Background:
    """A method of a part that runs for the lifetime of a server.

    `kind` is the class of the part. Nothing runs if the server has no such part.
    """

    kind: type[Any]
    run: Callable[[Any], Awaitable[None]]
    #: Runs only while the server has a front.
    needs_front: bool = False


@frozen
class NavigationLink:
    """An entry of a navigation of the console; the entries are sorted by `place`."""

    place: int
    label: str
    address: str
    #: The key that opens the page, after `g`.
    key: str = ""


@frozen
class PendingReview:
    """Changes that wait for a person: their number, its name and its plural, and the page that lists them.

    `kind` is the class of the part that counts them. Nothing waits if the server has no such part.
    """

    kind: type[Any]
    count: Callable[[Any], int]
    one: str
    many: str
    address: str


@frozen(kw_only=True)
class Pages:
    """The pages and links that a capability adds to the console.

    `modules` are names of modules, imported with the first page. Each has `add_routes(console, app)`.
    """

    modules: tuple[str, ...] = ()
    #: Entries of the navigation, and of the tabs above the lists of notes.
    links: tuple[NavigationLink, ...] = ()
    tabs: tuple[NavigationLink, ...] = ()
    waiting: tuple[PendingReview, ...] = ()


@frozen
class Retention:
    """Rows of `coordination.db` that are deleted when they are old.

    `command` makes the command for a time; its reply is the number of deleted rows. The command is sent
    again while it deletes `most` rows; without `most` it is sent once.
    """

    what: str
    command: Callable[[datetime], Any]
    most: int | None = None


@frozen
class Store:
    """A store that is open on disk while a server runs.

    `open` gets the arguments that its parameters name: the occasion, settings, stores with a lower place. It
    may return None if the store is switched off. Stores are opened by place, and closed in reverse order.
    Stores below 0 are opened before the layout of the data directory is migrated.
    """

    place: int
    open: Maker


@frozen(kw_only=True)
class Capability:
    """One capability of Lithos, with everything it adds to a server.

    * `needs`: the names of the leaf packages without which it is left out too;
    * `makers`: the makers of its parts, each a class or a function (`lithos.kernel.parts`);
    * `background`: its background tasks, from the end of the start until the server stops;
    * `pages`: its additions to the console;
    * `front`: the name of a module, imported with the first front. Its `add_to(front)`, which is async, adds
    endpoints to an HTTP front (`lithos.server.http.front`).
    * `tools`: names of the modules that declare its tools and rows, imported when tools are needed;
    * `resources`: classes of the parts that are kinds of MCP resources, in the order of their list;
    * `holds`: whether the server has an object with an id; a process with several vaults picks that server.
    * `boards`: the classes of its boards, which carry out its commands in the coordinator's transaction;
    * `retention`: its rows of `coordination.db` that are deleted by age;
    * `tables`: its tables of `coordination.db`, each a `lithos.events.rows.schema.CapabilityTables`.
    * `stores`: its stores that are open on disk;
    * `checks`: the modules with its checks (`lithos.kernel.values.findings`), imported when they run;
    * `health`: its components of `/health`;
    * `statistics`: functions that return its `Number`s of `lithos_stats`, from the parts that they name.
    Awaited parts are awaited first, so that all numbers are counted at one moment;
    * `gauges`: its samples of `/metrics`;
    * `actors`: its actors whose mailboxes `/metrics` shows.
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
