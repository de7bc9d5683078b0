"""Visits at the console of several vaults: the vaults that a token opened, and the sessions begun in them.

One login opens all vaults in which the token is valid; for its holder the others do not exist. A visit
remembers principals and never the token. It loses a vault whose session ended, as by a logout there.
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
    "Your session has ended: its 12 hours are over, the server was restarted, or the token was revoked, "
    "has expired, or has other rights now."
)


class VaultView(Protocol):
    """One vault of several, as the console before them sees it."""

    @property
    def name(self) -> str:
        """Its name, which is in its addresses."""
        ...

    @property
    def state(self) -> VaultState:
        """Whether it serves; one that is indexing may serve what it has."""
        ...

    @property
    def reason(self) -> str:
        """Why it is unavailable and what to do, or what the indexing does, as a sentence; "" for nothing."""
        ...

    @property
    def progress(self) -> float | None:
        """Which share of the notes is indexed, from 0 to 1; None where that is not known."""
        ...

    @property
    def console(self) -> Console | None:
        """Its console, once there is one: not while it is unavailable."""
        ...

    @property
    def ring(self) -> Keyring:
        """Its tokens: they keep their result while the vault is unavailable."""
        ...


#: All vaults of the process, in the order in which they are shown.
Vaults = Callable[[], Sequence[VaultView]]


@frozen
class _Entered:
    """A session begun in a vault, with the sessions it is one of:

    those are new once the vault is opened again.
    """

    sessions: Sessions
    session: BrowserSession

    @property
    def holds(self) -> bool:
        return self.sessions.holds(self.session)


@define(eq=False)
class Visit:
    """One browser: `principals` by the names of the vaults that its token may use."""

    id: str = field(repr=False)
    #: The name chosen at the login; None for none.
    agent: str | None
    expires_at: datetime
    principals: dict[str, Principal]
    csrf: str = field(factory=lambda: secrets.token_urlsafe(24), repr=False)
    entered: dict[str, _Entered] = field(factory=dict, repr=False)

    def owns(self, csrf: str) -> bool:
        """Whether a form is one of this visit's; compared in constant time."""
        return hmac.compare_digest(csrf.encode(), self.csrf.encode())


@define(eq=False)
class Visits:
    """All visits by id."""

    _vaults: Vaults
    _clock: Callable[[], datetime]
    _by_id: Newest[str, Visit] = field(factory=lambda: Newest(MOST_SESSIONS), init=False)

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def needs_login(self) -> bool:
        """Whether a token opens more than there is without one."""
        return not all(vault.ring.is_open for vault in self._vaults())

    def find(self, visit_id: str | None) -> Visit | None:
        """The visit with this id, while its time lasts and it has a vault."""
        visit = self._by_id.get(visit_id or "")
        if visit is None:
            return None
        # One that ends much later than a new one would was begun before the clock was put back.
        lasts = timedelta(0) < visit.expires_at - self._clock() < LIFE + timedelta(minutes=1)
        if not lasts or not any(self._holds(visit, vault) for vault in self._vaults()):
            self.end(visit)
            return None
        self._by_id.move_to_end(visit.id)
        return visit

    def begin(self, secret: bytes, agent: str | None) -> Visit | None:
        """Return a visit for this token; None if no vault accepts it."""
        # All vaults are checked, so that the time does not reveal which of them accepts it.
        asked = {vault.name: vault.ring.find(secret) for vault in self._vaults() if not vault.ring.is_open}
        principals = {name: found for name, found in asked.items() if found is not None and found.may("read")}
        if not principals:
            return None
        visit = Visit(secrets.token_urlsafe(32), agent, self._clock() + LIFE, principals)
        self._by_id[visit.id] = visit
        return visit

    def end(self, visit: Visit) -> None:
        """Log out of all vaults."""
        self._by_id.pop(visit.id, None)
        for each in visit.entered.values():
            each.sessions.end(each.session)

    def allowed(self, visit: Visit | None) -> Mapping[str, tuple[VaultView, Principal]]:
        """The vaults that the person may use, by name: those open to all, and those of the visit."""
        return {
            vault.name: (
                vault,
                ANYONE if vault.ring.is_open or visit is None else visit.principals[vault.name],
            )
            for vault in self._vaults()
            if vault.ring.is_open or (visit is not None and self._holds(visit, vault))
        }

    def enter(self, visit: Visit) -> Mapping[str, BrowserSession]:
        """Begin the sessions that are missing, in vaults with a console by now; the new ones by vault."""
        begun = dict[str, BrowserSession]()
        for name, (vault, principal) in self.allowed(visit).items():
            if vault.console is not None and not vault.ring.is_open and name not in visit.entered:
                sessions = vault.console.sessions
                begun[name] = sessions.begin(visit.agent, principal)
                visit.entered[name] = _Entered(sessions, begun[name])
        return begun

    def why_ended(self, visit_id: str | None) -> str:
        """Return the message for a client with an ended visit; "" for a client without one."""
        return _ENDED if visit_id and visit_id not in self._by_id else ""

    def _holds(self, visit: Visit, vault: VaultView) -> bool:
        """Whether a visit still opens a vault; one that it does not open is forgotten."""
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
