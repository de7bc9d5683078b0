"""What clients can read beside the tools, and what they can be told of."""

from __future__ import annotations

from attrs import frozen

from lithos.services.changes import Changes
from lithos.services.resources import Resources


@frozen
class Library:
    """`changes` is None where no events are delivered."""

    resources: Resources
    changes: Changes | None
