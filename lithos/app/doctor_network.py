"""The doctor's checks of the owner of a data directory and of the port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import trio
from attrs import frozen

from lithos.config import Config
from lithos.core.diagnosis import Finding, fail, ok, warn
from lithos.front.client import OwnerClient, OwnerRefuses, OwnerUnreachable
from lithos.front.sockets import CannotListen, PortInUse, open_listeners
from lithos.services.diagnosis import look_aside
from lithos.stores.lock import OwnerRecord, is_owned, read_owner
from lithos.stores.processes import name_listener

#: Seconds for a server to say its address after it took the lock, and to answer.
_ADDRESS_WAIT: Final = 3.0
_ANSWER_WAIT: Final = 5.0


@frozen
class Ownership:
    """Whether a live process owns the data directory, and what it says of itself."""

    is_live: bool
    record: OwnerRecord | None


async def look_at_owner(config: Config) -> Ownership:
    """Who owns it now; one that starts gets a moment to say its address. Raises `OSError`."""
    lock = config.storage.data_dir / ".lithos" / "lock"
    deadline = trio.current_time() + _ADDRESS_WAIT
    while True:
        is_live = await look_aside(lambda: is_owned(lock))
        record = await look_aside(lambda: read_owner(lock))
        if not is_live or (record is not None and record.url) or trio.current_time() > deadline:
            return Ownership(is_live, record)
        await trio.sleep(0.1)


async def check_owner(ownership: Ownership, config: Config) -> list[Finding]:
    """Whether the owner, if there is one, answers and is well."""
    record = ownership.record
    if not ownership.is_live:
        left = f" Process {record.pid} left its lock file, which is no obstacle." if record else ""
        return [ok(f"No server runs.{left}")]
    if record is None or record.url is None:
        who = f"process {record.pid} on {record.host}" if record else "some process"
        return [
            warn(
                f"The data directory is in use by {who}, which has told no address.",
                "It may be starting, or a command works there: run doctor again in a moment. "
                "If it stays like this, look at its log and restart it.",
            )
        ]
    who = f"process {record.pid} on {record.host}, serving {record.url} since {record.started_at}"
    client = OwnerClient(record.url, record.token or config.server.auth_token, _ANSWER_WAIT)
    try:
        health = await client.health()
    except (OwnerUnreachable, OwnerRefuses) as failure:
        return [
            fail(
                f"The owner ({who}) does not answer: {failure}",
                f"To restart it, stop process {record.pid} on {record.host} and start the server again; "
                "nothing that it acknowledged is lost.",
            )
        ]
    try:
        await client.call("lithos_stats", {})
    except (OwnerUnreachable, OwnerRefuses) as failure:
        return [
            *_ailments(health),
            fail(
                f"The owner ({who}) is up, but refuses this command: {failure}",
                "Give commands the settings that the server was started with.",
            ),
        ]
    return [*_ailments(health), ok(f"In use by {who}; it answers.")]


def _ailments(health: Mapping[str, Any]) -> list[Finding]:
    return [
        warn(
            f"The server says of its {name}: {part.get('error', part['status'])}.",
            "Look at its log, and at the other checks.",
        )
        for name, part in health["components"].items()
        if part["status"] in ("degraded", "unavailable")
    ]


async def check_port(ownership: Ownership, config: Config) -> list[Finding]:
    """Whether the configured port is free, or taken by the owner itself."""
    host, port = config.server.host, config.server.port
    if port == 0:
        return [ok("Any free port will do (server.port 0).")]
    record = ownership.record
    if ownership.is_live and record is not None and str(record.url).endswith(f":{port}"):
        return [ok(f"Port {port} is used by the owner itself.")]
    try:
        for listener in await open_listeners(host, port):
            await listener.aclose()
    except PortInUse:
        cause = f"Port {port} on {host} is in use by {await _name_user(port)}."
        way_out = "Stop that program, or choose another port with --port or server.port (LITHOS_PORT)."
        # A server on stdio listens elsewhere.
        uses_port = config.server.transport != "stdio"
        return [fail(cause, way_out) if uses_port else warn(cause, f"For HTTP: {way_out}")]
    except CannotListen as failure:
        return [fail(str(failure), "")]
    return [ok(f"Port {port} on {host} is free.")]


async def _name_user(port: int) -> str:
    process = await look_aside(lambda: name_listener(port)) or "a process that cannot be told"
    try:
        health = await OwnerClient(f"http://127.0.0.1:{port}", None, _ANSWER_WAIT).health()
        return f"another Lithos ({health['version']}) in {process}"
    except (OwnerUnreachable, OwnerRefuses, KeyError, TypeError):
        return f"another program, {process}"
