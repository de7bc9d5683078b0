"""The command line, run in the test process.

Use it as a fixture: `program = pytest.fixture(make_program)`.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import define

import lithos.search.capability
import lithos.upkeep.maintenance.maintenance
from lithos.app.main import main
from tests.servers import load_once


@define
class Done:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> Any:
        assert self.out.count("\n") == 1, self.out + self.err
        return json.loads(self.out)


@define
class Program:
    """The command line on one data directory."""

    data: Path
    capture: pytest.CaptureFixture[str]

    def run(self, *arguments: str) -> Done:
        code = main(["--data-dir", str(self.data), *arguments])
        printed = self.capture.readouterr()
        return Done(code, printed.out, printed.err)


def make_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Program]:
    """Yield a program with an empty data directory. Its logging changes are undone afterwards."""
    for module in (lithos.search.capability, lithos.upkeep.maintenance.maintenance):
        monkeypatch.setattr(module, "load_embedder", load_once)
    root = logging.getLogger()
    handlers, level, interval = root.handlers[:], root.level, sys.getswitchinterval()
    yield Program(tmp_path, capsys)
    root.handlers[:], root.level = handlers, level
    sys.setswitchinterval(interval)
