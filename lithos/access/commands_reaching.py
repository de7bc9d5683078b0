"""Checks whether remote clients can reach the server.

The checks send the same requests to `server.public_url` as a client.

Each check depends on the previous check, so the report ends with the first failure. No token is sent.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

import trio

from lithos.kernel.values.findings import CheckFinding, fail, ok, warn
from lithos.server.http.access import ISSUER, RESOURCE

if TYPE_CHECKING:
    import httpx2

#: Timeout of one response, and maximum clock difference, in seconds. The clock matters because codes are
#: valid for only a minute.
PATIENCE: Final = 10.0
MOST_APART: Final = 30.0
_GUIDE: Final = "docs/remote-clients.md lists the paths that a tunnel or proxy must forward."


async def check_public_url(
    address: str, clock: Callable[[], datetime], *, is_live: bool
) -> list[CheckFinding]:
    """Send the requests of a client to the public address.

    The requests check everything from certificate to challenge.
    """
    if not is_live:
        return [
            warn(
                "The public address was not checked, because no server is running.",
                "Start the server, then run doctor again.",
            )
        ]
    import httpx2

    try:
        tls = await trio.to_thread.run_sync(httpx2.create_ssl_context)
        async with httpx2.AsyncClient(verify=tls, timeout=PATIENCE, follow_redirects=False) as client:
            return [*await _look(client, address, clock)]
    except httpx2.TimeoutException:
        return [
            fail(
                f"{address} did not answer within {PATIENCE:g} seconds.",
                f"Check that the tunnel is running. {_GUIDE}",
            )
        ]
    except httpx2.HTTPError as failure:
        return [_unreachable(address, failure)]


def _unreachable(address: str, failure: Exception) -> CheckFinding:
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return fail(
                f"The certificate of {address} is not valid ({type(cause).__name__}).",
                "Get a certificate for exactly this host name in the tunnel or proxy. Clients "
                "refuse any other certificate.",
            )
        cause = cause.__cause__ or cause.__context__
    return fail(
        f"{address} cannot be reached from here ({type(failure).__name__}).",
        "Check that the host name points to the tunnel or proxy, and that the tunnel or proxy is "
        f"running. {_GUIDE}",
    )


async def _look(
    client: httpx2.AsyncClient, address: str, clock: Callable[[], datetime]
) -> list[CheckFinding]:
    metadata = await client.get(f"{address}{RESOURCE}/mcp")
    issuer = await client.get(f"{address}{ISSUER}")
    challenge = await client.post(f"{address}/mcp", json={})
    console = await client.get(f"{address}/console/login")
    trouble = next(_troubles(address, metadata, issuer, challenge, console), None)
    found = [ok(f"Remote clients reach this server at {address}.") if trouble is None else trouble]
    if apart := _seconds_apart(metadata.headers.get("date"), clock()):
        found.append(
            warn(
                f"The clock of {address} differs from this machine's clock by {apart:.0f} seconds.",
                "Synchronise both clocks with a time service: codes are valid for only a minute.",
            )
        )
    return found


def _troubles(
    address: str,
    metadata: httpx2.Response,
    issuer: httpx2.Response,
    challenge: httpx2.Response,
    console: httpx2.Response,
) -> Iterator[CheckFinding]:
    """Yield the errors. Causes come before their consequences."""
    if metadata.status_code == 403 and _member(metadata, "error") == "forbidden_host":
        yield fail(
            "The tunnel or proxy uses another host name for its requests, and the server refuses that name.",
            "Let the tunnel or proxy forward the Host header, or add that name to "
            f"server.allowed_hosts. {_GUIDE}",
        )
    resource = _member(metadata, "resource")
    if metadata.status_code != 200 or resource is None:
        yield fail(
            f"{address}{RESOURCE}/mcp answers {metadata.status_code} without metadata of this server.",
            "Another program answers at this address, or the server was started without the "
            f"address. {_GUIDE}",
        )
    is_own = _member(metadata, "authorization_servers") == [address]
    if resource != f"{address}/mcp" or (is_own and _member(issuer, "issuer") != address):
        yield fail(
            f"The server at {address} reports another public address.",
            "Restart the server with the server.public_url that is configured here.",
        )
    if challenge.status_code != 401 or RESOURCE not in challenge.headers.get("www-authenticate", ""):
        yield fail(
            f"A call without a token gets {challenge.status_code} without the authentication challenge.",
            f"Let the tunnel or proxy forward POST /mcp and the WWW-Authenticate header. {_GUIDE}",
        )
    if console.status_code not in (200, 302, 303):
        yield fail(
            f"The console at {address}/console/login answers {console.status_code}, so "
            "access cannot be approved.",
            f"Let the tunnel or proxy forward /console/. {_GUIDE}",
        )


def _member(response: httpx2.Response, name: str) -> Any:
    """Return a member of a JSON object, or None if it is missing."""
    try:
        document = response.json()
    except ValueError:
        return None
    return document.get(name) if isinstance(document, dict) else None


def _seconds_apart(told: str | None, now: datetime) -> float:
    """Return the clock difference in seconds. A small or unknown difference is returned as 0."""
    try:
        apart = abs((parsedate_to_datetime(told or "") - now).total_seconds())
    except (ValueError, TypeError):
        return 0.0
    return apart if apart > MOST_APART else 0.0
