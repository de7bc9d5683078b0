"""Container files, which must fit one another and the product. `docker/rehearse.sh` executes their steps."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

DOCKER = Path(__file__).parent.parent / "docker"
DOCKERFILE = (DOCKER / "Dockerfile").read_text()
sys.path.insert(0, str(DOCKER))
import steps  # noqa: E402 - a module of docker/, which is not a package

STAGES = steps.read_stages()
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())


def environment_of(service: str, **given: str) -> dict[str, str]:
    """Return the environment of a service. Variables that are not given have their defaults."""
    environment = COMPOSE["services"][service]["environment"]
    return {name: fill(value, given) for name, value in environment.items()}


def fill(text: str, given: dict[str, str]) -> str:
    """Replace `${NAME:-default}` and `${NAME:+alternative}`, as Compose does."""

    def value(found: re.Match[str]) -> str:
        name, kind, word = found.groups()
        has_value = bool(given.get(name))
        return (given[name] if has_value else word) if kind == "-" else (word if has_value else "")

    return re.sub(r"\$\{(\w+):([-+])([^}]*)\}", value, text)


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
    image = {
        name: value
        for name, value in steps.stage_environment(STAGES, STAGES[-1]).items()
        if name.startswith("LITHOS_")
    }
    wanted = {
        name: value.replace("/data", str(tmp_path / "data"))
        for name, value in {**image, **environment_of("lithos")}.items()
    }
    command = STAGES[-1].of("CMD")[0].command()
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
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["restart"] == "unless-stopped"
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["volumes"] == ["lithos-data:/data"]
    assert [place.split(":")[0] for place in service["tmpfs"]] == ["/tmp"]
    assert "healthcheck" not in service, "the check of the image applies"


def test_compose_gives_the_token_as_a_file_if_one_is_named() -> None:
    """docs/spec/cli-config.md §6"""
    (name,) = COMPOSE["services"]["lithos"]["secrets"]
    file = COMPOSE["secrets"][name]["file"]
    named = {"LITHOS_TOKEN_FILE": "/home/ada/token"}
    assert fill(file, named) == "/home/ada/token"
    assert environment_of("lithos", **named)["LITHOS_AUTH_TOKEN_FILE"] == f"/run/secrets/{name}"
    without = environment_of("lithos")
    assert fill(file, {}) == "/dev/null"
    assert without["LITHOS_AUTH_TOKEN_FILE"] == without["LITHOS_AUTH_TOKEN"] == ""
    assert environment_of("lithos", LITHOS_AUTH_TOKEN="hush")["LITHOS_AUTH_TOKEN"] == "hush"


def test_image_runs_unprivileged_on_the_specified_port_and_volume() -> None:
    """docs/spec/cli-config.md §6"""
    last = STAGES[-1]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", last.of("USER")[0].text)
    assert [last.of(kind)[0].text for kind in ("VOLUME", "EXPOSE")] == ["/data", "8765"]
    started = last.of("ENTRYPOINT")[0].command() + last.of("CMD")[0].command()
    assert started == ["lithos", "serve", "--transport", "http", "--host", "0.0.0.0"]
    environment = steps.stage_environment(STAGES, last)
    assert environment["LITHOS_DATA_DIR"] == "/data"
    assert environment["PATH"].startswith("/opt/lithos/.venv/bin:/")


def test_health_check_needs_no_program_but_python() -> None:
    """docs/spec/cli-config.md §6"""
    command = STAGES[-1].of("HEALTHCHECK")[0].command()
    assert command[:2] == ["python", "-c"]
    assert "/health" in command[2]
    compile(command[2], "HEALTHCHECK", "exec")


def test_last_stage_installs_no_build_tools() -> None:
    """The last stage has only what it copies from the others. Its base installs Python without pip."""
    last = STAGES[-1]
    (base,) = [stage for stage in STAGES if stage.name == last.base]
    assert [step.flag("from") for step in last.of("COPY")] == ["build"]
    installed = " ".join(step.text for step in (*base.of("RUN"), *last.of("RUN")))
    assert not re.search(r"\b(pip|uv|gcc|build-essential|python3-venv|curl)\b", installed)
    assert installed.count("apt-get install") == 1
    assert "rm -rf /var/lib/apt/lists/*" in installed


def test_dependencies_of_the_image_have_wheels_for_both_processors() -> None:
    """Without a wheel, the image would need a compiler. Names in uv.lock are those of Python 3.13."""
    packages: dict[str, list[dict[str, Any]]] = {}
    for package in tomllib.loads((DOCKER.parent / "uv.lock").read_text())["package"]:
        packages.setdefault(package["name"], []).append(package)
    waiting, seen, lacking = ["lithos-server"], {"lithos-server"}, []
    while waiting:
        name = waiting.pop()
        for package in packages[name]:
            for needed in package.get("dependencies", []):
                if needed["name"] not in seen and "sys_platform == 'win32'" not in needed.get("marker", ""):
                    seen.add(needed["name"])
                    waiting.append(needed["name"])
            if name != "lithos-server":
                wheels = [wheel["url"].rsplit("/", 1)[-1] for wheel in package.get("wheels", [])]
                lacking += [(name, processor) for processor in PROCESSORS if not any_fits(wheels, processor)]
    assert len(seen) > 50
    assert lacking == []


#: Names of the processors amd64 and arm64 in the file names of wheels.
PROCESSORS = ("x86_64", "aarch64")


def any_fits(wheels: list[str], processor: str) -> bool:
    """Return whether Debian's Python 3.13 can install one of these wheels on a processor."""
    own = rf"-(cp313-cp313|cp3\d+-abi3)-manylinux\S*_{processor}\S*\.whl"
    return any(wheel.endswith("-none-any.whl") or re.search(own, wheel) for wheel in wheels)


def test_wheels_of_other_systems_do_not_fit() -> None:
    assert any_fits(["a-1-cp39-abi3-manylinux_2_17_aarch64.manylinux2014_aarch64.whl"], "aarch64")
    for other in ("a-1-cp313-cp313-win_arm64.whl", "a-1-cp312-cp312-manylinux_2_17_aarch64.whl"):
        assert not any_fits([other], "aarch64")


def test_files_that_the_image_copies_are_not_ignored() -> None:
    ignored = (DOCKER.parent / ".dockerignore").read_text().split()
    copied = [step for stage in STAGES for step in stage.of("COPY") if step.flag("from") is None]
    assert copied
    for step in copied:
        for source in step.words()[:-1]:
            assert f"!{source}" in ignored
            assert (DOCKER.parent / source).exists()


def test_unknown_instruction_of_the_dockerfile_is_refused() -> None:
    """The rehearsal must not skip a step."""
    with pytest.raises(ValueError, match="does not know the instruction ONBUILD"):
        steps.read_stages("FROM debian:trixie-slim\nONBUILD RUN true\n")


def test_variables_of_earlier_stages_reach_the_last() -> None:
    text = "FROM x AS a\nENV A=1 PATH=/a:$PATH\n\nFROM a\n# Why.\nENV B=$A \\\n    C='two words'\n"
    stages = steps.read_stages(text)
    found = steps.stage_environment(stages, stages[-1])
    assert {name: found[name] for name in "ABC"} == {"A": "1", "B": "1", "C": "two words"}
    assert found["PATH"].startswith("/a:/usr/local/sbin:")


@pytest.mark.nightly
def test_rehearsal_of_the_container_files_passes() -> None:
    """Builds and starts the image in a clean root directory. Skipped if root or debootstrap is missing."""
    run = subprocess.run(
        ["bash", str(DOCKER / "rehearse.sh")], capture_output=True, text=True, timeout=1200, check=False
    )
    if run.returncode == 77:
        pytest.skip(run.stdout.strip())
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.rstrip().endswith("rehearsal passed")
    for fact in ("size: ", "health: passed", "runs: ", "read-only root", "refused a call without the token"):
        assert f"--- {fact}" in run.stdout
