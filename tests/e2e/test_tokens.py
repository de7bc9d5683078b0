"""Named tokens with real servers, real commands and real clients (behaviours 246, 247, 248)."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.kernel.databases.lock import read_owner
from tests.e2e.clients import call, connected
from tests.e2e.process import Lithos, run_lithos, running_lithos, until
from tests.repeats import first_of

pytestmark = pytest.mark.slow

#: Maximum seconds until a token change takes effect, even on a very busy machine.
#: `tests/access/service/test_keyring.py` tests the promised 2 s on a mock clock.
WITHIN = 60.0
#: Pattern of a secret that a command prints.
SECRET = re.compile(r"lithos_[\w-]{43}")


def create(data: Path, *arguments: str) -> str:
    done = run_lithos("-d", data, "token", "create", *arguments)
    assert done.returncode == 0, done.stderr
    (secret,) = done.stdout.splitlines()
    assert SECRET.fullmatch(secret)
    return secret


def get(
    server: Lithos, path: str, token: str | None = None, method: str = "GET", body: str = ""
) -> tuple[int, str]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return server.ask(method, path, body or None, **headers)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def test_two_agents_write_as_themselves_and_a_reader_cannot_write(data: Path) -> None:
    """behaviours 246, 247: covers streamable HTTP and SSE.

    A revoked agent is refused within 2 s (behaviour 248).
    """
    ada, bob = create(data, "ada", "--agent", "ada"), create(data, "bob", "--agent", "bob")
    reader = create(data, "looker", "--rights", "read")
    with running_lithos(data) as server:
        notes: dict[str, str] = {}
        async with (
            connected("mcp", url=server.url, token=ada) as one,
            connected("sse", url=server.url, token=bob) as two,
        ):
            for client, agent, other in ((one, "ada", "bob"), (two, "bob", "ada")):
                tools = {tool.name: tool for tool in (await client.list_tools()).tools}
                assert "agent" not in tools["lithos_write"].input_schema.get("required", ())
                written = await call(client, "lithos_write", title=f"By {agent}", content="Text.")
                notes[agent] = written["id"]
                forged = await call(client, "lithos_write", title="Forged", content="x", agent=other)
                assert (forged["status"], forged["code"]) == ("error", "forbidden")
                assert f"'{agent}'" in forged["message"]
                task = await call(client, "lithos_task_create", title=f"Task of {agent}", agent=agent)
                await call(client, "lithos_finding_post", task_id=task["task_id"], summary="Seen.")
            for client, agent, other in ((one, "ada", "bob"), (two, "bob", "ada")):
                await call(client, "lithos_read", id=notes[other])
                theirs = await call(client, "lithos_task_list", created_by=other)
                assert [row["title"] for row in theirs["tasks"]] == [f"Task of {other}"], "filters stay free"
                assert (await call(client, "lithos_read", id=notes[agent]))["metadata"]["author"] == agent
        async with connected("mcp", url=server.url, token=reader) as looking:
            names = {tool.name for tool in (await looking.list_tools()).tools}
            assert "lithos_search" in names
            assert "lithos_write" not in names
            refused = await call(looking, "lithos_write", title="T", content="c", agent="ada")
            assert refused["code"] == "forbidden"
            assert (await call(looking, "lithos_list"))["total"] == 2
        told = run_lithos("-d", data, "--json", "audit", "--doc", notes["bob"])
        assert told.returncode == 0, told.stderr
        accesses = {row["agent_id"] for row in json.loads(told.stdout)["entries"]}
        assert accesses == {"ada", "bob"}
        events = run_lithos("-d", data, "events", "--since", "0", "--no-follow")
        agents = {json.loads(line)["agent"] for line in events.stdout.splitlines()}
        assert agents == {"ada", "bob"}
        await _revoke_and_see(data, server, bob)


async def _revoke_and_see(data: Path, server: Lithos, secret: str) -> None:
    """Revoke a token with the command. Its stream must end in time, and new calls must be refused in time."""
    stream = await trio.open_tcp_stream(*server.address)
    async with stream:
        request = f"GET /events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n\r\n"
        await stream.send_all(request.encode())
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 200 ")
        done = await trio.to_thread.run_sync(lambda: run_lithos("-d", data, "token", "revoke", "bob"))
        assert done.returncode == 0, done.stderr
        began, received = time.monotonic(), b""
        with trio.fail_after(WITHIN):
            while not received.endswith(b"0\r\n\r\n") and (part := await stream.receive_some()):
                received += bytes(part)
        assert b": token ended" in received
    status, _ = get(server, "/events", secret)
    assert status == 401
    assert time.monotonic() - began < WITHIN


def test_commands_of_the_owner_need_no_token(data: Path) -> None:
    """The lock file contains a token that only the owner can read.

    Clients find the address without this token.
    """
    with running_lithos(data) as server:
        secret = create(data, "ci", "--rights", "read")
        until(lambda: get(server, "/metrics")[0] == 401)
        record = read_owner(data / ".lithos" / "lock")
        assert record is not None
        assert record.token is not None
        assert not record.private
        assert (data / ".lithos" / "lock").stat().st_mode & 0o777 == 0o600
        assert get(server, "/metrics", record.token)[0] == 200
        assert get(server, "/metrics", secret)[0] == 403
        for command in ("stats", "inspect health", "audit", "brief raft", "events --no-follow"):
            assert run_lithos("-d", data, *command.split()).returncode == 0, command
        assert server.url in run_lithos("-d", data, "connect", "cursor").stdout
        again = read_owner(data / ".lithos" / "lock")
    with running_lithos(data):
        later = read_owner(data / ".lithos" / "lock")
        assert again is not None
        assert later is not None
        assert again.token != later.token


@pytest.fixture
def refusals(data: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield every output of a server that refuses all requests, and the secrets that the requests used."""
    secrets = [create(data, "reader", "--rights", "read", "--agent", "bot"), create(data, "gone")]
    wrong = "lithos_" + "w" * 43
    said: list[str] = []
    with running_lithos(data, env={"LITHOS_LOG_LEVEL": "debug"}) as server:
        record = read_owner(data / ".lithos" / "lock")
        assert record is not None
        assert record.token is not None
        assert run_lithos("-d", data, "token", "revoke", "gone").returncode == 0
        forged = {"name": "lithos_agent_register", "arguments": {"id": "ada"}}
        writing = {"name": "lithos_write", "arguments": {"title": "t", "content": "c", "agent": "bot"}}
        for token in (*secrets, wrong):
            for params in (forged, writing):
                body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
                said.append(get(server, "/mcp", token, "POST", body)[1])
            for path in ("/metrics", "/audit", "/reconcile", "/nowhere", "/sse?access_token=" + token):
                if token != secrets[0] or not path.startswith("/sse"):
                    said.append(get(server, path, token)[1])
            said.append(get(server, f"/nowhere?access_token={token}", secrets[0])[1])
            said.append(get(server, f"/metrics?access_token={token}")[1])
        for _ in range(20):
            said.append(get(server, "/mcp", wrong)[1])
        said += [get(server, path, record.token)[1] for path in ("/metrics", "/audit", "/health")]
        for command in ("token list", "token list --json", "doctor", "stats"):
            done = run_lithos("-d", data, *command.split())
            said += [done.stdout, done.stderr]
        said += [Path(path).read_text() for path in (f"/proc/{server.process.pid}/cmdline",)]
        secrets.append(record.token)
        assert server.stop() == 0
        said.append(server.log())
    return "\n".join(said), [*secrets, wrong]


def test_logs_metrics_and_errors_contain_no_token(refusals: tuple[str, list[str]], data: Path) -> None:
    """behaviour 248"""
    said, secrets = refusals
    assert len(secrets) == 4
    for code in ("forbidden", "unauthorized", "too_many_wrong_tokens", "lithos_http_rejected_total"):
        assert code in said
    for secret in secrets:
        assert secret not in said
        assert secret[7:30] not in said
    hashes = re.findall(r"[0-9a-f]{64}", (data / ".lithos" / "tokens.json").read_text())
    assert hashes
    for digest in hashes:
        assert digest not in said
    stored = b"".join(path.read_bytes() for path in data.rglob("*") if path.is_file())
    for secret in secrets:
        assert secret.encode() not in stored


@pytest.mark.parametrize("fault", first_of(["damaged", "removed", "unreadable"], 1))
def test_server_without_its_token_file_refuses_callers_with_a_reason(data: Path, fault: str) -> None:
    """behaviour 248"""
    secret = create(data, "ci", "--rights", "admin")
    file = data / ".lithos" / "tokens.json"
    if fault == "damaged":
        file.write_text("{")
    else:
        file.unlink()
        if fault == "unreadable":
            file.mkdir()
    with running_lithos(data) as server:
        assert get(server, "/metrics", secret)[0] == 401
        assert get(server, "/metrics")[0] == 401
        status, body = get(server, "/health")
        assert (status, json.loads(body)["components"]["tokens"]["status"]) == (200, "degraded")
        assert "lithos token create" in body
        assert run_lithos("-d", data, "stats").returncode == 0
        told: dict[str, Any] = {
            check["name"]: check
            for check in json.loads(run_lithos("-d", data, "--json", "doctor").stdout)["checks"]
        }
        assert told["tokens"]["status"] == "fail"
        assert "Named tokens are refused" in server.log()


def test_restored_server_requires_the_tokens_of_its_backup(data: Path, tmp_path: Path) -> None:
    secret = create(data, "ci", "--rights", "admin")
    with running_lithos(data):
        assert run_lithos("-d", data, "backup", tmp_path / "copy").returncode == 0
    other = tmp_path / "other"
    assert run_lithos("-d", other, "restore", tmp_path / "copy").returncode == 0
    assert (other / ".lithos" / "tokens.json").stat().st_mode & 0o777 == 0o600
    with running_lithos(other) as server:
        assert get(server, "/metrics")[0] == 401
        assert get(server, "/metrics", secret)[0] == 200
