"""The vaults of one process, and the access of callers to them (docs/spec/vaults.md §2, §3).

Each vault has the tokens of its own data directory. A token that several of them know is one caller of all
of these; to it the others do not exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

import trio
from attrs import define, field, frozen

from lithos.access.service.keyring import TokenRing
from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import InvalidInput, VaultUnavailable
from lithos.kernel.values.principals import ANYONE, OWNER, TOKEN_RIGHTS, Principal

#: `opening` until its server is there, `serving`, `unavailable` while it cannot be.
VaultState = Literal["opening", "serving", "unavailable"]
#: Stands for all vaults that a caller may use.
ALL: Final = "*"


@define(eq=False)
class Vault:
    """One vault: its name, its tokens, and its services while it is served."""

    name: str
    ring: TokenRing
    services: Parts | None = None
    state: VaultState = "opening"
    #: Why it is not served.
    reason: str = ""

    def serving(self) -> Parts:
        """Its services. Raises `VaultUnavailable`."""
        if self.services is None:
            why = self.reason or "it is being opened"
            raise VaultUnavailable(
                f"The vault {self.name!r} is not served now: {why}. The server tries again "
                "automatically; other "
                "vaults still answer."
            )
        return self.services


@frozen
class JointPrincipal(Principal):
    """The caller of a token that one or more vaults know: its principal in each of them."""

    parts: tuple[tuple[str, Principal], ...] = field(default=(), kw_only=True)


@define(eq=False)
class VaultSet:
    """All vaults of the process, in their order."""

    vaults: Mapping[str, Vault]
    #: The default vault for calls that name none, if the caller may use it.
    default: str
    #: Set, and replaced, when a vault begins or ceases to be served.
    _changed: trio.Event = field(factory=trio.Event, init=False)

    def __iter__(self) -> Iterator[Vault]:
        return iter(self.vaults.values())

    def tell(self) -> None:
        """A vault has begun or ceased to be served."""
        self._changed.set()
        self._changed = trio.Event()

    async def wait_changed(self) -> None:
        """Wait until a vault begins or ceases to be served."""
        await self._changed.wait()

    def allowed(self, principal: Principal) -> list[tuple[Vault, Principal]]:
        """Return the vaults that a caller may use, the default one first, with its principal there."""
        if isinstance(principal, JointPrincipal):
            found = [(self.vaults[name], part) for name, part in principal.parts]
        else:  # the owner, and all callers where no token is required
            found = [(vault, principal) for vault in self]
        return sorted(found, key=lambda each: each[0].name != self.default)


class JointRing:
    """The tokens of all vaults, as a `TokenRing`."""

    foreign: Final = None
    #: Each vault reports its own.
    trouble: Final = None

    def __init__(self, vaults: VaultSet) -> None:
        self._vaults = vaults

    @property
    def is_open(self) -> bool:
        """Whether no vault asks for a token."""
        return all(vault.ring.asks_nothing for vault in self._vaults)

    def find(self, secret: bytes) -> Principal | None:
        """Whom the vaults take a token for; None where none knows it."""
        found = [(vault.name, who) for vault in self._vaults if (who := vault.ring.find(secret)) is not None]
        return _join(found) if found else None

    def is_valid(self, principal: Principal) -> bool:
        """Whether every vault that let this principal in still does."""
        if not isinstance(principal, JointPrincipal):
            return principal == OWNER or (principal == ANYONE and self.is_open)
        return all(self._vaults.vaults[name].ring.is_valid(part) for name, part in principal.parts)

    async def wait_changed(self) -> None:
        """Wait until a principal may have become invalid in a vault."""
        # Those of this moment: a task that has yet to begin would miss a change meanwhile.
        changes = [vault.ring.next_change for vault in self._vaults]
        async with trio.open_nursery() as nursery:

            async def wait(change: trio.Event) -> None:
                await change.wait()
                nursery.cancel_scope.cancel()

            for change in changes:
                nursery.start_soon(wait, change)


def _join(parts: Sequence[tuple[str, Principal]]) -> JointPrincipal:
    """One principal: the most rights of any, and its agent where all vaults bind it to the same."""
    parts = [each for each in parts if each[1].may("read")] or parts  # metrics of one open no notes of it
    agents = {part.agent for _, part in parts}
    first = parts[0][1]
    return JointPrincipal(
        first.name,
        max((part.rights for _, part in parts), key=TOKEN_RIGHTS.index),
        first.agent if len(agents) == 1 else None,
        mark="+".join(f"{name}:{part.mark}" for name, part in parts),
        parts=tuple(parts),
    )


def find_named(allowed: Sequence[tuple[Vault, Principal]], name: str) -> tuple[Vault, Principal]:
    """The vault that a caller named. Raises `InvalidInput` with those that it may use."""
    for vault, who in allowed:
        if vault.name == name:
            return vault, who
    names = ", ".join(vault.name for vault, _ in allowed)
    raise InvalidInput(f"There is no vault {name[:100]!r}. Name one of: {names}.")
