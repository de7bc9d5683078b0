"""State of access control: admitted requests that are running, and addresses that send wrong tokens.

The scope of a request contains its principal and an event. The event is set when the token becomes invalid,
which ends streams. Wrong tokens are counted by address. A valid token is always accepted, even behind a
reverse proxy, where all requests have the same address.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio
from attrs import define, field

from lithos.kernel.values.limits import Newest
from lithos.kernel.values.principals import Principal
from lithos.server.http.ports import Scope
from lithos.server.tools.token_ports import Keyring

#: Keys of the principal and of the end event in an ASGI scope.
PRINCIPAL: Final = "lithos.principal"
ENDED: Final = "lithos.ended"
#: An address that sends more wrong tokens than this within `WINDOW` seconds is refused for `WINDOW` seconds.
MOST_WRONG: Final = 20
WINDOW: Final = 60.0
#: Maximum number of remembered addresses. The oldest entry is deleted first.
MOST_ADDRESSES: Final = 10_000


def principal_of(scope: Scope) -> Principal | None:
    """Return the principal of a request, or None if it was admitted without a token."""
    found: Principal | None = scope.get(PRINCIPAL)
    return found


def ended_of(scope: Scope) -> trio.Event:
    """Return an event that is set when the token of a request becomes invalid."""
    event: trio.Event | None = scope.get(ENDED)
    return trio.Event() if event is None else event


@define(eq=False)
class _Admission:
    principal: Principal
    ended: trio.Event = field(factory=trio.Event)


class Admissions:
    """Running requests, each with the principal of its token."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        self._open: set[_Admission] = set()

    @contextmanager
    def entered(self, scope: Scope, principal: Principal | None) -> Iterator[None]:
        """Store the principal in the scope and track the request until the block ends."""
        scope[PRINCIPAL] = principal
        if principal is None:
            yield
            return
        admission = _Admission(principal)
        scope[ENDED] = admission.ended
        self._open.add(admission)
        try:
            yield
        finally:
            self._open.discard(admission)

    async def run(self) -> None:
        """End the streams of revoked or expired tokens. Runs until cancelled."""
        while True:
            await self._keyring.wait_changed()
            for admission in self._open:
                if not self._keyring.is_valid(admission.principal):
                    admission.ended.set()


@define(eq=False)
class _Guesses:
    began: float
    count: int = 0
    refused_until: float = float("-inf")


class WrongTokens:
    """Counter of wrong tokens by address."""

    def __init__(self) -> None:
        self._by_address: Newest[str, _Guesses] = Newest(MOST_ADDRESSES)

    def __len__(self) -> int:
        return len(self._by_address)

    def note(self, address: str, now: float) -> float:
        """Count a wrong token. `now` is the current time in seconds.

        Return the number of seconds for which the address is refused, or 0 if it is not refused.
        """
        key = _network_of(address)
        guesses = self._by_address.get(key)
        if guesses is None or (now >= guesses.refused_until and now - guesses.began >= WINDOW):
            guesses = self._by_address[key] = _Guesses(now)
        guesses.count += 1
        if guesses.count == MOST_WRONG + 1:
            guesses.refused_until = now + WINDOW
        return max(0.0, guesses.refused_until - now)


def _network_of(address: str) -> str:
    """Return an IPv4 address unchanged, or the /64 network of an IPv6 address.

    One customer has a whole such network.
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
