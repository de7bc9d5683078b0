"""Checks whether remote clients can reach the server, by requests to `server.public_url` like theirs.

Each check explains the next, so the first failure is the last result reported. No token is sent.
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

#: Seconds for one answer, and by which clocks may differ: a code is good for a minute.
PATIENCE: Final = 10.0
MOST_APART: Final = 30.0
_GUIDE: Final = "docs/remote-clients.md lists the paths that a tunnel or proxy must pass on."


async def check_public_url(
    address: str, clock: Callable[[], datetime], *, is_live: bool
) -> list[CheckFinding]:
    """Request the steps of a client at the public address, from the certificate to the challenge."""
    if not is_live:
        return [warn("This was not looked at: no server runs.", "Start it, and run doctor again.")]
    import httpx2

    try:
        tls = await trio.to_thread.run_sync(httpx2.create_ssl_context)
        async with httpx2.AsyncClient(verify=tls, timeout=PATIENCE, follow_redirects=False) as client:
            return [*await _look(client, address, clock)]
    except httpx2.TimeoutException:
        return [
            fail(f"{address} does not answer within {PATIENCE:g} seconds.", f"Is the tunnel up? {_GUIDE}")
        ]
    except httpx2.HTTPError as failure:
        return [_unreachable(address, failure)]


def _unreachable(address: str, failure: Exception) -> CheckFinding:
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return fail(
                f"The certificate of {address} is not good ({type(cause).__name__}).",
                "Have the tunnel or proxy get one for this very name: clients refuse any other.",
            )
        cause = cause.__cause__ or cause.__context__
    return fail(
        f"{address} cannot be reached from here ({type(failure).__name__}).",
        f"See that the name leads to the tunnel or proxy, and that it is up. {_GUIDE}",
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
                f"The clock of {address} and that of this machine differ by {apart:.0f} seconds.",
                "Set the clocks by a time service: codes are good for a minute.",
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
    """Return the errors, causes before consequences."""
    if metadata.status_code == 403 and _member(metadata, "error") == "forbidden_host":
        yield fail(
            "The tunnel or proxy asks this server under another host name, which it refuses.",
            f"Have it pass the header Host on, or add that name to server.allowed_hosts. {_GUIDE}",
        )
    resource = _member(metadata, "resource")
    if metadata.status_code != 200 or resource is None:
        yield fail(
            f"{address}{RESOURCE}/mcp answers {metadata.status_code}, and no metadata of this server.",
            f"Something else answers there, or the server was started without this address. {_GUIDE}",
        )
    is_own = _member(metadata, "authorization_servers") == [address]
    if resource != f"{address}/mcp" or (is_own and _member(issuer, "issuer") != address):
        yield fail(
            f"The server at {address} says that its address is a different one.",
            "Start the server with the server.public_url that is configured here.",
        )
    if challenge.status_code != 401 or RESOURCE not in challenge.headers.get("www-authenticate", ""):
        yield fail(
            f"A call without a token is answered {challenge.status_code} without the challenge.",
            f"Have the tunnel or proxy pass POST /mcp and the header WWW-Authenticate on. {_GUIDE}",
        )
    if console.status_code not in (200, 302, 303):
        yield fail(
            f"The console at {address}/console/login answers {console.status_code}, so "
            "access cannot be approved.",
            f"Have the tunnel or proxy pass /console/ on. {_GUIDE}",
        )


def _member(response: httpx2.Response, name: str) -> Any:
    """Return a member of a JSON object, or None."""
    try:
        document = response.json()
    except ValueError:
        return None
    return document.get(name) if isinstance(document, dict) else None


def _seconds_apart(told: str | None, now: datetime) -> float:
    """Return the difference of the clocks; 0 if it is small or unknown."""
    try:
        apart = abs((parsedate_to_datetime(told or "") - now).total_seconds())
    except (ValueError, TypeError):
        return 0.0
    return apart if apart > MOST_APART else 0.0
