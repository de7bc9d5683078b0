"""Access tokens of a foreign authorization server, checked by the keys that it publishes.

docs/spec/connectors.md §4. Keys are fetched at first need, and again for a `kid` that is not known, at most
once a minute. Which keys are asked is what the issuer's metadata says, and never the token.
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

#: Seconds between two requests for the issuer's keys, and the limit for one request.
EVERY: Final = 60.0
PATIENCE: Final = 5.0
#: Bytes of what an issuer publishes, keys of it, bytes of a token, and tokens that are remembered.
LARGEST: Final = 256 * 1024
MOST_KEYS: Final = 50
LONGEST_TOKEN: Final = 16 * 1024
MOST_KNOWN: Final = 1_000
_WELL_KNOWN: Final = ("oauth-authorization-server", "openid-configuration")

#: Gets the JSON at an address, or None.
Get = Callable[[str], Awaitable[Any]]


class ForeignTokens:
    """Knows tokens of one issuer. `prepare` may ask the network; `find` looks at what is known, at once."""

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
        #: Admitted principals by the hash of their token, with the end of that.
        self._known: Newest[bytes, tuple[Principal, datetime]] = Newest(MOST_KNOWN)

    async def prepare(self, secret: bytes) -> None:
        """Have the keys at hand that a token may need."""
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
        """Take the issuer's keys as they are now; where it cannot be asked, those that are known stay."""
        for name in _WELL_KNOWN:
            document = await self._get(f"{self._issuer.rstrip('/')}/.well-known/{name}")
            if isinstance(document, dict) and document.get("issuer") == self._issuer:
                break
        else:
            log.warning("no metadata of the issuer", issuer=self._issuer)
            return
        published = await self._get(str(document.get("jwks_uri", "")))
        rows = published.get("keys") if isinstance(published, dict) else None
        if not isinstance(rows, list):
            log.warning("no keys of the issuer", issuer=self._issuer)
            return
        self._keys = dict(filter(None, map(_key_of, rows[:MOST_KEYS])))
        self._known.clear()

    def find(self, secret: bytes) -> Principal | None:
        """Return the principal of a currently valid token; None for any other."""
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
            log.warning("a token of the issuer is refused", reason=type(refusal).__name__)
            return None
        self._known[digest] = principal, end
        return principal

    def _verify(self, secret: bytes, kid: str, now: datetime) -> tuple[Principal, datetime]:
        """Raises `jwt.PyJWTError` and `NoPrincipal`."""
        key = self._keys.get(kid)
        if key is None:
            raise NoPrincipal("its key is not known")
        # Times are judged by the clock of the server, below.
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
        """Whether a token that is good now let this principal in."""
        now = self._clock()
        return any(known == principal and now < end for known, end in self._known.values())

    def next_end(self, after: datetime) -> datetime | None:
        """Return the next end of an admitted token."""
        return min((end for _, end in self._known.values() if after < end), default=None)


def _kid_of(secret: bytes) -> str | None:
    """Return the key that a token names; None if it cannot be valid."""
    if secret.count(b".") != 2 or len(secret) > LONGEST_TOKEN:
        return None
    try:
        header = jwt.get_unverified_header(secret)
    except jwt.PyJWTError:
        return None
    kid = header.get("kid")
    return kid if header.get("alg") in ALGORITHMS and isinstance(kid, str) and kid else None


def _key_of(row: Any) -> tuple[str, jwt.PyJWK] | None:
    """A published key for one of the signatures that are taken, by its id."""
    try:
        key = jwt.PyJWK(row)
    except (jwt.PyJWTError, AttributeError, TypeError, ValueError, KeyError):
        return None
    is_for_signing = row.get("use", "sig") == "sig"
    if key.key_id is None or key.algorithm_name not in ALGORITHMS or not is_for_signing:
        return None
    return key.key_id, key


async def fetch_json(url: str) -> Any:
    """Return the document at an address that the operator configured; None if it cannot be fetched."""
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
        log.warning("the issuer cannot be asked", reason=type(failure).__name__)
        return None
