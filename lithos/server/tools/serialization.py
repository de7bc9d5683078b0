"""Conversion of values to the wire format.

`row_of` returns the fields of a value. Packages register exceptions for their own rows.
"""

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
    _WIRE.register_unstructure_hook(_plain, identity)  # this saves a function call for each such value
_WIRE.register_unstructure_hook_func(lambda kind: getattr(kind, "__origin__", None) is tuple, list)
_WIRE.register_unstructure_hook_func(lambda kind: getattr(kind, "__origin__", None) is Mapping, dict)
#: Marker for a field that rows never contain, and marker for a field that rows contain only if it differs
#: from its default. Such a field is at the end of the row.
LEFT_OUT: Final = override(omit=True)
IF_SAID: Final = override(omit_if_default=True)


def renamed(name: str, *, if_said: bool = False) -> Any:
    """Rename a field in the row. With `if_said`, leave the field out if it has its default value."""
    return override(rename=name, omit_if_default=if_said or None)


def register_row(kind: type[Any], **exceptions: Any) -> None:
    """Register the fields of a class that rows leave out, include conditionally, or rename.

    `exceptions` has a keyword for each such field. The owner of a class calls this function where its tools
    are declared, before the first row is made.
    """
    _WIRE.register_unstructure_hook(kind, make_dict_unstructure_fn(kind, _WIRE, **exceptions))
    _writer_of.cache_clear()


def row_of(value: Any) -> dict[str, Any]:
    """Return the fields of a value in order.

    Times become texts, tuples become lists, and the registered exceptions apply.
    """
    kind: type = type(value)
    row: dict[str, Any] = _writer_of(kind)(value)
    return row


@functools.cache  # bounded: the classes of answers
def _writer_of(kind: type) -> Callable[[Any], Any]:
    return _WIRE.get_unstructure_hook(kind)


async def sliced_rows(items: Sequence[T], row: Callable[[T], dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each item. Other tasks may run between the slices of a long list."""
    rows: list[dict[str, Any]] = []
    async for some in slices(items):
        rows += map(row, some)
    return rows
