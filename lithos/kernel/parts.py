"""The parts of a running server, which are found by their class.

A constructor names each part that it needs as a parameter, so no part depends on all other parts. Each part
is made once, when it is first needed. Its maker gets the parts that the maker's parameters name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs

P = TypeVar("P")

#: A class or function that makes a part. Annotations give the types of its parameters and of its result.
Maker = Callable[..., Any]
#: Callback that returns the current time, timezone-aware and in UTC.
Clock = Callable[[], datetime]

_UNIONS: Final = (UnionType, Union)


def utc_now() -> datetime:
    """Return the current time, timezone-aware and in UTC."""
    return datetime.now(UTC)


class Parts:
    """All parts of one server.

    A parameter of type `Board` gets the board, and an error is raised if no maker makes it. A parameter of
    type `Board | None` gets None if there is no maker or the maker returns None. A parameter with a default
    keeps the default if there is no maker.
    """

    def __init__(self, makers: Iterable[Maker] = (), given: Mapping[Any, object] = {}) -> None:
        """Create the container without making any parts. `given` contains existing parts by class."""
        self._makers = {made_by(maker): maker for maker in makers}
        self._made: dict[Any, Any] = {Parts: self, **given}
        self._making: list[Any] = []

    @property
    def clock(self) -> Clock:
        """Return the server's clock."""
        clock: Clock = self._made[Clock]
        return clock

    def get(self, kind: type[P]) -> P:
        """Return the part of this class. Raises `LookupError` if it is missing."""
        part = self.find(kind)
        if part is None:
            raise LookupError(
                f"No maker returns {kind.__name__}. Check that its capability is in the list of lithos/app."
            )
        return part

    def find(self, kind: type[P]) -> P | None:
        """Return the part of this class, or None if it is missing."""
        if kind not in self._made:
            self._made[kind] = self._make(kind)
        part: P | None = self._made[kind]
        return part

    def make_all(self) -> None:
        """Make all parts that do not exist yet."""
        for kind in self._makers:
            self.find(kind)

    def _make(self, kind: Any) -> Any:
        maker = self._makers.get(kind)
        if maker is None:
            return None
        if kind in self._making:
            circle = [*self._making[self._making.index(kind) :], kind]
            raise LookupError(
                f"These parts need each other: {' -> '.join(each.__name__ for each in circle)}."
            )
        self._making.append(kind)
        try:
            return self.call(maker)
        finally:
            self._making.pop()

    def call(self, maker: Maker) -> Any:
        """Call a function or class with the parts that its parameters request."""
        return self.bind(maker)()

    def bind(self, maker: Maker) -> Callable[[], Any]:
        """Bind a function or class to the parts that its parameters name, so that many calls are fast."""
        given = {}
        for name, (hint, has_default) in needs_of(maker).items():
            kind = _without_none(hint)
            if not has_default:
                given[name] = self.get(hint) if kind is hint else self.find(kind)
            elif (part := self.find(kind)) is not None:
                given[name] = part
        return partial(maker, **given)


def made_by(maker: Maker) -> Any:
    """Return the class of the part that a maker makes."""
    return maker if isinstance(maker, type) else _without_none(get_type_hints(maker)["return"])


def needs_of(maker: Maker) -> dict[str, tuple[Any, bool]]:
    """Return the parameters of a maker, with the type of each parameter and whether it has a default."""
    if isinstance(maker, type) and attrs.has(maker):
        hints = get_type_hints(maker)
        fields = [each for each in attrs.fields(maker) if each.init]
        return {each.alias: (hints[each.name], each.default is not attrs.NOTHING) for each in fields}
    function: Any = vars(maker).get("__init__", maker) if isinstance(maker, type) else maker
    if not hasattr(function, "__code__"):  # The maker is a class without its own constructor.
        return {}
    hints, code = get_type_hints(function), function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    defaults = {*names[: code.co_argcount][code.co_argcount - len(function.__defaults__ or ()) :]}
    defaults |= set(function.__kwdefaults__ or ())
    return {name: (hints[name], name in defaults) for name in names if name != "self"}


def _without_none(hint: Any) -> Any:
    """Return `X` for `X | None`. Return any other type hint unchanged."""
    if get_origin(hint) in _UNIONS:
        kinds = [each for each in get_args(hint) if each is not NoneType]
        if len(kinds) == 1 and len(get_args(hint)) == 2:
            return kinds[0]
    return hint
