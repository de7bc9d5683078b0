"""What a capability declares of itself. `lithos.app` lists them, ordered by what they need."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from attrs import frozen

from lithos.kernel.parts import Maker


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
class Retention:
    """Rows of `coordination.db` that go when they are old.

    `command` makes the command for a time, whose reply is the number of rows it deleted. The command is sent
    again while it deletes `most` rows; without `most` it is sent once.
    """

    what: str
    command: Callable[[datetime], Any]
    most: int | None = None


@frozen(kw_only=True)
class Capability:
    """One thing that Lithos can do, with everything it adds to a server.

    * `makers`: what makes its parts, each a class or a function (`lithos.kernel.parts`);
    * `background`: what runs beside the server from the end of its start until it stops;
    * `boards`: the classes of its boards, which carry out its commands in the coordinator's transaction;
    * `retention`: its old rows of `coordination.db`;
    * `tables`: its tables of `coordination.db`, each a `lithos.stores.coordination.schema.Tables`.
    """

    name: str
    makers: tuple[Maker, ...] = ()
    background: tuple[Background, ...] = ()
    boards: tuple[type[Any], ...] = ()
    retention: tuple[Retention, ...] = ()
    tables: tuple[Any, ...] = ()
