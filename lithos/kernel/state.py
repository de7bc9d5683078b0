"""The state of a server as capabilities report it: components of `/health`, statistics, gauges, actors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from attrs import frozen

from lithos.kernel.parts import Maker

Status = Literal["ok", "warming", "degraded", "unavailable"]
#: Seconds for one check of a component.
CHECK_DEADLINE: Final = 5.0


@frozen
class Component:
    """One line of `/health`."""

    status: Status
    error: str | None = None
    details: Mapping[str, Any] = {}

    def as_json(self) -> dict[str, Any]:
        """Return its JSON form; `error` only if there is one."""
        told = {"error": self.error} if self.error else {}
        return {"status": self.status, **told, **self.details}


OK: Final = Component("ok")


@frozen
class HealthCheck:
    """A component of `/health`, and its place there.

    `look` gets the parts that its parameters name. It returns a `Component`, or None if there is
    nothing to report; it may be asynchronous. If several have one name, the later ones add details to a
    healthy component.
    """

    name: str
    place: int
    look: Maker


@frozen
class Number:
    """A value of `lithos_stats`, and its place there."""

    place: int
    key: str
    value: Any


@frozen
class Gauge:
    """Samples of `/metrics`, and their place there.

    `look` gets the parts that its parameters name, and returns samples; it may be asynchronous.
    """

    place: int
    look: Maker


@frozen
class Observed:
    """An actor whose mailbox `/metrics` shows, and its place there."""

    place: int
    kind: type[Any]
