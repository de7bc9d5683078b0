"""`lithos brief` and `lithos checkpoint`, which run in the test process or as a client's hook."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import frozen

from lithos.app.main import main
from lithos.clients.hooks import briefing, checkpoint, session_start
from lithos.server.command import hook_failsafe
from tests.e2e.process import LITHOS, START_BOUND, clean_environment

#: Maximum duration of a hook in seconds (docs/spec/integration.md §2).
BOUND = 1.0


@frozen
class Printed:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


#: Result of a hook without any output.
SILENT = Printed(0, "", "")


@frozen
class Typist:
    """Commands in this process. Hooks have no time limit here, and their errors are raised."""

    monkeypatch: pytest.MonkeyPatch
    capture: pytest.CaptureFixture[str]

    def __call__(
        self, data: Path, *arguments: str, told: str | bytes = b"", cwd: Path | None = None, **env: str
    ) -> Printed:
        state = {"XDG_STATE_HOME": str(data.parent / "state")}
        return self.typed("-d", str(data), *arguments, told=told, cwd=cwd or data.parent, **state | env)

    def typed(self, *arguments: str, told: str | bytes = b"", cwd: Path, **env: str) -> Printed:
        """Run a command without `--data-dir`."""
        with self.monkeypatch.context() as patch, _stdin(told, patch):
            patch.setattr(hook_failsafe, "promise_silence", lambda: None)
            for module in (briefing, checkpoint):
                patch.setattr(module, "DEADLINE", START_BOUND)
            patch.setattr(session_start, "PATIENCE", 0.0)
            for name in {*os.environ} - clean_environment().keys():
                patch.delenv(name)
            for name, value in clean_environment(env).items():
                patch.setenv(name, value)
            patch.chdir(cwd)
            self.capture.readouterr()
            code = main(arguments)
        return Printed(code, *self.capture.readouterr())


def make_typist(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Typist:
    """Return a typist. Use this function as a fixture: `typist = pytest.fixture(make_typist)`."""
    return Typist(monkeypatch, capfd)


@contextmanager
def _stdin(told: str | bytes, patch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryFile() as file:
        file.write(told.encode() if isinstance(told, str) else told)
        file.seek(0)
        before = os.dup(0)
        os.dup2(file.fileno(), 0)
        try:
            with open(0, closefd=False) as stdin:
                patch.setattr(sys, "stdin", stdin)
                yield
        finally:
            os.dup2(before, 0)
            os.close(before)


def patient(seconds: float) -> list[str]:
    """Return a program that gives its hooks more time, because a busy machine exceeds the real limit."""
    program = (
        f"import sys; from lithos.server.command import hook_failsafe; hook_failsafe.DEADLINE = {seconds}"
    )
    return [sys.executable, "-c", f"{program}; from lithos.app.main import main; sys.exit(main())"]


def started(data: Path, *arguments: str, told: bytes = b"", program: Sequence[str] = LITHOS) -> Printed:
    """Run a command in a separate process with the real time limit of a hook. Fail if the command hangs."""
    done = subprocess.run(
        [*program, "-d", str(data), *arguments],
        input=told, capture_output=True, cwd=data.parent, check=False, timeout=START_BOUND,
        env=clean_environment({"XDG_STATE_HOME": str(data.parent / "state")}),
    )  # fmt: skip
    return Printed(done.returncode, done.stdout.decode(), done.stderr.decode())
