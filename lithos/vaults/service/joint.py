"""The vaults of one process, and callers' access to them (docs/spec/vaults.md §2, §3).

The tokens of a vault are stored in its data directory. A token that several vaults accept is one caller in
all of them. The caller does not see other vaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

import trio
from attrs import define, evolve, field, frozen

from lithos.access.service.keyring import TokenRing
from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import InvalidInput, VaultUnavailable
from lithos.kernel.values.principals import ANYONE, OWNER, TOKEN_RIGHTS, Principal

#: `opening`: the vault's server is starting. `serving`: the server runs. `unavailable`: the vault cannot be
#: served.
VaultState = Literal["opening", "serving", "unavailable"]
#: The vault name that selects all vaults that a caller may use.
ALL: Final = "*"


@define(eq=False)
class Vault:
    """One vault: its name, its tokens and, while it is served, its services."""

    name: str
    ring: TokenRing
    services: Parts | None = None
    state: VaultState = "opening"
    #: The reason why the vault is not served, or "".
    reason: str = ""

    def serving(self) -> Parts:
        """Return the vault's services. Raises `VaultUnavailable` while the vault is not served."""
        if self.services is None:
            why = self.reason or "it is starting"
            raise VaultUnavailable(
                f"The vault {self.name!r} is not served now: {why}. The server tries again "
                "automatically; other vaults still answer."
            )
        return self.services


@frozen
class JointPrincipal(Principal):
    """The caller of a token that one or more vaults accept, with the caller's principal in each vault."""

    parts: tuple[tuple[str, Principal], ...] = field(default=(), kw_only=True)


@define(eq=False)
class VaultSet:
    """All vaults of the process, in the configured order."""

    vaults: Mapping[str, Vault]
    #: The vault for calls that do not name a vault, if the caller may use it.
    default: str
    #: Set and replaced whenever a vault starts or stops serving.
    _changed: trio.Event = field(factory=trio.Event, init=False)

    def __iter__(self) -> Iterator[Vault]:
        return iter(self.vaults.values())

    def tell(self) -> None:
        """Notify waiting tasks that a vault has started or stopped serving."""
        self._changed.set()
        self._changed = trio.Event()

    async def wait_changed(self) -> None:
        """Wait until a vault starts or stops serving."""
        await self._changed.wait()

    def allowed(self, principal: Principal) -> list[tuple[Vault, Principal]]:
        """Return the vaults that a caller may use, with the caller's principal in each.

        The default vault is first.
        """
        if isinstance(principal, JointPrincipal):
            found = [
                (self.vaults[name], evolve(part, project=principal.project, session=principal.session))
                for name, part in principal.parts
            ]
        else:  # The caller is the owner, or no token is required.
            found = [(vault, principal) for vault in self]
        return sorted(found, key=lambda each: each[0].name != self.default)


class JointRing:
    """The tokens of all vaults, with the interface of a `TokenRing`."""

    foreign: Final = None
    #: Each vault reports its own token problems.
    trouble: Final = None

    def __init__(self, vaults: VaultSet) -> None:
        self._vaults = vaults

    @property
    def is_open(self) -> bool:
        """Return whether no vault requires a token."""
        return all(vault.ring.asks_nothing for vault in self._vaults)

    def find(self, secret: bytes) -> Principal | None:
        """Return the principal of a token, or None if no vault accepts the token."""
        found = [(vault.name, who) for vault in self._vaults if (who := vault.ring.find(secret)) is not None]
        return _join(found) if found else None

    def is_valid(self, principal: Principal) -> bool:
        """Return whether every vault that accepted this principal still accepts it."""
        if not isinstance(principal, JointPrincipal):
            return principal == OWNER or (principal == ANYONE and self.is_open)
        return all(self._vaults.vaults[name].ring.is_valid(part) for name, part in principal.parts)

    async def wait_changed(self) -> None:
        """Wait until any vault may have revoked a principal."""
        # Collect the events now, because a task that starts later could miss an event.
        changes = [vault.ring.next_change for vault in self._vaults]
        async with trio.open_nursery() as nursery:

            async def wait(change: trio.Event) -> None:
                await change.wait()
                nursery.cancel_scope.cancel()

            for change in changes:
                nursery.start_soon(wait, change)


def _join(parts: Sequence[tuple[str, Principal]]) -> JointPrincipal:
    """Merge principals.

    The result has the highest rights. It is bound to an agent if all parts are bound to it.
    """
    parts = [each for each in parts if each[1].may("read")] or parts  # metrics rights open no notes
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
    """Return the vault that a caller named. Raises `InvalidInput` with the names of the allowed vaults."""
    for vault, who in allowed:
        if vault.name == name:
            return vault, who
    names = ", ".join(vault.name for vault, _ in allowed)
    raise InvalidInput(f"Unknown vault {name[:100]!r}. Use one of: {names}.")
