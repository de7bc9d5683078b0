"""What WebSocket clients may say: subscribe and ack, one JSON object per text frame."""

from __future__ import annotations

from typing import Any

from attrs import frozen
from pydantic_core import from_json

from lithos.services.event_stream import EventFilter


class BadFrame(Exception):
    """A frame that is no command; the message says why."""


@frozen
class Subscribe:
    """Replace the filter; with `since` replay from there."""

    wanted: EventFilter
    since: str | None = None


@frozen
class Ack:
    """Everything up to `seq` is processed."""

    seq: int


def read_command(frame: str | bytes | None) -> Subscribe | Ack:
    """Read one frame. Raises `BadFrame`."""
    if not isinstance(frame, str):
        raise BadFrame("Send text frames, not binary ones.")
    try:
        content = from_json(frame)
    except ValueError as error:
        raise BadFrame(f"A frame is one JSON object: {str(error)[:100]}.") from None
    operation = content.get("op") if isinstance(content, dict) else None
    if operation == "subscribe":
        return Subscribe(
            EventFilter.of(_texts(content, "types"), _texts(content, "tags")), _position(content)
        )
    if operation == "ack":
        return Ack(_seq(content))
    raise BadFrame('A frame is a JSON object with "op": "subscribe" or "ack".')


def _texts(content: dict[str, Any], name: str) -> list[str]:
    value = content.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadFrame(f'"{name}" is a list of texts; leave it out for no filter.')
    return value


def _position(content: dict[str, Any]) -> str | None:
    value = content.get("since")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)[:100] if abs(value) < 10**100 else "-"
    if value is not None and not isinstance(value, str):
        raise BadFrame('"since" is the id of an event, as text.')
    return value


def _seq(content: dict[str, Any]) -> int:
    value = content.get("seq")
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadFrame('"seq" is the seq of an event, an integer.')
    return value
