"""`lithos import` as a program, and its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.e2e.process import run_lithos


def bring(data: Path, *arguments: str | Path) -> dict[str, Any]:
    done = run_lithos("-d", data, "--json", "import", *arguments)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def numbers(report: dict[str, Any]) -> dict[str, int]:
    return {result: number for result, number in report["notes"].items() if number}
