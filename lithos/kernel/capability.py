"""What a capability declares of itself. `lithos.app` lists them, ordered by what they need."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
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


@frozen(kw_only=True)
class Capability:
    """One thing that Lithos can do, with everything it adds to a server.

    * `makers`: what makes its parts, each a class or a function (`lithos.kernel.parts`);
    * `background`: what runs beside the server from the end of its start until it stops;
    * `checks`: the modules with its checks (`lithos.core.findings`), imported when somebody asks for checks.
    """

    name: str
    makers: tuple[Maker, ...] = ()
    background: tuple[Background, ...] = ()
    checks: tuple[str, ...] = ()
