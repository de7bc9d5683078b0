"""Server state that capabilities report: components of `/health`, statistics, gauges and actors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from attrs import frozen

from lithos.kernel.parts import Maker

Status = Literal["ok", "warming", "degraded", "unavailable"]
#: Maximum seconds for one check of a component.
CHECK_DEADLINE: Final = 5.0


@frozen
class Component:
    """The line of one component in `/health`."""

    status: Status
    error: str | None = None
    details: Mapping[str, Any] = {}

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form of the component. The key `error` exists only if there is an error."""
        told = {"error": self.error} if self.error else {}
        return {"status": self.status, **told, **self.details}


OK: Final = Component("ok")


@frozen
class HealthCheck:
    """A check of a `/health` component, and the position of the component in the list.

    `look` gets the parts that its parameters name. It returns a `Component`, or None if there is nothing to
    report. It may be asynchronous. If several checks have the same name, the later checks add details to a
    healthy component.
    """

    name: str
    place: int
    look: Maker


@frozen
class Number:
    """A value of `lithos_stats`, and its position in the list."""

    place: int
    key: str
    value: Any


@frozen
class Gauge:
    """Samples of `/metrics`, and their position in the list.

    `look` gets the parts that its parameters name and returns samples. It may be asynchronous.
    """

    place: int
    look: Maker


@frozen
class Observed:
    """An actor whose mailbox `/metrics` shows, and its position in the list."""

    place: int
    kind: type[Any]
