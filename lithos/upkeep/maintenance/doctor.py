"""`lithos doctor`: checks an installation and gives advice.

This module also has the owner check and the port check.

The doctor writes only dot-named probe files and removes them. Checks are isolated: if a check fails or hangs,
the next checks still run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import trio

from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.databases.lock import is_owned, read_owner
from lithos.kernel.parts import utc_now
from lithos.kernel.server_ports import RunServer
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.findings import DOCTOR, CheckFinding, CheckResult, check, fail, has_data, ok, warn
from lithos.search.embedding.embedder import load_embedder
from lithos.server.http.sockets import CannotListen, PortInUse, open_listeners
from lithos.server.mcp.client import OwnerClient, OwnerRefuses, OwnerUnreachable
from lithos.server.settings import ServerConfig
from lithos.upkeep.checked_vault import survey_of
from lithos.upkeep.checks.checks import Installed, Ownership, look_aside
from lithos.upkeep.checks.inspection import examine
from lithos.upkeep.files.probes import name_listener

#: Seconds to wait until a new owner reports its address, and seconds to wait for its answer.
_ADDRESS_WAIT: Final = 3.0
_ANSWER_WAIT: Final = 5.0


async def look_at_owner(config: Config) -> Ownership:
    """Return the current owner.

    If the owner is starting, wait briefly until it reports its address. Raises `OSError`.
    """
    lock = config.of(StorageConfig).data_dir / ".lithos" / "lock"
    deadline = trio.current_time() + _ADDRESS_WAIT
    while True:
        is_live = await look_aside(lambda: is_owned(lock))
        record = await look_aside(lambda: read_owner(lock))
        if not is_live or (record is not None and record.url) or trio.current_time() > deadline:
            return Ownership(is_live, record)
        await trio.sleep(0.1)


@check("owner", DOCTOR, place=60, when=has_data)
async def check_owner(patient: Installed) -> AsyncIterator[CheckFinding]:
    """Report whether the owner of the data directory, if there is one, answers and is healthy."""
    patient.owner = await look_at_owner(patient.config)
    for each in await _ask_owner(patient.owner, patient.config.of(ServerConfig).auth_token):
        yield each


async def _ask_owner(owner: Ownership, token: str | None) -> list[CheckFinding]:
    record = owner.record
    if not owner.is_live:
        left = f" Process {record.pid} left its lock file, which has no effect." if record else ""
        return [ok(f"No server runs.{left}")]
    if record is None or record.url is None:
        who = f"process {record.pid} on {record.host}" if record else "some process"
        return [
            warn(
                f"The data directory is in use by {who}, which has not reported an address.",
                "The process may be starting, or a command may be running: run doctor again in a "
                "moment. If the warning remains, read the log of the process and restart it.",
            )
        ]
    who = f"process {record.pid} on {record.host}, serving {record.url} since {record.started_at}"
    client = OwnerClient(record.url, record.token or token, _ANSWER_WAIT)
    try:
        health = await client.health()
    except (OwnerUnreachable, OwnerRefuses) as failure:
        return [
            fail(
                f"The owner ({who}) does not answer: {failure}",
                f"To restart the server, stop process {record.pid} on {record.host} and start the server "
                "again. No acknowledged write is lost.",
            )
        ]
    # Commands use the token in the lock file. Agents use the configured token, which the server may refuse.
    configured = OwnerClient(record.url, token, _ANSWER_WAIT)
    for asking in [client, configured] if token else [client]:
        try:
            await asking.call("lithos_stats", {})
        except (OwnerUnreachable, OwnerRefuses) as failure:
            asked = "this command" if asking is client else "the configured token"
            return [
                *_ailments(health),
                fail(
                    f"The owner ({who}) is running, but refuses {asked}: {failure}",
                    "Give commands and agents the settings with which the server was started.",
                ),
            ]
    return [*_ailments(health), ok(f"In use by {who}. The server answers.")]


def _ailments(health: Mapping[str, Any]) -> list[CheckFinding]:
    return [
        warn(
            f"The server reports a problem with its {name}: {part.get('error', part['status'])}.",
            "Read the server's log and the other checks.",
        )
        for name, part in health["components"].items()
        if part["status"] in ("degraded", "unavailable")
    ]


@check("port", DOCTOR, place=70)
async def check_port(patient: Installed) -> AsyncIterator[CheckFinding]:
    """Report whether the configured port is free or used by the owner of the data directory."""
    server, owner = patient.config.of(ServerConfig), patient.owner
    host, port = server.host, server.port
    if port == 0:
        yield ok("The server uses any free port (server.port 0).")
        return
    if owner.is_live and owner.record is not None and urlsplit(owner.record.url or "").port == port:
        yield ok(f"Port {port} is used by the owner itself.")
        return
    try:
        for listener in await open_listeners(host, port):
            await listener.aclose()
    except PortInUse:
        cause = f"Port {port} on {host} is in use by {await _name_user(port)}."
        way_out = "Stop that program, or choose another port with --port or server.port (LITHOS_PORT)."
        # A server on stdio does not need the port.
        yield fail(cause, way_out) if server.transport != "stdio" else warn(cause, f"For HTTP: {way_out}")
    except CannotListen as failure:
        yield fail(str(failure), "")
    else:
        yield ok(f"Port {port} on {host} is free.")


async def _name_user(port: int) -> str:
    process = await look_aside(lambda: name_listener(port)) or "an unknown process"
    try:
        health = await OwnerClient(f"http://127.0.0.1:{port}", None, _ANSWER_WAIT).health()
        return f"another Lithos ({health['version']}) in {process}"
    except (OwnerUnreachable, OwnerRefuses, KeyError, TypeError):
        return f"another program, {process}"


#: Deadline of one check, in seconds. Reading 10,000 notes takes about five seconds, and a very large database
#: takes longer.
BOUND: Final = 60.0


def make_patient(
    config: Config,
    run_server: RunServer | None = None,
    problems: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> Installed:
    """Return an installation to check from outside of a server."""
    return Installed(
        config=config,
        clock=utc_now,
        run_server=run_server,
        problems=problems,
        warnings=warnings,
        load=load_embedder,
        take_survey=lambda: survey_of(config, utc_now()),
    )


async def examine_all(patient: Installed, tell: Callable[[CheckResult], None]) -> list[CheckResult]:
    """Run all applicable checks. Each result is passed to `tell` as soon as the check ends."""
    return await examine(patient, DOCTOR, BOUND, tell)
