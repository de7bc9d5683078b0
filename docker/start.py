"""Start the finished image as docker/compose.yaml does: its own user, read-only root, no rights, a token.

docker/rehearsal.py runs this program in new namespaces for mounts, processes and network. So the image has no
network, and all mounts end with this program. Only the volume and a tmpfs at /tmp are writable.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from steps import read_stages, stage_environment

#: Seconds within which the image must be healthy. Slow machines may set more.
PATIENCE = float(os.environ.get("LITHOS_REHEARSAL_PATIENCE", "120"))
SECRET = "run/secrets/lithos_token"
CONTENT, QUESTION = "The container would start.", "would the container start?"
#: `SIOCSIFFLAGS` with the flags IFF_UP and IFF_RUNNING.
_SET_FLAGS, _UP = 0x8914, 0x41


class Failed(Exception):
    """Error because the image does not start, answer or stop as it should."""


def say(text: str) -> None:
    print(f"--- {text}", flush=True)


def raise_loopback() -> None:
    """Set the loopback device of this network namespace up. It is the only device."""
    with socket.socket() as control:
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))


class Container:
    """The mounts and processes of one started image."""

    def __init__(self, root: Path) -> None:
        self.root = root
        stages = read_stages()
        self.stage = stages[-1]
        self.environment = stage_environment(stages, self.stage)
        self.environment |= {"LITHOS_AUTH_TOKEN_FILE": f"/{SECRET}", "LITHOS_LOG_FORMAT": "text"}
        self.user = self.stage.of("USER")[0].text
        self.folder = self.stage.of("WORKDIR")[-1].text
        self.volume = self.stage.of("VOLUME")[0].text.lstrip("/")
        self.data = root.parent / "volume"
        self.token = secrets.token_urlsafe(24)
        self.log = root.parent / "log"

    def mount(self) -> None:
        """Mount the volume, /tmp, /proc, /dev and the token. Then make the root read-only."""
        # A new volume of Docker begins with the content that the image has at its place.
        subprocess.run(["cp", "-a", str(self.root / self.volume), str(self.data)], check=True)
        mount("--bind", str(self.root), str(self.root))
        mount("-t", "proc", "proc", str(self.root / "proc"))
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(self.root / "dev"))
        for name in ("null", "zero", "full", "random", "urandom"):
            (self.root / "dev" / name).touch()
            mount("--bind", f"/dev/{name}", str(self.root / "dev" / name))
        mount("-t", "tmpfs", "-o", "mode=1777,nosuid,nodev,noexec", "tmpfs", str(self.root / "tmp"))
        mount("--bind", str(self.data), str(self.root / self.volume))
        place = self.root / SECRET
        place.parent.mkdir(parents=True)
        given = self.root.parent / "token"
        given.write_text(self.token + "\n")
        place.touch()
        mount("--bind", str(given), str(place))
        mount("-o", "remount,bind,ro", str(place))
        mount("-o", "remount,bind,ro", str(self.root))

    def start(self, command: list[str], **given: Any) -> subprocess.Popen[str]:
        """Start a command of the image as its user, without any capability or way to gain one."""
        user, _, group = self.user.partition(":")
        drop = ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"]
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        identity = ["setpriv", f"--reuid={user}", f"--regid={group or user}", "--clear-groups", *drop]
        enter = ["chroot", str(self.root), *identity, "env", "-i", "-C", self.folder, *variables]
        return subprocess.Popen([*enter, *command], text=True, **given)

    def is_healthy(self) -> bool:
        """Run the health check of the image once."""
        check = self.start(
            self.stage.of("HEALTHCHECK")[0].command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        return check.wait(60) == 0

    def processes(self) -> list[str]:
        """Return a line for each process of the image: program, user, capabilities and memory."""
        lines = []
        for folder in (self.root / "proc").glob("[0-9]*"):
            status = (folder / "status").read_text().splitlines()
            told = dict(line.split(":\t", 1) for line in status if ":\t" in line)
            user = told["Uid"].split()[0]
            if user != self.user.partition(":")[0]:
                continue
            if int(told["CapEff"], 16) or int(told["CapBnd"], 16) or told["NoNewPrivs"] != "1":
                raise Failed(f"{told['Name']} has capabilities, or can gain privileges.")
            words = (folder / "cmdline").read_text().replace("\0", " ").strip()
            memory = int(told["VmRSS"].split()[0]) * 1024 / 1e6
            lines.append(f"{words} (user {user}, no capabilities, {memory:.0f} MB)")
        return lines


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def call(port: str, token: str | None, name: str, **arguments: object) -> dict[str, Any]:
    """Call one tool over /mcp, as an agent does."""
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(f"http://localhost:{port}/mcp", json.dumps(message).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        result: dict[str, Any] = json.load(answer)["result"]["structuredContent"]
        return result


def use(port: str, token: str) -> str:
    """Write and find a note, and try without a token. Return the path of the note."""
    try:
        call(port, None, "lithos_list")
    except urllib.error.HTTPError as refused:
        if refused.code != 401:
            raise
    else:
        raise Failed("A call without the token was answered.")
    note = call(port, token, "lithos_write", title="Rehearsal", content=CONTENT, agent="rehearsal")
    if note["status"] != "created":
        raise Failed(f"The note was not created: {note}")
    found = call(port, token, "lithos_search", query=QUESTION, mode="semantic", explain=True)["results"]
    if [row["id"] for row in found] != [note["id"]]:
        raise Failed(f"The note was not found by meaning: {found}")
    say(f"refused a call without the token; wrote {note['path']}; semantic search found it")
    return str(note["path"])


def check_read_only(container: Container) -> None:
    """Raise `Failed` if the user of the image can write anywhere but to the volume and to /tmp."""
    # `-writable` asks the kernel, so it also sees permissions and read-only mounts.
    search = ["find", "/", "-path", "/proc", "-prune", "-o", "-writable", "-not", "-type", "l", "-print"]
    asked = container.start(search, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    places = asked.communicate(timeout=120)[0].splitlines()
    allowed = (f"/{container.volume}", "/tmp", "/dev/")
    other = [place for place in places if not place.startswith(allowed)]
    if other or f"/{container.volume}" not in places:
        raise Failed(f"The user can write to {other[:10]}, or cannot write to /{container.volume}.")
    if os.statvfs(container.root).f_flag & os.ST_RDONLY == 0:
        raise Failed("The root is not read-only.")
    temporary = [each.name for each in (container.root / "tmp").iterdir()]
    left = f"/tmp (which holds {temporary or 'nothing'})"
    say(f"read-only root; the user can write to /{container.volume} and {left}")


def rehearse(container: Container) -> None:
    """Start the image, wait for its health check, use it, check it and stop it. Raises `Failed`."""
    command = [word for kind in ("ENTRYPOINT", "CMD") for word in container.stage.of(kind)[0].command()]
    say(f"start as user {container.user}: {' '.join(command)}")
    began = time.monotonic()
    with container.log.open("w") as log:
        server = container.start(command, stdout=log, stderr=log)
    while not container.is_healthy():
        if server.poll() is not None:
            raise Failed(f"The server ended with {server.returncode}.")
        if time.monotonic() - began > PATIENCE:
            raise Failed(f"The health check did not pass within {PATIENCE:.0f} s.")
        time.sleep(0.2)
    say(f"health: passed after {time.monotonic() - began:.1f} s, offline")
    path = use(container.environment["LITHOS_PORT"], container.token)
    for line in container.processes():
        say(f"runs: {line}")
    check_read_only(container)
    server.send_signal(getattr(signal, container.stage.of("STOPSIGNAL")[0].text))
    if code := server.wait(60):
        raise Failed(f"The stop ended with {code}.")
    if container.token in container.log.read_text():
        raise Failed("The log contains the token.")
    if not (container.data / "knowledge" / path).is_file():
        raise Failed(f"The note {path} is not in the volume.")
    say(f"stopped in order, exit 0; the volume has the note {path}")


def main() -> int:
    """Rehearse the start of the image whose root directory is the argument. Return the exit code."""
    container = Container(Path(sys.argv[1]))
    raise_loopback()
    container.mount()
    try:
        rehearse(container)
    except Failed as failure:
        shutil.copyfileobj(container.log.open(), sys.stdout)
        say(f"FAILED: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
