"""Access tokens of a foreign authorization server. They are checked with the keys that the server publishes.

Specified in docs/spec/connectors.md §4. Keys are fetched on first use, and again for an unknown `kid`, at
most once a minute. The address of the keys comes from the metadata of the issuer and never from a token.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Final

import jwt
import trio

from lithos.access.model.claims import ALGORITHMS, LEEWAY, NoPrincipal, end_of, principal_of
from lithos.kernel.log import get_logger
from lithos.kernel.values.limits import Newest
from lithos.kernel.values.principals import Principal

log = get_logger("lithos.oauth")

#: Minimum seconds between two requests for the keys of the issuer, and timeout of a request.
EVERY: Final = 60.0
PATIENCE: Final = 5.0
#: Limits: bytes of a document of the issuer, number of its keys, bytes of a token, and number of remembered
#: tokens.
LARGEST: Final = 256 * 1024
MOST_KEYS: Final = 50
LONGEST_TOKEN: Final = 16 * 1024
MOST_KNOWN: Final = 1_000
_WELL_KNOWN: Final = ("oauth-authorization-server", "openid-configuration")

#: Function that fetches the JSON at an address. It returns None if that fails.
Get = Callable[[str], Awaitable[Any]]


class ForeignTokens:
    """A verifier for the tokens of one issuer. `prepare` may use the network, and `find` never does."""

    def __init__(
        self,
        issuer: str,
        audience: tuple[str, ...],
        rights_claim: str,
        rights: Mapping[str, str],
        clock: Callable[[], datetime],
        get: Get | None = None,
    ) -> None:
        self._issuer = issuer
        self._audience = audience
        self._rights_claim = rights_claim
        self._rights = rights
        self._clock = clock
        self._get = get or fetch_json
        self._keys: dict[str, jwt.PyJWK] = {}
        self._looked_at = float("-inf")
        self._looking = trio.Lock()
        #: Admitted principals and the end of their token, by the hash of the token.
        self._known: Newest[bytes, tuple[Principal, datetime]] = Newest(MOST_KNOWN)

    async def prepare(self, secret: bytes) -> None:
        """Fetch the keys that may be needed to verify a token."""
        kid = _kid_of(secret)
        if kid is None or kid in self._keys:
            return
        async with self._looking:
            now = trio.current_time()
            if kid in self._keys or now - self._looked_at < EVERY:
                return
            self._looked_at = now
            await self._look()

    async def _look(self) -> None:
        """Load the current keys of the issuer. If the issuer is unreachable, the known keys stay valid."""
        for name in _WELL_KNOWN:
            document = await self._get(f"{self._issuer.rstrip('/')}/.well-known/{name}")
            if isinstance(document, dict) and document.get("issuer") == self._issuer:
                break
        else:
            log.warning("issuer metadata missing", issuer=self._issuer)
            return
        published = await self._get(str(document.get("jwks_uri", "")))
        rows = published.get("keys") if isinstance(published, dict) else None
        if not isinstance(rows, list):
            log.warning("issuer keys missing", issuer=self._issuer)
            return
        self._keys = dict(filter(None, map(_key_of, rows[:MOST_KEYS])))
        self._known.clear()

    def find(self, secret: bytes) -> Principal | None:
        """Return the principal of a currently valid token. Return None for any other token."""
        kid = _kid_of(secret)
        if kid is None:
            return None
        digest, now = hashlib.sha256(secret).digest(), self._clock()
        principal, end = self._known.get(digest, (None, now))
        if principal is not None:
            return principal if now < end else None
        try:
            principal, end = self._verify(secret, kid, now)
        except (jwt.PyJWTError, NoPrincipal) as refusal:
            log.warning("issuer token refused", reason=type(refusal).__name__)
            return None
        self._known[digest] = principal, end
        return principal

    def _verify(self, secret: bytes, kid: str, now: datetime) -> tuple[Principal, datetime]:
        """Return the principal of a token and the time at which the token ends.

        Raises `jwt.PyJWTError` or `NoPrincipal`.
        """
        key = self._keys.get(kid)
        if key is None:
            raise NoPrincipal("its key is unknown")
        # The times in the token are checked below with the clock of the server.
        claims = jwt.decode(
            secret,
            key,
            algorithms=[key.algorithm_name],
            audience=list(self._audience),
            issuer=self._issuer,
            options={
                "require": ["exp", "iss", "aud"],
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
            },
        )
        end = end_of(claims)
        not_before = claims.get("nbf", 0)
        if not isinstance(not_before, int | float) or not_before - now.timestamp() > LEEWAY.total_seconds():
            raise NoPrincipal("it is not valid yet")
        if now >= end:
            raise NoPrincipal("it has expired")
        return principal_of(claims, self._rights_claim, self._rights), end

    def is_valid(self, principal: Principal) -> bool:
        """Return whether a token that is currently valid admitted this principal."""
        now = self._clock()
        return any(known == principal and now < end for known, end in self._known.values())

    def next_end(self, after: datetime) -> datetime | None:
        """Return when the next admitted token ends."""
        return min((end for _, end in self._known.values() if after < end), default=None)


def _kid_of(secret: bytes) -> str | None:
    """Return the key id in a token, or None if the token cannot be valid."""
    if secret.count(b".") != 2 or len(secret) > LONGEST_TOKEN:
        return None
    try:
        header = jwt.get_unverified_header(secret)
    except jwt.PyJWTError:
        return None
    kid = header.get("kid")
    return kid if header.get("alg") in ALGORITHMS and isinstance(kid, str) and kid else None


def _key_of(row: Any) -> tuple[str, jwt.PyJWK] | None:
    """Return a published key with its id. Return None if its algorithm is not accepted."""
    try:
        key = jwt.PyJWK(row)
    except (jwt.PyJWTError, AttributeError, TypeError, ValueError, KeyError):
        return None
    is_for_signing = row.get("use", "sig") == "sig"
    if key.key_id is None or key.algorithm_name not in ALGORITHMS or not is_for_signing:
        return None
    return key.key_id, key


async def fetch_json(url: str) -> Any:
    """Return the JSON at an address that the operator configured. Return None if it cannot be fetched."""
    import httpx2  # noqa: PLC0415 - not before there is something to ask

    if not url.startswith(("https://", "http://127.0.0.1", "http://localhost", "http://[::1]")):
        return None
    try:
        tls = await trio.to_thread.run_sync(httpx2.create_ssl_context)
        with trio.fail_after(PATIENCE):
            async with (
                httpx2.AsyncClient(verify=tls, timeout=PATIENCE) as client,
                client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as answer,
            ):
                if answer.status_code != httpx2.codes.OK:
                    return None
                body = bytearray()
                async for part in answer.aiter_raw():
                    body += part
                    if len(body) > LARGEST:
                        raise ValueError("too large")
        return json.loads(bytes(body))
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError, trio.TooSlowError) as failure:
        log.warning("issuer unreachable", reason=type(failure).__name__)
        return None
