"""Serialization (wire format): `row_of` by the fields of a value. Owners register the rows that say less."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from cattrs import Converter
from cattrs.fns import identity
from cattrs.gen import make_dict_unstructure_fn, override

from lithos.kernel.actors.threads import slices
from lithos.kernel.values.times import format_optional, format_time

T = TypeVar("T")

_WIRE: Final = Converter()
_WIRE.register_unstructure_hook(datetime, format_time)
_WIRE.register_unstructure_hook(datetime | None, format_optional)
for _plain in (str | None, int | None, float | None):
    _WIRE.register_unstructure_hook(_plain, identity)  # else a call each, to give back what was given
_WIRE.register_unstructure_hook_func(lambda kind: getattr(kind, "__origin__", None) is tuple, list)
_WIRE.register_unstructure_hook_func(lambda kind: getattr(kind, "__origin__", None) is Mapping, dict)
#: A field that a row does not have, and one that it has at its end, unless it is the default.
LEFT_OUT: Final = override(omit=True)
IF_SAID: Final = override(omit_if_default=True)


def renamed(name: str, *, if_said: bool = False) -> Any:
    """A field that a row has under another name; `if_said`: unless it is the default."""
    return override(rename=name, omit_if_default=if_said or None)


def register_row(kind: type[Any], **exceptions: Any) -> None:
    """Register what of a value its row does not say, says only sometimes, or says under another name.

    `exceptions` are by field. The owner of a value calls this where it declares its tools, before any row.
    """
    _WIRE.register_unstructure_hook(kind, make_dict_unstructure_fn(kind, _WIRE, **exceptions))
    _writer_of.cache_clear()


def row_of(value: Any) -> dict[str, Any]:
    """A value's fields in their order: times as text, tuples as lists, all but registered exceptions."""
    kind: type = type(value)
    row: dict[str, Any] = _writer_of(kind)(value)
    return row


@functools.cache  # bounded: the classes of answers
def _writer_of(kind: type) -> Callable[[Any], Any]:
    return _WIRE.get_unstructure_hook(kind)


async def sliced_rows(items: Sequence[T], row: Callable[[T], dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each item; others may run in between."""
    rows: list[dict[str, Any]] = []
    async for some in slices(items):
        rows += map(row, some)
    return rows
