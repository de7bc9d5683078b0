"""Install a built wheel into an empty environment, and take the first steps of README.md with it.

`python .ci/try_wheel.py DIR` takes the wheel that `release.py make DIR` built, and tries each supported
Python on this machine. `--python PATH` tries one Python.
The steps: serve a vault, connect Claude Code, search over HTTP and from the command line, play the demo.
Nothing of the checkout is used, and the home folder is empty.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from names import NAMES, ROOT

#: Bounds in seconds: of one command, and of a start.
WITHIN: Final = 600
START_WITHIN: Final = 120
NOTE: Final = "# Raft\n\nAn entry is committed once a majority has it. #raft\n"
_CLASSIFIER: Final = re.compile(r"Programming Language :: Python :: (3\.\d+)")


class Failed(Exception):
    """Raised if a step does not work. The message contains its output."""


def main(argv: Sequence[str] | None = None) -> int:
    """Try the wheel with each Python; 1 if a step fails, or if there is no supported Python."""
    about, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(prog="try_wheel.py", description=about)
    parser.add_argument("directory", metavar="DIR", type=Path, help="folder that `release.py make` wrote")
    parser.add_argument(
        "--python", type=Path, action="append", help="program; default: each supported Python here"
    )
    typed = parser.parse_args(argv)
    found = list((typed.directory / "python").glob(f"{NAMES.package.replace('-', '_')}-*.whl"))
    if len(found) != 1:
        parser.error(f"{typed.directory}/python has {len(found)} wheels of Lithos instead of one.")
    pythons = typed.python or [path for path in find_pythons().values() if path is not None]
    if not pythons:
        print(f"No Python of {', '.join(supported())} was found on this machine.", file=sys.stderr)
        return 1
    for version in [version for version, path in find_pythons().items() if path is None and not typed.python]:
        print(f"Python {version}: not on this machine", flush=True)
    try:
        for python in pythons:
            print(try_wheel(found[0].resolve(), python), flush=True)
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


def supported() -> list[str]:
    """Return the versions of Python that `pyproject.toml` lists."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [found[1] for each in project["classifiers"] if (found := _CLASSIFIER.fullmatch(each))]


def find_pythons() -> dict[str, Path | None]:
    """Return a program for each supported version: from pyenv, or on the path. None if there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    found: dict[str, Path | None] = {}
    for version in supported():
        own = sorted(pyenv.glob(f"{version}.*/bin/python"))
        program = shutil.which(f"python{version}")
        found[version] = own[-1] if own else Path(program) if program else None
    return found


def try_wheel(wheel: Path, python: Path) -> str:
    """Take all steps. Return a line about them. Raises `Failed`."""
    with tempfile.TemporaryDirectory(prefix="lithos-wheel.") as work:
        folder = Path(work)
        home = folder / "home"
        vault = home / "notes"
        vault.mkdir(parents=True)
        begun = time.monotonic()
        _run([python, "-m", "venv", folder / "venv"], folder, {})
        programs = folder / "venv" / "bin"
        _run([programs / "python", "-m", "pip", "install", "-q", "--no-compile", wheel], folder, {})
        installed = time.monotonic() - begun
        around = {"HOME": str(home), "PATH": f"{programs}{os.pathsep}{os.defpath}"}
        lithos: list[str | Path] = [programs / "lithos", "--vault", vault]
        version = _run([programs / "lithos-server", "--version"], folder, around).strip()
        (vault / "Raft.md").write_text(NOTE, encoding="utf-8")
        with serving(lithos, folder, around) as port:
            begun = time.monotonic()
            _run([*lithos, "connect", "claude-code", "--write"], folder, around)
            answer = call(port, "lithos_search", query="who commits an entry")
            _expect("Raft.md" in json.dumps(answer), f"The search over HTTP found {answer}")
            found = _run([*lithos, "search", "who commits an entry", "--hybrid"], folder, around)
            _expect("1. Raft" in found, f"The search found: {found}")
            used = time.monotonic() - begun
        entry = json.loads((home / ".claude.json").read_text(encoding="utf-8"))["mcpServers"]["lithos"]
        _expect(Path(entry.get("command", "/")).exists(), f"The entry of the client is {entry}")
        demo = _run([programs / "lithos", "demo"], folder, around)
        _expect("Traceback" not in demo, demo)
        shown = _run([python, "--version"], folder, {}).strip()
    times = f"installed in {installed:.0f} s, connected and searched in {used:.0f} s"
    return f"{shown}: {version}, {times}, played the demo"


@contextmanager
def serving(lithos: Sequence[str | Path], folder: Path, around: Mapping[str, str]) -> Iterator[int]:
    """Run a server over HTTP, and yield its port. Raises `Failed` if it does not start, or does not stop."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    log = folder / "log"
    command = [*map(str, lithos), "serve", "--transport", "http", "--port", str(port)]
    with log.open("wb") as out:
        server = subprocess.Popen(command, env=dict(around), cwd=folder, stdout=out, stderr=out)
    try:
        _wait(server, port, log)
        yield port
        server.send_signal(signal.SIGTERM)
        _expect(
            server.wait(START_WITHIN) == 0, f"The server ended with {server.returncode}: {log.read_text()}"
        )
    finally:
        server.kill()
        server.wait()


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Return when the server answers."""
    end = time.monotonic() + START_WITHIN
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise Failed(f"The server did not start: {log.read_text()}")


def call(port: int, name: str, **arguments: Any) -> Any:
    """Call a tool over HTTP, as an agent does."""
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/mcp",
        json.dumps(message).encode(),
        {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def _run(words: Sequence[str | Path], folder: Path, around: Mapping[str, str]) -> str:
    """Return what a program prints. Without `around`, it gets the environment of this program."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(word) for word in words],
        capture_output=True, text=True, timeout=WITHIN, check=False, cwd=folder, env=dict(around) or kept,
    )  # fmt: skip
    _expect(
        done.returncode == 0,
        f"{words} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}",
    )
    return done.stdout


def _expect(held: bool, message: str) -> None:
    if not held:
        raise Failed(message)


if __name__ == "__main__":
    sys.exit(main())
