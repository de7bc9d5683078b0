"""JSON of long lists in slices, so that encoding one answer does not hold up all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import trio

#: Rows encoded at once: about two milliseconds of rows as `lithos_list` has them.
SLICE: Final = 200


async def join_slices(value: Mapping[str, Any] | None, encode: Callable[[Any], str]) -> str:
    """Return `encode(value)`, the compact JSON of an object; see `encode_slices`."""
    return "".join(await encode_slices(value, encode))


async def encode_slices(value: Mapping[str, Any] | None, encode: Callable[[Any], str]) -> list[str]:
    """Return `encode(value)` in parts; between slices of long lists others may run."""
    if value is None or not any(_is_long(item) for item in value.values()):
        return [encode(value)]
    parts: list[str] = []
    for key, item in value.items():
        parts.append(f"{',' if parts else '{'}{encode(key)}:")
        parts += await _encode_member(item, encode)
    return [*parts, "}"]


async def _encode_member(item: Any, encode: Callable[[Any], str]) -> list[str]:
    if not _is_long(item):
        return [encode(item)]
    parts: list[str] = []
    for start in range(0, len(item), SLICE):
        parts.append(f"{',' if parts else '['}{encode(item[start : start + SLICE])[1:-1]}")
        await trio.lowlevel.checkpoint()
    return [*parts, "]"]


def _is_long(item: Any) -> bool:
    return isinstance(item, list) and len(item) > SLICE
