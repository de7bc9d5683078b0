"""What the capabilities of `lithos.capabilities` add to a server."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Final

from lithos.capabilities import NAMES
from lithos.kernel.capability import Background, Capability
from lithos.kernel.parts import Maker


def _load(name: str) -> Capability:
    found: Capability = getattr(import_module(f"lithos.{name}.capability"), name.upper())
    return found


CAPABILITIES: Final[tuple[Capability, ...]] = tuple(map(_load, NAMES))


def makers() -> Iterator[Maker]:
    """What makes the parts of a server."""
    for capability in CAPABILITIES:
        yield from capability.makers


def background(*, of_front: bool) -> Iterator[Background]:
    """What runs beside a server, or beside its front."""
    for capability in CAPABILITIES:
        yield from (each for each in capability.background if each.needs_front == of_front)
