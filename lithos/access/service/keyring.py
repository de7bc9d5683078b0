"""Tokens that a running server accepts: the owner token, `server.auth_token`, and the named tokens on disk.

The file of named tokens is checked every `EVERY` seconds. If it is damaged or unreadable, or missing after
tokens were defined, the server refuses named tokens and never opens access. A temporary read error proves
nothing, so the file is read again at each check. A server without tokens is open again as soon as the file is
readable.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio
from attrs import field, frozen

from lithos.access.files.tokens import LOCK, TOKENS, Token, TokensUnreadable, is_released, read_tokens
from lithos.access.model.grants import Access
from lithos.kernel.actors.threads import Blocking, Threads
from lithos.kernel.log import get_logger
from lithos.kernel.values.principals import ANYONE, OWNER, Principal
from lithos.notes.model.scopes import Scope
from lithos.server.tools.token_ports import AUTH_TOKEN

if TYPE_CHECKING:
    from lithos.access.service.foreign import ForeignTokens

log = get_logger("lithos.tokens")

#: Seconds between two checks of the file. A revoked token is refused within 2 s.
EVERY: Final = 0.5
#: Seconds after a change in which the file may change again without a new modification time.
UNSETTLED: Final = 3.0
#: Scope of calls whose named token no longer exists. They can change nothing.
NOTHING: Final = Scope((), ())

_Look = tuple[tuple[int, ...] | None, ...]


@frozen
class _Key:
    """A principal with the digest of its secret."""

    principal: Principal
    digest: bytes = field(repr=False)
    expires_at: datetime | None = None
    access: Access | None = None

    def is_valid(self, now: datetime) -> bool:
        if self.access is not None and not self.access.is_valid(now):
            return False
        return self.expires_at is None or now < self.expires_at

    def end(self, now: datetime) -> datetime | None:
        """Return when the key will end. Return None if it never ends or has already ended."""
        if not self.is_valid(now):
            return None
        ends = (self.expires_at, None if self.access is None else self.access.expires_at)
        return min((end for end in ends if end is not None), default=None)


class TokenRing:
    """The currently valid tokens: `server.auth_token`, the named tokens, and the token of the owner.

    Until `run` has read the file, the ring contains only the configured token and the owner token.
    """

    def __init__(
        self,
        private: Path,
        clock: Callable[[], datetime],
        auth_token: str | None = None,
        *,
        asks_always: bool = False,
        looking: Blocking | None = None,
    ) -> None:
        """Create a ring for the tokens in `private`, the `.lithos` folder of the data directory.

        If `asks_always` is set, callers always need a token, even if no token was ever defined.
        """
        self._private = private
        #: Tokens of a foreign authorization server, if one is configured.
        self.foreign: ForeignTokens | None = None
        #: Function that returns whether no other vault of the process requires a token. If one vault has
        #: tokens, all vaults require a token.
        self.others_ask_nothing: Callable[[], bool] = lambda: True
        self._clock = clock
        self._looking = looking or Threads()
        #: Token for commands and hooks of users who may read the lock file. Each process creates its own
        #: token.
        self.own_token = secrets.token_urlsafe(32)
        self._fixed = [_key(OWNER, self.own_token)]
        self._is_fixed_open = auth_token is None and not asks_always
        if auth_token is not None:
            self._fixed.append(_key(AUTH_TOKEN, auth_token))
        self._tokens: tuple[Token, ...] | None = None
        self._is_known = False
        self._trouble: str | None = None
        #: Whether tokens were defined since this process started. An unreadable file does not prove that they
        #: were.
        self._were_defined = False
        #: Whether the last read error may be temporary. If so, the file is read again at each check.
        self._may_pass = False
        self._by_digest: Mapping[bytes, _Key] = {}
        self._by_principal: Mapping[Principal, Sequence[_Key]] = {}
        self._scopes: Mapping[Principal, Scope | None] = {}
        self._changed = trio.Event()
        self._reading = trio.Lock()
        self._arrange()

    @property
    def is_open(self) -> bool:
        """Return whether no token is required. All callers then have the rights of the owner."""
        return self.asks_nothing and self.others_ask_nothing()

    @property
    def asks_nothing(self) -> bool:
        """Return whether no token is defined. Return False if a token file is unreadable."""
        return self._is_fixed_open and self._is_known and self._tokens is None

    @property
    def trouble(self) -> str | None:
        """Return why named tokens are refused, with advice, for `/health`."""
        return self._trouble

    @property
    def named(self) -> tuple[Token, ...]:
        """Return the named tokens, including expired tokens."""
        return self._tokens or ()

    @property
    def announcement(self) -> str | None:
        """Return the startup message about named tokens. Return None if no named token was ever defined."""
        if self._trouble is not None:
            return f"{self._trouble}."
        if self._tokens is None:
            return None
        now = self._clock()
        expired = sum(token.has_expired(now) for token in self._tokens)
        past = f", {expired} of them expired" if expired else ""
        return f"Named tokens: {len(self._tokens)}{past}"

    def accept(self, secret: str) -> None:
        """Accept a further token with full access until this process ends."""
        self._is_fixed_open = False
        if hashlib.sha256(secret.encode()).digest() not in self._by_digest:
            self._fixed.append(_key(AUTH_TOKEN, secret))
            self._arrange()

    def find(self, secret: bytes) -> Principal | None:
        """Return the principal of a token. Return None for a wrong or expired token.

        The duration of the lookup reveals nothing about any token. The lookup uses the SHA-256 of the given
        secret, and no caller can choose a secret whose digest begins like the digest of a 256-bit secret. The
        digest that was found is compared in constant time.
        """
        digest = hashlib.sha256(secret).digest()
        key = self._by_digest.get(digest)
        if not secret or key is None or not hmac.compare_digest(key.digest, digest):
            return None if self.foreign is None else self.foreign.find(secret)
        return key.principal if key.is_valid(self._clock()) else None

    def fingerprint(self, principal: Principal) -> bytes | None:
        """Return the digest that identifies the token of a principal in every ring.

        Return None for a principal without a token.
        """
        keys = self._by_principal.get(principal, ())
        return keys[0].digest if keys else None

    def has(self, fingerprint: bytes) -> bool:
        """Return whether this ring has a valid token with this fingerprint."""
        key = self._by_digest.get(fingerprint)
        return key is not None and key.is_valid(self._clock())

    def is_valid(self, principal: Principal) -> bool:
        """Return whether the token of this principal is still valid, with the same rights and agent."""
        if principal == ANYONE:
            return self.is_open
        now = self._clock()
        if any(key.is_valid(now) for key in self._by_principal.get(principal, ())):
            return True
        return self.foreign is not None and self.foreign.is_valid(principal)

    def scope_of(self, principal: Principal) -> Scope | None:
        """Return the current scope of the principal's token.

        Return None if it has no scope or is not a named token.

        Return `NOTHING` if the token was revoked, replaced or became unreadable after the call was admitted.
        """
        if principal in self._scopes:
            return self._scopes[principal]
        return NOTHING if principal.mark else None

    @property
    def next_change(self) -> trio.Event:
        """Return an event that is set as soon as a principal may be invalid.

        The event is set when a token is revoked, changed or expired.
        """
        return self._changed

    async def wait_changed(self) -> None:
        """Wait until a principal may have become invalid."""
        await self._changed.wait()

    async def follow(self) -> None:
        """Load changes that this process made to the file, without waiting for the next check."""
        if await self._read():
            self._tell()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow the file until cancelled. Calls `started` after the file was read for the first time."""
        seen, settled = await self._looking.run(self._look), False
        await self._read()
        task_status.started()
        due, at = self._next_expiry(), self._clock()
        while True:
            await trio.sleep(EVERY)
            now = await self._looking.run(self._look)
            if now != seen or not settled or self._may_pass:
                # If a file is replaced within one tick of its clock, it may look unchanged.
                settled = now == seen and self._is_old(now)
                seen = now
                if await self._read():
                    due = self._next_expiry()
                    self._tell()
            if self.foreign is not None:
                ends = [end for end in (due, self.foreign.next_end(at)) if end is not None]
                due = min(ends, default=None)
            before, at = at, self._clock()
            if at < before:
                due = self._next_expiry()  # expired tokens may become valid again if the clock is set back
            if due is not None and at >= due:
                due = self._next_expiry()
                self._tell()

    async def _read(self) -> bool:
        """Read the file. Return whether anything changed."""
        async with self._reading:
            before = (self._tokens, self._trouble, self._is_known)
            try:
                tokens, trouble = await self._looking.run(self._load), None
                self._were_defined |= tokens is not None
                self._may_pass = False
            except TokensUnreadable as failure:
                # Access is closed: named tokens and callers without a token are refused. The server opens
                # again only when the file is readable and shows that no token was defined.
                tokens, trouble = (), str(failure)
                self._were_defined |= failure.is_there
                self._may_pass = failure.may_pass
            self._tokens, self._trouble, self._is_known = tokens, trouble, True
            if before == (self._tokens, self._trouble, True):
                return False
            self._arrange()
            self._report()
            return True

    def _load(self) -> tuple[Token, ...] | None:
        tokens = read_tokens(self._private)
        if tokens is None and self._were_defined and not is_released(self._private):
            raise TokensUnreadable(self._private / TOKENS, "is missing although tokens were defined")
        return tokens

    def _report(self) -> None:
        if self._trouble is not None:
            log.error("named tokens are refused", reason=self._trouble)
        elif self._tokens is not None:
            now = self._clock()
            expired = sum(token.has_expired(now) for token in self._tokens)
            log.info("named tokens", defined=len(self._tokens), expired=expired)

    def _arrange(self) -> None:
        keys = [*(key for token in self.named for key in _keys_of(token)), *self._fixed]
        self._by_digest = {key.digest: key for key in keys}
        by_principal: dict[Principal, list[_Key]] = {}
        for key in keys:
            by_principal.setdefault(key.principal, []).append(key)
        self._by_principal = by_principal
        self._scopes = {token.principal: token.scope for token in self.named}

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    def _next_expiry(self) -> datetime | None:
        now = self._clock()
        ends = (key.end(now) for key in self._by_digest.values())
        return min((end for end in ends if end is not None), default=None)

    def _look(self) -> _Look:
        return tuple(_stamp(self._private / name) for name in (TOKENS, LOCK))

    def _is_old(self, look: _Look) -> bool:
        now = self._clock().timestamp()
        return all(stamp is None or abs(now - stamp[-1] / 1e9) > UNSETTLED for stamp in look)


def _keys_of(token: Token) -> Iterator[_Key]:
    """Yield the keys that admit the principal of a token: its secret, or the access tokens of its grant."""
    if token.grant is None:
        yield _Key(token.principal, bytes.fromhex(token.digest), token.expires_at)
        return
    for access in token.grant.access:
        yield _Key(token.principal, bytes.fromhex(access.digest), token.expires_at, access)


def _key(principal: Principal, secret: str) -> _Key:
    return _Key(principal, hashlib.sha256(secret.encode()).digest())


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Return a tuple that changes when the file changes.

    For an unreadable file, the tuple has another length.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as failure:
        return (failure.errno or 0, 0)
    return (
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mode,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )
