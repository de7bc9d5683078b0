"""Console visits that span several vaults: the vaults that a token opened, and the sessions started in them.

One login opens all vaults that accept the token. The person does not see the other vaults. A visit stores
principals, but never the token. If the session of a vault ends, for example by a logout there, the visit
loses that vault.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol

from attrs import define, field, frozen

from lithos.kernel.values.limits import Newest
from lithos.kernel.values.principals import ANYONE, Principal
from lithos.server.console.console import Console
from lithos.server.console.sessions import LIFE, MOST_SESSIONS, BrowserSession, Sessions
from lithos.server.tools.token_ports import Keyring

VaultState = Literal["serving", "indexing", "unavailable"]
_ENDED: Final = (
    "Your session has ended: its 12 hours are over, the server was restarted, or the token was "
    "revoked, has expired or now has other rights."
)


class VaultView(Protocol):
    """One vault as the overview console sees it."""

    @property
    def name(self) -> str:
        """The vault's name, which is part of its URLs."""
        ...

    @property
    def state(self) -> VaultState:
        """The vault's state. A vault that is still indexing may already serve the indexed notes."""
        ...

    @property
    def reason(self) -> str:
        """Return why the vault is unavailable, or the progress of indexing.

        Return "" if there is nothing to report.
        """
        ...

    @property
    def progress(self) -> float | None:
        """The indexed share of the notes, from 0 to 1, or None if it is unknown."""
        ...

    @property
    def console(self) -> Console | None:
        """The console of the vault, or None while the vault is unavailable."""
        ...

    @property
    def ring(self) -> Keyring:
        """The tokens of the vault. They can be checked even while the vault is unavailable."""
        ...


#: Function that returns all vaults of the process in display order.
Vaults = Callable[[], Sequence[VaultView]]


@frozen
class _Entered:
    """A session in a vault, with the session store that contains it.

    A vault that is opened again gets a new store.
    """

    sessions: Sessions
    session: BrowserSession

    @property
    def holds(self) -> bool:
        return self.sessions.holds(self.session)


@define(eq=False)
class Visit:
    """The visit of one browser. `principals` maps vault names to the token's principal in each vault."""

    id: str = field(repr=False)
    #: The agent name that was chosen at login, or None.
    agent: str | None
    expires_at: datetime
    principals: dict[str, Principal]
    csrf: str = field(factory=lambda: secrets.token_urlsafe(24), repr=False)
    entered: dict[str, _Entered] = field(factory=dict, repr=False)

    def owns(self, csrf: str) -> bool:
        """Return whether a form belongs to this visit. The comparison takes constant time."""
        return hmac.compare_digest(csrf.encode(), self.csrf.encode())


@define(eq=False)
class Visits:
    """All visits, by id."""

    _vaults: Vaults
    _clock: Callable[[], datetime]
    _by_id: Newest[str, Visit] = field(factory=lambda: Newest(MOST_SESSIONS), init=False)

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def needs_login(self) -> bool:
        """Return whether a token could open more vaults than a caller without a token may use."""
        return not all(vault.ring.is_open for vault in self._vaults())

    def find(self, visit_id: str | None) -> Visit | None:
        """Return the visit with this id, or None if it has expired or has no vault left."""
        visit = self._by_id.get(visit_id or "")
        if visit is None:
            return None
        # If a visit expires later than a new visit would, the clock was set back after the visit began.
        lasts = timedelta(0) < visit.expires_at - self._clock() < LIFE + timedelta(minutes=1)
        if not lasts or not any(self._holds(visit, vault) for vault in self._vaults()):
            self.end(visit)
            return None
        self._by_id.move_to_end(visit.id)
        return visit

    def begin(self, secret: bytes, agent: str | None) -> Visit | None:
        """Start a visit for this token and return it. Return None if no vault accepts the token."""
        # Check the token in all vaults, so that the response time does not reveal which vault accepts it.
        asked = {vault.name: vault.ring.find(secret) for vault in self._vaults() if not vault.ring.is_open}
        principals = {name: found for name, found in asked.items() if found is not None and found.may("read")}
        if not principals:
            return None
        visit = Visit(secrets.token_urlsafe(32), agent, self._clock() + LIFE, principals)
        self._by_id[visit.id] = visit
        return visit

    def end(self, visit: Visit) -> None:
        """Log out of all vaults and delete the visit."""
        self._by_id.pop(visit.id, None)
        for each in visit.entered.values():
            each.sessions.end(each.session)

    def allowed(self, visit: Visit | None) -> Mapping[str, tuple[VaultView, Principal]]:
        """Return the vaults that the person may use, by name: public vaults and vaults of the visit."""
        return {
            vault.name: (
                vault,
                ANYONE if vault.ring.is_open or visit is None else visit.principals[vault.name],
            )
            for vault in self._vaults()
            if vault.ring.is_open or (visit is not None and self._holds(visit, vault))
        }

    def enter(self, visit: Visit) -> Mapping[str, BrowserSession]:
        """Start missing sessions in all vaults whose console is running. Return the new sessions by vault."""
        begun = dict[str, BrowserSession]()
        for name, (vault, principal) in self.allowed(visit).items():
            if vault.console is not None and not vault.ring.is_open and name not in visit.entered:
                sessions = vault.console.sessions
                begun[name] = sessions.begin(visit.agent, principal)
                visit.entered[name] = _Entered(sessions, begun[name])
        return begun

    def why_ended(self, visit_id: str | None) -> str:
        """Return the message for a client whose visit has ended, or "" if the client had no visit."""
        return _ENDED if visit_id and visit_id not in self._by_id else ""

    def _holds(self, visit: Visit, vault: VaultView) -> bool:
        """Return whether a visit still opens a vault. Otherwise remove the vault from the visit."""
        principal = visit.principals.get(vault.name)
        if principal is None:
            return False
        entered = visit.entered.get(vault.name)
        if entered is not None and (vault.console is None or vault.console.sessions is not entered.sessions):
            del visit.entered[vault.name]
            entered = None
        if vault.ring.is_valid(principal) and (entered is None or entered.holds):
            return True
        del visit.principals[vault.name]
        return False
