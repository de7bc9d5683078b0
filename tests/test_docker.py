"""Container files, which must fit one another and the product. `docker/rehearse.sh` executes their steps."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

DOCKER = Path(__file__).parent.parent / "docker"
DOCKERFILE = (DOCKER / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())


def environment_of(service: str) -> dict[str, str]:
    """Return the environment of a service. Variables have their defaults."""
    given = COMPOSE["services"][service]["environment"]
    return {name: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value) for name, value in given.items()}


def test_containers_may_call_the_server_by_service_name() -> None:
    """behaviour 387"""
    assert "lithos" in environment_of("lithos")["LITHOS_SERVER__ALLOWED_HOSTS"].split(",")
    assert "lithos" in COMPOSE["services"]
    assert "LITHOS_SERVER__ALLOWED_HOSTS=lithos" in DOCKERFILE


def test_compose_serves_the_notes_as_a_vault() -> None:
    """behaviour 387: the folder exists in the image, so it also exists in a new volume."""
    folder = environment_of("lithos")["LITHOS_STORAGE__VAULT"]
    assert folder.startswith("/data/")
    assert f" {folder}\n" in DOCKERFILE


def test_prometheus_has_a_pinned_version_and_needs_its_profile() -> None:
    """behaviour 387: without the profile, no Prometheus port is published."""
    prometheus = COMPOSE["services"]["prometheus"]
    assert prometheus["profiles"] == ["watch"]
    assert re.fullmatch(r"prom/prometheus:v\d+\.\d+\.\d+", prometheus["image"])
    assert COMPOSE["services"]["lithos"]["ports"] == ["127.0.0.1:8765:8765"]
    scraped = yaml.safe_load((DOCKER / "prometheus.yml").read_text())["scrape_configs"][0]
    assert scraped["static_configs"][0]["targets"] == ["lithos:8765"]
    assert "--rights metrics" in (DOCKER / "prometheus.yml").read_text()


#: Program in another container that calls the server by its service name, over both transports.
CALLER = """
import json, sys, urllib.error, urllib.request
BASE = "http://lithos:8765"
def ask(path, message=None, **headers):
    data = None if message is None else json.dumps(message).encode()
    request = urllib.request.Request(BASE + path, data, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read(200_000 if message else 60).decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
def call(name, **arguments):
    params = {"name": name, "arguments": arguments}
    status, body = ask("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    return json.loads(body)["result"]["structuredContent"]
hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
told = {
    "health": ask("/health")[0],
    "initialize": ask("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})[0],
    "sse": ask("/sse"),
    "metrics": ask("/metrics")[0],
    "rebound": ask("/mcp", {}, Host="evil.example:8765")[0],
    "page": ask("/mcp", {}, Origin="http://evil.example")[0],
    "edit": call("lithos_note_edit", path="Mine.md", op="append", text="More.", agent="c"),
    "read": call("lithos_read", path="Mine")["content"],
}
print(json.dumps(told))
"""


@pytest.fixture
def namespaces(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Yield two network namespaces that are connected. In the second, the first has the name `lithos`."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and the program ip")
    mark = f"{os.getpid()}"
    server, caller = f"lithos-s{mark}", f"lithos-c{mark}"
    hosts = Path("/etc/netns") / caller
    with ExitStack() as undo:
        for each in (server, caller):
            made = subprocess.run(["ip", "netns", "add", each], capture_output=True, text=True, check=False)
            if made.returncode != 0:
                pytest.skip(f"no network namespace can be made: {made.stderr.strip()}")
            undo.callback(subprocess.run, ["ip", "netns", "del", each], check=False)
        ends = (server, f"ls{mark}", "10.99.0.1"), (caller, f"lc{mark}", "10.99.0.2")
        link = ["ip", "link", "add", ends[0][1], "netns", server, "type", "veth"]
        subprocess.run([*link, "peer", "name", ends[1][1], "netns", caller], check=True)
        for namespace, device, address in ends:
            within = ["ip", "-n", namespace]
            subprocess.run([*within, "addr", "add", f"{address}/24", "dev", device], check=True)
            for up in (device, "lo"):
                subprocess.run([*within, "link", "set", up, "up"], check=True)
        hosts.mkdir(parents=True)
        undo.callback(shutil.rmtree, hosts)
        (hosts / "hosts").write_text("127.0.0.1 localhost\n10.99.0.1 lithos\n")
        yield server, caller


@pytest.mark.slow
def test_another_container_reaches_the_server_by_name(namespaces: tuple[str, str], tmp_path: Path) -> None:
    """behaviour 387: uses the environment of compose and the command of the image."""
    server, caller = namespaces
    notes = tmp_path / "data" / "knowledge"
    notes.mkdir(parents=True)
    mine = "---\nstatus: someday\n---\n# Mine\n\nText.\n"
    (notes / "Mine.md").write_text(mine)
    image = dict(re.findall(r"(LITHOS_\w+)=(\S+)", DOCKERFILE))
    wanted = {
        name: value.replace("/data", str(tmp_path / "data"))
        for name, value in {**image, **environment_of("lithos")}.items()
    }
    command = json.loads(re.search(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)[1])  # type: ignore[index]
    inside = ["ip", "netns", "exec"]
    log = (tmp_path / "log").open("wb")
    running = subprocess.Popen(
        [*inside, server, sys.executable, "-m", "lithos", *command],
        env={**os.environ, **wanted, "PYTHONPATH": str(DOCKER.parent)},
        cwd=tmp_path,
        stdout=log,
        stderr=log,
    )
    try:
        told = _ask([*inside, caller, sys.executable, "-c", CALLER], 60)
    finally:
        running.terminate()
        running.wait(30)
        log.close()
    assert told is not None, (tmp_path / "log").read_text()
    assert told["sse"][0] == 200
    assert told["sse"][1].startswith("event: endpoint")
    statuses = {name: told[name] for name in ("health", "initialize", "metrics", "rebound", "page")}
    assert statuses == {"health": 200, "initialize": 200, "metrics": 200, "rebound": 403, "page": 403}
    assert told["edit"]["status"] == "updated"
    edited = (notes / "Mine.md").read_text()
    assert edited.endswith("# Mine\n\nText.\n\nMore.\n")
    # Lithos adds at most the identity and version of a vault. The person's own keys do not change.
    keys = re.findall(r"^(\w+):", edited, re.MULTILINE)
    assert keys[0] == "status"
    assert {*keys} <= {"status", "id", "updated_at", "version"}
    assert "status: someday" in edited


def _ask(command: list[str], within: float) -> dict[str, Any] | None:
    """Return the answer that the caller got. Return None if the server did not answer in time."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        run = subprocess.run(command, capture_output=True, text=True, timeout=within, check=False)
        if run.returncode == 0:
            found: dict[str, Any] = json.loads(run.stdout)
            return found
        if "Connection refused" not in run.stderr:
            raise AssertionError(run.stderr)
        time.sleep(0.2)
    return None


def test_compose_has_a_read_only_root_and_a_local_port() -> None:
    service = COMPOSE["services"]["lithos"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert any(volume.endswith(":/data") for volume in service["volumes"])


def test_image_runs_unprivileged_on_the_specified_port_and_volume() -> None:
    """docs/spec/cli-config.md §6"""
    assert re.search(r"^USER \d+:\d+$", DOCKERFILE, re.MULTILINE)
    for line in ("VOLUME /data", "EXPOSE 8765", 'CMD ["serve", "--transport", "http", "--host", "0.0.0.0"]'):
        assert line in DOCKERFILE
    assert "LITHOS_DATA_DIR=/data" in DOCKERFILE
    assert "HEALTHCHECK" in DOCKERFILE


def test_files_that_the_image_copies_are_not_ignored() -> None:
    ignored = (DOCKER.parent / ".dockerignore").read_text().split()
    for line in re.findall(r"^COPY (.*)$", DOCKERFILE, re.MULTILINE):
        for source in line.split()[:-1]:
            assert f"!{source}" in ignored
            assert (DOCKER.parent / source).exists()


@pytest.mark.slow
def test_rehearsal_of_the_container_files_passes() -> None:
    run = subprocess.run(
        ["bash", str(DOCKER / "rehearse.sh")], capture_output=True, text=True, timeout=240, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.rstrip().endswith("rehearsal passed")
