"""Checks that a running server makes of itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import trio

from lithos.kernel.actors.shared_value import Shared
from lithos.kernel.values.findings import Check, CheckResult, ok
from lithos.upkeep.checks import inspection
from lithos.upkeep.checks.checks import Installed
from lithos.upkeep.checks.inspection import InspectionReport, shared_inspection
from tests.servers import Lithos, put_note, serving


def make_inspection(lithos: Lithos) -> Shared[InspectionReport]:
    return shared_inspection(lithos.server.get(Installed))


def by_name(checks: tuple[CheckResult, ...]) -> dict[str, CheckResult]:
    return {check.name: check for check in checks}


async def test_every_check_passes_on_a_healthy_server(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        await lithos.write("One", "See [[Two]].")
        await lithos.server.searchable()
        checks = (await make_inspection(lithos).latest()).checks
        assert {check.name: check.message for check in checks if check.status != "ok"} == {}
        assert [check.name for check in checks][:3] == ["configuration", "data directory", "disk space"]


async def test_check_names_files_that_are_served_wrongly(tmp_path: Path) -> None:
    put_note(tmp_path, "broken.md", "---\ntitle: [unclosed\n---\ntext")
    put_note(tmp_path, "twice-a.md", "---\nid: 6f1f6ac2-6a0c-4a53-8e7b-1c1b8f2f6a01\n---\na")
    put_note(tmp_path, "twice-b.md", "---\nid: 6f1f6ac2-6a0c-4a53-8e7b-1c1b8f2f6a01\n---\nb")
    async with serving(tmp_path) as lithos:
        found = by_name((await make_inspection(lithos).latest()).checks)
        assert found["broken"].status == found["duplicated"].status == "warn"
        assert "broken.md" in found["broken"].message
        assert "twice-" in found["duplicated"].message


async def test_simultaneous_callers_share_the_results_of_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = 0

    async def counted(check: Check, patient: object, bound: float) -> CheckResult:
        nonlocal runs
        runs += check.name == "clock"
        await trio.lowlevel.checkpoint()
        return CheckResult(check.name, (ok("Fine."),))

    monkeypatch.setattr(inspection, "run_check", counted)
    async with serving(tmp_path, settled=False) as lithos:
        asked = make_inspection(lithos)
        assert asked.last is None
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(asked.latest)
        assert runs == 1
        asked._good_until = 0.0
        assert (await asked.latest()) is asked.last
        assert runs == 2


async def test_failing_check_does_not_stop_the_other_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr("lithos.upkeep.checks.checks_storage.free_space", fail)
    async with serving(tmp_path) as lithos:
        checks = by_name((await make_inspection(lithos).latest()).checks)
        assert checks["disk space"].status == "fail"
        assert "the disk is gone" in checks["disk space"].message
        assert checks["databases"].status == "ok"


async def test_missing_notes_folder_is_reported(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        await lithos.write("One")
        shutil.rmtree(lithos.knowledge)
        notes = by_name((await make_inspection(lithos).latest()).checks)["notes"]
        assert notes.status == "fail"
        assert "has vanished" in notes.message
