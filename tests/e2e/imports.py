"""`lithos import` as a separate process, and the report that it prints."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.process import LITHOS, clean_environment, run_lithos


def bring(data: Path, *arguments: str | Path) -> dict[str, Any]:
    done = run_lithos("-d", data, "--json", "import", *arguments)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@contextmanager
def importing(data: Path, *arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the running command, so that a test can kill it."""
    with subprocess.Popen(
        [*LITHOS, "-d", str(data), "import", *map(str, arguments)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_environment(),
    ) as process:  # fmt: skip
        yield process


def numbers(report: dict[str, Any]) -> dict[str, int]:
    return {result: number for result, number in report["notes"].items() if number}
